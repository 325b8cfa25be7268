//! Determines what the NSEC records of a response deny (RFC 4035 §5.4, RFC 6840 §4), including
//! minimally covering NSEC (RFC 4470) and compact denial (RFC 9824).

use crate::denial::names::{common_label_count, next_closer, wildcard_below};
use crate::validate::BogusReason;
use crate::validate::claim::{
    Claim, DenialKind, ProvedClaim, check_can_be_encloser, check_type_is_absent, check_unsigned_delegation,
};
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
    /// Reads a record of the zone at `apex`.
    ///
    /// # Errors
    /// The record is malformed, or its next name is outside the zone, or neither follows its owner
    /// nor is the apex.
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

    /// The owner and the next name.
    pub(crate) const fn span(&self) -> (NameRef<'m>, NameRef<'m>) {
        (self.owner, self.next)
    }

    /// The type bit map.
    pub(crate) const fn map(&self) -> &'m [u8] {
        self.map
    }

    /// Whether `name` is between the owner and the next name.
    fn covers(&self, name: NameRef<'_>) -> bool {
        self.owner < name && (self.is_last || name < self.next)
    }

    /// Whether `name` is covered and is an empty non-terminal (RFC 4592 §2.2.2): the next name is
    /// below it.
    fn proves_empty_non_terminal(&self, name: NameRef<'_>) -> bool {
        self.covers(name) && self.next.is_below(name)
    }

    /// Checks that the record can deny `name`. RFC 6840 §4.1: a record whose owner is a zone cut or
    /// has a DNAME record denies nothing below its owner.
    fn check_can_deny(&self, name: NameRef<'_>) -> Result<(), BogusReason> {
        if name.is_below(self.owner) { check_can_be_encloser(self.owner, self.map) } else { Ok(()) }
    }

    /// Returns the number of labels of the closest encloser of a covered name: the labels that the
    /// name shares with the owner or the next name.
    fn encloser_labels(&self, name: NameRef<'_>) -> usize {
        common_label_count(name, self.owner).max(common_label_count(name, self.next))
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
                self.find_covering(next_closer(name, name.suffix(labels)))?;
                DenialKind::WildcardExpansion
            }
            Claim::NoDs(cut) => {
                let record = self.find_matching(cut).ok_or_else(|| BogusReason::NotMatched(cut.to_name()))?;
                check_unsigned_delegation(cut, record.map)?;
                DenialKind::NoDs
            }
        };
        Ok(ProvedClaim::secure(kind))
    }

    fn find_matching(&self, name: NameRef<'_>) -> Option<&Nsec<'m>> {
        self.list.iter().find(|record| record.owner == name)
    }

    /// Returns a record that proves that `name` and all names below it do not exist.
    ///
    /// # Errors
    /// The reason of the first record that covers `name` and is not suitable, or
    /// [`BogusReason::NotCovered`].
    fn find_covering(&self, name: NameRef<'_>) -> Result<&Nsec<'m>, BogusReason> {
        let mut first_reason = None;
        for record in self.list.iter().filter(|record| record.covers(name)) {
            let outcome = match record.check_can_deny(name) {
                Ok(()) if record.next.is_below(name) => Err(BogusReason::NameExists(name.to_name())),
                outcome => outcome,
            };
            match outcome {
                Ok(()) => return Ok(record),
                Err(reason) => first_reason = first_reason.or(Some(reason)),
            }
        }
        Err(first_reason.unwrap_or_else(|| BogusReason::NotCovered(name.to_name())))
    }

    /// RFC 4035 §5.4: one record covers the name, and one covers the wildcard at the closest
    /// encloser. In compact denial, one record matches the name (RFC 9824 §3.1).
    fn check_name_denial(&self, name: NameRef<'_>) -> Result<DenialKind, BogusReason> {
        if let Some(record) = self.find_matching(name) {
            return match has_nxname(name, record)? {
                true => Ok(DenialKind::NxDomain),
                false => Err(BogusReason::NameExists(name.to_name())),
            };
        }
        let covering = self.find_covering(name)?;
        let Some(wildcard) = wildcard_below(name.suffix(covering.encloser_labels(name))) else {
            return Ok(DenialKind::NxDomain);
        };
        if self.find_matching(wildcard.view()).is_some() {
            return Err(BogusReason::WildcardExists(wildcard));
        }
        match self.find_covering(wildcard.view()) {
            Ok(_) => Ok(DenialKind::NxDomain),
            Err(BogusReason::NotCovered(_)) => Err(BogusReason::WildcardNotDenied(wildcard)),
            Err(BogusReason::NameExists(_)) => Err(BogusReason::WildcardExists(wildcard)),
            Err(reason) => Err(reason),
        }
    }

    /// RFC 4035 §5.4: one record matches the name or shows that it is an empty non-terminal; or one
    /// record covers the name, and one matches the wildcard at the closest encloser.
    fn check_type_denial(&self, name: NameRef<'_>, rtype: Rtype) -> Result<DenialKind, BogusReason> {
        if let Some(record) = self.find_matching(name) {
            if has_nxname(name, record)? {
                return Ok(DenialKind::NxDomain);
            }
            check_type_is_absent(name, rtype, record.map)?;
            return Ok(DenialKind::NoData);
        }
        if self.is_empty_non_terminal(name) {
            return Ok(DenialKind::NoData);
        }
        let not_matched = |_| BogusReason::NotMatched(name.to_name());
        let covering = self.find_covering(name).map_err(|reason| match reason {
            BogusReason::NotCovered(_) => not_matched(()),
            reason => reason,
        })?;
        let wildcard = wildcard_below(name.suffix(covering.encloser_labels(name)));
        let wildcard = wildcard.ok_or_else(|| not_matched(()))?;
        match self.find_matching(wildcard.view()) {
            Some(record) => check_type_is_absent(wildcard.view(), rtype, record.map)?,
            // RFC 4592 §2.2.3: a wildcard may be an empty non-terminal.
            None if self.is_empty_non_terminal(wildcard.view()) => {}
            None => return Err(not_matched(())),
        }
        Ok(DenialKind::WildcardNoData)
    }

    fn is_empty_non_terminal(&self, name: NameRef<'_>) -> bool {
        self.list
            .iter()
            .any(|record| record.proves_empty_non_terminal(name) && record.check_can_deny(name).is_ok())
    }
}

/// Whether the bit map of `record` has NXNAME: the owner `name` does not exist.
///
/// # Errors
/// If the bit map also has a type other than RRSIG and NSEC, which RFC 9824 §3.1 forbids.
fn has_nxname(name: NameRef<'_>, record: &Nsec<'_>) -> Result<bool, BogusReason> {
    if !record.has(Rtype::NXNAME) {
        return Ok(false);
    }
    let has_no_other_type =
        bitmap::types(record.map).all(|rtype| matches!(rtype, Rtype::NXNAME | Rtype::RRSIG | Rtype::NSEC));
    if has_no_other_type { Ok(true) } else { Err(BogusReason::NxnameWithTypes(name.to_name())) }
}
