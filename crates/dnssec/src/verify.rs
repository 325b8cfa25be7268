//! Verifies a whole zone: every signature, every type bit map, the chain, and the keys against
//! trust anchors (RFC 4035 §2 and §5, RFC 5155 §7.1).
//!
//! The report contains all faults in canonical order of their owners. Two runs give the same
//! report.

pub(crate) mod cds;
mod keys;
mod options;
mod predecessor;
mod report;
mod signatures;
mod watch;
mod zone;
pub(crate) mod zonemd;

pub use options::{Anchor, Mode, VerifyOptions};
pub use predecessor::VerifiedPredecessor;
pub use report::{Fault, FaultReason, Report, UnsignedData, VerifyWarning, format_fault_count};
pub use watch::{ProgressFn, VerifyProgress};

use crate::denial::nsec5::Nsec5Evidence;
use crate::denial::{Mechanism, NameHash, is_generated_by_signing, nsec, nsec3, nsec5};
use crate::inspect::{KeyInfo, alias_keys};
use crate::keys::Nsec5Key;
use keys::ZoneKeys;
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_zone::{Contents, NameStatus, Node, Rrset};
pub(crate) use report::Findings;
pub(crate) use zone::{Zone, check_bitmap};

/// Version of the verification rules. It increases with each change after which `verify` can accept
/// a zone that it rejected before. Servers then discard their stored records of rejected versions.
pub const VERIFICATION_RULES_VERSION: u32 = 1;

/// A zone in which verification found no fault. Only [`into_verified`] and [`into_verified_with`]
/// create it.
///
/// An unsigned zone can also be `Verified`: it has no signatures to verify.
#[derive(Debug)]
pub struct Verified {
    contents: Contents,
    report: Report,
}

impl Verified {
    /// Returns the zone.
    #[must_use]
    pub const fn contents(&self) -> &Contents {
        &self.contents
    }

    /// Returns the zone without the report.
    #[must_use]
    pub fn into_contents(self) -> Contents {
        self.contents
    }

    /// Returns the report. It has no faults and may have warnings.
    #[must_use]
    pub const fn report(&self) -> &Report {
        &self.report
    }

    /// Returns the denial mechanism of the zone; `None` for an unsigned zone.
    #[must_use]
    pub const fn mechanism(&self) -> Option<Mechanism> {
        self.report.mechanism
    }
}

/// A zone in which verification found faults.
#[derive(Debug)]
pub struct FaultyZone {
    /// The zone.
    pub contents: Contents,
    /// The report with at least one fault.
    pub report: Report,
}

/// Optional inputs of a verification.
#[derive(Clone, Copy, Default)]
pub struct VerifyInputs<'a> {
    /// The previous verified version of the zone. If the DNSKEY RRset is the same, a signature that
    /// is unchanged over unchanged records is not verified again. If the DNSKEY RRset has changed,
    /// all signatures are verified. With a predecessor, the mode is [`Mode::Full`] regardless of
    /// [`VerifyOptions::mode`].
    pub predecessor: Option<VerifiedPredecessor<'a>>,
    /// Stored proofs or the VRF key, with which the names of a zone with NSEC5 are matched to its
    /// NSEC5 records.
    pub evidence: Nsec5Evidence<'a>,
    /// Callback that receives the progress after each chunk of names.
    pub progress: Option<ProgressFn<'a>>,
}

/// Verifies `contents` and returns the zone if it has no fault.
///
/// A zone without any DNSSEC record is accepted as unsigned, unless `options` has trust anchors. If
/// it has ZONEMD records, the digest in them must match the zone.
///
/// # Errors
/// Returns the zone and its report if the zone has faults.
pub fn into_verified(contents: Contents, options: &VerifyOptions) -> Result<Verified, Box<FaultyZone>> {
    into_verified_with(contents, options, &VerifyInputs::default())
}

