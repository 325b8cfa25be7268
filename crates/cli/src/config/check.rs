//! Whether what a configuration names is there, and may be used by the user that the server runs as: before a start, and for
//! `--check`.

use super::Problems;
use super::findings::Problem;
use super::model::Configuration;
use super::sources::{NamedFile, Role, Sources};
use super::written;
use crate::commands::check_root;
use nix::sched::sched_getaffinity;
use nix::unistd::{AccessFlags, Gid, Group, Pid, Uid, User, access, getgrouplist};
use nonesuch_net::TlsError;
use nonesuch_net::tls::{ClientTls, ServerIdentity};
use nonesuch_proto::Name;
use std::ffi::CString;
use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Bits of permissions, of the owner.
pub(super) const READ: u32 = 0o400;
pub(super) const WRITE: u32 = 0o200;
pub(super) const SEARCH: u32 = 0o100;

/// What comes of a fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The server would not start.
    Start,
    /// It starts as root, and refuses the configuration later, as the user that it became.
    Reload,
    /// Transfers fail where the peer must have the certificate of a name: who vouches for it is read for each.
    Transfers,
    /// No version would be kept, and so none published but those that are kept.
    Zones,
    /// The zone would not be loaded; a version that is kept of it is served.
    Zone(Name),
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("the server would not start"),
            Self::Reload => f.write_str("a reload would be refused"),
            Self::Transfers => {
                f.write_str("transfers from servers with tls:HOSTNAME, and NOTIFY to them, would fail")
            }
            Self::Zones => f.write_str("no new version of a zone would be kept, and none published"),
            Self::Zone(apex) => write!(f, "zone {apex} would not be loaded"),
        }
    }
}

/// What is wrong, where, and what comes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) problem: Problem,
    pub(crate) effect: Effect,
}

/// Who will use the files.
#[derive(Debug)]
pub(crate) struct Eyes {
    pub(super) name: String,
    group: String,
    /// The user, where it is not that of this process: it is judged by the modes of files then.
    other: Option<Actor>,
}

#[derive(Debug)]
struct Actor {
    uid: Uid,
    groups: Vec<Gid>,
}

impl Eyes {
    /// Those of `user`, which must exist; of this process where there is none.
    pub(crate) fn of(user: Option<&str>) -> Result<Self, String> {
        let group_name = |gid: Gid| {
            Group::from_gid(gid).ok().flatten().map_or_else(|| gid.to_string(), |group| group.name)
        };
        let Some(name) = user else {
            let (uid, gid) = (Uid::effective(), Gid::effective());
            let name = User::from_uid(uid).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name);
            return Ok(Self { name, group: group_name(gid), other: None });
        };
        let found =
            User::from_name(name).map_err(|error| format!("{name:?} cannot be looked up: {error}"))?;
        let user = found.ok_or_else(|| {
            format!("{name:?} does not exist: make it (`adduser --system --group {name}`), or name another")
        })?;
        let c_name = CString::new(name).map_err(|_| format!("{name:?} is no name of a user"))?;
        let groups = getgrouplist(&c_name, user.gid).unwrap_or_else(|_| vec![user.gid]);
        let is_own = user.uid == Uid::effective();
        let other = (!is_own).then_some(Actor { uid: user.uid, groups });
        Ok(Self { name: user.name, group: group_name(user.gid), other })
    }

    /// Whether files are judged by their modes: this process is another user.
    pub(crate) const fn is_other(&self) -> bool {
        self.other.is_some()
    }

    /// Whether all of `wanted`, in the bits of the owner, may be done with what is at `path`.
    pub(super) fn may(&self, path: &Path, wanted: u32) -> bool {
        let Some(actor) = &self.other else {
            let flags = [(READ, AccessFlags::R_OK), (WRITE, AccessFlags::W_OK), (SEARCH, AccessFlags::X_OK)];
            let flags = flags.into_iter().filter(|(bit, _)| wanted & bit != 0).map(|(_, flag)| flag);
            return access(path, flags.collect()).is_ok();
        };
        let Ok(metadata) = fs::metadata(path) else { return false };
        let shift = if metadata.uid() == actor.uid.as_raw() {
            0
        } else if actor.groups.iter().any(|group| group.as_raw() == metadata.gid()) {
            3
        } else {
            6
        };
        actor.uid.is_root() || metadata.permissions().mode() << shift & wanted == wanted
    }

    /// The first folder on the way to `path` that may not be passed through.
    pub(super) fn closed_folder(&self, path: &Path) -> Option<PathBuf> {
        let path = std::path::absolute(path).ok()?;
        let mut folders: Vec<&Path> = path.ancestors().skip(1).collect();
        folders.reverse();
        let is_closed = |folder: &&Path| {
            let is_missing = fs::metadata(folder).is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
            !is_missing && !self.may(folder, SEARCH)
        };
        folders.into_iter().find(is_closed).map(Path::to_path_buf)
    }

    /// Why a file or folder cannot be read.
    fn complain(&self, path: &Path, is_folder: bool) -> Option<String> {
        let (name, group, place) = (&self.name, &self.group, path.display());
        if let Some(folder) = self.closed_folder(path) {
            let folder = folder.display();
            return Some(format!(
                "{place}: the user {name} may not enter {folder}: chgrp {group} {folder} and chmod g+x it, or move the file"
            ));
        }
        let metadata = match fs::metadata(path) {
            Ok(metadata) => metadata,
            Err(error) => return Some(format!("{place}: cannot be read: {error}{}", remedy(&error))),
        };
        if is_folder && !metadata.is_dir() {
            return Some(format!("{place}: no folder: name one"));
        }
        if !is_folder && metadata.is_dir() {
            return Some(format!("{place}: a folder: name a file"));
        }
        let wanted = if is_folder { READ | SEARCH } else { READ };
        let bits = if is_folder { "g+rx" } else { "g+r" };
        (!self.may(path, wanted)).then(|| {
            format!("{place}: the user {name} may not read it: chgrp {group} {place} and chmod {bits} it")
        })
    }
}

