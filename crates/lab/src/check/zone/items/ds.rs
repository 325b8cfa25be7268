//! Items about the DS records in the parent, and the CDS and CDNSKEY records with which the zone requests
//! changes of them.

use super::{for_each_signed_server, item, list};
use crate::check::signature::{MessageRrset, verify_signature};
use crate::check::zone::context::ZoneContext;
use crate::check::zone::findings::Findings;
use crate::check::zone::lookup::Server;
use crate::check::zone::registry;
use crate::check::{Evidence, Outcome, Row};
use nonesuch_crypto::{Algorithm, DigestType, key_tag};
use nonesuch_dnssec::keys::{PROTOCOL, REVOKE, ZONE_KEY, ds_rdata};
use nonesuch_proto::{Name, Rtype};
use std::collections::BTreeSet;

pub(super) const ITEMS: &[Row<ZoneContext>] = &[
    Row {
        item: item(
            "Z-040",
            "DS records match DNSKEY records of the zone",
            &["RFC 4035 §2.4", "RFC 4034 §5.2", "RFC 4034 §2.1.2", "RFC 5011 §2.1", "RFC 6840 §5.11"],
            "Compares key tag, algorithm and digest of each DS record with the DNSKEY RRset of each server. The key \
             must have the Zone Key flag and protocol 3, and must not be revoked. A DS record without a key is noted \
             if another DS record matches: it may be for a key that is published later.",
        ),
        run: ds_matches,
    },
    Row {
        item: item(
            "Z-041",
            "the DNSKEY RRset is signed by a key that a DS record names",
            &["RFC 4035 §5.2", "RFC 4035 §2.4"],
            "Verifies the signatures over the DNSKEY RRset of each server with the keys that DS records name.",
        ),
        run: ds_key_signs,
    },
    Row {
        item: item(
            "Z-042",
            "the DNSKEY RRset is signed with each algorithm in the DS RRset",
            &["RFC 4035 §2.2", "RFC 6840 §5.11"],
            "Compares the algorithms of the DS records with those of the valid signatures over the DNSKEY RRset.",
        ),
        run: ds_algorithms_sign,
    },
    Row {
        item: item(
            "Z-043",
            "the DS records have recommended digest types",
            &["RFC 9904 §4", "RFC 9905 §5", "RFC 9906 §2"],
            "Looks up the digest type of each DS record in the IANA registry, column \"Use for DNSSEC Delegation\". \
             MUST NOT, NOT RECOMMENDED and unassigned numbers fail.",
        ),
        run: digest_types,
    },
    Row {
        item: item(
            "Z-044",
            "the CDS and CDNSKEY records agree with each other and between servers",
            &["RFC 7344 §4", "RFC 8078 §4", "RFC 9615 §4.2", "RFC 1034 §4.3.5"],
            "Compares the CDS records with the digests of the CDNSKEY records if both exist, and the records of all \
             servers. A record that requests the deletion of the DS RRset must be the only one, with the fields of the \
             RFC.",
        ),
        run: cds_agrees,
    },
    Row {
        item: item(
            "Z-045",
            "the DS records that the zone requests would work",
            &["RFC 7344 §4.1"],
            "Checks that the CDS and CDNSKEY RRsets are signed by a key in the DNSKEY and DS RRsets, and that the \
             requested DS records name a key that signs the DNSKEY RRset. A request that differs from the DS RRset is \
             noted.",
        ),
        run: cds_would_work,
    },
];

/// RDATA that requests the deletion of the DS RRset, of CDS and of CDNSKEY records (RFC 8078 §4).
const DELETION: (&[u8], &[u8]) = (&[0, 0, 0, 0, 0], &[0, 0, 3, 0, 0]);

/// The fields of a DS record.
struct Ds<'r> {
    tag: u16,
    algorithm: Algorithm,
    digest_type: DigestType,
    rdata: &'r [u8],
}

impl<'r> Ds<'r> {
    fn read(rdata: &'r [u8]) -> Option<Self> {
        let [high, low, algorithm, digest_type, ..] = rdata else { return None };
        let (tag, algorithm) = (u16::from_be_bytes([*high, *low]), Algorithm(*algorithm));
        Some(Self { tag, algorithm, digest_type: DigestType(*digest_type), rdata })
    }

    fn text(&self) -> String {
        let Self { tag, algorithm, digest_type, .. } = self;
        format!("DS {tag} {algorithm} {digest_type}")
    }

