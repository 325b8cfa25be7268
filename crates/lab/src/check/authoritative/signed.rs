//! DNSSEC records in responses, referrals and DS records (XA-001 to XA-003).

use super::super::{Evidence, Outcome, Query, Response, Row};
use super::cases::Cases;
use super::denial::UNKNOWN_TYPE;
use super::responses::{
    answers, expect_aa, expect_negative, expect_rcode, is_dnssec, records, unsigned_rrset,
};
use super::{Authoritative, Fault, quick, row};
use nonesuch_dnssec::rrsig::Rrsig;
use nonesuch_dnssec::validate::ProvedAnswer;
use nonesuch_proto::message::{Rcode, Section, flags};
use nonesuch_proto::{Name, Rtype, edns};

pub(super) const ITEMS: &[Row<Authoritative>] = &[
    quick(row(
        "XA-001",
        "Adds DNSSEC records if and only if the query has DO",
        &["RFC 4035 §3", "RFC 4035 §3.1", "RFC 4035 §3.1.1", "RFC 3225 §3", "RFC 4035 §3.1.6"],
        "Queries for SOA, NS and DNSKEY at the apex and for a name that does not exist, with DO, without DO and \
         without EDNS. With DO each RRset has an RRSIG record that validates, DO is in the response, and AD is \
         clear.",
        dnssec_records,
    )),
    row(
        "XA-002",
        "Answers with referrals that prove the DS records or their absence",
        &["RFC 4035 §3.1.4", "RFC 4035 §2.2", "RFC 5155 §7.2.7", "RFC 1034 §4.3.2"],
        "Queries below a signed and an unsigned delegation of a test zone: AA is clear, the NS RRset and the glue are \
         unsigned, and DS records with RRSIG, or their denial, validate.",
        referrals,
    ),
    quick(row(
        "XA-003",
        "Answers queries for DS from the parent side of the delegation",
        &["RFC 4035 §3.1.4.1"],
        "Queries for DS at the apex: the answer is of the parent zone if the server serves it, otherwise NODATA. In a \
         test zone also at a signed and an unsigned delegation.",
        ds_queries,
    )),
];

/// XA-001.
fn dnssec_records(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    let mut cases = Cases::default();
    let missing = match check.random_name(&check.zone) {
        Ok(name) => name,
        Err(fault) => return Outcome::NotTestable(fault),
    };
    let zone = check.zone.clone();
    for (name, rtype) in [(&zone, Rtype::SOA), (&zone, Rtype::NS), (&missing, Rtype::A)] {
        let query = check.query(name, rtype);
        let label = |kind| format!("{name} {rtype} {kind}");
        cases.add(&label("without DO"), without_dnssec(check, evidence, &query.clone().without_do()));
        cases.add(&label("without EDNS"), without_dnssec(check, evidence, &query.clone().without_edns()));
        if check.is_signed() {
            cases.add(&label("with DO"), with_dnssec(check, evidence, name, rtype));
        }
    }
    if check.is_signed() {
        cases.add("DNSKEY without DO", explicit_type(check, evidence));
    } else {
        cases.skip("the zone is unsigned");
    }
    cases.outcome()
}

/// A response without DNSSEC records.
fn without_dnssec(check: &Authoritative, evidence: &mut Evidence, query: &Query) -> Result<(), Fault> {
    let response = check.ask(evidence, query)?;
    expect_rcode(&response, &[Rcode::NOERROR, Rcode::NXDOMAIN])?;
    let unexpected = response.message.records.iter().find(|record| is_dnssec(record.rtype));
    if let Some(record) = unexpected {
        return Err(format!("the response has a record {} {}", record.owner, record.rtype));
    }
    expect_do(&response, false)?;
    if query.payload.is_none() && response.message.opt().is_some() {
        return Err("the response has an OPT record, the query has none".to_owned());
    }
    Ok(())
}

/// A response with DNSSEC records.
fn with_dnssec(
    check: &Authoritative,
    evidence: &mut Evidence,
    name: &Name,
    rtype: Rtype,
) -> Result<(), Fault> {
    let (response, _) = check.prove(evidence, name, rtype)?;
    if let Some(record) = unsigned_rrset(&response.message, &check.zone) {
        return Err(format!("the RRset {} {} has no RRSIG record", record.owner, record.rtype));
    }
    expect_do(&response, true)?;
    // RFC 4035 §3.1.6.
    if response.has(flags::AD) { Err("the response has the flag AD".to_owned()) } else { Ok(()) }
}

/// RFC 3225 §3: the response has the DO bit of the query.
fn expect_do(response: &Response, expected: bool) -> Result<(), Fault> {
    let found = response.message.opt().is_some_and(|opt| opt.ttl as u16 & edns::DO != 0);
    match (found, expected) {
        (true, false) => Err("the response has DO, the query does not".to_owned()),
        (false, true) => Err("the response lacks DO".to_owned()),
        _ => Ok(()),
    }
}

/// Without DO, DNSSEC records are returned if they are queried by type (RFC 3225 §3, RFC 4035 §3).
fn explicit_type(check: &Authoritative, evidence: &mut Evidence) -> Result<(), Fault> {
    let response = check.ask(evidence, &check.query(&check.zone, Rtype::DNSKEY).without_do())?;
    if answers(&response.message, &check.zone, Rtype::DNSKEY).next().is_none() {
        return Err("the response has no DNSKEY record".to_owned());
    }
    if response.message.records.iter().any(|record| record.rtype == Rtype::RRSIG) {
        return Err("the response has RRSIG records".to_owned());
    }
    Ok(())
}

