//! Signs a chunk of names: first builds the signed data of all RRsets, then generates all
//! signatures of each key, then writes the records. Signatures of the previous zone are reused
//! where possible.

use super::key_assignment::KeyAssignment;
use super::plan::{Plan, PlanItem, PlannedRecords, PlannedRrset, VisitBuffers};
use super::reuse::{Cursor, ReusableSignatures};
use super::{SignError, SignOptions, SignStatistics};
use crate::keys::KeyPair;
use crate::rrsig::{RRSIG_FIXED_OCTETS, Rrsig, push_signed_data};
use nonesuch_crypto::{VerifyItem, sign_batch, verify_batch};
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_zone::{Node, NodesBuilder, Rrset};
use std::ops::Range;

/// The position of the ZONEMD RRset and its signatures in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ZonemdPlacement {
    /// At the apex. The signer writes a record of the same size first, and overwrites it with the
    /// digest at the end.
    Apex,
    /// After all other records.
    Last,
}

/// Buffers of one thread, which it reuses for each chunk.
#[derive(Default)]
pub(super) struct Scratch {
    visit: VisitBuffers,
    owner: Vec<u8>,
    /// The messages to sign and to verify: the signed data of RRsets, one after the other.
    messages: Vec<u8>,
    /// For each key, the start and end in `messages` of each message that it signs.
    ranges: Vec<Vec<(usize, usize)>>,
    /// For each key, its signatures in the order of its messages, all with the same length.
    signatures: Vec<Vec<u8>>,
    /// The sources of the RRSIGs, in the order of their output.
    sources: Vec<SignatureSource>,
    /// RDATA of reused and copied RRSIGs, one after the other.
    reused: Vec<u8>,
    /// The reused signatures to verify; in each chunk, at least one of each key.
    checks: Vec<SignatureCheck>,
    /// RDATA of the RRSIGs of one RRset.
    rdatas: Vec<Vec<u8>>,
}

/// The source of an RRSIG.
enum SignatureSource {
    /// Reused from the previous zone, or copied from an absent key: the range of its RDATA in
    /// `Scratch::reused`.
    Reused(Range<usize>),
    /// Generated: the index of the message among those of the key in `Scratch::ranges`.
    Generated(usize),
}

/// A reused signature to verify. The ranges are in `Scratch::messages` and `Scratch::reused`.
struct SignatureCheck {
    item: PlanItem,
    rtype: Rtype,
    /// Index in the key set.
    key: usize,
    message: Range<usize>,
    signature: Range<usize>,
}

/// Signs chunks of the plan. All threads share it.
pub(super) struct ChunkSigner<'a> {
    plan: &'a Plan<'a>,
    assignment: &'a KeyAssignment<'a>,
    options: &'a SignOptions<'a>,
    reuse: Option<ReusableSignatures<'a>>,
    /// Key tag of each key of the key set.
    tags: Vec<u16>,
    /// Where the ZONEMD RRset of the apex is written. It is generated and signed last.
    zonemd: ZonemdPlacement,
}

impl<'a> ChunkSigner<'a> {
    pub(super) fn new(
        plan: &'a Plan<'a>,
        assignment: &'a KeyAssignment<'a>,
        options: &'a SignOptions<'a>,
        zonemd: ZonemdPlacement,
    ) -> Self {
        let tags = assignment.key_set().keys().iter().map(|key| key.tag()).collect();
        let reuse = ReusableSignatures::new(assignment.key_set(), options);
        Self { plan, assignment, options, reuse, tags, zonemd }
    }

