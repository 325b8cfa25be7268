//! Signs a chunk of names: first builds the signed data of all RRsets, then generates all
//! signatures of each key, then writes the records. Signatures of the previous zone are reused
//! where possible.

use super::plan::{Item, Plan, PlannedRecords, PlannedRrset, VisitBuffers};
use super::reuse::{Cursor, ReusableSignatures};
use super::signers::Signers;
use super::{SignError, SignOptions, SignStatistics};
use crate::keys::KeyPair;
use crate::rrsig::{Rrsig, push_signed_data};
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

/// Octets of RRSIG RDATA before the signer's name.
const RRSIG_FIELDS: usize = 18;

/// Buffers that are reused for each chunk.
#[derive(Default)]
pub(super) struct Scratch {
    buffers: VisitBuffers,
    owner: Vec<u8>,
    /// The signed data of all messages, one after the other.
    messages: Vec<u8>,
    /// For each key, the range of each of its messages in `messages`.
    ranges: Vec<Vec<(usize, usize)>>,
    /// For each key, its signatures in the order of its messages, all with the same length.
    signatures: Vec<Vec<u8>>,
    /// The sources of the RRSIGs, in the order of their output.
    sources: Vec<Source>,
    /// RDATA of reused and copied RRSIGs, one after the other.
    reused: Vec<u8>,
    /// The reused signatures to verify.
    checks: Vec<Check>,
    /// RDATA of the RRSIGs of one RRset.
    rdatas: Vec<Vec<u8>>,
}

/// The source of an RRSIG.
enum Source {
    /// Reused from the previous zone, or copied: its range in `Scratch::reused`.
    Reused(Range<usize>),
    /// Generated: the index of the message among those of the key.
    Generated(usize),
}

/// A reused signature to verify. The ranges are in `Scratch::messages` and `Scratch::reused`.
struct Check {
    item: Item,
    rtype: Rtype,
    key: usize,
    message: Range<usize>,
    signature: Range<usize>,
}

/// Signs chunks of the plan. All threads share it.
pub(super) struct Signer<'a> {
    plan: &'a Plan<'a>,
    signers: &'a Signers<'a>,
    options: &'a SignOptions<'a>,
    reuse: Option<ReusableSignatures<'a>>,
    /// Key tag of each key.
    tags: Vec<u16>,
    /// The position of the ZONEMD RRset of the apex, which can only be generated and signed last.
    zonemd: ZonemdPlacement,
}

impl<'a> Signer<'a> {
    pub(super) fn new(
        plan: &'a Plan<'a>,
        signers: &'a Signers<'a>,
        options: &'a SignOptions<'a>,
        zonemd: ZonemdPlacement,
    ) -> Self {
        let tags = signers.keys().keys().iter().map(|key| key.tag()).collect();
        Self { plan, signers, options, reuse: ReusableSignatures::new(signers.keys(), options), tags, zonemd }
    }

