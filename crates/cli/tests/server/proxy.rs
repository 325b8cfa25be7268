//! `nonesuch proxy` before `nonesuch serve`: a correct proxy is transparent over UDP and TCP, and every
//! fault is visible.

use crate::common;
use common::{Running, folder, generate_keys, nonesuch, run, serve, text};
use nonesuch_lab::proxy::FAULTS;
use nonesuch_proto::Rtype;
use nonesuch_proto::edns::{DO, push_opt};
use nonesuch_proto::message::{Header, Message, Section, flags, push_query};
use std::collections::HashSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;
use std::time::Duration;

const ORIGIN: &str = "proxied.example.";
const LIMIT: Duration = Duration::from_secs(5);
/// The time in which a dropped response would have arrived.
const SHORT: Duration = Duration::from_millis(300);

/// A zone with TXT records of many sizes, up to a response of more than 4,000 octets.
fn zone() -> String {
    let mut zone =
        format!("$ORIGIN {ORIGIN}\n$TTL 60\n@ SOA ns h 1 7200 3600 1209600 5\n@ NS ns\nns A 192.0.2.1\n");
    for (name, strings) in [("medium", 3), ("large", 6), ("huge", 16)] {
        let text: Vec<String> =
            (0..strings).map(|number| format!("\"{}\"", format!("{number:03}").repeat(70))).collect();
        zone += &format!("{name} TXT {}\n", text.join(" "));
    }
    zone + "odd TYPE65123 \\# 2 0102\n"
}

struct Site {
    _folder: tempfile::TempDir,
    server: Running,
}

fn site() -> Site {
    let folder = folder();
    let (file, keys, signed) =
        (folder.path().join("zone"), folder.path().join("keys"), folder.path().join("signed"));
    fs::write(&file, zone()).expect("written");
    generate_keys(&keys, ORIGIN, "ecdsap256sha256");
    common::sign(&file, ORIGIN, &keys, "nsec", &signed);
    let server = serve(&signed, &["--max-udp-size", "4096"]);
    Site { _folder: folder, server }
}

fn start(upstream: SocketAddr, more: &[&str]) -> Running {
    let upstream = upstream.to_string();
    let child = nonesuch(["proxy", "--listen", "127.0.0.1:0", "--upstream", &upstream, "--timeout", "2"])
        .args(more)
        .stdout(Stdio::piped())
        .spawn()
        .expect("nonesuch starts");
    Running::when_ready(child)
}

fn query(name: &str, rtype: Rtype, dnssec: bool) -> Vec<u8> {
    let mut octets = Vec::new();
    let name = format!("{name}.{ORIGIN}").parse().expect("a name");
    push_query(&name, rtype, 0x1234, flags::RD | flags::AD | flags::CD, &mut octets);
    push_opt(4096, 0, if dnssec { DO } else { 0 }, &mut octets);
    octets[11] = 1;
    octets
}

fn ask_udp(server: SocketAddr, query: &[u8], limit: Duration) -> Option<Vec<u8>> {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("bound");
    socket.set_read_timeout(Some(limit)).expect("set");
    socket.send_to(query, server).expect("sent");
    let mut buffer = vec![0; 65_535];
    let length = socket.recv(&mut buffer).ok()?;
    buffer.truncate(length);
    Some(buffer)
}

fn ask_tcp(server: SocketAddr, query: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.write_all(&[&(query.len() as u16).to_be_bytes(), query].concat())?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut message)?;
    Ok(message)
}

#[test]
fn a_correct_proxy_returns_what_the_server_sends() {
    let site = site();
    let (server, proxy) = (site.server.address, start(site.server.address, &[]));
    for (name, rtype) in [
        ("ns", Rtype::A),
        ("medium", Rtype::TXT),
        ("large", Rtype::TXT),
        ("huge", Rtype::TXT),
        ("odd", Rtype(65_123)),
        ("none", Rtype::A),
    ] {
        for dnssec in [false, true] {
            let query = query(name, rtype, dnssec);
            let direct = ask_udp(server, &query, LIMIT).expect("an answer");
            assert_eq!(ask_udp(proxy.address, &query, LIMIT), Some(direct), "{name}");
            let direct = ask_tcp(server, &query).expect("an answer");
            assert_eq!(ask_tcp(proxy.address, &query).expect("an answer"), direct, "{name}");
        }
    }
    let sizes: HashSet<bool> = ["medium", "huge"]
        .map(|name| {
            ask_udp(proxy.address, &query(name, Rtype::TXT, true), LIMIT).expect("an answer").len() > 1232
        })
        .into();
    assert_eq!(sizes.len(), 2);
    // Other opcodes, and messages that the server answers with an error, pass too.
    let mut notify = query("ns", Rtype::SOA, false);
    notify[2] = 4 << 3;
    assert_eq!(ask_udp(proxy.address, &notify, LIMIT), ask_udp(server, &notify, LIMIT));
    let mut malformed = query("ns", Rtype::A, false);
    malformed[5] = 2;
    assert_eq!(ask_udp(proxy.address, &malformed, LIMIT), ask_udp(server, &malformed, LIMIT));
}

