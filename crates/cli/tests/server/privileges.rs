//! A server that starts as root and becomes another user. Before that, it gives no other file to
//! this user, whatever the user does in its own directories.

use crate::common;
use crate::common::certificates;
use common::configured::{ask, head, plain_zone, write_beside};
use common::{folder, is_installed, nonesuch, run, text};
use nonesuch_proto::Rtype;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

const USER: &str = "nobody";
/// The group that may use the control socket.
const GROUP: &str = "daemon";

/// The user and group IDs of [`USER`], if this test can start a server as root under strace.
fn user_ids() -> Option<(u32, u32)> {
    let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    if !is_root {
        nonesuch_testing::record_skip("only root can become another user");
        return None;
    }
    if !is_installed("strace") || !Command::new("strace").arg("true").output().ok()?.status.success() {
        nonesuch_testing::record_skip("strace cannot be run");
        return None;
    }
    let user = nix::unistd::User::from_name(USER).ok()??;
    nix::unistd::Group::from_name(GROUP).ok()??;
    Some((user.uid.as_raw(), user.gid.as_raw()))
}

fn give(path: &Path, (uid, gid): (u32, u32)) {
    std::os::unix::fs::chown(path, Some(uid), Some(gid)).expect("given away");
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

/// Directories of root and of [`USER`], and the configuration of a server with its control socket
/// in a directory of [`USER`].
struct Scene {
    home: tempfile::TempDir,
    configuration: PathBuf,
}

impl Scene {
    fn new(ids: (u32, u32), server: &str, tables: &str) -> Self {
        let home = folder();
        let dir = home.path();
        set_mode(dir, 0o755);
        let server = format!("user = \"{USER}\"\ncontrol-group = \"{GROUP}\"\n{server}");
        let head = head(dir).replace("\"control\"", "\"run/control\"");
        for owned in ["run", "state"] {
            fs::create_dir_all(dir.join(owned)).expect("a directory");
            give(&dir.join(owned), ids);
        }
        fs::create_dir(dir.join("precious")).expect("a directory");
        fs::write(dir.join("precious/s"), "precious").expect("written");
        set_mode(&dir.join("precious/s"), 0o600);
        write_beside(&dir.join("a"), &plain_zone("a.example.", 1));
        let configuration = dir.join("c.toml");
        let zone = "[zone.\"a.example.\"]\nfile = \"a\"\n";
        write_beside(&configuration, &format!("{head}{server}{zone}{tables}"));
        Self { home, configuration }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// The server under strace with these options. The child process is the server itself.
    fn traced(&self, options: &[&str], more: &[&str]) -> Command {
        let mut command = Command::new("strace");
        command.args(["-D", "-f", "-qq", "-o", text(&self.path("trace"))]).args(options);
        command.arg(nonesuch([""]).get_program()).args(["serve", "--config", text(&self.configuration)]);
        command.args(more).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    }

    /// Asserts that root's files are unchanged.
    #[track_caller]
    fn assert_unchanged(&self, what: &str) {
        for (name, mode) in [("precious", 0o755), ("precious/s", 0o600)] {
            let found = fs::symlink_metadata(self.path(name)).expect("it is still there");
            assert_eq!((found.uid(), found.gid(), found.mode() & 0o777), (0, 0, mode), "{what}: {name}");
        }
        assert_eq!(common::listing(&self.path("precious")), ["s"], "{what}");
    }
}

/// Waits for the line with which the server reports that it is ready, or for the end of the server.
fn ready(child: &mut Child) -> Option<String> {
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map_while(Result::ok);
    lines.find(|line| line.starts_with("ready: "))
}

fn end(mut child: Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Replacements that the owner of the socket's directory makes for an entry that root has just
/// created.
#[derive(Clone, Copy, Debug)]
enum Attack {
    /// A link to a file of root in place of the socket.
    Socket,
    /// A link to a directory of root in place of the private directory.
    LinkToDirectory,
    /// A directory of the attacker, with a link to a file of root, in place of the private
    /// directory.
    OwnDirectory,
}

impl Attack {
    fn strike(self, scene: &Scene, ids: (u32, u32)) {
        let run = scene.path("run");
        let precious = scene.path("precious/s");
        for name in common::listing(&run) {
            let path = run.join(&name);
            let Ok(found) = fs::symlink_metadata(&path) else { continue };
            match self {
                Self::Socket if name == "control" && found.file_type().is_socket() => {
                    let _ = fs::rename(&path, run.join("moved")).and_then(|()| symlink(&precious, &path));
                }
                Self::LinkToDirectory | Self::OwnDirectory if name.starts_with(".c") && found.uid() == 0 => {
                    let moved = run.join(format!("moved{name}"));
                    if found.is_dir() && fs::rename(&path, moved).is_ok() {
                        self.replace_directory(&path, &precious, ids);
                    }
                }
                _ => {}
            }
        }
    }

    fn replace_directory(self, path: &Path, precious: &Path, ids: (u32, u32)) {
        if let Self::LinkToDirectory = self {
            let _ = symlink(precious.parent().expect("a directory"), path);
            std::os::unix::fs::lchown(path, Some(ids.0), Some(ids.1)).expect("given away");
        } else if fs::create_dir(path).is_ok() {
            give(path, ids);
            let _ = symlink(precious, path.join("s"));
        }
    }
}

#[test]
fn the_owner_of_the_sockets_directory_gains_no_file_of_root() {
    let Some(ids) = user_ids() else { return };
    // The delay makes each interval in which a name could be replaced long enough.
    let calls = "rename,renameat,renameat2,mkdir,mkdirat,bind,chmod,chown,fchmodat,fchownat";
    let (trace, inject) = (format!("trace={calls}"), format!("inject={calls}:delay_exit=20000"));
    for attack in [Attack::Socket, Attack::LinkToDirectory, Attack::OwnDirectory] {
        let scene = Scene::new(ids, "", "");
        let mut child = scene.traced(&["-e", &trace, "-e", &inject], &[]).spawn().expect("strace starts");
        let is_done = AtomicBool::new(false);
        std::thread::scope(|threads| {
            threads.spawn(|| {
                let end = Instant::now() + Duration::from_secs(20);
                while !is_done.load(Relaxed) && Instant::now() < end {
                    attack.strike(&scene, ids);
                }
            });
            let _ = ready(&mut child);
            is_done.store(true, Relaxed);
        });
        end(child);
        let moved = common::listing(&scene.path("run"));
        assert!(
            moved.iter().any(|name| name.starts_with("moved")),
            "{attack:?}: it came too late: {moved:?}"
        );
        scene.assert_unchanged(&format!("{attack:?}"));
    }
}

/// System calls that change a file, a directory or its entries, with their names in a trace.
const CHANGES: [&str; 30] = [
    "chown",
    "lchown",
    "fchownat",
    "chmod",
    "fchmodat",
    "fchmodat2",
    "mkdir",
    "mkdirat",
    "rmdir",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "truncate",
    "utime",
    "utimes",
    "utimensat",
    "futimesat",
    "setxattr",
    "lsetxattr",
    "removexattr",
    "mknod",
    "mknodat",
    "creat",
    "mount",
];

/// Why a system call of root is not permitted: it changes something through a path that another
/// user may control.
fn complaint(call: &str) -> Option<String> {
    let (name, arguments) = call.split_once('(')?;
    if call.contains("= -1 ") {
        return None;
    }
    let is_write =
        |flags: &str| ["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC"].iter().any(|flag| flags.contains(flag));
    let is_allowed = match name {
        "open" | "openat" | "openat2" => !is_write(arguments) || arguments.contains("\"/dev/"),
        "bind" => !arguments.contains("AF_UNIX") || arguments.contains("sun_path=\"/proc/self/fd/"),
        "removexattr" => arguments.starts_with("\"/proc/self/fd/"),
        // Permitted: through a descriptor, with names that contain no directory.
        _ if CHANGES.contains(&name) => {
            name.contains("at")
                && !arguments.contains("AT_FDCWD")
                && !arguments.split('"').skip(1).step_by(2).any(|path| path.contains('/'))
        }
        _ => true,
    };
    (!is_allowed).then(|| call.to_owned())
}

/// The system calls in a trace before the process becomes another user, without process IDs.
fn calls_of_root(trace: &str) -> (Vec<&str>, bool) {
    let calls = trace
        .lines()
        .map(|line| line.trim_start_matches(|letter: char| letter.is_ascii_digit()).trim_start());
    let mut root = Vec::new();
    for call in calls {
        if call.starts_with("setuid(") || call.starts_with("setresuid(") {
            return (root, true);
        }
        root.push(call);
    }
    (root, false)
}

#[test]
fn root_changes_nothing_by_a_path_before_it_becomes_another_user() {
    let Some(ids) = user_ids() else { return };
    let port = std::net::TcpListener::bind("127.0.0.1:0")
        .and_then(|bound| bound.local_addr())
        .expect("a port")
        .port();
    let server = format!(
        "metrics-listen = \"127.0.0.1:{port}\"\nlisten-tls = [\"127.0.0.1:0\"]\ntls-certificate = \"server.pem\"\ntls-key = \"server.key\"\n\
         include = [\"more/*.toml\"]\n"
    );
    let tables = "[key.\"k.\"]\nsecret-file = \"secret\"\n[cookies]\nsecret-file = \"cookies\"\n[dnstap]\nfile = \"run/tap\"\n";
    let scene = Scene::new(ids, &server, tables);
    certificates::Certificates::make(scene.home.path());
    fs::write(scene.path("secret"), "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=").expect("written");
    fs::write(scene.path("cookies"), "00112233445566778899aabbccddeeff\n").expect("written");
    fs::create_dir(scene.path("more")).expect("a directory");
    fs::write(scene.path("more/b.toml"), "[zone.\"b.example.\"]\nfile = \"../a\"\n").expect("written");
    for readable in ["secret", "cookies", "server.key", "more/b.toml"] {
        set_mode(&scene.path(readable), 0o644);
    }
    let trace = "trace=%file,bind,setuid,setresuid";
    for more in [&["--check"][..], &[]] {
        let mut child = scene.traced(&["-e", trace], more).spawn().expect("strace starts");
        if more.is_empty() {
            let line = ready(&mut child).expect("the server is ready");
            let address = line.split(' ').nth(3).expect("an address").parse().expect("an address");
            assert!(ask(address, "a.example.", Rtype::SOA).rcode().0 == 0);
            let socket = fs::symlink_metadata(scene.path("run/control")).expect("a socket");
            assert!(socket.file_type().is_socket());
            assert_eq!((socket.uid(), socket.mode() & 0o777), (ids.0, 0o660));
            run(&mut nonesuch(["ctl", "--config", text(&scene.configuration), "stop"])).expect_done("stop");
        }
        child.wait().expect("it ends");
        let trace = fs::read_to_string(scene.path("trace")).expect("a trace");
        let (calls, has_changed) = calls_of_root(&trace);
        assert!(has_changed, "{more:?}: it has not become {USER}: {trace}");
        assert!(calls.iter().any(|call| call.contains("server.key")), "{more:?}: the key was not read");
        let complaints: Vec<String> = calls.iter().filter_map(|call| complaint(call)).collect();
        assert!(complaints.is_empty(), "{more:?}: {complaints:#?}");
        assert_eq!(
            more.is_empty(),
            calls.iter().any(|call| call.starts_with("renameat")),
            "{more:?}: {calls:#?}"
        );
    }
    scene.assert_unchanged("a start");
}

/// Tests the check itself.
#[test]
fn calls_that_follow_a_path_are_found_in_a_trace() {
    for (call, is_allowed) in [
        ("chown(\"/run/nonesuch/control\", 65534, -1) = 0", false),
        ("chmod(\"control\", 0660) = 0", false),
        ("fchmodat(AT_FDCWD, \"/run/nonesuch/control\", 0660) = 0", false),
        ("fchownat(9, \"run/s\", 65534, -1, 0) = 0", false),
        ("fchownat(9, \"s\", 65534, -1, AT_SYMLINK_NOFOLLOW) = 0", true),
        ("rename(\"/run/.c/s\", \"/run/control\") = 0", false),
        ("renameat(9, \"s\", 8, \"control\") = 0", true),
        ("removexattr(\"/proc/self/fd/9\", \"system.posix_acl_default\") = 0", true),
        ("removexattr(\"/run/.c\", \"system.posix_acl_default\") = 0", false),
        ("openat(AT_FDCWD, \"/run/pid\", O_WRONLY|O_CREAT|O_TRUNC, 0644) = 9", false),
        ("openat(AT_FDCWD, \"/etc/nonesuch/key\", O_RDONLY|O_CLOEXEC) = 9", true),
        ("bind(9, {sa_family=AF_UNIX, sun_path=\"/run/c\"}, 17) = 0", false),
    ] {
        assert_eq!(complaint(call).is_none(), is_allowed, "{call}");
    }
}
