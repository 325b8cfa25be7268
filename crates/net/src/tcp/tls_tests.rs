//! Tests of DNS over TLS, with clients of this crate and of other implementations.

use nonesuch_testing::require_peer;
use std::io::Write;
use std::process::Command;
use std::time::Duration;
use tokio_rustls::rustls::{CertificateError, Error};

use super::*;
use crate::bind::bind_tcp;
use crate::client::{ConnectOptions, Connection};
use crate::error::{ClientError, TlsError};
use crate::handler::{Answer, TlsSession};
use crate::testing::{Certificates, TIMEOUT, block_on, connect, echo, framed, is_closed};
use crate::tls::{ClientTls, PEM_OCTETS_MAX, ServerIdentity, describe};

/// Answers every query with NOERROR.
fn respond(message: &[u8], _: SocketAddr, response: &mut Vec<u8>) -> bool {
    response.extend_from_slice(message);
    if let Some(flags) = response.get_mut(2) {
        *flags |= 0x80;
    }
    true
}

fn start(certificates: &Certificates, options: &TcpOptions) -> (TcpServer, SocketAddr, IdentitySlot) {
    let slot = IdentitySlot::new(certificates.identity());
    let listener = bind_tcp("127.0.0.1:0".parse().expect("an address")).expect("bound");
    let address = listener.local_addr().expect("bound");
    (serve_tls(listener, &slot, options, || echo).expect("started"), address, slot)
}

fn trusting(certificates: &Certificates, hostname: Option<&str>) -> ClientTls {
    ClientTls::authenticated(&certificates.path("authority.pem"), hostname).expect("a trusting client")
}

async fn exchange(server: SocketAddr, tls: &ClientTls, message: &[u8]) -> Result<Connection, ClientError> {
    let mut connection = Connection::open_tls(server, &ConnectOptions::default(), tls).await?;
    connection.send(message).await?;
    let mut answer = Vec::new();
    connection.receive(&mut answer).await?;
    assert_eq!(answer, message);
    Ok(connection)
}

#[test]
fn messages_go_both_ways_and_sessions_are_resumed() {
    let certificates = Certificates::new();
    let options = TcpOptions { message_max: 65_535, ..TcpOptions::default() };
    let (server, address, _) = start(&certificates, &options);
    for hostname in [Some("ns.example"), Some("NS.example."), None] {
        let tls = trusting(&certificates, hostname);
        block_on(async {
            let mut first = exchange(address, &tls, b"first").await.expect("answered");
            let facts = first.tls().expect("TLS").clone();
            assert_eq!((facts.version.as_str(), facts.authenticated), ("TLSv1_3", true));
            assert!(!facts.resumed && !facts.cipher_suite.is_empty());
            // Pipelined messages, one of which is longer than a TLS record.
            let messages = [vec![1; 65_535], vec![2; 20_000], vec![3]];
            for message in &messages {
                first.send(message).await.expect("sent");
            }
            for message in &messages {
                let mut answer = Vec::new();
                first.receive(&mut answer).await.expect("answered");
                assert_eq!(&answer, message);
            }
            let second = exchange(address, &tls, b"second").await.expect("answered");
            assert!(second.tls().is_some_and(|facts| facts.resumed));
        });
    }
    let statistics = server.statistics();
    server.stop().expect("stopped");
    let total = statistics.total();
    assert_eq!((total.handshakes, total.resumed, total.handshakes_failed), (6, 3, 0));
    assert_eq!((total.messages_in, total.messages_out, total.broken), (15, 15, 0));
}

/// Records the TLS session of each batch, and answers with it.
struct Noting(Option<TlsSession>);

impl Handler for Noting {
    fn set_session(&mut self, session: TlsSession) {
        self.0 = Some(session);
    }

    fn answer(&mut self, _: &[u8], _: SocketAddr, response: &mut Vec<u8>) -> Answer {
        response.extend_from_slice(format!("{:?}", self.0.take()).as_bytes());
        Answer::Ready
    }
}

