//! Determines what the NSEC records of a response deny (RFC 4035 §5.4, RFC 6840 §4), including
//! minimally covering NSEC (RFC 4470) and compact denial (RFC 9824).

use crate::denial::names::{common_labels, next_closer, wildcard_below};
use crate::validate::BogusReason;
use crate::validate::claim::{Claim, DenialKind, ProvedClaim, check_cut, check_encloser, check_type};
use nonesuch_proto::{NameRef, Rtype, bitmap};

/// An NSEC record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nsec<'m> {
    owner: NameRef<'m>,
    next: NameRef<'m>,
    map: &'m [u8],
    /// Whether the next name is the apex, as in the last record of a chain.
    is_last: bool,
}

impl<'m> Nsec<'m> {
    /// Reads a record of the zone at `apex`. Its next name must follow its owner, or be the apex.
    pub(crate) fn read(owner: NameRef<'m>, rdata: &'m [u8], apex: NameRef<'_>) -> Result<Self, BogusReason> {
        let malformed = BogusReason::MalformedDenial(Rtype::NSEC);
        let Ok((next, map)) = NameRef::split_from(rdata) else { return Err(malformed) };
        if !bitmap::is_valid(map) {
            return Err(malformed);
        }
        let is_last = next == apex;
        if !is_last && (!next.is_at_or_below(apex) || next <= owner) {
            return Err(BogusReason::BadNextName(owner.to_name()));
        }
        Ok(Self { owner, next, map, is_last })
    }

    /// Whether `name` is between the owner and the next name.
    fn spans(&self, name: NameRef<'_>) -> bool {
        self.owner < name && (self.is_last || name < self.next)
    }

    /// Whether `name` is in the span and is an empty non-terminal (RFC 4592 §2.2.2): the next name
    /// is below it.
    fn shows_empty(&self, name: NameRef<'_>) -> bool {
        self.spans(name) && self.next.is_below(name)
    }

    /// RFC 6840 §4.1: a record at a zone cut or with a DNAME record denies nothing below its owner.
    fn check_below(&self, name: NameRef<'_>) -> Result<(), BogusReason> {
        if name.is_below(self.owner) { check_encloser(self.owner, self.map) } else { Ok(()) }
    }

    /// The number of labels of the closest encloser of a name in the span: the labels that the name
    /// shares with the owner or the next name.
    fn encloser_labels(&self, name: NameRef<'_>) -> usize {
        common_labels(name, self.owner).max(common_labels(name, self.next))
    }

    fn has(&self, rtype: Rtype) -> bool {
        bitmap::contains(self.map, rtype)
    }
}

/// The usable NSEC records of a response.
#[derive(Debug)]
pub(crate) struct NsecRecords<'m> {
    list: Vec<Nsec<'m>>,
}

impl<'m> NsecRecords<'m> {
    pub(crate) const fn new(list: Vec<Nsec<'m>>) -> Self {
        Self { list }
    }

    /// Verifies that the records prove the claim.
    pub(crate) fn check_claim(&self, claim: Claim<'_>) -> Result<ProvedClaim, BogusReason> {
        let kind = match claim {
            Claim::NxDomain(name) => self.check_name_denial(name)?,
            Claim::NoData(name, rtype) => self.check_type_denial(name, rtype)?,
            Claim::WildcardExpansion(name, labels) => {
                // No name below the next closer name exists either: it would precede the next name
                // of the record.
                self.covering(next_closer(name, name.suffix(labels)))?;
                DenialKind::WildcardExpansion
            }
            Claim::NoDs(cut) => {
                let record = self.matching(cut).ok_or_else(|| BogusReason::NotMatched(cut.to_name()))?;
                check_cut(cut, record.map)?;
                DenialKind::NoDs
            }
        };
        Ok(ProvedClaim::secure(kind))
    }

