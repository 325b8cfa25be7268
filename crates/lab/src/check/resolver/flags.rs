//! Items about the flags AD, CD and DO.

use super::super::{Evidence, Outcome, Query, Row};
use super::context::{ResolverCheck, Status, lookup};
use super::faults::Findings;
use super::transport::has_answer;
use super::{item, quick};
use nonesuch_proto::message::{Rcode, Section, flags};
use nonesuch_proto::{Name, Rtype};

pub(super) const ITEMS: &[Row<ResolverCheck>] = &[
    Row {
        item: quick(item(
            "XF-010",
            "AD is set if and only if all records are secure and the query has DO or AD",
            &["RFC 4035 §3.2.3", "RFC 6840 §5.7", "RFC 6840 §5.8"],
            "Asks for secure, insecure and mixed answers with DO, with AD, and without both. A mixed answer is an alias in a secure zone to an insecure one.",
        )),
        run: authenticated_data,
    },
    Row {
        item: quick(item(
            "XF-011",
            "With CD=1, data that do not validate are returned",
            &["RFC 4035 §3.2.2", "RFC 4035 §5.5", "RFC 6840 §5.9", "RFC 4035 §3.2.3"],
            "Asks for a name with a wrong signature with CD. The response must have the data and not AD.",
        )),
        run: checking_disabled,
    },
    Row {
        item: quick(item(
            "XF-012",
            "CD is copied to the response, and data that a query with CD fetched do not answer queries without CD",
            &["RFC 4035 §3.2.2", "RFC 4035 §4.7"],
            "Asks for a name with a wrong signature with CD, without CD, and again with CD.",
        )),
        run: cd_and_cache,
    },
    Row {
        item: quick(item(
            "XF-013",
            "Without DO, the response has no records of DNSSEC except of the queried type",
            &["RFC 4035 §3.2.1", "RFC 3225 §3"],
            "Asks for A, a missing name and DNSKEY of a secure zone without DO, and without EDNS.",
        )),
        run: without_do,
    },
    Row {
        item: quick(item(
            "XF-014",
            "AD in the responses of servers is not trusted",
            &["RFC 4035 §4.6", "RFC 4035 §3.2.3"],
            "The server of an unsigned zone sets AD. The answer of the resolver must not have it.",
        )),
        run: upstream_ad,
    },
];

fn authenticated_data(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let secure = check.name("www.special");
    let rows: [(&str, Query, bool); 4] = [
        ("DO", lookup(&secure, Rtype::A), true),
        ("AD without DO", lookup(&secure, Rtype::A).without_do().with_flags(flags::AD), true),
        ("AD without EDNS", lookup(&secure, Rtype::A).without_edns().with_flags(flags::AD), true),
        ("neither DO nor AD", lookup(&secure, Rtype::A).without_do(), false),
    ];
    for (what, query, expected) in rows {
        findings.add(
            has_ad(check, evidence, &query, expected)
                .map_err(|fault| format!("a secure name, query with {what}: {fault}")),
        );
    }
    for insecure in ["www.plain", "to-insecure.special"] {
        let query = lookup(&check.name(insecure), Rtype::A).with_flags(flags::AD);
        findings
            .add(has_ad(check, evidence, &query, false).map_err(|fault| format!("{}: {fault}", query.name)));
    }
    let alias = check.name("to-secure.special");
    findings.add(check.expect(evidence, (&alias, Rtype::A), Rcode::NOERROR, Status::Secure));
    let bogus = check.name("to-bogus.special");
    findings.add(check.expect(evidence, (&bogus, Rtype::TXT), Rcode::NOERROR, Status::Fails));
    findings.outcome()
}

/// The response is NOERROR, with or without AD.
fn has_ad(
    check: &mut ResolverCheck,
    evidence: &mut Evidence,
    query: &Query,
    expected: bool,
) -> Result<(), String> {
    let asked = check.ask(evidence, query);
    let response = asked.ok()?;
    let (rcode, found) = (response.message.rcode(), response.has(flags::AD));
    if rcode != Rcode::NOERROR || found != expected {
        return Err(format!(
            "expected NOERROR and AD={}, observed {rcode} and AD={}",
            u8::from(expected),
            u8::from(found)
        ));
    }
    Ok(())
}

