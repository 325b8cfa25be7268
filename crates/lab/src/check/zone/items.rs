//! The items of a zone check.

mod consistency;
mod delegation;
mod denial;
mod ds;
mod nameservers;
mod servers;
mod signatures;

use super::context::ZoneContext;
use super::findings::Findings;
use super::lookup::Server;
use crate::check::{Evidence, Item, Outcome, Row};

/// All items, in the order of their numbers.
pub fn items() -> impl Iterator<Item = &'static Row<ZoneContext>> {
    let tables = [
        delegation::ITEMS,
        nameservers::ITEMS,
        servers::ITEMS,
        consistency::ITEMS,
        ds::ITEMS,
        signatures::ITEMS,
        denial::ITEMS,
    ];
    tables.into_iter().flatten()
}

/// An item of a zone check, which needs few queries.
const fn item(
    id: &'static str,
    subject: &'static str,
    rules: &'static [&'static str],
    method: &'static str,
) -> Item {
    Item { id, subject, rules, method, is_jprs: false, is_quick: true }
}

/// Checks each server that answers authoritatively.
fn for_each_server(
    context: &mut ZoneContext,
    evidence: &mut Evidence,
    check: impl Fn(&mut ZoneContext, &mut Evidence, &Server, &mut Findings),
) -> Outcome {
    let mut findings = Findings::default();
    let live = context.live_servers(evidence);
    if let Some(reason) = context.why_no_server(&live) {
        return Outcome::NotTestable(reason);
    }
    for server in &live {
        check(context, evidence, server, &mut findings);
    }
    findings.outcome()
}

/// Checks each server of a signed zone that answers authoritatively. The RDATA of its DNSKEY RRset is passed.
fn for_each_signed_server(
    context: &mut ZoneContext,
    evidence: &mut Evidence,
    check: impl Fn(&mut ZoneContext, &mut Evidence, (&Server, &[Vec<u8>]), &mut Findings),
) -> Outcome {
    for_each_server(context, evidence, |context, evidence, server, findings| {
        let keys = context.apex_rrset(evidence, server, nonesuch_proto::Rtype::DNSKEY);
        match keys {
            Some(keys) => check(context, evidence, (server, &keys.rdatas), findings),
            None => findings.skip(format!("{} has no DNSKEY RRset: the zone is not signed", server.text())),
        }
    })
}

/// A list of texts in one line; "none" if it is empty.
fn list<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    let texts: Vec<String> = items.into_iter().map(|item| item.to_string()).collect();
    if texts.is_empty() { "none".to_owned() } else { texts.join(", ") }
}
