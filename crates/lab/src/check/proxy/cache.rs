//! Items about caches of proxies.

use super::super::resolver::{Findings, item, jprs, quick};
use super::super::{Evidence, Outcome, Query, Row, Transport};
use super::context::ProxyCheck;
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Rcode, Section, flags};

/// Case 5 of the report of JPRS.
pub(super) const CASES: &[Row<ProxyCheck>] = &[Row {
    item: jprs(quick(item(
        "P-5",
        "A cache of the proxy does not prevent validation",
        &["RFC 5625 §3", "RFC 6891 §6.2.6", "RFC 4035 §3.2.1"],
        "Two clients ask for the same name: the first without DO, the second with DO. The second must get the RRSIG record and AD. With types that devices cache: A, TXT, MX.",
    ))),
    run: two_clients,
}];

pub(super) const ITEMS: &[Row<ProxyCheck>] = &[Row {
    item: item(
        "XP-010",
        "The proxy has no cache, or one that distinguishes DO and CD",
        &["RFC 5625 §3", "RFC 4035 §3.2.1", "RFC 4035 §3.2.2", "RFC 6840 §5.9"],
        "Asks for the same name without and with DO, and for a name with bogus data without and with CD, in both orders. Whether later queries arrive behind the proxy is reported.",
    ),
    run: distinguishes,
}];

/// Whether the response has an RRSIG record.
fn is_signed(
    check: &mut ProxyCheck,
    evidence: &mut Evidence,
    query: &Query,
) -> Result<(bool, bool, bool), String> {
    let passed = check.pass(evidence, query, Transport::Udp);
    let response = passed.response()?;
    let is_signed = response.message.section(Section::Answer).any(|record| record.rtype == Rtype::RRSIG);
    Ok((is_signed, response.has(flags::AD), passed.upstream.is_empty()))
}

pub(super) fn two_clients(check: &mut ProxyCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    for rtype in [Rtype::A, Rtype::TXT, Rtype::MX] {
        let second = check.query("clients", rtype);
        let first = second.clone().without_do().without_edns();
        findings.add(
            is_signed(check, evidence, &first)
                .map(drop)
                .map_err(|fault| format!("{rtype}, first client: {fault}")),
        );
        match is_signed(check, evidence, &second) {
            Ok((true, true, _)) => {}
            Ok((has_signature, has_ad, _)) => findings.add(Err(format!(
                "{rtype}, second client with DO: expected RRSIG and AD=1, observed {} and AD={}",
                if has_signature { "RRSIG" } else { "no RRSIG" },
                u8::from(has_ad)
            ))),
            Err(fault) => findings.add(Err(format!("{rtype}, second client: {fault}"))),
        }
    }
    findings.outcome()
}

pub(super) fn distinguishes(check: &mut ProxyCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let mut cached = 0;
    for orders in [[false, true], [true, false]] {
        let with_do = check.query("cached", Rtype::A);
        for wants_dnssec in orders {
            let query = if wants_dnssec { with_do.clone() } else { with_do.clone().without_do() };
            match is_signed(check, evidence, &query) {
                Ok((found, _, is_cached)) => {
                    cached += usize::from(is_cached);
                    findings.require(found == wants_dnssec, || {
                        format!(
                            "query with DO={}: observed {}",
                            u8::from(wants_dnssec),
                            if found { "RRSIG records" } else { "no RRSIG record" }
                        )
                    });
                }
                Err(fault) => findings.add(Err(fault)),
            }
        }
        let bogus = check.query("bogus", Rtype::A);
        for is_disabled in orders {
            let query = if is_disabled { bogus.clone().with_flags(flags::CD) } else { bogus.clone() };
            let passed = check.pass(evidence, &query, Transport::Udp);
            cached += usize::from(passed.upstream.is_empty());
            let expected = if is_disabled { Rcode::NOERROR } else { Rcode::SERVFAIL };
            findings.add(passed.response().and_then(|response| match response.message.rcode() {
                rcode if rcode == expected => Ok(()),
                rcode => Err(format!(
                    "bogus data, query with CD={}: expected {expected}, observed {rcode}",
                    u8::from(is_disabled)
                )),
            }));
        }
    }
    findings.note(if cached == 0 {
        "has no cache".to_owned()
    } else {
        format!("{cached} queries were answered from a cache")
    });
    findings.outcome()
}