    fn key(&self, index: usize) -> &'a KeyPair {
        &self.assignment.key_set().keys()[index]
    }

    /// Signs `items` and appends them with their records to `run`.
    pub(super) fn sign_chunk(
        &self,
        items: &[PlanItem],
        scratch: &mut Scratch,
        builder: &mut NodesBuilder,
    ) -> Result<SignStatistics, SignError> {
        scratch.reset(self.tags.len());
        let mut cursor = self.cursor(items, scratch);
        for &item in items {
            self.collect_name(item, cursor.as_mut(), scratch);
        }
        self.verify_reused(scratch)?;
        self.generate_signatures(scratch)?;
        Ok(self.write(items, scratch, builder))
    }

    fn cursor(&self, items: &[PlanItem], scratch: &mut Scratch) -> Option<Cursor<'a>> {
        let first = self.plan.owner(*items.first()?, &mut scratch.owner);
        self.reuse.as_ref().map(|reuse| reuse.cursor_from(first))
    }

    /// Finds the reusable signatures at one name, and builds the messages for new signatures.
    fn collect_name(&self, item: PlanItem, cursor: Option<&mut Cursor<'a>>, scratch: &mut Scratch) {
        let previous = cursor.and_then(|cursor| cursor.seek(self.plan.owner(item, &mut scratch.owner)));
        let mut buffers = std::mem::take(&mut scratch.visit);
        self.plan.visit(item, &mut buffers, |owner, planned| {
            if planned.signed && !is_signed_last(item, planned.rtype) {
                self.collect_rrset(item, owner, planned, previous, scratch);
            }
        });
        scratch.visit = buffers;
    }

    /// Finds the reusable signatures over one RRset, and builds the messages for new signatures.
    /// `previous` is the node of `owner` in the previous zone.
    fn collect_rrset(
        &self,
        item: PlanItem,
        owner: NameRef<'_>,
        planned: PlannedRrset<'_>,
        previous: Option<Node<'a>>,
        scratch: &mut Scratch,
    ) {
        let old_signatures =
            self.reuse.as_ref().and_then(|reuse| Some((reuse, reuse.signatures(previous, &planned)?)));
        let expiration = self.expiration(owner, planned.rtype);
        for &key in self.assignment.signers_at(owner, planned.rtype) {
            let reusable =
                old_signatures.and_then(|(reuse, old)| reuse.find_reusable(old, owner, &planned, key));
            let Some((octets, fields)) = reusable else {
                let start = scratch.messages.len();
                push_message(
                    &self.rrsig_fields(owner, planned, key, expiration),
                    owner,
                    planned,
                    &mut scratch.messages,
                );
                let ranges = &mut scratch.ranges[key];
                scratch.sources.push(SignatureSource::Generated(ranges.len()));
                ranges.push((start, scratch.messages.len()));
                continue;
            };
            let start = scratch.reused.len();
            scratch.reused.extend_from_slice(octets);
            let end = scratch.reused.len();
            scratch.sources.push(SignatureSource::Reused(start..end));
            // The first reused signature of each key in a chunk is verified, as a sample of the
            // previous zone.
            let is_sample = !scratch.checks.iter().any(|check| check.key == key);
            if is_sample || self.reuse.as_ref().is_some_and(ReusableSignatures::verifies_all) {
                let first = scratch.messages.len();
                push_message(&fields, owner, planned, &mut scratch.messages);
                let message = first..scratch.messages.len();
                let signature = start + fields.fields_len()..end;
                scratch.checks.push(SignatureCheck { item, rtype: planned.rtype, key, message, signature });
            }
        }
        for octets in self.assignment.copied_signatures(owner, planned.rtype) {
            let start = scratch.reused.len();
            scratch.reused.extend_from_slice(octets);
            scratch.sources.push(SignatureSource::Reused(start..scratch.reused.len()));
        }
    }

    /// The fields of an RRSIG record by the key with the index `key`, without the signature.
    fn rrsig_fields(
        &self,
        owner: NameRef<'_>,
        planned: PlannedRrset<'_>,
        key: usize,
        expiration: u32,
    ) -> Rrsig<'_> {
        Rrsig {
            covered: planned.rtype,
            algorithm: self.key(key).algorithm(),
            labels: owner.rrsig_labels(),
            original_ttl: planned.ttl,
            expiration,
            inception: self.options.inception,
            tag: self.tags[key],
            signer: self.plan.zone(),
            signature: &[],
        }
    }

    /// Verifies the reused signatures in `scratch.checks`. If one does not verify, signing fails:
    /// the previous zone may have further faults, which a sample does not detect.
    fn verify_reused(&self, scratch: &mut Scratch) -> Result<(), SignError> {
        let Some(reuse) = &self.reuse else { return Ok(()) };
        let Scratch { checks, messages, reused, owner, .. } = scratch;
        let items: Vec<VerifyItem<'_>> = checks
            .iter()
            .filter_map(|check| {
                let (message, signature) =
                    (&messages[check.message.clone()], &reused[check.signature.clone()]);
                Some(VerifyItem { key: reuse.public_key(check.key)?, message, signature })
            })
            .collect();
        let mut outcome = Vec::new();
        verify_batch(&items, &mut outcome);
        match checks.iter().zip(outcome).find(|(_, result)| result.is_err()) {
            None => Ok(()),
            Some((check, _)) => Err(SignError::BadPrevious {
                owner: self.plan.owner(check.item, owner).to_name(),
                rtype: check.rtype,
                tag: self.tags[check.key],
            }),
        }
    }

    /// Generates the signatures for all messages in `scratch.ranges`, as one batch for each key.
    fn generate_signatures(&self, scratch: &mut Scratch) -> Result<(), SignError> {
        let Scratch { messages, ranges, signatures, .. } = scratch;
        for ((key, ranges), signatures) in self.assignment.key_set().keys().iter().zip(ranges).zip(signatures)
        {
            let batch: Vec<&[u8]> = ranges.iter().map(|(start, end)| &messages[*start..*end]).collect();
            sign_batch(key.private(), &batch, signatures)?;
        }
        Ok(())
    }

    /// Appends `items` with their records and signatures to `builder`.
    fn write(&self, items: &[PlanItem], scratch: &mut Scratch, builder: &mut NodesBuilder) -> SignStatistics {
        let mut statistics = SignStatistics::default();
        let mut owner = std::mem::take(&mut scratch.owner);
        let mut buffers = std::mem::take(&mut scratch.visit);
        let mut next_source = 0;
        buffers.rewind();
        for &item in items {
            builder.begin_node(self.plan.owner(item, &mut owner));
            self.plan.visit(item, &mut buffers, |owner, planned| {
                if is_signed_last(item, planned.rtype) {
                    return self.reserve_apex_rrset(builder, planned);
                }
                copy_records(builder, planned);
                statistics.records += planned.records.count();
                statistics.chain_records += u64::from(planned.is_chain_record());
                if planned.signed {
                    builder.begin_rrset(Rtype::RRSIG, planned.rtype, planned.ttl);
                    let signers = self.assignment.signers_at(owner, planned.rtype);
                    let copied = self.assignment.copied_signatures(owner, planned.rtype).count();
                    self.write_signatures(
                        signers,
                        copied,
                        &mut next_source,
                        scratch,
                        builder,
                        &mut statistics,
                    );
                    statistics.rrsets_signed += 1;
                }
            });
        }
        (scratch.owner, scratch.visit) = (owner, buffers);
        statistics
    }

    /// Reserves the space for the ZONEMD RRset and its signatures, if it is written at the apex.
    fn reserve_apex_rrset(&self, builder: &mut NodesBuilder, planned: PlannedRrset<'_>) {
        if self.zonemd == ZonemdPlacement::Last {
            return;
        }
        copy_records(builder, planned);
        builder.begin_rrset(Rtype::RRSIG, planned.rtype, planned.ttl);
        let fields_len = RRSIG_FIXED_OCTETS + self.plan.zone().len();
        for &key in self.assignment.signers_at_apex(planned.rtype) {
            let length = fields_len + self.key(key).private().signature_octets();
            builder.push_record(|out| out.resize(out.len() + length, 0));
        }
    }

    /// The apex with only the ZONEMD RRset `rrset` and its signatures. They fill the reserved space
    /// or are the last records, as [`ZonemdPlacement`] states.
    pub(super) fn sign_apex_rrset(
        &self,
        rrset: Rrset<'_>,
    ) -> Result<(NodesBuilder, SignStatistics), SignError> {
        let (owner, rtype) = (self.plan.zone(), rrset.rtype());
        let planned =
            PlannedRrset { rtype, ttl: rrset.ttl(), records: PlannedRecords::Stored(rrset), signed: true };
        let mut builder = NodesBuilder::default();
        builder.begin_node(owner);
        copy_records(&mut builder, planned);
        builder.begin_rrset(Rtype::RRSIG, rtype, planned.ttl);
        let mut statistics = SignStatistics {
            rrsets_signed: 1,
            records: planned.records.count(),
            ..SignStatistics::default()
        };
        let expiration = self.expiration(owner, rtype);
        let mut rdatas = Vec::new();
        for &key in self.assignment.signers_at_apex(rtype) {
            let (mut message, mut signature) = (Vec::new(), Vec::new());
            push_message(&self.rrsig_fields(owner, planned, key, expiration), owner, planned, &mut message);
            sign_batch(self.key(key).private(), &[&message], &mut signature)?;
            message.truncate(RRSIG_FIXED_OCTETS + owner.len());
            message.append(&mut signature);
            rdatas.push(message);
            statistics.signatures += 1;
            statistics.records += 1;
        }
        rdatas.sort_unstable();
        for rdata in rdatas {
            builder.push_record(|out| out.extend_from_slice(&rdata));
        }
        Ok((builder, statistics))
    }

    /// Writes the RRSIGs of one RRset in canonical order: one by each of `signers` (indexes in the
    /// key set), then `copied_count` copied ones. `next_source` is the index of the first source of
    /// the RRset in `scratch.sources`, and is advanced to that of the next RRset.
    fn write_signatures(
        &self,
        signers: &[usize],
        copied_count: usize,
        next_source: &mut usize,
        scratch: &mut Scratch,
        builder: &mut NodesBuilder,
        statistics: &mut SignStatistics,
    ) {
        let Scratch { messages, ranges, signatures, sources, reused, rdatas, .. } = scratch;
        // RRSIG RDATA and the signed data begin with the same fields.
        let fields_len = RRSIG_FIXED_OCTETS + self.plan.zone().len();
        rdatas.resize_with(signers.len() + copied_count, Vec::new);
        for (index, rdata) in rdatas.iter_mut().enumerate() {
            rdata.clear();
            match (&sources[*next_source], signers.get(index)) {
                (SignatureSource::Reused(range), _) => {
                    rdata.extend_from_slice(&reused[range.clone()]);
                    statistics.signatures_kept += 1;
                }
                // The source of a copied signature is never `Generated`.
                (SignatureSource::Generated(_), None) => {}
                (&SignatureSource::Generated(message), Some(&key)) => {
                    let length = self.key(key).private().signature_octets();
                    let start = ranges[key][message].0;
                    rdata.extend_from_slice(&messages[start..start + fields_len]);
                    rdata.extend_from_slice(&signatures[key][message * length..][..length]);
                    statistics.signatures += 1;
                }
            }
            *next_source += 1;
            statistics.records += 1;
        }
        if rdatas.len() > 1 {
            rdatas.sort_unstable();
        }
        for rdata in rdatas.iter() {
            builder.push_record(|out| out.extend_from_slice(rdata));
        }
    }

    /// The expiration minus the random reduction of the RRset, which is the same for all its
    /// signatures.
    fn expiration(&self, owner: NameRef<'_>, rtype: Rtype) -> u32 {
        if self.options.jitter == 0 {
            return self.options.expiration;
        }
        // The time is part of the seed. Otherwise each run would reduce the expiration of an RRset
        // by the same number of seconds, and RRsets that are signed together once would be signed
        // together in all later runs.
        let seed = self.options.seed ^ u64::from(self.options.now) << 32;
        let reduction = hash_rrset(seed, owner, rtype) % (u64::from(self.options.jitter) + 1);
        self.options.expiration.wrapping_sub(reduction as u32)
    }
}