fn bogus_name(check: &ResolverCheck) -> Name {
    check.name("www.wrong-signature")
}

/// The response to a query with CD has the data, and CD, and not AD.
fn bogus_with_cd(check: &mut ResolverCheck, evidence: &mut Evidence) -> Result<(), String> {
    let query = lookup(&bogus_name(check), Rtype::TXT).with_flags(flags::CD);
    let asked = check.ask(evidence, &query);
    let response = asked.ok()?;
    if response.message.rcode() != Rcode::NOERROR || !has_answer(response, Rtype::TXT) {
        return Err(format!(
            "{} with CD: expected the TXT record, observed {}",
            query.name,
            response.message.rcode()
        ));
    }
    if response.has(flags::AD) {
        return Err(format!("{} with CD: the answer with a wrong signature has AD", query.name));
    }
    if !response.has(flags::CD) {
        return Err(format!("{} with CD: the response does not have CD", query.name));
    }
    Ok(())
}

fn checking_disabled(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let found = bogus_with_cd(check, evidence);
    // XF-012 compares the flag CD of the response.
    findings
        .add(found.or_else(|fault| if fault.ends_with("does not have CD") { Ok(()) } else { Err(fault) }));
    findings.outcome()
}

fn cd_and_cache(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let name = bogus_name(check);
    findings.add(bogus_with_cd(check, evidence));
    findings.add(check.expect(evidence, (&name, Rtype::TXT), Rcode::NOERROR, Status::Fails));
    findings.add(bogus_with_cd(check, evidence));
    findings.outcome()
}

fn without_do(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let apex = check.name("special");
    for (name, rtype) in
        [("www.special", Rtype::A), ("missing.special", Rtype::A), ("www.special", Rtype::MX)]
    {
        for query in
            [lookup(&check.name(name), rtype).without_do(), lookup(&check.name(name), rtype).without_edns()]
        {
            findings.add(has_no_dnssec_records(check, evidence, &query, &[]));
        }
    }
    let query = lookup(&apex, Rtype::DNSKEY).without_do();
    findings.add(has_no_dnssec_records(check, evidence, &query, &[Rtype::DNSKEY]));
    let nsec = lookup(&apex, Rtype::NSEC).without_do();
    findings.add(has_no_dnssec_records(check, evidence, &nsec, &[Rtype::NSEC]));
    findings.outcome()
}

/// The response has no records of DNSSEC, except those of the types `wanted`, which it must have.
fn has_no_dnssec_records(
    check: &mut ResolverCheck,
    evidence: &mut Evidence,
    query: &Query,
    wanted: &[Rtype],
) -> Result<(), String> {
    let asked = check.ask(evidence, query);
    let response = asked.ok()?;
    if response.message.rcode() == Rcode::SERVFAIL {
        return Err(format!("{} {}: observed SERVFAIL", query.name, query.rtype));
    }
    let sections = [Section::Answer, Section::Authority, Section::Additional];
    let records = sections.into_iter().flat_map(|section| response.message.section(section));
    let unexpected = records
        .map(|record| record.rtype)
        .find(|rtype| [Rtype::RRSIG, Rtype::NSEC, Rtype::NSEC3].contains(rtype) && !wanted.contains(rtype));
    if let Some(rtype) = unexpected {
        return Err(format!("{} {} without DO: the response has {rtype} records", query.name, query.rtype));
    }
    match wanted.iter().find(|rtype| !has_answer(response, **rtype)) {
        Some(rtype) => Err(format!("{} {rtype} without DO: the response has no {rtype} record", query.name)),
        None => Ok(()),
    }
}

fn upstream_ad(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let name = check.name("www.sets-ad");
    findings.add(check.expect(evidence, (&name, Rtype::A), Rcode::NOERROR, Status::Insecure));
    findings.outcome()
}
