//! NSEC3 white lies (RFC 7129, appendix B): NSEC3 records made when asked, each of which spans one hash and no more, so that
//! nobody learns the hashes of names that exist.

pub(in crate::denial) mod prove;

use super::nsec3::LABEL;
use nonesuch_proto::MAX_NAME;

/// Most octets of the name of an apex, on the wire, that the owner of an NSEC3 record can stand below.
pub const LONGEST_APEX: usize = MAX_NAME - 1 - LABEL;
