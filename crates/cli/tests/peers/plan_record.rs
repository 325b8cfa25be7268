//! `nonesuch plan record` with Unbound, BIND and this resolver on a signed tree, in a network namespace.
//!
//! The verified signatures that the counting library counts are those of the log of Unbound and BIND,
//! and messages from dnstap, packets and counters give the same counts. With 10,000 queries:
//!
//!     NONESUCH_RECORDED_QUERIES=10000 cargo test -p nonesuch-cli --test peers -- plan_record

use crate::common;
use common::configured::{Configured, write_beside};
use common::{ask, done, folder, nonesuch, peers, run, text};
use nonesuch_lab::cost_model::{Recording, VerificationSource};
use nonesuch_lab::peers::{Peer, ResolverSetup, RootServer, Setup, TrustAnchor, Upstream};
use nonesuch_net::namespace::NetworkNamespace;
use nonesuch_proto::Rtype;
use nonesuch_testing::{record_skip, require_peer};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Zones below `example.`.
const ZONES: usize = 20;
/// Time limit for a response, and for a condition.
const LIMIT: Duration = Duration::from_secs(20);
const RESOLVER: &str = "127.0.0.1";

/// Number of queries. With the default, a run takes seconds.
fn query_count() -> usize {
    std::env::var("NONESUCH_RECORDED_QUERIES")
        .map_or(300, |count| count.parse().expect("a number of queries"))
}

/// Builds the counting library, once; `None` without a C linker.
fn counting_library() -> Option<PathBuf> {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    require_peer!("cc", "cargo");
    let library = BUILT.get_or_init(|| {
        let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/count-verifications/Cargo.toml");
        let target = concat!(env!("CARGO_TARGET_TMPDIR"), "/count-verifications");
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build.args(["build", "--release", "--locked", "--manifest-path", manifest, "--target-dir", target]);
        run(&mut build).expect_done("the counting library");
        Path::new(target).join("release/libcount_verifications.so")
    });
    Some(library.clone())
}

/// Runs a test in a network namespace; not at all if the system does not permit it.
fn in_namespace(test: impl FnOnce() + Send) {
    match NetworkNamespace::new() {
        Ok(namespace) => namespace.run(test).expect("a thread in the namespace"),
        Err(_) => record_skip("network namespaces or TUN devices cannot be used"),
    }
}

/// A tree with its servers: the root, `example.` and zones below with `names` names each.
struct Tree {
    _servers: Vec<Configured>,
    directory: PathBuf,
}

impl Tree {
    fn start(folder: &Path, names: usize, algorithm: &str) -> Self {
        let zone = |origin: &str, more: &str| {
            format!("[[zone]]\norigin = \"{origin}\"\nalgorithm = \"{algorithm}\"\n{more}")
        };
        let zones = format!("count = {ZONES}\nnames = {names}\nserver = \"127.53.0.5\"\n");
        let tree = [
            "first-address = \"127.53.0.1\"\n".to_owned(),
            zone(".", ""),
            zone("example.", ""),
            zone("z#.example.", &zones),
        ];
        let (file, directory) = (folder.join("tree.toml"), folder.join("tree"));
        fs::write(&file, tree.concat()).expect("written");
        done(["lab", "tree", text(&file), "--out", text(&directory)]);
        let files: Vec<_> = fs::read_dir(directory.join("servers")).expect("a directory").flatten().collect();
        let servers = files.iter().map(|file| Configured::start(&file.path())).collect();
        Self { _servers: servers, directory }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn anchors(&self) -> Vec<TrustAnchor> {
        fs::read_to_string(self.file("anchor.ds")).expect("anchors").lines().map(peers::anchor).collect()
    }

    /// The server in the hints.
    fn root(&self) -> RootServer {
        let hints = fs::read_to_string(self.file("root.hints")).expect("hints");
        let words: Vec<&str> = hints.split_whitespace().collect();
        let address = words.iter().find_map(|word| word.parse().ok()).expect("an address");
        let at = words.iter().position(|word| *word == "NS").expect("an NS record");
        RootServer { name: words[at + 1].to_owned(), address }
    }
}

/// Asks for another name in each query. Answers are validated, or truncated.
fn ask_all(resolver: SocketAddr, queries: usize) {
    for query in 0..queries {
        let name = format!("host{}.z{}.example.", query / ZONES, query % ZONES);
        let header = (0..3)
            .find_map(|_| ask(resolver, &name, Rtype::A.0, LIMIT))
            .unwrap_or_else(|| panic!("{name}: no response"));
        assert!((header.authenticated || header.answers == 0) && header.rcode == 0, "{name}: {header:?}");
    }
}

/// `nonesuch plan record --json`.
struct Recorder {
    child: Child,
    lines: BufReader<ChildStdout>,
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn signal(pid: u32, signal: &str) {
    assert!(Command::new("kill").args([signal, &pid.to_string()]).status().expect("kill").success());
}

impl Recorder {
    fn start(out: &Path, arguments: &[&str]) -> Self {
        let all = [&["plan", "record", "--out", text(out), "--window", "1", "--json"], arguments].concat();
        let mut child = nonesuch(all).stdout(Stdio::piped()).spawn().expect("nonesuch starts");
        let lines = BufReader::new(child.stdout.take().expect("piped"));
        let mut recorder = Self { child, lines };
        recorder.line("ready");
        recorder
    }