/// Like [`into_verified`], with additional inputs.
///
/// # Errors
/// Like [`into_verified`].
pub fn into_verified_with(
    contents: Contents,
    options: &VerifyOptions,
    inputs: &VerifyInputs<'_>,
) -> Result<Verified, Box<FaultyZone>> {
    let unsigned = contents.soa().filter(|_| !has_dnssec(&contents) && options.anchors.is_empty());
    let report = unsigned.map_or_else(
        || verify_with_inputs(&contents, options, inputs),
        |soa| {
            let mut findings = Findings::default();
            zonemd::check(&contents, soa.serial, &mut findings);
            findings.into_report(None)
        },
    );
    if !report.has_no_faults() {
        return Err(Box::new(FaultyZone { contents, report }));
    }
    Ok(Verified { contents, report })
}

/// Verifies a zone and reports all its faults. An unsigned zone has the fault
/// [`FaultReason::NoDnskey`], unless it has ZONEMD records and `options` has no trust anchors; then
/// only the digest is verified. [`into_verified`] accepts unsigned zones.
///
/// The names of a zone with NSEC5 are not matched to its NSEC5 records; [`verify_with`] does this.
#[must_use]
pub fn verify(contents: &Contents, options: &VerifyOptions) -> Report {
    verify_with(contents, options, &Nsec5Evidence::default())
}

/// Like [`verify`]; `evidence` is used to match the names of a zone with NSEC5 to NSEC5 records.
#[must_use]
pub fn verify_with(contents: &Contents, options: &VerifyOptions, evidence: &Nsec5Evidence<'_>) -> Report {
    verify_with_inputs(contents, options, &VerifyInputs { evidence: *evidence, ..VerifyInputs::default() })
}

/// Like [`verify`], with additional inputs. All stored NSEC5 proofs are verified, even if a
/// predecessor is given.
#[must_use]
pub fn verify_with_inputs(contents: &Contents, options: &VerifyOptions, inputs: &VerifyInputs<'_>) -> Report {
    let full_options;
    let options = match inputs.predecessor {
        None => options,
        Some(_) => {
            full_options = VerifyOptions { mode: Mode::Full, ..options.clone() };
            &full_options
        }
    };
    let mut findings = Findings::default();
    let apex = contents.apex();
    let Some(soa) = contents.soa() else {
        findings.fault(apex.view(), Some(Rtype::SOA), FaultReason::NoSoa);
        return findings.into_report(None);
    };
    check_name_servers(contents, &mut findings);
    check_ttls(contents.nodes(), &mut findings);
    zonemd::check(contents, soa.serial, &mut findings);
    if contents.apex_rrset(Rtype::DNSKEY).is_none() {
        // An unsigned zone may have a digest, which is then verified (RFC 8976 §4).
        let has_only_digest = contents.apex_rrset(Rtype::ZONEMD).is_some() && !has_dnssec(contents);
        if has_only_digest && options.anchors.is_empty() {
            return findings.into_report(None);
        }
        findings.fault(apex.view(), Some(Rtype::DNSKEY), FaultReason::NoDnskey);
        return findings.into_report(None);
    }
    let zone = Zone::new(contents, soa.negative_ttl(), inputs.progress);
    let keys = ZoneKeys::read(contents, &mut findings);
    let predecessor = inputs.predecessor.filter(|predecessor| predecessor.has_same_keys(contents));
    findings.keys_changed = inputs.predecessor.is_some() && predecessor.is_none();
    let mut chain_findings = Findings::default();
    // The check of the chain runs on one thread while the other threads verify signatures; when
    // they have finished, it uses all threads.
    let (mut signing_keys, mechanism) = rayon::join(
        || signatures::check(&zone, &keys, options, predecessor, &mut findings),
        || check_denial(&zone, &inputs.evidence, options.mode, &mut chain_findings),
    );
    signing_keys.sort_unstable();
    keys.check_anchors(contents, &signing_keys, &options.anchors, &mut findings);
    keys.check_sep_keys(&signing_keys, &mut findings);
    cds::check(contents, &keys, &signing_keys, &mut findings);
    check_vrf_keys(contents, &mut findings);
    findings.append(chain_findings);
    if let Some(mechanism) = mechanism.filter(|mechanism| mechanism.name_hash() != NameHash::Vrf) {
        warn_of_alias_algorithms(contents, mechanism, &mut findings);
    }
    findings.into_report(mechanism)
}