/// XA-002.
fn referrals(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    let mut cases = Cases::default();
    if !check.is_test_zone {
        cases.skip("no delegation of the zone is known: load a test zone (--write-test-zones)");
        return cases.outcome();
    }
    let children: &[(&str, bool)] =
        &[("signed", check.is_signed()), ("unsigned", false), ("cut.below-ent", false)];
    for (label, has_ds) in children {
        if *label != "signed" || check.is_signed() {
            cases.add(label, referral(check, evidence, label, *has_ds));
        }
    }
    cases.outcome()
}

fn referral(check: &Authoritative, evidence: &mut Evidence, label: &str, has_ds: bool) -> Result<(), Fault> {
    let child = check.name(label)?;
    let name = check.random_name(&child)?;
    let expected = ProvedAnswer::Referral { child: child.clone(), has_ds };
    let response = check.expect(evidence, &name, Rtype::A, &expected)?;
    expect_rcode(&response, &[Rcode::NOERROR])?;
    expect_aa(&response, false)?;
    let message = &response.message;
    if message.section(Section::Answer).next().is_some() {
        return Err("the referral has records in the answer section".to_owned());
    }
    if !records(message, Section::Authority, Rtype::NS).any(|record| record.owner == child) {
        return Err(format!("the authority section has no NS record of {child}"));
    }
    // RFC 4035 §2.2: the NS RRset of a delegation and glue are not signed.
    let signature = message.records.iter().filter(|record| record.rtype == Rtype::RRSIG).find_map(|record| {
        let covered = Rrsig::parse(&record.rdata)?.covered;
        let is_glue =
            record.section == Section::Additional && record.owner.view().is_at_or_below(child.view());
        (covered == Rtype::NS || is_glue).then(|| (record.owner.clone(), covered))
    });
    match signature {
        Some((owner, covered)) => Err(format!("the RRset {owner} {covered} is signed")),
        None => Ok(()),
    }
}

/// XA-003.
fn ds_queries(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    let mut cases = Cases::default();
    match ds_at_apex(check, evidence) {
        Ok(note) => {
            cases.add("DS at the apex", Ok(()));
            cases.note(note);
        }
        Err(fault) => cases.add("DS at the apex", Err(fault)),
    }
    if check.is_test_zone && check.is_signed() {
        let result = check.name("signed").and_then(|child| {
            let response = check.expect(evidence, &child, Rtype::DS, &ProvedAnswer::Answer)?;
            expect_aa(&response, true)
        });
        cases.add("DS at a signed delegation", result);
        let result = check.name("unsigned").and_then(|child| {
            let response = check.expect(evidence, &child, Rtype::DS, &ProvedAnswer::NoData)?;
            expect_negative(&response, &check.zone, &[Rcode::NOERROR])
        });
        cases.add("DS at an unsigned delegation", result);
    } else if !check.is_test_zone {
        cases.skip("no delegation of the zone is known: load a test zone (--write-test-zones)");
    }
    cases.outcome()
}

/// Validates a denial of DS at the apex. A validator rejects it, because only the parent can deny DS records (RFC
/// 4035 §5.2). The same records deny a type that no zone has, which it accepts.
fn validate_apex_denial(check: &Authoritative, response: &Response) -> Result<(), Fault> {
    let mut other = response.clone();
    for question in &mut other.message.questions {
        question.rtype = UNKNOWN_TYPE;
    }
    match check.validate(&other, &check.zone, UNKNOWN_TYPE)? {
        Some(validation) if validation.proved != Some(ProvedAnswer::NoData) => {
            Err("the records of the denial do not validate".to_owned())
        }
        _ => Ok(()),
    }
}

/// The side of the delegation that answers.
fn ds_at_apex(check: &Authoritative, evidence: &mut Evidence) -> Result<&'static str, Fault> {
    let zone = &check.zone;
    let response = check.ask(evidence, &check.query(zone, Rtype::DS))?;
    let message = &response.message;
    let ancestor = |record: &&nonesuch_proto::message::Record| zone.view().is_below(record.owner.view());
    if answers(message, zone, Rtype::DS).next().is_some() {
        expect_aa(&response, true)?;
        let signer = records(message, Section::Answer, Rtype::RRSIG).find_map(|record| {
            Rrsig::parse(&record.rdata)
                .filter(|rrsig| rrsig.covered == Rtype::DS)
                .map(|rrsig| rrsig.signer.to_name())
        });
        return match signer {
            Some(signer) if signer == *zone => {
                Err(format!("the DS RRset is signed by {signer}, not by the parent"))
            }
            _ => Ok("the server answers for the parent zone"),
        };
    }
    if records(message, Section::Authority, Rtype::SOA).find(ancestor).is_some() {
        expect_aa(&response, true)?;
        return Ok("the server answers for the parent zone: no DS record");
    }
    if records(message, Section::Authority, Rtype::NS).find(ancestor).is_some() && !response.has(flags::AA) {
        return Ok("the server refers to servers of an ancestor");
    }
    expect_negative(&response, zone, &[Rcode::NOERROR])?;
    validate_apex_denial(check, &response)?;
    Ok("NODATA of the zone")
}