/// What keeps a server from starting, as far as it shows before anything is bound or read; nothing is changed.
pub(crate) fn check_start(configuration: &Configuration, sources: &Sources) -> Vec<Problem> {
    let server = &configuration.server;
    let mut problems = Vec::new();
    let mut fault = |key: &str, message: String| problems.push(sources.problem_of(key, message));
    if let Some(Err(message)) = server.user.as_deref().map(|user| Eyes::of(Some(user))) {
        fault("user", message);
    }
    for (key, addresses) in [("listen", &server.listen), ("listen-tls", &server.listen_tls)] {
        if let Err(error) = check_root(server.user.as_deref(), addresses.iter().copied()) {
            fault(key, error.to_string());
        }
    }
    if let Some(path) = &server.tls_authorities
        && let Err(error) = ClientTls::for_transfers(Some(path), None)
    {
        fault("tls-authorities", error.to_string());
    }
    if let Some(message) = check_cpus(&server.cpus) {
        fault("cpus", message);
    }
    if let Some(message) = server.state_dir.as_deref().and_then(written::check_state) {
        fault("state-dir", message);
    }
    problems.extend(written::check_places(server, sources));
    problems
}

fn check_cpus(cpus: &[usize]) -> Option<String> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).ok()?;
    let is_allowed = |cpu: usize| allowed.is_set(cpu).unwrap_or(false);
    let missing = cpus.iter().copied().find(|cpu| !is_allowed(*cpu))?;
    let last = (0..nix::sched::CpuSet::count()).rev().find(|cpu| is_allowed(*cpu))?;
    Some(format!(
        "no thread may be bound to CPU {missing}: it is not there, or not for this process; the last one that is is {last}"
    ))
}

/// Loads certificate and key of DNS over TLS, where there are any.
pub(crate) fn load_identity(
    configuration: &Configuration,
    sources: &Sources,
) -> Result<Option<ServerIdentity>, Problems> {
    let Some(files) = &configuration.server.tls else { return Ok(None) };
    let mut problems = Vec::new();
    for file in sources.files.iter().filter(|file| file.role == Role::Tls) {
        if let Err(error) = fs::metadata(&file.path) {
            let message = format!("{}: cannot be read: {error}{}", file.path.display(), remedy(&error));
            problems.push(sources.problem(&file.place, message));
        }
    }
    if !problems.is_empty() {
        return Err(Problems(problems));
    }
    let identity = ServerIdentity::load(&files.certificate, &files.key);
    identity.map(Some).map_err(|error| {
        let is_of_key = match &error {
            TlsError::NoKey { .. } | TlsError::Key { .. } | TlsError::OtherKey { .. } => true,
            TlsError::Read { path, .. } => *path != files.certificate,
            _ => false,
        };
        let key = if is_of_key { "tls-key" } else { "tls-certificate" };
        Problems(vec![sources.problem_of(key, error.to_string())])
    })
}

/// What a reload could not read: all that it reads, but for zones.
pub(crate) fn read_by_reload(sources: &Sources, eyes: &Eyes) -> Vec<Problem> {
    let own = eyes.complain(&sources.path, false);
    let own = own.map(|message| Problem { message, ..Problem::of_file(&sources.path) });
    let is_read = |file: &&NamedFile| {
        matches!(file.role, Role::Tls | Role::Secret | Role::Included | Role::IncludedFolder)
    };
    let others = sources.files.iter().filter(is_read).filter_map(|file| {
        let message = eyes.complain(&file.path, file.role == Role::IncludedFolder)?;
        Some(sources.problem(&file.place, message))
    });
    own.into_iter().chain(others).collect()
}

