//! Errors of values.

use nonesuch_proto::NameError;

/// Why a value is rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum ValueError {
    #[error("{found} is not allowed: write {allowed}")]
    NotAllowed { found: String, allowed: String },
    #[error("{found} is no text: write it in quotes")]
    NoText { found: String },
    #[error("{found} is no text in quotes")]
    NoTextInTable { found: String },
    #[error("{found} is neither true nor false")]
    NoBoolean { found: String },
    #[error("{found} is no list: write a list of {of} in [ ]")]
    NoList { found: String, of: &'static str },
    #[error("{found} is no table: write [{name}]")]
    NoTable { found: String, name: String },
    #[error("{found} is no address: write \"192.0.2.1\", \"192.0.2.1:{port}\" or \"[2001:db8::1]:{port}\"")]
    NoAddress { found: String, port: u16 },
    #[error("\"\" is no domain name: write \".\" for the root")]
    EmptyName,
    #[error("{text:?} is no domain name: {source}")]
    NoName { text: String, source: NameError },
    #[error("\"\" is no path")]
    EmptyPath,
    #[error("{found} is a version of configurations that this program does not know: it knows {known}")]
    Version { found: u32, known: u32 },
    #[error(
        "{mechanism:?} makes its records when the zone is signed: sign it with `nonesuch zone sign --denial {mechanism}` and leave \
         denial out, or write {allowed}"
    )]
    NotOnline { mechanism: String, allowed: String },
    /// The error of another crate's parser.
    #[error(transparent)]
    Other(Box<dyn std::error::Error>),
}
