//! Items about the chain of trust: DS and DNSKEY records, insecure delegations, trust anchors.

use super::super::zones::MECHANISMS;
use super::super::{Evidence, Outcome, Row};
use super::context::{ResolverCheck, Status, lookup};
use super::faults::Findings;
use super::{item, quick};
use crate::tree::Fault;
use nonesuch_crypto::Algorithm;
use nonesuch_proto::Rtype;
use nonesuch_proto::message::Rcode;
use std::time::Duration;

/// Maximum time of an answer about a zone that causes much work.
const WORK_LIMIT: Duration = Duration::from_secs(5);

pub(super) const ITEMS: &[Row<ResolverCheck>] = &[
    Row {
        item: quick(item(
            "XF-020",
            "DS records with SHA-256 and SHA-384 are used; SHA-1 is ignored if a stronger digest exists",
            &["RFC 4509 §3", "RFC 6605 §2", "RFC 9904 §4", "RFC 4035 §5.2"],
            "Zones with DS records of SHA-384 only, of SHA-1 and SHA-256 with one of them wrong, of several keys, and with wrong digests, tags and algorithms.",
        )),
        run: |check, evidence| {
            check.check_faults(
                evidence,
                &[
                    Fault::Sha384Ds,
                    Fault::WrongSha1Ds,
                    Fault::WrongSha256Ds,
                    Fault::StandbyDs,
                    Fault::ManyDs,
                    Fault::WrongDsDigest,
                    Fault::WrongDsTag,
                    Fault::DsAlgorithmMismatch,
                    Fault::DsMatchesNoKey,
                    Fault::DsForZsk,
                    Fault::CollidingDs,
                ],
            )
        },
    },
    Row {
        item: quick(item(
            "XF-021",
            "A zone whose DS records all have an unknown digest type is insecure",
            &["RFC 6840 §5.2", "RFC 4035 §5.2"],
            "Zones with DS records of digest type 200 only, of this type and SHA-256, and of this type and a wrong SHA-256.",
        )),
        run: |check, evidence| {
            check.check_faults(
                evidence,
                &[Fault::UnknownDsDigest, Fault::KnownAndUnknownDsDigest, Fault::WrongAndUnknownDsDigest],
            )
        },
    },
    Row {
        item: quick(item(
            "XF-022",
            "A zone whose DS records all have an unknown algorithm is insecure",
            &["RFC 4035 §5.2", "RFC 6840 §5.2"],
            "Zones with DS records of algorithm 200 only, and of this algorithm and a known one.",
        )),
        run: |check, evidence| {
            check.check_faults(evidence, &[Fault::UnknownDsAlgorithm, Fault::KnownAndUnknownDsAlgorithm])
        },
    },
    Row {
        item: quick(item(
            "XF-023",
            "One valid path from the trust anchor is sufficient",
            &["RFC 6840 §5.11", "RFC 4035 §5.3.3", "RFC 4034 §2.1.1"],
            "Zones with three wrong signatures and a valid one, with a key of an unknown algorithm, with data that the KSK signs, and with keys without the SEP flag or with reserved flags.",
        )),
        run: |check, evidence| {
            check.check_faults(
                evidence,
                &[
                    Fault::OneValidSignature,
                    Fault::UnknownAlgorithmKey,
                    Fault::DataSignedByKsk,
                    Fault::NoSepFlag,
                    Fault::ReservedKeyFlags,
                ],
            )
        },
    },
    Row {
        item: item(
            "XF-024",
            "A policy can require post-quantum signatures where the parent offers them",
            &["RFC 6840 §5.11", "RFC 4035 §5.3.3"],
            "The policy is a setting of the resolver. By default one valid signature is sufficient.",
        ),
        run: |_, _| {
            Outcome::NotTestable(
            "the policy is a local setting without a standard: test it with the configuration of the resolver (nonesuch: require-post-quantum)".to_owned(),
        )
        },
    },
    Row {
        item: quick(item(
            "XF-025",
            "DNSKEY records without the Zone Key flag or with another protocol than 3 are not used",
            &["RFC 4034 §2.1.1", "RFC 4034 §2.1.2", "RFC 4035 §5.2"],
            "Zones whose DNSKEY records have no Zone Key flag or protocol 4, zones without a DNSKEY RRset, with an unsigned one, and with one that only the ZSK signs. All must fail.",
        )),
        run: |check, evidence| {
            check.check_faults(
                evidence,
                &[
                    Fault::NoZoneKeyFlag,
                    Fault::WrongProtocol,
                    Fault::MissingDnskey,
                    Fault::UnsignedDnskey,
                    Fault::DnskeySignedByZsk,
                    Fault::DsForUnsignedZone,
                ],
            )
        },
    },
    Row {
        item: item(
            "XF-026",
            "Keys with the same tag are handled, with bounded work",
            &["RFC 4035 §5.3.1", "RFC 4034 §B", "RFC 4035 §5.4"],
            "A zone with two keys of the same tag must be secure. A zone with many keys and signatures of the same tag, none of them valid (CVE-2023-50387), must fail within 5 s.",
        ),
        run: key_tags,
    },
    Row {
        item: quick(item(
            "XF-027",
            "The absence of DS records must be proved, by NSEC, NSEC3, opt-out or NSEC5",
            &["RFC 4035 §5.2", "RFC 5155 §8.6", "RFC 5155 §8.9", "RFC 6840 §4.4"],
            "An unsigned zone below a zone of each denial mechanism must be insecure. Without the proof, or with a proof of the child's apex, it must fail.",
        )),
        run: absence_of_ds,
    },
    Row {
        item: quick(item(
            "XF-028",
            "An island of security without a trust anchor is insecure",
            &["RFC 4035 §5.1", "RFC 4035 §5.2"],
            "A signed zone without DS records in the parent.",
        )),
        run: island,
    },
    Row {
        item: item(
            "XF-029",
            "Below a negative trust anchor, nothing is validated",
            &["RFC 7646 §1.1", "RFC 7646 §2"],
            "The printed configuration has a negative trust anchor for a zone with wrong DS records. Its names must be found without AD.",
        ),
        run: negative_anchor,
    },
    Row {
        item: quick(item(
            "XF-090",
            "A zone with an algorithm that the resolver does not implement is insecure and does not fail",
            &["RFC 4035 §5.2", "RFC 6840 §5.2"],
            "Case 5 of the report of JPRS with today's algorithms: then, a resolver without RSA/SHA-2 answered SERVFAIL. Zones signed with ML-DSA-44 (18), with the NSEC5 alias 229 of ECDSA P-256, and with DS records of algorithm 200. They must be secure or insecure.",
        )),
        run: unknown_algorithms,
    },
];

