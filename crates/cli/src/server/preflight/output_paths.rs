//! Checks whether the server may write to its output paths: the state directory, the control
//! socket, the dnstap output and the file of added zones.

use super::Effect;
use crate::access::{FileUser, READ, SEARCH, WRITE};
use crate::config::added_zones::link_error_text;
use crate::config::{FileRole, NamedFile, Problem, Server, Sources};
use crate::files::{parent_directory, resolve_link};
use nix::unistd::{Gid, Group, Uid, getgroups};
use nonesuch_authoritative::service::StateDirectory;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Mode bit: every user may write.
const OTHERS_WRITE: u32 = 0o002;

/// Faults that prevent the creation of the control socket, and a missing parent directory of the
/// dnstap output. [`check_runtime_directories`] reports directories that systemd creates.
pub(super) fn check_output_directories(server: &Server, sources: &Sources) -> Vec<Problem> {
    let starting_user = starting_user(server.user.as_deref());
    let group =
        server.control_group.as_deref().and_then(|group| check_control_group(group, starting_user.as_ref()));
    let group = group.map(|message| sources.problem_of("control-group", message));
    let problem = |file: &NamedFile| {
        let user = starting_user.as_ref().filter(|_| file.role == FileRole::Control);
        Some(file.location.problem(check_parent_directory(&file.path, user)?))
    };
    let written = written_files(sources).filter(|file| !lacks_runtime_directory(&file.path));
    group.into_iter().chain(written.filter_map(problem)).collect()
}

/// Problems of output files whose directory is missing directly under /run. systemd creates them
/// for a unit with `RuntimeDirectory=` and removes them when the server ends. Therefore they are
/// missing when a correctly configured server does not run, although no server starts without them.
pub(in crate::server) fn check_runtime_directories(sources: &Sources) -> Vec<Problem> {
    let missing = written_files(sources).filter(|file| lacks_runtime_directory(&file.path));
    let problem = |file: &NamedFile| {
        let directory = parent_directory(&file.path);
        let message = format!(
            "{}: the directory {} does not exist, and the server does not start without it: systemd \
                creates it for a unit with RuntimeDirectory={}; otherwise create it",
            file.path.display(),
            directory.display(),
            directory.file_name().unwrap_or_default().display()
        );
        file.location.problem(message)
    };
    missing.map(problem).collect()
}

/// The control socket and the dnstap output.
fn written_files(sources: &Sources) -> impl Iterator<Item = &NamedFile> {
    sources.files.iter().filter(|file| matches!(file.role, FileRole::Control | FileRole::Dnstap))
}

