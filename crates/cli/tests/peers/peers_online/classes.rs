//! The known kinds of difference.

use super::exchange::Question;
use super::meaning::Meaning;
use super::zone::Zone;
use crate::differential::classes::Right;
use nonesuch_lab::peers::Peer;
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Name, Rtype};
use std::collections::BTreeSet;

/// One question and the zone.
pub(crate) struct Case<'a> {
    pub(crate) zone: &'a Zone,
    pub(crate) question: &'a Question,
}

/// A kind of difference.
pub(crate) struct Class {
    /// The name in docs/differences.md.
    pub(crate) name: &'static str,
    pub(crate) peer: Peer,
    /// The mechanisms of this server with which it occurs.
    pub(crate) mechanisms: &'static [&'static str],
    pub(crate) rule: &'static str,
    pub(crate) right: Right,
    /// Removes the difference with this cause, and returns whether there was one.
    pub(crate) explain: fn(&Case<'_>, &mut Meaning, &mut Meaning) -> bool,
}

pub(crate) const CLASSES: &[Class] = &[
    Class {
        name: "nsec3param-for-narrow",
        peer: Peer::PowerDns,
        mechanisms: &["white-lies"],
        rule: "RFC 5155 §4: NSEC3PARAM tells servers which chain to answer with; where there is no chain ours has none, PowerDNS has one",
        right: Right::Both,
        explain: nsec3param_for_narrow,
    },
    Class {
        name: "cname-query-goes-on",
        peer: Peer::PowerDns,
        mechanisms: &["nsec3", "white-lies"],
        rule: "RFC 1034 §4.3.2 step 3a, RFC 6672 §3.2: a question for CNAME is answered by the alias; PowerDNS goes on behind those of a wildcard or a DNAME",
        right: Right::Ours,
        explain: cname_query_goes_on,
    },
    Class {
        name: "alias-chain-fails",
        peer: Peer::PowerDns,
        mechanisms: &["nsec3", "white-lies"],
        rule: "RFC 1034 §3.6.2 sets no limit: where aliases lead in a circle, or on and on, PowerDNS gives SERVFAIL alone",
        right: Right::Both,
        explain: alias_chain_fails,
    },
    Class {
        name: "referral-below-a-cut",
        peer: Peer::PowerDns,
        mechanisms: &["nsec3", "white-lies"],
        rule: "RFC 1034 §4.2.1, §4.3.2 step 3b: the first delegation on the way down; PowerDNS takes the lowest",
        right: Right::Ours,
        explain: referral_below_a_cut,
    },
    Class {
        name: "denial-behind-alias",
        peer: Peer::CoreDns,
        mechanisms: &["compact"],
        rule: "RFC 4035 §3.1.3, RFC 9824 §3: what the alias leads to is denied; CoreDNS sends the SOA record alone, or nothing",
        right: Right::Ours,
        explain: denial_behind_alias,
    },
    Class {
        name: "alias-chain-length",
        peer: Peer::CoreDns,
        mechanisms: &["compact"],
        rule: "RFC 1034 §3.6.2 sets no limit: where aliases lead in a circle, or on and on, CoreDNS stops at another place, some times with SERVFAIL",
        right: Right::Both,
        explain: alias_chain_length,
    },
];

fn nsec3param_for_narrow(case: &Case<'_>, ours: &mut Meaning, theirs: &mut Meaning) -> bool {
    let apex = case.zone.contents.apex();
    let has =
        |meaning: &Meaning| meaning.denial.matched.get(apex).map(|types| types.contains(&Rtype::NSEC3PARAM));
    let explained = has(ours) == Some(false) && has(theirs) == Some(true);
    if explained {
        theirs.denial.matched.entry(apex.clone()).or_default().remove(&Rtype::NSEC3PARAM);
    }
    explained
}

fn denial_behind_alias(_: &Case<'_>, ours: &mut Meaning, theirs: &mut Meaning) -> bool {
    let missing =
        !ours.answer.is_empty() && !ours.denial.matched.is_empty() && theirs.denial.matched.is_empty();
    if missing {
        ours.denial.matched.clear();
        ours.has_soa &= theirs.has_soa;
    }
    missing
}

/// Minimum number of aliases that CoreDNS follows.
const FOLLOWED: usize = 7;

fn alias_chain_length(_: &Case<'_>, ours: &mut Meaning, theirs: &mut Meaning) -> bool {
    let explained = ours != theirs && is_endless(ours, FOLLOWED);
    if explained {
        theirs.clone_from(ours);
    }
    explained
}

/// Whether the aliases of a response form a loop, or exceed `limit`.
fn is_endless(meaning: &Meaning, limit: usize) -> bool {
    let aliases: Vec<(&str, &str)> =
        meaning.answer.iter().filter_map(|text| text.split_once(" CNAME ")).collect();
    let owners: BTreeSet<&str> = aliases.iter().map(|alias| alias.0).collect();
    let ends = aliases.iter().any(|alias| !owners.contains(alias.1));
    !aliases.is_empty() && (!ends || aliases.len() > limit)
}

fn cname_query_goes_on(case: &Case<'_>, ours: &mut Meaning, theirs: &mut Meaning) -> bool {
    let asked = case.question.rtype == Rtype::CNAME && !ours.answer.is_empty() && ours != theirs;
    // CoreDNS ends a loop with a failure.
    let goes_on = asked && (ours.answer.is_subset(&theirs.answer) || theirs.rcode == Rcode::SERVFAIL);
    if goes_on {
        theirs.clone_from(ours);
    }
    goes_on
}

/// Number of aliases that PowerDNS follows.
const LIMIT: usize = 10;

fn alias_chain_fails(_: &Case<'_>, ours: &mut Meaning, theirs: &mut Meaning) -> bool {
    let failed = theirs.rcode == Rcode::SERVFAIL && theirs.answer.is_empty() && theirs.referral.is_empty();
    let explained = failed && is_endless(ours, LIMIT);
    if explained {
        theirs.clone_from(ours);
    }
    explained
}

fn referral_below_a_cut(case: &Case<'_>, ours: &mut Meaning, theirs: &mut Meaning) -> bool {
    let cut_of = |meaning: &Meaning| -> Option<Name> {
        meaning.referral.first().and_then(|text| text.split(' ').next()).and_then(|owner| owner.parse().ok())
    };
    let Some(cut) = cut_of(ours) else { return false };
    // PowerDNS answers a question for the inner delegation's DS as if the delegation belonged to
    // the zone.
    let lower = cut_of(theirs).or_else(|| theirs.has_soa.then(|| case.question.name.clone()));
    let explained =
        case.zone.has(cut.view(), Rtype::NS) && lower.is_some_and(|lower| lower.view().is_below(cut.view()));
    if explained {
        theirs.clone_from(ours);
    }
    explained
}
