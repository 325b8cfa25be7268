//! Items about signatures.

use super::super::zones::{KNOWN_ALGORITHMS, RSA_BITS, SHA1_ALGORITHMS, SHORT_LIFETIME, UNUSABLE_ALGORITHMS};
use super::super::{Evidence, Outcome, Row, Transport};
use super::context::{ResolverCheck, Status, lookup};
use super::faults::Findings;
use super::{item, quick};
use crate::tree::Fault;
use nonesuch_crypto::Algorithm;
use nonesuch_proto::message::{Rcode, Record, Section};
use nonesuch_proto::{Name, NameRef, Rtype};

/// TTL of the zones of the check, in seconds.
const ZONE_TTL: u32 = 3600;

pub(super) const ITEMS: &[Row<ResolverCheck>] = &[
    Row {
        item: quick(item(
            "XF-030",
            "Signatures of the algorithms 8, 10, 13, 14, 15 and 16 are verified, others make a zone insecure",
            &["RFC 9904 §3", "RFC 9904 §4", "RFC 4035 §5.2", "RFC 6840 §5.2", "RFC 9905 §2", "RFC 9906 §2"],
            "A zone for each algorithm must be secure, and one whose DS records have SHA-1 digests. The zones with ML-DSA-44 (18) and with RSA/SHA-1 (5 and 7), whose signatures are valid, must be secure or insecure. The zones with RSA/MD5 (1), DSA (3 and 6), ECC-GOST (12) and the unassigned number 200, whose signatures are arbitrary, must be insecure: data, a name that does not exist, and this name again, over TCP and from the cache.",
        )),
        run: algorithms,
    },
    Row {
        item: quick(item(
            "XF-031",
            "Expired signatures are rejected",
            &["RFC 4035 §5.3.1"],
            "A signature that expired a week ago.",
        )),
        run: |check, evidence| check.check_faults(evidence, &[Fault::ExpiredSignature]),
    },
    Row {
        item: quick(item(
            "XF-032",
            "Signatures that are not yet valid are rejected",
            &["RFC 4035 §5.3.1"],
            "A signature that becomes valid in a week.",
        )),
        run: |check, evidence| check.check_faults(evidence, &[Fault::SignatureNotYetValid]),
    },
    Row {
        item: item(
            "XF-033",
            "Times of signatures are compared in serial number arithmetic",
            &["RFC 4034 §3.1.5", "RFC 4035 §5.3.1"],
            "A signature whose expiration is before its inception must fail. A signature of 68 years must be valid: its inception, almost 2^31 seconds ago, is a greater number than the present time.",
        ),
        run: serial_arithmetic,
    },
    Row {
        item: item(
            "XF-034",
            "Signatures with more labels than the owner are rejected",
            &["RFC 4035 §5.3.1"],
            "A signature whose Labels field exceeds the number of labels of the owner.",
        ),
        run: |check, evidence| check.check_faults(evidence, &[Fault::WrongLabels]),
    },
    Row {
        item: quick(item(
            "XF-035",
            "Answers from a wildcard need the proof that no closer match exists",
            &["RFC 4035 §5.3.4", "RFC 5155 §8.8", "RFC 4592 §3.3.1", "RFC 5155 §9.2"],
            "Answers from a wildcard with the proof must be secure; without it, and with a wrong number of labels, they must fail.",
        )),
        run: wildcards,
    },
    Row {
        item: item(
            "XF-036",
            "Signatures whose Signer's Name is not the zone are rejected",
            &["RFC 4035 §5.3.1"],
            "Signatures with a Signer's Name outside the zone, and with that of the parent.",
        ),
        run: |check, evidence| check.check_faults(evidence, &[Fault::WrongSigner, Fault::SignerIsParent]),
    },
    Row {
        item: item(
            "XF-037",
            "Signatures over another type, another name or other data are rejected",
            &["RFC 4035 §5.3.1", "RFC 4035 §5.3.3", "RFC 4034 §3.1.8.1", "RFC 4035 §5.5"],
            "Signatures with another Type Covered, of another name, with changed octets, with a wrong tag or algorithm, cut, and missing.",
        ),
        run: |check, evidence| {
            check.check_faults(
                evidence,
                &[
                    Fault::WrongTypeCovered,
                    Fault::SignatureOfOtherName,
                    Fault::WrongSignature,
                    Fault::MalformedSignature,
                    Fault::MissingSignature,
                    Fault::ChangedOriginalTtl,
                    Fault::UnknownSignatureAlgorithm,
                    Fault::UnknownKeyTag,
                ],
            )
        },
    },
    Row {
        item: item(
            "XF-038",
            "The order of records does not matter, and repeated records are used or rejected",
            &["RFC 4034 §6.3", "RFC 6840 §5.11", "RFC 2181 §5"],
            "The server of a zone reverses the order of the records, and repeats a signature of the answer: the answer must be secure. Another server sends each record of the data twice: the answer must be secure or fail. The number of records in it is reported.",
        ),
        run: order_and_repetition,
    },
    Row {
        item: item(
            "XF-039",
            "The case of names does not matter for signatures",
            &["RFC 4034 §6.2", "RFC 6840 §5.1"],
            "The server of a zone sends owners, and names in RDATA of MX, NS and CNAME, in upper case.",
        ),
        run: |check, evidence| {
            secure_names(
                check,
                evidence,
                &[
                    ("www.upper-case", Rtype::A),
                    ("mail.upper-case", Rtype::MX),
                    ("alias.upper-case", Rtype::CNAME),
                ],
            )
            .outcome()
        },
    },
    Row {
        item: item(
            "XF-040",
            "The TTL is limited by the Original TTL and by the expiration of the signature",
            &["RFC 4035 §5.3.3"],
            "An RRset with twice the Original TTL of its signature, and one whose signature expires in two minutes.",
        ),
        run: ttls,
    },
    Row {
        item: item(
            "XF-041",
            "CNAME and DNAME records must be signed; a CNAME record may follow from a DNAME record",
            &["RFC 6672 §5.3.1", "RFC 4035 §4.8", "RFC 4035 §2.2", "RFC 1034 §3.6.2"],
            "A DNAME record with its unsigned CNAME record must be secure. Unsigned CNAME and DNAME records, and a loop of CNAME records, must fail. A CNAME record with a forged target must not be in an answer.",
        ),
        run: aliases,
    },
    Row {
        item: item(
            "XF-042",
            "RSA keys of 1,024 to 3,072 bits are used, also of unusual lengths",
            &["RFC 5702 §2.1", "RFC 3110 §2"],
            "Zones with RSA keys of 1,024, 1,280 and 3,072 bits. A resolver may refuse 1,024 bits by policy.",
        ),
        run: rsa,
    },
    Row {
        item: item(
            "XF-043",
            "ECDSA signatures with leading zero octets are valid, numbers out of range are not",
            &["RFC 6605 §4"],
            "Valid signatures of P-256 whose r or s begins with a zero octet, and signatures whose r or s is zero or above the group order.",
        ),
        run: ecdsa,
    },
];

