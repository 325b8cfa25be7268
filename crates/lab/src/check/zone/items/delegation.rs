//! Items about the delegation: what the parent and the zone say about the nameservers.

use super::{item, list};
use crate::check::zone::context::{Nameserver, ZoneContext};
use crate::check::zone::discover::ParentView;
use crate::check::zone::findings::Findings;
use crate::check::{Evidence, Outcome, Query, Row, Transport};
use nonesuch_proto::message::flags;
use nonesuch_proto::{Name, Rtype};
use std::collections::BTreeSet;

/// Octets of a response over UDP without EDNS (RFC 1035 §4.2.1).
const PLAIN_OCTETS: usize = 512;
/// Octets of a response over UDP that is not fragmented on any path of IPv6 (RFC 9715 §A).
const UDP_OCTETS: usize = 1232;

pub(super) const ITEMS: &[Row<ZoneContext>] = &[
    Row {
        item: item(
            "Z-001",
            "each server of the parent zone delegates the zone",
            &["RFC 1034 §4.2.1", "RFC 1034 §4.2.2"],
            "Queries the NS RRset of the zone at each server of the parent. A server that also serves the zone \
             answers with the data of the zone instead of a referral.",
        ),
        run: delegated,
    },
    Row {
        item: item(
            "Z-002",
            "the servers of the parent zone have the same NS and DS records for the zone",
            &["RFC 1034 §4.3.5"],
            "Compares the NS records in referrals and the DS RRsets of all servers of the parent.",
        ),
        run: parents_agree,
    },
    Row {
        item: item(
            "Z-003",
            "the parent and the zone have the same NS records",
            &["RFC 1034 §4.2.1", "RFC 1034 §4.2.2"],
            "Compares the NS records in referrals of the parent with the NS RRsets of all servers of the zone.",
        ),
        run: same_nameservers,
    },
    Row {
        item: item(
            "Z-004",
            "the nameservers in the zone that the parent names have glue in referrals",
            &["RFC 1034 §4.2.1", "RFC 9471 §3.1", "RFC 9471 §3.2"],
            "Reads the additional section of each referral. Glue of a nameserver in the zone is required. A server \
             should send the glue that it has for a nameserver in another zone below the parent: missing glue is noted.",
        ),
        run: has_glue,
    },
    Row {
        item: item(
            "Z-005",
            "glue in referrals has the addresses that the zone has",
            &["RFC 1034 §4.2.2"],
            "Queries A and AAAA of each nameserver at the zone's own servers, or through its zone, and compares \
             them with the glue.",
        ),
        run: glue_is_current,
    },
    Row {
        item: item(
            "Z-006",
            "the referral fits in a response over UDP",
            &["RFC 1035 §4.2.1", "RFC 9715 §4", "RFC 9715 §A"],
            "Requests the referral without EDNS and with DO. A referral that is truncated at 512 octets, or has \
             more than 1,232 octets with DO, is noted: resolvers need TCP then.",
        ),
        run: referral_size,
    },
];

/// The views of the parent's servers, requested again for the evidence; an error if there is no parent.
fn views(context: &mut ZoneContext, evidence: &mut Evidence) -> Result<Vec<ParentView>, Outcome> {
    if context.options.undelegated.is_some() {
        return Err(Outcome::NotTestable("the zone is checked before its delegation".to_owned()));
    }
    let Some(parent) = context.parent().cloned() else {
        let reason = match context.fault() {
            Some(fault) => fault.to_string(),
            None => "the root zone has no parent".to_owned(),
        };
        return Err(Outcome::NotTestable(reason));
    };
    Ok(parent.servers.iter().map(|server| context.parent_view(evidence, server)).collect())
}