/// Each batch gets the session of its connection.
#[test]
fn handlers_are_told_what_was_agreed_on() {
    let certificates = Certificates::new();
    let slot = IdentitySlot::new(certificates.identity());
    let listener = bind_tcp("127.0.0.1:0".parse().expect("an address")).expect("bound");
    let address = listener.local_addr().expect("bound");
    let _server = serve_tls(listener, &slot, &TcpOptions::default(), || Noting(None)).expect("started");
    let tls = ClientTls::for_transfers(Some(&certificates.path("authority.pem")), Some("ns.example"));
    let tls = tls.expect("a client");
    block_on(async {
        let mut connection =
            Connection::open_tls(address, &ConnectOptions::default(), &tls).await.expect("open");
        for _ in 0..2 {
            connection.send(b"x").await.expect("sent");
            let mut answer = Vec::new();
            connection.receive(&mut answer).await.expect("answered");
            let expected = format!("{:?}", Some(TlsSession { is_tls13: true, is_dot: true }));
            assert_eq!(String::from_utf8_lossy(&answer), expected);
        }
    });
}

#[test]
fn servers_of_others_are_not_believed() {
    let (certificates, strangers) = (Certificates::new(), Certificates::new());
    let (_server, address, slot) = start(&certificates, &TcpOptions::default());
    let fault = |tls: &ClientTls| match block_on(exchange(address, tls, b"x")) {
        Err(ClientError::Tls { source: Error::InvalidCertificate(fault), .. }) => fault,
        other => panic!("{other:?}"),
    };
    let is_unsigned = |tls: &ClientTls| {
        matches!(fault(tls), CertificateError::UnknownIssuer | CertificateError::BadSignature)
    };
    assert!(is_unsigned(&trusting(&strangers, Some("ns.example"))));
    let misnamed = fault(&trusting(&certificates, Some("other.example")));
    assert!(
        matches!(
            misnamed,
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. }
        ),
        "{misnamed:?}"
    );
    let blind = ClientTls::opportunistic(None).expect("a client");
    let connection = block_on(exchange(address, &blind, b"x")).expect("answered");
    assert!(connection.tls().is_some_and(|facts| !facts.authenticated));
    // From the next connection on, the server has another identity.
    slot.replace(strangers.identity());
    assert!(is_unsigned(&trusting(&certificates, Some("ns.example"))));
    block_on(exchange(address, &trusting(&strangers, None), b"x")).expect("answered");
}

#[test]
fn a_certificate_that_signed_itself_is_believed_when_named() {
    let certificates = Certificates::new();
    let key = rcgen::KeyPair::generate().expect("a key");
    let parameters = rcgen::CertificateParams::new(vec!["ns.example".to_owned()]).expect("parameters");
    let own = parameters.self_signed(&key).expect("signed");
    let path = certificates.write("own.pem", &own.pem());
    let key = certificates.write("own.key", &key.serialize_pem());
    let (_server, address, slot) = start(&certificates, &TcpOptions::default());
    slot.replace(ServerIdentity::load(&path, &key).expect("an identity"));
    let named = ClientTls::authenticated(&path, Some("ns.example")).expect("a client");
    block_on(exchange(address, &named, b"x")).expect("answered");
    let other = ClientTls::authenticated(&path, Some("other.example")).expect("a client");
    assert!(matches!(block_on(exchange(address, &other, b"x")), Err(ClientError::Tls { .. })));
}

/// The first and last year of a certificate's validity.
type Years = (i32, i32);
const PAST: Years = (2001, 2002);
const VALID: Years = (2001, 2999);
const TO_COME: Years = (2998, 2999);

fn parameters(names: &[&str], (from, to): Years) -> rcgen::CertificateParams {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut parameters = rcgen::CertificateParams::new(names).expect("parameters");
    parameters.not_before = rcgen::date_time_ymd(from, 1, 1);
    parameters.not_after = rcgen::date_time_ymd(to, 1, 1);
    parameters
}

/// The certificate that is outside its validity period.
#[derive(Debug, PartialEq)]
enum Fault {
    Expired,
    NotYetValid,
    AuthorityExpired,
}

