//! `zone sign` with failures of its environment: killed, disk full, nothing writable, files that
//! disappear or cannot be read. The previous output stays unchanged, octet by octet, no new file
//! remains, and the message names the file and a remedy.
//!
//! strace injects the failures: it makes the n-th call fail or ends the program, identically in
//! every run. If strace or a separate mount namespace is not available, the test reports that it is
//! skipped.

use crate::common;
use common::{Ended, done, folder, generate_key, is_installed, nonesuch, run, snapshot, text};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

const ORIGIN: &str = "robust.example.";
const OLD: &str = "what was there before\n";
/// Names of the zone; writing its signed form needs several calls.
const NAMES: &str = "1500";

/// A directory with a zone, a key directory and an old output.
struct Bench {
    folder: tempfile::TempDir,
    key: String,
}

impl Bench {
    fn new() -> Self {
        let folder = folder();
        let zone = folder.path().join("zone");
        done(["zone", "generate", "--like", "tld", "--names", NAMES, "-o", ORIGIN, "-f", text(&zone)]);
        let key = generate_key(&folder.path().join("keys"), ORIGIN, "ed25519", &["--csk"]);
        let bench = Self { folder, key };
        bench.restore();
        bench
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Restores the old output.
    fn restore(&self) {
        fs::write(self.path().join("output"), OLD).expect("written");
    }

    fn arguments(&self) -> [&'static str; 8] {
        ["zone", "sign", "zone", "-o", ORIGIN, "--keys", "keys", "-f"]
    }

    fn sign(&self, output: &str) -> Command {
        let mut command = nonesuch(self.arguments());
        command.arg(output).current_dir(self.path());
        command
    }

    /// Signs under strace with `more` strace options.
    fn traced(&self, more: &[&str]) -> Ended {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-o", "/dev/null"]).args(more).arg(env!("CARGO_BIN_EXE_nonesuch"));
        let mut ended = run(command.args(self.arguments()).arg("output").current_dir(self.path()));
        // Removes the messages of strace about the paths that it looks for.
        let ours = ended.stderr.lines().filter(|line| !line.starts_with("strace: "));
        ended.stderr = ours.flat_map(|line| [line, "\n"]).collect();
        ended
    }

    /// Signs within a separate mount namespace, after the shell line `prepare`.
    fn in_namespace(&self, prepare: &str, output: &str) -> Ended {
        let sign = self.arguments().join(" ");
        let line = format!("{prepare} && exec {} {sign} {output}", env!("CARGO_BIN_EXE_nonesuch"));
        run(Command::new("unshare").args(["-rm", "sh", "-c", &line]).current_dir(self.path()))
    }

    /// All files of the directory except keys, with their contents.
    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let entries = fs::read_dir(self.path()).expect("a directory").map(|entry| entry.expect("an entry"));
        let files = entries.filter(|entry| entry.path().is_file());
        files
            .map(|entry| {
                let name = entry.file_name().to_string_lossy().into_owned();
                (name, fs::read(entry.path()).expect("a file"))
            })
            .collect()
    }

    /// Expects status 2, one line that names `file`, and unchanged files.
    #[track_caller]
    fn assert_refused(&self, case: &str, ended: &Ended, before: &BTreeMap<String, Vec<u8>>, file: &str) {
        assert_eq!(ended.status, 2, "{}", ended.text());
        assert_eq!(ended.stdout, "");
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        let named = format!("nonesuch: error: {file}: ");
        assert!(ended.stderr.starts_with(&named), "wanted {file:?}, got {}", ended.stderr);
        snapshot::check("zone sign", case, &ended.stderr.replace(&self.key, "KEY"));
        assert!(self.files() == *before, "files were changed: {:?}", self.files().keys());
    }

    #[track_caller]
    fn refused(&self, case: &str, command: &mut Command, file: &str) {
        let before = self.files();
        let ended = run(command);
        self.assert_refused(case, &ended, &before, file);
    }
}

/// Whether strace can trace a program here.
fn can_trace() -> bool {
    if !is_installed("strace") {
        return false;
    }
    let may = run(Command::new("strace").args(["-qq", "-o", "/dev/null", "true"])).status == 0;
    if !may {
        nonesuch_testing::record_skip("strace may not follow programs here");
    }
    may
}

/// Whether a mount namespace can be created here.
fn can_mount() -> bool {
    if !is_installed("unshare") {
        return false;
    }
    let may = run(Command::new("unshare").args(["-rm", "mount", "-t", "tmpfs", "none", "/mnt"])).status == 0;
    if !may {
        nonesuch_testing::record_skip("no mount namespace may be made here");
    }
    may
}

