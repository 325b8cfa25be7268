//! Verifying a whole zone: every signature, every bit map, the chain, and the keys against trust anchors
//! (RFC 4035 §2 and §5, RFC 5155 §7.1).
//!
//! All faults are reported, in canonical order of owners; two runs give the same report.

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
pub use report::{Fault, FaultReason, Report, VerifyWarning, count_faults};
pub use watch::{ProgressFn, VerifyProgress};

use crate::denial::nsec5::Nsec5Evidence;
use crate::denial::{Mapping, Mechanism, is_generated_by_signing, nsec, nsec3, nsec5};
use crate::inspect::{KeyInfo, alias_keys};
use crate::keys::Nsec5Key;
use keys::ZoneKeys;
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_zone::{Contents, NameStatus, Node, Rrset};
pub(crate) use report::Findings;
pub(crate) use zone::{Zone, check_bitmap};

/// Raised with each change after which a zone may be found sound that was not before: what servers have stored of rejected versions is
/// forgotten then.
pub const VERDICTS: u32 = 1;

/// A zone that was verified without fault; made by [`into_verified`] and [`into_verified_with`] alone.
///
/// An unsigned zone has nothing to verify and is taken too.
#[derive(Debug)]
pub struct Verified {
    contents: Contents,
    report: Report,
}

impl Verified {
    /// The zone.
    #[must_use]
    pub const fn contents(&self) -> &Contents {
        &self.contents
    }

    /// The zone.
    #[must_use]
    pub fn into_contents(self) -> Contents {
        self.contents
    }

    /// What was verified: no faults, perhaps warnings.
    #[must_use]
    pub const fn report(&self) -> &Report {
        &self.report
    }

    /// How the zone denies existence; `None` for an unsigned zone.
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
    /// The faults.
    pub report: Report,
}

/// What verifying a zone may use beside the zone itself.
#[derive(Clone, Copy, Default)]
pub struct VerifyInputs<'a> {
    /// The version of the zone that was verified before: its signatures are not verified again where they and their records
    /// are the same; all are where the DNSKEY RRset has changed. [`VerifyOptions::mode`] is not looked at then.
    pub predecessor: Option<VerifiedPredecessor<'a>>,
    /// What the names of a zone with NSEC5 are matched to its records by.
    pub evidence: Nsec5Evidence<'a>,
    /// Called now and then with what is done so far.
    pub progress: Option<ProgressFn<'a>>,
}

/// Verifies `contents` and keeps them where they have no fault. A zone with nothing of DNSSEC in it passes, unless
/// trust anchors say that it is signed: it is served as what it is. A digest that it has of itself must fit.
///
/// # Errors
/// The zone where it has faults.
pub fn into_verified(contents: Contents, options: &VerifyOptions) -> Result<Verified, Box<FaultyZone>> {
    into_verified_with(contents, options, &VerifyInputs::default())
}

/// As [`into_verified`], with what helps.
///
/// # Errors
/// As [`into_verified`].
pub fn into_verified_with(
    contents: Contents,
    options: &VerifyOptions,
    aids: &VerifyInputs<'_>,
) -> Result<Verified, Box<FaultyZone>> {
    let unsigned = contents.soa().filter(|_| !has_dnssec(&contents) && options.anchors.is_empty());
    let report = unsigned.map_or_else(
        || verify_with_inputs(&contents, options, aids),
        |soa| {
            let mut findings = Findings::default();
            zonemd::check(&contents, soa.serial, &mut findings);
            findings.into_report(None)
        },
    );
    if !report.is_sound() {
        return Err(Box::new(FaultyZone { contents, report }));
    }
    Ok(Verified { contents, report })
}

/// Verifies a zone and reports all its faults; of an unsigned zone with ZONEMD records its digest. In a zone with NSEC5
/// names are not matched to the records of their hashes.
#[must_use]
pub fn verify(contents: &Contents, options: &VerifyOptions) -> Report {
    verify_with(contents, options, &Nsec5Evidence::default())
}

/// Verifies a zone, one with NSEC5 by the `evidence` too, and reports all its faults.
#[must_use]
pub fn verify_with(contents: &Contents, options: &VerifyOptions, evidence: &Nsec5Evidence<'_>) -> Report {
    verify_with_inputs(contents, options, &VerifyInputs { evidence: *evidence, ..VerifyInputs::default() })
}

