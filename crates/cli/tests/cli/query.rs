//! `nonesuch query`: output for each kind of response, transports and errors.

use crate::common;
use common::configured::{Configured, configure};
use common::{
    Ended, KEYS_ORIGIN, done, folder, free_address, generate_key, made, nonesuch, peers, prepared, run,
    serve, sign, snapshot, text,
};
use data_encoding::HEXLOWER;
use nonesuch_lab::peers::{Peer, PeerServer, Serving, Setup, TlsIdentity, TransferKey};
use nonesuch_net::tcp::{TcpOptions, serve_tls};
use nonesuch_net::tls::{IdentitySlot, ServerIdentity};
use nonesuch_net::{bind, bind_tcp};
use nonesuch_testing::require_peer;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

const CLIENT_COOKIE: &str = "0102030405060708";

fn query(server: SocketAddr, words: &[&str]) -> Ended {
    run(nonesuch(["query", &format!("@{server}")]).args(words))
}

/// Standard output without the parts that differ between runs: identifier, addresses, times.
fn settled(ended: &Ended) -> String {
    let settle = |line: &str| {
        let line = match line.split_once(", id ") {
            Some((before, after)) => {
                format!("{before}, id N{}", after.trim_start_matches(|c: char| c.is_ascii_digit()))
            }
            None => line.to_owned(),
        };
        match line.split_once(" octets from 127.0.0.1:") {
            Some((before, after)) => {
                let transport = after.split(" over ").nth(1).and_then(|rest| rest.split(' ').next());
                // The size depends on the compression of the server.
                let before = before.trim_end_matches(|c: char| c.is_ascii_digit());
                format!("{before}N octets from SERVER over {} in T ms", transport.unwrap_or("?"))
            }
            None => line,
        }
    };
    ended.stdout.lines().map(|line| settle(line) + "\n").collect()
}

/// The first line that begins with `start`.
#[track_caller]
fn line<'t>(text: &'t str, start: &str) -> &'t str {
    text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("no {start:?}: {text}"))
}

/// The status of the certificate, from the line with the parameters of TLS.
#[track_caller]
fn certificate_status(stdout: &str) -> &str {
    line(stdout, ";; TLS ").split_once(", ").expect("the certificate").1
}

#[track_caller]
fn expect(ended: &Ended, status: i32, golden: &str) {
    assert_eq!((ended.status, ended.stderr.as_str()), (status, ""), "{}", ended.text());
    assert_eq!(settled(ended), golden);
}

/// A server that answers `count` messages by a script, over UDP and TCP.
fn scripted(
    messages: usize,
    answer: impl Fn(usize, &[u8]) -> Vec<Vec<u8>> + Send + 'static,
) -> (SocketAddr, JoinHandle<Vec<Vec<u8>>>) {
    let listeners = bind("127.0.0.1:0".parse().expect("an address"), 1).expect("bound");
    let socket = listeners.udp.into_iter().next().expect("a socket");
    let serving = thread::spawn(move || {
        let mut asked = Vec::new();
        let mut buffer = [0; 4096];
        while asked.len() < messages {
            let (length, peer) = socket.recv_from(&mut buffer).expect("a query");
            for octets in answer(asked.len(), &buffer[..length]) {
                socket.send_to(&octets, peer).expect("sent");
            }
            asked.push(buffer[..length].to_vec());
        }
        asked
    });
    (listeners.local_addr, serving)
}

/// Like [`scripted`], for one connection and one query.
fn scripted_connection(
    answer: impl Fn(&[u8]) -> Vec<Vec<u8>> + Send + 'static,
) -> (SocketAddr, JoinHandle<()>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("bound");
    let address = listener.local_addr().expect("bound");
    let serving = thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("accepted");
        let mut prefix = [0; 2];
        stream.read_exact(&mut prefix).expect("a length");
        let mut message = vec![0; usize::from(u16::from_be_bytes(prefix))];
        stream.read_exact(&mut message).expect("a query");
        for octets in answer(&message) {
            stream.write_all(&(octets.len() as u16).to_be_bytes()).expect("sent");
            stream.write_all(&octets).expect("sent");
        }
    });
    (address, serving)
}

