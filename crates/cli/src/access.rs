//! Access of a user to files and directories. For the user of this process, the system is queried;
//! for another user, the file modes are evaluated.

use nix::errno::Errno;
use nix::unistd::{AccessFlags, Gid, Group, Uid, User, access, getgrouplist};
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Permission to read, as the mode bit of the owner.
pub(crate) const READ: u32 = 0o400;
/// Permission to write, as the mode bit of the owner.
pub(crate) const WRITE: u32 = 0o200;
/// Permission to enter a directory, as the mode bit of the owner.
pub(crate) const SEARCH: u32 = 0o100;

/// Why the user cannot be found.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum UserError {
    #[error("{name:?}: cannot look up the user: {source}")]
    LookUp { name: String, source: Errno },
    #[error("{name:?} does not exist: create it (`adduser --system --group {name}`), or name another")]
    Missing { name: String },
    #[error("{name:?} is not a valid user name")]
    Name { name: String },
}

/// Why a user cannot read a file or directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum AccessError {
    #[error(
        "{}: the user {user} may not enter {}: chgrp {group} {} and chmod g+x it, or move the file",
        path.display(), directory.display(), directory.display()
    )]
    DirectoryDenied { path: PathBuf, user: String, group: String, directory: PathBuf },
    #[error("{}: cannot be read: {source}{}", path.display(), read_remedy(source))]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: not a directory: name a directory", path.display())]
    NoDirectory { path: PathBuf },
    #[error("{}: is a directory: name a file", path.display())]
    Directory { path: PathBuf },
    #[error("{}: the user {user} may not read it: chgrp {group} {} and chmod {chmod_mode} it", path.display(), path.display())]
    Denied { path: PathBuf, user: String, group: String, chmod_mode: &'static str },
}

/// The remedy for a file that cannot be read.
pub(crate) fn read_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => ": create it, or name another path",
        io::ErrorKind::PermissionDenied => ": make it readable",
        _ => "",
    }
}

/// A user that accesses files.
#[derive(Debug)]
pub(crate) struct FileUser {
    pub(crate) name: String,
    group: String,
    /// The user ID and groups, if this is not the user of this process.
    other: Option<OtherUser>,
}

#[derive(Debug)]
struct OtherUser {
    uid: Uid,
    groups: Vec<Gid>,
}

impl FileUser {
    /// The user of this process.
    pub(crate) fn current() -> Self {
        let (uid, gid) = (Uid::effective(), Gid::effective());
        let name = User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name);
        Self { name, group: group_name(gid), other: None }
    }

    /// The user `name`; without a name, the user of this process.
    ///
    /// # Errors
    /// The user does not exist or cannot be looked up.
    pub(crate) fn find(name: Option<&str>) -> Result<Self, UserError> {
        let Some(name) = name else { return Ok(Self::current()) };
        let owned = || name.to_owned();
        let found = User::from_name(name).map_err(|source| UserError::LookUp { name: owned(), source })?;
        let user = found.ok_or_else(|| UserError::Missing { name: owned() })?;
        let c_name = CString::new(name).map_err(|_| UserError::Name { name: owned() })?;
        let groups = getgrouplist(&c_name, user.gid).unwrap_or_else(|_| vec![user.gid]);
        let is_own = user.uid == Uid::effective();
        let other = (!is_own).then_some(OtherUser { uid: user.uid, groups });
        Ok(Self { name: user.name, group: group_name(user.gid), other })
    }

    /// Whether this is not the user of this process, so that access is determined from file modes.
    pub(crate) const fn is_other(&self) -> bool {
        self.other.is_some()
    }

    /// Whether the user has all permissions in `wanted` for the file or directory at `path`. False
    /// if nothing exists there. `wanted` combines [`READ`], [`WRITE`] and [`SEARCH`].
    pub(crate) fn has_access(&self, path: &Path, wanted: u32) -> bool {
        let Some(other) = &self.other else {
            let flags = [(READ, AccessFlags::R_OK), (WRITE, AccessFlags::W_OK), (SEARCH, AccessFlags::X_OK)];
            let flags = flags.into_iter().filter(|(bit, _)| wanted & bit != 0).map(|(_, flag)| flag);
            return access(path, flags.collect()).is_ok();
        };
        let Ok(metadata) = fs::metadata(path) else { return false };
        let shift = if metadata.uid() == other.uid.as_raw() {
            0
        } else if other.groups.iter().any(|group| group.as_raw() == metadata.gid()) {
            3
        } else {
            6
        };
        other.uid.is_root() || metadata.permissions().mode() << shift & wanted == wanted
    }

    /// The first directory on the path to `path` that the user may not enter. Missing directories
    /// are ignored.
    pub(crate) fn inaccessible_directory(&self, path: &Path) -> Option<PathBuf> {
        let path = std::path::absolute(path).ok()?;
        let mut directories: Vec<&Path> = path.ancestors().skip(1).collect();
        directories.reverse();
        let is_inaccessible = |directory: &&Path| {
            let found = fs::metadata(directory);
            let is_missing = found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
            !is_missing && !self.has_access(directory, SEARCH)
        };
        directories.into_iter().find(is_inaccessible).map(Path::to_path_buf)
    }

    /// Checks that the user may read the file at `path`.
    pub(crate) fn check_file(&self, path: &Path) -> Result<(), AccessError> {
        if self.metadata_if_reachable(path)?.is_dir() {
            return Err(AccessError::Directory { path: path.to_path_buf() });
        }
        self.check_permissions(path, READ, "g+r")
    }

    /// Checks that the user may list the directory at `path`.
    pub(crate) fn check_directory(&self, path: &Path) -> Result<(), AccessError> {
        if !self.metadata_if_reachable(path)?.is_dir() {
            return Err(AccessError::NoDirectory { path: path.to_path_buf() });
        }
        self.check_permissions(path, READ | SEARCH, "g+rx")
    }

    /// The metadata of `path`, if the user may enter all directories on the path.
    fn metadata_if_reachable(&self, path: &Path) -> Result<fs::Metadata, AccessError> {
        if let Some(directory) = self.inaccessible_directory(path) {
            let (path, user, group) = (path.to_path_buf(), self.name.clone(), self.group.clone());
            return Err(AccessError::DirectoryDenied { path, user, group, directory });
        }
        fs::metadata(path).map_err(|source| AccessError::Read { path: path.to_path_buf(), source })
    }

    /// Checks the permissions `wanted`. `chmod_mode` is the mode for the remedy in the error.
    fn check_permissions(
        &self,
        path: &Path,
        wanted: u32,
        chmod_mode: &'static str,
    ) -> Result<(), AccessError> {
        if self.has_access(path, wanted) {
            return Ok(());
        }
        let (path, user, group) = (path.to_path_buf(), self.name.clone(), self.group.clone());
        Err(AccessError::Denied { path, user, group, chmod_mode })
    }
}

fn group_name(gid: Gid) -> String {
    Group::from_gid(gid).ok().flatten().map_or_else(|| gid.to_string(), |group| group.name)
}

/// A user other than the one that runs the tests, without files of its own.
#[cfg(test)]
pub(crate) fn stranger() -> FileUser {
    let other = Some(OtherUser { uid: Uid::from_raw(65_000), groups: vec![Gid::from_raw(65_000)] });
    FileUser { name: "stranger".to_owned(), group: "strangers".to_owned(), other }
}