/// The answers to these questions are secure.
fn secure_names(check: &mut ResolverCheck, evidence: &mut Evidence, names: &[(&str, Rtype)]) -> Findings {
    let mut findings = Findings::default();
    for (relative, rtype) in names {
        let name = check.name(relative);
        findings.add(check.expect(evidence, (&name, *rtype), Rcode::NOERROR, Status::Secure));
    }
    findings
}

fn algorithms(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    for number in KNOWN_ALGORITHMS {
        let name = check.name(&format!("www.algorithm-{number}"));
        let found = check.expect(evidence, (&name, Rtype::A), Rcode::NOERROR, Status::Secure);
        findings.add(found.map_err(|fault| format!("algorithm {number}: {fault}")));
    }
    let mut insecure = Vec::new();
    for number in [Algorithm::MLDSA44.0].into_iter().chain(SHA1_ALGORITHMS).chain(UNUSABLE_ALGORITHMS) {
        let may_be_secure = !UNUSABLE_ALGORITHMS.contains(&number);
        match optional_algorithm(check, evidence, number) {
            Ok(Status::Insecure) => insecure.push(number.to_string()),
            Ok(found) if found == Status::Secure && may_be_secure => {
                findings.note(format!("algorithm {number}: {}", found.name()));
            }
            Ok(found) => findings
                .add(Err(format!("algorithm {number}: expected insecure (AD=0), observed {}", found.name()))),
            Err(fault) => findings.add(Err(format!("algorithm {number}: {fault}"))),
        }
    }
    if !insecure.is_empty() {
        findings.note(format!("insecure: {}", insecure.join(", ")));
    }
    check.add_fault(evidence, Fault::Sha1Ds, &mut findings);
    findings.outcome()
}

/// The status of a zone whose algorithm the resolver need not know: that of its data and of a missing name, which
/// must be the same.
fn optional_algorithm(
    check: &mut ResolverCheck,
    evidence: &mut Evidence,
    number: u8,
) -> Result<Status, String> {
    let name = check.name(&format!("www.algorithm-{number}"));
    let of_data = check.lookup(evidence, &name, Rtype::A).status()?;
    if of_data == Status::Fails {
        return Ok(of_data);
    }
    let missing = check.name(&format!("missing.algorithm-{number}"));
    check.expect(evidence, (&missing, Rtype::A), Rcode::NXDOMAIN, of_data)?;
    // A cache of whole responses over UDP does not answer over TCP.
    let query = lookup(&missing, Rtype::A);
    let again = check.observe(evidence, |client, evidence| client.ask_over(evidence, &query, Transport::Tcp));
    match again.status()? {
        found if found == of_data => Ok(of_data),
        found => Err(format!(
            "{missing} A again, over TCP: expected {}, observed {}",
            of_data.name(),
            found.name()
        )),
    }
}

