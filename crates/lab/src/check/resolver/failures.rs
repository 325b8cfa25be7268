//! Items about errors, and about limits for the work of the resolver.

use super::super::{Evidence, Outcome, Response, Row};
use super::context::{ResolverCheck, Status, lookup};
use super::faults::{Findings, has_nsec5};
use super::{item, quick};
use crate::tree::{FAULTS, Fault, Outcome as Expected};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Rcode, Section};
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum time of a failure that causes much work.
const WORK_LIMIT: Duration = Duration::from_secs(5);
/// TTL of the record of the item about stale data, and a little more.
const EXPIRED: Duration = Duration::from_millis(2100);
/// Recommended TTL of a stale record, in seconds (RFC 8767 §4).
const STALE_TTL: u32 = 30;
/// "DNSSEC Bogus" and "Other", which are right for every failure of validation, and "Cached Error", which is right
/// for a question that an earlier item has asked (RFC 8914 §4.7, §4.1 and §4.14).
const GENERAL_CODES: [u16; 3] = [6, 0, 13];

pub(super) const ITEMS: &[Row<ResolverCheck>] = &[
    Row {
        item: item(
            "XF-080",
            "Extended errors state the cause of a failure",
            &["RFC 8914 §4", "RFC 9276 §3.2"],
            "Asks a question about each fault with an expected code. Extended errors are optional; a code must be the expected one or a general one (0, 6 or 13), or another one that belongs to the same cause.",
        ),
        run: extended_errors,
    },
    Row {
        item: quick(item(
            "XF-081",
            "A failure to validate is cached for at least a second",
            &["RFC 9520 §3.2", "RFC 9520 §3.4"],
            "Asks twice for a name with a wrong signature. The second query must cause no query to the servers of the zone.",
        )),
        run: cached_failure,
    },
    Row {
        item: item(
            "XF-082",
            "Failures are reported to the agent that the servers name",
            &["RFC 9567 §6.1", "RFC 9567 §6.1.1"],
            "The servers of a bogus zone name an agent in the option Report-Channel. Reports are optional; a report must have the right name.",
        ),
        run: reports,
    },
    Row {
        item: item(
            "XF-083",
            "Zones with many colliding keys do not occupy the resolver",
            &["RFC 4035 §5.3.1", "RFC 4035 §5.4"],
            "Asks for a name in a zone of CVE-2023-50387 and then for another name. The failure must take less than 5 s.",
        ),
        run: |check, evidence| bounded_work(check, evidence, Fault::CollidingKeyTags),
    },
    Row {
        item: item(
            "XF-084",
            "Closest encloser proofs of long names do not occupy the resolver",
            &["RFC 5155 §8.3", "RFC 9276 §3.2", "RFC 4035 §5.4"],
            "Asks for a missing name of 60 labels in a zone with 50 NSEC3 iterations (CVE-2023-50868). The answer must take less than 5 s.",
        ),
        run: |check, evidence| bounded_work(check, evidence, Fault::DeepNsec3),
    },
    Row {
        item: item(
            "XF-085",
            "A large RRset is answered, or fails by a limit",
            &["RFC 2181 §5.1", "RFC 4035 §5.4"],
            "Asks for an RRset of 150 records. A limit is local policy and is reported.",
        ),
        run: |check, evidence| check.check_faults(evidence, &[Fault::LargeRrset]),
    },
    Row {
        item: item(
            "XF-086",
            "Stale data are never bogus",
            &["RFC 8767 §4", "RFC 4035 §5.5"],
            "Asks for a record with a TTL of one second; then the server sends a wrong signature. After the TTL, the answer must be SERVFAIL, or the stale record with a TTL above 0; 30 s are recommended.",
        ),
        run: stale,
    },
    Row {
        item: item(
            "XF-087",
            "Minimised query names and validation work together",
            &["RFC 9156 §2", "RFC 9156 §3", "RFC 4592 §2.2.2"],
            "Asks for a name below an empty non-terminal. It must be secure. Whether the servers above the zone see the whole name is reported.",
        ),
        run: minimised_names,
    },
    Row {
        item: item(
            "XF-088",
            "Servers that do not answer, and delegations that lead nowhere, end in SERVFAIL",
            &["RFC 1034 §5.3.3", "RFC 9520 §2.1", "RFC 9520 §2.3"],
            "Names of a zone whose server is silent, of a lame delegation, and of a delegation without the address of the server.",
        ),
        run: unusable_servers,
    },
];

/// A resolver may try a silent server for longer than the check waits.
fn unusable_servers(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    for fault in [Fault::UnreachableServer, Fault::LameDelegation, Fault::MissingGlue] {
        let Some(question) = check.questions(fault, |_| true).into_iter().next() else { continue };
        match check.lookup(evidence, &question.name, question.rtype).status() {
            Ok(Status::Fails) => {}
            Ok(found) => findings.add(Err(format!("{fault}: expected SERVFAIL, observed {}", found.name()))),
            Err(_) => {
                findings.note(format!("{fault}: no answer in the time of the check; --timeout sets it"))
            }
        }
    }
    findings.outcome()
}

