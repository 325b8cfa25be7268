//! Functions that the tests of the command share: programs with a time limit, temporary
//! directories, servers on unused ports that end with the test, public data.
#![allow(dead_code, unreachable_pub)] // each test program uses its own part

pub mod certificates;
pub mod configured;
pub mod judges;
pub mod peers;
pub mod resign;
pub mod snapshot;
pub mod transfer;
pub mod transferring;
pub mod watched;

#[allow(unused_imports)] // each test program uses its own part
pub use nonesuch_testing::{is_installed, public_data};
use std::fs::{self, File};
use std::io::{BufRead as _, BufReader};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A zone, `types.example.`, with every record type and every case of signing.
pub const EVERY_TYPE: &str = include_str!("every-type.zone");
/// Its apex.
pub const EVERY_TYPE_ORIGIN: &str = "types.example.";

/// A small zone, `keys.example.`, with a wildcard and a secure delegation.
pub const KEYS_ZONE: &str = "$TTL 60\n@ SOA ns h 1 7200 3600 1209600 5\n@ NS ns\nns A 192.0.2.1\n*.w TXT \"x\"\nsub NS ns.sub\nsub DS 1 13 2 \
    0123456789012345678901234567890123456789012345678901234567890123\nns.sub A 192.0.2.2\n";
/// Its apex.
pub const KEYS_ORIGIN: &str = "keys.example.";

/// The denial mechanisms, with the names on the command line.
pub const MECHANISMS: [&str; 3] = ["nsec", "nsec3", "nsec3-opt-out"];
/// The algorithms that every peer supports: the rows of the table that an RFC defines.
pub const PEER_ALGORITHMS: [&str; 6] =
    ["rsasha256", "rsasha512", "ecdsap256sha256", "ecdsap384sha384", "ed25519", "ed448"];

/// Time limit for one program.
const RUN: Duration = Duration::from_secs(60);

/// Exit status and output of a program.
#[derive(Debug)]
pub struct Ended {
    pub status: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// Asserts that the program succeeded.
    #[track_caller]
    pub fn expect_done(self, what: &str) -> Self {
        assert_eq!(self.status, 0, "{what}: {}{}", self.stdout, self.stderr);
        self
    }

    /// Both outputs.
    pub fn text(&self) -> String {
        format!("{}{}", self.stdout, self.stderr)
    }

    /// The error message of the command under test, without the log before it.
    #[track_caller]
    pub fn error(&self) -> &str {
        // Usage errors have no name of the program before them.
        let start = ["nonesuch: error: ", "error: "].iter().find_map(|start| self.stderr.find(start));
        let start = start.unwrap_or_else(|| panic!("no error message: {}", self.text()));
        &self.stderr[start..]
    }
}

/// A temporary directory. It is removed on drop.
pub fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// A directory with [`KEYS_ZONE`] in the file `zone`.
pub fn prepared() -> tempfile::TempDir {
    let folder = folder();
    fs::write(folder.path().join("zone"), KEYS_ZONE).expect("written");
    folder
}

/// The names in a directory, sorted.
pub fn listing(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("a directory");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Creates a directory in `folder`.
pub fn made(folder: &Path, name: &str) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir(&path).expect("a directory");
    path
}

/// The command under test: the program built with the tests, or the program in `NONESUCH_BINARY`,
/// so that further builds do not disturb a long run.
pub fn nonesuch<I: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = I>) -> Command {
    let other = std::env::var_os("NONESUCH_BINARY");
    let mut command = Command::new(other.unwrap_or_else(|| env!("CARGO_BIN_EXE_nonesuch").into()));
    command.args(arguments);
    command
}

/// Runs a command to its end. A command that exceeds the time limit is killed, and the test fails.
#[track_caller]
pub fn run(command: &mut Command) -> Ended {
    run_with(command, Stdio::null())
}