    /// The key that the record names, or the reason why no key matches.
    fn find_key<'k>(&self, zone: &Name, keys: &'k [Vec<u8>]) -> Result<&'k Vec<u8>, String> {
        let of_tag: Vec<&Vec<u8>> = keys.iter().filter(|key| key_tag(key) == self.tag).collect();
        if of_tag.is_empty() {
            return Err(format!("no DNSKEY record has the key tag {}", self.tag));
        }
        let of_algorithm: Vec<&Vec<u8>> =
            of_tag.into_iter().filter(|key| key.get(3) == Some(&self.algorithm.0)).collect();
        if of_algorithm.is_empty() {
            return Err(format!("the DNSKEY record with key tag {} has another algorithm", self.tag));
        }
        if self.digest_type.octets().is_none() {
            return Err(format!("the digest type {} is not known here", self.digest_type));
        }
        let has_digest =
            |key: &&Vec<u8>| ds_rdata(zone.view(), key, self.digest_type).as_deref() == Some(self.rdata);
        let key = of_algorithm.into_iter().find(has_digest);
        let key = key.ok_or_else(|| {
            format!("the digest is not that of the DNSKEY record with key tag {}", self.tag)
        })?;
        match key_fault(key) {
            Some(fault) => Err(format!("the DNSKEY record with key tag {} {fault}", self.tag)),
            None => Ok(key),
        }
    }
}

/// Why a key cannot be a secure entry point.
fn key_fault(key: &[u8]) -> Option<&'static str> {
    let flags = key.first_chunk().map_or(0, |flags| u16::from_be_bytes(*flags));
    if flags & ZONE_KEY == 0 {
        Some("has no Zone Key flag")
    } else if key.get(2) != Some(&PROTOCOL) {
        Some("has another protocol than 3")
    } else if flags & REVOKE != 0 {
        Some("is revoked")
    } else {
        None
    }
}

/// The DS records; an outcome if the delegation has none or the zone was not found.
fn ds_records(context: &ZoneContext) -> Result<Vec<Vec<u8>>, Outcome> {
    if let Some(fault) = context.fault() {
        return Err(Outcome::NotTestable(fault.to_string()));
    }
    if context.discovery.ds.is_empty() {
        let reason = if context.parent().is_none() && context.options.undelegated.is_none() {
            "the root zone has no DS records"
        } else {
            "the delegation has no DS records"
        };
        return Err(Outcome::NotTestable(reason.to_owned()));
    }
    Ok(context.discovery.ds.clone())
}

/// Whether the key signs the RRset.
fn is_signed_by(context: &ZoneContext, rrset: &MessageRrset, key: &[u8]) -> bool {
    let keys = [key.to_vec()];
    rrset
        .rrsigs()
        .any(|rrsig| verify_signature(&rrsig, rrset, context.zone(), &keys, context.options.now).is_ok())
}

fn ds_matches(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    let ds = match ds_records(context) {
        Ok(ds) => ds,
        Err(outcome) => return note_island(context, evidence, outcome),
    };
    super::for_each_server(context, evidence, |context, evidence, server, findings| {
        let zone = context.zone().clone();
        let Some(keys) = context.apex_rrset(evidence, server, Rtype::DNSKEY) else {
            return findings
                .fault(format!("{} has no DNSKEY RRset, and the delegation has DS records", server.text()));
        };
        let read = ds.iter().filter_map(|rdata| Ds::read(rdata));
        let (mut faults, mut has_match) = (Vec::new(), false);
        for ds in read {
            match ds.find_key(&zone, &keys.rdatas) {
                Ok(_) => has_match = true,
                Err(fault) => faults.push(format!("{}: {}: {fault}", server.text(), ds.text())),
            }
        }
        if has_match {
            findings.good();
            faults.into_iter().for_each(|fault| findings.note(fault));
        } else {
            faults.into_iter().for_each(|fault| findings.fault(fault));
        }
    })
}

/// A signed zone without DS records is an island of security.
fn note_island(context: &mut ZoneContext, evidence: &mut Evidence, outcome: Outcome) -> Outcome {
    let has_parent = context.parent().is_some() || context.options.undelegated.is_some();
    match outcome {
        Outcome::NotTestable(reason) if has_parent && !context.dnskeys(evidence).is_empty() => {
            Outcome::NotTestable(format!("{reason}: the signed zone is an island of security"))
        }
        outcome => outcome,
    }
}

fn ds_key_signs(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    let ds = match ds_records(context) {
        Ok(ds) => ds,
        Err(outcome) => return outcome,
    };
    for_each_signed_server(context, evidence, |context, evidence, (server, _), findings| {
        let zone = context.zone().clone();
        let Some(rrset) = context.apex_rrset(evidence, server, Rtype::DNSKEY) else { return };
        let named = ds.iter().filter_map(|rdata| Ds::read(rdata)?.find_key(&zone, &rrset.rdatas).ok());
        let named: Vec<&Vec<u8>> = named.collect();
        let is_signed = named.iter().any(|key| is_signed_by(context, &rrset, key));
        findings.check((!is_signed).then(|| {
            let tags = list(named.iter().map(|key| key_tag(key)).collect::<BTreeSet<_>>());
            format!("{}: no valid signature over the DNSKEY RRset by a key that a DS record names (key tags {tags})", server.text())
        }));
    })
}