/// Killed at the n-th call of each kind that accesses files, for every n until the program ends
/// normally: the output is either the old file or the complete new file.
#[test]
fn killed_at_any_call_the_old_output_or_the_whole_new_one_stands() {
    if !can_trace() {
        return;
    }
    let bench = Bench::new();
    run(&mut bench.sign("output")).expect_done("zone sign");
    let new = fs::read(bench.path().join("output")).expect("the new output");
    let (mut old_stood, mut new_stood) = (0, 0);
    for call in ["openat", "write", "fsync", "renameat,rename,renameat2", "close"] {
        let mut killed = 0;
        for number in 1.. {
            bench.restore();
            let when = format!("inject={call}:signal=SIGKILL:when={number}");
            let ended = bench.traced(&["-e", &format!("trace={call}"), "-e", &when]);
            let output = fs::read(bench.path().join("output")).expect("an output");
            if ended.status == 0 {
                assert_eq!(output.len(), new.len());
                break;
            }
            killed += 1;
            if output == OLD.as_bytes() {
                old_stood += 1;
            } else {
                new_stood += 1;
                assert_eq!(output.len(), new.len(), "{call} {number}: neither old nor new");
                done(["zone", "verify", text(&bench.path().join("output"))]);
            }
            // Far more calls than the program makes.
            assert!(killed < 500, "{call}");
        }
        assert!(killed > 0, "{call} is never called");
    }
    assert!(old_stood > 10 && new_stood > 0, "{old_stood} {new_stood}");
    left_files_go(&bench);
}

/// The next run removes the temporary files of a killed run. It removes neither the locked file of
/// a running process nor files with other names.
fn left_files_go(bench: &Bench) {
    let beside = |bench: &Bench| -> Vec<String> {
        bench.files().into_keys().filter(|name| name.starts_with(".nonesuch-")).collect()
    };
    run(&mut bench.sign("output")).expect_done("zone sign");
    assert!(beside(bench).is_empty(), "{:?}", beside(bench));
    let rename = "renameat,rename,renameat2";
    bench.traced(&[
        "-e",
        &format!("trace={rename}"),
        "-e",
        &format!("inject={rename}:signal=SIGKILL:when=1"),
    ]);
    let left = beside(bench);
    assert!(left.len() == 1 && left[0].ends_with(".part"), "{left:?}");
    let other = ".nonesuch-notes";
    fs::write(bench.path().join(other), "").expect("written");
    let locked = fs::File::open(bench.path().join(&left[0])).expect("a file");
    locked.lock().expect("locked");
    run(&mut bench.sign("output")).expect_done("zone sign beside the file of another run");
    // The list is sorted, and one of the two names is random.
    let mut expected = [left[0].as_str(), other];
    expected.sort_unstable();
    assert_eq!(beside(bench), expected);
    drop(locked);
    run(&mut bench.sign("output")).expect_done("zone sign beside a file that was left");
    assert_eq!(beside(bench), [other]);
    done(["zone", "verify", text(&bench.path().join("output"))]);
}

/// Every write, and each call after the writes, fails in turn.
#[test]
fn errors_of_the_disk_leave_the_old_output() {
    if !can_trace() {
        return;
    }
    let bench = Bench::new();
    let before = bench.files();
    for (call, error) in [
        ("write", "ENOSPC"),
        ("write", "EDQUOT"),
        ("write", "EFBIG"),
        ("write", "EIO"),
        ("fsync", "EIO"),
        ("fsync", "ENOSPC"),
        ("renameat,rename,renameat2", "EACCES"),
        ("renameat,rename,renameat2", "EROFS"),
    ] {
        let inject = format!("inject={call}:error={error}:when=1");
        let ended = bench.traced(&["-e", &format!("trace={call}"), "-e", &inject]);
        bench.assert_refused(&format!("output file with {error}"), &ended, &before, "output");
    }
    // Every write in turn, up to that of the closing line.
    for number in 1.. {
        let inject = format!("inject=write:error=ENOSPC:when={number}");
        let ended = bench.traced(&["-e", "trace=write", "-e", &inject]);
        if ended.stderr.contains("standard output") {
            assert!(number > 1);
            break;
        }
        bench.assert_refused("output file with ENOSPC", &ended, &before, "output");
    }
}

