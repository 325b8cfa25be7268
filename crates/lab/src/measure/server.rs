//! Runs a server as a child process: starts it, waits until it is ready, and kills it when its
//! handle is dropped.

use super::child::KillOnDrop;
use nonesuch_dnssec::Mechanism;
use std::fs::{self, File};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::{Duration, Instant};

/// Time limit for a server to read and verify a large zone.
pub(crate) const READY_LIMIT: Duration = Duration::from_secs(1800);
/// Maximum number of characters of the server's log in an error.
const LOG_SHOWN: usize = 600;

/// Reasons why a server is not ready.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    #[error("cannot start {}: {source}", program.display())]
    Start { program: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}", path.display())]
    Log { path: PathBuf, source: io::Error },
    #[error("the server ended before it was ready ({status}); output: {log}")]
    Ended { status: ExitStatus, log: String },
    #[error("the server was not ready after {seconds} s; output: {log}")]
    NotReady { seconds: u64, log: String },
    #[error("the line \"{line}\" in the output of the server contains \"ready\", but no address and port")]
    NoAddress { line: String },
}

/// A zone file, and the keys with which a server serves it.
#[derive(Clone, Debug)]
pub struct ServedZone {
    /// The apex.
    pub origin: String,
    /// The zone file.
    pub file: PathBuf,
    /// The private keys of the server.
    pub keys: ServerKeys,
}

/// The private keys of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerKeys {
    /// The zone is unsigned, or the signed zone contains all denial records.
    None,
    /// The server signs online with the keys of a directory.
    Online {
        /// The mechanism of the denial records.
        mechanism: Mechanism,
        /// The directory with the key files.
        directory: PathBuf,
    },
    /// The zone is signed with NSEC5.
    Nsec5 {
        /// The directory with the VRF key and the proofs.
        directory: PathBuf,
    },
}

/// Returns the command that serves a zone on a free port of 127.0.0.1 with structural verification.
/// `program` is `nonesuch` with its environment.
#[must_use]
pub fn serve_command(mut program: Command, zone: &ServedZone, workers: u16) -> Command {
    program.args(["serve", "--listen", "127.0.0.1:0", "--verify", "structural", "--origin"]);
    program.arg(&zone.origin).arg("--workers").arg(workers.to_string());
    match &zone.keys {
        ServerKeys::None => {}
        ServerKeys::Online { mechanism, directory } => {
            program.args(["--denial", mechanism.entry().name, "--keys"]).arg(directory);
        }
        ServerKeys::Nsec5 { directory } => {
            program.arg("--nsec5-keys").arg(directory);
        }
    }
    program.arg(&zone.file);
    program
}

/// A running server. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Server {
    child: KillOnDrop,
    pub(crate) address: SocketAddr,
    pub(crate) ready_after: Duration,
    /// Whether the server is bound to the requested CPU.
    pub(crate) pinned: bool,
}

impl ServedZone {
    /// A zone that the server serves without private keys.
    #[must_use]
    pub fn without_keys(origin: &str, file: &Path) -> Self {
        Self { origin: origin.to_owned(), file: file.to_path_buf(), keys: ServerKeys::None }
    }
}

impl Server {
    /// Starts `command`, bound to `cpu` if given, and waits for at most `limit` until it prints a
    /// line with the word "ready" and its listening address. Standard error goes to the file `log`.
    pub(crate) fn start(
        mut command: Command,
        cpu: Option<usize>,
        log: &Path,
        limit: Duration,
    ) -> Result<Self, ServerError> {
        let file = File::create(log).map_err(|source| ServerError::Log { path: log.to_owned(), source })?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(file);
        let started = Instant::now();
        let (mut child, pinned) = spawn_on(&mut command, cpu)
            .map_err(|source| ServerError::Start { program: command.get_program().into(), source })?;
        let address = wait_ready(&mut child, log, limit)?;
        let ready_after = started.elapsed();
        Ok(Self { child, address, ready_after, pinned })
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.0.id()
    }
}

/// Starts a process that is bound to `cpu`, if given. A child inherits the CPU affinity of the
/// thread that starts it. Therefore a separate thread starts it, and the affinity of the calling
/// thread does not change.
fn spawn_on(command: &mut Command, cpu: Option<usize>) -> io::Result<(KillOnDrop, bool)> {
    let Some(cpu) = cpu else { return Ok((KillOnDrop(command.spawn()?), false)) };
    thread::scope(|scope| {
        let starter = scope.spawn(|| {
            let pinned = nonesuch_net::pin_current_thread(cpu).is_ok();
            Ok((KillOnDrop(command.spawn()?), pinned))
        });
        starter.join().unwrap_or_else(|_| Err(io::Error::other("the thread that starts the server panicked")))
    })
}

