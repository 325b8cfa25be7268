//! Creating and removing the control socket.
//!
//! The server may run as root at this point, while another user owns the directory of the socket and can replace any entry of it at
//! any time. So no owner and no mode is changed by a path that this user controls: the socket is created, given away and restricted
//! in a directory that only this process can use, by file descriptor, and renamed into place last.

use super::serve_control;
use super::serve_node::Node;
use super::serve_system::Account;
use crate::error::Failure;
use crate::files::folder_of;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat, renameat};
use nix::sys::stat::{FchmodatFlags, FileStat, Mode, SFlag, fchmodat, fstat, fstatat, mkdirat};
use nix::unistd::{Gid, Group, Uid, UnlinkatFlags, fchownat, unlinkat};
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A directory, opened to look up its entries only.
const DIRECTORY: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);
/// The private directory is named `.cNNNNNNNN`, with a random hexadecimal number.
const PRIVATE_PREFIX: &str = ".c";
/// The socket's name in the private directory.
const PRIVATE_NAME: &str = "s";
/// Attempts to find a name that is free.
const ATTEMPTS: usize = 16;

/// The owner and the group of the control socket, looked up before anything is created.
#[derive(Clone, Copy, Debug)]
pub(super) struct Owner {
    uid: Option<Uid>,
    gid: Option<Gid>,
}

impl Owner {
    /// The socket of a server that runs as `account`, which members of `group` may use too.
    pub(super) fn new(account: Option<&Account>, group: Option<&str>) -> Result<Self, Failure> {
        let find = |name: &str| match Group::from_name(name) {
            Ok(Some(group)) => Ok(group.gid),
            _ => Err(Failure::NoGroup { group: name.to_owned() }),
        };
        Ok(Self { uid: account.map(|account| account.uid), gid: group.map(find).transpose()? })
    }

    const fn mode(self) -> Mode {
        let owner = Mode::S_IRUSR.union(Mode::S_IWUSR);
        if self.gid.is_some() { owner.union(Mode::S_IRGRP).union(Mode::S_IWGRP) } else { owner }
    }
}

/// The control socket; removed when dropped.
#[derive(Debug)]
pub(super) struct ControlSocket {
    listener: UnixListener,
    directory: OwnedFd,
    name: OsString,
    /// Device and inode of the socket: another server may have replaced it.
    identity: (u64, u64),
}

impl ControlSocket {
    /// Creates the socket at `path`. A socket that no process listens at is removed first: a server that was killed leaves it, and so
    /// does a server whose user may not write to the directory.
    pub(super) fn bind(path: &Path, owner: Owner) -> Result<Self, Failure> {
        let failed = |source| Failure::ControlSocket { path: path.to_path_buf(), source };
        let name = path.file_name().ok_or_else(|| failed(ErrorKind::InvalidInput.into()))?.to_owned();
        let directory =
            open(folder_of(path), DIRECTORY, Mode::empty()).map_err(|errno| failed(errno.into()))?;
        remove_unused(&directory, &name, path)?;
        let (listener, identity) = create(&directory, &name, owner).map_err(failed)?;
        Ok(Self { listener, directory, name, identity })
    }

    /// Answers requests in threads of their own, as long as the process runs.
    pub(super) fn serve(&self, node: Arc<Node>) -> io::Result<()> {
        serve_control::serve(self.listener.try_clone()?, node)
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let found = fstatat(&self.directory, &*self.name, AtFlags::AT_SYMLINK_NOFOLLOW);
        if found.is_ok_and(|found| identity_of(&found) == self.identity) {
            // In a directory of another user it remains, and the next start removes it.
            let _ = unlinkat(&self.directory, &*self.name, UnlinkatFlags::NoRemoveDir);
        }
    }
}

const fn identity_of(found: &FileStat) -> (u64, u64) {
    (found.st_dev, found.st_ino)
}