/// As [`verify`], with what helps. Stored proofs are verified all, whatever was verified before.
#[must_use]
pub fn verify_with_inputs(contents: &Contents, options: &VerifyOptions, aids: &VerifyInputs<'_>) -> Report {
    let whole;
    let options = match aids.predecessor {
        None => options,
        Some(_) => {
            whole = VerifyOptions { mode: Mode::Full, ..options.clone() };
            &whole
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
        // An unsigned zone may have a digest, which is verified then (RFC 8976 §4).
        let by_digest = contents.apex_rrset(Rtype::ZONEMD).is_some() && !has_dnssec(contents);
        if by_digest && options.anchors.is_empty() {
            return findings.into_report(None);
        }
        findings.fault(apex.view(), Some(Rtype::DNSKEY), FaultReason::NoDnskey);
        return findings.into_report(None);
    }
    let zone = Zone::new(contents, soa.negative_ttl(), aids.progress);
    let keys = ZoneKeys::read(contents, &mut findings);
    let known = aids.predecessor.filter(|earlier| earlier.has_keys_of(contents));
    findings.keys_changed = aids.predecessor.is_some() && known.is_none();
    let mut of_chain = Findings::default();
    // The chain has one thread while the signatures have the others, and then all.
    let (mut signing_keys, mechanism) = rayon::join(
        || signatures::check(&zone, &keys, options, known, &mut findings),
        || check_denial(&zone, &aids.evidence, options.mode, &mut of_chain),
    );
    signing_keys.sort_unstable();
    keys.check_anchors(contents, &signing_keys, &options.anchors, &mut findings);
    keys.check_entry_points(&signing_keys, &mut findings);
    cds::check(contents, &keys, &signing_keys, &mut findings);
    check_vrf_keys(contents, &mut findings);
    findings.append(of_chain);
    if let Some(mechanism) = mechanism.filter(|mechanism| mechanism.mapping() != Mapping::Vrf) {
        warn_of_aliases(contents, mechanism, &mut findings);
    }
    findings.into_report(mechanism)
}

/// A VRF key, which servers have, is no key that signs ("Making NSEC5 Practical for DNSSEC" §3.3), in a zone that will have
/// NSEC5 too.
fn check_vrf_keys(contents: &Contents, findings: &mut Findings) {
    let rdatas = |rtype| contents.apex_rrset(rtype).into_iter().flat_map(Rrset::rdatas);
    for key in rdatas(Rtype::NSEC5KEY).filter_map(Nsec5Key::from_rdata) {
        if let Some(dnskey) = key.find_signing_key(rdatas(Rtype::DNSKEY).chain(rdatas(Rtype::CDNSKEY))) {
            let reason = FaultReason::SigningVrfKey { tag: key.tag(), dnskey };
            findings.fault(contents.apex().view(), Some(Rtype::NSEC5KEY), reason);
        }
    }
}

/// Keys with a number of zones with NSEC5 have resolvers take the zone for insecure, which only NSEC5 is worth.
fn warn_of_aliases(contents: &Contents, mechanism: Mechanism, findings: &mut Findings) {
    let dnskeys = contents.apex_rrset(Rtype::DNSKEY);
    for key in alias_keys(dnskeys.into_iter().flat_map(Rrset::rdatas)) {
        let KeyInfo { tag, algorithm, .. } = key;
        findings.warn(VerifyWarning::AliasWithoutNsec5 { tag, algorithm, mechanism });
    }
}

/// Verifies a zone of which nothing is signed but its key set, given in `keys` as contents of the apex alone, or nothing at
/// all; and the digest that it has of itself.
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
        zone_keys.check_entry_points(&signing_keys, &mut findings);
    }
    findings.into_report(None)
}

/// Every zone has an NS RRset at its apex (RFC 2181 §6.1).
pub(crate) fn check_name_servers(contents: &Contents, findings: &mut Findings) {
    if contents.apex_rrset(Rtype::NS).is_none() {
        findings.fault(contents.apex().view(), Some(Rtype::NS), FaultReason::NoNs);
    }
}

/// The records of an RRset have one TTL (RFC 2181 §5.2). RRSIG records of one owner differ with the type that they cover; over
/// one type they have its TTL (RFC 4034 §3), which [`signatures`] compares with the lowest of theirs.
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

/// Whether anything shows that the zone is, or was, signed.
fn has_dnssec(contents: &Contents) -> bool {
    let apex = contents.apex().view();
    let shows =
        |owner: NameRef<'_>, rtype| rtype == Rtype::DNSKEY || is_generated_by_signing(rtype, owner, apex);
    contents.nodes().any(|node| node.rrsets().any(|rrset| shows(node.name(), rrset.rtype())))
}

/// Finds out which mechanism the zone has and checks its chain; records of the others are faults.
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
    check_stray_records(zone, findings);
    if has_nsec5 && (at_apex(Rtype::NSEC5KEY) || !(has_nsec || has_nsec3)) {
        report_mixed(zone, &[Rtype::NSEC, Rtype::NSEC3, Rtype::NSEC3PARAM], findings);
        return Some(nsec5::check::check(zone, evidence, mode, findings));
    }
    if has_nsec5 {
        report_mixed_nsec5(zone, findings);
    }
    if has_nsec3 && (has_parameters || !has_nsec) || has_parameters && !has_nsec {
        report_mixed(zone, &[Rtype::NSEC], findings);
        return Some(nsec3::check::check(zone, findings));
    }
    if has_nsec {
        report_mixed(zone, &[Rtype::NSEC3, Rtype::NSEC3PARAM], findings);
        nsec::check::check(zone, findings);
        return Some(Mechanism::Nsec);
    }
    findings.fault(zone.contents.apex().view(), None, FaultReason::NoDenial);
    None
}

/// Whether a record of an NSEC5 chain stands at the node.
fn has_nsec5_record(zone: &Zone<'_>, node: Node<'_>) -> bool {
    node.has(Rtype::NSEC5) && nsec5::is_chain_owner(node.name(), zone.contents.apex().view())
}

fn report_mixed(zone: &Zone<'_>, others: &[Rtype], findings: &mut Findings) {
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

/// Records of the chain have no place below a zone cut or a DNAME (RFC 4035 §2.3), NSEC3PARAM none but at the apex
/// (RFC 5155 §4); for others see [`cds::is_stray`].
fn check_stray_records(zone: &Zone<'_>, findings: &mut Findings) {
    for (node, standing) in zone.contents.nodes().zip(&zone.standings) {
        for rrset in node.rrsets() {
            let stray = match rrset.rtype() {
                Rtype::NSEC3PARAM => node.index() > 0,
                Rtype::NSEC => !standing.is_in_chain(),
                // Below a DNAME at the apex it has its place; below another one it is no hashed name at all.
                Rtype::NSEC3 => *standing == NameStatus::BelowCut,
                Rtype::NSEC5 => *standing == NameStatus::BelowCut && has_nsec5_record(zone, node),
                _ => cds::is_stray(node, *standing, rrset),
            };
            if stray {
                findings.fault(node.name(), Some(rrset.rtype()), FaultReason::UnexpectedRecords);
            }
        }
    }
}
