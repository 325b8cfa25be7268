//! Whether the places that a server writes to may be written: the folder of its versions, the control socket, the file of dnstap.

use super::check::{Effect, Eyes, READ, SEARCH, WRITE};
use super::findings::Problem;
use super::model::Server;
use super::sources::{NamedFile, Role, Sources};
use crate::files::folder_of;
use nix::unistd::{Gid, Group, Uid, getgroups};
use nonesuch_authoritative::service::StateFolder;
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
        let eyes = starter.as_ref().filter(|_| file.role == Role::Control);
        Some(sources.problem(&file.place, check_folder(&file.path, eyes)?))
    };
    let written = written_files(sources).filter(|file| !is_made_by_systemd(&file.path));
    group.into_iter().chain(written.filter_map(problem)).collect()
}

/// Folders under /run that are not there: systemd makes them for a unit with `RuntimeDirectory=`, and takes them away when the
/// server ends. So they are missing beside a server that is sound and does not run, while no server starts without them.
pub(crate) fn check_runtime(sources: &Sources) -> Vec<Problem> {
    let missing = written_files(sources).filter(|file| is_made_by_systemd(&file.path));
    let problem = |file: &NamedFile| {
        let folder = folder_of(&file.path);
        let message = format!(
            "{}: {} is not there, and no server starts without it: systemd makes it for a unit with RuntimeDirectory={}; elsewhere \
             make it",
            file.path.display(),
            folder.display(),
            folder.file_name().unwrap_or_default().display()
        );
        sources.problem(&file.place, message)
    };
    missing.map(problem).collect()
}

fn written_files(sources: &Sources) -> impl Iterator<Item = &NamedFile> {
    sources.files.iter().filter(|file| matches!(file.role, Role::Control | Role::Dnstap))
}