fn ds_algorithms_sign(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    let ds = match ds_records(context) {
        Ok(ds) => ds,
        Err(outcome) => return outcome,
    };
    let wanted: BTreeSet<Algorithm> =
        ds.iter().filter_map(|rdata| Ds::read(rdata)).map(|ds| ds.algorithm).collect();
    for_each_signed_server(context, evidence, |context, evidence, (server, _), findings| {
        let Some(rrset) = context.apex_rrset(evidence, server, Rtype::DNSKEY) else { return };
        let zone = context.zone().clone();
        for algorithm in &wanted {
            let mut of_algorithm = rrset.rrsigs().filter(|rrsig| rrsig.algorithm == *algorithm).peekable();
            let is_known = algorithm.entry().is_some();
            let has_any = of_algorithm.peek().is_some();
            let is_valid = of_algorithm.any(|rrsig| {
                verify_signature(&rrsig, &rrset, &zone, &rrset.rdatas, context.options.now).is_ok()
            });
            if has_any && !is_known {
                findings.good();
                findings.note(format!(
                    "the algorithm {algorithm} is not supported here: its signatures are not verified"
                ));
                continue;
            }
            findings.check((!is_valid).then(|| {
                format!("{}: the DNSKEY RRset has no valid signature with the algorithm {algorithm} of a DS record", server.text())
            }));
        }
    })
}

fn digest_types(context: &mut ZoneContext, _: &mut Evidence) -> Outcome {
    let ds = match ds_records(context) {
        Ok(ds) => ds,
        Err(outcome) => return outcome,
    };
    let mut findings = Findings::default();
    let types: BTreeSet<u8> = ds.iter().filter_map(|rdata| rdata.get(3).copied()).collect();
    for number in types {
        let (digest_type, rule) = (DigestType(number), registry::delegation(number));
        findings.check(
            rule.is_violation().then(|| format!("digest type {number} ({digest_type}): {}", rule.name())),
        );
        findings.note(format!("digest type {number} ({digest_type}): {}", rule.name()));
    }
    findings.outcome()
}

/// The CDS and CDNSKEY RRsets of a server.
fn requests(
    context: &mut ZoneContext,
    evidence: &mut Evidence,
    server: &Server,
) -> [Option<MessageRrset>; 2] {
    [Rtype::CDS, Rtype::CDNSKEY].map(|rtype| context.apex_rrset(evidence, server, rtype))
}

/// Whether CDS or CDNSKEY RDATA request the deletion of the DS RRset: the algorithm is 0 (RFC 8078 §4).
fn is_deletion(rtype: Rtype, rdata: &[u8]) -> bool {
    rdata.get(if rtype == Rtype::CDS { 2 } else { 3 }) == Some(&0)
}

fn cds_agrees(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    let live = context.live_servers(evidence);
    if let Some(reason) = context.why_no_server(&live) {
        return Outcome::NotTestable(reason);
    }
    let mut findings = Findings::default();
    let mut first: Option<(String, [Vec<Vec<u8>>; 2])> = None;
    for server in &live {
        let [cds, cdnskeys] = requests(context, evidence, server);
        if let Some(fault) = disagreement(context.zone(), cds.as_ref(), cdnskeys.as_ref()) {
            findings.fault(format!("{}: {fault}", server.text()));
        }
        let own = [cds, cdnskeys].map(|rrset| rrset.map(|rrset| rrset.rdatas).unwrap_or_default());
        match &first {
            None => first = Some((server.text(), own)),
            Some((other, expected)) => findings.check(
                (own != *expected)
                    .then(|| format!("{other} and {} have different CDS or CDNSKEY records", server.text())),
            ),
        }
    }
    let has_request = first.is_some_and(|(_, parts)| parts.iter().any(|part| !part.is_empty()));
    if has_request {
        findings.good();
        return findings.outcome();
    }
    match findings.outcome() {
        Outcome::Pass(_) | Outcome::NotTestable(_) => {
            Outcome::NotTestable("the zone has neither CDS nor CDNSKEY records".to_owned())
        }
        fail @ Outcome::Fail(_) => fail,
    }
}

