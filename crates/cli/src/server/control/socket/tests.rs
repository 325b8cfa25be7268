//! Tests of the control socket with unusual directories and unusual files at its path.

use super::*;
use rustix::fs::{XattrFlags, getxattr, setxattr};
use socket2::{Domain, SockAddr, Socket, Type};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;

/// Time limit for a start that must not hang.
const LIMIT: Duration = Duration::from_secs(20);

fn owner_with_group() -> SocketOwner {
    SocketOwner { uid: None, gid: Some(Gid::effective()) }
}

/// A default ACL in the form of the extended attribute (acl(5)): read, write and search for the
/// user 65534.
fn default_acl() -> Vec<u8> {
    const ANY: u32 = u32::MAX;
    let entries = [(0x01, 7, ANY), (0x02, 7, 65_534), (0x04, 7, ANY), (0x10, 7, ANY), (0x20, 0, ANY)];
    let mut octets = 2u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        octets.extend_from_slice(&u16::to_le_bytes(tag));
        octets.extend_from_slice(&u16::to_le_bytes(permissions));
        octets.extend_from_slice(&u32::to_le_bytes(id));
    }
    octets
}

/// chmod(2) of a file with an ACL changes the permissions of other users in the ACL.
#[test]
fn a_default_acl_of_the_directory_does_not_reach_the_socket() {
    let directory = tempfile::tempdir().unwrap();
    if let Err(error) = setxattr(directory.path(), DEFAULT_ACL, &default_acl(), XattrFlags::empty()) {
        nonesuch_testing::record_skip(&format!("this file system has no ACLs: {error}"));
        return;
    }
    let path = directory.path().join("control");
    let socket = ControlSocket::bind(&path, owner_with_group()).unwrap();
    let mut octets = [0; 256];
    let found = getxattr(&path, "system.posix_acl_access", &mut octets);
    assert_eq!(found, Err(rustix::io::Errno::NODATA));
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
    // The ACL of the directory is unchanged.
    assert!(getxattr(directory.path(), DEFAULT_ACL, &mut octets).is_ok());
    drop(socket);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

/// connect(2) waits forever if the backlog of the socket is full and its process accepts no
/// connection.
#[test]
fn a_socket_with_a_full_backlog_does_not_hang_the_start() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("control");
    let address = SockAddr::unix(&path).unwrap();
    let stuck = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
    stuck.bind(&address).unwrap();
    stuck.listen(0).unwrap();
    let mut waiting = Vec::new();
    let full = loop {
        let client = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None).unwrap();
        match client.connect(&address) {
            Ok(()) => waiting.push(client),
            Err(error) => break error,
        }
    };
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    let (send, outcome) = mpsc::channel();
    let of_thread = path.clone();
    std::thread::spawn(move || send.send(ControlSocket::bind(&of_thread, owner_with_group()).map(drop)));
    let error = outcome.recv_timeout(LIMIT).expect("the start does not hang").unwrap_err();
    assert!(matches!(&error, SocketError::Unresponsive { path: found } if *found == path), "{error:?}");
    // After the process has ended, the socket is replaced.
    drop(stuck);
    assert!(ControlSocket::bind(&path, owner_with_group()).is_ok());
}

#[test]
fn a_system_without_proc_is_reported() {
    let socket = Path::new("/run/control");
    assert!(check_proc(socket, Path::new(DESCRIPTOR_DIRECTORY)).is_ok());
    let missing = Path::new("/nowhere/self/fd");
    let error = check_proc(socket, missing).unwrap_err();
    assert!(
        matches!(&error, SocketError::NoProc { path, needed } if path == socket && *needed == missing),
        "{error:?}"
    );
}

/// Set for the process that has a low limit on open files.
const FEW_FILES: &str = "NONESUCH_TEST_FEW_FILES";

/// Does nothing except in the process that the next test starts.
#[test]
fn a_start_without_a_free_descriptor() {
    let Some(directory) = std::env::var_os(FEW_FILES) else { return };
    let limit = nix::sys::resource::Resource::RLIMIT_NOFILE;
    nix::sys::resource::setrlimit(limit, 64, 64).unwrap();
    let parent = open(Path::new(&directory), DIRECTORY_FLAGS, Mode::empty()).unwrap();
    let entry = DirectoryEntry::create(&parent).unwrap();
    assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
    let held: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
    let error = PrivateDirectory::open(entry).map(drop).unwrap_err();
    drop(held);
    println!("the start failed: {error}");
}

#[test]
fn a_start_that_fails_leaves_no_private_directory() {
    let directory = tempfile::tempdir().unwrap();
    let test = "server::control::socket::tests::a_start_without_a_free_descriptor";
    let ended = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env(FEW_FILES, directory.path())
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&ended.stdout);
    assert!(printed.contains("the start failed: ") && printed.contains("Too many open files"), "{printed}");
    let left: Vec<_> = fs::read_dir(directory.path()).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
}