/// The response to `query` with this rcode and these answer records, and with these options in an
/// OPT record.
fn response(query: &[u8], rcode: u16, answers: &[&[u8]], options: &[u8]) -> Vec<u8> {
    let end = 12 + query[12..].iter().position(|&octet| octet == 0).expect("the root") + 5;
    let mut out = query[..end].to_vec();
    (out[2], out[3]) = (0x84, (rcode & 15) as u8);
    out[6..12].copy_from_slice(&[0, answers.len() as u8, 0, 0, 0, 1]);
    answers.iter().for_each(|record| out.extend_from_slice(record));
    out.extend_from_slice(&[0, 0, 41, 4, 208, (rcode >> 4) as u8, 0, 0x80, 0]);
    out.extend_from_slice(&(options.len() as u16).to_be_bytes());
    out.extend_from_slice(options);
    out
}

fn option(code: u8, data: &[u8]) -> Vec<u8> {
    [&[0, code, 0, data.len() as u8], data].concat()
}

/// A record with the queried name.
fn record(rtype: u8, rdata: &[u8]) -> Vec<u8> {
    [&[0xc0, 12, 0, rtype, 0, 1, 0, 0, 0, 60, 0, rdata.len() as u8], rdata].concat()
}

fn soa(serial: u32) -> Vec<u8> {
    record(6, &[&[0, 0][..], &serial.to_be_bytes(), &[0; 16]].concat())
}

#[test]
fn answers_of_every_kind_are_printed_in_full() {
    let folder = prepared();
    let server = serve(&folder.path().join("zone"), &["-o", KEYS_ORIGIN]);
    let at = server.address;
    for (words, golden) in [
        (
            &["ns.keys.example"][..],
            ";; QUERY NOERROR, id N, flags qr aa rd\n;; EDNS version 0, udp 1232, flags do\n\
             ;; QUESTION ns.keys.example. IN A\n\n;; ANSWER\n\
             ns.keys.example.\t60\tIN\tA\t192.0.2.1\n\n;; N octets from SERVER over UDP in T ms\n",
        ),
        (
            &["--no-dnssec", "no.keys.example", "TXT", "--no-recurse"],
            ";; QUERY NXDOMAIN, id N, flags qr aa\n;; EDNS version 0, udp 1232\n\
             ;; QUESTION no.keys.example. IN TXT\n\n;; AUTHORITY\n\
             keys.example.\t5\tIN\tSOA\tns.keys.example. h.keys.example. 1 7200 3600 1209600 5\n\n\
             ;; N octets from SERVER over UDP in T ms\n",
        ),
        (
            &["--bufsize", "0", "--tcp", "ns.keys.example", "AAAA"],
            ";; QUERY NOERROR, id N, flags qr aa rd\n;; QUESTION ns.keys.example. IN AAAA\n\n;; AUTHORITY\n\
             keys.example.\t5\tIN\tSOA\tns.keys.example. h.keys.example. 1 7200 3600 1209600 5\n\n\
             ;; N octets from SERVER over TCP in T ms\n",
        ),
        (
            &["www.sub.keys.example", "MX"],
            ";; QUERY NOERROR, id N, flags qr rd\n;; EDNS version 0, udp 1232, flags do\n\
             ;; QUESTION www.sub.keys.example. IN MX\n\n;; AUTHORITY\n\
             sub.keys.example.\t60\tIN\tNS\tns.sub.keys.example.\n\
             sub.keys.example.\t60\tIN\tDS\t1 13 2 0123456789012345678901234567890123456789012345678901234567890123 \
             ; ECDSAP256SHA256\n\n;; ADDITIONAL\nns.sub.keys.example.\t60\tIN\tA\t192.0.2.2\n\n\
             ;; N octets from SERVER over UDP in T ms\n",
        ),
        (&["--short", "ns.keys.example"], "192.0.2.1\n"),
        (&["--short", "a.w.keys.example", "txt"], "\"x\"\n"),
        // Without data, nothing is printed, as in `dig +short`.
        (&["--short", "ns.keys.example", "AAAA"], ""),
        (&["--short", "no.keys.example"], ""),
    ] {
        expect(&query(at, words), 0, golden);
    }
    let refused = query(at, &["example.org", "SOA"]);
    assert_eq!((refused.status, refused.stderr.as_str()), (1, ""), "{}", refused.text());
    assert!(refused.stdout.starts_with(";; QUERY REFUSED, id "), "{}", refused.stdout);
    let short = query(at, &["example.org", "SOA", "--short"]);
    assert_eq!((short.status, short.stdout.as_str()), (1, ""), "{}", short.text());
    assert!(
        short.stderr.starts_with(&format!("nonesuch: error: {at}: REFUSED, EDE 20 ")),
        "{}",
        short.stderr
    );
}

