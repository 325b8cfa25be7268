//! Scans the previous zone: whether its chain can be updated, which signatures are too old for
//! reuse, and whether a sample of them verifies. For a compiled zone, the directory of the file
//! provides most of this.

use crate::denial::Mapping;
use crate::denial::Mechanism;
use crate::denial::nsec3::OPT_OUT;
use crate::rrsig::{Rrsig, push_signed_data};
use crate::sign::reuse::ReusableSignatures;
use crate::sign::signers::Signers;
use crate::sign::{SignError, SignOptions};
use nonesuch_crypto::{VerifyItem, verify_batch};
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_zone::compiled::{ChunkSummary, Uniformity, chain_pattern, signers_pattern};
use nonesuch_zone::{FoundNode, Node, Rrset, ZoneRef};
use std::ops::Range;

/// Number of signatures that are verified cryptographically.
const SAMPLE: usize = 32;

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
struct Expected<'a> {
    keys: &'a Signers<'a>,
    reuse: &'a ReusableSignatures<'a>,
    rtype: Rtype,
    /// The first octets of all NSEC3 RDATA; empty for NSEC.
    fields: Vec<u8>,
    /// TTL of the chain records.
    ttl: u32,
    /// The pattern in the directory of a compiled zone for RRsets that all keys sign. `None` if
    /// signatures of a key cannot be reused.
    signers: Option<Vec<u8>>,
    /// The pattern in the directory for the chain.
    chain: Vec<u8>,
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
pub(super) fn scan(
    previous: ZoneRef<'_>,
    keys: &Signers<'_>,
    reuse: &ReusableSignatures<'_>,
    options: &SignOptions<'_>,
) -> Result<Option<Scan>, SignError> {
    let (Some(rtype), Some(soa)) = (chain_type(options.mechanism), previous.soa()) else { return Ok(None) };
    let mut fields = Vec::new();
    if options.mechanism.mapping() == Mapping::Sha1 {
        options.nsec3.push_fields(if options.mechanism.is_opt_out() { OPT_OUT } else { 0 }, &mut fields);
    }
    let (ttl, mut chain) = (soa.negative_ttl(), Vec::new());
    chain_pattern(rtype, ttl, &fields, &mut chain);
    let expected = Expected { keys, reuse, rtype, fields, ttl, signers: signers(keys, reuse), chain };
    let mut scan = Scan { stale: Vec::new(), records: 0, signatures: 0, rrsets_signed: 0, chain_records: 0 };
    let is_mendable = match previous {
        ZoneRef::Contents(contents) => expected.look_through(previous, 0..contents.node_count(), &mut scan),
        ZoneRef::Stored(zone) => zone.chunks().all(|chunk| {
            expected.is_told(chunk, &mut scan)
                || expected.look_through(previous, chunk.node_range(), &mut scan)
        }),
    };
    previous.check_loaded()?;
    if !is_mendable {
        return Ok(None);
    }
    verify_sample(previous, keys, reuse)?;
    Ok(Some(scan))
}

/// The pattern of the keys that sign RRsets other than the key set.
fn signers(keys: &Signers<'_>, reuse: &ReusableSignatures<'_>) -> Option<Vec<u8>> {
    let numbers = keys.signers_at_apex(Rtype::A);
    let mut signers: Vec<(u8, u16)> = numbers
        .iter()
        .map(|number| {
            let key = &keys.keys().keys()[*number];
            reuse.public(*number).map(|_| (key.algorithm().0, key.tag()))
        })
        .collect::<Option<_>>()?;
    let mut pattern = Vec::new();
    signers_pattern(&mut signers, &mut pattern);
    Some(pattern)
}