/// Checks that no VRF key is also a signing key, because the servers have the VRF key ("Making
/// NSEC5 Practical for DNSSEC" §3.3). The check also applies to a zone that has an NSEC5KEY record
/// but no NSEC5 chain yet.
fn check_vrf_keys(contents: &Contents, findings: &mut Findings) {
    let rdatas = |rtype| contents.apex_rrset(rtype).into_iter().flat_map(Rrset::rdatas);
    for key in rdatas(Rtype::NSEC5KEY).filter_map(Nsec5Key::from_rdata) {
        if let Some(dnskey) = key.find_signing_key(rdatas(Rtype::DNSKEY).chain(rdatas(Rtype::CDNSKEY))) {
            let reason = FaultReason::SigningVrfKey { tag: key.tag(), dnskey };
            findings.fault(contents.apex().view(), Some(Rtype::NSEC5KEY), reason);
        }
    }
}

/// Warns of keys with an alias algorithm number in a zone without NSEC5. Resolvers that do not know
/// the number treat the zone as insecure, and only NSEC5 justifies this cost.
fn warn_of_alias_algorithms(contents: &Contents, mechanism: Mechanism, findings: &mut Findings) {
    let dnskeys = contents.apex_rrset(Rtype::DNSKEY);
    for key in alias_keys(dnskeys.into_iter().flat_map(Rrset::rdatas)) {
        let KeyInfo { tag, algorithm, .. } = key;
        findings.warn(VerifyWarning::AliasAlgorithmWithoutNsec5 { tag, algorithm, mechanism });
    }
}

/// Verifies the key set of a zone in which nothing else is signed, and the digest in its ZONEMD
/// records. `keys` contains only the apex with the key set, or no node if the key set is not
/// signed.
pub(crate) fn verify_key_set(contents: &Contents, keys: &Contents, options: &VerifyOptions) -> Report {
    let mut findings = Findings::default();
    let Some(soa) = contents.soa() else {
        findings.fault(contents.apex().view(), Some(Rtype::SOA), FaultReason::NoSoa);
        return findings.into_report(None);
    };
    check_name_servers(contents, &mut findings);
    check_ttls(keys.nodes(), &mut findings);
    zonemd::check(contents, soa.serial, &mut findings);
    if keys.node_count() > 0 {
        let options = VerifyOptions { mode: Mode::Full, ..options.clone() };
        let zone = Zone::new(keys, soa.negative_ttl(), None);
        let zone_keys = ZoneKeys::read(keys, &mut findings);
        let mut signing_keys = signatures::check(&zone, &zone_keys, &options, None, &mut findings);
        signing_keys.sort_unstable();
        zone_keys.check_anchors(keys, &signing_keys, &options.anchors, &mut findings);
        zone_keys.check_sep_keys(&signing_keys, &mut findings);
    }
    findings.into_report(None)
}

/// Every zone has an NS RRset at its apex (RFC 2181 §6.1).
pub(crate) fn check_name_servers(contents: &Contents, findings: &mut Findings) {
    if contents.apex_rrset(Rtype::NS).is_none() {
        findings.fault(contents.apex().view(), Some(Rtype::NS), FaultReason::NoNs);
    }
}

/// Checks that all records of an RRset have the same TTL (RFC 2181 §5.2). The TTLs of RRSIG records
/// of one owner may differ if they cover different types. RRSIG records that cover the same type
/// have the TTL of that RRset (RFC 4034 §3); [`signatures`] compares it with the lowest TTL of the
/// RRSIG records.
fn check_ttls<'z>(nodes: impl Iterator<Item = Node<'z>>, findings: &mut Findings) {
    for node in nodes {
        for rrset in node.rrsets().filter(|rrset| rrset.has_mixed_ttls()) {
            let reason = if rrset.rtype() == Rtype::RRSIG {
                FaultReason::MixedSignatureTtls
            } else {
                FaultReason::MixedTtls
            };
            findings.fault(node.name(), Some(rrset.covered()), reason);
        }
    }
}