#[test]
fn json_holds_what_the_text_says() {
    let folder = prepared();
    let server = serve(&folder.path().join("zone"), &["-o", KEYS_ORIGIN]);
    let ended = query(server.address, &["--json", "sub.keys.example", "DS"]).expect_done("query");
    let value: serde_json::Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(value["rcode"], "NOERROR");
    assert_eq!(value["flags"], serde_json::json!(["qr", "aa", "rd"]));
    assert_eq!(value["question"][0]["type"], "DS");
    assert_eq!(value["edns"]["payload"], 1232);
    assert_eq!(value["answer"][0]["comment"], "ECDSAP256SHA256");
    assert_eq!((&value["answer"][0]["ttl"], &value["transport"]), (&60.into(), &"UDP".into()));
    assert_eq!(value["authority"], serde_json::json!([]));
}

/// Keys and signatures of post-quantum algorithms are too large for datagrams. Their algorithms are
/// printed by name.
#[test]
fn post_quantum_records_are_named_and_come_over_tcp() {
    for (algorithm, mnemonic) in [("mldsa44", "MLDSA44"), ("falcon512", "FALCON512")] {
        let folder = prepared();
        let keys = made(folder.path(), "keys");
        let base = generate_key(&keys, KEYS_ORIGIN, algorithm, &["--csk"]);
        let tag: u16 = base.rsplit('+').next().and_then(|tag| tag.parse().ok()).expect("a key tag");
        let signed = folder.path().join("signed");
        sign(&folder.path().join("zone"), KEYS_ORIGIN, &keys, "nsec", &signed);
        let server = serve(&signed, &[]);
        let ended = query(server.address, &[KEYS_ORIGIN, "DNSKEY"]).expect_done("query");
        let note = ended.stdout.lines().find(|line| line.contains(" UDP ")).expect("a note");
        snapshot::check("query", &format!("truncated response, {mnemonic}"), note);
        assert!(ended.stdout.contains(&format!("; KSK, {mnemonic}, key tag {tag}, ")), "{}", ended.stdout);
        assert!(ended.stdout.contains(&format!("; {mnemonic}, ")), "{}", ended.stdout);
        assert!(ended.stdout.contains(" over TCP in "), "{}", ended.stdout);
        let cut = query(server.address, &[KEYS_ORIGIN, "DNSKEY", "--ignore-truncation"]);
        assert!(
            cut.stdout.contains("flags qr aa tc rd") && cut.stdout.contains("over UDP"),
            "{}",
            cut.stdout
        );
    }
}

