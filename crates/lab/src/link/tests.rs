use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

/// Returns a link, or records a skip.
fn link_or_skip(options: LinkOptions) -> Option<Link> {
    match Link::new(options) {
        Err(LinkError::Namespace(error)) if error.is_unavailable() => {
            nonesuch_testing::record_skip("network namespaces or TUN devices cannot be used");
            None
        }
        link => Some(link.expect("a link")),
    }
}

fn both(path: PathOptions) -> LinkOptions {
    LinkOptions { forward: path, backward: path, seed: 7 }
}

/// Binds a socket at one side.
fn socket(side: &Side, address: impl Into<IpAddr>, port: u16) -> UdpSocket {
    let address = SocketAddr::new(address.into(), port);
    let socket = side.run(|| UdpSocket::bind(address)).expect("run").expect("bound");
    socket.set_read_timeout(Some(PATIENCE)).expect("set");
    socket
}

/// Receives a datagram of at most 2000 octets.
fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut octets = [0; 2000];
    let (length, sender) = socket.recv_from(&mut octets).expect("received");
    (octets[..length].to_vec(), sender)
}

/// Sends a message to the server and back.
fn exchange(client: &UdpSocket, server: &UdpSocket, message: &[u8]) {
    let address = server.local_addr().expect("an address");
    client.send_to(message, address).expect("sent");
    let (query, sender) = receive(server);
    assert_eq!((query.as_slice(), sender), (message, client.local_addr().expect("an address")));
    server.send_to(&query, sender).expect("sent");
    assert_eq!(receive(client), (query, address));
}

#[test]
fn datagrams_cross_the_link_in_both_directions() {
    let Some(link) = link_or_skip(LinkOptions::default()) else { return };
    let (client, server) = (link.client_side(), link.server_side());
    for (from, to) in [
        (IpAddr::from(client.ipv4()), IpAddr::from(server.ipv4())),
        (client.ipv6().into(), server.ipv6().into()),
    ] {
        // Both sides use port 53.
        let (from, to) = (socket(client, from, 53), socket(server, to, 53));
        for number in 0..100_u8 {
            exchange(&from, &to, &[number; 100]);
        }
    }
    assert_eq!(link.overruns().expect("a number"), 0);
    let expected = PathCounters { sent: 200, delivered: 200, ..PathCounters::default() };
    let counters = link.close().expect("counters");
    assert_eq!(counters, LinkCounters { forward: expected, backward: expected, rejected: 0 });
}

#[test]
fn the_seed_determines_which_datagrams_are_lost() {
    let forward = PathOptions { loss: 0.3, ..PathOptions::default() };
    let Some(link) = link_or_skip(LinkOptions { forward, seed: 3, ..LinkOptions::default() }) else { return };
    let client = socket(link.client_side(), link.client_side().ipv4(), 0);
    let server = socket(link.server_side(), link.server_side().ipv4(), 0);
    let mut model = Path::new(forward, 3, 0).expect("valid options");
    let packet = etherparse::PacketBuilder::ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64).udp(1, 2);
    let mut octets = Vec::new();
    packet.write(&mut octets, &[0; 4]).expect("written");
    for number in 0..500_u32 {
        client.send_to(&number.to_be_bytes(), server.local_addr().expect("an address")).expect("sent");
        model.send(Duration::ZERO, &octets);
        if model.poll(Duration::ZERO).is_some() {
            assert_eq!(receive(&server).0, number.to_be_bytes());
        }
    }
    let lost = model.counters().lost;
    assert!((100..200).contains(&lost), "{lost}");
    // The last datagrams may be lost, so nothing shows yet that the link has received them.
    let until = Instant::now() + PATIENCE;
    while link.counters().forward.sent < 500 && Instant::now() < until {
        thread::yield_now();
    }
    assert_eq!(link.close().expect("counters").forward.lost, lost);
}

#[test]
fn a_datagram_takes_the_delay_of_both_directions() {
    let slow = |ms| PathOptions { delay: Duration::from_millis(ms), ..PathOptions::default() };
    let options = LinkOptions { forward: slow(20), backward: slow(5), seed: 1 };
    let Some(link) = link_or_skip(options) else { return };
    let client = socket(link.client_side(), link.client_side().ipv6(), 0);
    let server = socket(link.server_side(), link.server_side().ipv6(), 0);
    let start = Instant::now();
    exchange(&client, &server, b"ping");
    assert!(start.elapsed() >= Duration::from_millis(25));
    let counters = link.close().expect("counters");
    assert_eq!((counters.forward.transit_ns, counters.backward.transit_ns), (20_000_000, 5_000_000));
}

#[test]
fn the_kernel_learns_the_path_mtu_from_icmp_errors() {
    let Some(link) = link_or_skip(both(PathOptions { mtu: 1280, ..PathOptions::default() })) else { return };
    let (client, server) = (link.client_side(), link.server_side());
    for (number, (from, to)) in [
        (IpAddr::from(client.ipv4()), IpAddr::from(server.ipv4())),
        (client.ipv6().into(), server.ipv6().into()),
    ]
    .into_iter()
    .enumerate()
    {
        let (from, to) = (socket(client, from, 0), socket(server, to, 0));
        let address = to.local_addr().expect("an address");
        from.send_to(&[1; 1400], address).expect("sent");
        // The first datagram is lost, and the ICMP error arrives before the response to this one.
        exchange(&from, &to, b"ping");
        let before = link.counters().forward;
        assert_eq!((before.too_big, before.icmp_errors), (number as u64 + 1, number as u64 + 1));
        // The kernel fragments the next datagram itself: the path sees only fragments that fit.
        from.send_to(&[2; 1400], address).expect("sent");
        assert_eq!(receive(&to).0, [2; 1400]);
        let after = link.counters().forward;
        assert_eq!(after, PathCounters { sent: before.sent + 2, delivered: before.delivered + 2, ..before });
    }
}

