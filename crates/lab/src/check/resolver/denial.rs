//! Items about denial of existence.

use super::super::zones::NSEC5_FAULTS;
use super::super::{Evidence, Outcome, Query, Row};
use super::context::{Asked, ResolverCheck, Status, lookup};
use super::faults::Findings;
use super::transport::has_answer;
use super::{item, jprs, quick};
use crate::tree::Fault;
use nonesuch_proto::message::{Rcode, flags};
use nonesuch_proto::{Rtype, edns};

pub(super) const ITEMS: &[Row<ResolverCheck>] = &[
    Row {
        item: quick(item(
            "XF-050",
            "NXDOMAIN needs the denials of the name and of the wildcard",
            &["RFC 4035 §5.4", "RFC 5155 §8.4"],
            "Missing names in zones with NSEC and NSEC3 must be secure. Without the denial of the name, of the wildcard, without signatures, with expired ones, and with wrong next names they must fail.",
        )),
        run: nxdomain,
    },
    Row {
        item: quick(item(
            "XF-051",
            "NODATA needs a record that matches the name without the type",
            &["RFC 4035 §5.4", "RFC 5155 §8.5"],
            "Existing names without the type in zones with NSEC and NSEC3 must be secure. A denial of data that exist, and a bit map that lists the type, must fail.",
        )),
        run: nodata,
    },
    Row {
        item: item(
            "XF-052",
            "An empty non-terminal exists",
            &["RFC 4592 §2.2.2", "RFC 8020 §3.1"],
            "The name `ent` above `deep.ent` in zones with NSEC and NSEC3: NODATA, secure.",
        ),
        run: |check, evidence| sound_denials(check, evidence, "ent", Rtype::A, Rcode::NOERROR),
    },
    Row {
        item: item(
            "XF-053",
            "A wildcard without the type is proved",
            &["RFC 4035 §5.4", "RFC 5155 §8.7"],
            "TXT of a name below `*.wild`, which has A only, in zones with NSEC and NSEC3: NODATA, secure.",
        ),
        run: |check, evidence| sound_denials(check, evidence, "nothing.wild", Rtype::TXT, Rcode::NOERROR),
    },
    Row {
        item: item(
            "XF-054",
            "The last NSEC record covers the names up to the end of the zone",
            &["RFC 4034 §4.1.1", "RFC 4034 §6.1"],
            "A missing name after all names of the zone: NXDOMAIN, secure.",
        ),
        run: |check, evidence| sound_denials(check, evidence, "zzzzzz", Rtype::A, Rcode::NXDOMAIN),
    },
    Row {
        item: item(
            "XF-055",
            "A record of a delegation does not deny names below it",
            &["RFC 6840 §4.1", "RFC 5155 §8.3"],
            "The denial of a name comes from a record above it that lists NS and not SOA. The answer must not be secure.",
        ),
        run: |check, evidence| check.check_faults(evidence, &[Fault::DelegationBitAboveName]),
    },
    Row {
        item: item(
            "XF-056",
            "A record that lists DNAME does not deny names below it",
            &["RFC 6840 §4.1", "RFC 5155 §8.3"],
            "The denial of a name comes from a record above it that lists DNAME.",
        ),
        run: |check, evidence| check.check_faults(evidence, &[Fault::DnameBitAboveName]),
    },
    Row {
        item: item(
            "XF-057",
            "NSEC3 denials prove the closest encloser",
            &["RFC 5155 §8.3", "RFC 5155 §8.4"],
            "A missing name without the record of the closest encloser, and without that of the next closer name.",
        ),
        run: |check, evidence| {
            check.check_faults(evidence, &[Fault::MissingClosestEncloser, Fault::MissingNextCloser])
        },
    },
    Row {
        item: item(
            "XF-058",
            "NSEC3 records with unknown hash algorithms or flags are ignored",
            &["RFC 5155 §8.1", "RFC 5155 §8.2"],
            "Denials with hash algorithm 2, and with unknown flags, must fail.",
        ),
        run: |check, evidence| {
            check.check_faults(evidence, &[Fault::UnknownNsec3Hash, Fault::UnknownNsec3Flags])
        },
    },
    Row {
        item: quick(item(
            "XF-059",
            "Denials that opt-out records prove have AD=0",
            &["RFC 5155 §9.2", "RFC 5155 §8.9"],
            "A missing name, an answer from a wildcard and an unsigned delegation in a zone with opt-out must be insecure; data that exist are secure.",
        )),
        run: opt_out,
    },
    Row {
        item: quick(item(
            "XF-060",
            "NSEC3 denials with many iterations are answered, or fail by a limit",
            &["RFC 9276 §3.2", "RFC 5155 §10.3"],
            "Denials with 51, 200, 500, 501 and 2,500 iterations. RFC 9276 permits insecure answers and SERVFAIL from one iteration on, and requires neither. The result for each number is reported. A denial with 200 iterations and wrong signatures must fail: the signature must be verified before the answer is insecure.",
        )),
        run: iterations,
    },
    Row {
        item: item(
            "XF-061",
            "NSEC3 records with different parameters prove nothing together",
            &["RFC 5155 §5", "RFC 5155 §8.2", "RFC 5155 §8.4"],
            "Denials must fail if the NSEC3 record of the closest encloser has other iterations: with its own parameters, it matches no name. Denials with a complete NSEC3 proof and an additional NSEC record may be secure.",
        ),
        run: |check, evidence| {
            check.check_faults(evidence, &[Fault::MixedNsec3Parameters, Fault::MixedDenial])
        },
    },
    Row {
        item: quick(item(
            "XF-062",
            "Compact denial is accepted; the answer to a query for NXNAME is reported",
            &["RFC 9824 §3", "RFC 9824 §3.5", "RFC 9824 §5.1"],
            "Denials in a zone with compact denial must be secure. With CO, a missing name may be NXDOMAIN. RFC 9824 binds only resolvers that implement it to answer a query for type NXNAME with FORMERR and not to forward it.",
        )),
        run: compact,
    },
    Row {
        item: quick(item(
            "XF-063",
            "Minimally covering NSEC and NSEC3 records are accepted",
            &["RFC 4470 §3", "RFC 7129 §B"],
            "Missing names, missing types and answers from wildcards in zones with minimally covering NSEC records and NSEC3 white lies must be secure.",
        )),
        run: minimal,
    },
    Row {
        item: item(
            "XF-064",
            "NSEC5 is validated, or its zones are insecure",
            &["draft-vcelak-nsec5-07 §8", "draft-vcelak-nsec5-07 §11.1", "RFC 4035 §5.2"],
            "Denials in zones with NSEC5. A resolver that does not know the alias numbers finds them insecure. Otherwise denials without records, signatures or proofs must fail.",
        ),
        run: nsec5,
    },
    Row {
        item: item(
            "XF-065",
            "Cached denials may answer for other names",
            &["RFC 8198 §5", "RFC 8198 §5.1"],
            "Asks for missing names between the same two names of a zone with NSEC, and counts the queries of the resolver. All answers must be NXDOMAIN and secure.",
        ),
        run: aggressive,
    },
    Row {
        item: item(
            "XF-066",
            "A missing name has no names below it",
            &["RFC 8020 §2"],
            "Asks for a missing name and for one below it. Both must be NXDOMAIN and secure; the number of queries for the second one is reported.",
        ),
        run: nxdomain_cut,
    },
    Row {
        item: item(
            "XF-067",
            "NSEC records with a next name outside the zone are rejected, or deny the names before it",
            &["RFC 4034 §4.1.1", "RFC 4035 §5.4"],
            "RFC 4034 forbids such a record in a zone, and no RFC requires that a validator rejects it. Denials must be secure or fail.",
        ),
        run: |check, evidence| check.check_faults(evidence, &[Fault::NextNameOutsideZone]),
    },
    Row {
        item: jprs(quick(item(
            "F-229",
            "The NSEC3PARAM record at the apex of a zone is found through the cache",
            &["RFC 5155 §4", "RFC 4035 §4.5", "RFC 4035 §3.2.3"],
            "Asks for NSEC3PARAM at the apex of a zone with NSEC3, twice. The answer must have the record and its signature, and be secure.",
        ))),
        run: nsec3param,
    },
];

