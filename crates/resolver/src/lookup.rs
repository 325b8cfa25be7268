//! Answers from the cache.

use crate::cache::{Cache, CachedAnswer, Failure, NegativeKind, Question};
use crate::delegation::Delegation;
use crate::options::ResolverOptions;
use crate::record::Rrset;
use crate::response::{alias_target, substitute, synthesise_cname};
use nonesuch_net::machine::Now;
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Class, Name, NameRef, Rtype};

/// The types of addresses.
const ADDRESS_TYPES: [Rtype; 2] = [Rtype::A, Rtype::AAAA];

/// What the cache has for a question.
pub(crate) enum Found {
    /// The RRset, after the DNAME RRset that implies it; and the RRsets that prove it, if it was
    /// expanded from a wildcard.
    Answer(Vec<Rrset>, Vec<Rrset>),
    /// NXDOMAIN, or NOERROR if the name does not have the type, with the authority section, and whether it
    /// proves that the name is an unsigned delegation.
    Negative(Rcode, Vec<Rrset>, bool),
    /// An alias: its RRsets, the RRsets that prove it, and its target in lower case.
    Alias(Vec<Rrset>, Vec<Rrset>, Name),
    /// The question failed recently.
    Failure(Failure),
}

/// Looks up a question in the cache.
pub(crate) fn look_up(cache: &Cache, question: &Question, now: Now) -> Option<Found> {
    if question.rtype == Rtype::ANY {
        return None;
    }
    cache.answer(question, now).and_then(|answer| found(question, answer))
}

/// As [`look_up`], but only with data of the name itself.
pub(crate) fn look_up_name(cache: &Cache, question: &Question, now: Now) -> Option<Found> {
    if question.rtype == Rtype::ANY {
        return None;
    }
    cache.answer_of_name(question, now).and_then(|answer| found(question, answer))
}

fn found(question: &Question, answer: CachedAnswer) -> Option<Found> {
    Some(match answer {
        CachedAnswer::Rrset(cached) => Found::Answer(vec![cached.rrset], cached.proofs),
        CachedAnswer::Alias(cached) => {
            let target = alias_target(&cached.rrset)?.view().to_canonical();
            Found::Alias(vec![cached.rrset], cached.proofs, target)
        }
        CachedAnswer::Dname(cached) => {
            let name = &question.name;
            let target = substitute(name.view(), &cached.rrset)?.view().to_canonical();
            let cname = synthesise_cname(name, &target, &cached.rrset);
            let rrsets = vec![cached.rrset, cname];
            match question.rtype {
                Rtype::CNAME => Found::Answer(rrsets, Vec::new()),
                _ => Found::Alias(rrsets, Vec::new(), target),
            }
        }
        CachedAnswer::Negative(negative) => {
            let is_nxdomain = negative.kind == NegativeKind::NxDomain;
            let rcode = if is_nxdomain { Rcode::NXDOMAIN } else { Rcode::NOERROR };
            Found::Negative(rcode, negative.authority, negative.is_unsigned_delegation)
        }
        CachedAnswer::Failure(failure) => Found::Failure(failure),
    })
}

/// Returns the closest delegation of the name whose servers can be asked, with the addresses that
/// are cached; `None` if not even the root is cached.
pub(crate) fn closest_delegation(
    cache: &Cache,
    options: &ResolverOptions,
    name: NameRef<'_>,
    now: Now,
) -> Option<Delegation> {
    let mut name = name.to_name();
    loop {
        let cached = cache.closest_delegation(name.view(), Class::IN, now)?;
        let mut delegation = Delegation::from_ns(&cached.rrset, Some(cached.expires));
        add_cached_addresses(cache, &mut delegation, now);
        let zone = cached.rrset.owner.view();
        if delegation.is_usable(|address| options.may_query(zone, address)) {
            delegation.is_cached = true;
            return Some(delegation);
        }
        name = cached.rrset.owner.view().parent()?.to_name();
    }
}

/// Adds the addresses of the nameservers that are cached.
pub(crate) fn add_cached_addresses(cache: &Cache, delegation: &mut Delegation, now: Now) {
    for nameserver in &mut delegation.nameservers {
        if ADDRESS_TYPES.iter().all(|rtype| nameserver.looked_up.contains(rtype)) {
            continue;
        }
        let name = nameserver.name.clone();
        let is_known = cache.addresses(name.view(), Class::IN, now, |rrset| {
            if !nameserver.looked_up.contains(&rrset.rtype) {
                nameserver.add(&rrset);
            }
        });
        for (rtype, is_known) in ADDRESS_TYPES.into_iter().zip(is_known) {
            if is_known && !nameserver.looked_up.contains(&rtype) {
                nameserver.looked_up.push(rtype);
            }
        }
    }
}