#[test]
fn records_of_nsec5_are_readable() {
    let folder = prepared();
    let keys = made(folder.path(), "keys");
    generate_key(&keys, KEYS_ORIGIN, "ed25519", &["--nsec5", "--csk"]);
    let signed = folder.path().join("signed");
    sign(&folder.path().join("zone"), KEYS_ORIGIN, &keys, "nsec5", &signed);
    let server = serve(&signed, &[]);
    let denial = query(server.address, &["no.keys.example", "--tcp"]).expect_done("query").stdout;
    assert!(denial.contains("NXDOMAIN"), "{denial}");
    let apex = " NS SOA RRSIG DNSKEY NSEC5KEY\n";
    for part in
        ["\tIN\tNSEC5\t", "\tIN\tNSEC5PROOF\t", "\tIN\tRRSIG\tNSEC5 ", "; NSEC5-ED25519, 64 octets", apex]
    {
        assert!(denial.contains(part), "{part}: {denial}");
    }
    let key = query(server.address, &[KEYS_ORIGIN, "NSEC5KEY"]).expect_done("query").stdout;
    assert!(key.contains("\tIN\tNSEC5KEY\t1 ") && key.contains("; VRF p256, key tag "), "{key}");
}

#[test]
fn options_of_edns_are_told() {
    let (address, serving) = scripted(1, |_, query| {
        let options = [
            option(3, b"ns1"),
            option(15, b"\0\x12not \x1b[2Jyou"),
            option(10, &[1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 9, 9, 9, 9, 9, 9]),
            option(11, &[0, 100]),
            option(18, b"\x05agent\0"),
            option(12, &[0; 5]),
        ];
        vec![response(query, 5, &[], &options.concat())]
    });
    let ended = query(address, &["example.", "--nsid", &format!("--cookie={CLIENT_COOKIE}"), "--keepalive"]);
    expect(
        &ended,
        1,
        ";; QUERY REFUSED, id N, flags qr aa\n;; EDNS version 0, udp 1232, flags do\n\
         ;; NSID 6e7331 (\"ns1\")\n;; EDE 18 (Prohibited): \"not \\u{1b}[2Jyou\"\n\
         ;; COOKIE client 0102030405060708, server 0909090909090909\n;; KEEPALIVE 10.0 s\n\
         ;; REPORT-CHANNEL agent.\n;; PADDING 5 octets\n;; QUESTION example. IN A\n\n\
         ;; N octets from SERVER over UDP in T ms\n",
    );
    assert!(ended.stdout.contains("\n;; 106 octets from "), "{}", ended.stdout);
    let asked = serving.join().expect("ended");
    let sent = [option(3, &[]), option(10, &[1, 2, 3, 4, 5, 6, 7, 8]), option(11, &[])].concat();
    assert!(asked[0].ends_with(&sent), "{asked:?}");
}

/// RFC 7873 section 5.3: the client stores the server cookie and sends the query again with it.
#[test]
fn a_server_that_wants_its_cookie_is_asked_again() {
    let (address, serving) = scripted(2, |count, query| {
        let cookie = [&query[query.len() - [8, 16][count]..][..8], &[7; 8]].concat();
        let rcode = if count == 0 { 23 } else { 0 };
        vec![response(query, rcode, &[&record(1, &[192, 0, 2, 9])], &option(10, &cookie))]
    });
    let ended = query(address, &["example.", "--cookie"]).expect_done("query");
    assert!(ended.stdout.contains("192.0.2.9"), "{}", ended.stdout);
    let asked = serving.join().expect("ended");
    let client_cookie = HEXLOWER.encode(&asked[0][asked[0].len() - 8..]);
    let shown = settled(&ended).replace(&client_cookie, "CLIENT-COOKIE");
    snapshot::check("query", "server that requires its cookie", &shown);
    assert!(asked[1].ends_with(&[7; 8]) && asked[0][..2] != asked[1][..2]);
}