/// The path by which system calls that take a path only reach an open file, without looking up a name that a user controls.
fn path_of(fd: &OwnedFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

/// Removes a socket that no process listens at. Everything else there belongs to someone, and remains.
fn remove_unused(directory: &OwnedFd, name: &OsStr, path: &Path) -> Result<(), Failure> {
    let failed = |source| Failure::ControlSocket { path: path.to_path_buf(), source };
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let found = match openat(directory, name, flags, Mode::empty()) {
        Err(Errno::ENOENT) => return Ok(()),
        found => found.map_err(|errno| failed(errno.into()))?,
    };
    let mode = fstat(&found).map_err(|errno| failed(errno.into()))?.st_mode;
    if mode & SFlag::S_IFMT.bits() != SFlag::S_IFSOCK.bits() {
        return Err(Failure::ControlPlace { path: path.to_path_buf() });
    }
    match UnixStream::connect(path_of(&found)) {
        Ok(_) => Err(Failure::ControlTaken { path: path.to_path_buf() }),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            let removed = unlinkat(directory, name, UnlinkatFlags::NoRemoveDir);
            removed.map_err(|errno| failed(errno.into()))
        }
        Err(error) => Err(failed(error)),
    }
}

/// Creates the socket in a private directory, with its owner and mode, and moves it to `name`.
fn create(directory: &OwnedFd, name: &OsStr, owner: Owner) -> io::Result<(UnixListener, (u64, u64))> {
    let private = PrivateDirectory::create(directory)?;
    let listener = UnixListener::bind(path_of(&private.fd).join(PRIVATE_NAME))?;
    if owner.uid.is_some() || owner.gid.is_some() {
        fchownat(&private.fd, PRIVATE_NAME, owner.uid, owner.gid, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    }
    // Only this process can replace an entry here, so that this follows no link (fchmodat(2) has no flag for it before Linux 6.6).
    fchmodat(&private.fd, PRIVATE_NAME, owner.mode(), FchmodatFlags::FollowSymlink)?;
    let identity = identity_of(&fstatat(&private.fd, PRIVATE_NAME, AtFlags::AT_SYMLINK_NOFOLLOW)?);
    renameat(&private.fd, PRIVATE_NAME, directory, name)?;
    Ok((listener, identity))
}

/// A directory that only this user can use, in a directory that another user may own. The owner can rename it or replace it, but
/// cannot change its entries: it is opened once, and used by its descriptor. Removed when dropped.
struct PrivateDirectory<'p> {
    fd: OwnedFd,
    parent: &'p OwnedFd,
    name: String,
}

impl<'p> PrivateDirectory<'p> {
    fn create(parent: &'p OwnedFd) -> io::Result<Self> {
        let mode = Mode::S_IRWXU;
        let name = (0..ATTEMPTS).find_map(|_| {
            let mut number = [0; 4];
            let filled = getrandom::fill(&mut number).map_err(|error| io::Error::other(error.to_string()));
            let name = format!("{PRIVATE_PREFIX}{:08x}", u32::from_ne_bytes(number));
            match filled.and_then(|()| mkdirat(parent, &*name, mode).map_err(io::Error::from)) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => None,
                made => Some(made.map(|()| name)),
            }
        });
        let name = name.unwrap_or_else(|| Err(ErrorKind::AlreadyExists.into()))?;
        let fd = openat(parent, &*name, DIRECTORY | OFlag::O_NOFOLLOW, Mode::empty())?;
        let found = fstat(&fd)?;
        let is_closed = found.st_mode & (Mode::S_IRWXG | Mode::S_IRWXO).bits() == 0;
        if found.st_uid != Uid::effective().as_raw() || !is_closed {
            let message = "another process replaced the directory that the socket is created in";
            return Err(io::Error::new(ErrorKind::PermissionDenied, message));
        }
        Ok(Self { fd, parent, name })
    }
}

impl Drop for PrivateDirectory<'_> {
    fn drop(&mut self) {
        // The socket is in it only where it could not be renamed. A directory that was moved remains.
        let _ = unlinkat(&self.fd, PRIVATE_NAME, UnlinkatFlags::NoRemoveDir);
        let _ = unlinkat(self.parent, &*self.name, UnlinkatFlags::RemoveDir);
    }
}