    /// Reads lines until one has this member; returns it.
    #[track_caller]
    fn line(&mut self, member: &str) -> Value {
        loop {
            let mut line = String::new();
            assert!(self.lines.read_line(&mut line).expect("a line") > 0, "ended before {member}");
            let found = serde_json::from_str::<Value>(&line).expect("JSON")[member].take();
            if !found.is_null() {
                return found;
            }
        }
    }

    /// Ends it and returns its sums.
    fn stop(mut self) -> Value {
        signal(self.child.id(), "-INT");
        let sums = self.line("recorded");
        assert!(self.child.wait().expect("ended").success());
        sums
    }
}

/// tcpdump, which writes all packets of servers.
struct PacketCapture {
    child: Child,
    messages: BufReader<ChildStderr>,
    file: PathBuf,
}

impl PacketCapture {
    /// `None` if tcpdump is not installed.
    fn start(file: &Path) -> Option<Self> {
        require_peer!("tcpdump");
        let mut command = Command::new("tcpdump");
        command.args([
            "-i",
            "lo",
            "-s",
            "0",
            "-U",
            "--immediate-mode",
            "-Z",
            "root",
            "-B",
            "16384",
            "-w",
            text(file),
            "port 53",
        ]);
        let mut child = command.stderr(Stdio::piped()).spawn().expect("tcpdump starts");
        let mut messages = BufReader::new(child.stderr.take().expect("piped"));
        let mut line = String::new();
        while !line.contains("listening on") {
            line.clear();
            assert!(messages.read_line(&mut line).expect("a line") > 0, "tcpdump ended");
        }
        Some(Self { child, messages, file: file.to_path_buf() })
    }

