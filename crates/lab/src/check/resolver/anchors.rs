//! Items about the maintenance of trust anchors (RFC 5011).

use super::super::{Evidence, Outcome, Row};
use super::context::{ResolverCheck, Status, lookup};
use super::faults::Findings;
use super::{item, jprs};
use crate::tree::Fault;
use nonesuch_proto::Rtype;
use nonesuch_proto::message::Rcode;

/// Why the items about times cannot be tested from outside.
const CLOCK: &str = "the resolver would have to run for 30 days, or with a moved clock: `check anchors` starts a resolver with a moved clock if libfaketime is installed";

pub(super) const ITEMS: &[Row<ResolverCheck>] = &[
    Row {
        item: jprs(item("F-194", "A self-signed DNSKEY with the REVOKE flag is treated as revoked", &["RFC 5011 §2.1"],
            "From outside: a zone whose DS records match a revoked key must fail, because the key is only used for its own revocation.")),
        run: |check, evidence| check.check_faults(evidence, &[Fault::RevokedKey]),
    },
    Row {
        item: jprs(item("F-196", "A revoked DNSKEY is not used as trust anchor", &["RFC 5011 §2.1", "RFC 5011 §4"],
            "The root of the check publishes the configured key with REVOKE.")),
        run: not_testable,
    },
    Row {
        item: jprs(item("F-201", "A new key becomes a trust anchor after the hold-down time", &["RFC 5011 §2.2", "RFC 5011 §2.4.1"],
            "The root of the check publishes a new key for 30 days.")),
        run: not_testable,
    },
    Row {
        item: jprs(item("F-202", "A new key does not become a trust anchor before the hold-down time", &["RFC 5011 §2.2", "RFC 5011 §2.4.1"],
            "The root of the check publishes a new key for less than 30 days.")),
        run: not_testable,
    },
    Row {
        item: item("XF-070", "Trust anchors have the states Start, AddPend, Valid, Missing, Revoked and Removed", &["RFC 5011 §4"],
            "The keys of the root change in the order of the states."),
        run: not_testable,
    },
    Row {
        item: item("XF-071", "The hold-down time starts again if the new key disappears", &["RFC 5011 §2.2"],
            "The new key disappears during the hold-down time and comes back."),
        run: not_testable,
    },
    Row {
        item: item("XF-072", "The keys of trust anchors are queried regularly", &["RFC 5011 §2.3"],
            "Queries for the DNSKEY RRset of the root between one hour and 15 days."),
        run: not_testable,
    },
    Row {
        item: item("XF-073", "A revoked key is forgotten after 30 days", &["RFC 5011 §2.4.2"],
            "The revoked key disappears."),
        run: not_testable,
    },
    Row {
        item: item("XF-074", "The states of trust anchors survive a restart", &["RFC 5011 §4"],
            "The resolver is stopped and started during the hold-down time."),
        run: not_testable,
    },
    Row {
        item: item("XF-075", "The resolver signals its trust anchors, and answers the sentinel", &["RFC 8145 §5", "RFC 8509 §3"],
            "Asks for root-key-sentinel names in a secure zone: with a tag that is no trust anchor, `is-ta` must fail and `not-ta` be answered, or both be answered by a resolver without the sentinel. Queries for `_ta-` names are reported."),
        run: sentinel,
    },
];

fn not_testable(_: &mut ResolverCheck, _: &mut Evidence) -> Outcome {
    Outcome::NotTestable(CLOCK.to_owned())
}

/// RFC 8509: the sentinel names are below a secure wildcard.
fn sentinel(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    if !check.has_root() {
        return Outcome::NotTestable("the trust anchors of the resolver are unknown: use a tree of the check (without --delegated)".to_owned());
    }
    let mut findings = Findings::default();
    let tag = check.tree().anchor_ds().first().and_then(|ds| ds.first_chunk().copied()).map_or(0, u16::from_be_bytes);
    let other = tag.wrapping_add(1);
    let mut status = |check: &mut ResolverCheck, kind: &str, tag: u16| {
        let name = check.name(&format!("root-key-sentinel-{kind}-ta-{tag:05}.wild.special"));
        let asked = check.ask(evidence, &lookup(&name, Rtype::A));
        let rcode = asked.ok().map(|response| response.message.rcode());
        match (asked.status(), rcode) {
            (Ok(Status::Fails), _) => Ok(false),
            (Ok(_), Ok(Rcode::NOERROR)) => Ok(true),
            (Ok(_), rcode) => Err(format!("{name}: observed {rcode:?}")),
            (Err(fault), _) => Err(format!("{name}: {fault}")),
        }
    };
    let answers = [("is", tag), ("not", tag), ("is", other), ("not", other)].map(|(kind, tag)| status(check, kind, tag));
    let found: Result<Vec<bool>, String> = answers.into_iter().collect();
    match found.as_deref() {
        Ok([true, false, false, true]) => findings.note("answers the sentinel (RFC 8509)"),
        Ok([true, true, true, true]) => findings.note("has no sentinel, which is optional"),
        Ok(other) => findings.add(Err(format!(
            "is-ta and not-ta of the trust anchor, and of another tag: expected answer, SERVFAIL, SERVFAIL, answer; observed {other:?} (true: an answer)"
        ))),
        Err(fault) => findings.add(Err(fault.clone())),
    }
    findings.outcome()
}
