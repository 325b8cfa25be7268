//! Whether the files and folders that a configuration names are there, and may be used by the user that the server runs as.

use super::model::{Configuration, DnstapTo};
use crate::files::folder_of;
use nix::unistd::{Gid, Uid, User, getgrouplist};
use nonesuch_authoritative::service::{Making, Source};
use std::ffi::CString;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

/// Bits of permissions, of the owner.
const READ: u32 = 0o400;
const WRITE: u32 = 0o200;
const SEARCH: u32 = 0o100;
/// Everybody may write.
const OPEN: u32 = 0o002;

/// Who will use the files.
struct Actor {
    uid: Uid,
    groups: Vec<Gid>,
    name: String,
}

impl Actor {
    fn of(user: Option<&str>) -> Result<Self, String> {
        let Some(name) = user else {
            let uid = Uid::effective();
            let name = User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name);
            // Groups beside the first one are those of the process, which nix does not list portably.
            return Ok(Self { uid, groups: vec![Gid::effective()], name });
        };
        let found =
            User::from_name(name).map_err(|error| format!("user {name:?} cannot be looked up: {error}"))?;
        let user = found.ok_or_else(|| {
            format!(
                "user {name:?} does not exist: make it (`adduser --system --group {name}`), or name another"
            )
        })?;
        let c_name = CString::new(name).map_err(|_| format!("{name:?} is no name of a user"))?;
        let groups = getgrouplist(&c_name, user.gid).unwrap_or_else(|_| vec![user.gid]);
        Ok(Self { uid: user.uid, groups, name: user.name })
    }

    /// Whether the permissions of a file give the actor all of `wanted`, in the bits of the owner.
    fn may(&self, metadata: &fs::Metadata, wanted: u32) -> bool {
        let mode = metadata.permissions().mode();
        let shift = if metadata.uid() == self.uid.as_raw() {
            0
        } else if self.groups.iter().any(|group| group.as_raw() == metadata.gid()) {
            3
        } else {
            6
        };
        self.uid.is_root() || mode << shift & wanted == wanted
    }
}

/// What is wrong with the files that `configuration` names, each with its remedy; nothing is changed.
pub(crate) fn check_files(configuration: &Configuration) -> Vec<String> {
    let actor = match Actor::of(configuration.server.user.as_deref()) {
        Ok(actor) => actor,
        Err(message) => return vec![message],
    };
    let mut faults = Vec::new();
    let server = &configuration.server;
    if let Some(folder) = &server.state_dir {
        faults.extend(check_state(folder, &actor));
    }
    for zone in &configuration.zones {
        let file = if let Source::File(path) = &zone.source { Some((path, false)) } else { None };
        let keys = match &zone.making {
            Making::Online { keys, .. } | Making::Nsec5 { keys } => Some((keys, true)),
            Making::AsItIs => None,
        };
        for (path, is_folder) in file.into_iter().chain(keys) {
            let fault = check_input(path, is_folder, &actor);
            faults.extend(fault.map(|fault| format!("zone {}: {fault}", zone.apex)));
        }
    }
    let socket = server.control_socket.as_deref();
    let tap = configuration.dnstap.as_ref().and_then(|tap| match &tap.to {
        DnstapTo::File(path) => Some(path.as_path()),
        DnstapTo::Socket(_) => None,
    });
    // The control socket is made before privileges are dropped, and removed after.
    for path in socket.into_iter().chain(tap) {
        let folder =
            path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
        if let Err(error) = fs::metadata(folder) {
            faults.push(format!("{}: its folder cannot be used: {error}: make it", path.display()));
        }
    }
    faults
}

/// A folder that is written to: its owner's, and nobody else's.
fn check_state(folder: &Path, actor: &Actor) -> Option<String> {
    let name = &actor.name;
    let place = folder.display();
    let metadata = match fs::metadata(folder) {
        Ok(metadata) => metadata,
        // The server makes it where it may write into the folder above.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return check_state(folder_of(folder), actor)
                .map(|_| format!("{place}: not there: make it (`install -d -o {name} -m 0750 {place}`)"));
        }
        Err(error) => return Some(format!("{place}: cannot be used: {error}")),
    };
    if !metadata.is_dir() {
        return Some(format!("{place}: no folder: name one as state-dir"));
    }
    if metadata.permissions().mode() & OPEN != 0 {
        return Some(format!(
            "{place}: everybody may write there, and what is there is served: chmod o-w {place}"
        ));
    }
    let is_usable = actor.may(&metadata, READ | WRITE | SEARCH);
    (!is_usable).then(|| format!("{place}: the user {name} may not write there: chown {name} {place}"))
}

/// A file or folder that is read.
fn check_input(path: &Path, is_folder: bool, actor: &Actor) -> Option<String> {
    let place = path.display();
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) => return Some(format!("{place}: cannot be read: {error}{}", remedy(&error))),
    };
    if is_folder && !metadata.is_dir() {
        return Some(format!("{place}: no folder: name the folder that the key files are in"));
    }
    if !is_folder && metadata.is_dir() {
        return Some(format!("{place}: a folder: name the zone's file"));
    }
    let wanted = if is_folder { READ | SEARCH } else { READ };
    (!actor.may(&metadata, wanted))
        .then(|| format!("{place}: the user {} may not read it: change its group or mode", actor.name))
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => ": put it there, or name another path",
        io::ErrorKind::PermissionDenied => ": make it readable",
        _ => "",
    }
}
