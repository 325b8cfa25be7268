//! Items about the maintenance of trust anchors (RFC 5011).

use super::super::{Evidence, Outcome, Row};
use super::context::{ResolverCheck, Status, lookup};
use super::faults::Findings;
use super::rollover::{self, Results, Seen};
use super::{item, jprs};
use crate::tree::Fault;
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Name, Rtype};

pub(super) const ITEMS: &[Row<ResolverCheck>] = &[
    Row {
        item: jprs(item(
            "F-194",
            "A self-signed DNSKEY with the REVOKE flag is treated as revoked",
            &["RFC 5011 §2.1", "RFC 5011 §3"],
            "A zone whose DS records match a revoked key must fail, because the key is only used for its own revocation. With a moved clock: the root publishes the configured key with REVOKE, which signs its DNSKEY RRset; then the key no longer makes data secure.",
        )),
        run: revoked_key,
    },
    Row {
        item: jprs(item(
            "F-196",
            "A revoked DNSKEY is not used as trust anchor",
            &["RFC 5011 §2.1", "RFC 5011 §4.2"],
            "The root of the check publishes the configured key with REVOKE.",
        )),
        run: revoked_anchor,
    },
    Row {
        item: jprs(item(
            "F-201",
            "A new key becomes a trust anchor after the hold-down time",
            &["RFC 5011 §2.2", "RFC 5011 §2.4.1"],
            "The root of the check publishes a new key for 30 days.",
        )),
        run: after_hold_down,
    },
    Row {
        item: jprs(item(
            "F-202",
            "A new key does not become a trust anchor before the hold-down time",
            &["RFC 5011 §2.2", "RFC 5011 §2.4.1"],
            "The root of the check publishes a new key for less than 30 days.",
        )),
        run: before_hold_down,
    },
    Row {
        item: item(
            "XF-070",
            "Trust anchors have the states Start, AddPend, Valid, Missing, Revoked and Removed",
            &["RFC 5011 §4"],
            "The keys of the root change in the order of the states; a valid key disappears and comes back. No client can observe the state Removed.",
        ),
        run: states,
    },
    Row {
        item: item(
            "XF-071",
            "The hold-down time starts again if the new key disappears",
            &["RFC 5011 §2.2"],
            "The new key disappears during the hold-down time and comes back.",
        ),
        run: absence,
    },
    Row {
        item: item(
            "XF-072",
            "The keys of trust anchors are queried regularly",
            &["RFC 5011 §2.3"],
            "Counts the queries for the DNSKEY RRset of the root in the starts on different days. Intervals without a restart are not tested.",
        ),
        run: refresh,
    },
    Row {
        item: item(
            "XF-073",
            "A revoked key is forgotten after 30 days",
            &["RFC 5011 §2.4.2"],
            "The revoked key disappears.",
        ),
        run: not_visible,
    },
    Row {
        item: item(
            "XF-074",
            "The states of trust anchors survive a restart",
            &["RFC 5011 §2.2", "RFC 5011 §4.2"],
            "The resolver is stopped and started during the hold-down time. RFC 5011 does not mention restarts, but the hold-down time is longer than a process may run, and a revocation is permanent.",
        ),
        run: restarts,
    },
    Row {
        item: item(
            "XF-075",
            "The resolver signals its trust anchors, and answers the sentinel",
            &["RFC 8145 §5.2", "RFC 8509 §2.2", "RFC 8509 §3"],
            "Asks for root-key-sentinel names in a secure zone: with a tag that is no trust anchor, `is-ta` must fail and `not-ta` be answered, or both be answered by a resolver without the sentinel. Queries for `_ta-` names are reported.",
        ),
        run: sentinel,
    },
];

/// Runs the roll, and judges one of its results.
fn judge(
    check: &mut ResolverCheck,
    evidence: &mut Evidence,
    judge: impl FnOnce(&Results, &mut Findings),
) -> Outcome {
    match check.rollover(evidence) {
        Err(reason) => Outcome::NotTestable(reason),
        Ok(results) if results.configured != Seen::Secure => {
            Outcome::NotTestable("the resolver does not find the root secure with the configured key: it may not work with libfaketime".to_owned())
        }
        Ok(results) => {
            let mut findings = Findings::default();
            judge(&results, &mut findings);
            findings.outcome()
        }
    }
}