fn delegated(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    let views = match views(context, evidence) {
        Ok(views) => views,
        Err(Outcome::NotTestable(reason)) if context.fault().is_some() => return Outcome::Fail(reason),
        Err(outcome) => return outcome,
    };
    let mut findings = Findings::default();
    let zone = context.zone().clone();
    for view in views {
        let server = view.server.text();
        match (&view.fault, view.nameservers.is_empty()) {
            (Some(fault), _) => findings.fault(format!("{server}: {fault}")),
            (None, true) => findings.fault(format!("{server} has no NS records for {zone}")),
            (None, false) => findings.good(),
        }
        if view.is_of_child {
            findings.note(format!("{server} serves the parent and the zone, and sends no referral"));
        }
    }
    findings.outcome()
}

fn parents_agree(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    let views = match views(context, evidence) {
        Ok(views) => views,
        Err(outcome) => return outcome,
    };
    let mut findings = Findings::default();
    let referrals: Vec<&ParentView> =
        views.iter().filter(|view| view.fault.is_none() && !view.is_of_child).collect();
    if views.iter().all(|view| view.nameservers.is_empty()) {
        return Outcome::NotTestable("no server of the parent delegates the zone".to_owned());
    }
    for view in &referrals {
        let first = &referrals[0];
        let (own, other) = (names(&view.nameservers), names(&first.nameservers));
        findings.check((own != other).then(|| {
            format!(
                "{} has the NS records {}, {} has {}",
                view.server.text(),
                list(own),
                first.server.text(),
                list(other)
            )
        }));
    }
    let with_ds: Vec<(&ParentView, BTreeSet<&Vec<u8>>)> =
        views.iter().filter_map(|view| Some((view, view.ds.as_ref()?.iter().collect()))).collect();
    for (view, ds) in &with_ds {
        let (first, other) = &with_ds[0];
        findings.check(
            (ds != other).then(|| {
                format!("{} and {} have different DS RRsets", view.server.text(), first.server.text())
            }),
        );
    }
    if referrals.is_empty() {
        findings.skip("each server of the parent also serves the zone, and sends no referral");
    }
    findings.outcome()
}

fn same_nameservers(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    let views = views(context, evidence);
    let live = context.live_servers(evidence);
    if let Some(reason) = context.why_no_server(&live) {
        return Outcome::NotTestable(reason);
    }
    let is_planned = context.options.undelegated.is_some();
    let has_referral = views.is_ok_and(|views| views.iter().any(|view| !view.is_of_child));
    if !is_planned && !has_referral {
        let reason = "no server of the parent sends a referral: each also serves the zone";
        return Outcome::NotTestable(reason.to_owned());
    }
    let parent: BTreeSet<Name> = nameservers(context, |known| known.is_in_parent);
    let mut findings = Findings::default();
    for server in live {
        let Some(rrset) = context.apex_rrset(evidence, &server, Rtype::NS) else {
            findings.fault(format!("{} has no NS records at the apex", server.text()));
            continue;
        };
        let own = names(&read_names(&rrset.rdatas));
        let missing = list(parent.difference(&own));
        let more = list(own.difference(&parent));
        findings.check((own != parent).then(|| {
            format!("{}: only the parent names {missing}, only the zone names {more}", server.text())
        }));
    }
    findings.outcome()
}

fn has_glue(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    let views = match views(context, evidence) {
        Ok(views) => views,
        Err(outcome) => return outcome,
    };
    let mut findings = Findings::default();
    let zone = context.zone().clone();
    let parent = context.parent().map(|parent| parent.zone.clone()).unwrap_or_else(Name::root);
    for view in views.iter().filter(|view| view.fault.is_none()) {
        let server = view.server.text();
        if view.is_of_child {
            findings.skip(format!("{server} also serves the zone, and sends no referral"));
            continue;
        }
        for name in &view.nameservers {
            let has_glue = view.glue.iter().any(|(owner, _)| owner == name);
            if name.view().is_at_or_below(zone.view()) {
                findings.check(
                    (!has_glue).then(|| format!("{server}: no glue for {name}, which is in the zone")),
                );
            } else if !name.view().is_at_or_below(parent.view()) {
                findings.good();
                if has_glue {
                    findings.note(format!("{server} sends addresses of {name}, which is not below {parent}"));
                }
            } else {
                findings.good();
                if !has_glue {
                    findings.note(format!("{server}: no glue for {name}, which is below {parent}"));
                }
            }
        }
    }
    findings.outcome()
}

