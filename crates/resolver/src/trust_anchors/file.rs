//! Files of trust anchors, in three forms.
//!
//! `records` reads DS and DNSKEY records in zone file form, with the comments that Unbound adds;
//! `entries` splits this form into entries. `root_anchors` reads the XML file of IANA; `xml` splits it
//! into elements. `check` checks that a record can be a trust anchor.

mod check;
mod entries;
mod error;
mod records;
mod root_anchors;
#[cfg(test)]
mod tests;
mod xml;

pub(super) use check::check;
pub use error::{AnchorFileError, RecordFault, SyntaxFault};

use super::TrustAnchors;

/// Maximum size of a file of trust anchors, in octets.
pub const MAX_FILE_OCTETS: usize = 1 << 20;
/// Maximum number of records in a file of trust anchors.
pub const MAX_FILE_RECORDS: usize = 1000;

/// Reads a file of trust anchors, as [`TrustAnchors::read_at`]. Without `now`, times are ignored.
pub(super) fn read(text: &str, now: Option<u64>) -> Result<TrustAnchors, AnchorFileError> {
    if text.len() > MAX_FILE_OCTETS {
        return Err(AnchorFileError::TooLarge);
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with('<') { root_anchors::read(text, now) } else { records::read(text) }
}