/// Why the CDS and CDNSKEY records of one server do not fit each other.
fn disagreement(zone: &Name, cds: Option<&MessageRrset>, cdnskeys: Option<&MessageRrset>) -> Option<String> {
    for rrset in [cds, cdnskeys].into_iter().flatten() {
        let deletions = rrset.rdatas.iter().filter(|rdata| is_deletion(rrset.rtype, rdata)).count();
        if deletions > 0 && rrset.rdatas.len() > 1 {
            return Some(format!("the {} RRset requests a deletion and has other records", rrset.rtype));
        }
        let expected = if rrset.rtype == Rtype::CDS { DELETION.0 } else { DELETION.1 };
        if deletions > 0 && rrset.rdatas[0] != expected {
            return Some(format!(
                "the {} RRset requests a deletion with other fields than required",
                rrset.rtype
            ));
        }
    }
    let (cds, cdnskeys) = (cds?, cdnskeys?);
    let deletes = |rrset: &MessageRrset| rrset.rdatas.iter().any(|rdata| is_deletion(rrset.rtype, rdata));
    if deletes(cds) != deletes(cdnskeys) {
        return Some("only one of the CDS and CDNSKEY RRsets requests a deletion".to_owned());
    }
    if deletes(cds) {
        return None;
    }
    let is_of =
        |ds: &Ds<'_>, key: &[u8]| ds_rdata(zone.view(), key, ds.digest_type).as_deref() == Some(ds.rdata);
    let read: Vec<Ds<'_>> = cds.rdatas.iter().filter_map(|rdata| Ds::read(rdata)).collect();
    let without_key = read.iter().find(|ds| !cdnskeys.rdatas.iter().any(|key| is_of(ds, key)));
    let without_ds = cdnskeys.rdatas.iter().find(|key| !read.iter().any(|ds| is_of(ds, key)));
    match (without_key, without_ds) {
        (Some(ds), _) => Some(format!("C{} matches no CDNSKEY record", ds.text())),
        (None, Some(key)) => {
            Some(format!("the CDNSKEY record with key tag {} has no CDS record", key_tag(key)))
        }
        (None, None) => None,
    }
}

fn cds_would_work(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    for_each_signed_server(context, evidence, |context, evidence, (server, keys), findings| {
        let parts = requests(context, evidence, server);
        if parts.iter().all(Option::is_none) {
            return findings.skip("the zone has neither CDS nor CDNSKEY records");
        }
        check_request_signatures(context, (server, keys), &parts, findings);
        let asks_deletion =
            |rrset: &MessageRrset| rrset.rdatas.iter().any(|rdata| is_deletion(rrset.rtype, rdata));
        if parts.iter().flatten().any(asks_deletion) {
            return findings.note("the zone requests the deletion of its DS records");
        }
        let Some(dnskey_rrset) = context.apex_rrset(evidence, server, Rtype::DNSKEY) else { return };
        let wanted = requested_keys(context.zone(), keys, &parts);
        let works = wanted.iter().any(|key| is_signed_by(context, &dnskey_rrset, key));
        findings.check((!works).then(|| {
            let server = server.text();
            format!("{server}: no requested DS record names a key that signs the DNSKEY RRset: the zone would become bogus")
        }));
        let present: BTreeSet<&Vec<u8>> = context.discovery.ds.iter().collect();
        let [cds, _] = &parts;
        if cds.as_ref().is_some_and(|cds| cds.rdatas.iter().collect::<BTreeSet<_>>() != present) {
            findings.note("the CDS records differ from the DS records: a change is requested");
        }
    })
}

/// Checks that a key in the DNSKEY and DS RRsets signs the CDS and CDNSKEY RRsets.
fn check_request_signatures(
    context: &ZoneContext,
    (server, keys): (&Server, &[Vec<u8>]),
    parts: &[Option<MessageRrset>; 2],
    findings: &mut Findings,
) {
    let ds = &context.discovery.ds;
    let trusted = ds.iter().filter_map(|rdata| Ds::read(rdata)?.find_key(context.zone(), keys).ok());
    let trusted: Vec<&Vec<u8>> = trusted.collect();
    for rrset in parts.iter().flatten() {
        let is_signed = trusted.iter().any(|key| is_signed_by(context, rrset, key));
        // Without DS records, the request is for the first DS RRset (RFC 9615 §4).
        findings.check((!is_signed && !ds.is_empty()).then(|| {
            let (server, rtype) = (server.text(), rrset.rtype);
            format!("{server}: the {rtype} RRset is not signed by a key in the DNSKEY and DS RRsets")
        }));
    }
}

/// The keys that the requested DS records name.
fn requested_keys<'k>(
    zone: &Name,
    keys: &'k [Vec<u8>],
    parts: &[Option<MessageRrset>; 2],
) -> Vec<&'k Vec<u8>> {
    match parts {
        [Some(cds), _] => {
            cds.rdatas.iter().filter_map(|rdata| Ds::read(rdata)?.find_key(zone, keys).ok()).collect()
        }
        [None, Some(cdnskeys)] => keys.iter().filter(|key| cdnskeys.rdatas.contains(key)).collect(),
        [None, None] => Vec::new(),
    }
}
