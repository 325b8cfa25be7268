//! Locations in a configuration that name files, users, CPUs and zones. Checks after the reader use
//! them to report problems with file, line and key.

use super::problem::{ConfigLocation, Problem};
use nonesuch_proto::Name;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The role of a file or directory that a configuration names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FileRole {
    /// Certificates or key for DNS over TLS.
    Tls,
    /// Certificates that verify other servers.
    Authorities,
    /// A TSIG secret, or the cookie secrets.
    Secret,
    /// A zone file.
    Zone(Name),
    /// The directory of the keys for online signing, and whether the times in the key files are
    /// ignored.
    SigningKeys(Name, bool),
    /// The directory of a VRF key, and the zone file if there is one.
    VrfKeys(Name, Option<PathBuf>),
    /// A file or directory of zones that are created from a template.
    Template,
    /// A file that the configuration includes.
    Included,
    /// The file of added zones (`ctl zone add`); it may be missing.
    AddedZones,
    /// A directory of included files that a pattern selects.
    IncludedDirectory,
    /// The dnstap output.
    Dnstap,
    /// The control socket.
    Control,
}

impl FileRole {
    /// Whether the server reads the file. Otherwise, it is an output of the server.
    pub(super) const fn is_input(&self) -> bool {
        !matches!(self, Self::Dnstap | Self::Control)
    }
}

/// A file or directory, and the location that names it.
#[derive(Clone, Debug)]
pub(crate) struct NamedFile {
    pub(crate) path: PathBuf,
    pub(crate) role: FileRole,
    pub(crate) location: ConfigLocation,
}

/// Locations for later checks, without the text, because the text may contain secrets.
#[derive(Debug)]
pub(crate) struct Sources {
    /// The main file of the configuration.
    pub(crate) path: PathBuf,
    pub(crate) files: Vec<NamedFile>,
    /// Locations of the keys outside tables.
    pub(super) top_level_keys: BTreeMap<String, ConfigLocation>,
    /// Locations of the zone declarations.
    pub(super) zones: BTreeMap<Name, ConfigLocation>,
}

impl Sources {
    /// A problem of a key outside tables, or of the whole file if the key is missing.
    pub(crate) fn problem_of(&self, key: &str, message: impl Into<String>) -> Problem {
        match self.top_level_keys.get(key) {
            Some(location) => location.problem(message),
            None => ConfigLocation::of_file(&self.path).problem(message),
        }
    }
}