#[test]
fn a_full_disk_leaves_the_old_output() {
    if !can_mount() {
        return;
    }
    let bench = Bench::new();
    fs::create_dir(bench.path().join("small")).expect("a directory");
    let prepare = "mount -t tmpfs -o size=64k none small && printf old > small/output";
    // A second program in the same namespace lists the remaining files.
    let sign = bench.arguments().join(" ");
    let line = format!(
        "{prepare} && {} {sign} small/output; echo \"status $?\"; ls -A small; cat small/output",
        env!("CARGO_BIN_EXE_nonesuch")
    );
    let ended = run(Command::new("unshare").args(["-rm", "sh", "-c", &line]).current_dir(bench.path()));
    assert_eq!(ended.stdout, "status 2\noutput\nold", "{}", ended.text());
    let error = ended.stderr.lines().find(|line| line.starts_with("nonesuch: error: small/output: "));
    snapshot::check("zone sign", "output on a full disk", error.expect("an error"));
}

/// The device that is always full, and a limit on the size of files.
#[test]
fn limits_of_length_are_told() {
    let bench = Bench::new();
    bench.refused("output to a full device", &mut bench.sign("/dev/full"), "/dev/full");
    let before = bench.files();
    let line = format!(
        "trap '' XFSZ; ulimit -f 16; exec {} {} output",
        env!("CARGO_BIN_EXE_nonesuch"),
        bench.arguments().join(" ")
    );
    let ended = run(Command::new("sh").args(["-c", &line]).current_dir(bench.path()));
    bench.assert_refused("output file above the size limit", &ended, &before, "output");
}

#[test]
fn a_read_only_folder_is_told() {
    if !can_mount() {
        return;
    }
    let bench = Bench::new();
    let before = bench.files();
    let ended = bench.in_namespace("mount --bind . . && mount -o remount,ro,bind . && cd \"$PWD\"", "output");
    bench.assert_refused("output in a read-only directory", &ended, &before, "output");
}

/// A read-only file is not replaced either, although the directory would permit it.
#[test]
fn a_read_only_file_is_not_replaced() {
    let bench = Bench::new();
    let output = bench.path().join("output");
    fs::set_permissions(&output, fs::Permissions::from_mode(0o444)).expect("set");
    bench.refused("read-only output file", &mut bench.sign("output"), "output");
}

#[test]
fn a_folder_in_the_outputs_place_is_told() {
    let bench = Bench::new();
    fs::create_dir(bench.path().join("place")).expect("a directory");
    bench.refused("directory as output file", &mut bench.sign("place"), "place");
    assert_eq!(fs::read_dir(bench.path().join("place")).expect("a directory").count(), 0);
}

#[test]
fn a_key_without_its_private_half_is_told() {
    let bench = Bench::new();
    fs::remove_file(bench.path().join("keys").join(format!("{}.private", bench.key))).expect("removed");
    let public = format!("keys/{}.key", bench.key);
    bench.refused("public key file alone", &mut bench.sign("output"), &public);
}

/// A key file that is listed does not exist any more, or cannot be read, when it is opened.
#[test]
fn a_key_file_that_vanishes_while_it_is_read_is_told() {
    if !can_trace() {
        return;
    }
    let bench = Bench::new();
    let before = bench.files();
    for suffix in [".key", ".private"] {
        let file = format!("keys/{}{suffix}", bench.key);
        for (call, error) in [("openat", "ENOENT"), ("openat", "EACCES"), ("read", "EIO")] {
            let inject = format!("inject={call}:error={error}");
            let ended = bench.traced(&["-P", &file, "-e", &format!("trace={call}"), "-e", &inject]);
            bench.assert_refused(&format!("{suffix} file with {error}"), &ended, &before, &file);
        }
    }
}

#[test]
fn a_zone_file_that_cannot_be_read_is_told() {
    let bench = Bench::new();
    let sign = |zone: &str| {
        let mut command = nonesuch(["zone", "sign", zone, "-o", ORIGIN, "--keys", "keys", "-f", "output"]);
        command.current_dir(bench.path());
        command
    };
    bench.refused("missing zone file", &mut sign("none"), "none");
    bench.refused("directory as zone file", &mut sign("keys"), "keys");
    if can_trace() {
        let before = bench.files();
        let ended = bench.traced(&["-P", "zone", "-e", "trace=openat", "-e", "inject=openat:error=EACCES"]);
        bench.assert_refused("zone file with EACCES", &ended, &before, "zone");
    }
}
