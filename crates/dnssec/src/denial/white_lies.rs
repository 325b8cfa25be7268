//! NSEC3 white lies (RFC 7129, appendix B): the server generates NSEC3 records that each cover one
//! hash, so clients do not learn the hashes of existing names.

pub(in crate::denial) mod prove;

use super::nsec3::HASH_LABEL_OCTETS;
use nonesuch_proto::MAX_NAME;

/// Maximum length in octets, in wire format, of an apex below which an NSEC3 owner name fits.
pub const MAX_APEX_OCTETS: usize = MAX_NAME - 1 - HASH_LABEL_OCTETS;
