use super::*;
use nonesuch_proto::Rtype;
use nonesuch_proto::edns::{DO, push_opt};
use nonesuch_proto::message::{flags, push_query};
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc;
use std::time::Instant;

const LIMIT: Duration = Duration::from_secs(10);

fn query(id: u16) -> Vec<u8> {
    let mut message = Vec::new();
    let flags = flags::RD | flags::AD | flags::CD;
    push_query(&"Www.example.".parse().expect("a name"), Rtype(65_123), id, flags, &mut message);
    push_opt(4096, 0, DO, &mut message);
    message[11] = 1;
    message
}

/// A response of `octets` octets: the query with QR, and padding behind it.
fn response(query: &[u8], octets: usize) -> Vec<u8> {
    let mut message = query.to_vec();
    message[2] |= 0x80;
    message.resize(octets.max(message.len()), 0xee);
    message
}

fn client() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bound");
    socket.set_read_timeout(Some(LIMIT)).expect("set");
    socket
}

fn proxy(upstream: SocketAddr, faults: &[Fault]) -> Proxy {
    let options = ProxyOptions::new("127.0.0.1:0".parse().expect("an address"), upstream);
    let timeout = Duration::from_millis(300);
    Proxy::start(&ProxyOptions { faults: faults.to_vec(), timeout, in_flight: 8, connections: 2, ..options })
        .expect("started")
}

/// A server over UDP without a thread: the test receives and answers.
fn upstream() -> (UdpSocket, SocketAddr) {
    let socket = client();
    let address = socket.local_addr().expect("bound");
    (socket, address)
}

fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut buffer = vec![0; 65_535];
    let (length, peer) = socket.recv_from(&mut buffer).expect("received");
    buffer.truncate(length);
    (buffer, peer)
}

/// Whether no datagram arrives within a short time.
fn is_silent(socket: &UdpSocket) -> bool {
    socket.set_read_timeout(Some(Duration::from_millis(100))).expect("set");
    let silent = socket.recv(&mut [0; 16]).is_err();
    socket.set_read_timeout(Some(LIMIT)).expect("set");
    silent
}

#[test]
fn only_the_id_changes_over_udp() {
    let (server, address) = upstream();
    let proxy = proxy(address, &[]);
    let mut seen = std::collections::HashSet::new();
    for id in 0..8_u16 {
        let client = client();
        let sent = query(id);
        client.send_to(&sent, proxy.address()).expect("sent");
        let (forwarded, port) = receive(&server);
        assert_eq!(forwarded[2..], sent[2..]);
        seen.insert((forwarded[..2].to_vec(), port));
        let octets = [40, 513, 1221, 4000, 9000, 50_000][usize::from(id) % 6];
        let answer = response(&forwarded, octets);
        server.send_to(&answer, port).expect("sent");
        let (received, from) = receive(&client);
        assert_eq!(from, proxy.address());
        assert_eq!((&received[..2], &received[2..]), (&sent[..2], &answer[2..]));
    }
    // Random ports and IDs: eight equal ones are impossible in practice.
    assert!(seen.len() == 8, "{seen:?}");
    assert_eq!(proxy.counts().udp_responses, 8);
}

#[test]
fn garbage_from_both_sides_is_dropped() {
    let (server, address) = upstream();
    let proxy = proxy(address, &[]);
    let client = client();
    // From the client: too short, and a response.
    client.send_to(&[1; 5], proxy.address()).expect("sent");
    client.send_to(&response(&query(1), 0), proxy.address()).expect("sent");
    assert!(is_silent(&server));
    // From the server: too short, another ID, no response, another question; then the answer.
    client.send_to(&query(7), proxy.address()).expect("sent");
    let (forwarded, port) = receive(&server);
    let right = response(&forwarded, 0);
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut octets = right.clone();
        change(&mut octets);
        octets
    };
    for garbage in [
        vec![0; 3],
        changed(&|octets| octets[0] ^= 1),
        changed(&|octets| octets[2] ^= 0x80),
        changed(&|octets| octets[13] ^= 2),
        right.clone(),
    ] {
        server.send_to(&garbage, port).expect("sent");
    }
    // Another server.
    let other = UdpSocket::bind("127.0.0.1:0").expect("bound");
    other.send_to(&right, port).expect("sent");
    let (received, _) = receive(&client);
    assert_eq!((&received[..2], &received[2..]), (&[0, 7][..], &right[2..]));
    assert!(is_silent(&client));
    assert_eq!((proxy.counts().unexpected, proxy.counts().dropped), (4, 2));
}

#[test]
fn a_silent_server_fills_the_table_and_frees_it_again() {
    let (server, address) = upstream();
    let proxy = proxy(address, &[]);
    let client = client();
    for id in 0..20 {
        client.send_to(&query(id), proxy.address()).expect("sent");
    }
    let end = Instant::now() + LIMIT;
    while proxy.counts().timed_out < 8 {
        assert!(Instant::now() < end, "{:?}", proxy.counts());
        thread::sleep(Duration::from_millis(10));
    }
    let counts = proxy.counts();
    assert_eq!((counts.udp_queries, counts.dropped), (8, 12), "{counts:?}");
    (0..8).for_each(|_| drop(receive(&server)));
    client.send_to(&query(99), proxy.address()).expect("sent");
    let (forwarded, port) = receive(&server);
    server.send_to(&response(&forwarded, 0), port).expect("sent");
    assert_eq!(receive(&client).0[..2], [0, 99]);
}