/// The answers to a question in the zones with NSEC and with NSEC3.
fn sound_denials(
    check: &mut ResolverCheck,
    evidence: &mut Evidence,
    label: &str,
    rtype: Rtype,
    rcode: Rcode,
) -> Outcome {
    let mut findings = Findings::default();
    add_sound_denials(check, evidence, (label, rtype, rcode), &mut findings);
    findings.outcome()
}

fn add_sound_denials(
    check: &mut ResolverCheck,
    evidence: &mut Evidence,
    (label, rtype, rcode): (&str, Rtype, Rcode),
    findings: &mut Findings,
) {
    for zone in ["with-nsec", "with-nsec3"] {
        let name = check.name(&format!("{label}.{zone}"));
        findings.add(check.expect(evidence, (&name, rtype), rcode, Status::Secure));
    }
}

fn nxdomain(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let label = check.fresh_label();
    add_sound_denials(check, evidence, (&label, Rtype::A, Rcode::NXDOMAIN), &mut findings);
    for fault in [
        Fault::MissingDenial,
        Fault::UnsignedDenial,
        Fault::ExpiredDenial,
        Fault::WrongNextName,
        Fault::MissingWildcardDenial,
        Fault::MissingNextCloser,
    ] {
        check.add_fault(evidence, fault, &mut findings);
    }
    findings.outcome()
}

