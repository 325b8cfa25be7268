//! Errors of the values of configuration keys.

use nonesuch_proto::NameError;

/// Why a value is rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum ValueError {
    #[error("{found} is not allowed: write {allowed}")]
    NotAllowed { found: String, allowed: String },
    #[error("{found} is not a string: write it in quotation marks")]
    NotAString { found: String },
    #[error("{found} is not a string in quotation marks")]
    NotAStringInTable { found: String },
    #[error("{found} is neither true nor false")]
    NotABoolean { found: String },
    #[error("{found} is not a list: write a list of {of} in [ ]")]
    NotAList { found: String, of: &'static str },
    #[error("{found} is not a table: write [{name}]")]
    NotATable { found: String, name: String },
    #[error(
        "{found} is not an address: write \"192.0.2.1\", \"192.0.2.1:{port}\" or \
        \"[2001:db8::1]:{port}\""
    )]
    NotAnAddress { found: String, port: u16 },
    #[error("\"\" is not a domain name: write \".\" for the root")]
    EmptyName,
    #[error("{text:?} is not a domain name: {source}")]
    NotADomainName { text: String, source: NameError },
    #[error("\"\" is not a path")]
    EmptyPath,
    #[error("configuration version {found} is unknown: this program knows {known}")]
    Version { found: u32, known: u32 },
    #[error(
        "{mechanism:?} is not an online mechanism: sign the zone with `nonesuch zone sign --denial \
            {mechanism}` and leave denial out, or write {allowed}"
    )]
    NotOnline { mechanism: String, allowed: String },
    /// The error of another crate's parser.
    #[error(transparent)]
    Other(Box<dyn std::error::Error>),
}