fn glue_is_current(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    let live = context.live_servers(evidence);
    if let Some(reason) = context.why_no_server(&live) {
        return Outcome::NotTestable(reason);
    }
    let mut findings = Findings::default();
    let zone = context.zone().clone();
    for Nameserver { name, glue, is_in_parent, .. } in context.discovery.nameservers.clone() {
        if !is_in_parent || glue.is_empty() {
            continue;
        }
        let own = if name.view().is_at_or_below(zone.view()) {
            context.own_addresses(evidence, &name)
        } else {
            context.network.addresses(evidence, &name)
        };
        let (own, glue): (BTreeSet<_>, BTreeSet<_>) = (own.into_iter().collect(), glue.into_iter().collect());
        if own.is_empty() {
            findings.fault(format!("{name}: the glue is {}, and its zone has no address", list(glue)));
            continue;
        }
        let is_wrong = !glue.is_subset(&own);
        findings.check(
            is_wrong.then(|| format!("{name}: the glue is {}, its zone has {}", list(&glue), list(&own))),
        );
        if !is_wrong && glue != own {
            findings.note(format!("{name}: the glue has {} of the addresses {}", list(&glue), list(&own)));
        }
    }
    findings.skip("no nameserver has glue");
    findings.outcome_without_skips()
}

fn referral_size(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    let views = match views(context, evidence) {
        Ok(views) => views,
        Err(outcome) => return outcome,
    };
    let mut findings = Findings::default();
    for view in views.into_iter().filter(|view| view.fault.is_none()) {
        let server = view.server.text();
        if view.is_of_child {
            findings.skip(format!("{server} also serves the zone, and sends no referral"));
            continue;
        }
        if view.nameservers.is_empty() {
            findings.skip(format!("{server} sends no referral"));
            continue;
        }
        let query = Query::new(context.zone().clone(), Rtype::NS).without_edns();
        let plain = context.network.client.ask_over(evidence, view.server.address, &query, Transport::Udp);
        match plain {
            Err(fault) => findings.fault(format!("{server}: without EDNS: {fault}")),
            Ok(plain) if plain.octets.len() > PLAIN_OCTETS => {
                let octets = plain.octets.len();
                findings.fault(format!(
                    "{server} sends {octets} octets over UDP without EDNS, the maximum is 512"
                ));
            }
            Ok(plain) => {
                findings.good();
                if plain.has(flags::TC) {
                    findings.note(format!("{server}: the referral is truncated at 512 octets without EDNS"));
                }
            }
        }
        if view.octets > UDP_OCTETS {
            findings
                .note(format!("{server}: the referral has {} octets with DO, more than 1,232", view.octets));
        }
    }
    findings.outcome()
}

/// The names of nameservers that fulfil a condition.
fn nameservers(context: &ZoneContext, condition: impl Fn(&Nameserver) -> bool) -> BTreeSet<Name> {
    let known = context.discovery.nameservers.iter().filter(|known| condition(known));
    known.map(|known| known.name.clone()).collect()
}

fn names(names: &[Name]) -> BTreeSet<Name> {
    names.iter().map(|name| name.view().to_canonical()).collect()
}

/// The names in the RDATA of NS records.
pub(super) fn read_names(rdatas: &[Vec<u8>]) -> Vec<Name> {
    let names = rdatas.iter().filter_map(|rdata| nonesuch_proto::NameRef::from_wire(rdata).ok());
    names.map(nonesuch_proto::NameRef::to_canonical).collect()
}
