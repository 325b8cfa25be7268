//! Items about the denial of existence.

use super::{for_each_signed_server, item};
use crate::check::signature::MessageRrset;
use crate::check::zone::context::{ZoneContext, has_soa_at};
use crate::check::zone::findings::Findings;
use crate::check::zone::items::consistency::soa_times;
use crate::check::zone::lookup::Server;
use crate::check::{Evidence, Outcome, Query, Response, Row};
use data_encoding::HEXLOWER;
use nonesuch_dnssec::denial::nsec3::{Nsec3, OPT_OUT_FLAG};
use nonesuch_dnssec::validate::{
    Budget, ProvedAnswer, Question, SecurityStatus, TrustedKeys, Validation, ValidationLimits, validate,
};
use nonesuch_proto::message::{Record, Section};
use nonesuch_proto::{Name, Rtype};

/// The label of a name that probably does not exist.
const MISSING_LABEL: &[u8] = b"nonesuch-zone-check";
/// A type for private use that the apex probably does not have (RFC 6895 §3.1).
const MISSING_TYPE: Rtype = Rtype(65_400);

pub(super) const ITEMS: &[Row<ZoneContext>] = &[
    Row {
        item: item(
            "Z-060",
            "each server proves that a name does not exist",
            &["RFC 4035 §3.1.3", "RFC 4035 §5.4", "RFC 5155 §7.2.2", "RFC 5155 §8.4", "RFC 9824 §3.1"],
            "Queries the name nonesuch-zone-check in the zone and validates the response with the DNSKEY RRset of the \
             server. If a wildcard matches the name, its answer is validated.",
        ),
        run: |context, evidence| denial(context, evidence, Denied::Name),
    },
    Row {
        item: item(
            "Z-061",
            "each server proves that a type does not exist",
            &["RFC 4035 §3.1.3", "RFC 4035 §5.4", "RFC 5155 §7.2.3", "RFC 5155 §8.5", "RFC 9824 §3.2"],
            "Queries the type TYPE65400 at the apex and validates the response with the DNSKEY RRset of the server.",
        ),
        run: |context, evidence| denial(context, evidence, Denied::Type),
    },
    Row {
        item: item(
            "Z-062",
            "the NSEC3 parameters are those of RFC 9276",
            &["RFC 9276 §3.1", "RFC 5155 §4.1.2", "RFC 5155 §7.3"],
            "Reads the NSEC3PARAM record and the NSEC3 records of a denial. Additional iterations fail (MUST be 0), as \
             does a salt (SHOULD NOT be used). Opt-out is noted, and a missing NSEC3PARAM record: secondaries need it, but \
             not a server that generates the NSEC3 records online.",
        ),
        run: nsec3_parameters,
    },
    Row {
        item: item(
            "Z-063",
            "the TTL of denial records is the smaller one of the TTL and the field minimum of the SOA record",
            &["RFC 9077 §3.1", "RFC 9077 §3.3", "RFC 2308 §3"],
            "Compares the TTL of the NSEC or NSEC3 records of a denial with the SOA record. The denial must have the SOA \
             record, too.",
        ),
        run: denial_ttl,
    },
];

/// The denied name or type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Denied {
    Name,
    Type,
}

/// The question whose answer is a denial.
fn question(context: &ZoneContext, denied: Denied) -> (Name, Rtype) {
    let apex = context.zone();
    match denied {
        // A name of maximum length has no name below it.
        Denied::Name => {
            (Name::prepend(MISSING_LABEL, apex.view()).unwrap_or_else(|_| apex.clone()), Rtype::A)
        }
        Denied::Type => (apex.clone(), MISSING_TYPE),
    }
}

fn ask(
    context: &mut ZoneContext,
    evidence: &mut Evidence,
    server: &Server,
    denied: Denied,
) -> Result<Response, String> {
    let (name, rtype) = question(context, denied);
    let response = context.network.client.ask(evidence, server.address, &Query::new(name, rtype));
    response.map_err(|fault| format!("{}: {fault}", server.text()))
}

/// The mechanism with which a server denies a name, with its parameters; `None` if the server does not answer.
pub(super) fn mechanism(
    context: &mut ZoneContext,
    evidence: &mut Evidence,
    server: &Server,
) -> Option<String> {
    let response = ask(context, evidence, server, Denied::Name).ok()?;
    let nsec3 = denial_records(&response, Rtype::NSEC3).find_map(|record| Nsec3::parse(&record.rdata));
    if let Some(Nsec3 { algorithm, iterations, salt, .. }) = nsec3 {
        let salt =
            if salt.is_empty() { "no salt".to_owned() } else { format!("salt {}", HEXLOWER.encode(salt)) };
        return Some(format!("NSEC3 (hash {algorithm}, {iterations} iterations, {salt})"));
    }
    let has = |rtype| denial_records(&response, rtype).next().is_some();
    Some(match (has(Rtype::NSEC), has(Rtype::NSEC5)) {
        (true, _) => "NSEC".to_owned(),
        (false, true) => "NSEC5".to_owned(),
        (false, false) => "no records".to_owned(),
    })
}

fn denial_records(response: &Response, rtype: Rtype) -> impl Iterator<Item = &Record> {
    response.message.section(Section::Authority).filter(move |record| record.rtype == rtype)
}