fn wait_ready(child: &mut KillOnDrop, log: &Path, limit: Duration) -> Result<SocketAddr, ServerError> {
    let end = Instant::now() + limit;
    let not_ready = || ServerError::NotReady { seconds: limit.as_secs(), log: log_end(log) };
    let lines = child.lines();
    loop {
        match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) if line.contains("ready") => {
                return address_in(&line).ok_or(ServerError::NoAddress { line });
            }
            Ok(_) => {}
            Err(RecvTimeoutError::Timeout) => return Err(not_ready()),
            // The server has closed its standard output: it has ended, or it cannot report that it
            // is ready.
            Err(RecvTimeoutError::Disconnected) => {
                let _ = child.0.kill();
                let status = child.0.wait().map_err(|_| not_ready())?;
                return Err(ServerError::Ended { status, log: log_end(log) });
            }
        }
    }
}

/// Returns the first socket address in a line, regardless of the characters around it.
fn address_in(line: &str) -> Option<SocketAddr> {
    let foreign = |letter: char| !letter.is_ascii_hexdigit() && !".:[]".contains(letter);
    line.split(foreign).map(|word| word.trim_matches(['.', ':'])).find_map(|word| word.parse().ok())
}

/// Returns the last part of the text in the file `log`, or "nothing" if it has none.
pub(crate) fn log_end(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let text = text.trim();
    if text.is_empty() {
        return "nothing".to_owned();
    }
    let skipped = text.chars().count().saturating_sub(LOG_SHOWN);
    text.chars().skip(skipped).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn start(script: &str, limit: Duration) -> Result<Server, ServerError> {
        let directory = tempfile::tempdir().expect("a directory");
        Server::start(shell(script), None, &directory.path().join("log"), limit)
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn the_ready_line_is_waited_for() {
        let server =
            start("echo hello; echo 'ready: listening on 127.0.0.1:5353 (UDP, TCP)'; exec sleep 60", LONG)
                .expect("ready");
        assert_eq!(server.address, "127.0.0.1:5353".parse().expect("an address"));
        let pid = server.pid();
        assert!(crate::process::cpu_time(pid).is_some());
        drop(server);
        assert!(crate::process::cpu_time(pid).is_none(), "it was killed and waited for");
    }

    #[test]
    fn addresses_are_found_in_any_clothes() {
        for line in [
            "ready 127.0.0.1:53",
            "ready: [::1]:53.",
            "ready (udp://127.0.0.1:53),",
            "is ready, on <[::1]:53>",
        ] {
            assert_eq!(address_in(line).map(|address| address.port()), Some(53), "{line}");
        }
        assert_eq!(address_in("ready at 12:30, port 53"), None);
    }

    #[test]
    fn an_early_end_is_told_with_the_log_of_the_server() {
        let error = start("echo 'zone is broken' >&2; exit 3", LONG).expect_err("it ended");
        let ServerError::Ended { status, log } = &error else { panic!("{error}") };
        assert!(status.code() == Some(3) && log.contains("zone is broken"), "{error}");
    }

    #[test]
    fn a_server_that_is_never_ready_is_given_up_and_killed() {
        let error = start("echo $$ >&2; exec sleep 60", Duration::from_millis(300)).expect_err("not ready");
        let ServerError::NotReady { log, .. } = error else { panic!("{error}") };
        let pid = log.parse().expect("its number");
        assert!(crate::process::cpu_time(pid).is_none());
    }

    #[test]
    fn a_ready_line_without_address_is_an_error() {
        let error = start("echo ready; exec sleep 60", LONG).expect_err("no address");
        assert!(matches!(error, ServerError::NoAddress { line } if line == "ready"));
    }

    #[test]
    fn a_missing_program_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let command = Command::new("/nonexistent/server");
        let error =
            Server::start(command, None, &directory.path().join("log"), LONG).expect_err("no program");
        let ServerError::Start { program, .. } = &error else { panic!("{error}") };
        assert_eq!(program, Path::new("/nonexistent/server"));
    }

    #[test]
    fn a_server_is_kept_on_its_cpu() {
        let Some(places) = crate::machine::choose_cpus() else {
            return nonesuch_testing::record_skip("there is one CPU only");
        };
        let directory = tempfile::tempdir().expect("a directory");
        let script = "echo ready 127.0.0.1:53; exec sleep 60";
        let server = Server::start(shell(script), Some(places.server), &directory.path().join("log"), LONG)
            .expect("ready");
        let status = fs::read_to_string(format!("/proc/{}/status", server.pid())).expect("it runs");
        let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        assert_eq!(allowed.map(str::trim), Some(places.server.to_string().as_str()));
        assert!(server.pinned);
    }
}