/// What could not be read of what is read for transfers.
pub(crate) fn read_by_transfers(sources: &Sources, eyes: &Eyes) -> Vec<Problem> {
    let files = sources.files.iter().filter(|file| file.role == Role::Authorities);
    files.filter_map(|file| Some(sources.problem(&file.place, eyes.complain(&file.path, false)?))).collect()
}

/// What is wrong with the files and folders that the configuration names, for those who see with `eyes`; nothing is changed.
pub(crate) fn check_reading(configuration: &Configuration, sources: &Sources, eyes: &Eyes) -> Vec<Fault> {
    let with = |effect: Effect| move |problem| Fault { problem, effect: effect.clone() };
    let mut faults: Vec<Fault> =
        read_by_reload(sources, eyes).into_iter().map(with(Effect::Reload)).collect();
    faults.extend(read_by_transfers(sources, eyes).into_iter().map(with(Effect::Transfers)));
    let state = configuration.server.state_dir.as_deref().and_then(|dir| written::check_keeping(dir, eyes));
    faults.extend(state.map(|(message, effect)| with(effect)(sources.problem_of("state-dir", message))));
    for file in &sources.files {
        let (effect, message) = match &file.role {
            Role::Zone(apex) => (Effect::Zone(apex.clone()), eyes.complain(&file.path, false)),
            Role::SigningKeys(apex) | Role::VrfKeys(apex, _) => {
                (Effect::Zone(apex.clone()), eyes.complain(&file.path, true))
            }
            Role::Dnstap if written::is_made_by_systemd(&file.path) => continue,
            Role::Dnstap => (Effect::Start, written::check_tap(&file.path, eyes)),
            Role::Tls
            | Role::Authorities
            | Role::Secret
            | Role::Template
            | Role::Control
            | Role::Included
            | Role::IncludedFolder => continue,
        };
        faults
            .extend(message.map(|message| Fault { problem: sources.problem(&file.place, message), effect }));
    }
    faults
}

fn remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => ": put it there, or name another path",
        io::ErrorKind::PermissionDenied => ": make it readable",
        _ => "",
    }
}

#[cfg(test)]
pub(super) mod tests_support {
    use super::{Actor, Eyes, Gid, Uid};

    /// Somebody else than whoever runs this, who owns nothing.
    pub(in crate::config) fn stranger() -> Eyes {
        let other = Some(Actor { uid: Uid::from_raw(65_000), groups: vec![Gid::from_raw(65_000)] });
        Eyes { name: "stranger".to_owned(), group: "strangers".to_owned(), other }
    }
}