#[test]
fn forged_answers_are_passed_over() {
    let (address, serving) = scripted(1, |_, query| {
        let right = response(query, 0, &[&record(1, &[192, 0, 2, 1])], &[]);
        let with = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut forged = response(query, 0, &[&record(1, &[192, 0, 2, 66])], &[]);
            change(&mut forged);
            forged
        };
        let foreign = response(query, 0, &[&record(1, &[192, 0, 2, 66])], &option(10, &[6; 16]));
        vec![
            with(&|octets| octets[0] ^= 1),
            with(&|octets| octets[13] ^= 1),
            with(&|octets| octets[2] &= 0x7f),
            foreign,
            right,
        ]
    });
    let ended = query(address, &["--short", "example.", &format!("--cookie={CLIENT_COOKIE}")]);
    expect(&ended, 0, "192.0.2.1\n");
    serving.join().expect("ended");
}

#[test]
fn no_answer_says_why_and_what_to_do() {
    let nobody = free_address();
    let ended = query(nobody, &["example.", "--retries", "1"]);
    assert_eq!(ended.status, 2);
    assert!(ended.stderr.contains(&nobody.to_string()), "{}", ended.stderr);
    snapshot::check("query", "port without a server", &ended.stderr);
    let ended = query(nobody, &["example.", "--tcp"]);
    assert!(ended.status == 2 && ended.stderr.contains(" TCP: "), "{}", ended.stderr);
    snapshot::check("query", "port without a server, --tcp", &ended.stderr);
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("bound");
    let at = silent.local_addr().expect("bound");
    let ended = query(at, &["example.", "--retries", "1", "--timeout", "0.05"]);
    assert!(ended.status == 2 && ended.stderr.contains(" 0.05 s"), "{}", ended.stderr);
    snapshot::check("query", "server that does not respond", &ended.stderr);
    // The octets of an unreadable response are printed, so that the user can report them.
    let unreadable = |query: &[u8]| response(query, 0, &[&[0xc0, 0xff, 1]], &[]);
    let (address, serving) = scripted(1, move |_, query| vec![unreadable(query)]);
    let ended = query(address, &["example."]);
    let asked = serving.join().expect("ended");
    let octets = HEXLOWER.encode(&unreadable(&asked[0]));
    assert!(ended.status == 2 && ended.stderr.contains(&octets), "{}", ended.text());
    snapshot::check("query", "unreadable response", &ended.stderr.replace(&octets, "OCTETS"));
    for (words, part) in [
        (&["@127.0.0.1"][..], "`nonesuch query "),
        (&["x", "b", "@127.0.0.1"], "'b'"),
        (&["a", "IXFR", "@127.0.0.1"], "--ixfr SERIAL"),
        (&["a", "@127.0.0.1", "--tsig-key", "k:hmac-md5:AAAA"], "--tsig-key"),
        (&["a", "@127.0.0.1", "--tsig-key", "/no/such/file"], "/no/such/file"),
        (&["a", "@127.0.0.1", "--tls", "--tls-ca", "/no/such/file"], "/no/such/file"),
        (&["a", "@127.0.0.1", "--cookie=01"], "--cookie"),
    ] {
        let ended = run(nonesuch(["query"]).args(words));
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{words:?}");
        assert!(ended.stderr.contains(part), "{}", ended.stderr);
        snapshot::check("query", &words.join(" "), &ended.stderr);
    }
}