fn write_message(stream: &mut TcpStream, message: &[u8]) {
    stream.write_all(&[&(message.len() as u16).to_be_bytes(), message].concat()).expect("sent");
}

fn read_message(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut message)?;
    Ok(message)
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("connected");
    stream.set_read_timeout(Some(LIMIT)).expect("set");
    stream
}

#[test]
fn tcp_messages_pass_unchanged_in_both_directions() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let proxy = proxy(listener.local_addr().expect("bound"), &[]);
    let mut client = connect(proxy.address());
    // Two queries in a row; three responses, of which one is large and one is empty.
    let queries = [query(1), query(2)];
    queries.iter().for_each(|query| write_message(&mut client, query));
    let (mut server, _) = listener.accept().expect("accepted");
    server.set_read_timeout(Some(LIMIT)).expect("set");
    for sent in &queries {
        assert_eq!(read_message(&mut server).expect("a query"), *sent);
    }
    for octets in [40_usize, 65_535, 0] {
        let answer = if octets == 0 { Vec::new() } else { response(&queries[0], octets) };
        write_message(&mut server, &answer);
        assert_eq!(read_message(&mut client).expect("a response"), answer);
    }
    drop(server);
    assert!(read_message(&mut client).is_err());
}

#[test]
fn tcp_connections_are_limited_and_end() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let proxy = proxy(listener.local_addr().expect("bound"), &[]);
    let (sender, receiver) = mpsc::channel();
    // Two connections that send half of a message; more are closed immediately.
    let mut slow: Vec<TcpStream> = (0..2).map(|_| connect(proxy.address())).collect();
    slow.iter_mut().for_each(|stream| stream.write_all(&[0]).expect("sent"));
    while proxy.counts().connections < 2 {
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(connect(proxy.address()).read(&mut [0; 1]).unwrap_or(0), 0);
    assert_eq!(proxy.counts().refused, 1);
    thread::spawn(move || {
        slow.iter_mut().for_each(|stream| drop(stream.read(&mut [0; 1])));
        sender.send(()).expect("sent");
    });
    receiver.recv_timeout(LIMIT).expect("the connections end");
}

#[test]
fn faults_of_tcp() {
    let (server, address) = upstream();
    let refusing = proxy(address, &[Fault::NoTcp]);
    assert!(TcpStream::connect(refusing.address()).is_err());
    let over_udp = proxy(address, &[Fault::TcpToUdp]);
    let mut client = connect(over_udp.address());
    write_message(&mut client, &query(3));
    let (forwarded, port) = receive(&server);
    server.send_to(&response(&forwarded, 100), port).expect("sent");
    assert_eq!(read_message(&mut client).expect("a response").len(), 100);
}

#[test]
fn faults_of_ids_ports_and_addresses() {
    let (server, address) = upstream();
    let fixed = proxy(address, &[Fault::FixedId, Fault::FixedPort]);
    let client = client();
    let mut seen = std::collections::HashSet::new();
    for id in 1..5 {
        client.send_to(&query(id), fixed.address()).expect("sent");
        let (forwarded, port) = receive(&server);
        seen.insert((forwarded[..2].to_vec(), port));
        server.send_to(&response(&forwarded, 0), port).expect("sent");
        assert_eq!(receive(&client).0[..2], id.to_be_bytes());
    }
    assert_eq!(seen.len(), 1);
    let options = ProxyOptions::new("127.0.0.1:0".parse().expect("an address"), address);
    let open = ProxyOptions { faults: vec![Fault::OpenWan], ..options };
    assert!(matches!(Proxy::start(&open), Err(ProxyError::NoWan)));
    let wan: SocketAddr = {
        let probe = UdpSocket::bind("127.0.0.2:0").expect("bound");
        probe.local_addr().expect("bound")
    };
    let _open = Proxy::start(&ProxyOptions { wan: Some(wan), ..open }).expect("started");
    client.send_to(&query(9), wan).expect("sent");
    assert_eq!(receive(&server).0[2..], query(9)[2..]);
}

#[test]
fn the_side_of_the_provider_and_loops_are_refused() {
    let (_server, address) = upstream();
    let all = ProxyOptions::new("0.0.0.0:0".parse().expect("an address"), address);
    assert!(matches!(Proxy::start(&all), Err(ProxyError::AllAddresses(_))));
    let unspecified = "0.0.0.0:53".parse().expect("an address");
    for upstream in [address, unspecified] {
        assert!(matches!(Proxy::start(&ProxyOptions::new(address, upstream)), Err(ProxyError::Itself(_))));
    }
}
