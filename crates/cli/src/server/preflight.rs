//! Checks whether the files and other resources that a configuration names exist, and whether the
//! user of the server may use them. The checks run before a start and for `--check`.

mod output_paths;

pub(super) use output_paths::check_runtime_directories;

use crate::access::{AccessError, FileUser, read_remedy};
use crate::config::{ConfigLocation, Configuration, FileRole, NamedFile, Problem, Problems, Sources, Tls};
use crate::root::check_root;
use nix::sched::sched_getaffinity;
use nix::unistd::Pid;
use nonesuch_net::TlsError;
use nonesuch_net::tls::{ClientTls, ServerIdentity};
use nonesuch_proto::Name;
use std::fmt;
use std::fs;

/// The effect of a fault on a server that starts with the configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// The server does not start.
    Start,
    /// The server starts as root, and later rejects the configuration when it reads it as its own
    /// user.
    Reload,
    /// Transfers fail if the certificate of the peer must be verified, because the trusted
    /// certificates are read for each transfer.
    Transfers,
    /// No version can be stored. Therefore only versions that are already stored are served.
    Storage,
    /// The zone is not loaded; its stored version, if any, is served.
    Zone(Name),
    /// The zone is loaded, and its findings of the semantic checks count as faults.
    Findings(Name),
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("the server would not start"),
            Self::Reload => f.write_str("a reload would be rejected"),
            Self::Transfers => {
                f.write_str("transfers from servers with tls:HOSTNAME and NOTIFY to them would fail")
            }
            Self::Storage => f.write_str("no new version of a zone would be stored and published"),
            Self::Zone(apex) => write!(f, "zone {apex} would not be loaded"),
            Self::Findings(apex) => write!(f, "zone {apex} has findings of the semantic checks"),
        }
    }
}

/// A problem and its effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PreflightFault {
    pub(super) problem: Problem,
    pub(super) effect: Effect,
}