#[test]
fn incremental_transfers_say_what_was_removed_and_added() {
    let (address, serving) = scripted_connection(|query| {
        let first = [soa(3), soa(1), record(1, &[192, 0, 2, 1]), soa(3)];
        let first: Vec<&[u8]> = first.iter().map(Vec::as_slice).collect();
        let second = [record(1, &[192, 0, 2, 2]), soa(3)];
        let second: Vec<&[u8]> = second.iter().map(Vec::as_slice).collect();
        vec![response(query, 0, &first, &[]), response(query, 0, &second, &[])]
    });
    let ended = query(address, &["example.", "--ixfr", "1"]).expect_done("query");
    serving.join().expect("ended");
    let marks: Vec<&str> = ended.stdout.lines().map(|line| &line[..1]).collect();
    assert_eq!(marks, ["e", "-", "-", "+", "+", "e", ";"], "{}", ended.stdout);
    assert!(ended.stdout.contains(";; IXFR: 6 records in 2 messages, "), "{}", ended.stdout);
    let (address, serving) = scripted_connection(|query| vec![response(query, 0, &[&soa(1)], &[])]);
    let ended = query(address, &["example.", "--ixfr", "1"]).expect_done("query");
    assert!(ended.stdout.contains(";; IXFR: 1 records in 1 messages, "), "{}", ended.stdout);
    serving.join().expect("ended");
    let (address, serving) = scripted_connection(|query| vec![response(query, 9, &[], &[])]);
    let ended = query(address, &["example.", "--axfr"]);
    assert_eq!(ended.status, 1);
    assert!(ended.stdout.contains("NOTAUTH"), "{}", ended.stdout);
    snapshot::check("query", "transfer refused with NOTAUTH", &ended.stdout);
    serving.join().expect("ended");
    let (address, serving) = scripted_connection(|query| vec![response(query, 9, &[], &[])]);
    let ended = query(address, &["example.", "--axfr", "--short"]);
    assert_eq!((ended.status, ended.stdout.as_str()), (1, ""), "{}", ended.text());
    assert!(ended.stderr.contains("NOTAUTH"), "{}", ended.stderr);
    serving.join().expect("ended");
    // The connection ends before the transfer is complete.
    let (address, serving) = scripted_connection(|query| vec![response(query, 0, &[&soa(1)], &[])]);
    let ended = query(address, &["example.", "--axfr"]);
    assert_eq!(ended.status, 2, "{}", ended.text());
    snapshot::check("query", "connection that ends within a transfer", &ended.stderr);
    serving.join().expect("ended");
}

/// Files with an authority and a certificate for `ns.example`.
fn certificates(folder: &Path) -> [PathBuf; 3] {
    let mut authority = rcgen::CertificateParams::new(Vec::new()).expect("parameters");
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let key = rcgen::KeyPair::generate().expect("a key");
    let authority = rcgen::CertifiedIssuer::self_signed(authority, key).expect("an authority");
    let key = rcgen::KeyPair::generate().expect("a key");
    let server = rcgen::CertificateParams::new(vec!["ns.example".to_owned()]).expect("parameters");
    let server = server.signed_by(&key, &authority).expect("signed");
    let files =
        [("ca.pem", authority.pem()), ("server.pem", server.pem()), ("server.key", key.serialize_pem())];
    files.map(|(name, text)| {
        fs::write(folder.join(name), text).expect("written");
        folder.join(name)
    })
}

#[test]
fn tls_is_spoken_and_certificates_are_verified() {
    let folder = folder();
    let [authority, certificate, key] = certificates(folder.path());
    let slot = IdentitySlot::new(ServerIdentity::load(&certificate, &key).expect("an identity"));
    let listener = bind_tcp("127.0.0.1:0".parse().expect("an address")).expect("bound");
    let address = listener.local_addr().expect("bound");
    let handler = |query: &[u8], _: SocketAddr, out: &mut Vec<u8>| {
        // Queries over TLS are padded (RFC 8467).
        assert_eq!(query.len() % 128, 0);
        *out = response(query, 0, &[&record(1, &[192, 0, 2, 1])], &[]);
        true
    };
    let _server = serve_tls(listener, &slot, &TcpOptions::default(), move || handler).expect("started");
    let blind = query(address, &["example.", "--tls"]).expect_done("query").stdout;
    assert!(blind.contains(";; TLS TLSv1_3 TLS13_"), "{blind}");
    snapshot::check("query", "--tls without --tls-ca", certificate_status(&blind));
    let strict = ["example.", "--tls", "--tls-ca", text(&authority), "--tls-hostname"];
    let ended = query(address, &[&strict[..], &["ns.example"]].concat()).expect_done("query").stdout;
    assert!(ended.contains(" over TLS in "), "{ended}");
    snapshot::check("query", "--tls with --tls-ca", certificate_status(&ended));
    let ended = query(address, &[&strict[..], &["other.example"]].concat());
    assert_eq!(ended.status, 2, "{}", ended.text());
    snapshot::check("query", "certificate with another name than --tls-hostname", &ended.stderr);
}

