//! `serve --background`, and the tour of the README that uses it. The test runs the tour as if it
//! were pasted into a shell.

use crate::common;
use common::configured::{ask, configure, plain_zone};
use common::{Ended, folder, free_address, nonesuch, run, run_on, snapshot, text};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::Rcode;
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit for a process to end.
const LIMIT: Duration = Duration::from_secs(20);

/// A server that is not a child of the test. It ends on drop.
struct Server(u32);

impl Server {
    fn is_running(&self) -> bool {
        // A process that has ended stays in the process table as a zombie until init reads its
        // status.
        let status = fs::read_to_string(format!("/proc/{}/stat", self.0)).unwrap_or_default();
        !status.is_empty() && !status.contains(") Z ")
    }

    fn signal(&self, signal: &str) {
        let _ = run(Command::new("kill").args([signal, &self.0.to_string()]));
    }

    #[track_caller]
    fn wait(&self) {
        let end = Instant::now() + LIMIT;
        while self.is_running() {
            assert!(Instant::now() < end, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.is_running() {
            self.signal("-KILL");
        }
    }
}

/// The server that `serve --background` started.
#[track_caller]
fn started(ended: &Ended) -> Server {
    assert_eq!(ended.status, 0, "{}", ended.stderr);
    Server(
        ended.stdout.trim_end().parse().unwrap_or_else(|_| panic!("a process ID alone: {:?}", ended.stdout)),
    )
}

fn zone(folder: &Path) -> std::path::PathBuf {
    let zone = folder.join("zone");
    fs::write(&zone, plain_zone("example.", 1)).expect("written");
    zone
}

#[test]
fn a_server_in_the_background_answers_when_the_command_returns() {
    let folder = folder();
    let (zone, address) = (zone(folder.path()), free_address());
    let listen = ["--listen", &address.to_string(), "--workers", "1"].map(str::to_owned);
    let serve = |file: &Path| {
        nonesuch(["serve", text(file), "--background"].map(str::to_owned).iter().chain(&listen))
    };
    // The standard output of the command is closed when the command ends, although the server
    // continues, because a shell reads it to its end.
    let log = fs::File::create(folder.path().join("log")).expect("a file");
    let piped = serve(&zone).stderr(log).output().expect("it runs");
    let server = started(&Ended {
        status: piped.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&piped.stdout).into_owned(),
        stderr: fs::read_to_string(folder.path().join("log")).expect("a log"),
    });
    assert_eq!(ask(address, "example.", Rtype::SOA).rcode(), Rcode::NOERROR);
    server.signal("-TERM");
    server.wait();
    // From standard input, by each of its names.
    for name in ["-", "/dev/stdin"] {
        let ended = run_on(&mut serve(Path::new(name)), &zone);
        let server = started(&ended);
        assert_eq!(ask(address, "example.", Rtype::SOA).rcode(), Rcode::NOERROR);
        server.signal("-TERM");
        server.wait();
    }
}

/// The process that `parent` started.
#[track_caller]
fn child_of(parent: u32) -> u32 {
    let end = Instant::now() + LIMIT;
    // After the name in parentheses: state and parent (proc_pid_stat(5)).
    let has_parent = |process: &u32| stat(*process).get(1) == Some(&parent.to_string());
    loop {
        let processes = fs::read_dir("/proc").expect("a list of processes").flatten();
        let mut processes = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        if let Some(child) = processes.find(has_parent) {
            return child;
        }
        assert!(Instant::now() < end, "it has no child");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The fields of /proc/PROCESS/stat after the name.
fn stat(process: u32) -> Vec<String> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    let fields = text.rsplit_once(") ").map(|(_, fields)| fields.split_whitespace().map(str::to_owned));
    fields.into_iter().flatten().collect()
}

/// `serve --background` that waits for a zone on standard input: the command and its server.
fn waiting() -> (std::process::Child, Server) {
    let mut command = nonesuch(["serve", "-", "--background", "--listen", "127.0.0.1:0", "--workers", "1"]);
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn();
    let child = child.expect("it starts");
    let server = Server(child_of(child.id()));
    (child, server)
}

/// If the socket had a name, any local user could report that the server answers. An interrupt from
/// the terminal goes to the whole process group of a later command.
#[test]
fn a_background_server_reports_to_a_socket_without_a_name_and_has_its_own_process_group() {
    let (mut command, server) = waiting();
    let named = fs::read_to_string("/proc/net/unix").expect("a list of sockets");
    assert!(!named.contains("nonesuch-background"), "{named}");
    command.stdin.take().expect("a pipe").write_all(plain_zone("example.", 1).as_bytes()).expect("written");
    let output = command.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim_end(), server.0.to_string());
    // State, parent, process group.
    assert_eq!(stat(server.0).get(2), Some(&server.0.to_string()));
    server.signal("-TERM");
    server.wait();
}

#[test]
fn a_background_server_ends_where_nobody_has_learnt_its_process_id() {
    let (mut command, server) = waiting();
    let mut input = command.stdin.take().expect("a pipe");
    command.kill().expect("a signal");
    command.wait().expect("it ends");
    assert!(server.is_running());
    input.write_all(plain_zone("example.", 1).as_bytes()).expect("written");
    drop(input);
    server.wait();
    // The process ID cannot be printed.
    let (folder, address) = (folder(), free_address());
    let zone = zone(folder.path());
    let mut command = nonesuch(["serve", text(&zone), "--background", "--listen", &address.to_string()]);
    let full = fs::File::options().write(true).open("/dev/full").expect("a device");
    let ended = command.stdout(full).output().expect("it runs");
    assert_eq!(ended.status.code(), Some(2), "{}", String::from_utf8_lossy(&ended.stderr));
    std::net::TcpListener::bind(address).expect("nobody listens there");
}

#[test]
fn a_configured_server_in_the_background_is_controlled() {
    let folder = folder();
    zone(folder.path());
    let path = configure(folder.path(), "[zone.\"example.\"]\nfile = \"zone\"\n");
    let ended = run(&mut nonesuch(["serve", "--config", text(&path), "--background", "--json"]));
    let value: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.text()));
    let server = Server(value["process"].as_u64().expect("a number") as u32);
    let ctl = |command: &[&str]| run(&mut nonesuch([&["ctl", "--config", text(&path)], command].concat()));
    let status = ctl(&["status"]).expect_done("status");
    assert!(status.stdout.contains("zones: 1 served"), "{}", status.stdout);
    // After a reload, no process waits for a report, which is not a fault.
    ctl(&["reload"]).expect_done("reload");
    ctl(&["stop"]).expect_done("stop");
    server.wait();
}

