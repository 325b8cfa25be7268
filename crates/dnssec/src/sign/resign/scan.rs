//! Scans the previous zone: checks that its chain can be updated, finds the signatures that must be
//! replaced, and verifies a sample of the others. For a compiled zone, the directory of the file
//! often makes reading the names unnecessary.

use crate::denial::Mechanism;
use crate::denial::NameHash;
use crate::denial::nsec3::OPT_OUT_FLAG;
use crate::rrsig::{Rrsig, push_signed_data};
use crate::sign::key_assignment::KeyAssignment;
use crate::sign::reuse::ReusableSignatures;
use crate::sign::{SignError, SignOptions};
use nonesuch_crypto::{VerifyItem, verify_batch};
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_zone::compiled::{ChunkSummary, Uniformity, chain_pattern, signers_pattern};
use nonesuch_zone::{FoundNode, Node, Rrset, ZoneRef};
use std::ops::Range;

/// Maximum number of names whose reusable signatures are verified as a sample.
const SAMPLED_NAMES: usize = 32;

/// The result of the scan.
pub(super) struct Scan {
    /// Nodes with a signature that must be replaced, in ascending order.
    pub(super) stale: Vec<u32>,
    /// Number of records of the previous zone.
    pub(super) records: u64,
    /// Number of signatures of the previous zone.
    pub(super) signatures: u64,
    /// Number of RRsets with signatures.
    pub(super) rrsets_signed: u64,
    /// Number of chain records.
    pub(super) chain_records: u64,
}

/// The expected properties of the previous zone.
struct ExpectedZone<'a> {
    assignment: &'a KeyAssignment<'a>,
    reuse: &'a ReusableSignatures<'a>,
    /// Type of the chain records.
    chain_type: Rtype,
    /// The first octets of the RDATA of all NSEC3 records, with the parameters; empty for NSEC.
    rdata_prefix: Vec<u8>,
    /// TTL of the chain records in seconds.
    chain_ttl: u32,
    /// The [`signers_pattern`] of RRsets other than the key set. `None` if signatures of a key
    /// cannot be reused.
    signers_pattern: Option<Vec<u8>>,
    /// The [`chain_pattern`].
    chain_pattern: Vec<u8>,
}

/// The type of the records of a chain that can be updated.
pub(super) fn chain_type(mechanism: Mechanism) -> Option<Rtype> {
    match mechanism {
        Mechanism::Nsec => Some(Rtype::NSEC),
        Mechanism::Nsec3 | Mechanism::Nsec3OptOut => Some(Rtype::NSEC3),
        // With other chains, the whole zone must be planned.
        _ => None,
    }
}

/// Scans the previous zone; `None` if it does not have the requested chain.
///
/// # Errors
/// If a part of the zone cannot be loaded, or a signature of the sample does not verify.
pub(super) fn scan(
    previous: ZoneRef<'_>,
    assignment: &KeyAssignment<'_>,
    reuse: &ReusableSignatures<'_>,
    options: &SignOptions<'_>,
) -> Result<Option<Scan>, SignError> {
    let (Some(chain_type), Some(soa)) = (chain_type(options.mechanism), previous.soa()) else {
        return Ok(None);
    };
    let mut rdata_prefix = Vec::new();
    if options.mechanism.name_hash() == NameHash::Sha1 {
        options
            .nsec3
            .push_fields(if options.mechanism.is_opt_out() { OPT_OUT_FLAG } else { 0 }, &mut rdata_prefix);
    }
    let (chain_ttl, mut chain_octets) = (soa.negative_ttl(), Vec::new());
    chain_pattern(chain_type, chain_ttl, &rdata_prefix, &mut chain_octets);
    let expected = ExpectedZone {
        assignment,
        reuse,
        chain_type,
        rdata_prefix,
        chain_ttl,
        signers_pattern: data_signers_pattern(assignment, reuse),
        chain_pattern: chain_octets,
    };
    let mut scan = Scan { stale: Vec::new(), records: 0, signatures: 0, rrsets_signed: 0, chain_records: 0 };
    let has_requested_chain = match previous {
        ZoneRef::Contents(contents) => expected.scan_nodes(previous, 0..contents.node_count(), &mut scan),
        ZoneRef::Stored(zone) => zone.chunks().all(|chunk| {
            expected.accepts_summary(chunk, &mut scan)
                || expected.scan_nodes(previous, chunk.node_range(), &mut scan)
        }),
    };
    previous.check_loaded()?;
    if !has_requested_chain {
        return Ok(None);
    }
    verify_sample(previous, assignment, reuse)?;
    Ok(Some(scan))
}

/// The [`signers_pattern`] of the keys that sign RRsets other than the key set. `None` if
/// signatures of one of them cannot be reused.
fn data_signers_pattern(assignment: &KeyAssignment<'_>, reuse: &ReusableSignatures<'_>) -> Option<Vec<u8>> {
    let indexes = assignment.signers_at_apex(Rtype::A);
    let mut signers: Vec<(u8, u16)> = indexes
        .iter()
        .map(|index| {
            let key = &assignment.key_set().keys()[*index];
            reuse.public_key(*index).map(|_| (key.algorithm().0, key.tag()))
        })
        .collect::<Option<_>>()?;
    let mut pattern = Vec::new();
    signers_pattern(&mut signers, &mut pattern);
    Some(pattern)
}

