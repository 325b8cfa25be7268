//! Test zones: names whose answers the check knows.
//!
//! The operator loads a test zone on the server. There is one for each denial mechanism, an unsigned one and
//! a catalog zone with them as members. A marker record lets the check recognise a test zone.

mod records;
mod write;

pub use write::{TestZoneError, write_test_zones};

use super::responses::answers;
use nonesuch_proto::message::Message;
use nonesuch_proto::{Name, Rtype};

/// Octets of an OPT record without options.
pub(super) const OPT_OCTETS: u16 = 11;
/// Octets of the largest answer without DNSSEC records. It is below the maximum of 65,535, which some servers
/// do not reach.
pub(super) const LARGEST: u16 = 60_000;
/// Sizes of answers without DNSSEC records, with an OPT record. 523 and 524 octets are 512 and 513 without it.
const SIZES: [u16; 9] = [512, 513, 523, 524, 1220, 1221, 4000, 4001, LARGEST];
/// Sizes of answers with an RRSIG record of 64 octets of signature.
const SIGNED_SIZES: [u16; 5] = [513, 1220, 1221, 4000, 4001];
/// The text of the marker record.
const MARKER: &str = "nonesuch check test zone, version 1";
/// The owner of the marker record, relative to the apex.
const MARKER_LABEL: &str = "_nonesuch-check";
/// A label of 63 octets. A name with four of them is too long.
pub(super) const LONG_LABEL: &str = "a23456789-123456789-123456789-123456789-123456789-123456789-123";

/// The owner of the marker record of a test zone; the apex if the name does not fit.
pub(super) fn marker_name(zone: &Name) -> Name {
    Name::from_text(MARKER_LABEL.as_bytes(), Some(zone.view())).unwrap_or_else(|_| zone.clone())
}

/// Whether the answer has the marker record.
pub(super) fn has_marker(response: &Message, zone: &Name) -> bool {
    let owner = marker_name(zone);
    // RDATA of TXT: the length of the text, and the text.
    answers(response, &owner, Rtype::TXT).any(|record| record.rdata.get(1..) == Some(MARKER.as_bytes()))
}

/// The label of the TXT RRset whose answer has this size. The answer of a signed label has an RRSIG record.
pub(super) fn size_label(octets: u16, is_signed: bool) -> String {
    format!("{}-{octets}", if is_signed { "signed" } else { "size" })
}

/// The owner of the records for the bootstrapping of the child `signed`, relative to the apex (RFC 9615 §4.1).
pub(super) fn bootstrap_label(zone: &Name) -> String {
    format!("_dsboot.signed.{}._signal.ns", zone.to_string().trim_end_matches('.'))
}

/// Labels below `zones` of the member zones of the test catalog, with the member zone relative to the origin.
pub(super) fn catalog_members() -> impl Iterator<Item = (String, &'static str)> {
    write::zone_labels().enumerate().map(|(index, label)| (format!("m{index}"), label))
}