fn key_tags(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    check.add_fault(evidence, Fault::CollidingKeyTag, &mut findings);
    let start = std::time::Instant::now();
    check.add_fault(evidence, Fault::CollidingKeyTags, &mut findings);
    let elapsed = start.elapsed();
    findings.require(elapsed < WORK_LIMIT, || {
        format!("colliding-key-tags: the failure took {:.1} s", elapsed.as_secs_f64())
    });
    findings.note(format!("the zone with colliding tags failed after {} ms", elapsed.as_millis()));
    findings.outcome()
}

fn absence_of_ds(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    for (mechanism, label) in MECHANISMS {
        let name = check.name(&format!("www.unsigned.with-{label}"));
        let found = check.expect(evidence, (&name, Rtype::A), Rcode::NOERROR, Status::Insecure);
        findings.add(found.map_err(|fault| format!("parent with {mechanism}: {fault}")));
    }
    for fault in [
        Fault::MissingDsDenial,
        Fault::DsBitWithoutDs,
        Fault::NoNsBit,
        Fault::SoaBitAtDelegation,
        Fault::UnsignedDs,
        Fault::ExpiredDs,
    ] {
        check.add_fault(evidence, fault, &mut findings);
    }
    findings.outcome()
}

fn island(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let name = check.name("www.island");
    findings.add(check.expect(evidence, (&name, Rtype::A), Rcode::NOERROR, Status::Insecure));
    findings.outcome()
}

fn negative_anchor(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let name = check.constant_name(&format!("{}.any.nta", check.run()));
    let asked = check.lookup(evidence, &name, Rtype::A);
    let zone = check.constant_name("nta");
    match asked.status() {
        Err(fault) => Outcome::Fail(format!("{name}: {fault}")),
        Ok(Status::Insecure) => {
            let code =
                asked.ok().ok().and_then(|response| response.message.extended_error()).map(|(code, _)| code);
            Outcome::Pass(code.map_or_else(String::new, |code| format!("extended error {code}")))
        }
        Ok(Status::Secure) => Outcome::Fail(format!("{name}: expected an insecure answer, observed AD=1")),
        Ok(Status::Fails) => Outcome::NotTestable(format!(
            "the resolver has no negative trust anchor for {zone}: use the printed configuration, or add one"
        )),
    }
}

fn unknown_algorithms(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let zones = [
        ("ML-DSA-44 (18)", format!("www.algorithm-{}", Algorithm::MLDSA44.0)),
        ("NSEC5 alias of ECDSA P-256 (229)", "www.with-nsec5".to_owned()),
        ("algorithm 200", "www.unknown-ds-algorithm".to_owned()),
    ];
    for (what, relative) in zones {
        let name = check.name(&relative);
        let asked = check.ask(evidence, &lookup(&name, Rtype::A));
        match asked.status() {
            Ok(Status::Fails) => {
                findings.add(Err(format!("{what}: {name}: expected an answer, observed SERVFAIL")))
            }
            Ok(found) => findings.note(format!("{what}: {}", found.name())),
            Err(fault) => findings.add(Err(format!("{what}: {name}: {fault}"))),
        }
    }
    findings.outcome()
}