impl ExpectedZone<'_> {
    /// Whether the directory shows that the names of a chunk need not be read: no signature must be
    /// replaced, and the chain is as expected. If so, adds the numbers of the chunk to `scan`.
    fn accepts_summary(&self, chunk: ChunkSummary<'_>, scan: &mut Scan) -> bool {
        let are_signatures_reusable = match chunk.signers() {
            Uniformity::Absent => true,
            Uniformity::Uniform(pattern) => {
                self.signers_pattern.as_deref() == Some(pattern)
                    && self.reuse.are_fresh_between(chunk.inceptions(), chunk.expirations())
            }
            Uniformity::Mixed => false,
        };
        let is_chain_expected = match chunk.chain() {
            Uniformity::Absent => true,
            Uniformity::Uniform(pattern) => pattern == self.chain_pattern,
            Uniformity::Mixed => false,
        };
        // Other keys may sign the key set at the apex, so the first chunk is always read.
        let is_accepted = are_signatures_reusable && is_chain_expected && chunk.node_range().start > 0;
        if is_accepted {
            scan.records += chunk.records();
            scan.signatures += chunk.signatures();
            scan.rrsets_signed += chunk.signed_rrsets();
            scan.chain_records += chunk.chain_records();
        }
        is_accepted
    }

    /// Scans the nodes with the indexes `places`; `false` if they do not have the requested chain.
    fn scan_nodes(&self, previous: ZoneRef<'_>, places: Range<usize>, scan: &mut Scan) -> bool {
        previous.nodes(places).all(|FoundNode { index: place, node }| {
            let is_stale = self.scan_node(node, scan);
            scan.stale.extend(is_stale.filter(|is_stale| *is_stale).map(|_| place as u32));
            is_stale.is_some()
        })
    }

    /// Whether a signature of the node must be replaced or is missing at its chain record; `None`
    /// if the chain record is not of the requested chain.
    fn scan_node(&self, node: Node<'_>, scan: &mut Scan) -> Option<bool> {
        let mut is_stale = false;
        let mut is_chain_record_unsigned = false;
        for rrset in node.rrsets() {
            scan.records += rrset.count() as u64;
            match rrset.rtype() {
                Rtype::RRSIG => {
                    is_chain_record_unsigned &= rrset.covered() != self.chain_type;
                    scan.signatures += rrset.count() as u64;
                    scan.rrsets_signed += 1;
                    is_stale |= !self.are_fresh(node.name(), rrset);
                }
                rtype @ (Rtype::NSEC | Rtype::NSEC3) => {
                    let is_expected = rtype == self.chain_type
                        && rrset.ttl() == self.chain_ttl
                        && rrset.count() == 1
                        && rrset.rdatas().all(|rdata| rdata.starts_with(&self.rdata_prefix));
                    if !is_expected {
                        return None;
                    }
                    scan.chain_records += 1;
                    is_chain_record_unsigned = true;
                }
                _ => {}
            }
        }
        Some(is_stale | is_chain_record_unsigned)
    }

    /// Whether the signatures are by exactly the keys that sign such an RRset, and none is too old.
    fn are_fresh(&self, owner: NameRef<'_>, signatures: Rrset<'_>) -> bool {
        let signers = self.assignment.signers_at(owner, signatures.covered());
        let copied = || self.assignment.copied_signatures(owner, signatures.covered());
        signatures.count() == signers.len() + copied().count()
            && copied().all(|copied| signatures.rdatas().any(|rdata| rdata == copied))
            && signers.iter().all(|key| {
                signatures.rdatas().any(|rdata| self.reuse.is_fresh_rdata(*key, rdata, signatures.ttl()))
            })
    }
}

/// Verifies the reusable signatures of at most [`SAMPLED_NAMES`] names, which are evenly
/// distributed over the zone, or of all names if [`ReusableSignatures::verifies_all`].
///
/// # Errors
/// [`SignError::BadPrevious`] if one of them does not verify.
pub(super) fn verify_sample(
    previous: ZoneRef<'_>,
    assignment: &KeyAssignment<'_>,
    reuse: &ReusableSignatures<'_>,
) -> Result<(), SignError> {
    let count = previous.node_count();
    let step = if reuse.verifies_all() { 1 } else { count.div_ceil(SAMPLED_NAMES) };
    let (mut messages, mut checks) = (Vec::new(), Vec::new());
    for start in (0..count).step_by(step.max(1)) {
        let mut window = previous.nodes(start..(start + step).min(count));
        let is_signed =
            |found: &FoundNode<'_>| found.node.rrsets().any(|rrset| rrset.rtype() == Rtype::RRSIG);
        let Some(FoundNode { node, .. }) = window.find(is_signed) else { continue };
        for rrset in node.rrsets() {
            let Some(signatures) = node.signatures(rrset.rtype()) else { continue };
            for fields in signatures.rdatas().filter_map(Rrsig::parse) {
                let is_by = |key: &&usize| reuse.is_fresh(**key, &fields);
                let Some(&key) = assignment.signers_at(node.name(), rrset.rtype()).iter().find(is_by) else {
                    continue;
                };
                let first = messages.len();
                push_signed_data(&fields, node.name(), rrset.rdatas(), &mut messages);
                checks.push((node, fields, key, first..messages.len()));
            }
        }
    }
    let items = checks.iter().filter_map(|(_, fields, key, message)| {
        let message = &messages[message.clone()];
        Some(VerifyItem { key: reuse.public_key(*key)?, message, signature: fields.signature })
    });
    let items: Vec<_> = items.collect();
    let mut outcome = Vec::new();
    verify_batch(&items, &mut outcome);
    match checks.iter().zip(outcome).find(|(_, result)| result.is_err()) {
        None => Ok(()),
        Some(((node, fields, ..), _)) => Err(SignError::BadPrevious {
            owner: node.name().to_name(),
            rtype: fields.covered,
            tag: fields.tag,
        }),
    }
}
