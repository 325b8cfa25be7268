//! Signing a run of names: the signed data of all RRsets first, then all signatures of each key, then the records.

use super::plan::{Item, Piece, Plan, Records, Room};
use super::zonemd::Place;
use super::{SignError, SignOptions, SignStatistics};
use crate::keys::KeySet;
use crate::rrsig::{Rrsig, push_signed_data};
use nonesuch_crypto::sign_batch;
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_zone::{Rrset, Run};

/// Octets of RRSIG RDATA in front of the signer's name.
const RRSIG_FIELDS: usize = 18;

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
    /// Where the ZONEMD RRset of the apex goes, which can be made and signed last only.
    zonemd: Place,
}

impl<'a> Signer<'a> {
    pub(super) fn new(
        plan: &'a Plan<'a>,
        keys: &'a KeySet,
        options: &'a SignOptions<'a>,
        zonemd: Place,
    ) -> Self {
        let tags = keys.keys().iter().map(|key| key.tag()).collect();
        Self { plan, keys, options, tags, zonemd }
    }

    /// Places of the keys that sign an RRset. Away from the apex, DNSKEY, CDS and CDNSKEY are data as any other: those
    /// at signalling names tell of other zones' keys (RFC 9615 §2).
    fn signers(&self, owner: NameRef<'_>, rtype: Rtype) -> &'a [usize] {
        self.keys.signers(if owner == self.plan.zone() { rtype } else { Rtype::A })
    }

    /// Signs `items` and appends them to `run`.
    pub(super) fn sign_chunk(
        &self,
        items: &[Item],
        scratch: &mut Scratch,
        run: &mut Run,
    ) -> Result<SignStatistics, SignError> {
        let count = self.keys.keys().len();
        scratch.messages.clear();
        scratch.ranges.resize_with(count, Vec::new);
        scratch.signatures.resize_with(count, Vec::new);
        scratch.ranges.iter_mut().for_each(Vec::clear);
        scratch.signatures.iter_mut().for_each(Vec::clear);
        self.collect_messages(items, scratch);
        self.make_signatures(scratch)?;
        Ok(self.write(items, scratch, run))
    }

    fn collect_messages(&self, items: &[Item], scratch: &mut Scratch) {
        let Scratch { room, messages, ranges, .. } = scratch;
        room.clear();
        for &item in items {
            self.plan.visit(item, room, |owner, piece| {
                if !piece.signed || self.is_deferred(item, piece.rtype) {
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

    /// Whether the RRset is the digest of the zone, which is not known yet.
    fn is_deferred(&self, item: Item, rtype: Rtype) -> bool {
        rtype == Rtype::ZONEMD && item.is_apex()
    }

    fn write(&self, items: &[Item], scratch: &mut Scratch, run: &mut Run) -> SignStatistics {
        let Scratch { room, owner, messages, ranges, signatures } = scratch;
        let mut statistics = SignStatistics::default();
        // The RDATA of an RRSIG begins as its signed data do.
        let fields_len = RRSIG_FIELDS + self.plan.zone().len();
        let mut used = vec![0; self.keys.keys().len()];
        room.rewind();
        for &item in items {
            run.begin_node(self.plan.owner(item, owner));
            self.plan.visit(item, room, |owner, piece| {
                if self.is_deferred(item, piece.rtype) {
                    return self.push_room(run, piece);
                }
                push_records(run, piece);
                statistics.records += piece.records.count();
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
                    statistics.records += 1;
                }
                statistics.rrsets_signed += 1;
            });
        }
        statistics
    }

    /// Keeps the room of an RRset and its signatures, where it is to stand at its place.
    fn push_room(&self, run: &mut Run, piece: Piece<'_>) {
        if self.zonemd == Place::Last {
            return;
        }
        push_records(run, piece);
        run.begin_rrset(Rtype::RRSIG, piece.rtype, piece.ttl);
        let fields = RRSIG_FIELDS + self.plan.zone().len();
        for &key in self.keys.signers(piece.rtype) {
            let length = fields + self.keys.keys()[key].private().signature_octets();
            run.push_record(|out| out.resize(out.len() + length, 0));
        }
    }

    /// The apex with the `rrset` alone, whose room was kept or which comes last, and its signatures.
    pub(super) fn sign_alone(&self, rrset: Rrset<'_>) -> Result<(Run, SignStatistics), SignError> {
        let (owner, rtype) = (self.plan.zone(), rrset.rtype());
        let piece = Piece { rtype, ttl: rrset.ttl(), records: Records::Kept(rrset), signed: true };
        let mut run = Run::default();
        run.begin_node(owner);
        push_records(&mut run, piece);
        run.begin_rrset(Rtype::RRSIG, rtype, piece.ttl);
        let mut statistics =
            SignStatistics { rrsets_signed: 1, records: piece.records.count(), ..SignStatistics::default() };
        let expiration = self.expiration(owner, rtype);
        for &key in self.keys.signers(rtype) {
            let (mut message, mut signature) = (Vec::new(), Vec::new());
            self.push_message(owner, piece, key, expiration, &mut message);
            sign_batch(self.keys.keys()[key].private(), &[&message], &mut signature)?;
            run.push_record(|out| {
                out.extend_from_slice(&message[..RRSIG_FIELDS + owner.len()]);
                out.extend_from_slice(&signature);
            });
            statistics.signatures += 1;
            statistics.records += 1;
        }
        Ok((run, statistics))
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