    fn key(&self, index: usize) -> &'a KeyPair {
        &self.signers.keys().keys()[index]
    }

    /// Signs `items` and appends them with their records to `run`.
    pub(super) fn sign_chunk(
        &self,
        items: &[Item],
        scratch: &mut Scratch,
        run: &mut NodesBuilder,
    ) -> Result<SignStatistics, SignError> {
        scratch.reset(self.tags.len());
        let mut cursor = self.cursor(items, scratch);
        for &item in items {
            self.collect_name(item, cursor.as_mut(), scratch);
        }
        self.verify_reused(scratch)?;
        self.generate_signatures(scratch)?;
        Ok(self.write(items, scratch, run))
    }

    fn cursor(&self, items: &[Item], scratch: &mut Scratch) -> Option<Cursor<'a>> {
        let first = self.plan.owner(*items.first()?, &mut scratch.owner);
        self.reuse.as_ref().map(|reuse| reuse.cursor_from(first))
    }

    /// Finds the reusable signatures at one name, and builds the messages for new signatures.
    fn collect_name(&self, item: Item, cursor: Option<&mut Cursor<'a>>, scratch: &mut Scratch) {
        let previous = cursor.and_then(|cursor| cursor.seek(self.plan.owner(item, &mut scratch.owner)));
        let mut buffers = std::mem::take(&mut scratch.buffers);
        self.plan.visit(item, &mut buffers, |owner, piece| {
            if piece.signed && !is_deferred(item, piece.rtype) {
                self.collect_rrset(item, owner, piece, previous, scratch);
            }
        });
        scratch.buffers = buffers;
    }

    fn collect_rrset(
        &self,
        item: Item,
        owner: NameRef<'_>,
        piece: PlannedRrset<'_>,
        previous: Option<Node<'a>>,
        scratch: &mut Scratch,
    ) {
        let old = self.reuse.as_ref().and_then(|reuse| Some((reuse, reuse.signatures(previous, &piece)?)));
        let expiration = self.expiration(owner, piece.rtype);
        for &key in self.signers.signers_at(owner, piece.rtype) {
            let reusable = old.and_then(|(reuse, old)| reuse.reusable(old, owner, &piece, key));
            let Some((octets, fields)) = reusable else {
                let start = scratch.messages.len();
                push_message(
                    &self.fields(owner, piece, key, expiration),
                    owner,
                    piece,
                    &mut scratch.messages,
                );
                let ranges = &mut scratch.ranges[key];
                scratch.sources.push(Source::Generated(ranges.len()));
                ranges.push((start, scratch.messages.len()));
                continue;
            };
            let start = scratch.reused.len();
            scratch.reused.extend_from_slice(octets);
            let end = scratch.reused.len();
            scratch.sources.push(Source::Reused(start..end));
            // In each chunk, one signature of each key is verified, as a sample of the previous
            // zone.
            let is_sample = !scratch.checks.iter().any(|check| check.key == key);
            if is_sample || self.reuse.as_ref().is_some_and(ReusableSignatures::verifies_all) {
                let first = scratch.messages.len();
                push_message(&fields, owner, piece, &mut scratch.messages);
                let message = first..scratch.messages.len();
                let signature = start + fields.fields_len()..end;
                scratch.checks.push(Check { item, rtype: piece.rtype, key, message, signature });
            }
        }
        for octets in self.signers.copied(owner, piece.rtype) {
            let start = scratch.reused.len();
            scratch.reused.extend_from_slice(octets);
            scratch.sources.push(Source::Reused(start..scratch.reused.len()));
        }
    }

    fn fields(&self, owner: NameRef<'_>, piece: PlannedRrset<'_>, key: usize, expiration: u32) -> Rrsig<'_> {
        Rrsig {
            covered: piece.rtype,
            algorithm: self.key(key).algorithm(),
            labels: owner.rrsig_labels(),
            original_ttl: piece.ttl,
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
                Some(VerifyItem { key: reuse.public(check.key)?, message, signature })
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

    fn generate_signatures(&self, scratch: &mut Scratch) -> Result<(), SignError> {
        let Scratch { messages, ranges, signatures, .. } = scratch;
        for ((key, ranges), signatures) in self.signers.keys().keys().iter().zip(ranges).zip(signatures) {
            let batch: Vec<&[u8]> = ranges.iter().map(|(start, end)| &messages[*start..*end]).collect();
            sign_batch(key.private(), &batch, signatures)?;
        }
        Ok(())
    }

    fn write(&self, items: &[Item], scratch: &mut Scratch, run: &mut NodesBuilder) -> SignStatistics {
        let mut statistics = SignStatistics::default();
        let mut owner = std::mem::take(&mut scratch.owner);
        let mut buffers = std::mem::take(&mut scratch.buffers);
        let mut sources = 0;
        buffers.rewind();
        for &item in items {
            run.begin_node(self.plan.owner(item, &mut owner));
            self.plan.visit(item, &mut buffers, |owner, piece| {
                if is_deferred(item, piece.rtype) {
                    return self.reserve_apex_rrset(run, piece);
                }
                copy_records(run, piece);
                statistics.records += piece.records.count();
                statistics.chain_records += u64::from(piece.is_of_chain());
                if piece.signed {
                    run.begin_rrset(Rtype::RRSIG, piece.rtype, piece.ttl);
                    let signers = self.signers.signers_at(owner, piece.rtype);
                    let copied = self.signers.copied(owner, piece.rtype).count();
                    self.write_signatures(signers, copied, &mut sources, scratch, run, &mut statistics);
                    statistics.rrsets_signed += 1;
                }
            });
        }
        (scratch.owner, scratch.buffers) = (owner, buffers);
        statistics
    }

    /// Reserves the space for an RRset and its signatures, if its position is at the apex.
    fn reserve_apex_rrset(&self, run: &mut NodesBuilder, piece: PlannedRrset<'_>) {
        if self.zonemd == ZonemdPlacement::Last {
            return;
        }
        copy_records(run, piece);
        run.begin_rrset(Rtype::RRSIG, piece.rtype, piece.ttl);
        let fields = RRSIG_FIELDS + self.plan.zone().len();
        for &key in self.signers.signers_at_apex(piece.rtype) {
            let length = fields + self.key(key).private().signature_octets();
            run.push_record(|out| out.resize(out.len() + length, 0));
        }
    }

    /// The apex with only `rrset` and its signatures. They fill the reserved space or are the last
    /// records.
    pub(super) fn sign_apex_rrset(
        &self,
        rrset: Rrset<'_>,
    ) -> Result<(NodesBuilder, SignStatistics), SignError> {
        let (owner, rtype) = (self.plan.zone(), rrset.rtype());
        let piece =
            PlannedRrset { rtype, ttl: rrset.ttl(), records: PlannedRecords::Stored(rrset), signed: true };
        let mut run = NodesBuilder::default();
        run.begin_node(owner);
        copy_records(&mut run, piece);
        run.begin_rrset(Rtype::RRSIG, rtype, piece.ttl);
        let mut statistics =
            SignStatistics { rrsets_signed: 1, records: piece.records.count(), ..SignStatistics::default() };
        let expiration = self.expiration(owner, rtype);
        let mut rdatas = Vec::new();
        for &key in self.signers.signers_at_apex(rtype) {
            let (mut message, mut signature) = (Vec::new(), Vec::new());
            push_message(&self.fields(owner, piece, key, expiration), owner, piece, &mut message);
            sign_batch(self.key(key).private(), &[&message], &mut signature)?;
            message.truncate(RRSIG_FIELDS + owner.len());
            message.append(&mut signature);
            rdatas.push(message);
            statistics.signatures += 1;
            statistics.records += 1;
        }
        rdatas.sort_unstable();
        for rdata in rdatas {
            run.push_record(|out| out.extend_from_slice(&rdata));
        }
        Ok((run, statistics))
    }

    /// Writes the RRSIGs of one RRset, in canonical order as for all records: those of `signers`,
    /// and `copied` further ones that are copied.
    fn write_signatures(
        &self,
        signers: &[usize],
        copied: usize,
        next: &mut usize,
        scratch: &mut Scratch,
        run: &mut NodesBuilder,
        statistics: &mut SignStatistics,
    ) {
        let Scratch { messages, ranges, signatures, sources, reused, rdatas, .. } = scratch;
        // RRSIG RDATA and the signed data begin with the same fields.
        let fields_len = RRSIG_FIELDS + self.plan.zone().len();
        rdatas.resize_with(signers.len() + copied, Vec::new);
        for (place, rdata) in rdatas.iter_mut().enumerate() {
            rdata.clear();
            match (&sources[*next], signers.get(place)) {
                (Source::Reused(range), _) => {
                    rdata.extend_from_slice(&reused[range.clone()]);
                    statistics.signatures_kept += 1;
                }
                // The source of a copied signature is never `Generated`.
                (Source::Generated(_), None) => {}
                (&Source::Generated(number), Some(&key)) => {
                    let length = self.key(key).private().signature_octets();
                    let start = ranges[key][number].0;
                    rdata.extend_from_slice(&messages[start..start + fields_len]);
                    rdata.extend_from_slice(&signatures[key][number * length..][..length]);
                    statistics.signatures += 1;
                }
            }
            *next += 1;
            statistics.records += 1;
        }
        if rdatas.len() > 1 {
            rdatas.sort_unstable();
        }
        for rdata in rdatas.iter() {
            run.push_record(|out| out.extend_from_slice(rdata));
        }
    }

    /// The expiration minus the jitter of the RRset, which is the same for all its signatures.
    fn expiration(&self, owner: NameRef<'_>, rtype: Rtype) -> u32 {
        if self.options.jitter == 0 {
            return self.options.expiration;
        }
        // The time is part of the seed, so signatures that are refreshed together get different
        // expirations.
        let seed = self.options.seed ^ u64::from(self.options.now) << 32;
        let taken = mix(seed, owner, rtype) % (u64::from(self.options.jitter) + 1);
        self.options.expiration.wrapping_sub(taken as u32)
    }
}