/// Like [`run`], with the file at `input` as standard input.
#[track_caller]
pub fn run_on(command: &mut Command, input: &Path) -> Ended {
    run_with(command, File::open(input).expect("an input").into())
}

/// Like [`run`], with another time limit.
#[track_caller]
pub fn run_within(limit: Duration, command: &mut Command) -> Ended {
    run_to_end(limit, command, Stdio::null())
}

#[track_caller]
fn run_with(command: &mut Command, input: Stdio) -> Ended {
    run_to_end(RUN, command, input)
}

#[track_caller]
fn run_to_end(limit: Duration, command: &mut Command, input: Stdio) -> Ended {
    let outputs = folder();
    let (out, err) = (outputs.path().join("out"), outputs.path().join("err"));
    let mut child = command
        .stdin(input)
        .stdout(File::create(&out).expect("a file"))
        .stderr(File::create(&err).expect("a file"))
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let end = Instant::now() + limit;
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        if Instant::now() > end {
            let _ = child.kill();
            let _ = child.wait();
            panic!("{command:?} ran longer than {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(3));
    };
    let text = |path| String::from_utf8_lossy(&fs::read(path).expect("an output")).into_owned();
    Ended { status: status.code().unwrap_or(-1), stdout: text(out), stderr: text(err) }
}

/// Runs the command under test and expects success.
#[track_caller]
pub fn done<I: AsRef<std::ffi::OsStr> + std::fmt::Debug>(
    arguments: impl IntoIterator<Item = I> + Clone + std::fmt::Debug,
) -> Ended {
    let what = format!("nonesuch {arguments:?}");
    run(&mut nonesuch(arguments)).expect_done(&what)
}

/// Mnemonics of all rows of the table of algorithms, including aliases.
pub fn all_algorithms() -> impl Iterator<Item = &'static str> {
    nonesuch_crypto::ALGORITHMS.iter().map(|entry| entry.mnemonic)
}

/// The lines of the event `name` in a log in the format `text`, with these fields, each as
/// `name=value`.
pub fn events<'a>(log: &'a str, name: &str, fields: &[&str]) -> Vec<&'a str> {
    let has = |line: &str, word: &str| format!("{line} ").contains(&format!(" {word} "));
    let is_event =
        |line: &&str| has(line, &format!("event={name}")) && fields.iter().all(|field| has(line, field));
    log.lines().filter(is_event).collect()
}

/// `text` with `name` in place of the word `word`, for example of a key tag. Letters and digits form
/// words, so the word is not replaced within a longer word or number.
pub fn replace_word(text: &str, word: &str, name: &str) -> String {
    let is_separator = |character: char| !character.is_ascii_alphanumeric();
    let parts = text.split_inclusive(is_separator).map(|part| match part.strip_prefix(word) {
        Some(end) if end.chars().all(is_separator) => format!("{name}{end}"),
        _ => part.to_owned(),
    });
    parts.collect()
}

/// A path as text.
pub fn text(path: &Path) -> &str {
    path.to_str().expect("a path in UTF-8")
}

/// Generates a key pair in `keys` and returns its base name. It is active since 2000, unless `more`
/// specifies another time, because tests sign at past times.
pub fn generate_key(keys: &Path, origin: &str, algorithm: &str, more: &[&str]) -> String {
    fs::create_dir_all(keys).expect("a directory");
    let mut arguments = vec!["key", "generate", origin, "-a", algorithm, "--dir", text(keys)];
    arguments.extend(more);
    if !more.contains(&"--now") {
        arguments.extend(["--now", "20000101000000"]);
    }
    done(&arguments).stdout.trim().to_owned()
}

/// Generates a KSK and a ZSK in `keys`.
pub fn generate_keys(keys: &Path, origin: &str, algorithm: &str) {
    generate_key(keys, origin, algorithm, &["--ksk"]);
    generate_key(keys, origin, algorithm, &[]);
}

