//! Helpers for the tests of this crate: length-prefixed messages, certificates.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use tokio_rustls::rustls::{ClientConnection, StreamOwned};

use crate::heartbeat::Heartbeats;
use crate::tls::{ClientTls, ServerIdentity};

pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) fn echo(message: &[u8], _: SocketAddr, response: &mut Vec<u8>) -> bool {
    response.extend_from_slice(message);
    true
}

pub(crate) fn connect(server: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(server).expect("connected");
    stream.set_read_timeout(Some(TIMEOUT)).expect("set");
    stream.set_write_timeout(Some(TIMEOUT)).expect("set");
    stream
}

/// Waits until the loops have reported several times without any traffic.
#[track_caller]
pub(crate) fn assert_reports(heartbeats: &Heartbeats) {
    let before = heartbeats.reports();
    wait_until(|| heartbeats.reports() >= before + 3 && heartbeats.overdue_loops(Instant::now()).is_empty());
}

/// Waits until the loop with this name has missed its time limit.
#[track_caller]
pub(crate) fn assert_overdue(heartbeats: &Heartbeats, name: &str) {
    wait_until(|| heartbeats.overdue_loops(Instant::now()) == [name]);
}

#[track_caller]
fn wait_until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !condition() {
        assert!(Instant::now() < deadline, "the condition does not hold in time");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn framed(message: &[u8]) -> Vec<u8> {
    let length = u16::try_from(message.len()).expect("short enough").to_be_bytes();
    [&length, message].concat()
}

pub(crate) fn receive(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut prefix = [0; 2];
    stream.read_exact(&mut prefix)?;
    let mut message = vec![0; usize::from(u16::from_be_bytes(prefix))];
    stream.read_exact(&mut message)?;
    Ok(message)
}

pub(crate) fn ask(stream: &mut (impl Read + Write), message: &[u8]) -> io::Result<Vec<u8>> {
    stream.write_all(&framed(message))?;
    receive(stream)
}

/// Whether the server has closed the connection: the end of the stream or a reset, not a timeout.
pub(crate) fn is_closed(stream: &mut impl Read) -> bool {
    match stream.read(&mut [0; 1]) {
        Ok(octets) => octets == 0,
        Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
    }
}

/// A client over TLS.
pub(crate) type TlsClient = StreamOwned<ClientConnection, TcpStream>;

/// Opens a connection, and completes the handshake.
pub(crate) fn connect_tls(server: SocketAddr, tls: &ClientTls) -> TlsClient {
    let mut client = StreamOwned::new(tls.client(server.ip()).expect("a client"), connect(server));
    let StreamOwned { conn, sock } = &mut client;
    while conn.is_handshaking() || conn.wants_write() {
        conn.complete_io(sock).expect("a handshake");
    }
    client
}

/// Files with an authority, and with a server certificate signed by it for `ns.example` and
/// 127.0.0.1.
pub(crate) struct Certificates {
    directory: TempDir,
}

impl Certificates {
    pub(crate) fn new() -> Self {
        let mut authority = CertificateParams::new(Vec::new()).expect("parameters");
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let authority = CertifiedIssuer::self_signed(authority, key).expect("an authority");
        let names = vec!["ns.example".to_owned(), "127.0.0.1".to_owned()];
        let key = KeyPair::generate().expect("a key");
        let server = CertificateParams::new(names).expect("parameters");
        let server = server.signed_by(&key, &authority).expect("signed");
        let certificates = Self { directory: tempfile::tempdir().expect("a directory") };
        certificates.write("authority.pem", &authority.pem());
        certificates.write("server.pem", &server.pem());
        certificates.write("server.key", &key.serialize_pem());
        certificates
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).expect("written");
        self.path(name)
    }

    /// A client that accepts the server.
    pub(crate) fn client(&self) -> ClientTls {
        ClientTls::authenticated(&self.path("authority.pem"), Some("ns.example")).expect("a client")
    }

    pub(crate) fn identity(&self) -> ServerIdentity {
        ServerIdentity::load(&self.path("server.pem"), &self.path("server.key")).expect("an identity")
    }
}

pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(future)
}
