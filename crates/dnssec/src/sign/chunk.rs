//! Signing a run of names: the signed data of all RRsets first, then all signatures of each key, then the records.

use super::plan::{Item, Piece, Plan, Records, Room};
use super::{SignError, SignOptions, SignStatistics};
use crate::keys::KeySet;
use crate::rrsig::{Rrsig, push_signed_data};
use nonesuch_crypto::sign_batch;
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_zone::Run;

/// Room that is used again for every run.
#[derive(Default)]
pub(super) struct Scratch {
    room: Room,
    owner: Vec<u8>,
    /// The signed data of one message after the other.
    messages: Vec<u8>,
    /// For each key, where each of its messages begins and ends.
    ranges: Vec<Vec<(usize, usize)>>,
    /// For each key, the signatures in the order of its messages, all of one length.
    signatures: Vec<Vec<u8>>,
}

pub(super) struct Signer<'a> {
    plan: &'a Plan<'a>,
    keys: &'a KeySet,
    options: &'a SignOptions<'a>,
    /// Tag of each key.
    tags: Vec<u16>,
}

impl<'a> Signer<'a> {
    pub(super) fn new(plan: &'a Plan<'a>, keys: &'a KeySet, options: &'a SignOptions<'a>) -> Self {
        let tags = keys.keys().iter().map(|key| key.tag()).collect();
        Self { plan, keys, options, tags }
    }

    /// Places of the keys that sign an RRset. Away from the apex, DNSKEY, CDS and CDNSKEY are data as any other: those
    /// at signalling names tell of other zones' keys (RFC 9615 §2).
    fn signers(&self, owner: NameRef<'_>, rtype: Rtype) -> &'a [usize] {
        self.keys.signers(if owner == self.plan.zone() { rtype } else { Rtype::A })
    }

    pub(super) fn sign_chunk(
        &self,
        items: &[Item],
        scratch: &mut Scratch,
    ) -> Result<(Run, SignStatistics), SignError> {
        let count = self.keys.keys().len();
        scratch.messages.clear();
        scratch.ranges.resize_with(count, Vec::new);
        scratch.signatures.resize_with(count, Vec::new);
        scratch.ranges.iter_mut().for_each(Vec::clear);
        scratch.signatures.iter_mut().for_each(Vec::clear);
        self.collect_messages(items, scratch);
        self.make_signatures(scratch)?;
        Ok(self.write(items, scratch))
    }

    fn collect_messages(&self, items: &[Item], scratch: &mut Scratch) {
        let Scratch { room, messages, ranges, .. } = scratch;
        for &item in items {
            self.plan.visit(item, room, |owner, piece| {
                if !piece.signed {
                    return;
                }
                let expiration = self.expiration(owner, piece.rtype);
                for &key in self.signers(owner, piece.rtype) {
                    let start = messages.len();
                    self.push_message(owner, piece, key, expiration, messages);
                    ranges[key].push((start, messages.len()));
                }
            });
        }
    }

    fn push_message(
        &self,
        owner: NameRef<'_>,
        piece: Piece<'_>,
        key: usize,
        expiration: u32,
        out: &mut Vec<u8>,
    ) {
        let fields = Rrsig {
            covered: piece.rtype,
            algorithm: self.keys.keys()[key].algorithm(),
            labels: owner.rrsig_labels(),
            original_ttl: piece.ttl,
            expiration,
            inception: self.options.inception,
            tag: self.tags[key],
            signer: self.plan.zone(),
            signature: &[],
        };
        match piece.records {
            Records::Kept(rrset) => push_signed_data(&fields, owner, rrset.rdatas(), out),
            Records::Made(rdata) => push_signed_data(&fields, owner, std::iter::once(rdata), out),
        }
    }

    fn make_signatures(&self, scratch: &mut Scratch) -> Result<(), SignError> {
        let Scratch { messages, ranges, signatures, .. } = scratch;
        for ((key, ranges), signatures) in self.keys.keys().iter().zip(ranges).zip(signatures) {
            let batch: Vec<&[u8]> = ranges.iter().map(|(start, end)| &messages[*start..*end]).collect();
            sign_batch(key.private(), &batch, signatures)?;
        }
        Ok(())
    }

    fn write(&self, items: &[Item], scratch: &mut Scratch) -> (Run, SignStatistics) {
        let Scratch { room, owner, messages, ranges, signatures } = scratch;
        let mut run = Run::default();
        let mut statistics = SignStatistics::default();
        // The RDATA of an RRSIG begins as its signed data do.
        let fields_len = 18 + self.plan.zone().len();
        let mut used = vec![0; self.keys.keys().len()];
        for &item in items {
            run.begin_node(self.plan.owner(item, owner));
            self.plan.visit(item, room, |owner, piece| {
                push_records(&mut run, piece);
                statistics.chain_records += u64::from(matches!(piece.records, Records::Made(_)));
                if !piece.signed {
                    return;
                }
                run.begin_rrset(Rtype::RRSIG, piece.rtype, piece.ttl);
                for &key in self.signers(owner, piece.rtype) {
                    let length = self.keys.keys()[key].private().signature_octets();
                    let number = used[key];
                    used[key] += 1;
                    let start = ranges[key][number].0;
                    run.push_record(|out| {
                        out.extend_from_slice(&messages[start..start + fields_len]);
                        out.extend_from_slice(&signatures[key][number * length..][..length]);
                    });
                    statistics.signatures += 1;
                }
                statistics.rrsets_signed += 1;
            });
        }
        (run, statistics)
    }

    /// The expiration less the RRset's share of jitter, the same for all its signatures.
    fn expiration(&self, owner: NameRef<'_>, rtype: Rtype) -> u32 {
        if self.options.jitter == 0 {
            return self.options.expiration;
        }
        let taken = mix(self.options.seed, owner, rtype) % (u64::from(self.options.jitter) + 1);
        self.options.expiration.wrapping_sub(taken as u32)
    }
}

fn push_records(run: &mut Run, piece: Piece<'_>) {
    match piece.records {
        Records::Kept(rrset) => run.push_rrset(rrset),
        Records::Made(rdata) => {
            run.begin_rrset(piece.rtype, piece.rtype, piece.ttl);
            run.push_record(|out| out.extend_from_slice(rdata));
        }
    }
}

/// FNV-1a over owner and type, then the finish of SplitMix64: evenly spread, and the same everywhere.
fn mix(seed: u64, owner: NameRef<'_>, rtype: Rtype) -> u64 {
    let step = |hash: u64, octet: u8| (hash ^ u64::from(octet)).wrapping_mul(0x0100_0000_01b3);
    let hash = owner.wire().iter().map(u8::to_ascii_lowercase).fold(seed ^ 0xcbf2_9ce4_8422_2325, step);
    let hash = rtype.0.to_be_bytes().into_iter().fold(hash, step);
    let hash = (hash ^ hash >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ hash >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ hash >> 31
}