/// A result must be this one.
fn must_be(findings: &mut Findings, what: &str, found: Seen, expected: Seen) {
    findings.require(found == expected, || {
        format!("{what}: expected {}, observed {}", expected.name(), found.name())
    });
}

fn revoked_key(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    check.add_fault(evidence, Fault::RevokedKey, &mut findings);
    match check.rollover(evidence) {
        Ok(results) if results.configured == Seen::Secure => {
            must_be(
                &mut findings,
                "the root with the new and the revoked key",
                results.revoked,
                Seen::Secure,
            );
            findings.require(results.after_revocation != Seen::Secure, || {
                "the root with the revoked key is secure again".to_owned()
            });
        }
        _ => findings.note("as a key of DS records; the trust anchor needs a moved clock (F-196)"),
    }
    findings.outcome()
}

fn revoked_anchor(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    judge(check, evidence, |results, findings| {
        must_be(
            findings,
            "the root with only the old key, two days after its revocation",
            results.after_revocation,
            Seen::Fails,
        );
    })
}

fn after_hold_down(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    judge(check, evidence, |results, findings| {
        must_be(
            findings,
            "the root with only the new key, 34 days after its last publication",
            results.after_hold_down,
            Seen::Secure,
        );
    })
}

fn before_hold_down(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    judge(check, evidence, |results, findings| {
        must_be(
            findings,
            "the root with only the new key, 19 days after its publication",
            results.before_hold_down,
            Seen::Fails,
        );
    })
}

fn states(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    judge(check, evidence, |results, findings| {
        must_be(findings, "AddPend: only the new key", results.before_hold_down, Seen::Fails);
        must_be(findings, "Valid: only the new key", results.after_hold_down, Seen::Secure);
        must_be(findings, "Missing, and valid again: only the old key", results.after_missing, Seen::Secure);
        must_be(findings, "Revoked: only the old key", results.after_revocation, Seen::Fails);
    })
}

fn absence(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    judge(check, evidence, |results, findings| {
        must_be(
            findings,
            "the root with only the new key, 40 days after its first publication and 18 days after its second one",
            results.after_absence,
            Seen::Fails,
        );
    })
}

fn refresh(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    judge(check, evidence, |results, findings| {
        let steps = rollover::STARTS;
        findings.require(results.key_queries >= steps, || {
            format!(
                "{steps} starts on different days: expected a query for the keys in each, observed {}",
                results.key_queries
            )
        });
        findings.note(format!(
            "{} queries for the keys in {steps} starts; intervals without a restart are not tested",
            results.key_queries
        ));
    })
}

fn not_visible(_: &mut ResolverCheck, _: &mut Evidence) -> Outcome {
    Outcome::NotTestable(
        "a client cannot see whether the resolver has forgotten a revoked key: look into its state"
            .to_owned(),
    )
}

fn restarts(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    judge(check, evidence, |results, findings| {
        must_be(
            findings,
            "the root with only the new key, after ten restarts during its hold-down time",
            results.after_hold_down,
            Seen::Secure,
        );
    })
}

/// Number of queries that signal the trust anchors of the resolver (RFC 8145 §5.1).
fn key_tag_queries(check: &ResolverCheck) -> usize {
    let (_, observations) = check.authority().observations_from(0);
    let names = observations.iter().filter_map(|seen| seen.question()).map(|(name, _)| name);
    let is_signal = |name: &Name| name.view().labels().next().is_some_and(|label| label.starts_with(b"_ta-"));
    names.filter(is_signal).count()
}

/// RFC 8509 §3: the sentinel names are in a secure zone, here below a wildcard.
fn sentinel(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    if !check.has_root() {
        return Outcome::NotTestable(
            "the trust anchors of the resolver are unknown: use a tree of the check (without --delegated)"
                .to_owned(),
        );
    }
    let mut findings = Findings::default();
    findings
        .note(format!("{} key tag queries (`_ta-`) since the start of the check", key_tag_queries(check)));
    let tag = check
        .tree()
        .anchor_ds()
        .first()
        .and_then(|ds| ds.first_chunk().copied())
        .map_or(0, u16::from_be_bytes);
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
    let answers = [("is", tag), ("not", tag), ("is", other), ("not", other)]
        .map(|(kind, tag)| status(check, kind, tag));
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
