//! Whether the places that a server writes to may be written: the folder of its versions, the control socket, the file of dnstap.

use super::Effect;
use crate::access::{FileUser, READ, SEARCH, WRITE};
use crate::config::added_zones::link_words;
use crate::config::{NamedFile, Problem, Role, Server, Sources};
use crate::files::{parent_directory, resolve_link};
use nix::unistd::{Gid, Group, Uid, getgroups};
use nonesuch_authoritative::service::StateDirectory;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Everybody may write.
const OPEN: u32 = 0o002;

/// What keeps a server from making its control socket, and the folders of that and of dnstap that are missing.
pub(super) fn check_places(server: &Server, sources: &Sources) -> Vec<Problem> {
    let starter = starter(server.user.as_deref());
    let group = server.control_group.as_deref().and_then(|group| check_group(group, starter.as_ref()));
    let group = group.map(|message| sources.problem_of("control-group", message));
    let problem = |file: &NamedFile| {
        let user = starter.as_ref().filter(|_| file.role == Role::Control);
        Some(file.place.problem(check_folder(&file.path, user)?))
    };
    let written = written_files(sources).filter(|file| !is_made_by_systemd(&file.path));
    group.into_iter().chain(written.filter_map(problem)).collect()
}

/// Folders under /run that are not there: systemd makes them for a unit with `RuntimeDirectory=`, and takes them away when the
/// server ends. So they are missing beside a server that is sound and does not run, while no server starts without them.
pub(in crate::server) fn check_runtime(sources: &Sources) -> Vec<Problem> {
    let missing = written_files(sources).filter(|file| is_made_by_systemd(&file.path));
    let problem = |file: &NamedFile| {
        let folder = parent_directory(&file.path);
        let message = format!(
            "{}: {} is not there, and no server starts without it: systemd makes it for a unit with RuntimeDirectory={}; elsewhere \
             make it",
            file.path.display(),
            folder.display(),
            folder.file_name().unwrap_or_default().display()
        );
        file.place.problem(message)
    };
    missing.map(problem).collect()
}

fn written_files(sources: &Sources) -> impl Iterator<Item = &NamedFile> {
    sources.files.iter().filter(|file| matches!(file.role, Role::Control | Role::Dnstap))
}