fn nodata(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    add_sound_denials(check, evidence, ("www", Rtype::MX, Rcode::NOERROR), &mut findings);
    for fault in [Fault::LyingBitmap, Fault::RemovedData] {
        check.add_fault(evidence, fault, &mut findings);
    }
    findings.outcome()
}

fn iterations(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    for fault in [
        Fault::Nsec3Iterations51,
        Fault::Nsec3Iterations,
        Fault::Nsec3Iterations500,
        Fault::Nsec3Iterations501,
        Fault::ExcessiveNsec3Iterations,
    ] {
        check.add_fault(evidence, fault, &mut findings);
    }
    // RFC 9276 §3.2: otherwise an attacker could make the denials of any zone insecure.
    let name = check.name("missing.forged-iterations");
    findings.add(check.expect(evidence, (&name, Rtype::A), Rcode::NXDOMAIN, Status::Fails));
    findings.outcome()
}

fn opt_out(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let label = check.fresh_label();
    let rows = [
        ("www.with-opt-out".to_owned(), Rcode::NOERROR, Status::Secure),
        (format!("{label}.with-opt-out"), Rcode::NXDOMAIN, Status::Insecure),
        (format!("{label}.wild.with-opt-out"), Rcode::NOERROR, Status::Insecure),
        ("www.unsigned.with-opt-out".to_owned(), Rcode::NOERROR, Status::Insecure),
    ];
    for (relative, rcode, status) in rows {
        let name = check.name(&relative);
        findings.add(check.expect(evidence, (&name, Rtype::A), rcode, status));
    }
    findings.outcome()
}

fn compact(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    for (relative, rtype) in [
        ("www.with-compact", Rtype::A),
        ("www.with-compact", Rtype::MX),
        ("ent.with-compact", Rtype::A),
        ("x.wild.with-compact", Rtype::A),
    ] {
        let name = check.name(relative);
        findings.add(check.expect(evidence, (&name, rtype), Rcode::NOERROR, Status::Secure));
    }
    let label = check.fresh_label();
    let missing = check.name(&format!("{label}.with-compact"));
    let asked = check.lookup(evidence, &missing, Rtype::A);
    findings.add(secure_denial(&asked).map_err(|fault| format!("{missing}: {fault}")));
    let label = check.fresh_label();
    let missing = check.name(&format!("{label}.with-compact"));
    let mut query = lookup(&missing, Rtype::A);
    query.edns_flags |= edns::CO;
    let asked = check.ask(evidence, &query);
    findings.add(secure_denial(&asked).map_err(|fault| format!("{missing} with CO: {fault}")));
    if let Ok(response) = asked.ok() {
        findings.note(format!("a missing name with CO: {}", response.message.rcode()));
    }
    nxname(check, evidence, &mut findings);
    findings.outcome()
}

/// A denial with AD: NOERROR or NXDOMAIN.
fn secure_denial(asked: &Asked) -> Result<(), String> {
    let response = asked.ok()?;
    let rcode = response.message.rcode();
    let is_denial = matches!(rcode, Rcode::NOERROR | Rcode::NXDOMAIN) && !has_answer(response, Rtype::A);
    if !is_denial || !response.has(flags::AD) {
        return Err(format!(
            "expected a secure denial, observed {rcode} and AD={}",
            u8::from(response.has(flags::AD))
        ));
    }
    Ok(())
}

/// RFC 9824 §3.5: a query for NXNAME gets FORMERR, optionally with extended error 30, and is not forwarded.
fn nxname(check: &mut ResolverCheck, evidence: &mut Evidence, findings: &mut Findings) {
    let name = check.name("www.with-compact");
    let asked = check.lookup(evidence, &name, Rtype::NXNAME);
    let Ok(response) = asked.ok() else { return findings.add(Err(format!("{name} NXNAME: no response"))) };
    let is_forwarded =
        asked.upstream.iter().any(|seen| seen.question().is_some_and(|(_, rtype)| rtype == Rtype::NXNAME));
    let rcode = response.message.rcode();
    if rcode == Rcode::FORMERR && !is_forwarded {
        let code = response.message.extended_error().map(|(code, _)| code);
        findings.note(format!(
            "NXNAME: FORMERR{}",
            code.map_or_else(String::new, |code| format!(", extended error {code}"))
        ));
    } else {
        // RFC 9824 §3.5 binds servers that implement it; §2 requires nothing of other resolvers.
        let forwarded = if is_forwarded { "forwarded" } else { "not forwarded" };
        findings.note(format!("NXNAME: {rcode}, {forwarded}; with RFC 9824 §3.5, FORMERR"));
    }
}

