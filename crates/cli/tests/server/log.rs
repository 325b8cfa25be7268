//! The log of a server: a reader that does not read blocks nothing, and each client or peer causes
//! only a limited number of lines.

use crate::common;
use crate::common::certificates;
use common::configured::{Configured, ask, configure, head, plain_zone, write_beside};
use common::transfer::transferred;
use common::{folder, nonesuch, run, text};
use nix::fcntl::{FcntlArg, fcntl};
use nonesuch_proto::message::{Rcode, push_query};
use nonesuch_proto::{Name, Rtype};
use nonesuch_server::tsig::{TsigKey, sign_request};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ZONE: &str = "a.example.";
/// Time limit for a response, and for the end of a process.
const LIMIT: Duration = Duration::from_secs(10);
/// The minimum size of a pipe.
const PIPE: i32 = 4096;
/// More lines than the log queue has room for.
const LINES: usize = 10_000;

/// A server with a pipe as standard error.
struct Piped {
    child: Child,
    address: SocketAddr,
    log: Option<ChildStderr>,
    metrics: u16,
}

impl Piped {
    fn start(dir: &Path) -> Self {
        write_beside(&dir.join("a"), &plain_zone(ZONE, 1));
        let metrics =
            TcpListener::bind("127.0.0.1:0").and_then(|bound| bound.local_addr()).expect("a port").port();
        let path = dir.join("c.toml");
        let (head, top) = (head(dir), format!("metrics-listen = \"127.0.0.1:{metrics}\"\n"));
        let tables =
            "[log]\nlevel = \"debug\"\n[zone.\"a.example.\"]\nfile = \"a\"\ntransfer = [\"127.0.0.1\"]\n";
        write_beside(&path, &format!("{head}{top}{tables}"));
        let mut child = nonesuch(["serve", "--config", text(&path)])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("nonesuch starts");
        let log = child.stderr.take().expect("piped");
        fcntl(&log, FcntlArg::F_SETPIPE_SZ(PIPE)).expect("a small pipe");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let ready = lines.map_while(Result::ok).find(|line| line.starts_with("ready: ")).expect("ready");
        let address = ready.split(' ').nth(3).expect("an address").parse().expect("an address");
        Self { child, address, log: Some(log), metrics }
    }

    /// Makes the server log more lines than its queue has room for, while no process reads them.
    fn flood(&self) {
        let query = question(ZONE, Rtype::AXFR);
        let socket = client();
        for number in 0..LINES {
            socket.send_to(&query, self.address).expect("sent");
            socket.recv(&mut [0; 512]).unwrap_or_else(|error| panic!("answer {number}: {error}"));
        }
    }

    fn metric(&self, name: &str) -> u64 {
        let mut stream = TcpStream::connect(("127.0.0.1", self.metrics)).expect("a connection");
        stream.set_read_timeout(Some(LIMIT)).expect("a limit");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let value = answer.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        value.unwrap_or_else(|| panic!("no {name}: {answer}")).parse().expect("a number")
    }

    fn terminate(&mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().expect("kill").success());
        let end = Instant::now() + LIMIT;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                break status;
            }
            assert!(Instant::now() < end, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(status.code(), Some(0));
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn client() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.set_read_timeout(Some(LIMIT)).expect("a limit");
    socket
}

fn question(zone: &str, rtype: Rtype) -> Vec<u8> {
    let mut message = Vec::new();
    push_query(&zone.parse::<Name>().expect("a name"), rtype, 7, 0, &mut message);
    message
}

fn framed(message: &[u8]) -> Vec<u8> {
    [&(message.len() as u16).to_be_bytes()[..], message].concat()
}

fn connect(server: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(server).expect("connected");
    stream.set_read_timeout(Some(LIMIT)).expect("a limit");
    stream.set_write_timeout(Some(LIMIT)).expect("a limit");
    stream
}

/// The value of a field in a log line.
fn field(line: &str, name: &str) -> Option<u64> {
    line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.trim().parse().ok())
}

