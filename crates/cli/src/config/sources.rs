//! Where a configuration names files, users and CPUs: what is found wrong with these later is reported with file, line and key too.

use super::problem::{ConfigLocation, Problem};
use nonesuch_proto::Name;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// What a file or directory is that a configuration names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Certificates or key of DNS over TLS.
    Tls,
    /// Certificates that verify other servers.
    Authorities,
    /// A secret of TSIG or of cookies.
    Secret,
    /// A zone's file.
    Zone(Name),
    /// The directory of the keys of online signing, and whether the times in their files are ignored.
    SigningKeys(Name, bool),
    /// The directory of a VRF key, and the zone's file where it has one.
    VrfKeys(Name, Option<PathBuf>),
    /// A file or directory of zones that are made after a template.
    Template,
    /// A file that the configuration includes.
    Included,
    /// The file of the zones that `ctl zone add` adds; it may be missing.
    AddedZones,
    /// A directory that files are included from, whichever are there.
    IncludedDirectory,
    /// Where dnstap goes.
    Dnstap,
    /// The control socket.
    Control,
}

impl Role {
    /// Whether it is read, not written.
    pub(super) const fn is_input(&self) -> bool {
        !matches!(self, Self::Dnstap | Self::Control)
    }
}

/// A file or directory, and where it is named.
#[derive(Clone, Debug)]
pub(crate) struct NamedFile {
    pub(crate) path: PathBuf,
    pub(crate) role: Role,
    pub(crate) place: ConfigLocation,
}

/// All places that later checks need, without the text: there may be secrets in it.
#[derive(Debug)]
pub(crate) struct Sources {
    /// The configuration's file.
    pub(crate) path: PathBuf,
    pub(crate) files: Vec<NamedFile>,
    /// Places of the keys outside of tables.
    pub(super) top: BTreeMap<String, ConfigLocation>,
    /// Where zones are declared.
    pub(super) zones: BTreeMap<Name, ConfigLocation>,
}

impl Sources {
    /// A problem of a key outside of tables, or of the file as a whole where the key is not there.
    pub(crate) fn problem_of(&self, key: &str, message: impl Into<String>) -> Problem {
        match self.top.get(key) {
            Some(place) => place.problem(message),
            None => ConfigLocation::of_file(&self.path).problem(message),
        }
    }
}
