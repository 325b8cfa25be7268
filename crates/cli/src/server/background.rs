//! `nonesuch serve --background`: starts the server as a child process and returns when the server
//! answers.
//!
//! The server reports its readiness on an inherited socket. The socket has no name, so no other
//! process can report on it. Each process notices when the other one ends.

use crate::arguments::ServeArguments;
use crate::files::{is_standard_stream, print_line};
use crate::outcome::CommandOutcome;
use crate::server::error::ServerError;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use nonesuch_net::send_inherited;
use serde_json::json;
use std::env;
use std::io::{self, IsTerminal as _, Read as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};

/// Environment variable with the descriptor of the inherited socket.
const SOCKET_VARIABLE: &str = "NONESUCH_BACKGROUND";
/// Paths that refer to standard input.
const STANDARD_INPUT_PATHS: [&str; 3] = ["/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"];

/// Starts the server, waits until it answers, and prints its process ID.
pub(crate) fn run(arguments: &ServeArguments) -> Result<CommandOutcome, ServerError> {
    let (mut server, socket) = start(reads_standard_input(arguments)).map_err(ServerError::Background)?;
    let outcome = wait_and_print(&mut server, socket, arguments.json);
    if outcome.is_err() {
        stop_server(&mut server);
    }
    outcome
}

/// Waits until the server answers and prints its process ID, or returns the outcome of a server
/// that has ended.
fn wait_and_print(
    server: &mut Child,
    socket: UnixStream,
    is_json: bool,
) -> Result<CommandOutcome, ServerError> {
    if let Some(status) = wait_until_ready(socket, server).map_err(ServerError::Background)? {
        return outcome_of_end(status);
    }
    let process = server.id();
    print_line(&if is_json { json!({ "process": process }).to_string() } else { process.to_string() })?;
    Ok(CommandOutcome::Done)
}

/// Whether the server reads its zone or its configuration from standard input, which it then
/// inherits.
fn reads_standard_input(arguments: &ServeArguments) -> bool {
    let is_input = |path: &Path| STANDARD_INPUT_PATHS.iter().any(|name| path == Path::new(name));
    match &arguments.config {
        Some(path) => is_input(path),
        None => is_standard_stream(&arguments.file) || is_input(&arguments.file),
    }
}

/// Starts the same command without `--background`. The standard output of the server goes to
/// standard error: a caller that reads the output of this process to its end must not wait for the
/// server.
fn start(has_input: bool) -> io::Result<(Child, UnixStream)> {
    let (socket, inherited) = UnixStream::pair()?;
    // This process starts no other child, so no other child inherits the socket.
    fcntl(&inherited, FcntlArg::F_SETFD(FdFlag::empty()))?;
    let mut arguments: Vec<_> = env::args_os().skip(1).collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--background") {
        arguments.remove(at);
    }
    let mut command = Command::new(env::current_exe()?);
    command
        .args(arguments)
        .env(SOCKET_VARIABLE, inherited.as_raw_fd().to_string())
        .env_remove("NOTIFY_SOCKET");
    command.stdin(if has_input { Stdio::inherit() } else { Stdio::null() }).stdout(io::stderr());
    // The server gets its own process group, so that an interrupt from the terminal does not reach
    // it. A server that reads the terminal stays in the foreground group, because only foreground
    // processes can read the terminal.
    if !(has_input && io::stdin().is_terminal()) {
        command.process_group(0);
    }
    Ok((command.spawn()?, socket))
}

/// Waits until the server answers (`None`) or has ended (its exit status).
fn wait_until_ready(mut socket: UnixStream, server: &mut Child) -> io::Result<Option<ExitStatus>> {
    match socket.read_exact(&mut [0]) {
        Ok(()) => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => server.wait().map(Some),
        Err(error) => Err(error),
    }
}

/// The outcome if the server ended before it answered.
fn outcome_of_end(status: ExitStatus) -> Result<CommandOutcome, ServerError> {
    if let Some(signal) = status.signal() {
        return Err(ServerError::Killed(signal));
    }
    // A server that was stopped before it answered exits with 0. This is a failure here, because
    // the server does not answer.
    let code = status.code().and_then(|code| u8::try_from(code).ok()).filter(|code| *code > 0);
    Ok(CommandOutcome::ChildExited(code.unwrap_or(1)))
}

/// Stops a server after an error that prevented the report of its process ID.
fn stop_server(server: &mut Child) {
    if let (Ok(None), Ok(process)) = (server.try_wait(), i32::try_from(server.id())) {
        let _ = kill(Pid::from_raw(process), Signal::SIGTERM);
        let _ = server.wait();
    }
}

/// Reports to the command that started this server with `--background`, if any, that the server
/// answers.
///
/// # Errors
/// [`ServerError::Abandoned`] if that command has ended: no process has received the server's
/// process ID.
pub(crate) fn report_ready() -> Result<(), ServerError> {
    let number = env::var(SOCKET_VARIABLE).ok().and_then(|number| number.parse().ok());
    number.map_or(Ok(()), |number| send_inherited(number, b"1").map_err(|_| ServerError::Abandoned))
}