/// Whether the parent directory of `path` is missing and is at a location where systemd creates
/// runtime directories.
pub(super) fn lacks_runtime_directory(path: &Path) -> bool {
    let directory = parent_directory(path);
    let is_runtime =
        directory.parent().is_some_and(|parent| ["/run", "/var/run"].map(Path::new).contains(&parent));
    is_runtime && fs::metadata(directory).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// The user that starts the server and creates the control socket, before the server becomes
/// `user`. `None` if this process cannot know it: with `user`, root may start the server later.
fn starting_user(user: Option<&str>) -> Option<FileUser> {
    let is_known = Uid::effective().is_root() || user.is_none();
    is_known.then(FileUser::current)
}

/// Checks that the parent directory of `path` exists and, if `user` is `Some`, that `user` may
/// write to it. Returns the message about a fault.
fn check_parent_directory(path: &Path, user: Option<&FileUser>) -> Option<String> {
    let (shown, directory) = (path.display(), parent_directory(path));
    match (fs::metadata(directory), user) {
        (Err(error), _) => Some(format!("{shown}: cannot use its directory: {error}: create it")),
        (Ok(_), Some(user)) if !user.has_access(directory, WRITE | SEARCH) => {
            let (name, directory) = (&user.name, directory.display());
            Some(format!(
                "{shown}: the user {name} may not write to {directory}: chown {name} {directory}, or name another path"
            ))
        }
        _ => None,
    }
}

/// Checks that the group exists and that the user that starts the server may give the control
/// socket to it.
fn check_control_group(group: &str, starting_user: Option<&FileUser>) -> Option<String> {
    let Ok(Some(Group { gid, .. })) = Group::from_name(group) else {
        return Some(format!(
            "{group:?} does not exist: create it (`addgroup --system {group}`), or name another"
        ));
    };
    let FileUser { name, .. } = starting_user?;
    let is_member = gid == Gid::effective() || getgroups().is_ok_and(|groups| groups.contains(&gid));
    (!is_member && !Uid::effective().is_root()).then(|| {
        format!(
            "{group:?}: the user {name} is not in this group, and may not give it the socket: add the \
                user (`adduser {name} {group}`), or name another group"
        )
    })
}

/// Checks that not every user may write to the directory. A missing directory is not a fault: the
/// server creates it.
pub(super) fn check_state_directory_mode(directory: &Path) -> Option<String> {
    let shown = directory.display();
    match fs::metadata(directory) {
        Ok(metadata) if !metadata.is_dir() => Some(format!("{shown}: not a directory: name a directory")),
        Ok(metadata) if metadata.permissions().mode() & OTHERS_WRITE != 0 => Some(format!(
            "{shown}: every user may write to this directory, and the server serves its content: chmod \
                o-w {shown}"
        )),
        _ => None,
    }
}

/// Checks the directory of stored versions and the files in it, which an earlier start, possibly as
/// another user, created. Returns the message and effect of the first fault.
pub(super) fn check_stored_zones(dir: &Path, user: &FileUser) -> Option<(String, Effect)> {
    let (zones, lock) = (StateDirectory::zones_directory(dir), StateDirectory::lock_path(dir));
    let exists = |path: &Path| fs::symlink_metadata(path).is_ok();
    // The server creates missing entries.
    let message_for_directory = if exists(&zones) && exists(&lock) {
        inaccessible_directory_message(&zones, user)
    } else {
        check_writable(dir, user)
    };
    if let Some(message) = message_for_directory {
        return Some((message, Effect::Start));
    }
    let checks = [
        (&zones, READ | SEARCH, Effect::Start),
        (&lock, WRITE, Effect::Start),
        (&zones, WRITE, Effect::Storage),
    ];
    let inaccessible =
        checks.into_iter().find(|(path, wanted, _)| exists(path) && !user.has_access(path, *wanted));
    let (name, dir) = (&user.name, dir.display());
    if let Some((path, _, effect)) = inaccessible {
        let shown = path.display();
        return Some((
            format!("{shown}: the user {name} may not write to it: chown -R {name} {dir}"),
            effect,
        ));
    }
    // A stored version that cannot be read can neither be served nor replaced.
    let versions = fs::read_dir(&zones).into_iter().flatten().flatten().map(|entry| entry.path());
    let path = versions.into_iter().find(|path| path.is_file() && !user.has_access(path, READ))?;
    let message = format!("{}: the user {name} may not read it: chown -R {name} {dir}", path.display());
    Some((message, Effect::Storage))
}

/// Checks the dnstap output file. A regular file that is not empty is renamed, and a new file is
/// created. Another file is written directly.
pub(super) fn check_dnstap(path: &Path, user: &FileUser) -> Option<String> {
    let (name, shown) = (&user.name, path.display());
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Some(format!("{shown}: is a directory: name a file")),
        Ok(metadata) if !metadata.is_file() || metadata.len() == 0 => (!user.has_access(path, WRITE))
            .then(|| format!("{shown}: the user {name} may not write to it: chown {name} {shown}")),
        _ => check_writable(parent_directory(path), user),
    }
}

/// Checks that `user` may replace the file of added zones through a rename.
pub(super) fn check_can_replace(path: &Path, user: &FileUser) -> Option<String> {
    let target = match resolve_link(path) {
        Ok(target) => target,
        Err(error) => return Some(format!("{}: {}", path.display(), link_error_text(&error))),
    };
    let message = check_writable(parent_directory(&target), user)?;
    Some(format!(
        "{}: `nonesuch ctl zone add` could not write this file: {message}, or name a file in a \
            directory of this user, such as state-dir",
        path.display()
    ))
}

/// The message about the first directory on the path to `path` that `user` may not enter.
fn inaccessible_directory_message(path: &Path, user: &FileUser) -> Option<String> {
    let inaccessible = user.inaccessible_directory(path)?;
    Some(format!("{}: the user {} may not enter {}", path.display(), user.name, inaccessible.display()))
}

/// Checks that `user` may write to the directory or, if it does not exist yet, to its parent
/// directory.
fn check_writable(directory: &Path, user: &FileUser) -> Option<String> {
    let (name, shown) = (&user.name, directory.display());
    if let Some(message) = inaccessible_directory_message(directory, user) {
        return Some(message);
    }
    match fs::metadata(directory) {
        Ok(_) => (!user.has_access(directory, WRITE | SEARCH))
            .then(|| format!("{shown}: the user {name} may not write to it: chown {name} {shown}")),
        Err(error) if error.kind() == io::ErrorKind::NotFound && directory.parent().is_some() => {
            check_writable(parent_directory(directory), user).map(|_| {
                format!("{shown}: does not exist: create it (`install -d -o {name} -m 0750 {shown}`)")
            })
        }
        Err(error) => Some(format!("{shown}: cannot use it: {error}")),
    }
}

#[cfg(test)]
mod tests;