#[cfg(test)]
mod tests {
    use super::tests_support::stranger;
    use super::*;
    use crate::config::parse;
    use std::os::unix::fs::symlink;

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn what_keeps_a_server_from_starting_is_said_with_its_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        let text = "version = 1\nuser = \"nobody-of-this-name\"\ncontrol-socket = \"none/control\"\ncontrol-group = \"no-such-group\"\n\
                    cpus = [0, 4095]\nstate-dir = \"open\"\n[dnstap]\nfile = \"gone/tap\"\n";
        fs::create_dir(folder.path().join("open")).unwrap();
        set_mode(&folder.path().join("open"), 0o777);
        let read = parse(&path, text).unwrap();
        let found: Vec<String> =
            check_start(&read.configuration, &read.sources).iter().map(ToString::to_string).collect();
        let place = path.display();
        for expected in [
            format!("{place}:2:8: user: \"nobody-of-this-name\" does not exist"),
            format!("{place}:3:18: control-socket: "),
            format!("{place}:4:17: control-group: \"no-such-group\" does not exist"),
            format!("{place}:5:8: cpus: no thread may be bound to CPU 4095"),
            format!("{place}:6:13: state-dir: "),
            format!("{place}:8:8: dnstap.file: "),
        ] {
            assert!(found.iter().any(|found| found.starts_with(&expected)), "{expected}\n{found:#?}");
        }
        assert_eq!(found.len(), 6, "{found:#?}");
    }

    #[test]
    fn what_a_reload_would_not_read_is_said_of_the_user() {
        let folder = tempfile::tempdir().unwrap();
        let dir = fs::canonicalize(folder.path()).unwrap();
        set_mode(&dir, 0o755);
        let path = dir.join("c.toml");
        fs::write(dir.join("s"), "c2VjcmV0IG9mIHRoaXJ0eS10d28gb2N0ZXRzIGxvbmch").unwrap();
        let text = "version = 1\n[key.k]\nsecret-file = \"s\"\n[zone.a]\nfile = \"a\"\n[zone.b]\nfile = \"keys\"\n\
                    denial = \"compact\"\nkeys = \"keys\"\n[zone.c]\nfile = \"c.toml\"\n[zone.d]\nfile = \"in/d\"\n";
        fs::write(&path, text).unwrap();
        for inner in ["keys", "in"] {
            fs::create_dir(dir.join(inner)).unwrap();
            set_mode(&dir.join(inner), 0o700);
        }
        fs::write(dir.join("in/d"), "").unwrap();
        set_mode(&path, 0o644);
        set_mode(&dir.join("s"), 0o600);
        let read = parse(&path, text).unwrap();
        let faults = check_reading(&read.configuration, &read.sources, &stranger());
        let said: Vec<String> =
            faults.iter().map(|fault| format!("{}; {}", fault.problem, fault.effect)).collect();
        let zone = |name: &str| format!("zone {name}. would not be loaded");
        let expected = [
            (
                "c.toml:3:15: key.k.secret-file: ",
                "may not read it: chgrp strangers",
                "a reload would be refused".to_owned(),
            ),
            ("c.toml:5:8: zone.a.file: ", "cannot be read: No such file", zone("a")),
            ("c.toml:7:8: zone.b.file: ", "a folder: name a file", zone("b")),
            ("c.toml:9:8: zone.b.keys: ", "may not read it: chgrp strangers", zone("b")),
            ("c.toml:13:8: zone.d.file: ", "may not enter", zone("d")),
        ];
        assert_eq!(said.len(), expected.len(), "{said:#?}");
        for (said, (place, words, effect)) in said.iter().zip(&expected) {
            assert!(
                said.contains(place) && said.contains(words) && said.ends_with(effect.as_str()),
                "{said}\n{place} {words} {effect}"
            );
        }
        // For whom all of it is readable.
        set_mode(&dir.join("s"), 0o644);
        assert!(read_by_reload(&read.sources, &stranger()).is_empty());
        set_mode(&path, 0o600);
        assert_eq!(read_by_reload(&read.sources, &stranger()).len(), 1, "the configuration itself");
        assert!(read_by_reload(&read.sources, &Eyes::of(None).unwrap()).is_empty());
    }

    #[test]
    fn own_files_have_no_place_in_the_folder_of_the_server() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        fs::create_dir_all(folder.path().join("state/zones/keys")).unwrap();
        symlink("state/zones", folder.path().join("link")).unwrap();
        fs::write(folder.path().join("state/zones/s"), "c2VjcmV0IG9mIHRoaXJ0eS10d28gb2N0ZXRzIGxvbmch")
            .unwrap();
        fs::write(folder.path().join("state/zones/x"), "").unwrap();
        symlink("state/zones/x", folder.path().join("x")).unwrap();
        let text = "version = 1\nstate-dir = \"state\"\ntls-certificate = \"link/c.pem\"\ntls-key = \"k.pem\"\n[key.k]\n\
                    secret-file = \"link/s\"\n[template.t]\nprimaries = [\"192.0.2.1\"]\nnsec5-keys = \"state/zones/{zone}\"\n[zone.a]\n\
                    file = \"state/zones/a.zone\"\n[zone.b]\nfile = \"b\"\ndenial = \"compact\"\nkeys = \"state/../link/keys\"\n[zone.c]\n\
                    file = \"x\"\n[zone.d]\nfile = \"state/d.zone\"\n[zone.e]\nfile = \"zones/e.zone\"\n";
        let Problems(found) = parse(&path, text).unwrap_err();
        let places: Vec<(usize, &str)> = found.iter().map(|found| (found.line, found.key.as_str())).collect();
        let expected = [
            (3, "tls-certificate"),
            (6, "key.k.secret-file"),
            (9, "template.t.nsec5-keys"),
            (11, "zone.a.file"),
            (15, "zone.b.keys"),
            (17, "zone.c.file"),
        ];
        assert_eq!(places, expected, "{found:#?}");
        assert!(
            found.iter().all(|found| found.message.contains("where the server keeps versions of its own"))
        );
    }

    #[test]
    fn what_stands_in_the_place_of_the_control_socket_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.toml");
        let text = "version = 1\ncontrol-socket = \"precious\"\n";
        let problem = |made: &str| {
            let Problems(found) = parse(&path, text).expect_err(made);
            assert!(found[0].to_string().contains("c.toml:2:18: control-socket: "), "{found:?}");
            assert!(found[0].message.contains("is there, and no socket"), "{found:?}");
        };
        assert!(parse(&path, text).is_ok());
        let precious = folder.path().join("precious");
        fs::write(&precious, "precious").unwrap();
        problem("a file");
        fs::remove_file(&precious).unwrap();
        symlink("c.toml", &precious).unwrap();
        problem("a link");
        fs::remove_file(&precious).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(&precious).unwrap();
        assert!(parse(&path, text).is_ok());
    }
}