#[test]
fn a_log_that_is_not_read_holds_nothing_up_and_tells_of_what_it_lost() {
    let home = folder();
    let mut server = Piped::start(home.path());
    server.flood();
    // The log is blocked, and everything else continues.
    assert_eq!(ask(server.address, ZONE, Rtype::SOA).rcode(), Rcode::NOERROR);
    let mut stream = connect(server.address);
    stream.write_all(&framed(&question(ZONE, Rtype::SOA))).expect("sent");
    stream.read_exact(&mut [0; 14]).expect("an answer over TCP");
    assert_eq!(transferred(server.address, ZONE).record_count(), 4);
    write_beside(&home.path().join("a"), &plain_zone(ZONE, 2));
    let ctl = |command| run(&mut nonesuch(["ctl", "--config", text(&home.path().join("c.toml")), command]));
    ctl("reload").expect_done("reload");
    let dropped = server.metric("nonesuch_log_lines_dropped_total");
    assert!(dropped > 0);
    // The log is read again.
    let mut lines = BufReader::new(server.log.take().expect("a pipe")).lines().map_while(Result::ok);
    let is_report = |line: &String| !common::events(line, "log-lines-dropped", &[]).is_empty();
    let report = lines.find(is_report).expect("a report");
    assert!(report.contains(" WARN "), "{report}");
    assert_eq!(
        (field(&report, "dropped"), field(&report, "total")),
        (Some(dropped), Some(dropped)),
        "{report}"
    );
    let rest = std::thread::spawn(move || lines.filter(is_report).count());
    assert_eq!(server.metric("nonesuch_log_lines_dropped_total"), dropped);
    server.terminate();
    assert_eq!(rest.join().expect("read"), 0, "it is said once");
}

#[test]
fn a_server_whose_log_is_not_read_ends_when_it_is_told_to() {
    let home = folder();
    let mut server = Piped::start(home.path());
    server.flood();
    server.terminate();
}

/// An error that is found after the log queue was started.
#[test]
fn an_error_at_the_start_is_printed_last() {
    let home = folder();
    let dir = home.path();
    write_beside(&dir.join("a"), &plain_zone(ZONE, 1));
    fs::create_dir(dir.join("tap")).expect("a directory");
    let tables = "[dnstap]\nfile = \"tap\"\n[zone.\"a.example.\"]\nfile = \"a\"\n";
    let ended = run(&mut nonesuch(["serve", "--config", text(&configure(dir, tables))]));
    let last = ended.stderr.lines().next_back().unwrap_or_default();
    assert!(ended.status == 3 && last.starts_with("nonesuch: error: "), "{}", ended.text());
}

const RIGHT: &str = "hmac-sha256:t.:MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=";
const WRONG: &str = "hmac-sha256:t.:ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";
const UNKNOWN: &str = "hmac-sha256:other.:ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA=";
/// Number of messages of each kind.
const MESSAGES: usize = 1000;
/// Burst of lines of one event by one peer, as in the log throttle.
const BURST: usize = 20;

/// Sends messages in batches, and waits for the responses of each batch; some messages have no
/// response.
fn send_all(server: SocketAddr, messages: impl Iterator<Item = Vec<u8>>) {
    let socket = client();
    socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a limit");
    for (number, message) in messages.enumerate() {
        socket.send_to(&message, server).expect("sent");
        if number % 50 == 49 {
            (0..50).try_for_each(|_| socket.recv(&mut [0; 4096]).map(drop)).unwrap_or_default();
        }
    }
    ask(server, ZONE, Rtype::SOA);
}