/// Whether the folder of the file at `path` is missing, and in the place where systemd makes those of servers.
pub(super) fn is_made_by_systemd(path: &Path) -> bool {
    let folder = folder_of(path);
    let is_runtime =
        folder.parent().is_some_and(|parent| ["/run", "/var/run"].map(Path::new).contains(&parent));
    is_runtime && fs::metadata(folder).is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// Who makes the control socket: whoever starts the server, before it becomes `user`. `None` where that is not known.
fn starter(user: Option<&str>) -> Option<Eyes> {
    // With a user named, it may be root who starts it.
    let is_known = Uid::effective().is_root() || user.is_none();
    Eyes::of(None).ok().filter(|_| is_known)
}

/// The folder of the file at `path` must be there, and be writable for those who see with `eyes`, where that is known.
fn check_folder(path: &Path, eyes: Option<&Eyes>) -> Option<String> {
    let (place, folder) = (path.display(), folder_of(path));
    match (fs::metadata(folder), eyes) {
        (Err(error), _) => Some(format!("{place}: its folder cannot be used: {error}: make it")),
        (Ok(_), Some(eyes)) if !eyes.may(folder, WRITE | SEARCH) => {
            let (name, folder) = (&eyes.name, folder.display());
            Some(format!(
                "{place}: the user {name} may not write to {folder}: chown {name} {folder}, or name another path"
            ))
        }
        _ => None,
    }
}

/// The group must be there, and whoever starts the server be allowed to give it the control socket.
fn check_group(group: &str, starter: Option<&Eyes>) -> Option<String> {
    let Ok(Some(Group { gid, .. })) = Group::from_name(group) else {
        return Some(format!(
            "{group:?} does not exist: make it (`addgroup --system {group}`), or name another"
        ));
    };
    let Eyes { name, .. } = starter?;
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
pub(super) fn check_keeping(dir: &Path, eyes: &Eyes) -> Option<(String, Effect)> {
    let (zones, lock) = (StateFolder::zones_in(dir), StateFolder::lock_in(dir));
    let is_there = |path: &Path| fs::symlink_metadata(path).is_ok();
    // What is not there is made.
    let whole = if is_there(&zones) && is_there(&lock) {
        complain_of_way(&zones, eyes)
    } else {
        check_writable(dir, eyes)
    };
    if let Some(message) = whole {
        return Some((message, Effect::Start));
    }
    let inner = [
        (&zones, READ | SEARCH, Effect::Start),
        (&lock, WRITE, Effect::Start),
        (&zones, WRITE, Effect::Zones),
    ];
    let closed = inner.into_iter().find(|(path, wanted, _)| is_there(path) && !eyes.may(path, *wanted));
    let (name, dir) = (&eyes.name, dir.display());
    if let Some((path, _, effect)) = closed {
        let place = path.display();
        return Some((
            format!("{place}: the user {name} may not write there: chown -R {name} {dir}"),
            effect,
        ));
    }
    // What is kept and cannot be read is neither served nor replaced.
    let kept = fs::read_dir(&zones).into_iter().flatten().flatten().map(|entry| entry.path());
    let path = kept.into_iter().find(|path| path.is_file() && !eyes.may(path, READ))?;
    let message = format!("{}: the user {name} may not read it: chown -R {name} {dir}", path.display());
    Some((message, Effect::Zones))
}

/// A file that dnstap is written to: one with frames is renamed, and another made; one without is written as it is.
pub(super) fn check_tap(path: &Path, eyes: &Eyes) -> Option<String> {
    let (name, place) = (&eyes.name, path.display());
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => Some(format!("{place}: a folder: name a file")),
        Ok(metadata) if !metadata.is_file() || metadata.len() == 0 => (!eyes.may(path, WRITE))
            .then(|| format!("{place}: the user {name} may not write it: chown {name} {place}")),
        _ => check_writable(folder_of(path), eyes),
    }
}

/// Why `path` cannot be come to.
fn complain_of_way(path: &Path, eyes: &Eyes) -> Option<String> {
    let closed = eyes.closed_folder(path)?;
    Some(format!("{}: the user {} may not enter {}", path.display(), eyes.name, closed.display()))
}

/// A folder, or the one above where it is not there yet, that is written to.
fn check_writable(folder: &Path, eyes: &Eyes) -> Option<String> {
    let (name, place) = (&eyes.name, folder.display());
    if let Some(message) = complain_of_way(folder, eyes) {
        return Some(message);
    }
    match fs::metadata(folder) {
        Ok(_) => (!eyes.may(folder, WRITE | SEARCH))
            .then(|| format!("{place}: the user {name} may not write there: chown {name} {place}")),
        Err(error) if error.kind() == io::ErrorKind::NotFound && folder.parent().is_some() => {
            check_writable(folder_of(folder), eyes)
                .map(|_| format!("{place}: not there: make it (`install -d -o {name} -m 0750 {place}`)"))
        }
        Err(error) => Some(format!("{place}: cannot be used: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::check::tests_support::stranger;
    use super::*;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_an_earlier_start_made_as_another_user_is_found() {
        let folder = tempfile::tempdir().unwrap();
        set_mode(folder.path(), 0o755);
        let dir = folder.path().join("state");
        let (zones, lock) = (dir.join("zones"), dir.join("lock"));
        fs::create_dir_all(&zones).unwrap();
        let said = || check_keeping(&dir, &stranger());
        let is = |path: &Path, effect: Effect| {
            let (message, found) = said().unwrap();
            assert!(
                found == effect && message.starts_with(&format!("{}: the user stranger ", path.display())),
                "{message} {found:?}"
            );
        };
        // Modes of folder, folder of zones and lock.
        let set = |modes: [u32; 3]| {
            for (path, mode) in [&dir, &zones, &lock].into_iter().zip(modes) {
                set_mode(path, mode);
            }
        };
        set_mode(&zones, 0o777);
        is(&dir, Effect::Start);
        fs::write(&lock, "").unwrap();
        set([0o755, 0o777, 0o666]);
        assert_eq!(said(), None, "nothing is made in the folder itself");
        set([0o777, 0o700, 0o666]);
        is(&zones, Effect::Start);
        set([0o777, 0o777, 0o644]);
        is(&lock, Effect::Start);
        set([0o777, 0o755, 0o666]);
        is(&zones, Effect::Zones);
        set([0o700, 0o777, 0o666]);
        is(&zones, Effect::Start);
    }

    #[test]
    fn a_file_of_dnstap_without_frames_is_written_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        set_mode(folder.path(), 0o755);
        let path = folder.path().join("tap");
        let said = || check_tap(&path, &stranger());
        assert!(said().is_some(), "it cannot be made");
        fs::write(&path, "").unwrap();
        set_mode(&path, 0o666);
        assert_eq!(said(), None);
        set_mode(&path, 0o644);
        assert!(said().is_some_and(|message| message.contains("may not write it: chown")));
        fs::write(&path, "frames").unwrap();
        set_mode(&path, 0o666);
        assert!(said().is_some(), "it cannot be renamed");
        set_mode(folder.path(), 0o777);
        assert_eq!(said(), None);
    }
}