/// The codes that also describe a fault.
const fn also_right(fault: Fault) -> &'static [u16] {
    match fault {
        // 9: DNSKEY Missing, 10: RRSIGs Missing, 12: NSEC Missing describe several faults alike.
        Fault::ReversedValidity => &[7, 8, 25],
        Fault::UnknownNsec3Hash
        | Fault::UnknownNsec3Flags
        | Fault::MixedNsec3Parameters
        | Fault::RemovedData => &[12, 27],
        Fault::MissingSignature | Fault::WrongTypeCovered | Fault::UnsignedDnskey | Fault::UnsignedDs => {
            &[9, 10]
        }
        Fault::NoZoneKeyFlag => &[9, 10, 11],
        Fault::RevokedKey | Fault::WrongProtocol | Fault::MissingDnskey | Fault::DsForUnsignedZone => {
            &[9, 10]
        }
        Fault::ExpiredDs | Fault::ExpiredDenial => &[7, 12],
        Fault::UnsignedDenial | Fault::TooFewLabels => &[10, 12],
        _ => &[9, 10, 12],
    }
}

fn extended_errors(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let mut codes: BTreeMap<u16, usize> = BTreeMap::new();
    let (mut asked_count, mut exact) = (0, 0);
    for row in FAULTS.iter().filter(|row| matches!(row.outcome, Expected::Bogus | Expected::Insecure)) {
        let Some(expected) = row.extended_error else { continue };
        let Some(question) = check.questions(row.fault, |zone| !has_nsec5(zone)).into_iter().next() else {
            continue;
        };
        let asked = check.ask(evidence, &lookup(&question.name, question.rtype));
        let Ok(response) = asked.ok() else { continue };
        let is_failure = response.message.rcode() == Rcode::SERVFAIL;
        let Some((code, _)) = response.message.extended_error() else {
            asked_count += usize::from(is_failure);
            continue;
        };
        asked_count += 1;
        exact += usize::from(code == expected);
        *codes.entry(code).or_default() += 1;
        let is_right =
            code == expected || GENERAL_CODES.contains(&code) || also_right(row.fault).contains(&code);
        findings.require(is_right || !is_failure, || {
            format!("{}: expected the code {expected}, observed {code}", row.name)
        });
    }
    if codes.is_empty() {
        findings.note("has no extended errors, which are optional");
    } else {
        let list: Vec<String> = codes.keys().map(u16::to_string).collect();
        findings.note(format!(
            "{exact} of {asked_count} answers have the expected code; codes: {}",
            list.join(", ")
        ));
    }
    findings.outcome()
}

fn cached_failure(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let name = check.name("www.malformed-signature");
    let zone = check.name("malformed-signature");
    let first = check.lookup(evidence, &name, Rtype::TXT);
    findings.require(first.status() == Ok(Status::Fails), || format!("{name}: expected SERVFAIL"));
    let second = check.lookup(evidence, &name, Rtype::TXT);
    findings.require(second.status() == Ok(Status::Fails), || format!("{name}, again: expected SERVFAIL"));
    let queries = second.upstream.iter().filter(|seen| seen.is_at_or_below(&zone)).count();
    findings.require(queries == 0, || {
        format!("the second query caused {queries} queries to the servers of the zone: expected none")
    });
    findings.outcome()
}

fn reports(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let name = check.name("www.reported");
    let agent = check.name("agent");
    let mut upstream = check.lookup(evidence, &name, Rtype::A).upstream;
    // A report may follow the answer.
    upstream.extend(check.lookup(evidence, &check.name("www.plain"), Rtype::A).upstream);
    thread::sleep(Duration::from_millis(100));
    upstream.extend(check.new_observations(evidence));
    let reports: Vec<String> = upstream
        .iter()
        .filter_map(|seen| seen.question())
        .filter(|(asked, rtype)| *rtype == Rtype::TXT && asked.view().is_below(agent.view()))
        .map(|(asked, _)| asked.to_string().to_ascii_lowercase())
        .collect();
    let Some(report) = reports.first() else {
        return Outcome::Pass("sends no reports, which are optional".to_owned());
    };
    let zone = format!("reported.{}", check.run());
    if reports.iter().any(|report| names_failure(report, &zone)) {
        Outcome::Pass(format!("report {report}"))
    } else {
        Outcome::Fail(format!("the report {report} does not name the failure"))
    }
}