/// Whether the RRset contains the digest of the zone, which is not known yet.
fn is_deferred(item: Item, rtype: Rtype) -> bool {
    rtype == Rtype::ZONEMD && item.is_apex()
}

impl Scratch {
    fn reset(&mut self, keys: usize) {
        self.buffers.clear();
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
fn push_message(fields: &Rrsig<'_>, owner: NameRef<'_>, piece: PlannedRrset<'_>, out: &mut Vec<u8>) {
    match piece.records {
        PlannedRecords::Stored(rrset) => push_signed_data(fields, owner, rrset.rdatas(), out),
        PlannedRecords::Generated(rdata) => push_signed_data(fields, owner, std::iter::once(rdata), out),
    }
}

fn copy_records(run: &mut NodesBuilder, piece: PlannedRrset<'_>) {
    match piece.records {
        // All records get the TTL of the RRset, even if the zone file has different TTLs
        // (RFC 2181 §5.2).
        PlannedRecords::Stored(rrset) => {
            run.begin_rrset(rrset.rtype(), rrset.covered(), rrset.ttl());
            rrset.rdatas().for_each(|rdata| run.push_record(|out| out.extend_from_slice(rdata)));
        }
        PlannedRecords::Generated(rdata) => {
            run.begin_rrset(piece.rtype, piece.rtype, piece.ttl);
            run.push_record(|out| out.extend_from_slice(rdata));
        }
    }
}

/// FNV-1a over owner and type, then the finalizer of SplitMix64: evenly distributed, and equal on
/// all platforms.
fn mix(seed: u64, owner: NameRef<'_>, rtype: Rtype) -> u64 {
    let step = |hash: u64, octet: u8| (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
    let hash = owner.wire().iter().map(u8::to_ascii_lowercase).fold(seed ^ 0xcbf2_9ce4_8422_2325, step);
    let hash = rtype.0.to_be_bytes().into_iter().fold(hash, step);
    let hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}
