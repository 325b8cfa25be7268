//! What a response says does not exist, and what the type bit map of a record says to that: the same for every mechanism.

use super::reason::{BogusReason, InsecureReason};
use nonesuch_proto::{NameRef, Rtype, bitmap};

/// What is said not to exist. All names are in the zone.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Claim<'q> {
    /// The name, and any wildcard that would match it (NXDOMAIN).
    Name(NameRef<'q>),
    /// The type at the name, or at the wildcard that matches the name (NODATA).
    Type(NameRef<'q>, Rtype),
    /// Anything closer to the name than the wildcard below its ancestor of so many labels, which answered.
    Closer(NameRef<'q>, usize),
    /// The DS RRset of a zone cut (an unsigned referral).
    Cut(NameRef<'q>),
}

/// What turned out to be denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The name and the wildcard.
    Name,
    /// The type at the name.
    Type,
    /// The type at the wildcard, and the name.
    WildcardType,
    /// What would be closer than the wildcard.
    Closer,
    /// The DS RRset of the cut.
    Cut,
}

/// A claim that holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Denial {
    pub(crate) kind: Kind,
    /// Why it is no proof that all can rely on.
    pub(crate) weakness: Option<InsecureReason>,
}

impl Denial {
    pub(crate) const fn secure(kind: Kind) -> Self {
        Self { kind, weakness: None }
    }

    /// A denial whose next closer name an opt-out record covers is insecure (RFC 5155 §9.2).
    pub(crate) fn covered(kind: Kind, opt_out: bool) -> Self {
        Self { kind, weakness: opt_out.then_some(InsecureReason::OptOut) }
    }
}

impl Claim<'_> {
    /// What the response says, where a mechanism does not look closer.
    pub(crate) const fn kind(&self) -> Kind {
        match self {
            Self::Name(_) => Kind::Name,
            Self::Type(..) => Kind::Type,
            Self::Closer(..) => Kind::Closer,
            Self::Cut(_) => Kind::Cut,
        }
    }
}

/// Whether the record of a zone cut seen from the parent's side: NS without SOA.
fn is_parent_side(map: &[u8]) -> bool {
    bitmap::contains(map, Rtype::NS) && !bitmap::contains(map, Rtype::SOA)
}

/// Whether the record that matches `name`, itself or the wildcard for it, shows that there is no `rtype`
/// (RFC 4035 §5.4, RFC 5155 §8.5 to §8.7, RFC 6840 §4.1 and §4.3).
pub(crate) fn check_type(name: NameRef<'_>, rtype: Rtype, map: &[u8]) -> Result<(), BogusReason> {
    let is_data = |found: &Rtype| !matches!(*found, Rtype::RRSIG | Rtype::NSEC);
    let found = match rtype {
        Rtype::ANY => bitmap::types(map).find(is_data),
        _ => bitmap::contains(map, rtype).then_some(rtype),
    };
    if let Some(rtype) = found {
        return Err(BogusReason::TypeExists { name: name.to_name(), rtype });
    }
    if bitmap::contains(map, Rtype::CNAME) {
        return Err(BogusReason::AliasExists(name.to_name()));
    }
    if rtype != Rtype::DS {
        return if is_parent_side(map) { Err(BogusReason::ParentSide(name.to_name())) } else { Ok(()) };
    }
    // The root has no parent that could have a DS RRset of it.
    let is_apex = bitmap::contains(map, Rtype::SOA) && !name.is_root();
    if is_apex { Err(BogusReason::ChildSide(name.to_name())) } else { Ok(()) }
}

/// Whether the record that matches `encloser` may say anything of names below it (RFC 5155 §8.3, RFC 6840 §4.1,
/// RFC 6672 §5.3.4.1).
pub(crate) fn check_encloser(encloser: NameRef<'_>, map: &[u8]) -> Result<(), BogusReason> {
    if bitmap::contains(map, Rtype::DNAME) {
        return Err(BogusReason::BelowDname(encloser.to_name()));
    }
    if is_parent_side(map) { Err(BogusReason::ParentSide(encloser.to_name())) } else { Ok(()) }
}

/// Whether the record that matches `cut` shows an unsigned delegation (RFC 4035 §5.2, RFC 5155 §8.9).
pub(crate) fn check_cut(cut: NameRef<'_>, map: &[u8]) -> Result<(), BogusReason> {
    if !bitmap::contains(map, Rtype::NS) {
        return Err(BogusReason::NotADelegation(cut.to_name()));
    }
    if bitmap::contains(map, Rtype::SOA) {
        return Err(BogusReason::ChildSide(cut.to_name()));
    }
    if bitmap::contains(map, Rtype::DS) { Err(BogusReason::SignedDelegation(cut.to_name())) } else { Ok(()) }
}
