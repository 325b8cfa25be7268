//! What NSEC records of a response deny (RFC 4035 §5.4, RFC 6840 §4), minimally covering ones (RFC 4470) and compact denial
//! (RFC 9824) included.

use crate::denial::names::{common_labels, next_closer, wildcard_below};
use crate::validate::BogusReason;
use crate::validate::claim::{Claim, Denial, Kind, check_cut, check_encloser, check_type};
use nonesuch_proto::{NameRef, Rtype, bitmap};

/// An NSEC record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nsec<'m> {
    owner: NameRef<'m>,
    next: NameRef<'m>,
    map: &'m [u8],
    /// The last record of a chain leads back to the apex.
    is_last: bool,
}

impl<'m> Nsec<'m> {
    /// Reads a record of the zone at `apex`. Its next name must come after its owner, or be the apex.
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

    /// Whether `name` lies between owner and next name.
    fn spans(&self, name: NameRef<'_>) -> bool {
        self.owner < name && (self.is_last || name < self.next)
    }

    /// Whether `name` lies in the span and is nothing but there for a name below it (RFC 4592 §2.2.2).
    fn shows_empty(&self, name: NameRef<'_>) -> bool {
        self.spans(name) && self.next.is_below(name)
    }

    /// RFC 6840 §4.1: at a zone cut, and with a DNAME, the record says nothing of what is below its owner.
    fn check_below(&self, name: NameRef<'_>) -> Result<(), BogusReason> {
        if name.is_below(self.owner) { check_encloser(self.owner, self.map) } else { Ok(()) }
    }

    /// The labels of the closest encloser of a name in the span: what it has in common with one end.
    fn encloser_labels(&self, name: NameRef<'_>) -> usize {
        common_labels(name, self.owner).max(common_labels(name, self.next))
    }

    fn has(&self, rtype: Rtype) -> bool {
        bitmap::contains(self.map, rtype)
    }
}

/// The NSEC records of a response that count.
#[derive(Debug)]
pub(crate) struct NsecRecords<'m> {
    list: Vec<Nsec<'m>>,
}

impl<'m> NsecRecords<'m> {
    pub(crate) const fn new(list: Vec<Nsec<'m>>) -> Self {
        Self { list }
    }

    /// Whether a claim holds.
    pub(crate) fn deny(&self, claim: Claim<'_>) -> Result<Denial, BogusReason> {
        let kind = match claim {
            Claim::Name(name) => self.deny_name(name)?,
            Claim::Type(name, rtype) => self.deny_type(name, rtype)?,
            Claim::Closer(name, labels) => {
                // What is below the next closer name is not there either: it would sort before the next name.
                self.covering(next_closer(name, name.suffix(labels)))?;
                Kind::Closer
            }
            Claim::Cut(cut) => {
                let record = self.matching(cut).ok_or_else(|| BogusReason::NotMatched(cut.to_name()))?;
                check_cut(cut, record.map)?;
                Kind::Cut
            }
        };
        Ok(Denial::secure(kind))
    }

    fn matching(&self, name: NameRef<'_>) -> Option<&Nsec<'m>> {
        self.list.iter().find(|record| record.owner == name)
    }

    /// A record that shows that `name` does not exist, nor anything below it.
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

    /// RFC 4035 §5.4: one record covers the name, one the wildcard at the closest encloser. Compact denial has one that
    /// matches (RFC 9824 §3.1).
    fn deny_name(&self, name: NameRef<'_>) -> Result<Kind, BogusReason> {
        if let Some(record) = self.matching(name) {
            return match nxname(name, record)? {
                true => Ok(Kind::Name),
                false => Err(BogusReason::NameExists(name.to_name())),
            };
        }
        let covering = self.covering(name)?;
        let Some(wildcard) = wildcard_below(name.suffix(covering.encloser_labels(name))) else {
            return Ok(Kind::Name);
        };
        if self.matching(wildcard.view()).is_some() {
            return Err(BogusReason::WildcardExists(wildcard));
        }
        match self.covering(wildcard.view()) {
            Ok(_) => Ok(Kind::Name),
            Err(BogusReason::NotCovered(_)) => Err(BogusReason::WildcardNotDenied(wildcard)),
            Err(BogusReason::NameExists(_)) => Err(BogusReason::WildcardExists(wildcard)),
            Err(reason) => Err(reason),
        }
    }

    fn deny_type(&self, name: NameRef<'_>, rtype: Rtype) -> Result<Kind, BogusReason> {
        if let Some(record) = self.matching(name) {
            if nxname(name, record)? {
                return Ok(Kind::Name);
            }
            check_type(name, rtype, record.map)?;
            return Ok(Kind::Type);
        }
        if self.is_empty_non_terminal(name) {
            return Ok(Kind::Type);
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
        Ok(Kind::WildcardType)
    }

    fn is_empty_non_terminal(&self, name: NameRef<'_>) -> bool {
        self.list.iter().any(|record| record.shows_empty(name) && record.check_below(name).is_ok())
    }
}

/// RFC 9824 §3.1: a name that does not exist has NXNAME beside RRSIG and NSEC, and nothing else.
fn nxname(name: NameRef<'_>, record: &Nsec<'_>) -> Result<bool, BogusReason> {
    if !record.has(Rtype::NXNAME) {
        return Ok(false);
    }
    let is_only =
        bitmap::types(record.map).all(|rtype| matches!(rtype, Rtype::NXNAME | Rtype::RRSIG | Rtype::NSEC));
    if is_only { Ok(true) } else { Err(BogusReason::NxnameWithTypes(name.to_name())) }
}