#[test]
fn a_server_that_does_not_start_in_the_background_gives_its_status() {
    let folder = folder();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let zone = zone(folder.path());
    let no_zone = folder.path().join("none");
    let unsound = folder.path().join("c.toml");
    fs::write(&unsound, "version = 1\nlisten = 5\n").expect("written");
    for (case, arguments, status, named) in [
        ("address in use", vec!["serve", text(&zone), "--listen", &address], 3, address.as_str()),
        ("missing zone file", vec!["serve", text(&no_zone)], 2, text(&no_zone)),
        ("malformed list", vec!["serve", "--config", text(&unsound)], 2, "c.toml:2:10: listen: "),
    ] {
        let ended = run(&mut nonesuch(arguments.iter().chain(&["--background"])));
        assert_eq!(ended.status, status, "{arguments:?} {}", ended.text());
        assert!(ended.stderr.contains(named) && ended.stdout.is_empty(), "{}", ended.text());
        // Depending on the limits of the system, a warning precedes the error.
        let error = ended.stderr.find("nonesuch: error: ").map_or("", |start| &ended.stderr[start..]);
        snapshot::check("serve", &format!("--background: {case}"), error);
    }
}

/// The commands of the tour, without the first block, which builds the program.
fn tour() -> String {
    let readme = include_str!("../../../../README.md");
    let (_, section) = readme.split_once("## A quick tour\n").expect("the section");
    let section = section.split("\n## ").next().expect("its end");
    let (build, rest) = section.split_once("\n\nPaste the rest").expect("what is not pasted");
    assert_eq!(build.trim(), "cargo build --release && export PATH=$PWD/target/release:$PATH");
    let lines = rest.lines().filter_map(|line| line.strip_prefix("    "));
    lines.fold(String::new(), |tour, line| tour + line + "\n")
}

/// A shell reads the tour from its standard input, like pasted text, and ends at the first command
/// that fails.
#[test]
fn the_tour_of_the_readme_runs_as_one_script() {
    let folder = folder();
    let script = folder.path().join("script");
    // If the tour fails, its server is ended. The last line is read only if no command has consumed
    // it as input.
    let before = "trap 'test $? = 0 || kill $server || nonesuch ctl --socket control stop' EXIT";
    let after = "echo the tour has ended";
    fs::write(&script, format!("{before}\n{}{after}\n", tour())).expect("written");
    let program = nonesuch([""; 0]);
    let programs = Path::new(program.get_program()).parent().expect("a directory");
    let path = std::env::var("PATH").unwrap_or_default();
    let mut shell = Command::new("sh");
    shell.arg("-e").current_dir(folder.path()).env("PATH", format!("{}:{path}", programs.display()));
    shell.env("PORT", free_address().port().to_string());
    let ended = run_on(&mut shell, &script);
    assert_eq!(ended.status, 0, "{}", ended.text());
    assert!(ended.stdout.ends_with("the tour has ended\n"), "{}", ended.text());
    for said in [" answered, ", "NXNAME"] {
        assert!(ended.stdout.contains(said), "{said}: {}", ended.text());
    }
    // `ctl stop` is the last command of the tour.
    snapshot::check("ctl", "stop of the tour", ended.stdout.lines().nth_back(1).unwrap_or_default());
}