/// Requests transfers of the zone repeatedly over one connection, and reads all responses.
fn transfer_all(server: SocketAddr, zone: &str, rtype: Rtype) {
    let mut stream = connect(server);
    let mut sending = stream.try_clone().expect("a handle");
    let request = framed(&question(zone, rtype));
    let sent = std::thread::spawn(move || (0..MESSAGES).try_for_each(|_| sending.write_all(&request)));
    for _ in 0..MESSAGES {
        let mut length = [0; 2];
        stream.read_exact(&mut length).expect("an answer");
        stream.read_exact(&mut vec![0; usize::from(u16::from_be_bytes(length))]).expect("an answer");
    }
    sent.join().expect("a thread").expect("sent");
}

fn signed(key: &str, rtype: Rtype, opcode: u8) -> Vec<u8> {
    let mut message = question(ZONE, rtype);
    message[2] |= opcode << 3;
    let _ = sign_request(&Arc::new(TsigKey::from_argument(key).expect("a key")), &mut message, 7);
    message
}

#[test]
fn strangers_and_peers_write_a_bounded_number_of_lines() {
    let home = folder();
    let dir = home.path();
    certificates::Certificates::make(dir);
    for zone in ["a", "b"] {
        write_beside(&dir.join(zone), &plain_zone(&format!("{zone}.example."), 1));
    }
    let path = dir.join("c.toml");
    let top = "listen-tls = [\"127.0.0.1:0\"]\ntls-certificate = \"server.pem\"\ntls-key = \"server.key\"\n";
    let tables = "[log]\nformat = \"json\"\n[key.\"t.\"]\nsecret = \"MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=\"\n\
        [zone.\"a.example.\"]\nfile = \"a\"\ntransfer = [\"127.0.0.1\"]\n[zone.\"b.example.\"]\nfile = \"b\"\n\
        [zone.\"s.example.\"]\nprimaries = [\"127.0.0.9:1\"]\n";
    let head = head(dir);
    write_beside(&path, &format!("{head}{top}{tables}"));
    let server = Configured::start(&path);
    let address = server.address;
    let tls: SocketAddr =
        server.ready["tls_addresses"][0].as_str().expect("TLS").parse().expect("an address");
    let began = Instant::now();
    transfer_all(address, ZONE, Rtype::AXFR);
    transfer_all(address, "b.example.", Rtype::AXFR);
    let each = |message: Vec<u8>| std::iter::repeat_n(message, MESSAGES / 4);
    send_all(address, each(question(ZONE, Rtype::AXFR)));
    send_all(address, each(question("b.example.", Rtype::IXFR)));
    for (key, opcode) in [(RIGHT, 0), (WRONG, 0), (UNKNOWN, 0), (WRONG, 4)] {
        send_all(address, each(signed(key, Rtype::SOA, opcode)));
    }
    let mut notify = question("s.example.", Rtype::SOA);
    notify[2] |= 4 << 3;
    send_all(address, each(notify));
    send_all(address, each(vec![0x5a; 40]));
    for stream in (0..100).map(|_| TcpStream::connect(tls).expect("connected")) {
        // An alert of TLS 1.2, and octets that are not TLS.
        let _ = (&stream)
            .write_all(b"\x15\x03\x03\x00\x02\x01\x5a")
            .and_then(|()| (&stream).write_all(&[0x5a; 40]));
    }
    for mut stream in (0..100).map(|_| connect(address)) {
        let _ = stream.write_all(&[0xff; 40]);
    }
    let log = server.log.clone();
    server.stop();
    let seconds = began.elapsed().as_secs() as usize + 2;
    let log = fs::read_to_string(log).expect("a log");
    let events: Vec<Value> = log.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let lines_of = |event: &str| events.iter().filter(|line| line["event"] == event).count();
    for event in ["transfer-ended", "transfer-refused", "tsig-rejected", "notify-refused"] {
        let lines = lines_of(event);
        assert!((1..=BURST + 3 * seconds).contains(&lines), "{event}: {lines} in {seconds} s: {log}");
    }
    let total = events.len();
    assert!(total < 6 * (BURST + seconds), "{total} in {seconds} s: {log}");
    // Suppressed lines are counted: with the lines of the event, and at the end.
    let is_of_transfers =
        |line: &&Value| line["event"] == "transfer-ended" || line["suppressed_event"] == "transfer-ended";
    let suppressed: u64 =
        events.iter().filter(is_of_transfers).filter_map(|line| line["suppressed"].as_u64()).sum();
    assert_eq!(lines_of("transfer-ended") as u64 + suppressed, MESSAGES as u64, "{log}");
}

