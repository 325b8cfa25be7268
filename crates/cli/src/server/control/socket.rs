//! Creation and removal of the control socket.
//!
//! The server may run as root at this point, while another user owns the directory of the socket
//! and can replace any entry of it at any time. Therefore no owner and no mode is changed through a
//! path that this user controls. The socket is created in a directory that only this process can
//! use. Its owner and mode are set through file descriptors, and it is renamed into place last.

use crate::files::parent_directory;
use crate::server::privileges::Account;
use nix::errno::Errno;
use nix::fcntl::{AtFlags, OFlag, open, openat, renameat};
use nix::sys::stat::{FchmodatFlags, FileStat, Mode, SFlag, fchmodat, fstat, fstatat, mkdirat};
use nix::unistd::{Gid, Group, Uid, UnlinkatFlags, fchownat, unlinkat};
use rustix::fs::removexattr;
use rustix::io::Errno as AttributeErrno;
use socket2::{Domain, SockAddr, Socket, Type};
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// Flags for a directory that is opened only to look up its entries.
const DIRECTORY_FLAGS: OFlag = OFlag::O_PATH.union(OFlag::O_DIRECTORY).union(OFlag::O_CLOEXEC);
/// The private directory is named `.cNNNNNNNN`, with a random hexadecimal number.
const PRIVATE_DIRECTORY_PREFIX: &str = ".c";
/// The socket's name in the private directory.
const PRIVATE_SOCKET_NAME: &str = "s";
/// The directory of a process's open file descriptors; its entries are paths that no user controls.
const DESCRIPTOR_DIRECTORY: &str = "/proc/self/fd";
/// Extended attribute with the ACL that new entries of a directory get (acl(5)).
const DEFAULT_ACL: &str = "system.posix_acl_default";
/// Maximum attempts to find an unused name.
const MAX_NAME_ATTEMPTS: usize = 16;

/// Why the control socket is not created.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum SocketError {
    #[error("{}: cannot create the control socket: {source}: create its directory, and make it writable \
        for this user", path.display())]
    Create { path: PathBuf, source: io::Error },
    #[error("{}: exists and is not a socket: name another path as control-socket, or move the file", path.display())]
    NotASocket { path: PathBuf },
    #[error("{}: a running server uses this control socket: stop it (`nonesuch ctl stop`), or name \
        another control socket", path.display())]
    InUse { path: PathBuf },
    #[error(
        "{}: a process listens on this control socket but accepts no connection: end it (`ss -xlp` \
            shows it), or name another socket as control-socket",
        path.display()
    )]
    Unresponsive { path: PathBuf },
    #[error("{}: cannot create the control socket: /proc is not mounted, and {} is needed: mount it", path.display(), needed.display())]
    NoProc { path: PathBuf, needed: &'static Path },
    #[error("group {group:?} does not exist: create it, or name another as control-group")]
    NoGroup { group: String },
}

impl SocketError {
    /// Whether the cause is the system and not the configuration, so that a later attempt may
    /// succeed.
    pub(crate) const fn is_caused_by_system(&self) -> bool {
        !matches!(self, Self::NotASocket { .. } | Self::NoGroup { .. })
    }
}

/// The owner and group of the control socket. They are looked up before anything is created.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SocketOwner {
    uid: Option<Uid>,
    gid: Option<Gid>,
}

impl SocketOwner {
    /// Owner of the socket of a server that runs as `account`; members of `group` may also use the
    /// socket.
    pub(crate) fn new(account: Option<&Account>, group: Option<&str>) -> Result<Self, SocketError> {
        let find = |name: &str| match Group::from_name(name) {
            Ok(Some(group)) => Ok(group.gid),
            _ => Err(SocketError::NoGroup { group: name.to_owned() }),
        };
        Ok(Self { uid: account.map(|account| account.uid), gid: group.map(find).transpose()? })
    }

    const fn mode(self) -> Mode {
        let owner = Mode::S_IRUSR.union(Mode::S_IWUSR);
        if self.gid.is_some() { owner.union(Mode::S_IRGRP).union(Mode::S_IWGRP) } else { owner }
    }
}