#[test]
fn dropped_fragments_make_large_datagrams_disappear() {
    let forward = PathOptions { mtu: 9000, ..PathOptions::default() };
    let backward = PathOptions { drop_fragments: true, ..PathOptions::default() };
    let Some(link) = link_or_skip(LinkOptions { forward, backward, seed: 1 }) else { return };
    let client = socket(link.client_side(), link.client_side().ipv4(), 0);
    let server = socket(link.server_side(), link.server_side().ipv4(), 0);
    // The interfaces have the larger MTU, so the path drops the packet or its fragments.
    server.send_to(&[0; 2000], client.local_addr().expect("an address")).expect("sent");
    exchange(&client, &server, b"ping");
    server.send_to(&[0; 2000], client.local_addr().expect("an address")).expect("sent");
    exchange(&client, &server, b"pong");
    let backward = link.close().expect("counters").backward;
    assert_eq!((backward.too_big, backward.fragments_dropped, backward.delivered), (1, 2, 2));
}

#[test]
fn tcp_adapts_to_the_path_mtu_and_repeats_lost_segments() {
    let path =
        PathOptions { mtu: 1280, loss: 0.01, delay: Duration::from_millis(1), ..PathOptions::default() };
    let Some(link) = link_or_skip(both(path)) else { return };
    let address = SocketAddr::from((link.server_side().ipv4(), 53));
    let listener = link.server_side().run(|| TcpListener::bind(address)).expect("run").expect("bound");
    let octets: Vec<u8> = (0..200_000_u32).map(|index| (index >> 8) as u8).collect();
    let received = thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().expect("accepted");
            stream.set_write_timeout(Some(PATIENCE)).expect("set");
            stream.write_all(&octets).expect("written");
        });
        let connect = || TcpStream::connect_timeout(&address, PATIENCE);
        let mut stream = link.client_side().run(connect).expect("run").expect("connected");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        let mut received = Vec::new();
        stream.read_to_end(&mut received).expect("read");
        received
    });
    assert_eq!(received, octets);
    let counters = link.close().expect("counters");
    assert!(counters.backward.too_big > 0, "{counters:?}");
    assert_eq!(counters.backward.fragmented, 0);
}

#[test]
fn further_addresses_are_reachable() {
    let Some(link) = link_or_skip(LinkOptions::default()) else { return };
    for address in ["198.41.0.4", "2001:503:ba3e::2:30"] {
        let address: IpAddr = address.parse().expect("an address");
        link.add_address(End::Server, address).expect("added");
        let client: IpAddr = if address.is_ipv4() {
            link.client_side().ipv4().into()
        } else {
            link.client_side().ipv6().into()
        };
        exchange(
            &socket(link.client_side(), client, 0),
            &socket(link.server_side(), address, 53),
            b"priming query",
        );
        let again = link.add_address(End::Server, address).expect_err("exists");
        assert!(matches!(again, LinkError::Namespace(_)));
    }
}

#[test]
fn a_program_runs_at_its_side() {
    let Some(link) = link_or_skip(LinkOptions::default()) else { return };
    let mut command = Command::new("cat");
    command.arg("/proc/self/net/fib_trie").stdout(Stdio::piped());
    let output = link.server_side().spawn(&mut command).expect("started").wait_with_output().expect("ended");
    let table = String::from_utf8(output.stdout).expect("text");
    assert!(table.contains("192.0.2.2\n") && !table.contains("192.0.2.1\n"), "{table}");
    let missing = link.client_side().spawn(&mut Command::new("/no/program")).expect_err("missing");
    assert!(matches!(missing, LinkError::Spawn { program, .. } if program == "/no/program"));
}

#[test]
fn an_option_out_of_range_is_an_error_with_its_direction() {
    let bad = PathOptions { loss: 2.0, ..PathOptions::default() };
    let error = Link::new(LinkOptions { backward: bad, ..LinkOptions::default() }).expect_err("rejected");
    assert!(matches!(error, LinkError::Options { from: End::Server, .. }), "{error}");
}

/// In a user namespace, the process has no capabilities outside, whoever runs the tests.
#[test]
fn a_link_works_in_a_user_namespace() {
    let skips = tempfile::NamedTempFile::new().expect("a file");
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command.args(["--exact", "link::tests::datagrams_cross_the_link_in_both_directions"]);
    nonesuch_net::namespace::in_user_namespace(command.env("NONESUCH_SKIPS", skips.path()));
    let Ok(output) = command.output() else {
        return nonesuch_testing::record_skip("user namespaces cannot be used");
    };
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    if std::fs::read(skips.path()).expect("readable") != b"" {
        nonesuch_testing::record_skip("network namespaces or TUN devices cannot be used");
    }
}
