//! The aliases of a response: CNAME RRsets and DNAME RRsets (RFC 6672 §5.3).

use super::{NameOutcome, Walk};
use crate::validate::error::ValidationError;
use crate::validate::outcome::{Alias, ProvedAnswer, RrsetStatus};
use crate::validate::reason::BogusReason;
use crate::validate::signature::ValidSignature;
use nonesuch_proto::message::Section;
use nonesuch_proto::{MAX_NAME, Name, NameRef, Rtype};

impl<'v> Walk<'v> {
    /// Verifies a CNAME RRset and returns the alias.
    pub(super) fn follow_cname(&mut self, index: usize) -> Result<Alias, ValidationError> {
        self.verify_expandable(index)?;
        let name = self.rrsets.get(index).owner.to_name();
        Ok(Alias { name, target: self.alias_target(index)?.to_name(), by_dname: false })
    }

    /// Returns the target of an RRset of aliases, which must have exactly one record.
    fn alias_target(&self, index: usize) -> Result<NameRef<'v>, BogusReason> {
        let rrset = self.rrsets.get(index);
        let &[rdata] = rrset.rdatas.as_slice() else {
            return Err(BogusReason::SeveralAliases(rrset.owner.to_name()));
        };
        NameRef::from_wire(rdata).map_err(|_| BogusReason::MalformedAlias(rrset.owner.to_name()))
    }

    /// Returns the index of the nearest DNAME RRset above `name` in the answer section.
    pub(super) fn find_dname(&self, name: NameRef<'_>) -> Option<usize> {
        let mut ancestor = name.parent();
        while let Some(owner) = ancestor.filter(|owner| owner.len() >= self.keys.apex().len()) {
            if let Some(index) = self.rrsets.find(Section::Answer, owner, Rtype::DNAME) {
                return Some(index);
            }
            ancestor = owner.parent();
        }
        None
    }

    /// Follows the DNAME RRset at index `dname`. If the response has a CNAME RRset for `name`, at
    /// index `cname`, it must equal the record that the validator synthesises; such a record is not
    /// signed (RFC 6672 §5.3.1).
    pub(super) fn follow_dname(
        &mut self,
        name: &Name,
        dname: usize,
        cname: Option<usize>,
    ) -> Result<NameOutcome, ValidationError> {
        self.verify_unexpanded(dname)?;
        let owner = self.rrsets.get(dname).owner;
        let prefix = &name.wire()[..name.wire().len() - owner.len()];
        let target = self.alias_target(dname)?;
        if prefix.len() + target.len() > MAX_NAME {
            return Ok(NameOutcome::Done(ProvedAnswer::DnameTooLong));
        }
        let synthesised = [prefix, target.wire()].concat();
        let synthesised = NameRef::from_wire_unchecked(&synthesised).to_name();
        if let Some(index) = cname {
            if self.alias_target(index)? != synthesised.view() {
                return Err(self.mark_bogus(index, BogusReason::ForgedAlias(name.clone())));
            }
            self.progress.statuses[index] = RrsetStatus::Synthesised;
            // The DNAME record proves the CNAME record and therefore limits the time for which it
            // may be cached.
            let ttl = self.rrsets.get(index).ttl;
            self.progress.valid_signatures[index] = self.progress.valid_signatures[dname]
                .map(|valid| ValidSignature { ttl: valid.ttl.min(ttl), ..valid });
        }
        if self.question.rtype == Rtype::CNAME {
            // The synthesised record is the answer. If the response does not have it, the resolver
            // can synthesise it.
            let proved = if cname.is_some() {
                ProvedAnswer::Answer
            } else {
                ProvedAnswer::Alias { target: synthesised }
            };
            return Ok(NameOutcome::Done(proved));
        }
        Ok(NameOutcome::Alias(Alias { name: name.clone(), target: synthesised, by_dname: true }))
    }
}