/// Events of the server that no peer causes. They need no source.
const OF_OPERATORS: [&str; 11] = [
    "address-missing",
    "dnstap-failed",
    "dnstap-frames-lost",
    "dnstap-not-closed",
    "dnstap-opened",
    // At most once per second.
    "rate-limiting-ended",
    "rate-limiting-started",
    "state-directory-not-read",
    "state-files-not-replaced",
    "state-files-replaced",
    "zones-reloaded",
];

/// The log throttle uses the fields `peer` and `zone`, so each event that a peer can cause has one
/// of them.
#[test]
fn every_event_of_the_server_names_its_peer_or_zone() {
    let mut without = Vec::new();
    let mut events = 0;
    for krate in ["server", "secondary", "authoritative", "net", "dnssec", "zone", "proto", "crypto"] {
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(krate).join("src");
        visit(&sources, &mut |text: &str| {
            for level in ["info!(", "warn!(", "error!("] {
                for (at, _) in text.match_indices(&format!("tracing::{level}")) {
                    let event = balanced(&text[at..]);
                    events += 1;
                    let is_named = ["%peer", "peer =", "%zone", "zone =", "(zone,", " zone,", "zone\n"]
                        .iter()
                        .any(|field| event.contains(field));
                    if !is_named && !OF_OPERATORS.contains(&name_of(event)) {
                        without.push(event.to_owned());
                    }
                }
            }
        });
    }
    assert!(events > 30, "{events}");
    assert!(without.is_empty(), "give them the field `peer` or `zone`: {without:#?}");
}

/// The name in a macro's arguments.
fn name_of(call: &str) -> &str {
    let name = call.split_once("name: \"").and_then(|(before, rest)| {
        before.trim_end().ends_with('(').then(|| rest.split('"').next().unwrap_or_default())
    });
    name.unwrap_or_else(|| panic!("an event without a name: {call:.200}"))
}

/// The events of a server: level, name and message of each call in the sources.
fn events_in_sources() -> BTreeSet<(String, String, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut events = BTreeSet::new();
    let mut look = |text: &str| {
        for (at, call) in text.match_indices("tracing::") {
            let rest = &text[at + call.len()..];
            let level =
                ["info", "warn", "error"].into_iter().find(|level| rest.starts_with(&format!("{level}!(")));
            let Some(level) = level else { continue };
            let message =
                message_of(&rest[level.len() + 1..]).unwrap_or_else(|| panic!("no message: {rest:.200}"));
            events.insert((level.to_owned(), name_of(rest).to_owned(), message));
        }
    };
    for krate in ["server", "secondary", "authoritative", "net", "dnssec", "zone", "proto", "crypto"] {
        visit(&crates.join(krate).join("src"), &mut |text| look(text));
    }
    let cli = crates.join("cli/src");
    for folder in ["metrics", "config", "server", "keys"] {
        visit(&cli.join(folder), &mut |text| look(text));
    }
    for file in ["certificate.rs", "commands/serve.rs", "main.rs", "nsec5.rs"] {
        look(&source(&cli.join(file)));
    }
    events
}

/// The message in the arguments of a macro: the first string that is an argument itself and not the
/// name of the event or the value of a field.
fn message_of(call: &str) -> Option<String> {
    let (mut depth, mut last) = (0, ' ');
    let mut letters = call.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => {
                let mut end = at + 1;
                while let Some((place, letter)) = letters.next() {
                    match letter {
                        '\\' => drop(letters.next()),
                        '"' => {
                            end = place;
                            break;
                        }
                        _ => {}
                    }
                }
                if depth == 1 && !matches!(last, '=' | ':') {
                    return Some(joined(&call[at + 1..end]));
                }
            }
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return None;
        }
        if !letter.is_whitespace() {
            last = letter;
        }
    }
    None
}

