use super::*;
use nonesuch_net::bind;
use nonesuch_proto::message::{Header, push_query};
use nonesuch_proto::{Name, Rtype};
use std::net::UdpSocket;

/// A server over TCP that answers each query with the query, QR and `octets` octets of RDATA in a
/// record of type `rtype`.
fn version(rtype: u16, octets: u16) -> (SocketAddr, TcpServer) {
    let Listeners { tcp, local_addr, .. } =
        bind("127.0.0.1:0".parse().expect("an address"), 1).expect("bound");
    let respond = move |query: &[u8], _: SocketAddr, out: &mut Vec<u8>| {
        let header = Header::read(query).expect("a header");
        out.extend_from_slice(&Header { flags: 0x8403, counts: [1, 0, 1, 0], ..header }.to_octets());
        out.extend_from_slice(&query[12..]);
        out.extend_from_slice(&[0xc0, 12]);
        out.extend_from_slice(&rtype.to_be_bytes());
        out.extend_from_slice(&[0, 1, 0, 0, 0, 5]);
        out.extend_from_slice(&octets.to_be_bytes());
        out.resize(out.len() + usize::from(octets), 7);
        true
    };
    let server = tcp::serve(tcp, &TcpOptions::default(), move || respond).expect("started");
    (local_addr, server)
}

fn composer(octets: u16) -> (SocketAddr, Composer, [TcpServer; 2]) {
    let ((old, old_server), (new, new_server)) = (version(65_400, octets), version(65_401, octets));
    let listeners = bind("127.0.0.1:0".parse().expect("an address"), 1).expect("bound");
    let address = listeners.local_addr;
    (address, Composer::start(listeners, [old, new]).expect("started"), [old_server, new_server])
}

fn query() -> Vec<u8> {
    let mut query = Vec::new();
    push_query(&"a.example.".parse::<Name>().expect("a name"), Rtype::A, 9, 0, &mut query);
    query
}

fn ask_udp(address: SocketAddr) -> Vec<u8> {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bound");
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("set");
    socket.send_to(&query(), address).expect("sent");
    let mut response = [0; 4096];
    let length = socket.recv(&mut response).expect("a response");
    response[..length].to_vec()
}

#[test]
fn queries_over_udp_and_tcp_get_the_records_of_both() {
    let (address, composer, _servers) = composer(50);
    let over_tcp = Version::new(address).exchange(&query()).expect("a response");
    assert_eq!(Header::read(&over_tcp).map(|header| (header.id, header.counts)), Some((9, [1, 0, 2, 0])));
    assert_eq!(ask_udp(address), over_tcp);
    let octets = 2 * over_tcp.len() as u64;
    let counts = UpstreamCounts {
        upstream_udp: Some(1),
        upstream_tcp: Some(1),
        upstream_truncated: Some(0),
        upstream_connections: Some(1),
        upstream_query_octets: Some(2 * query().len() as u64),
        upstream_response_octets: Some(octets),
    };
    assert_eq!(composer.counts(), counts);
}

#[test]
fn a_response_over_udp_that_is_too_long_is_truncated() {
    let (address, composer, _servers) = composer(300);
    let over_udp = ask_udp(address);
    assert_eq!(
        Header::read(&over_udp).map(|header| (header.flags, header.counts)),
        Some((0x8603, [1, 0, 0, 0]))
    );
    assert_eq!(composer.counts().upstream_truncated, Some(1));
    assert!(Version::new(address).exchange(&query()).expect("a response").len() > 600);
}

#[test]
fn a_connection_that_the_server_has_closed_is_opened_again() {
    let (address, _server) = version(65_400, 5);
    let mut client = Version::new(address);
    let first = client.exchange(&query()).expect("a response");
    client.stream.as_ref().expect("open").shutdown(std::net::Shutdown::Both).expect("shut down");
    assert_eq!(client.exchange(&query()).expect("a response"), first);
}

#[test]
fn without_servers_a_query_gets_servfail() {
    let (address, _composer, servers) = composer(50);
    servers.into_iter().for_each(|server| server.stop().expect("stopped"));
    let response = ask_udp(address);
    assert_eq!(Header::read(&response).map(|header| header.flags & 0x800f), Some(0x8002));
}
