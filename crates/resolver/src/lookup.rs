//! Answers from the cache.

use crate::cache::{Cache, CachedAnswer, Failure, NegativeKind, Question, Rank};
use crate::delegation::Delegation;
use crate::record::Rrset;
use crate::response::{alias_target, substitute, synthesise_cname};
use crate::shared::Shared;
use nonesuch_net::machine::Now;
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Class, Name, NameRef, Rtype};

/// What the cache has for a question.
pub(crate) enum Found {
    /// The RRset, after the DNAME RRset that implies it.
    Answer(Vec<Rrset>),
    /// NXDOMAIN, or NOERROR if the name does not have the type, with the authority section.
    Negative(Rcode, Vec<Rrset>),
    /// An alias: its RRsets and its target in lower case.
    Alias(Vec<Rrset>, Name),
    /// The question failed recently.
    Failure(Failure),
}

/// Looks up a question in the cache.
pub(crate) fn look_up(cache: &Cache, question: &Question, now: Now) -> Option<Found> {
    if question.rtype == Rtype::ANY {
        return None;
    }
    let failure = match cache.answer(question, now) {
        Some(CachedAnswer::Rrset(cached)) => return Some(Found::Answer(vec![cached.rrset])),
        Some(CachedAnswer::Alias(cached)) => {
            let target = alias_target(&cached.rrset)?.view().to_canonical();
            return Some(Found::Alias(vec![cached.rrset], target));
        }
        Some(CachedAnswer::Negative(negative)) => {
            let is_nxdomain = negative.kind == NegativeKind::NxDomain;
            let rcode = if is_nxdomain { Rcode::NXDOMAIN } else { Rcode::NOERROR };
            return Some(Found::Negative(rcode, negative.authority));
        }
        Some(CachedAnswer::Failure(failure)) => Some(Found::Failure(failure)),
        None => None,
    };
    look_up_dname(cache, question, now).or(failure)
}

/// Finds a DNAME RRset above the name (RFC 6672 §3.4).
fn look_up_dname(cache: &Cache, question: &Question, now: Now) -> Option<Found> {
    let name = question.name.view();
    let mut above = name.parent();
    while let Some(owner) = above {
        if let Some(cached) = cache.rrset(owner, Rtype::DNAME, Class::IN, Rank::CLIENT_MIN, now) {
            let target = substitute(name, &cached.rrset)?.view().to_canonical();
            let cname = synthesise_cname(&name.to_name(), &target, &cached.rrset);
            let rrsets = vec![cached.rrset, cname];
            return Some(match question.rtype {
                Rtype::CNAME => Found::Answer(rrsets),
                _ => Found::Alias(rrsets, target),
            });
        }
        above = owner.parent();
    }
    None
}

/// Returns the closest delegation of the name whose servers can be asked, with the addresses that
/// are cached; `None` if not even the root is cached.
pub(crate) fn closest_delegation(shared: &Shared, name: NameRef<'_>, now: Now) -> Option<Delegation> {
    let mut name = name.to_name();
    loop {
        let cached = shared.cache.closest_delegation(name.view(), Class::IN, now)?;
        let mut delegation = Delegation::from_ns(&cached.rrset, Some(cached.expires));
        add_cached_addresses(&shared.cache, &mut delegation, now);
        let zone = cached.rrset.owner.view();
        if delegation.is_usable(|address| shared.options.may_query(zone, address)) {
            delegation.is_cached = true;
            return Some(delegation);
        }
        name = cached.rrset.owner.view().parent()?.to_name();
    }
}

/// Adds the addresses of the nameservers that are cached.
pub(crate) fn add_cached_addresses(cache: &Cache, delegation: &mut Delegation, now: Now) {
    for nameserver in &mut delegation.nameservers {
        for rtype in [Rtype::A, Rtype::AAAA] {
            if nameserver.looked_up.contains(&rtype) {
                continue;
            }
            let name = nameserver.name.view();
            if let Some(cached) = cache.rrset(name, rtype, Class::IN, Rank::Additional, now) {
                nameserver.add(&cached.rrset);
            } else if cache.negative(name, rtype, Class::IN, now).is_some() {
                nameserver.looked_up.push(rtype);
            }
        }
    }
}
