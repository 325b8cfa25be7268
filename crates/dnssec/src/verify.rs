//! Verifying a whole zone: every signature, every bit map, the chain, and the keys against trust anchors
//! (RFC 4035 §2 and §5, RFC 5155 §7.1).
//!
//! All faults are reported, in canonical order of owners; two runs give the same report.

mod child;
mod keys;
mod report;
mod signatures;

pub use report::{Fault, Reason, Report, VerifyWarning};

use crate::denial::{Mechanism, nsec, nsec3};
use keys::ZoneKeys;
use nonesuch_proto::Rtype;
use nonesuch_zone::{Contents, Node, Standing, standings};
pub(crate) use report::Findings;

/// What the DNSKEY RRset is to be matched with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Anchor {
    /// RDATA of a DS record.
    Ds(Vec<u8>),
    /// RDATA of a DNSKEY record.
    Dnskey(Vec<u8>),
}

/// How much is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Mode {
    /// Everything.
    #[default]
    Full,
    /// Everything but the mathematics of signatures: that they are there and their fields fit, bit maps and chain.
    Structural,
}

/// What is verified, and against what.
#[derive(Clone, Debug, Default)]
pub struct VerifyOptions {
    /// The time that signatures must be valid at, in seconds since 1970 modulo 2^32; times are not checked where
    /// `None`.
    pub now: Option<u32>,
    /// Trust anchors or DS records of which one at least must match a key that signs the DNSKEY RRset; any key will
    /// do where there are none.
    pub anchors: Vec<Anchor>,
    /// How much is verified.
    pub mode: Mode,
}

/// A zone that was verified without fault; made by [`into_verified`] alone.
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

/// Verifies `contents` and keeps them where they have no fault. A zone with nothing of DNSSEC in it passes, unless
/// trust anchors say that it is signed: it is served as what it is.
///
/// # Errors
/// The contents and the report, where it has faults.
pub fn into_verified(
    contents: Contents,
    options: &VerifyOptions,
) -> Result<Verified, Box<(Contents, Report)>> {
    let is_unsigned = contents.soa().is_some() && !has_dnssec(&contents) && options.anchors.is_empty();
    let report = if is_unsigned { Report::default() } else { verify(&contents, options) };
    if report.is_sound() { Ok(Verified { contents, report }) } else { Err(Box::new((contents, report))) }
}

/// What the checks need of a zone.
pub(crate) struct Zone<'z> {
    pub(crate) contents: &'z Contents,
    pub(crate) standings: Vec<Standing>,
    /// TTL that RFC 9077 wants of the chain's records.
    pub(crate) chain_ttl: u32,
}

impl<'z> Zone<'z> {
    /// Nodes that have records of their own: neither the chain's nor signatures. Those of the zone are its chain.
    pub(crate) fn chained(&self) -> Vec<u32> {
        let nodes = self.contents.nodes().zip(&self.standings);
        let chained = nodes.filter(|(node, standing)| standing.is_in_zone() && owns_data(*node));
        chained.map(|(node, _)| node.index() as u32).collect()
    }

    pub(crate) fn standing(&self, node: Node<'z>) -> Standing {
        self.standings[node.index()]
    }
}

/// Whether a node has records other than signatures and those of the chain.
pub(crate) fn owns_data(node: Node<'_>) -> bool {
    node.rrsets().any(|rrset| !matches!(rrset.rtype(), Rtype::RRSIG | Rtype::NSEC | Rtype::NSEC3))
}

/// Verifies a zone and reports all its faults.
#[must_use]
pub fn verify(contents: &Contents, options: &VerifyOptions) -> Report {
    let mut findings = Findings::default();
    let apex = contents.apex();
    let Some(soa) = contents.soa() else {
        findings.fault(apex.view(), Some(Rtype::SOA), Reason::NoSoa);
        return findings.into_report(None);
    };
    if contents.apex_rrset(Rtype::DNSKEY).is_none() {
        findings.fault(apex.view(), Some(Rtype::DNSKEY), Reason::NoDnskey);
        return findings.into_report(None);
    }
    let zone = Zone { contents, standings: standings(contents), chain_ttl: soa.negative_ttl() };
    let keys = ZoneKeys::read(contents, &mut findings);
    let mut signing_keys = signatures::check(&zone, &keys, options, &mut findings);
    signing_keys.sort_unstable();
    keys.check_anchors(contents, &signing_keys, &options.anchors, &mut findings);
    child::check(&zone, &keys, &signing_keys, &mut findings);
    let mechanism = check_denial(&zone, &mut findings);
    findings.into_report(mechanism)
}