/// BIND with the zone `keys.example.`, which only the key `k` may transfer.
fn start_bind(folder: &Path, [_, certificate, key]: &[PathBuf; 3], secret: &str) -> PeerServer {
    let transfer_key =
        TransferKey { name: "k".to_owned(), algorithm: "hmac-sha256".to_owned(), secret: secret.to_owned() };
    let setup = Setup {
        transfer_key: Some(transfer_key),
        tls: Some(TlsIdentity { certificate: certificate.clone(), key: key.clone() }),
        lines: "server-id \"bind\";\n".to_owned(),
        ..peers::zone(folder, KEYS_ORIGIN, &folder.join("zone"), Serving::Unsigned)
    };
    peers::start(Peer::Bind, &setup)
}

/// Another server, over all transports, with cookies, signatures and a transfer.
#[test]
fn bind_is_asked_in_every_way() {
    require_peer!("named");
    let folder = prepared();
    let files = certificates(folder.path());
    let secret = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
    let server = start_bind(folder.path(), &files, secret);
    let tls = server.tls_address.expect("an address for TLS");
    let (right, wrong) =
        (format!("k:hmac-sha256:{secret}"), "k:hmac-sha256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=");
    let asked = |words: &[&str]| query(server.address, words);
    let plain = asked(&["ns.keys.example", "--nsid", "--cookie"]).expect_done("query").stdout;
    assert!(plain.contains(";; NSID 62696e64 (\"bind\")") && plain.contains(", server "), "{plain}");
    let signed = asked(&["ns.keys.example", "--tsig-key", &right]).expect_done("query").stdout;
    snapshot::check("query", "response with a valid TSIG record", line(&signed, ";; TSIG "));
    let refused = asked(&["ns.keys.example", "--tsig-key", wrong]);
    assert!(refused.status == 1 && refused.stdout.contains("NOTAUTH"), "{}", refused.text());
    snapshot::check("query", "TSIG key with another secret, BIND", line(&refused.stdout, ";; TSIG key k.: "));
    let transfer = asked(&[KEYS_ORIGIN, "AXFR", "--tsig-key", &right]).expect_done("query").stdout;
    assert!(
        transfer.contains(";; AXFR: 8 records in ") && transfer.contains("*.w.keys.example."),
        "{transfer}"
    );
    let refused = asked(&[KEYS_ORIGIN, "--axfr"]);
    assert!(refused.status == 1 && refused.stdout.contains("REFUSED"), "{}", refused.text());
    assert!(!refused.stdout.contains(";; AXFR: "), "{}", refused.text());
    let refused = asked(&[KEYS_ORIGIN, "--axfr", "--tsig-key", wrong]);
    assert_eq!(refused.status, 1, "{}", refused.text());
    snapshot::check("query", "transfer with a TSIG key with another secret, BIND", &refused.stdout);
    let strict = ["--tls", "--tls-ca", text(&files[0]), "--tls-hostname", "ns.example", "--keepalive"];
    let encrypted = query(tls, &[&["ns.keys.example"], &strict[..]].concat()).expect_done("query").stdout;
    assert!(encrypted.contains(";; KEEPALIVE "), "{encrypted}");
    snapshot::check("query", "--tls with --tls-ca", certificate_status(&encrypted));
    let words = [&[KEYS_ORIGIN, "--axfr", "--tsig-key", &right], &strict[..]].concat();
    let transfer = query(tls, &words).expect_done("query").stdout;
    assert!(transfer.contains("over TLS") && transfer.contains(";; AXFR: 8 records"), "{transfer}");
}