/// Signs `unsigned` with the keys in `keys` to `signed`.
pub fn sign(unsigned: &Path, origin: &str, keys: &Path, mechanism: &str, signed: &Path) {
    done([
        "zone",
        "sign",
        text(unsigned),
        "-o",
        origin,
        "--keys",
        text(keys),
        "--denial",
        mechanism,
        "-f",
        text(signed),
        "--drop-foreign-dnskeys",
    ]);
}

/// The zone without the records that signing adds.
pub fn stripped(zone: &str) -> String {
    let made = ["RRSIG", "NSEC", "NSEC3", "NSEC3PARAM", "DNSKEY"];
    zone.lines()
        .filter(|line| !line.split_whitespace().nth(3).is_some_and(|rtype| made.contains(&rtype)))
        .flat_map(|line| [line, "\n"])
        .collect()
}

/// A running server.
pub struct Running {
    child: Child,
    pub address: SocketAddr,
}

impl Running {
    /// A started process at this address.
    pub fn of(child: Child, address: SocketAddr) -> Self {
        Self { child, address }
    }

    /// A started process whose standard output is a pipe, when it has printed that it is ready.
    pub fn when_ready(mut child: Child) -> Self {
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
        let address = line.strip_prefix("ready: listening on ").and_then(|rest| rest.split(' ').next());
        let Some(address) = address.and_then(|text| text.parse().ok()) else {
            let _ = child.kill();
            let _ = child.wait();
            panic!("nonesuch is not ready: {line:?}");
        };
        Self { child, address }
    }

    /// Whether it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a process").is_some()
    }

    /// The process ID.
    pub fn id(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts `nonesuch serve` on an unused port.
pub fn serve(file: &Path, more: &[&str]) -> Running {
    serve_at(file, "127.0.0.1:0", more)
}

/// Starts `nonesuch serve` at this address.
pub fn serve_at(file: &Path, listen: &str, more: &[&str]) -> Running {
    let child = nonesuch(["serve", "--listen", listen, "--workers", "1", text(file)])
        .args(more)
        .stdout(Stdio::piped())
        .spawn()
        .expect("nonesuch starts");
    Running::when_ready(child)
}

/// An address that is currently unused for UDP and TCP.
pub fn free_address() -> SocketAddr {
    nonesuch_lab::peers::free_address(Ipv4Addr::LOCALHOST).expect("a free port")
}

/// The header of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    pub rcode: u8,
    pub authenticated: bool,
    pub answers: u16,
}

/// Sends a query over UDP with RD, AD and DO set. Returns `None` without a response within the
/// limit.
pub fn ask(server: SocketAddr, name: &str, rtype: u16, limit: Duration) -> Option<Header> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
    socket.set_read_timeout(Some(limit)).expect("a limit");
    let name: nonesuch_proto::Name = name.parse().expect("a name");
    let mut query = vec![0x12, 0x34, 0x01, 0x20, 0, 1, 0, 0, 0, 0, 0, 1];
    query.extend_from_slice(name.wire());
    query.extend_from_slice(&rtype.to_be_bytes());
    query.extend_from_slice(&[0, 1]);
    // OPT, 1232 octets, DO (RFC 6891 §6.1.2, RFC 3225).
    query.extend_from_slice(&[0, 0, 41, 4, 208, 0, 0, 0x80, 0, 0, 0]);
    socket.send_to(&query, server).ok()?;
    let mut response = [0; 4096];
    let begun = Instant::now();
    let Ok((length, _)) = socket.recv_from(&mut response) else {
        // A closed port is reported immediately, so this waits before the caller polls again.
        std::thread::sleep(limit.saturating_sub(begun.elapsed()).min(Duration::from_millis(20)));
        return None;
    };
    (length >= 12).then(|| Header {
        rcode: response[3] & 0x0f,
        authenticated: response[3] & 0x20 != 0,
        answers: u16::from_be_bytes([response[6], response[7]]),
    })
}