/// Whether anything shows that the zone is, or was, signed.
fn has_dnssec(contents: &Contents) -> bool {
    let shows = |rtype: Rtype| rtype == Rtype::DNSKEY || rtype.is_made_by_signing();
    contents.nodes().any(|node| node.rrsets().any(|rrset| shows(rrset.rtype())))
}

/// Finds out which mechanism the zone has and checks its chain; records of the other one are faults.
fn check_denial(zone: &Zone<'_>, findings: &mut Findings) -> Option<Mechanism> {
    let has = |rtype| zone.contents.nodes().any(|node| node.has(rtype));
    let (has_nsec, has_nsec3) = (has(Rtype::NSEC), has(Rtype::NSEC3));
    let has_parameters = zone.contents.apex_rrset(Rtype::NSEC3PARAM).is_some();
    check_stray_records(zone, findings);
    if has_nsec3 && (has_parameters || !has_nsec) || has_parameters && !has_nsec {
        report_mixed(zone, &[Rtype::NSEC], findings);
        return Some(nsec3::check::check(zone, findings));
    }
    if has_nsec {
        report_mixed(zone, &[Rtype::NSEC3, Rtype::NSEC3PARAM], findings);
        nsec::check::check(zone, findings);
        return Some(Mechanism::Nsec);
    }
    findings.fault(zone.contents.apex().view(), None, Reason::NoDenial);
    None
}

fn report_mixed(zone: &Zone<'_>, others: &[Rtype], findings: &mut Findings) {
    for node in zone.contents.nodes() {
        for &rtype in others.iter().filter(|rtype| node.has(**rtype)) {
            findings.fault(node.name(), Some(rtype), Reason::MixedDenial);
        }
    }
}

/// Records of the chain have no place below a zone cut or a DNAME (RFC 4035 §2.3), NSEC3PARAM none but at the apex
/// (RFC 5155 §4); for others see [`child::is_stray`].
fn check_stray_records(zone: &Zone<'_>, findings: &mut Findings) {
    for (node, standing) in zone.contents.nodes().zip(&zone.standings) {
        for rrset in node.rrsets() {
            let stray = match rrset.rtype() {
                Rtype::NSEC3PARAM => node.index() > 0,
                Rtype::NSEC => !standing.is_in_zone(),
                // Below a DNAME at the apex it has its place; below another one it is no hashed name at all.
                Rtype::NSEC3 => *standing == Standing::BelowCut,
                _ => child::is_stray(node, *standing, rrset),
            };
            if stray {
                findings.fault(node.name(), Some(rrset.rtype()), Reason::UnexpectedRecords);
            }
        }
    }
}

/// Compares the bit map of a chain's record at `owner` with the types that it should show.
pub(crate) fn check_bitmap(
    node: Node<'_>,
    rtype: Rtype,
    expected: &[Rtype],
    map: &[u8],
    findings: &mut Findings,
) {
    if !nonesuch_proto::bitmap::is_valid(map) {
        findings.fault(node.name(), Some(rtype), Reason::MalformedRecord);
        return;
    }
    let has = |found: Rtype| nonesuch_proto::bitmap::contains(map, found);
    for &missing in expected.iter().filter(|expected| !has(**expected)) {
        findings.fault(node.name(), Some(rtype), Reason::BitmapMissing(missing));
    }
    for extra in nonesuch_proto::bitmap::types(map).filter(|found| expected.binary_search(found).is_err()) {
        findings.fault(node.name(), Some(rtype), Reason::BitmapExtra(extra));
    }
}