    fn matching(&self, name: NameRef<'_>) -> Option<&Nsec<'m>> {
        self.list.iter().find(|record| record.owner == name)
    }

    /// A record that proves that `name` and all names below it do not exist.
    fn covering(&self, name: NameRef<'_>) -> Result<&Nsec<'m>, BogusReason> {
        let mut first = None;
        for record in self.list.iter().filter(|record| record.spans(name)) {
            let outcome = match record.check_below(name) {
                Ok(()) if record.next.is_below(name) => Err(BogusReason::NameExists(name.to_name())),
                outcome => outcome,
            };
            match outcome {
                Ok(()) => return Ok(record),
                Err(reason) => first = first.or(Some(reason)),
            }
        }
        Err(first.unwrap_or_else(|| BogusReason::NotCovered(name.to_name())))
    }

    /// RFC 4035 §5.4: one record covers the name, and one covers the wildcard at the closest
    /// encloser. In compact denial, one record matches the name (RFC 9824 §3.1).
    fn check_name_denial(&self, name: NameRef<'_>) -> Result<DenialKind, BogusReason> {
        if let Some(record) = self.matching(name) {
            return match nxname(name, record)? {
                true => Ok(DenialKind::NxDomain),
                false => Err(BogusReason::NameExists(name.to_name())),
            };
        }
        let covering = self.covering(name)?;
        let Some(wildcard) = wildcard_below(name.suffix(covering.encloser_labels(name))) else {
            return Ok(DenialKind::NxDomain);
        };
        if self.matching(wildcard.view()).is_some() {
            return Err(BogusReason::WildcardExists(wildcard));
        }
        match self.covering(wildcard.view()) {
            Ok(_) => Ok(DenialKind::NxDomain),
            Err(BogusReason::NotCovered(_)) => Err(BogusReason::WildcardNotDenied(wildcard)),
            Err(BogusReason::NameExists(_)) => Err(BogusReason::WildcardExists(wildcard)),
            Err(reason) => Err(reason),
        }
    }

    fn check_type_denial(&self, name: NameRef<'_>, rtype: Rtype) -> Result<DenialKind, BogusReason> {
        if let Some(record) = self.matching(name) {
            if nxname(name, record)? {
                return Ok(DenialKind::NxDomain);
            }
            check_type(name, rtype, record.map)?;
            return Ok(DenialKind::NoData);
        }
        if self.is_empty_non_terminal(name) {
            return Ok(DenialKind::NoData);
        }
        let not_matched = |_| BogusReason::NotMatched(name.to_name());
        let covering = self.covering(name).map_err(|reason| match reason {
            BogusReason::NotCovered(_) => not_matched(()),
            reason => reason,
        })?;
        let wildcard = wildcard_below(name.suffix(covering.encloser_labels(name)));
        let wildcard = wildcard.ok_or_else(|| not_matched(()))?;
        match self.matching(wildcard.view()) {
            Some(record) => check_type(wildcard.view(), rtype, record.map)?,
            // RFC 4592 §2.2.3: a wildcard may be an empty non-terminal.
            None if self.is_empty_non_terminal(wildcard.view()) => {}
            None => return Err(not_matched(())),
        }
        Ok(DenialKind::WildcardNoData)
    }

    fn is_empty_non_terminal(&self, name: NameRef<'_>) -> bool {
        self.list.iter().any(|record| record.shows_empty(name) && record.check_below(name).is_ok())
    }
}

/// RFC 9824 §3.1: a name that does not exist has NXNAME, RRSIG and NSEC in the bit map, and no
/// other types.
fn nxname(name: NameRef<'_>, record: &Nsec<'_>) -> Result<bool, BogusReason> {
    if !record.has(Rtype::NXNAME) {
        return Ok(false);
    }
    let is_only =
        bitmap::types(record.map).all(|rtype| matches!(rtype, Rtype::NXNAME | Rtype::RRSIG | Rtype::NSEC));
    if is_only { Ok(true) } else { Err(BogusReason::NxnameWithTypes(name.to_name())) }
}
