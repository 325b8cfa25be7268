//! Making NSEC records.

use crate::denial::insert_type;
use nonesuch_proto::{NameRef, Rtype, bitmap};

/// Appends NSEC RDATA (RFC 4034 §4.1): the next name, and the `types` shown at this one with RRSIG and NSEC.
///
/// The next name is written in lower case: verifiers from before RFC 6840 §5.1 lower it, later ones do not, and so
/// the signature suits both.
pub(crate) fn push_rdata(next: NameRef<'_>, types: &mut Vec<Rtype>, out: &mut Vec<u8>) {
    insert_type(types, Rtype::RRSIG);
    insert_type(types, Rtype::NSEC);
    next.push_canonical(out);
    bitmap::push(types, out);
}
