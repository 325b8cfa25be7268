//! Items about EDNS.

use super::super::zones::Role;
use super::super::{Evidence, Outcome, Row};
use super::context::{ResolverCheck, Status, lookup};
use super::faults::Findings;
use super::{item, quick};
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Rtype, edns};

/// An option code for local use (RFC 6891 §9).
const UNKNOWN_OPTION: u16 = 65_001;
/// EDNS flags without meaning.
const UNKNOWN_FLAGS: u16 = 0x1fff;

pub(super) const ITEMS: &[Row<ResolverCheck>] = &[
    Row {
        item: quick(item(
            "XF-005",
            "Unknown EDNS options and flags are ignored, and unknown versions get BADVERS",
            &["RFC 6891 §6.1.2", "RFC 6891 §6.1.3", "RFC 6891 §6.1.4"],
            "Sends a query with an unknown option and unknown EDNS flags, and one with EDNS version 1. The servers of a zone add an unknown option to their responses; the answer must be secure.",
        )),
        run: unknown,
    },
    Row {
        item: item(
            "XF-006",
            "A server without EDNS gets queries without EDNS, and its signed zone is bogus",
            &["RFC 6891 §6.2.2", "RFC 3225 §3", "RFC 4035 §5", "RFC 4035 §5.5"],
            "A server answers FORMERR to queries with an OPT record. Names of its unsigned zone must be found; its signed zone has no signatures without EDNS, so its names must fail.",
        ),
        run: without_edns,
    },
];

fn unknown(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let name = check.name("www.special");
    let mut query = lookup(&name, Rtype::A);
    query.options = vec![(UNKNOWN_OPTION, b"check".to_vec())];
    query.edns_flags |= UNKNOWN_FLAGS & !edns::CO;
    let asked = check.ask(evidence, &query);
    findings.add(asked.status().and_then(|found| match found {
        Status::Secure => Ok(()),
        other => Err(format!(
            "a query with an unknown option and unknown flags: expected a secure answer, observed {}",
            other.name()
        )),
    }));
    if let Ok(response) = asked.ok() {
        let flags = response.message.opt().map_or(0, |opt| opt.ttl as u16);
        // RFC 6891 §6.1.4: Z bits are set to zero by senders.
        findings.require(flags & !(edns::DO | edns::CO) == 0, || {
            format!("the response has the unknown EDNS flags 0x{:04x}", flags & !(edns::DO | edns::CO))
        });
    }
    let mut query = lookup(&name, Rtype::A);
    query.version = 1;
    let asked = check.ask(evidence, &query);
    findings.add(asked.ok().and_then(|response| {
        let version = response.message.opt().map(|opt| (opt.ttl >> 16) as u8);
        match (response.message.rcode(), version) {
            (Rcode::BADVERS, Some(0)) => Ok(()),
            (Rcode::BADVERS, Some(version)) => {
                Err(format!("EDNS version 1: the response has version {version}, expected 0"))
            }
            (rcode, _) => Err(format!("EDNS version 1: expected BADVERS, observed {rcode}")),
        }
    }));
    let name = check.name("www.adds-option");
    findings.add(check.expect(evidence, (&name, Rtype::A), Rcode::NOERROR, Status::Secure));
    findings.outcome()
}

fn without_edns(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    if !check.is_separate(Role::RejectsEdns) {
        return Outcome::NotTestable(
            "the server without EDNS needs an address of its own: add --tree-listen addresses".to_owned(),
        );
    }
    let mut findings = Findings::default();
    let plain = check.name("www.plain-rejects-edns");
    findings.add(check.expect(evidence, (&plain, Rtype::A), Rcode::NOERROR, Status::Insecure));
    let signed = check.name("www.rejects-edns");
    findings.add(check.expect(evidence, (&signed, Rtype::A), Rcode::NOERROR, Status::Fails));
    findings.outcome()
}
