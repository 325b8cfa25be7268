//! Answers from validated denial records and wildcards of earlier responses (RFC 8198).

use super::Resolver;
use super::iterate::{Step, use_alias};
use crate::cache::{CachedAnswer, NegativeKind, Question};
use crate::denials::{Denied, Found, Wildcard};
use crate::record::{Rrset, Security};
use crate::response::alias_target;
use crate::task::TaskId;
use nonesuch_dnssec::denial::type_bitmap;
use nonesuch_dnssec::rrsig::Rrsig;
use nonesuch_net::machine::Now;
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{NameRef, Rtype, bitmap};

impl Resolver {
    /// Uses validated denial records for the current name of a task. The hashes are deducted from its
    /// budget.
    pub(super) fn use_denials(&mut self, id: TaskId, question: &Question, now: Now) -> Option<Step> {
        let is_permitted = self.settings.options.validation.aggressive
            && self.validates()
            && !question.checking_disabled
            // Not a name in a forward zone, or in another tree that a stub zone begins.
            && self.settings.options.zones.closest(question.name.view()).is_none();
        let task = self.tasks.get_mut(id).filter(|_| is_permitted)?;
        let hash_limit = task.budget.validation.hash_blocks_left() / 2;
        let search = self.shared.denials.prove(question.name.view(), question.rtype, hash_limit, now);
        task.budget.validation.charge_hash_blocks(search.hash_blocks);
        self.model.count_denial_work(search.hash_blocks, 0);
        match search.found? {
            Found::Denied(Denied { kind, authority }) => {
                let rcode = if kind == NegativeKind::NxDomain { Rcode::NXDOMAIN } else { Rcode::NOERROR };
                task.is_unsigned_delegation =
                    question.rtype == Rtype::DS && is_unsigned_delegation(question.name.view(), &authority);
                Some(Step::Finish(task.outcome(rcode, Vec::new(), authority)))
            }
            Found::Wildcard(wildcard) => {
                let rrset = self.expand(question, &wildcard, now)?;
                let task = self.tasks.get_mut(id)?;
                if rrset.rtype == question.rtype {
                    return Some(Step::Finish(task.outcome(Rcode::NOERROR, vec![rrset], wildcard.authority)));
                }
                let target = alias_target(&rrset)?.view().to_canonical();
                Some(use_alias(task, vec![rrset], wildcard.authority, target))
            }
        }
    }

    /// Returns the RRset or the CNAME RRset of a cached wildcard, with the name of the question (RFC 8198
    /// §5.3).
    fn expand(&self, question: &Question, wildcard: &Wildcard, now: Now) -> Option<Rrset> {
        let source = Question { name: wildcard.source.clone(), ..question.clone() };
        let rrset = match self.shared.cache.answer_of_name(&source, now)? {
            CachedAnswer::Rrset(cached) | CachedAnswer::Alias(cached) => cached.rrset,
            _ => return None,
        };
        let is_of_zone =
            |rdata: &[u8]| Rrsig::parse(rdata).is_some_and(|fields| fields.signer == wildcard.zone.view());
        let is_usable = rrset.security == Security::Secure && rrset.signatures.iter().all(is_of_zone);
        let ttl = wildcard.authority.iter().map(|proof| proof.ttl).fold(rrset.ttl, u32::min);
        is_usable.then(|| Rrset { owner: question.name.clone(), ttl, ..rrset })
    }
}

/// Whether a denial of DS consists of the record of the name alone, which shows an unsigned delegation
/// (RFC 4035 §5.2, RFC 5155 §8.9).
fn is_unsigned_delegation(name: NameRef<'_>, authority: &[Rrset]) -> bool {
    let denials: Vec<&Rrset> = authority.iter().filter(|rrset| is_denial(rrset.rtype)).collect();
    let [rrset] = denials.as_slice() else { return false };
    let is_of_name = rrset.rtype != Rtype::NSEC || rrset.owner.view() == name;
    let map = rrset.records.iter().next().and_then(|rdata| type_bitmap(rrset.rtype, rdata));
    is_of_name
        && map.is_some_and(|map| bitmap::contains(map, Rtype::NS) && !bitmap::contains(map, Rtype::SOA))
}

const fn is_denial(rtype: Rtype) -> bool {
    matches!(rtype, Rtype::NSEC | Rtype::NSEC3 | Rtype::NSEC5)
}