impl Fault {
    #[track_caller]
    fn of(error: &Error) -> Self {
        match error {
            Error::InvalidCertificate(CertificateError::ExpiredContext { .. }) => Self::Expired,
            Error::InvalidCertificate(CertificateError::NotValidYetContext { .. }) => Self::NotYetValid,
            Error::InvalidCertificate(CertificateError::Other(_)) => {
                // The number of days depends on the present date.
                assert_eq!(
                    describe(error).replace(|character: char| character.is_ascii_digit(), ""),
                    "the certificate of the authority in the given file expired  days ago: use the file with its \
                     current certificate"
                );
                Self::AuthorityExpired
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Returns the error of a client with the file `trusted` for a server with `identity`; `None` if
/// the client accepts the server.
fn verdict(
    (certificates, slot, address): (&Certificates, &IdentitySlot, SocketAddr),
    identity: (&rcgen::Certificate, &rcgen::KeyPair),
    trusted: &[&rcgen::Certificate],
) -> Option<Fault> {
    let path = certificates.write("one.pem", &identity.0.pem());
    let key = certificates.write("one.key", &identity.1.serialize_pem());
    slot.replace(ServerIdentity::load(&path, &key).expect("an identity"));
    let text: String = trusted.iter().map(|certificate| certificate.pem()).collect();
    let trusted = certificates.write("trusted.pem", &text);
    let client = ClientTls::authenticated(&trusted, Some("ns.example")).expect("a client");
    match block_on(exchange(address, &client, b"x")) {
        Ok(_) => None,
        Err(ClientError::Tls { source, .. }) => Some(Fault::of(&source)),
        Err(other) => panic!("{other:?}"),
    }
}

#[test]
fn certificates_outside_their_validity_are_refused_though_they_are_named() {
    let certificates = Certificates::new();
    let (_server, address, slot) = start(&certificates, &TcpOptions::default());
    let at = (&certificates, &slot, address);
    let key = rcgen::KeyPair::generate().expect("a key");
    for is_authority in [false, true] {
        for (years, expected) in
            [(PAST, Some(Fault::Expired)), (TO_COME, Some(Fault::NotYetValid)), (VALID, None)]
        {
            let mut parameters = parameters(&["ns.example"], years);
            if is_authority {
                // As `openssl req -x509` generates certificates.
                parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
            }
            let own = parameters.self_signed(&key).expect("signed");
            assert_eq!(verdict(at, (&own, &key), &[&own]), expected);
        }
    }
}

#[test]
fn neither_a_certificate_nor_its_authority_may_be_outside_its_validity() {
    let certificates = Certificates::new();
    let (_server, address, slot) = start(&certificates, &TcpOptions::default());
    let at = (&certificates, &slot, address);
    let keys = [(); 2].map(|()| rcgen::KeyPair::generate().expect("a key"));
    let authority = |years| {
        let mut parameters = parameters(&[], years);
        parameters.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        parameters.distinguished_name.push(rcgen::DnType::CommonName, "ours");
        parameters
    };
    let made = |years| authority(years).self_signed(&keys[0]).expect("an authority");
    let (old, valid) = (made(PAST), made(VALID));
    let leaf = |years| {
        let issuer = rcgen::Issuer::new(authority(VALID), &keys[0]);
        parameters(&["ns.example"], years).signed_by(&keys[1], &issuer).expect("signed")
    };
    for (years, trusted, expected) in [
        (VALID, &[&valid][..], None),
        (PAST, &[&valid], Some(Fault::Expired)),
        (TO_COME, &[&valid], Some(Fault::NotYetValid)),
        (VALID, &[&old], Some(Fault::AuthorityExpired)),
        // An authority that was renewed with the same key: the older certificate in the same file
        // has no effect.
        (VALID, &[&old, &valid], None),
        (PAST, &[&old, &valid], Some(Fault::Expired)),
    ] {
        assert_eq!(verdict(at, (&leaf(years), &keys[1]), trusted), expected, "{years:?}");
    }
    // The error names the fault of the authority that signed the certificate, not of another one.
    let mut other = parameters(&[], TO_COME);
    other.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    other.distinguished_name.push(rcgen::DnType::CommonName, "other");
    let other = other.self_signed(&keys[1]).expect("an authority");
    for trusted in [[&other, &old], [&old, &other]] {
        assert_eq!(verdict(at, (&leaf(VALID), &keys[1]), &trusted), Some(Fault::AuthorityExpired));
    }
    // A certificate that is in the file itself, also together with an expired authority.
    let leaf = leaf(VALID);
    assert_eq!(verdict(at, (&leaf, &keys[1]), &[&leaf]), None);
    assert_eq!(verdict(at, (&leaf, &keys[1]), &[&old, &leaf]), None);
}

#[test]
fn what_is_no_handshake_is_closed() {
    let certificates = Certificates::new();
    let options = TcpOptions { handshake_timeout: Duration::from_millis(50), ..TcpOptions::default() };
    let (server, address, _) = start(&certificates, &options);
    // A query without TLS, a text, and a record with an excessive length.
    for octets in [framed(&[0; 30]), b"GET / HTTP/1.1\r\n\r\n".to_vec(), vec![22, 3, 1, 255, 255, 1]] {
        let mut stream = connect(address);
        stream.write_all(&octets).expect("sent");
        // The alert may arrive before the end of the connection.
        while !is_closed(&mut stream) {}
    }
    let mut silent = connect(address);
    assert!(is_closed(&mut silent));
    let statistics = server.statistics();
    server.stop().expect("stopped");
    let total = statistics.total();
    assert_eq!((total.handshakes, total.handshakes_failed, total.timed_out), (0, 3, 1));
}

/// A ClientHello of 60,000 octets without its last octets.
fn begun_handshake() -> Vec<u8> {
    let message = [&[1, 0, 0xea, 0x60][..], &[0; 50_000]].concat();
    let record = |part: &[u8]| [&[22, 3, 1][..], &(part.len() as u16).to_be_bytes(), part].concat();
    message.chunks(16_000).flat_map(record).collect()
}

/// Polls until `holds` returns `true`.
#[track_caller]
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let begun = std::time::Instant::now();
    while !holds() {
        assert!(begun.elapsed() < TIMEOUT, "{what}");
        thread::yield_now();
    }
}

#[test]
fn unfinished_handshakes_count_as_memory() {
    let certificates = Certificates::new();
    // Of 40 handshakes that the client only opens, 16 fit into the memory limit; of 40 with 50,000
    // octets each, 4.
    for (octets, evicted) in [(Vec::new(), 24), (begun_handshake(), 36)] {
        let options = TcpOptions { memory_max: 1 << 18, ..TcpOptions::default() };
        let (server, address, _) = start(&certificates, &options);
        let begun: Vec<_> = (0..40).map(|_| connect(address)).collect();
        for mut stream in &begun {
            // The server may have closed the connection already.
            let _ = stream.write_all(&octets);
        }
        let statistics = server.statistics();
        wait_until("handshakes hold more than all connections may", || statistics.total().evicted >= evicted);
        // A client that completes the handshake is served.
        let tls = trusting(&certificates, Some("ns.example"));
        block_on(exchange(address, &tls, b"x")).expect("answered");
        assert_eq!(statistics.total().handshakes, 1);
        drop(begun);
        server.stop().expect("stopped");
    }
}

/// For a peer that does not read, TLS holds records in addition to the waiting answers.
#[test]
fn records_that_wait_to_be_sent_count_as_memory() {
    let certificates = Certificates::new();
    // More than the waiting answers, and less than these and the records together.
    let options = TcpOptions { memory_max: 1 << 20, ..TcpOptions::default() };
    let (server, address, _) = start(&certificates, &options);
    let tls = trusting(&certificates, Some("ns.example"));
    let statistics = server.statistics();
    block_on(async {
        let mut held = Vec::new();
        for _ in 0..12 {
            let mut connection =
                Connection::open_tls(address, &ConnectOptions::default(), &tls).await.expect("open");
            // The system accepts some of the data.
            for _ in 0..400 {
                let sent = tokio::time::timeout(Duration::from_millis(50), connection.send(&[7; 16_000]));
                if !matches!(sent.await, Ok(Ok(()))) {
                    break;
                }
            }
            held.push(connection);
        }
        wait_until("records hold more than all connections may", || statistics.total().evicted > 0);
    });
}

#[test]
fn a_server_without_tls_is_told_apart() {
    let listener = bind_tcp("127.0.0.1:0".parse().expect("an address")).expect("bound");
    let address = listener.local_addr().expect("bound");
    let _server = serve(listener, &TcpOptions::default(), || echo).expect("started");
    let blind = ClientTls::opportunistic(None).expect("a client");
    let options = ConnectOptions { connect_timeout: Duration::from_secs(1), ..ConnectOptions::default() };
    let error = block_on(Connection::open_tls(address, &options, &blind)).expect_err("no TLS");
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[test]
fn faults_of_files_name_the_file() {
    let certificates = Certificates::new();
    let (good, key) = (certificates.path("server.pem"), certificates.path("server.key"));
    let load = |certificate: &str, key: &str| {
        ServerIdentity::load(&certificates.path(certificate), &certificates.path(key)).expect_err("a fault")
    };
    certificates.write("empty", "nothing here\n");
    certificates.write("torn.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n");
    certificates.write("false.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let other = rcgen::KeyPair::generate().expect("a key").serialize_pem();
    certificates.write("other.key", &other);
    certificates.write("long", &"-".repeat(PEM_OCTETS_MAX + 1));
    std::fs::create_dir(certificates.path("directory")).expect("made");
    let pipe = certificates.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    type Match = fn(&TlsError) -> bool;
    let not_found: Match =
        |error| matches!(error, TlsError::Read { source, .. } if source.kind() == io::ErrorKind::NotFound);
    let too_long: Match = |error| matches!(error, TlsError::TooLong { octets: 1_048_576, .. });
    let irregular: Match = |error| matches!(error, TlsError::NoRegularFile { .. });
    let cases: [(&str, &str, &str, Match); 13] = [
        ("none.pem", "server.key", "none.pem", not_found),
        ("server.pem", "none.key", "none.key", not_found),
        ("empty", "server.key", "empty", |error| matches!(error, TlsError::NoCertificate { .. })),
        ("torn.pem", "server.key", "torn.pem", |error| matches!(error, TlsError::Pem { .. })),
        ("false.pem", "server.key", "false.pem", |error| matches!(error, TlsError::Certificate { .. })),
        ("long", "server.key", "long", too_long),
        ("server.pem", "long", "long", too_long),
        ("directory", "server.key", "directory", irregular),
        ("server.pem", "directory", "directory", irregular),
        ("pipe", "server.key", "pipe", irregular),
        ("server.pem", "pipe", "pipe", irregular),
        ("server.pem", "server.pem", "server.pem", |error| matches!(error, TlsError::NoKey { .. })),
        ("server.pem", "other.key", "other.key", |error| matches!(error, TlsError::KeyMismatch { .. })),
    ];
    for (certificate, key, file, is_expected) in cases {
        let error = load(certificate, key);
        assert!(is_expected(&error), "{certificate} {key}: {error:?}");
        assert!(error.to_string().contains(file), "{certificate} {key}: {error}");
    }
    assert!(ServerIdentity::load(&good, &key).is_ok());
    let error = ClientTls::opportunistic(Some("no host name")).expect_err("a fault");
    assert!(matches!(&error, TlsError::Hostname { text } if text == "no host name"), "{error}");
}

#[test]
fn kdig_asks_over_tls() {
    require_peer!("kdig");
    let certificates = Certificates::new();
    let slot = IdentitySlot::new(certificates.identity());
    let listener = bind_tcp("127.0.0.1:0".parse().expect("an address")).expect("bound");
    let address = listener.local_addr().expect("bound");
    let _server = serve_tls(listener, &slot, &TcpOptions::default(), || respond).expect("started");
    let ask = |hostname: &str| {
        let authority = format!("+tls-ca={}", certificates.path("authority.pem").display());
        let output = Command::new("kdig")
            .args(["@127.0.0.1", "-p", &address.port().to_string(), "+tls", &authority])
            .args([&format!("+tls-hostname={hostname}"), "+retry=0", "+time=5", "example.", "SOA"])
            .output()
            .expect("kdig ran");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let answer = ask("ns.example");
    assert!(answer.contains("status: NOERROR") && answer.contains("TLS session"), "{answer}");
    assert!(!ask("other.example").contains("status: NOERROR"));
}