/// Faults that prevent a start and that can be found before sockets are bound and zones are read.
/// Changes nothing.
pub(super) fn check_start(configuration: &Configuration, sources: &Sources) -> Vec<Problem> {
    let server = &configuration.server;
    let mut problems = Vec::new();
    let mut fault = |key: &str, message: String| problems.push(sources.problem_of(key, message));
    if let Err(error) = FileUser::find(server.user.as_deref()) {
        fault("user", error.to_string());
    }
    for (key, addresses) in [("listen", &server.listen), ("listen-tls", &server.tls.listen)] {
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
    if let Some(message) = server.state_dir.as_deref().and_then(output_paths::check_state_directory_mode) {
        fault("state-dir", message);
    }
    problems.extend(output_paths::check_output_directories(server, sources));
    problems
}

/// A message about the first CPU that this process may not use; `None` if it may use all of them,
/// or the system does not state which.
fn check_cpus(cpus: &[usize]) -> Option<String> {
    let allowed = sched_getaffinity(Pid::from_raw(0)).ok()?;
    let is_allowed = |cpu: usize| allowed.is_set(cpu).unwrap_or(false);
    let missing = cpus.iter().copied().find(|cpu| !is_allowed(*cpu))?;
    let last = (0..nix::sched::CpuSet::count()).rev().find(|cpu| is_allowed(*cpu))?;
    Some(format!(
        "cannot bind a thread to CPU {missing}: it does not exist or this process may not use it; the \
            last usable CPU is {last}"
    ))
}

/// Loads the certificate and the key for DNS over TLS, if the configuration names them.
pub(super) fn load_identity(tls: &Tls, sources: &Sources) -> Result<Option<ServerIdentity>, Problems> {
    let Some(files) = tls.files() else { return Ok(None) };
    let mut problems = Vec::new();
    for file in sources.files.iter().filter(|file| file.role == FileRole::Tls) {
        if let Err(error) = fs::metadata(&file.path) {
            let message = format!("{}: cannot be read: {error}{}", file.path.display(), read_remedy(&error));
            problems.push(file.location.problem(message));
        }
    }
    if !problems.is_empty() {
        return Err(Problems(problems));
    }
    let identity = ServerIdentity::load(files.certificate, files.key);
    identity.map(Some).map_err(|error| {
        let is_of_key = match &error {
            TlsError::NoKey { .. } | TlsError::Key { .. } | TlsError::KeyMismatch { .. } => true,
            TlsError::Read { path, .. }
            | TlsError::NoRegularFile { path }
            | TlsError::TooLong { path, .. } => *path != files.certificate,
            _ => false,
        };
        let key = if is_of_key { "tls-key" } else { "tls-certificate" };
        Problems(vec![sources.problem_of(key, error.to_string())])
    })
}

/// Problems of files and directories that `user` could not read at a reload. Zone files and key
/// directories are not included.
pub(super) fn unreadable_at_reload(sources: &Sources, user: &FileUser) -> Vec<Problem> {
    let main_file = user.check_file(&sources.path).err();
    let main_file = main_file.map(|error| ConfigLocation::of_file(&sources.path).problem(error.to_string()));
    let is_read = |file: &&NamedFile| {
        matches!(
            file.role,
            FileRole::Tls | FileRole::Secret | FileRole::Included | FileRole::IncludedDirectory
        )
    };
    let others = sources.files.iter().filter(is_read).filter_map(|file| {
        let is_directory = file.role == FileRole::IncludedDirectory;
        let found = if is_directory { user.check_directory(&file.path) } else { user.check_file(&file.path) };
        Some(file.location.problem(error_message(found)?))
    });
    main_file.into_iter().chain(others).collect()
}

/// Warns of files that root has read at the start and that the server's user cannot read at a
/// reload or for a transfer.
pub(super) fn warn_of_files_unreadable_later(sources: &Sources) {
    let user = FileUser::current();
    for (problems, effect) in [
        (unreadable_at_reload(sources, &user), Effect::Reload),
        (unreadable_for_transfers(sources, &user), Effect::Transfers),
    ] {
        problems
            .iter()
            .for_each(|problem| tracing::warn!(name: "configuration-warning", "{problem}; {effect}"));
    }
}

/// The problem if `user` cannot read or replace the file of added zones (`ctl zone add`).
pub(super) fn check_added_zones(sources: &Sources, user: &FileUser) -> Option<Problem> {
    let file = sources.files.iter().find(|file| file.role == FileRole::AddedZones)?;
    let unreadable = fs::metadata(&file.path).ok().and_then(|_| error_message(user.check_file(&file.path)));
    let message = unreadable.or_else(|| output_paths::check_can_replace(&file.path, user))?;
    Some(file.location.problem(message))
}

/// Problems of the trusted certificates for transfers if `user` could not read them.
pub(super) fn unreadable_for_transfers(sources: &Sources, user: &FileUser) -> Vec<Problem> {
    let files = sources.files.iter().filter(|file| file.role == FileRole::Authorities);
    files
        .filter_map(|file| Some(file.location.problem(error_message(user.check_file(&file.path))?)))
        .collect()
}

/// Faults of the files and directories that the configuration names, for `user`. Changes nothing.
pub(super) fn check_file_access(
    configuration: &Configuration,
    sources: &Sources,
    user: &FileUser,
) -> Vec<PreflightFault> {
    let with_effect = |effect: Effect| move |problem| PreflightFault { problem, effect: effect.clone() };
    let mut faults: Vec<PreflightFault> =
        unreadable_at_reload(sources, user).into_iter().map(with_effect(Effect::Reload)).collect();
    faults.extend(unreadable_for_transfers(sources, user).into_iter().map(with_effect(Effect::Transfers)));
    let state =
        configuration.server.state_dir.as_deref().and_then(|dir| output_paths::check_stored_zones(dir, user));
    faults
        .extend(state.map(|(message, effect)| with_effect(effect)(sources.problem_of("state-dir", message))));
    faults.extend(check_added_zones(sources, user).into_iter().map(with_effect(Effect::Start)));
    for file in &sources.files {
        let (effect, message) = match &file.role {
            FileRole::Zone(apex) => (Effect::Zone(apex.clone()), error_message(user.check_file(&file.path))),
            FileRole::SigningKeys(apex, _) | FileRole::VrfKeys(apex, _) => {
                (Effect::Zone(apex.clone()), error_message(user.check_directory(&file.path)))
            }
            FileRole::Dnstap if output_paths::lacks_runtime_directory(&file.path) => continue,
            FileRole::Dnstap => (Effect::Start, output_paths::check_dnstap(&file.path, user)),
            FileRole::Tls
            | FileRole::Authorities
            | FileRole::Secret
            | FileRole::Template
            | FileRole::Control
            | FileRole::Included
            | FileRole::AddedZones
            | FileRole::IncludedDirectory => continue,
        };
        faults.extend(
            message.map(|message| PreflightFault { problem: file.location.problem(message), effect }),
        );
    }
    faults
}

fn error_message(found: Result<(), AccessError>) -> Option<String> {
    found.err().map(|error| error.to_string())
}

#[cfg(test)]
mod tests;