fn minimal(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    for zone in ["with-minimal-nsec", "with-white-lies"] {
        let label = check.fresh_label();
        let rows = [
            (format!("www.{zone}"), Rtype::A, Rcode::NOERROR),
            (format!("www.{zone}"), Rtype::MX, Rcode::NOERROR),
            (format!("{label}.{zone}"), Rtype::A, Rcode::NXDOMAIN),
            (format!("ent.{zone}"), Rtype::A, Rcode::NOERROR),
            (format!("{label}.wild.{zone}"), Rtype::A, Rcode::NOERROR),
            (format!("{label}.wild.{zone}"), Rtype::MX, Rcode::NOERROR),
        ];
        for (relative, rtype, rcode) in rows {
            let name = check.name(&relative);
            findings.add(check.expect(evidence, (&name, rtype), rcode, Status::Secure));
        }
    }
    findings.outcome()
}

fn nsec5(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let name = check.name("www.with-nsec5");
    match check.lookup(evidence, &name, Rtype::A).status() {
        Ok(Status::Secure) => {}
        Ok(Status::Insecure) => {
            return Outcome::Pass("does not know the alias number 229: the zones are insecure".to_owned());
        }
        Ok(Status::Fails) => return Outcome::Fail(format!("{name}: expected an answer, observed SERVFAIL")),
        Err(fault) => return Outcome::Fail(format!("{name}: {fault}")),
    }
    let mut findings = Findings::default();
    let label = check.fresh_label();
    let rows = [
        ("www".to_owned(), Rtype::MX, Rcode::NOERROR),
        (label.clone(), Rtype::A, Rcode::NXDOMAIN),
        ("ent".to_owned(), Rtype::A, Rcode::NOERROR),
        (format!("{label}.wild"), Rtype::A, Rcode::NOERROR),
        (format!("{label}.wild"), Rtype::TXT, Rcode::NOERROR),
    ];
    for (label, rtype, rcode) in rows {
        let name = check.name(&format!("{label}.with-nsec5"));
        findings.add(check.expect(evidence, (&name, rtype), rcode, Status::Secure));
    }
    for fault in NSEC5_FAULTS {
        check.add_nsec5_fault(evidence, fault, &mut findings);
    }
    findings.note("NSEC5 denials are secure");
    findings.outcome()
}

fn aggressive(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let zone = check.name("algorithm-13");
    let mut queries = Vec::new();
    // All names are between `mail` and `ns1`.
    for label in ["ma1", "ma2", "ma3"] {
        let name = check.name(&format!("mb-{label}.algorithm-13"));
        let asked = check.lookup(evidence, &name, Rtype::A);
        let result = asked.status();
        findings.require(result == Ok(Status::Secure), || {
            format!("{name}: expected a secure NXDOMAIN, observed {result:?}")
        });
        queries.push(asked.upstream.iter().filter(|seen| seen.is_at_or_below(&zone)).count());
    }
    let later: usize = queries.iter().skip(1).sum();
    findings.note(match later {
        0 => "answers further names from cached NSEC records".to_owned(),
        count => format!("does not use cached NSEC records for further names ({count} queries)"),
    });
    findings.outcome()
}

fn nxdomain_cut(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let label = check.fresh_label();
    let (above, below) =
        (check.name(&format!("{label}.with-nsec3")), check.name(&format!("a.b.{label}.with-nsec3")));
    findings.add(check.expect(evidence, (&above, Rtype::A), Rcode::NXDOMAIN, Status::Secure));
    let asked = check.lookup(evidence, &below, Rtype::A);
    findings.require(asked.status() == Ok(Status::Secure), || format!("{below}: expected a secure NXDOMAIN"));
    findings.note(match asked.upstream.len() {
        0 => "answers names below a missing name from the cache".to_owned(),
        count => format!("{count} queries for a name below a missing name"),
    });
    findings.outcome()
}

fn nsec3param(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let apex = check.name("with-nsec3");
    for attempt in ["first", "second"] {
        let query: Query = lookup(&apex, Rtype::NSEC3PARAM);
        let asked = check.ask(evidence, &query);
        findings.add(asked.ok().and_then(|response| {
            if !has_answer(response, Rtype::NSEC3PARAM) || !has_answer(response, Rtype::RRSIG) {
                return Err(format!(
                    "{attempt} query: expected NSEC3PARAM and RRSIG records, observed {}",
                    response.message.rcode()
                ));
            }
            if !response.has(flags::AD) {
                return Err(format!("{attempt} query: the answer is not secure (AD=0)"));
            }
            Ok(())
        }));
    }
    findings.outcome()
}