/// The control socket. It is removed on drop.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    listener: UnixListener,
    directory: OwnedFd,
    name: OsString,
    /// The socket that this server created. Before the removal, it is compared with the file at the
    /// path, because another server may have replaced the socket.
    identity: FileIdentity,
}

impl ControlSocket {
    /// Creates the socket at `path`. First removes an existing socket that no process listens at. A
    /// server that was killed leaves such a socket, and so does a server whose user may not write
    /// to the directory.
    pub(crate) fn bind(path: &Path, owner: SocketOwner) -> Result<Self, SocketError> {
        let failed = |source| SocketError::Create { path: path.to_path_buf(), source };
        check_proc(path, Path::new(DESCRIPTOR_DIRECTORY))?;
        let name = path.file_name().ok_or_else(|| failed(ErrorKind::InvalidInput.into()))?.to_owned();
        let directory = open(parent_directory(path), DIRECTORY_FLAGS, Mode::empty())
            .map_err(|errno| failed(errno.into()))?;
        remove_stale_socket(&directory, &name, path)?;
        let (listener, identity) = create(&directory, &name, owner).map_err(failed)?;
        Ok(Self { listener, directory, name, identity })
    }

    /// A duplicate of the listener.
    pub(crate) fn listener(&self) -> io::Result<UnixListener> {
        self.listener.try_clone()
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        let found = fstatat(&self.directory, &*self.name, AtFlags::AT_SYMLINK_NOFOLLOW);
        if found.is_ok_and(|found| identity_of(&found) == self.identity) {
            // If the directory belongs to another user, this fails and the next start removes the
            // socket.
            let _ = unlinkat(&self.directory, &*self.name, UnlinkatFlags::NoRemoveDir);
        }
    }
}

/// Identifies a file independently of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileIdentity {
    device: u64,
    inode: u64,
}

const fn identity_of(found: &FileStat) -> FileIdentity {
    FileIdentity { device: found.st_dev, inode: found.st_ino }
}

/// Checks that the directory of open files exists.
fn check_proc(path: &Path, needed: &'static Path) -> Result<(), SocketError> {
    if needed.exists() { Ok(()) } else { Err(SocketError::NoProc { path: path.to_path_buf(), needed }) }
}

/// Path of an open file for system calls that accept only a path. It contains no name that another
/// user controls.
fn descriptor_path(fd: &OwnedFd) -> PathBuf {
    Path::new(DESCRIPTOR_DIRECTORY).join(fd.as_raw_fd().to_string())
}

/// Removes a socket that no process listens at. Fails for every other kind of file and leaves it in
/// place.
fn remove_stale_socket(directory: &OwnedFd, name: &OsStr, path: &Path) -> Result<(), SocketError> {
    let failed = |source| SocketError::Create { path: path.to_path_buf(), source };
    let flags = OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let found = match openat(directory, name, flags, Mode::empty()) {
        Err(Errno::ENOENT) => return Ok(()),
        found => found.map_err(|errno| failed(errno.into()))?,
    };
    let mode = fstat(&found).map_err(|errno| failed(errno.into()))?.st_mode;
    if mode & SFlag::S_IFMT.bits() != SFlag::S_IFSOCK.bits() {
        return Err(SocketError::NotASocket { path: path.to_path_buf() });
    }
    match connect(&descriptor_path(&found)) {
        Ok(()) => Err(SocketError::InUse { path: path.to_path_buf() }),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            Err(SocketError::Unresponsive { path: path.to_path_buf() })
        }
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            let removed = unlinkat(directory, name, UnlinkatFlags::NoRemoveDir);
            removed.map_err(|errno| failed(errno.into()))
        }
        Err(error) => Err(failed(error)),
    }
}

/// Connects to the socket at `path`. Fails with [`ErrorKind::WouldBlock`] if the backlog of its
/// listener is full (unix(7)), because a blocking connect could wait forever.
fn connect(path: &Path) -> io::Result<()> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking(), None)?;
    socket.connect(&SockAddr::unix(path)?)
}

