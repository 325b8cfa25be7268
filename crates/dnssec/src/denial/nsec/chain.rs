//! Generates NSEC records.

use crate::denial::insert_type;
use nonesuch_proto::{NameRef, Rtype, bitmap};

/// Appends NSEC RDATA (RFC 4034 §4.1): the next name, and the `types` of this name with RRSIG and
/// NSEC.
///
/// The next name is in lower case. Verifiers that predate RFC 6840 §5.1 convert it to lower case,
/// and later ones do not, so both verify the signature.
pub(crate) fn push_rdata(next: NameRef<'_>, types: &mut Vec<Rtype>, out: &mut Vec<u8>) {
    insert_type(types, Rtype::RRSIG);
    insert_type(types, Rtype::NSEC);
    next.push_canonical(out);
    bitmap::push(types, out);
}