impl Expected<'_> {
    /// Whether the directory shows that a chunk need not be scanned: no signature must be replaced,
    /// and the chain is as expected. Adds the numbers of the chunk to `scan` in this case.
    fn is_told(&self, chunk: ChunkSummary<'_>, scan: &mut Scan) -> bool {
        let signed = match chunk.signers() {
            Uniformity::Absent => true,
            Uniformity::Uniform(pattern) => {
                self.signers.as_deref() == Some(pattern)
                    && self.reuse.are_fresh_between(chunk.inceptions(), chunk.expirations())
            }
            Uniformity::Mixed => false,
        };
        let chained = match chunk.chain() {
            Uniformity::Absent => true,
            Uniformity::Uniform(pattern) => pattern == self.chain,
            Uniformity::Mixed => false,
        };
        // The keys that sign the key set at the apex may be others.
        let told = signed && chained && chunk.node_range().start > 0;
        if told {
            scan.records += chunk.records();
            scan.signatures += chunk.signatures();
            scan.rrsets_signed += chunk.signed_rrsets();
            scan.chain_records += chunk.chain_records();
        }
        told
    }

    /// Scans the names at `places`; `false` if they do not have the requested chain.
    fn look_through(&self, previous: ZoneRef<'_>, places: Range<usize>, scan: &mut Scan) -> bool {
        previous.nodes(places).all(|FoundNode { index: place, node }| {
            let is_stale = self.look_at(node, scan);
            scan.stale.extend(is_stale.filter(|is_stale| *is_stale).map(|_| place as u32));
            is_stale.is_some()
        })
    }

    /// Whether a signature of the node must be replaced; `None` if its chain record is of another
    /// chain.
    fn look_at(&self, node: Node<'_>, scan: &mut Scan) -> Option<bool> {
        let mut stale = false;
        let mut unsigned_link = false;
        for rrset in node.rrsets() {
            scan.records += rrset.count() as u64;
            match rrset.rtype() {
                Rtype::RRSIG => {
                    unsigned_link &= rrset.covered() != self.rtype;
                    scan.signatures += rrset.count() as u64;
                    scan.rrsets_signed += 1;
                    stale |= !self.are_fresh(node.name(), rrset);
                }
                rtype @ (Rtype::NSEC | Rtype::NSEC3) => {
                    let fits = rtype == self.rtype
                        && rrset.ttl() == self.ttl
                        && rrset.count() == 1
                        && rrset.rdatas().all(|rdata| rdata.starts_with(&self.fields));
                    if !fits {
                        return None;
                    }
                    scan.chain_records += 1;
                    unsigned_link = true;
                }
                _ => {}
            }
        }
        Some(stale | unsigned_link)
    }

    /// Whether the signatures are by exactly the keys that sign such an RRset, and none is too old.
    fn are_fresh(&self, owner: NameRef<'_>, signatures: Rrset<'_>) -> bool {
        let signers = self.keys.signers_at(owner, signatures.covered());
        let copied = || self.keys.copied(owner, signatures.covered());
        signatures.count() == signers.len() + copied().count()
            && copied().all(|copied| signatures.rdatas().any(|rdata| rdata == copied))
            && signers.iter().all(|key| {
                signatures.rdatas().any(|rdata| self.reuse.is_fresh_rdata(*key, rdata, signatures.ttl()))
            })
    }
}

/// Verifies some of the reusable signatures, evenly distributed over the zone.
pub(super) fn verify_sample(
    previous: ZoneRef<'_>,
    keys: &Signers<'_>,
    reuse: &ReusableSignatures<'_>,
) -> Result<(), SignError> {
    let count = previous.node_count();
    let step = if reuse.verifies_all() { 1 } else { count.div_ceil(SAMPLE) };
    let (mut messages, mut places) = (Vec::new(), Vec::new());
    for start in (0..count).step_by(step.max(1)) {
        let mut window = previous.nodes(start..(start + step).min(count));
        let is_signed =
            |found: &FoundNode<'_>| found.node.rrsets().any(|rrset| rrset.rtype() == Rtype::RRSIG);
        let Some(FoundNode { node, .. }) = window.find(is_signed) else { continue };
        for rrset in node.rrsets() {
            let Some(signatures) = node.signatures(rrset.rtype()) else { continue };
            for fields in signatures.rdatas().filter_map(Rrsig::parse) {
                let by = |key: &&usize| reuse.is_fresh(**key, &fields);
                let Some(&key) = keys.signers_at(node.name(), rrset.rtype()).iter().find(by) else {
                    continue;
                };
                let first = messages.len();
                push_signed_data(&fields, node.name(), rrset.rdatas(), &mut messages);
                places.push((node, fields, key, first..messages.len()));
            }
        }
    }
    let items = places.iter().filter_map(|(_, fields, key, message)| {
        let message = &messages[message.clone()];
        Some(VerifyItem { key: reuse.public(*key)?, message, signature: fields.signature })
    });
    let items: Vec<_> = items.collect();
    let mut outcome = Vec::new();
    verify_batch(&items, &mut outcome);
    match places.iter().zip(outcome).find(|(_, result)| result.is_err()) {
        None => Ok(()),
        Some(((node, fields, ..), _)) => Err(SignError::BadPrevious {
            owner: node.name().to_name(),
            rtype: fields.covered,
            tag: fields.tag,
        }),
    }
}