/// Keys are accepted in the forms of a server's configuration: a file with only the secret, or one
/// of several BIND keys by name.
#[test]
fn keys_are_taken_in_every_form_that_servers_take() {
    let folder = prepared();
    let dir = folder.path();
    let secret = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";
    fs::write(dir.join("bare"), format!("{secret}\n")).expect("written");
    let statement = |name: &str, secret: &str| {
        format!("key \"{name}\" {{ algorithm hmac-sha256; secret \"{secret}\"; }};\n")
    };
    fs::write(dir.join("one"), statement("k", secret)).expect("written");
    let two = statement("other", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=") + &statement("K.", secret);
    fs::write(dir.join("two"), two).expect("written");
    let zone = format!(
        "[key.k]\nsecret-file = \"bare\"\n[zone.\"{KEYS_ORIGIN}\"]\nfile = \"zone\"\ntransfer = [\"key:k.\"]\n"
    );
    let server = Configured::start(&configure(dir, &zone));
    let file = |name: &str| text(&dir.join(name)).to_owned();
    for key in [
        file("one"),
        format!("k:hmac-sha256:{secret}"),
        format!("k:{}", file("bare")),
        format!("k:hmac-sha256:{}", file("bare")),
        format!("hmac-sha256:k:{}", file("bare")),
        format!("k.:{}", file("two")),
        format!("k:hmac-sha256:{}", file("two")),
    ] {
        let ended = query(server.address, &[KEYS_ORIGIN, "--axfr", "--tsig-key", &key]);
        assert!(ended.status == 0 && ended.stdout.contains(";; AXFR: "), "{key}: {}", ended.text());
    }
    for (key, case) in [
        (file("bare"), "file with a TSIG secret without the name of the key"),
        (file("two"), "file with two TSIG keys without the name of one of them"),
        (format!("x:{}", file("two")), "file without the TSIG key of this name"),
        (format!("k:hmac-sha512:{}", file("two")), "file with a TSIG key of another algorithm"),
        (format!("k:{}", file("zone")), "file without a TSIG key"),
        (format!("k:{}", file("none")), "missing file of a TSIG key"),
    ] {
        let ended = query(server.address, &[KEYS_ORIGIN, "--axfr", "--tsig-key", &key]);
        assert_eq!(ended.status, 2, "{key}: {}", ended.text());
        snapshot::check("query", case, &ended.stderr);
        assert!(!ended.stderr.contains(secret), "{}", ended.stderr);
    }
    // A mistyped secret is not taken for a missing file, whose path would be in the message.
    let mistyped = query(server.address, &[KEYS_ORIGIN, "SOA", "--tsig-key", &format!("k:/{secret}!")]);
    assert!(mistyped.status == 2 && !mistyped.stderr.contains(secret), "{}", mistyped.stderr);
    let wrong = query(server.address, &[KEYS_ORIGIN, "SOA", "--short", "--tsig-key", "k:AAAA"]);
    assert!(wrong.status == 1 && wrong.stderr.contains("NOTAUTH"), "{}", wrong.text());
    assert!(wrong.stderr.contains(" key k.: "), "{}", wrong.text());
    snapshot::check("query", "TSIG key with another secret", &wrong.stderr);
}

#[test]
fn the_manual_page_describes_it() {
    let folder = folder();
    done(["manual", "--dir", text(folder.path())]);
    let page = |name: &str| fs::read_to_string(folder.path().join(name)).expect("a page");
    for (name, others) in [
        ("nonesuch-serve.1", ".SH SEE ALSO\n.BR nonesuch.toml (5),\n.BR nonesuch\\-ctl (1),\n"),
        ("nonesuch-zone-sign.1", ".SH SEE ALSO\n.BR nonesuch\\-key (1),\n"),
        ("nonesuch-ctl-reload.1", ".BR nonesuch.toml (5),\n"),
        ("nonesuch.1", ".BR nonesuch.toml (5)\n"),
    ] {
        assert!(page(name).contains(others), "{name}");
    }
    let page = page("nonesuch-query.1");
    for option in ["tls\\-ca", "tsig\\-key", "ixfr", "Exit status"] {
        assert!(page.contains(option), "{option}");
    }
}