/// A string literal with lines that end in backslashes, as one line.
fn joined(literal: &str) -> String {
    let mut lines = literal.split("\\\n");
    let first = lines.next().unwrap_or_default().to_owned();
    lines.fold(first, |joined, line| joined + line.trim_start())
}

/// The manual of the log lists exactly the events of a server.
#[test]
fn the_manual_lists_the_events_that_exist() {
    let manual = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/logging.md");
    let manual = fs::read_to_string(manual).expect("the manual");
    let rows = manual.lines().filter_map(|line| {
        let (level, rest) = line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | ")?;
        let (name, message) = rest.split_once(" | ")?;
        let plain = |quoted: &str| quoted.trim_matches('`').trim().to_owned();
        ["info", "warn", "error"].contains(&level).then(|| (level.to_owned(), plain(name), plain(message)))
    });
    let listed: BTreeSet<(String, String, String)> = rows.collect();
    let events = events_in_sources();
    assert!(events.len() > 50, "{}", events.len());
    let row = |(level, name, message): &(String, String, String)| {
        let quote = if message.contains('`') { ("`` ", " ``") } else { ("`", "`") };
        format!("| {level} | `{name}` | {}{message}{} |", quote.0, quote.1)
    };
    let missing: Vec<String> = events.difference(&listed).map(row).collect();
    let extra: Vec<String> = listed.difference(&events).map(row).collect();
    assert!(missing.is_empty(), "add to docs/logging.md:\n{}", missing.join("\n"));
    assert!(extra.is_empty(), "remove from docs/logging.md:\n{}", extra.join("\n"));
}

/// A configuration with a warning, and one that fails at the start. All lines are JSON, and the
/// first line contains version and file.
#[test]
fn the_log_has_its_form_from_the_first_line_on() {
    let home = folder();
    let path = home.path().join("c.toml");
    let head = head(home.path());
    write_beside(&home.path().join("a"), &plain_zone("a.example.", 1));
    // A list with an entry that has no effect: a warning.
    let zones = "[log]\nformat = \"json\"\n[zone.\"a.example.\"]\nfile = \"a\"\ntransfer = [\"any\", \"127.0.0.1\"]\n";
    write_beside(&path, &format!("{head}{zones}"));
    let server = Configured::start(&path);
    let log = server.log.clone();
    server.stop();
    let log = fs::read_to_string(log).expect("a log");
    let lines: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    assert_eq!(lines[0]["event"], "started", "{log}");
    assert_eq!(lines[0]["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(lines[0]["configuration"], path.display().to_string());
    assert_eq!(lines[1]["level"], "warn", "{log}");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let listen = format!("listen = [\"{}\"]", taken.local_addr().expect("an address"));
    write_beside(&path, &format!("{head}{zones}").replace("listen = [\"127.0.0.1:0\"]", &listen));
    let failed = run(nonesuch(["serve", "--config"]).arg(&path));
    assert_ne!(failed.status, 0);
    for line in failed.stderr.lines() {
        assert!(serde_json::from_str::<Value>(line).is_ok(), "{line}");
    }
    assert!(failed.stderr.lines().count() >= 2, "{}", failed.stderr);
}

fn visit(folder: &Path, look: &mut impl FnMut(&str)) {
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            visit(&path, look);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            look(&source(&path));
        }
    }
}

/// A source file without its tests.
fn source(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a source");
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned()
}

/// A macro with its arguments.
fn balanced(text: &str) -> &str {
    let mut depth = 0;
    let end = text.char_indices().find_map(|(at, letter)| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        (depth == 0 && letter == ')').then_some(at + 1)
    });
    &text[..end.unwrap_or(text.len())]
}