#[test]
fn a_transfer_passes_over_tcp() {
    let site = site();
    let proxy = start(site.server.address, &[]);
    let at = |address: SocketAddr| {
        let ended = run(&mut nonesuch(["query", ORIGIN, "--axfr", &format!("@{address}"), "--short"]));
        (ended.status, ended.stdout)
    };
    assert_eq!(at(proxy.address), at(site.server.address));
}

#[test]
fn a_silent_server_leaves_other_queries_alone() {
    let silent = UdpSocket::bind("127.0.0.1:0").expect("bound");
    let proxy = start(silent.local_addr().expect("bound"), &[]);
    assert_eq!(ask_udp(proxy.address, &query("ns", Rtype::A, true), SHORT), None);
    // The silent server receives the query, and the proxy still accepts others.
    assert_eq!(ask_udp(proxy.address, &query("ns", Rtype::A, true), SHORT), None);
    let mut buffer = [0; 512];
    silent.set_read_timeout(Some(LIMIT)).expect("set");
    let ids: HashSet<[u8; 2]> = (0..2)
        .map(|_| {
            silent.recv(&mut buffer).expect("a query");
            [buffer[0], buffer[1]]
        })
        .collect();
    assert!(!ids.is_empty());
    assert!(ask_tcp(proxy.address, &query("ns", Rtype::A, true)).is_err());
}

fn header(message: &[u8]) -> Header {
    Header::read(message).expect("a header")
}

/// What a client sees through a proxy with a fault, and not through a correct one.
fn is_visible(fault: &str, server: SocketAddr, proxy: SocketAddr) -> bool {
    let udp = |name, rtype, dnssec, limit| ask_udp(proxy, &query(name, rtype, dnssec), limit);
    let signatures = |message: &[u8]| {
        let message = Message::parse(message).expect("a message");
        message.section(Section::Answer).filter(|record| record.rtype == Rtype::RRSIG).count()
    };
    match fault {
        "cut-at-512" => udp("large", Rtype::TXT, true, LIMIT)
            .is_some_and(|octets| octets.len() == 512 && header(&octets).flags & flags::TC == 0),
        "drop-over-512" => udp("medium", Rtype::TXT, true, SHORT).is_none(),
        "drop-over-1220" => {
            udp("medium", Rtype::TXT, true, LIMIT).is_some()
                && udp("large", Rtype::TXT, true, SHORT).is_none()
        }
        "drop-fragments" => udp("huge", Rtype::TXT, true, SHORT).is_none(),
        "drop-opt" => udp("ns", Rtype::A, true, LIMIT)
            .is_some_and(|octets| Message::parse(&octets).expect("a message").opt().is_none()),
        "limit-payload" => udp("medium", Rtype::TXT, true, LIMIT)
            .is_some_and(|octets| header(&octets).flags & flags::TC != 0),
        "clear-flags" => {
            let cd = |message: Option<Vec<u8>>| message.map(|octets| header(&octets).flags & flags::CD);
            cd(ask_udp(server, &query("ns", Rtype::A, true), LIMIT)) == Some(flags::CD)
                && cd(udp("ns", Rtype::A, true, LIMIT)) == Some(0)
        }
        "clear-do" => udp("ns", Rtype::A, true, LIMIT).is_some_and(|octets| signatures(&octets) == 0),
        "no-tcp" => ask_tcp(proxy, &query("ns", Rtype::A, true)).is_err(),
        "tcp-to-udp" => {
            let huge = |address| ask_tcp(address, &small_payload(query("huge", Rtype::TXT, true)));
            huge(server).expect("an answer").len() > 3000 && huge(proxy).expect("an answer").len() < 1300
        }
        "cache-without-rrsig" | "cache-regardless" => {
            let first = udp("ns", Rtype::A, false, LIMIT).expect("an answer");
            let second = udp("ns", Rtype::A, true, LIMIT).expect("an answer");
            signatures(&first) == 0 && signatures(&second) == 0
        }
        "drop-unknown-types" => udp("odd", Rtype(65_123), true, SHORT).is_none(),
        "drop-unknown-opcodes" => {
            let mut notify = query("ns", Rtype::SOA, false);
            notify[2] = 4 << 3;
            ask_udp(server, &notify, LIMIT).is_some() && ask_udp(proxy, &notify, SHORT).is_none()
        }
        "raise-payload" => {
            let huge = small_payload(query("huge", Rtype::TXT, true));
            ask_udp(proxy, &huge, LIMIT).is_some_and(|octets| octets.len() > 3000)
        }
        _ => panic!("no test of {fault}"),
    }
}

