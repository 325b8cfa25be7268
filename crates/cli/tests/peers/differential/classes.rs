//! The known kinds of difference.

use super::exchange::{ObservedRecord, Question, Reply};
use super::zone::Zone;
use nonesuch_lab::peers::Peer;
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Name, NameRef, Rtype};
use std::collections::BTreeSet;

/// One question, both replies, and the zone.
pub(crate) struct Case<'a> {
    pub(crate) zone: &'a Zone,
    pub(crate) question: &'a Question,
    pub(crate) peer: Peer,
}

/// The side that follows the rule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Right {
    Ours,
    Both,
}

/// A kind of difference.
pub(crate) struct Class {
    /// The name in docs/differences.md.
    pub(crate) name: &'static str,
    /// The peers with this difference.
    pub(crate) peers: &'static [Peer],
    pub(crate) rule: &'static str,
    pub(crate) right: Right,
    /// Removes the difference with this cause from both replies, and returns whether there was one.
    /// If it removes all denial records, those of this server are still compared with those of the
    /// other peer, unless another class applies to the same question.
    pub(crate) explain: fn(&Case<'_>, &mut Reply, &mut Reply) -> bool,
}

const BOTH: &[Peer] = &[Peer::Nsd, Peer::Knot];
const ALL: &[Peer] = &[Peer::Nsd, Peer::Knot, Peer::Bind];

pub(crate) const CLASSES: &[Class] = &[
    Class {
        name: "case-of-compressed-names",
        peers: ALL,
        rule: "RFC 4343 §4.1: names compare without case; a name compressed into the question takes the question's case, and each server compresses others",
        right: Right::Both,
        explain: case_of_compressed_names,
    },
    Class {
        name: "case-of-stored-names",
        peers: BOTH,
        rule: "RFC 1035 §2.3.3: case is preserved where possible; the peers keep names in lower case",
        right: Right::Ours,
        explain: case_of_stored_names,
    },
    Class {
        name: "apex-ns-in-authority",
        peers: &[Peer::Nsd],
        rule: "RFC 1034 §4.3.2 asks for NS records in referrals alone; RFC 2181 §5.4.1 knows them in other answers",
        right: Right::Both,
        explain: apex_ns_in_authority,
    },
    Class {
        name: "any",
        peers: ALL,
        rule: "RFC 8482 §4.1: one RRset of the server's choice, all, or a part",
        right: Right::Both,
        explain: any,
    },
    Class {
        name: "rrsig-query",
        peers: &[Peer::Knot],
        rule: "RFC 1034 §4.3.2 step 3a: all records that match the type; Knot DNS picks one",
        right: Right::Ours,
        explain: rrsig_query,
    },
    Class {
        name: "nsec-query-at-alias",
        peers: ALL,
        rule: "RFC 1034 §4.3.2 step 3a: an alias without the type asked for is followed, whatever the type but CNAME",
        right: Right::Ours,
        explain: denial_query_at_alias,
    },
    Class {
        name: "alias-chain-length",
        peers: BOTH,
        rule: "RFC 1034 §3.6.2 sets no limit: we follow 16 aliases, Knot DNS 4, NSD more; the resolver goes on",
        right: Right::Both,
        explain: alias_chain_length,
    },
    Class {
        name: "alias-chain-fails",
        peers: &[Peer::Bind],
        rule: "RFC 1034 §3.6.2 sets no limit: where aliases lead in a circle, or on and on, BIND gives what it has with SERVFAIL",
        right: Right::Both,
        explain: alias_chain_fails,
    },
    Class {
        name: "nsec-query-at-cut",
        peers: &[Peer::Bind],
        rule: "RFC 4035 §3.1.4: a question at a delegation gets the referral, DS excepted; BIND gives the parent's NSEC RRset",
        right: Right::Both,
        explain: nsec_query_at_cut,
    },
    Class {
        name: "dname-into-itself",
        peers: &[Peer::Nsd],
        rule: "RFC 6672 §3.2 sets no limit: NSD stops when a DNAME leads below itself; the chain has no end",
        right: Right::Both,
        explain: dname_into_itself,
    },
    Class {
        name: "denial-below-hash-owner",
        peers: &[Peer::Nsd],
        rule: "RFC 5155 §7.2.1, §7.2.8: owner names of NSEC3 records are no enclosers",
        right: Right::Ours,
        explain: denial_below_hash_owner,
    },
    Class {
        name: "denial-behind-dname",
        peers: &[Peer::Nsd],
        rule: "RFC 6672 §3.2, RFC 4035 §3.1.3: the name that the DNAME leads to is what is denied",
        right: Right::Ours,
        explain: denial_behind_dname,
    },
    Class {
        name: "denial-at-wildcard",
        peers: &[Peer::Nsd],
        rule: "RFC 5155 §7.2.3: the record that matches the name is enough; NSD adds the proof of the closest encloser",
        right: Right::Both,
        explain: denial_at_wildcard,
    },
    Class {
        name: "denial-of-nested-wildcard-type",
        peers: &[Peer::Nsd],
        rule: "RFC 5155 §7.2.5: the closest encloser is matched too; NSD leaves it out where the wildcard is the parent of another",
        right: Right::Ours,
        explain: denial_of_nested_wildcard_type,
    },
    Class {
        name: "denial-at-opted-out-names",
        peers: &[Peer::Nsd],
        rule: "RFC 5155 §7.2.2, §7.2.4: the closest provable encloser is proved in place of an encloser without a record",
        right: Right::Ours,
        explain: denial_at_opted_out_names,
    },
    Class {
        name: "denial-of-empty-wildcard-type",
        peers: &[Peer::Knot, Peer::Bind],
        rule: "RFC 4035 §3.1.3.4: the wildcard's lack of the type is proved too, for an empty non-terminal by the record before it",
        right: Right::Ours,
        explain: denial_of_empty_wildcard_type,
    },
    Class {
        name: "order-of-zero-octets",
        peers: &[Peer::Knot],
        rule: "RFC 4034 §6.1: a label sorts before the labels that it begins; Knot DNS picks a record that does not cover the name",
        right: Right::Ours,
        explain: order_of_zero_octets,
    },
    Class {
        name: "denial-of-asterisk-names",
        peers: &[Peer::Knot],
        rule: "RFC 4592 §2.1.1, RFC 4035 §3.1.3.3: a missing name with an asterisk is matched by a wildcard as any other, and its absence proved",
        right: Right::Ours,
        explain: denial_of_asterisk_names,
    },
];

fn case_of_compressed_names(case: &Case<'_>, ours: &mut Reply, theirs: &mut Reply) -> bool {
    let is_mixed = case.question.name.wire().iter().any(u8::is_ascii_uppercase);
    // BIND returns names with the letter case of the zone file, independently of the question.
    if !(is_mixed || case.peer == Peer::Bind) || ours == theirs {
        return false;
    }
    let before = (ours.clone(), theirs.clone());
    for set in [&mut ours.answer, &mut ours.authority, &mut theirs.answer, &mut theirs.authority] {
        *set = set.iter().map(ObservedRecord::to_lower).collect();
    }
    before != (ours.clone(), theirs.clone())
}

fn case_of_stored_names(_: &Case<'_>, ours: &mut Reply, theirs: &mut Reply) -> bool {
    let mut occurred = false;
    for (ours, theirs) in [(&mut ours.answer, &theirs.answer), (&mut ours.authority, &theirs.authority)] {
        let lowered: Vec<ObservedRecord> = ours.difference(theirs).cloned().collect();
        for seen in lowered {
            let lower = seen.to_lower();
            if theirs.contains(&lower) {
                ours.remove(&seen);
                ours.insert(lower);
                occurred = true;
            }
        }
    }
    occurred
}

fn apex_ns_in_authority(case: &Case<'_>, ours: &mut Reply, theirs: &mut Reply) -> bool {
    let apex = case.zone.contents.apex();
    let is_apex_ns = |seen: &ObservedRecord| seen.covered() == Rtype::NS && seen.owner() == *apex;
    if theirs.answer.is_empty() || ours.authority.iter().any(is_apex_ns) {
        return false;
    }
    let whole = case.zone.contents.apex_rrset(Rtype::NS).map_or(0, |servers| servers.count());
    if theirs.authority.iter().filter(|seen| is_apex_ns(seen) && seen.rtype == Rtype::NS).count() != whole {
        return false;
    }
    theirs.authority.retain(|seen| !is_apex_ns(seen));
    true
}

fn any(case: &Case<'_>, ours: &mut Reply, theirs: &mut Reply) -> bool {
    let names = path(case, theirs);
    let is_data = |seen: &ObservedRecord| {
        case.question.rtype == Rtype::ANY && seen.rtype != Rtype::CNAME && names.last() == Some(&seen.owner())
    };
    let covered: BTreeSet<Rtype> =
        ours.answer.iter().filter(|seen| is_data(seen)).map(ObservedRecord::covered).collect();
    if case.question.rtype == Rtype::ANY
        && ours.answer != theirs.answer
        && ours.answer.is_subset(&theirs.answer)
    {
        ours.answer.clone_from(&theirs.answer);
        return true;
    }
    // BIND stops after the alias.
    if case.question.rtype == Rtype::ANY && ours.answer == theirs.answer && !theirs.answer.is_empty() {
        let stops =
            theirs.rcode == Rcode::NOERROR && theirs.authority.is_empty() && ours.rcode != theirs.rcode;
        if stops {
            theirs.clone_from(ours);
        }
        return stops;
    }
    if ours.answer == theirs.answer || covered.len() != 1 {
        return false;
    }
    ours.answer.retain(|seen| !is_data(seen));
    theirs.answer.retain(|seen| !is_data(seen));
    true
}

fn rrsig_query(case: &Case<'_>, ours: &mut Reply, theirs: &mut Reply) -> bool {
    let is_rrsig = theirs.answer.iter().all(|seen| seen.rtype == Rtype::RRSIG);
    if case.question.rtype != Rtype::RRSIG || theirs.answer.len() != 1 || !is_rrsig || ours.answer.len() == 1
    {
        return false;
    }
    let is_part = theirs.answer.is_subset(&ours.answer);
    if is_part {
        ours.answer.clone_from(&theirs.answer);
    }
    is_part
}

fn denial_query_at_alias(case: &Case<'_>, ours: &mut Reply, theirs: &mut Reply) -> bool {
    let is_denial_type = matches!(case.question.rtype, Rtype::NSEC | Rtype::NSEC3);
    let is_alias =
        ours.answer.iter().any(|seen| seen.rtype == Rtype::CNAME && seen.owner() == case.question.name);
    let is_nodata = theirs.answer.is_empty()
        && theirs.rcode == Rcode::NOERROR
        && theirs.authority.iter().any(|seen| seen.rtype == Rtype::SOA);
    if !is_denial_type || !is_alias || !is_nodata || ours.authoritative != theirs.authoritative {
        return false;
    }
    ours.clone_from(theirs);
    true
}

/// This server stops after the seventeenth CNAME, Knot DNS after the fifth.
fn alias_chain_length(case: &Case<'_>, ours: &mut Reply, theirs: &mut Reply) -> bool {
    let is_part = |one: &Reply, other: &Reply| {
        one != other && one.answer.is_subset(&other.answer) && one.authority.is_subset(&other.authority)
    };
    let (shorter, longer, limit) = if is_part(ours, theirs) {
        (ours, theirs, 17)
    } else if is_part(theirs, ours) && case.peer == Peer::Knot {
        (theirs, ours, 5)
    } else {
        return false;
    };
    let names = path(case, shorter);
    let stops_at_alias =
        names.last().is_some_and(|last| shorter.answer.iter().all(|seen| seen.owner() != *last));
    if names.len() != limit + 1 || !stops_at_alias {
        return false;
    }
    longer.clone_from(shorter);
    true
}

fn alias_chain_fails(_: &Case<'_>, ours: &mut Reply, theirs: &mut Reply) -> bool {
    let fails = theirs.rcode == Rcode::SERVFAIL
        && theirs.answer.is_subset(&ours.answer)
        && theirs.answer.iter().any(|seen| seen.rtype == Rtype::CNAME);
    if fails {
        theirs.clone_from(ours);
    }
    fails
}

fn nsec_query_at_cut(case: &Case<'_>, ours: &mut Reply, theirs: &mut Reply) -> bool {
    let at_cut = case.zone.cut(case.question.name.view()) == Some(case.question.name.view());
    let given = at_cut
        && case.question.rtype == Rtype::NSEC
        && !ours.authoritative
        && !theirs.answer.is_empty()
        && theirs
            .answer
            .iter()
            .all(|seen| seen.covered() == Rtype::NSEC && seen.owner() == case.question.name);
    if given {
        theirs.clone_from(ours);
    }
    given
}

fn dname_into_itself(case: &Case<'_>, ours: &mut Reply, theirs: &mut Reply) -> bool {
    let into_itself = |seen: &ObservedRecord| {
        seen.rtype == Rtype::DNAME
            && NameRef::from_wire(&seen.rdata).is_ok_and(|target| target.is_below(seen.owner().view()))
    };
    let stopped = theirs.answer.iter().any(into_itself)
        && theirs.answer.is_subset(&ours.answer)
        && path(case, theirs).len() == 2
        && path(case, ours).len() > 2;
    if stopped {
        ours.answer.clone_from(&theirs.answer);
    }
    stopped
}

fn denial_below_hash_owner(case: &Case<'_>, ours: &mut Reply, theirs: &mut Reply) -> bool {
    let names = path(case, ours);
    let has_hash = |name: &Name| {
        let mut at = name.view().parent();
        while let Some(here) = at {
            if case.zone.has(here, Rtype::NSEC3) {
                return true;
            }
            at = here.parent();
        }
        false
    };
    names.last().is_some_and(has_hash) && take_denial(ours, theirs)
}

fn denial_behind_dname(case: &Case<'_>, ours: &mut Reply, theirs: &mut Reply) -> bool {
    let chained = case.zone.has(case.zone.contents.apex().view(), Rtype::NSEC);
    let behind = ours.answer.iter().any(|seen| seen.rtype == Rtype::DNAME);
    chained && behind && take_denial(ours, theirs)
}

fn denial_at_wildcard(case: &Case<'_>, ours: &mut Reply, theirs: &mut Reply) -> bool {
    let names = path(case, ours);
    let at = names.last().is_some_and(|name| name.view().is_wildcard() && case.zone.holds(name.view()));
    at && ours.authority.is_subset(&theirs.authority) && take_denial(ours, theirs)
}

fn denial_of_nested_wildcard_type(case: &Case<'_>, ours: &mut Reply, theirs: &mut Reply) -> bool {
    let names = path(case, ours);
    let Some(source) = names.last().and_then(|name| source(case.zone, name)) else { return false };
    let nested = Name::wildcard_below(source.view()).is_ok_and(|nested| case.zone.holds(nested.view()));
    let hashed = case.zone.has(case.zone.contents.apex().view(), Rtype::NSEC3PARAM);
    nested && hashed && theirs.authority.is_subset(&ours.authority) && take_denial(ours, theirs)
}

fn denial_at_opted_out_names(case: &Case<'_>, ours: &mut Reply, theirs: &mut Reply) -> bool {
    let names = path(case, ours);
    let encloser = names.last().and_then(|name| case.zone.closest(name.view()));
    encloser.is_some_and(|encloser| case.zone.is_opted_out(encloser)) && take_denial(ours, theirs)
}

fn denial_of_empty_wildcard_type(case: &Case<'_>, ours: &mut Reply, theirs: &mut Reply) -> bool {
    let names = path(case, ours);
    let Some(source) = names.last().and_then(|name| source(case.zone, name)) else { return false };
    let is_empty = case.zone.types(source.view()).is_empty();
    let chained = case.zone.has(case.zone.contents.apex().view(), Rtype::NSEC);
    is_empty && chained && theirs.authority.is_subset(&ours.authority) && take_denial(ours, theirs)
}

/// The wildcard that matches a missing name.
fn source(zone: &Zone, name: &Name) -> Option<Name> {
    let encloser = zone.closest(name.view()).filter(|encloser| encloser.len() < name.view().len())?;
    Name::wildcard_below(encloser).ok().filter(|wildcard| zone.holds(wildcard.view()))
}

fn order_of_zero_octets(case: &Case<'_>, ours: &mut Reply, theirs: &mut Reply) -> bool {
    let names = path(case, ours);
    let has_zero = |name: &Name| name.view().labels().any(|label| label.contains(&0));
    let chained = case.zone.has(case.zone.contents.apex().view(), Rtype::NSEC);
    chained && names.iter().any(has_zero) && take_denial(ours, theirs)
}

fn denial_of_asterisk_names(case: &Case<'_>, ours: &mut Reply, theirs: &mut Reply) -> bool {
    let names = path(case, ours);
    let is_asterisk = |name: &Name| name.view().is_wildcard() && source(case.zone, name).is_some();
    names.iter().any(is_asterisk) && theirs.authority.is_subset(&ours.authority) && take_denial(ours, theirs)
}

/// The query name and the names that it is an alias of, in lower case.
fn path(case: &Case<'_>, reply: &Reply) -> Vec<Name> {
    let mut names = vec![case.question.name.view().to_canonical()];
    loop {
        let last = &names[names.len() - 1];
        let alias = reply.answer.iter().find(|seen| seen.rtype == Rtype::CNAME && seen.owner() == *last);
        let target = alias.and_then(|alias| NameRef::from_wire(&alias.rdata).ok()).map(NameRef::to_canonical);
        match target {
            Some(target) if !names.contains(&target) => names.push(target),
            _ => return names,
        }
    }
}

/// Removes the denial records from both authority sections, and returns whether they differed.
fn take_denial(ours: &mut Reply, theirs: &mut Reply) -> bool {
    let before = ours.authority == theirs.authority;
    for reply in [ours, theirs] {
        reply.authority.retain(|seen| !matches!(seen.covered(), Rtype::NSEC | Rtype::NSEC3));
    }
    !before
}