/// Creates the socket in a private directory, sets its owner and mode, and moves it to `name`.
fn create(directory: &OwnedFd, name: &OsStr, owner: SocketOwner) -> io::Result<(UnixListener, FileIdentity)> {
    let private = PrivateDirectory::create(directory)?;
    let listener = UnixListener::bind(descriptor_path(&private.fd).join(PRIVATE_SOCKET_NAME))?;
    if owner.uid.is_some() || owner.gid.is_some() {
        fchownat(&private.fd, PRIVATE_SOCKET_NAME, owner.uid, owner.gid, AtFlags::AT_SYMLINK_NOFOLLOW)?;
    }
    // Only this process can replace an entry here, so the path is not a link (fchmodat(2) has no
    // flag against following links before Linux 6.6).
    fchmodat(&private.fd, PRIVATE_SOCKET_NAME, owner.mode(), FchmodatFlags::FollowSymlink)?;
    let identity = identity_of(&fstatat(&private.fd, PRIVATE_SOCKET_NAME, AtFlags::AT_SYMLINK_NOFOLLOW)?);
    renameat(&private.fd, PRIVATE_SOCKET_NAME, directory, name)?;
    Ok((listener, identity))
}

/// A directory that only this user can use, in a directory that another user may own. That owner
/// can rename or replace the private directory, but cannot change its entries. It is opened once
/// and then used through its descriptor. It is removed on drop.
struct PrivateDirectory<'p> {
    fd: OwnedFd,
    /// Removes the directory on drop, after the drop of this struct has removed the socket in it.
    _entry: DirectoryEntry<'p>,
}

/// The entry of a private directory in its parent directory.
struct DirectoryEntry<'p> {
    parent: &'p OwnedFd,
    name: String,
}

impl<'p> DirectoryEntry<'p> {
    fn create(parent: &'p OwnedFd) -> io::Result<Self> {
        let mode = Mode::S_IRWXU;
        let name = (0..MAX_NAME_ATTEMPTS).find_map(|_| {
            let mut number = [0; 4];
            let filled = getrandom::fill(&mut number).map_err(|error| io::Error::other(error.to_string()));
            let name = format!("{PRIVATE_DIRECTORY_PREFIX}{:08x}", u32::from_ne_bytes(number));
            match filled.and_then(|()| mkdirat(parent, &*name, mode).map_err(io::Error::from)) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => None,
                created => Some(created.map(|()| name)),
            }
        });
        let name = name.unwrap_or_else(|| Err(ErrorKind::AlreadyExists.into()))?;
        Ok(Self { parent, name })
    }
}

impl Drop for DirectoryEntry<'_> {
    fn drop(&mut self) {
        // A directory that was moved is not removed.
        let _ = unlinkat(self.parent, &*self.name, UnlinkatFlags::RemoveDir);
    }
}

impl<'p> PrivateDirectory<'p> {
    fn create(parent: &'p OwnedFd) -> io::Result<Self> {
        Self::open(DirectoryEntry::create(parent)?)
    }

    fn open(entry: DirectoryEntry<'p>) -> io::Result<Self> {
        let fd = openat(entry.parent, &*entry.name, DIRECTORY_FLAGS | OFlag::O_NOFOLLOW, Mode::empty())?;
        let found = fstat(&fd)?;
        let is_private = found.st_mode & (Mode::S_IRWXG | Mode::S_IRWXO).bits() == 0;
        if found.st_uid != Uid::effective().as_raw() || !is_private {
            let message = "another process replaced the directory of the socket";
            return Err(io::Error::new(ErrorKind::PermissionDenied, message));
        }
        let directory = Self { fd, _entry: entry };
        remove_default_acl(&directory.fd)?;
        Ok(directory)
    }
}

/// Removes the default ACL of the directory, which new entries would inherit. Otherwise chmod(2) of
/// the socket for its group would activate the permissions in the inherited ACL.
fn remove_default_acl(directory: &OwnedFd) -> io::Result<()> {
    match removexattr(descriptor_path(directory), DEFAULT_ACL) {
        // The directory has no default ACL, or its file system does not support ACLs.
        Ok(()) | Err(AttributeErrno::NODATA | AttributeErrno::OPNOTSUPP) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

impl Drop for PrivateDirectory<'_> {
    fn drop(&mut self) {
        // The socket is still in the directory only if the rename failed.
        let _ = unlinkat(&self.fd, PRIVATE_SOCKET_NAME, UnlinkatFlags::NoRemoveDir);
    }
}

#[cfg(test)]
mod tests;