/// The EDNS payload size in the OPT record at the end of the query.
fn small_payload(mut query: Vec<u8>) -> Vec<u8> {
    let at = query.len() - 8;
    query[at..at + 2].copy_from_slice(&1232_u16.to_be_bytes());
    query
}

#[test]
fn every_fault_is_visible_to_clients() {
    let site = site();
    let correct = start(site.server.address, &[]);
    for entry in FAULTS {
        match entry.name {
            // The server sees these: the tests of the module `proxy` of the laboratory.
            "fixed-id" | "fixed-port" | "open-wan" => continue,
            "drop-tsig" => continue,
            // They need a path, or a server without TCP: the items XP-009, XP-011 and XP-014.
            "forbid-fragments" | "hold-tcp" => continue,
            _ => {}
        }
        let proxy = start(site.server.address, &["--fault", entry.name]);
        assert!(is_visible(entry.name, site.server.address, proxy.address), "{}", entry.name);
        assert!(
            !is_visible(entry.name, site.server.address, correct.address),
            "{}: correct proxy",
            entry.name
        );
    }
}

/// A signed query passes unchanged: the signature covers the original ID (RFC 8945 section 5.3).
#[test]
fn tsig_passes_and_its_removal_is_visible() {
    let folder = folder();
    let (config, key) = (folder.path().join("config"), folder.path().join("key"));
    let zone_file = folder.path().join("zone");
    fs::write(&zone_file, zone()).expect("written");
    fs::write(&key, "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=").expect("written");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("set");
    let listen = common::free_address();
    let configuration = format!(
        "version = 1\nlisten = [\"{listen}\"]\nstate-dir = \"{}\"\n[key.\"k.example.\"]\nsecret-file = \"{}\"\n\
         [zone.\"{ORIGIN}\"]\nfile = \"{}\"\n",
        text(&common::made(folder.path(), "state")),
        text(&key),
        text(&zone_file)
    );
    fs::write(&config, configuration).expect("written");
    let check = run(&mut nonesuch(["serve", "--config", text(&config), "--check"]));
    assert_eq!(check.status, 0, "{}", check.text());
    let child =
        nonesuch(["serve", "--config", text(&config)]).stdout(Stdio::piped()).spawn().expect("started");
    let server = Running::of(child, listen);
    let end = std::time::Instant::now() + LIMIT;
    while ask_udp(listen, &query("ns", Rtype::A, false), Duration::from_millis(50)).is_none() {
        assert!(std::time::Instant::now() < end, "the server starts");
    }
    let transfer = |address: SocketAddr| {
        let secret = format!("k.example.:{}", text(&key));
        run(&mut nonesuch(["query", ORIGIN, "SOA", &format!("@{address}"), "--tsig-key", &secret, "--json"]))
            .status
    };
    let (correct, faulty) = (start(server.address, &[]), start(server.address, &["--fault", "drop-tsig"]));
    assert_eq!(transfer(server.address), 0);
    assert_eq!(transfer(correct.address), 0);
    assert_ne!(transfer(faulty.address), 0);
}

#[test]
fn the_faults_are_listed_and_wrong_options_are_refused() {
    let listed = common::done(["proxy", "--list-faults"]).stdout;
    assert_eq!(listed.lines().count(), FAULTS.len());
    for (arguments, words) in [
        (&["--upstream", "127.0.0.1:1", "--fault", "unknown"][..], "cut-at-512"),
        (&["--upstream", "127.0.0.1:1", "--listen", "0.0.0.0:0"], "all addresses"),
        (&["--upstream", "127.0.0.1:5301"], "itself"),
        (&["--upstream", "127.0.0.1:1", "--listen", "127.0.0.1:0", "--fault", "open-wan"], "--wan"),
        (&[], "--upstream"),
    ] {
        let ended = run(&mut nonesuch([&["proxy"], arguments].concat()));
        assert_eq!(ended.status, 2, "{}", ended.text());
        assert!(ended.error().contains(words), "{}", ended.error());
    }
}