/// Whether the folder of the file at `path` is missing, and in the place where systemd makes those of servers.
pub(super) fn is_made_by_systemd(path: &Path) -> bool {
    let folder = parent_directory(path);
    let is_runtime =
        folder.parent().is_some_and(|parent| ["/run", "/var/run"].map(Path::new).contains(&parent));
    is_runtime && fs::metadata(folder).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Who makes the control socket: whoever starts the server, before it becomes `user`. `None` where that is not known.
fn starter(user: Option<&str>) -> Option<FileUser> {
    // With a user named, it may be root who starts it.
    let is_known = Uid::effective().is_root() || user.is_none();
    is_known.then(FileUser::current)
}

/// The folder of the file at `path` must be there, and be writable for `user`, where that is known.
fn check_folder(path: &Path, user: Option<&FileUser>) -> Option<String> {
    let (place, folder) = (path.display(), parent_directory(path));
    match (fs::metadata(folder), user) {
        (Err(error), _) => Some(format!("{place}: its folder cannot be used: {error}: make it")),
        (Ok(_), Some(user)) if !user.may(folder, WRITE | SEARCH) => {
            let (name, folder) = (&user.name, folder.display());
            Some(format!(
                "{place}: the user {name} may not write to {folder}: chown {name} {folder}, or name another path"
            ))
        }
        _ => None,
    }
}

/// The group must be there, and whoever starts the server be allowed to give it the control socket.
fn check_group(group: &str, starter: Option<&FileUser>) -> Option<String> {
    let Ok(Some(Group { gid, .. })) = Group::from_name(group) else {
        return Some(format!(
            "{group:?} does not exist: make it (`addgroup --system {group}`), or name another"
        ));
    };
    let FileUser { name, .. } = starter?;
    let is_member = gid == Gid::effective() || getgroups().is_ok_and(|groups| groups.contains(&gid));
    (!is_member && !Uid::effective().is_root()).then(|| {
        format!(
            "{group:?}: the user {name} is not in this group, and may not give it the socket: add the user (`adduser {name} {group}`), \
             or name another"
        )
    })
}

/// A folder that is written to must not be open to everybody; one that is not there is made.
pub(super) fn check_state(folder: &Path) -> Option<String> {
    let place = folder.display();
    match fs::metadata(folder) {
        Ok(metadata) if !metadata.is_dir() => Some(format!("{place}: no folder: name one")),
        Ok(metadata) if metadata.permissions().mode() & OPEN != 0 => Some(format!(
            "{place}: everybody may write there, and what is there is served: chmod o-w {place}"
        )),
        _ => None,
    }
}

/// The folder where versions are kept, and what an earlier start made in it, perhaps as another user.
pub(super) fn check_stored_zones(dir: &Path, user: &FileUser) -> Option<(String, Effect)> {
    let (zones, lock) = (StateDirectory::zones_directory(dir), StateDirectory::lock_path(dir));
    let is_there = |path: &Path| fs::symlink_metadata(path).is_ok();
    // What is not there is made.
    let whole = if is_there(&zones) && is_there(&lock) {
        complain_of_way(&zones, user)
    } else {
        check_writable(dir, user)
    };
    if let Some(message) = whole {
        return Some((message, Effect::Start));
    }
    let inner = [
        (&zones, READ | SEARCH, Effect::Start),
        (&lock, WRITE, Effect::Start),
        (&zones, WRITE, Effect::Zones),
    ];
    let closed = inner.into_iter().find(|(path, wanted, _)| is_there(path) && !user.may(path, *wanted));
    let (name, dir) = (&user.name, dir.display());
    if let Some((path, _, effect)) = closed {
        let place = path.display();
        return Some((
            format!("{place}: the user {name} may not write there: chown -R {name} {dir}"),
            effect,
        ));
    }
    // What is kept and cannot be read is neither served nor replaced.
    let kept = fs::read_dir(&zones).into_iter().flatten().flatten().map(|entry| entry.path());
    let path = kept.into_iter().find(|path| path.is_file() && !user.may(path, READ))?;
    let message = format!("{}: the user {name} may not read it: chown -R {name} {dir}", path.display());
    Some((message, Effect::Zones))
}

/// A file that dnstap is written to: one with frames is renamed, and another made; one without is written as it is.
pub(super) fn check_dnstap(path: &Path, user: &FileUser) -> Option<String> {
    let (name, place) = (&user.name, path.display());
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Some(format!("{place}: a folder: name a file")),
        Ok(metadata) if !metadata.is_file() || metadata.len() == 0 => (!user.may(path, WRITE))
            .then(|| format!("{place}: the user {name} may not write it: chown {name} {place}")),
        _ => check_writable(parent_directory(path), user),
    }
}

/// A file that is replaced by renaming another one into its place.
pub(super) fn check_replaced(path: &Path, user: &FileUser) -> Option<String> {
    let target = match resolve_link(path) {
        Ok(target) => target,
        Err(error) => return Some(format!("{}: {}", path.display(), link_words(&error))),
    };
    let message = check_writable(parent_directory(&target), user)?;
    Some(format!(
        "{}: `nonesuch ctl zone add` could not write it: {message}, or name a file in a directory of this user, such as state-dir",
        path.display()
    ))
}

/// Why `path` cannot be come to.
fn complain_of_way(path: &Path, user: &FileUser) -> Option<String> {
    let closed = user.closed_directory(path)?;
    Some(format!("{}: the user {} may not enter {}", path.display(), user.name, closed.display()))
}

/// A folder, or the one above where it is not there yet, that is written to.
fn check_writable(folder: &Path, user: &FileUser) -> Option<String> {
    let (name, place) = (&user.name, folder.display());
    if let Some(message) = complain_of_way(folder, user) {
        return Some(message);
    }
    match fs::metadata(folder) {
        Ok(_) => (!user.may(folder, WRITE | SEARCH))
            .then(|| format!("{place}: the user {name} may not write there: chown {name} {place}")),
        Err(error) if error.kind() == io::ErrorKind::NotFound && folder.parent().is_some() => {
            check_writable(parent_directory(folder), user)
                .map(|_| format!("{place}: not there: make it (`install -d -o {name} -m 0750 {place}`)"))
        }
        Err(error) => Some(format!("{place}: cannot be used: {error}")),
    }
}

#[cfg(test)]
mod tests;