fn serial_arithmetic(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = secure_names(check, evidence, &[("old-inception.special", Rtype::TXT)]);
    check.add_fault(evidence, Fault::ReversedValidity, &mut findings);
    findings.outcome()
}

fn order_and_repetition(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let reordered = [("www.reorders", Rtype::A), ("mail.reorders", Rtype::MX), ("reorders", Rtype::DNSKEY)];
    let mut findings = secure_names(check, evidence, &reordered);
    let name = check.name("www.repeats");
    let asked = check.lookup(evidence, &name, Rtype::A);
    match asked.status() {
        Ok(Status::Fails) => findings.note("repeated records: rejected"),
        Ok(Status::Secure) => {
            let is_address = |record: &&Record| record.rtype == Rtype::A;
            let count = asked
                .ok()
                .map_or(0, |response| response.message.section(Section::Answer).filter(is_address).count());
            findings.note(format!("repeated records: secure, {count} in the answer"));
        }
        Ok(Status::Insecure) => {
            findings
                .add(Err(format!("{name}: expected a secure answer or SERVFAIL, observed insecure (AD=0)")));
        }
        Err(fault) => findings.add(Err(format!("{name}: {fault}"))),
    }
    findings.outcome()
}

fn wildcards(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    for zone in ["special", "with-nsec3", "with-opt-out"] {
        let label = check.fresh_label();
        let name = check.name(&format!("{label}.wild.{zone}"));
        // RFC 5155 §9.2: a name that an opt-out record covers may exist as an insecure delegation.
        let status = if zone == "with-opt-out" { Status::Insecure } else { Status::Secure };
        findings.add(check.expect(evidence, (&name, Rtype::A), Rcode::NOERROR, status));
    }
    for fault in [Fault::TooFewLabels, Fault::WildcardWithoutProof, Fault::WildcardTooHigh] {
        check.add_fault(evidence, fault, &mut findings);
    }
    findings.outcome()
}

fn ttls(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    for (relative, limit) in [("www.ttl-above-original", ZONE_TTL), ("short-lived.special", SHORT_LIFETIME)] {
        let name = check.name(relative);
        let asked = check.lookup(evidence, &name, Rtype::TXT);
        findings.add(asked.status().and_then(|found| match found {
            Status::Secure => Ok(()),
            other => Err(format!("{name}: expected a secure answer, observed {}", other.name())),
        }));
        let Ok(response) = asked.ok() else { continue };
        let ttl = response
            .message
            .section(Section::Answer)
            .filter(|record| record.rtype == Rtype::TXT)
            .map(|record| record.ttl)
            .max();
        if let Some(ttl) = ttl {
            findings.require(ttl <= limit, || {
                format!("{name}: expected a TTL of at most {limit} s, observed {ttl} s")
            });
        }
    }
    findings.outcome()
}

fn aliases(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    for fault in
        [Fault::Dname, Fault::UnsignedDname, Fault::UnsignedCname, Fault::ForgedCname, Fault::CnameLoop]
    {
        check.add_fault(evidence, fault, &mut findings);
    }
    // The servers send the target `www` for a name that the DNAME record leads to `deep.ent`.
    let name = check.name("deep.redirect.forged-cname");
    let forged = check.name("www.forged-cname");
    let asked = check.lookup(evidence, &name, Rtype::A);
    if let Ok(response) = asked.ok() {
        let is_forged =
            |target: &[u8]| NameRef::from_wire(target).is_ok_and(|target| target == forged.view());
        let mut aliases =
            response.message.section(Section::Answer).filter(|record| record.rtype == Rtype::CNAME);
        findings.require(!aliases.any(|record| is_forged(&record.rdata)), || {
            format!("{name}: the answer has the forged target")
        });
    }
    findings.outcome()
}

fn rsa(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    for bits in RSA_BITS {
        let name = check.name(&format!("www.rsa-{bits}"));
        let found = check.lookup(evidence, &name, Rtype::A).status();
        match found {
            Ok(Status::Secure) => {}
            // RFC 5702 §2.1 permits keys from 512 bits on; some libraries refuse short keys.
            Ok(Status::Insecure) if bits == 1024 => findings.note("1,024 bits: insecure (AD=0)"),
            Ok(other) => findings
                .add(Err(format!("{bits} bits: {name}: expected secure (AD=1), observed {}", other.name()))),
            Err(fault) => findings.add(Err(format!("{bits} bits: {name}: {fault}"))),
        }
    }
    findings.outcome()
}

fn ecdsa(check: &mut ResolverCheck, evidence: &mut Evidence) -> Outcome {
    let mut findings = Findings::default();
    let rows = [
        ("zero-r", Status::Secure),
        ("zero-s", Status::Secure),
        ("large-r", Status::Fails),
        ("large-s", Status::Fails),
        ("null-s", Status::Fails),
    ];
    for (label, expected) in rows {
        let name: Name = check.name(&format!("{label}.special"));
        findings.add(check.expect(evidence, (&name, Rtype::TXT), Rcode::NOERROR, expected));
    }
    findings.outcome()
}