fn denial(context: &mut ZoneContext, evidence: &mut Evidence, denied: Denied) -> Outcome {
    for_each_signed_server(context, evidence, |context, evidence, (server, keys), findings| {
        match ask(context, evidence, server, denied) {
            Err(fault) => findings.fault(fault),
            Ok(response) => validate_denial(context, evidence, (server, keys, denied), &response, findings),
        }
    })
}

fn validate_denial(
    context: &mut ZoneContext,
    evidence: &mut Evidence,
    (server, keys, denied): (&Server, &[Vec<u8>], Denied),
    response: &Response,
    findings: &mut Findings,
) {
    let (zone, now) = (context.zone().clone(), context.options.now);
    let limits = ValidationLimits::default();
    let mut trusted = TrustedKeys::new(&zone, keys.iter().map(Vec::as_slice), &limits);
    let mut budget = Budget::new(limits);
    if trusted.may_use_nsec5()
        && let Ok(response) = context.ask_apex(evidence, server, Rtype::NSEC5KEY)
    {
        let _ = trusted.learn_nsec5_keys(&response.message, now, &mut budget);
    }
    let (name, rtype) = question(context, denied);
    let question = Question { name: name.view(), rtype };
    let validation = validate(question, &response.message, &trusted, now, &mut budget);
    push_validation(&validation, &server.text(), &format!("{name} {rtype}"), findings);
}

/// Adds the result of the validation of a denial.
fn push_validation(validation: &Validation, server: &str, denied: &str, findings: &mut Findings) {
    match &validation.status {
        SecurityStatus::Secure => {
            findings.good();
            match validation.proved {
                Some(ProvedAnswer::WildcardAnswer | ProvedAnswer::WildcardNoData) => {
                    findings.note(format!("a wildcard matches {denied}"));
                }
                Some(ProvedAnswer::Answer) => findings.note(format!("{denied} exists")),
                _ => {}
            }
        }
        SecurityStatus::Insecure(reason) => {
            findings.good();
            findings.note(format!("the denial is insecure: {reason} ({})", reason.rule()));
        }
        SecurityStatus::Bogus(reason) => {
            let rule = reason.rule();
            findings.fault(format!("{server}: the denial of {denied} is bogus: {reason} ({rule})"));
        }
        SecurityStatus::Indeterminate(reason) => {
            findings.fault(format!("{server}: the denial of {denied} cannot be validated: {reason}"));
        }
    }
}

fn nsec3_parameters(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    for_each_signed_server(context, evidence, |context, evidence, (server, _), findings| {
        let text = server.text();
        let response = match ask(context, evidence, server, Denied::Name) {
            Ok(response) => response,
            Err(fault) => return findings.skip(fault),
        };
        let mut records =
            denial_records(&response, Rtype::NSEC3).filter_map(|record| Nsec3::parse(&record.rdata));
        let Some(Nsec3 { iterations, salt, flags, .. }) = records.next() else {
            return findings.skip("the zone does not use NSEC3");
        };
        let salt = HEXLOWER.encode(salt);
        findings.check(
            (iterations > 0).then(|| format!("{text}: {iterations} additional iterations, expected 0")),
        );
        findings.check((!salt.is_empty()).then(|| format!("{text}: the salt {salt}, expected none")));
        if flags & OPT_OUT_FLAG != 0 {
            findings
                .note("the zone uses opt-out, which RFC 9276 advises for large zones of delegations only");
        }
        let parameters = context.apex_rrset(evidence, server, Rtype::NSEC3PARAM);
        let flags = parameters.iter().flat_map(|rrset| &rrset.rdatas).filter_map(|rdata| rdata.get(1));
        // RFC 5155 §4.1.2: other records are ignored.
        let is_missing = !flags.clone().any(|flags| *flags == 0);
        if is_missing {
            findings.note(format!("{text}: no NSEC3PARAM record with the flags 0"));
        }
    })
}

fn denial_ttl(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    for_each_signed_server(context, evidence, |context, evidence, (server, _), findings| {
        let response = match ask(context, evidence, server, Denied::Name) {
            Ok(response) => response,
            Err(fault) => return findings.skip(fault),
        };
        let Some([_, minimum, soa_ttl]) = soa_times(context, evidence, server) else {
            return findings.skip(format!("{} has no SOA record", server.text()));
        };
        let expected = minimum.min(soa_ttl);
        let mut has_any = false;
        for record in
            [Rtype::NSEC, Rtype::NSEC3].into_iter().flat_map(|rtype| denial_records(&response, rtype))
        {
            has_any = true;
            let (rtype, ttl) = (record.rtype, record.ttl);
            findings.check((ttl != expected).then(|| {
                format!("{}: an {rtype} record has the TTL {ttl}, expected {expected}", server.text())
            }));
        }
        if !has_any {
            findings.skip("the denial has no NSEC or NSEC3 records");
        }
        let zone = context.zone().clone();
        // An answer from a wildcard has denial records, and no SOA record.
        let is_denial = has_any && response.message.section(Section::Answer).next().is_none();
        if is_denial && !has_soa_at(&response.message, &zone) {
            findings.fault(format!("{}: the denial has no SOA record: it cannot be cached", server.text()));
        }
        let soa = MessageRrset::find(&response.message, &zone, Rtype::SOA);
        if let Some(soa) = soa.filter(|soa| soa.ttl > expected) {
            findings.note(format!(
                "{}: the SOA record of the denial has the TTL {}, expected {expected}",
                server.text(),
                soa.ttl
            ));
        }
    })
}