    /// Ends it; returns the file.
    fn stop(mut self) -> PathBuf {
        signal(self.child.id(), "-INT");
        let mut messages = String::new();
        self.messages.read_to_string(&mut messages).expect("messages");
        assert!(self.child.wait().expect("ended").success(), "{messages}");
        assert!(messages.contains("\n0 packets dropped by kernel"), "{messages}");
        self.file.clone()
    }
}

impl Drop for PacketCapture {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Records the packets of a capture.
fn record_packets(file: &Path, out: &Path, more: &[&str]) -> Value {
    let arguments =
        ["plan", "record", "--pcap", text(file), "--resolver", RESOLVER, "--out", text(out), "--json"];
    let ended = done([&arguments, more].concat());
    let line = ended.stdout.lines().last().expect("a line").to_owned();
    serde_json::from_str::<Value>(&line).expect("JSON")["recorded"].clone()
}

const TRAFFIC: [&str; 6] =
    ["queries", "tcp_queries", "responses", "truncated", "signed_responses", "signatures"];

fn traffic(sums: &Value) -> [u64; 6] {
    TRAFFIC.map(|name| sums[name].as_u64().unwrap_or_else(|| panic!("no {name}: {sums}")))
}

/// Lines of a log of which `counts` is true.
fn count_lines(log: &Path, counts: fn(&str) -> bool) -> u64 {
    let lines = BufReader::new(File::open(log).expect("a log")).split(b'\n');
    let lines = lines.map(|line| String::from_utf8_lossy(&line.expect("a line")).into_owned());
    lines.filter(|line| counts(line)).count() as u64
}

/// Unbound 1.17 at verbosity 4 logs each RRset before it verifies it. It logs the DNSKEY RRset of a zone
/// otherwise: when a DS record matches. If an RRset has one signature, this is one verification.
fn is_verification_of_unbound(line: &str) -> bool {
    let is_rrset = line.contains(" verify rrset ")
        && !line.contains(" verify rrset cached ")
        && !line.contains(" verify rrset from cache ");
    is_rrset || line.contains("DS match digest ok, trying signature")
}

/// BIND 9.18 logs each verification at debug level 3.
fn is_verification_of_bind(line: &str) -> bool {
    line.contains("verify rdataset (keyid=")
}

/// How a peer is recorded.
#[derive(Clone, Copy)]
struct RecordedPeer {
    peer: Peer,
    /// Lines of the configuration for logging.
    lines: &'static str,
    arguments: &'static [&'static str],
    /// Whether a line of the log states a verification.
    is_verification: fn(&str) -> bool,
    /// Maximum verifications that are recorded and not in the log.
    unlogged: u64,
    /// Maximum queries, signatures and verifications at the start, in the second in which the resolver connects to
    /// the recorder. Totals are interpolated in this second.
    at_start: u64,
}

/// Records a peer from dnstap and the counting library while it answers queries, and compares the
/// counts with its log and with the packets.
fn record_peer(recorded: RecordedPeer) {
    let Some(library) = counting_library() else { return };
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let queries = query_count();
    let tree = Tree::start(folder.path(), queries.div_ceil(ZONES), "ecdsap256sha256");
    let (socket, totals) = (path("dnstap"), path("totals"));
    let mut recorder =
        Recorder::start(&path("out"), &["--dnstap", text(&socket), "--verified", text(&totals)]);
    let capture = PacketCapture::start(&path("packets.pcap"));
    let upstream = Upstream::Roots { servers: vec![tree.root()], port: 53 };
    let setup = Setup {
        resolver: ResolverSetup { upstream, anchors: tree.anchors(), ..ResolverSetup::default() },
        lines: recorded.lines.to_owned() + &recorded.peer.dnstap_lines(&socket).expect("dnstap"),
        arguments: recorded.arguments.iter().map(|argument| (*argument).to_owned()).collect(),
        environment: vec![
            ("LD_PRELOAD".to_owned(), library.into_os_string()),
            ("NONESUCH_VERIFICATIONS".to_owned(), totals.clone().into_os_string()),
        ],
        ..Setup::new(folder.path())
    };
    let server = peers::start(recorded.peer, &setup);
    recorder.line("connected");
    let end = Instant::now() + LIMIT;
    // The lines at the load, at the first verification, and at the next two seconds.
    while recorded.at_start > 0 && fs::read_to_string(&totals).unwrap_or_default().lines().count() < 4 {
        assert!(Instant::now() < end, "no totals");
        std::thread::sleep(Duration::from_millis(20));
    }
    ask_all(server.address, queries);
    let sums = recorder.stop();
    let logged = count_lines(&server.folder().join("log"), recorded.is_verification);
    let verified = sums["verified"].as_u64().expect("a number");
    println!("{:?}: {queries} queries, {logged} verifications logged, {verified} recorded", recorded.peer);
    assert!(logged > queries as u64, "{logged}");
    assert!(
        (logged - recorded.at_start..=logged + recorded.unlogged).contains(&verified),
        "{logged}: {sums}"
    );
    let recording = Recording::read(&path("out")).expect("a recording");
    assert_eq!(recording.verified_by, VerificationSource::Library);
    assert!(recording.domains.len() >= ZONES && recording.domains.iter().all(|domain| domain.signed));
    if let Some(capture) = capture {
        let anchor = tree.file("anchor.ds");
        let packets = record_packets(&capture.stop(), &path("packets"), &["--anchor", text(&anchor)]);
        println!("{:?}: estimate from packets: {}", recorded.peer, packets["verified"]);
        // What a resolver sends before it is connected to the recorder is in no dnstap message.
        for ((name, in_packets), recorded_count) in TRAFFIC.iter().zip(traffic(&packets)).zip(traffic(&sums))
        {
            let expected = recorded_count..=recorded_count + recorded.at_start;
            assert!(expected.contains(&in_packets), "{name}: {in_packets} in packets, {sums}");
        }
    }
}

#[test]
fn the_log_of_unbound_has_the_recorded_verifications() {
    require_peer!("unbound");
    let recorded = RecordedPeer {
        peer: Peer::Unbound,
        lines: "  verbosity: 4\n",
        arguments: &[],
        is_verification: is_verification_of_unbound,
        unlogged: 0,
        at_start: 0,
    };
    in_namespace(|| record_peer(recorded));
}

#[test]
fn the_log_of_bind_has_the_recorded_verifications() {
    require_peer!("named");
    let recorded = RecordedPeer {
        peer: Peer::BindResolver,
        lines: "",
        arguments: &["-d", "3"],
        is_verification: is_verification_of_bind,
        // At its start, BIND tests with a signature whether libcrypto supports each of the four algorithms
        // with RSA.
        unlogged: 4,
        // BIND also requests and verifies the records of the root.
        at_start: 8,
    };
    in_namespace(|| record_peer(recorded));
}

/// Starts this resolver with a control socket.
fn start_ours(folder: &Path, tree: &Tree) -> Configured {
    let file = folder.join("resolver.toml");
    let (hints, anchors) = (tree.file("root.hints"), tree.file("anchor.ds"));
    let configuration = format!(
        "version = 1\nlisten = [\"127.0.0.1:0\"]\nworkers = 2\nhints = {hints:?}\ntrust-anchors = {anchors:?}\n\
        control-socket = \"control\"\nexperimental-algorithms = true\n"
    );
    write_beside(&file, &configuration);
    Configured::start_command("resolve", &["--config", text(&file)], &folder.join("resolver"), Stdio::null())
}

#[test]
fn counters_and_packets_of_this_resolver_are_equal() {
    in_namespace(|| {
        let folder = folder();
        let path = |name: &str| folder.path().join(name);
        // Responses of ML-DSA-44 are truncated, so that there are queries over TCP.
        let tree = Tree::start(folder.path(), 5, "mldsa44");
        let resolver = start_ours(folder.path(), &tree);
        let Some(capture) = PacketCapture::start(&path("packets.pcap")) else { return };
        let recorder = Recorder::start(&path("out"), &["--control", text(&path("control"))]);
        ask_all(resolver.address, 5 * ZONES);
        let sums = recorder.stop();
        let anchor = tree.file("anchor.ds");
        let packets = record_packets(&capture.stop(), &path("packets"), &["--anchor", text(&anchor)]);
        assert_eq!(traffic(&packets), traffic(&sums), "{TRAFFIC:?}");
        assert!(traffic(&sums).iter().all(|count| *count > 0), "{sums}");
        let octets = |out: &str| {
            let windows = Recording::read(&path(out)).expect("a recording").windows;
            windows.iter().map(|window| window.response_octets.expect("octets")).sum::<u64>()
        };
        assert_eq!(octets("packets"), octets("out"));
        println!("estimated {}, counted {}", packets["verified"], sums["verified"]);
        // The resolver verifies what it uses, and the estimate has each signature once.
        let (estimated, counted) = (packets["verified"].as_u64(), sums["verified"].as_u64());
        assert!(estimated >= counted && counted > Some(0), "{packets} {sums}");
    });
}

#[test]
fn a_killed_recorder_loses_little_and_continues() {
    in_namespace(|| {
        let folder = folder();
        let out = folder.path().join("out");
        let tree = Tree::start(folder.path(), 1, "ecdsap256sha256");
        let _resolver = start_ours(folder.path(), &tree);
        let control = folder.path().join("control");
        let part = |number: u32| out.join(format!("windows-{number:06}.csv"));
        for number in 1..=2 {
            let recorder = Recorder::start(&out, &["--control", text(&control)]);
            let end = Instant::now() + LIMIT;
            while !part(number).exists() {
                assert!(Instant::now() < end, "part {number} is not written");
                std::thread::sleep(Duration::from_millis(10));
            }
            // SIGKILL.
            drop(recorder);
        }
        let sums = Recorder::start(&out, &["--control", text(&control)]).stop();
        let windows = Recording::read(&out).expect("a recording").windows;
        assert!(windows.len() >= 3 && sums["windows"].as_u64() == Some(1), "{sums}");
    });
}

#[test]
fn a_second_recorder_of_a_directory_or_socket_is_refused() {
    let folder = folder();
    let (out, socket) = (folder.path().join("out"), folder.path().join("dnstap"));
    let recorder = Recorder::start(&out, &["--dnstap", text(&socket)]);
    let again = |out: &Path, socket: &str| {
        run(&mut nonesuch(["plan", "record", "--window", "1", "--out", text(out), "--dnstap", socket]))
    };
    let ended = again(&folder.path().join("other"), text(&socket));
    assert!(ended.status == 2 && ended.error().contains("another process listens"), "{}", ended.text());
    let ended = again(&out, text(&folder.path().join("dnstap-2")));
    assert_eq!(ended.status, 2, "{}", ended.text());
    let sums = recorder.stop();
    assert_eq!((sums["windows"].as_u64(), socket.exists()), (Some(0), false), "{sums}");
    // The socket of a process that was killed is replaced.
    drop(Recorder::start(&folder.path().join("killed"), &["--dnstap", text(&socket)]));
    assert!(socket.exists());
    Recorder::start(&folder.path().join("next"), &["--dnstap", text(&socket)]).stop();
}
