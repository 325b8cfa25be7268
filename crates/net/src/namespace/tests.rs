use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

use super::*;

/// Returns a namespace with a TUN device, or records a skip.
fn namespace_or_skip() -> Option<(NetworkNamespace, Tun)> {
    let opened = NetworkNamespace::new().and_then(|namespace| {
        let tun = namespace.open_tun(1500)?;
        Ok((namespace, tun))
    });
    match opened {
        Err(error) if error.is_unavailable() => {
            nonesuch_testing::record_skip("network namespaces or TUN devices cannot be used");
            None
        }
        opened => Some(opened.expect("a namespace")),
    }
}

/// Returns whether the calling thread sees the TUN device.
fn sees_tun() -> bool {
    interfaces().iter().any(|name| Ok(name.as_str()) == INTERFACE.to_str())
}

/// The names of the interfaces that the calling thread sees. Apart from `lo` and the TUN device,
/// these can be `tunl0`, `sit0` and similar, which some kernel modules add to each namespace.
fn interfaces() -> Vec<String> {
    let table = fs::read_to_string("/proc/thread-self/net/dev").expect("readable");
    let names = table.lines().filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned()));
    names.collect()
}

#[test]
fn an_interface_is_only_in_its_namespace() {
    let before = interfaces();
    let Some((namespace, _tun)) = namespace_or_skip() else { return };
    assert!(namespace.run(sees_tun).expect("run"));
    assert!(!sees_tun());
    assert_eq!(interfaces(), before);
}

#[test]
fn a_datagram_of_a_program_is_received_from_the_device() {
    let Some((namespace, tun)) = namespace_or_skip() else { return };
    for (own, peer, route) in [
        ("192.0.2.1", "198.51.100.7:53", "198.51.100.0"),
        ("2001:db8::1", "[2001:db8:7::7]:53", "2001:db8:7::"),
    ] {
        let (own, route): (IpAddr, IpAddr) = (own.parse().expect("own"), route.parse().expect("route"));
        let (prefix, network) = if own.is_ipv4() { (32, 24) } else { (128, 48) };
        namespace.add_address(tun.interface(), own, prefix).expect("an address");
        namespace.add_route(tun.interface(), route, network).expect("a route");
        let again = namespace.add_address(tun.interface(), own, prefix).expect_err("exists");
        assert!(
            matches!(&again, NamespaceError::Configure { source, .. } if source.raw_os_error() == Some(libc::EEXIST))
        );

        let peer: SocketAddr = peer.parse().expect("an address");
        let send = || UdpSocket::bind((own, 0))?.send_to(b"hello", peer);
        assert_eq!(namespace.run(send).expect("run").expect("sent"), 5);
        let mut packet = [0; 100];
        let length = tun.receive(&mut packet).expect("received").expect("a packet");
        assert_eq!(length, 5 + 8 + if own.is_ipv4() { 20 } else { 40 });
        assert!(packet[..length].ends_with(b"hello"));
        assert_eq!(tun.receive(&mut packet).expect("received"), None);
    }
}

#[test]
fn loopback_is_up_and_ports_are_free() {
    let Some((namespace, _tun)) = namespace_or_skip() else { return };
    let first = namespace.run(|| UdpSocket::bind("127.0.0.1:53")).expect("run").expect("free");
    let (other, _) = namespace_or_skip().expect("as before");
    let second = other.run(|| UdpSocket::bind("127.0.0.1:53")).expect("run").expect("free");
    second.connect("127.0.0.1:53").expect("connected");
    first.set_nonblocking(true).expect("set");
    second.send(b"to itself").expect("sent");
    let mut octets = [0; 20];
    assert_eq!(second.recv(&mut octets).expect("received"), 9);
    let nothing = first.recv(&mut octets).expect_err("the other namespace");
    assert_eq!(nothing.kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn a_panic_in_a_namespace_is_passed_on() {
    let Some((namespace, _tun)) = namespace_or_skip() else { return };
    let caught = std::panic::catch_unwind(|| namespace.run(|| panic!("in the namespace")));
    let panic = caught.expect_err("a panic");
    assert_eq!(panic.downcast_ref(), Some(&"in the namespace"));
}

#[test]
fn a_program_in_a_user_namespace_is_root_there() {
    let mut command = Command::new("id");
    in_user_namespace(command.arg("-u"));
    match command.output() {
        Ok(output) => assert_eq!(output.stdout, b"0\n"),
        Err(_) => nonesuch_testing::record_skip("user namespaces cannot be used"),
    }
}

#[test]
fn packets_beyond_the_queue_of_the_device_are_counted() {
    let Some((namespace, tun)) = namespace_or_skip() else { return };
    let own = IpAddr::from([192, 0, 2, 1]);
    namespace.add_address(tun.interface(), own, 24).expect("an address");
    let socket = namespace.run(|| UdpSocket::bind((own, 0))).expect("run").expect("bound");
    for _ in 0..TUN_QUEUE + 100 {
        socket.send_to(b"hello", "192.0.2.2:53").expect("sent");
    }
    let received = std::iter::from_fn(|| tun.receive(&mut [0; 100]).expect("received")).count() as u64;
    let dropped = namespace.dropped_packets().expect("a number");
    assert_eq!((received, dropped), (u64::from(TUN_QUEUE), 100));
}

/// Swaps sender and receiver of a UDP packet without options. The checksums stay correct.
fn reverse_direction(packet: &mut [u8]) {
    let (addresses, size) = if packet[0] >> 4 == 4 { (12, 4) } else { (8, 16) };
    for (start, size) in [(addresses, size), (addresses + 2 * size, 2)] {
        let (first, second) = packet[start..start + 2 * size].split_at_mut(size);
        first.swap_with_slice(second);
    }
}

/// Guards the flag `IFA_F_NODAD`: without it, an IPv6 address is tentative for about a second. Many
/// addresses make a success by chance improbable.
#[test]
fn an_address_gets_packets_as_soon_as_it_is_added() {
    let Some((namespace, tun)) = namespace_or_skip() else { return };
    for number in 1..100_u8 {
        for (own, peer) in [
            (IpAddr::from([10, 0, number, 1]), IpAddr::from([10, 0, number, 2])),
            (
                IpAddr::from([0x2001, 0xdb8, number.into(), 0, 0, 0, 0, 1]),
                IpAddr::from([0x2001, 0xdb8, number.into(), 0, 0, 0, 0, 2]),
            ),
        ] {
            let prefix = if own.is_ipv4() { 24 } else { 64 };
            namespace.add_address(tun.interface(), own, prefix).expect("an address");
            let socket = namespace.run(|| UdpSocket::bind((own, 0))).expect("run").expect("bound");
            socket.set_read_timeout(Some(Duration::from_secs(5))).expect("set");
            socket.send_to(b"hello", (peer, 53)).expect("sent");
            let mut packet = [0; 100];
            let length = tun.receive(&mut packet).expect("received").expect("a packet");
            reverse_direction(&mut packet[..length]);
            tun.send(&packet[..length]).expect("sent");
            assert_eq!(socket.recv_from(&mut packet).expect("received"), (5, (peer, 53).into()));
        }
    }
}