/// Whether the zone has a record that shows that it is or was signed.
fn has_dnssec(contents: &Contents) -> bool {
    let apex = contents.apex().view();
    let is_dnssec =
        |owner: NameRef<'_>, rtype| rtype == Rtype::DNSKEY || is_generated_by_signing(rtype, owner, apex);
    contents.nodes().any(|node| node.rrsets().any(|rrset| is_dnssec(node.name(), rrset.rtype())))
}

/// Determines the denial mechanism of the zone and checks its chain. Records of other mechanisms
/// are faults.
fn check_denial(
    zone: &Zone<'_>,
    evidence: &Nsec5Evidence<'_>,
    mode: Mode,
    findings: &mut Findings,
) -> Option<Mechanism> {
    let has = |rtype| zone.contents.nodes().any(|node| node.has(rtype));
    let (has_nsec, has_nsec3) = (has(Rtype::NSEC), has(Rtype::NSEC3));
    let has_nsec5 = zone.contents.nodes().any(|node| has_nsec5_record(zone, node));
    let at_apex = |rtype| zone.contents.apex_rrset(rtype).is_some();
    let has_parameters = at_apex(Rtype::NSEC3PARAM);
    check_misplaced_records(zone, findings);
    if has_nsec5 && (at_apex(Rtype::NSEC5KEY) || !(has_nsec || has_nsec3)) {
        report_mixed_types(zone, &[Rtype::NSEC, Rtype::NSEC3, Rtype::NSEC3PARAM], findings);
        return Some(nsec5::check::check(zone, evidence, mode, findings));
    }
    if has_nsec5 {
        report_mixed_nsec5(zone, findings);
    }
    if has_nsec3 && (has_parameters || !has_nsec) || has_parameters && !has_nsec {
        report_mixed_types(zone, &[Rtype::NSEC], findings);
        return Some(nsec3::check::check(zone, findings));
    }
    if has_nsec {
        report_mixed_types(zone, &[Rtype::NSEC3, Rtype::NSEC3PARAM], findings);
        nsec::check::check(zone, findings);
        return Some(Mechanism::Nsec);
    }
    findings.fault(zone.contents.apex().view(), None, FaultReason::NoDenial);
    None
}

/// Whether the node has a record of an NSEC5 chain.
fn has_nsec5_record(zone: &Zone<'_>, node: Node<'_>) -> bool {
    node.has(Rtype::NSEC5) && nsec5::is_chain_owner(node.name(), zone.contents.apex().view())
}

/// Reports all records of the types `others`, which do not belong to the mechanism of the zone.
fn report_mixed_types(zone: &Zone<'_>, others: &[Rtype], findings: &mut Findings) {
    for node in zone.contents.nodes() {
        for &rtype in others.iter().filter(|rtype| node.has(**rtype)) {
            findings.fault(node.name(), Some(rtype), FaultReason::MixedDenial);
        }
    }
}

fn report_mixed_nsec5(zone: &Zone<'_>, findings: &mut Findings) {
    for node in zone.contents.nodes().filter(|node| has_nsec5_record(zone, *node)) {
        findings.fault(node.name(), Some(Rtype::NSEC5), FaultReason::MixedDenial);
    }
}

/// Reports chain records below a zone cut or a DNAME record (RFC 4035 §2.3), and NSEC3PARAM records
/// at other names than the apex (RFC 5155 §4). [`cds::is_misplaced`] decides about other types.
fn check_misplaced_records(zone: &Zone<'_>, findings: &mut Findings) {
    for (node, status) in zone.contents.nodes().zip(&zone.statuses) {
        for rrset in node.rrsets() {
            let is_misplaced = match rrset.rtype() {
                Rtype::NSEC3PARAM => node.index() > 0,
                Rtype::NSEC => !status.is_in_chain(),
                // An NSEC3 record is valid below a DNAME at the apex. Below another DNAME its owner
                // is not a hashed name, which another check reports.
                Rtype::NSEC3 => *status == NameStatus::BelowCut,
                Rtype::NSEC5 => *status == NameStatus::BelowCut && has_nsec5_record(zone, node),
                _ => cds::is_misplaced(node, *status, rrset),
            };
            if is_misplaced {
                findings.fault(node.name(), Some(rrset.rtype()), FaultReason::UnexpectedRecords);
            }
        }
    }
}
