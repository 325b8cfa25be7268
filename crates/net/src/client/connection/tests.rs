use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::thread;

use super::*;
use crate::testing::{block_on, framed};

/// A server that accepts one connection, reads `octets` octets, sends `answer`, and ends.
fn server(octets: usize, answer: Vec<u8>) -> (SocketAddr, thread::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("bound");
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("accepted");
        let mut read = vec![0; octets];
        stream.read_exact(&mut read).expect("read");
        stream.write_all(&answer).expect("sent");
        read
    });
    (address, serving)
}

#[test]
fn messages_are_given_out_one_by_one() {
    let long = vec![7; 65_535];
    let (address, serving) =
        server(5, [framed(b"one"), framed(&long), framed(b""), framed(b"four"), vec![0, 9, 1]].concat());
    block_on(async {
        let mut connection = Connection::open(address, &ConnectOptions::default()).await.expect("opened");
        assert_eq!(connection.peer_addr(), address);
        connection.send(b"ask").await.expect("sent");
        let mut message = Vec::new();
        for expected in [b"one", &long[..], b"", b"four"] {
            connection.receive(&mut message).await.expect("received");
            assert_eq!(message, expected);
        }
        let error = connection.receive(&mut message).await.expect_err("half a message");
        assert!(matches!(error, ClientError::Closed { .. }), "{error}");
        let error = connection.send(&[0; 65_536]).await.expect_err("too long");
        assert!(matches!(error, ClientError::TooLong { octets: 65_536 }), "{error}");
    });
    assert_eq!(serving.join().expect("ended"), framed(b"ask"));
}

#[test]
fn every_wait_ends() {
    // No process accepts: the system opens the connection, and no data arrives.
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("bound");
    let short = Duration::from_millis(10);
    let options = ConnectOptions { send_timeout: short, receive_timeout: short, ..ConnectOptions::default() };
    block_on(async {
        let mut connection = Connection::open(address, &options).await.expect("opened");
        let error = connection.receive(&mut Vec::new()).await.expect_err("silence");
        assert!(matches!(error, ClientError::TimedOut { phase: ClientPhase::Receive, .. }), "{error}");
        let error = loop {
            if let Err(error) = connection.send(&[0; 60_000]).await {
                break error;
            }
        };
        assert!(matches!(error, ClientError::TimedOut { phase: ClientPhase::Send, .. }), "{error}");
        let tls = ClientTls::opportunistic(None).expect("a client");
        let options = ConnectOptions { connect_timeout: short, ..options };
        let error = Connection::open_tls(address, &options, &tls).await.expect_err("silence");
        assert!(matches!(error, ClientError::TimedOut { phase: ClientPhase::Handshake, .. }), "{error}");
    });
}

#[test]
fn refusals_name_the_server_and_the_remedy() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("bound");
    drop(listener);
    let error = block_on(Connection::open(address, &ConnectOptions::default())).expect_err("nobody");
    let ClientError::Failed { server, phase: ClientPhase::Connect, source, .. } = &error else {
        panic!("{error:?}")
    };
    assert_eq!((*server, source.kind()), (address, io::ErrorKind::ConnectionRefused));
    assert_eq!(
        error.to_string(),
        format!(
            "{address} over TCP: opening the connection failed: {source}; no server listens there: check address and port"
        )
    );
    // 192.0.2.0/24 is reserved for documentation (RFC 5737).
    let local = Some("192.0.2.1:0".parse().expect("an address"));
    let error = block_on(Connection::open(address, &ConnectOptions { local, ..ConnectOptions::default() }));
    assert!(matches!(error, Err(ClientError::Local { .. })));
}

#[test]
fn the_own_address_can_be_chosen() {
    let (address, serving) = server(0, Vec::new());
    let local = Some("127.0.0.9:0".parse().expect("an address"));
    let options = ConnectOptions { local, ..ConnectOptions::default() };
    let connection = block_on(Connection::open(address, &options)).expect("opened");
    let ClientIo::Plain(stream) = &connection.io else { panic!("TCP") };
    assert_eq!(stream.local_addr().expect("open").ip().to_string(), "127.0.0.9");
    serving.join().expect("ended");
}