/// Whether a report has the form of RFC 9567 §6.1.1, for a name in this zone: `_er`, type, name, extended error, `_er`,
/// agent.
fn names_failure(report: &str, zone: &str) -> bool {
    let fields = report.strip_prefix("_er.").and_then(|rest| rest.split_once("._er."));
    let fields = fields.and_then(|(fields, _)| fields.split_once('.'));
    let Some((rtype, (name, code))) = fields.and_then(|(rtype, rest)| Some((rtype, rest.rsplit_once('.')?)))
    else {
        return false;
    };
    rtype.parse::<u16>().is_ok()
        && code.parse::<u16>().is_ok()
        && format!(".{name}").contains(&format!(".{zone}"))
}

fn bounded_work(check: &mut ResolverCheck, evidence: &mut Evidence, fault: Fault) -> Outcome {
    let mut findings = Findings::default();
    let Some(question) = check.questions(fault, |_| true).into_iter().next_back() else {
        return Outcome::pass();
    };
    let start = Instant::now();
    let asked = check.lookup(evidence, &question.name, question.rtype);
    let elapsed = start.elapsed();
    findings.add(asked.status().map(drop));
    findings
        .require(elapsed < WORK_LIMIT, || format!("{fault}: the answer took {:.1} s", elapsed.as_secs_f64()));
    let other = check.name("www.special");
    let start = Instant::now();
    findings.add(check.expect(evidence, (&other, Rtype::A), Rcode::NOERROR, Status::Secure));
    let after = start.elapsed();
    findings.note(format!(
        "{} ms, and {} ms for another name after it",
        elapsed.as_millis(),
        after.as_millis()
    ));
    findings.outcome()
}

fn stale(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let name = check.name("short.stale");
    if let Err(fault) = check.expect(evidence, (&name, Rtype::A), Rcode::NOERROR, Status::Secure) {
        return Outcome::Fail(fault);
    }
    check.authority().set_bogus(true);
    thread::sleep(EXPIRED);
    let asked = check.lookup(evidence, &name, Rtype::A);
    check.authority().set_bogus(false);
    let ttl_of = |response: &Response| {
        let addresses = response.message.section(Section::Answer).filter(|record| record.rtype == Rtype::A);
        addresses.map(|record| record.ttl).max()
    };
    let is_queried = asked.upstream.iter().any(|seen| seen.is_for(&name));
    match asked.ok().map(|response| (response.message.rcode(), ttl_of(response))) {
        Ok((Rcode::SERVFAIL, _)) => findings.note("SERVFAIL"),
        Ok((Rcode::NOERROR, Some(..=1))) if is_queried => {
            findings.add(Err(format!("{name}: the answer has the new data, whose signature is wrong")));
        }
        // RFC 8767 §4: the TTL of a stale record must be above 0.
        Ok((Rcode::NOERROR, Some(STALE_TTL))) => findings.note(format!("a stale answer with a TTL of {STALE_TTL} s")),
        Ok((Rcode::NOERROR, Some(ttl))) if ttl > 0 => findings.note(format!(
            "a stale answer with a TTL of {ttl} s; RFC 8767 §4 recommends {STALE_TTL} s"
        )),
        Ok((rcode, ttl)) => findings.add(Err(format!(
            "{name}: expected SERVFAIL or a stale answer with a TTL above 0, observed {rcode} and the TTL {ttl:?}"
        ))),
        Err(fault) => findings.add(Err(format!("{name}: {fault}"))),
    }
    findings.outcome()
}

fn minimised_names(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let name = check.name("deep.ent.minimised");
    let asked = check.lookup(evidence, &name, Rtype::A);
    findings.require(asked.status() == Ok(Status::Secure), || {
        format!("{name}: expected a secure answer, observed {:?}", asked.status())
    });
    let zone = check.name("minimised");
    let seen_above = asked.upstream.iter().any(|seen| {
        seen.is_for(&name)
            && check.tree().zones.iter().any(|found| {
                zone.view().is_below(found.origin.view())
                    && std::net::IpAddr::V4(found.server) == seen.server.ip()
            })
    });
    findings.note(if seen_above {
        "servers above the zone see the whole name"
    } else {
        "query names are minimised"
    });
    findings.outcome()
}

#[cfg(test)]
mod tests {
    use super::names_failure;

    #[test]
    fn a_report_has_type_name_code_and_agent() {
        let zone = "reported.r1";
        assert!(names_failure("_er.1.www.reported.r1.check.7._er.agent.r1.check.", zone));
        assert!(names_failure("_er.48.reported.r1.check.9._er.agent.r1.check.", zone));
        for wrong in [
            "_er.1.www.other.r1.check.7._er.agent.r1.check.",
            "_er.www.reported.r1.check.7._er.agent.r1.check.",
            "_er.1.www.reported.r1.check._er.agent.r1.check.",
            "_er.1.www.reported.r1.check.7.agent.r1.check.",
            "1.www.reported.r1.check.7._er.agent.r1.check.",
        ] {
            assert!(!names_failure(wrong, zone), "{wrong}");
        }
    }
}
