//! The nonexistence that a response claims, and the checks of type bit maps that all denial
//! mechanisms share.

use super::reason::{BogusReason, InsecureReason};
use nonesuch_proto::{NameRef, Rtype, bitmap};

/// A claim that something does not exist. All names are in the zone.
#[derive(Clone, Copy, Debug)]
pub enum Claim<'q> {
    /// Neither the name nor a wildcard that would match it exists (NXDOMAIN).
    NxDomain(NameRef<'q>),
    /// The type does not exist at the name, or at the wildcard that matches the name (NODATA).
    NoData(NameRef<'q>, Rtype),
    /// No closer match for the name exists than the wildcard below its ancestor with this number of
    /// labels (response from a wildcard).
    WildcardExpansion(NameRef<'q>, usize),
    /// The zone cut has no DS RRset (referral to an unsigned zone).
    NoDs(NameRef<'q>),
}

/// What a proved claim denies. This can differ from the claim: the records of a NODATA response can
/// prove that the name does not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenialKind {
    /// The name and the wildcard do not exist.
    NxDomain,
    /// The type does not exist at the name.
    NoData,
    /// The name does not exist, and the wildcard does not have the type.
    WildcardNoData,
    /// No closer match than the wildcard exists.
    WildcardExpansion,
    /// The zone cut has no DS RRset.
    NoDs,
}

/// A proved claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProvedClaim {
    pub(crate) kind: DenialKind,
    /// Why the proof is only Insecure; `None` if it is Secure.
    pub(crate) insecure_reason: Option<InsecureReason>,
}

impl ProvedClaim {
    /// Creates a Secure claim.
    pub(crate) const fn secure(kind: DenialKind) -> Self {
        Self { kind, insecure_reason: None }
    }

    /// Creates a claim whose proof has a record that covers the next closer name. `is_opt_out`
    /// states whether this is an opt-out record; the claim is then only Insecure (RFC 5155 §9.2).
    pub(crate) fn with_opt_out(kind: DenialKind, is_opt_out: bool) -> Self {
        Self { kind, insecure_reason: is_opt_out.then_some(InsecureReason::OptOut) }
    }
}

impl Claim<'_> {
    /// Returns what the claim denies if no wildcard matches the name.
    pub(crate) const fn kind(&self) -> DenialKind {
        match self {
            Self::NxDomain(_) => DenialKind::NxDomain,
            Self::NoData(..) => DenialKind::NoData,
            Self::WildcardExpansion(..) => DenialKind::WildcardExpansion,
            Self::NoDs(_) => DenialKind::NoDs,
        }
    }
}

/// Whether the bit map belongs to the parent side of a zone cut: it has NS and not SOA.
fn is_parent_side(map: &[u8]) -> bool {
    bitmap::contains(map, Rtype::NS) && !bitmap::contains(map, Rtype::SOA)
}

/// Checks that the record that matches `name` shows that `rtype` does not exist. `name` is the
/// denied name or the wildcard that matches it. (RFC 4035 §5.4, RFC 5155 §8.5 to §8.7, RFC 6840
/// §4.1 and §4.3)
pub(crate) fn check_type_is_absent(name: NameRef<'_>, rtype: Rtype, map: &[u8]) -> Result<(), BogusReason> {
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
        return if is_parent_side(map) { Err(BogusReason::ParentSideRecord(name.to_name())) } else { Ok(()) };
    }
    // The root has no parent that could have a DS RRset for it.
    let is_apex = bitmap::contains(map, Rtype::SOA) && !name.is_root();
    if is_apex { Err(BogusReason::ChildSideRecord(name.to_name())) } else { Ok(()) }
}

/// Checks that the record that matches `encloser` can prove something about names below it (RFC
/// 5155 §8.3, RFC 6840 §4.1, RFC 6672 §5.3.4.1).
pub(crate) fn check_can_be_encloser(encloser: NameRef<'_>, map: &[u8]) -> Result<(), BogusReason> {
    if bitmap::contains(map, Rtype::DNAME) {
        return Err(BogusReason::BelowDname(encloser.to_name()));
    }
    if is_parent_side(map) { Err(BogusReason::ParentSideRecord(encloser.to_name())) } else { Ok(()) }
}

/// Checks that the record that matches `cut` shows an unsigned delegation (RFC 4035 §5.2, RFC 5155
/// §8.9).
pub(crate) fn check_unsigned_delegation(cut: NameRef<'_>, map: &[u8]) -> Result<(), BogusReason> {
    if !bitmap::contains(map, Rtype::NS) {
        return Err(BogusReason::NotADelegation(cut.to_name()));
    }
    if bitmap::contains(map, Rtype::SOA) {
        return Err(BogusReason::ChildSideRecord(cut.to_name()));
    }
    if bitmap::contains(map, Rtype::DS) { Err(BogusReason::SignedDelegation(cut.to_name())) } else { Ok(()) }
}