/// Whether the RRset contains the digest of the zone, which is known only after all other records.
fn is_signed_last(item: PlanItem, rtype: Rtype) -> bool {
    rtype == Rtype::ZONEMD && item.is_apex()
}

impl Scratch {
    /// Clears the buffers for a chunk that `keys` keys sign.
    fn reset(&mut self, keys: usize) {
        self.visit.clear();
        self.messages.clear();
        self.ranges.resize_with(keys, Vec::new);
        self.signatures.resize_with(keys, Vec::new);
        self.ranges.iter_mut().for_each(Vec::clear);
        self.signatures.iter_mut().for_each(Vec::clear);
        self.sources.clear();
        self.reused.clear();
        self.checks.clear();
    }
}

/// Appends the signed data of an RRset.
fn push_message(fields: &Rrsig<'_>, owner: NameRef<'_>, planned: PlannedRrset<'_>, out: &mut Vec<u8>) {
    match planned.records {
        PlannedRecords::Stored(rrset) => push_signed_data(fields, owner, rrset.rdatas(), out),
        PlannedRecords::Generated(rdata) => push_signed_data(fields, owner, std::iter::once(rdata), out),
    }
}

/// Appends the records of an RRset without its signatures.
fn copy_records(builder: &mut NodesBuilder, planned: PlannedRrset<'_>) {
    match planned.records {
        // All records get the TTL of the RRset, even if the zone file has different TTLs
        // (RFC 2181 §5.2).
        PlannedRecords::Stored(rrset) => {
            builder.begin_rrset(rrset.rtype(), rrset.covered(), rrset.ttl());
            rrset.rdatas().for_each(|rdata| builder.push_record(|out| out.extend_from_slice(rdata)));
        }
        PlannedRecords::Generated(rdata) => {
            builder.begin_rrset(planned.rtype, planned.rtype, planned.ttl);
            builder.push_record(|out| out.extend_from_slice(rdata));
        }
    }
}

/// Hash of owner and type: FNV-1a with the finalizer of SplitMix64. It is evenly distributed, and
/// equal on all platforms.
fn hash_rrset(seed: u64, owner: NameRef<'_>, rtype: Rtype) -> u64 {
    let step = |hash: u64, octet: u8| (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
    let hash = owner.wire().iter().map(u8::to_ascii_lowercase).fold(seed ^ 0xcbf2_9ce4_8422_2325, step);
    let hash = rtype.0.to_be_bytes().into_iter().fold(hash, step);
    let hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}
