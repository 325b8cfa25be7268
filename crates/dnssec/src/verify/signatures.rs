//! Verifies the signatures of all RRsets (RFC 4035 §2.2, §5.3).

use super::keys::ZoneKeys;
use super::predecessor::{PreviousSignatures, SignatureReuse, VerifiedPredecessor};
use super::{FaultReason, Findings, Mode, UnsignedData, VerifyOptions, VerifyWarning, Zone};
use crate::denial::is_signed;
use crate::rrsig::{Rrsig, push_signed_data};
use nonesuch_crypto::{Algorithm, BadSignature, VerifyItem, verify_batch};
use nonesuch_proto::{Rtype, serial};
use nonesuch_zone::{NameStatus, Node, Rrset};
use rayon::prelude::*;
use std::ops::{Range, RangeInclusive};

/// Minimum and maximum number of nodes that a thread verifies as one chunk. A batch of signatures
/// by one key is faster if it is larger, up to about 256 signatures; names for which the zone is
/// not authoritative have none. A few dozen chunks keep all threads busy until the end.
const CHUNK: RangeInclusive<usize> = 128..=1024;

/// Number of chunks into which a zone is split, unless [`CHUNK`] requires larger or smaller chunks.
const CHUNKS: usize = 64;

/// Checks the signatures of every RRset and returns the indices of the keys that sign the DNSKEY
/// RRset. `earlier` is a verified version of the zone with the same keys; its signatures are not
/// verified again if they and their records are unchanged.
pub(super) fn check(
    zone: &Zone<'_>,
    keys: &ZoneKeys<'_>,
    options: &VerifyOptions,
    earlier: Option<VerifiedPredecessor<'_>>,
    findings: &mut Findings,
) -> Vec<usize> {
    let count = zone.contents.node_count();
    let size = count.div_ceil(CHUNKS).clamp(*CHUNK.start(), *CHUNK.end());
    let outcomes: Vec<(Findings, Vec<usize>)> = (0..count.div_ceil(size))
        .into_par_iter()
        .map(|chunk| {
            let mut checker = Checker::new(zone, keys, options, earlier);
            let end = ((chunk + 1) * size).min(count);
            (chunk * size..end).for_each(|index| checker.collect(zone.contents.node(index)));
            let outcome = checker.finish();
            zone.progress
                .report(end - chunk * size, outcome.0.signatures_verified + outcome.0.signatures_kept);
            outcome
        })
        .collect();
    let mut signing_keys = Vec::new();
    for (part, keys) in outcomes {
        findings.append(part);
        signing_keys.extend(keys);
    }
    signing_keys
}

/// Number of keys with batch verification. Batch verification builds tables of up to 256 KiB for
/// each key. The signatures of further keys are verified one by one; no legitimate zone has more
/// keys.
const KEYS_IN_BATCHES: usize = 32;

/// A signature and the state of its verification.
struct Signature<'z> {
    tag: u16,
    algorithm: Algorithm,
    /// Why its fields make it invalid; `None` if the fields are valid.
    fault: Option<FaultReason>,
    /// Index of the key that made it, if the previous version shows this without a verification.
    known: Option<usize>,
    /// Otherwise the tries: the candidate keys to verify it with.
    tries: Range<usize>,
    message: Range<usize>,
    octets: &'z [u8],
}

/// An RRset that must be signed.
struct Subject<'z> {
    node: Node<'z>,
    rtype: Rtype,
    signatures: Range<usize>,
}

struct Checker<'c, 'z> {
    zone: &'c Zone<'z>,
    keys: &'c ZoneKeys<'c>,
    options: &'c VerifyOptions,
    recall: SignatureReuse<'c>,
    findings: Findings,
    subjects: Vec<Subject<'z>>,
    signatures: Vec<Signature<'z>>,
    /// For each try, the index of the signature and the index of the key.
    tries: Vec<(usize, usize)>,
    /// The signed data of all signatures, concatenated.
    messages: Vec<u8>,
}

/// The reason why a signature over `covered` at a name of this status is not allowed. `exists`: the
/// name has records of this type.
fn unsigned_data(covered: Rtype, exists: bool, status: NameStatus) -> UnsignedData {
    if covered == Rtype::RRSIG {
        return UnsignedData::Signatures;
    }
    if !exists {
        return UnsignedData::Missing;
    }
    match status {
        NameStatus::Authoritative => UnsignedData::Missing,
        NameStatus::Delegation => UnsignedData::Delegation,
        NameStatus::BelowCut => UnsignedData::BelowCut,
        NameStatus::BelowDname => UnsignedData::BelowDname,
    }
}

impl<'c, 'z> Checker<'c, 'z> {
    fn new(
        zone: &'c Zone<'z>,
        keys: &'c ZoneKeys<'c>,
        options: &'c VerifyOptions,
        earlier: Option<VerifiedPredecessor<'c>>,
    ) -> Self {
        Self {
            zone,
            keys,
            options,
            recall: SignatureReuse::new(earlier),
            findings: Findings::default(),
            subjects: Vec::new(),
            signatures: Vec::new(),
            tries: Vec::new(),
            messages: Vec::new(),
        }
    }

    fn collect(&mut self, node: Node<'z>) {
        let status = self.zone.name_status(node);
        self.recall.advance_to(node.name());
        let mut previous: Option<Rrset<'z>> = None;
        for rrset in node.rrsets() {
            if rrset.rtype() == Rtype::RRSIG {
                // Signatures directly follow the RRset that they cover.
                let covered = previous.filter(|covered| covered.rtype() == rrset.covered());
                if !covered.is_some_and(|covered| is_signed(covered.rtype(), status)) {
                    let data = unsigned_data(rrset.covered(), covered.is_some(), status);
                    let reason = FaultReason::UnexpectedSignature(data);
                    self.findings.fault(node.name(), Some(rrset.covered()), reason);
                }
            } else if is_signed(rrset.rtype(), status) {
                self.collect_rrset(node, rrset);
            }
            previous = Some(rrset);
        }
    }

    fn collect_rrset(&mut self, node: Node<'z>, rrset: Rrset<'z>) {
        self.findings.rrsets += 1;
        let start = self.signatures.len();
        match node.signatures(rrset.rtype()) {
            None => self.findings.fault(node.name(), Some(rrset.rtype()), FaultReason::NoSignature),
            Some(signatures) => {
                let (expected, found) = (rrset.ttl(), signatures.ttl());
                if expected != found {
                    let reason = FaultReason::WrongSignatureTtl { expected, found };
                    self.findings.fault(node.name(), Some(rrset.rtype()), reason);
                }
                let mut recalled = self.recall.signatures(rrset);
                for rdata in signatures.rdatas() {
                    self.collect_signature(node, rrset, rdata, &mut recalled);
                }
            }
        }
        let signatures = start..self.signatures.len();
        if !signatures.is_empty() {
            self.subjects.push(Subject { node, rtype: rrset.rtype(), signatures });
        }
    }

    fn collect_signature(
        &mut self,
        node: Node<'z>,
        rrset: Rrset<'z>,
        rdata: &'z [u8],
        recalled: &mut PreviousSignatures<'_>,
    ) {
        let Some(fields) = Rrsig::parse(rdata) else {
            self.findings.fault(node.name(), Some(rrset.rtype()), FaultReason::MalformedRecord);
            return;
        };
        let (first_try, first_octet) = (self.tries.len(), self.messages.len());
        let place = self.signatures.len();
        let fault = self.check_fields(node, rrset, &fields);
        let known = recalled.key_of(rdata, &fields, self.keys).filter(|_| fault.is_none());
        if fault.is_none() && known.is_none() {
            self.tries.extend(self.keys.candidates(fields.tag, fields.algorithm).map(|key| (place, key)));
            if self.options.mode == Mode::Full {
                push_signed_data(&fields, node.name(), rrset.rdatas(), &mut self.messages);
            }
        }
        self.signatures.push(Signature {
            tag: fields.tag,
            algorithm: fields.algorithm,
            fault,
            known,
            tries: first_try..self.tries.len(),
            message: first_octet..self.messages.len(),
            octets: fields.signature,
        });
    }

    /// Returns the first fault of the fields of a signature (RFC 4035 §5.3.1).
    fn check_fields(&self, node: Node<'_>, rrset: Rrset<'_>, fields: &Rrsig<'_>) -> Option<FaultReason> {
        let tag = fields.tag;
        if self.keys.candidates(tag, fields.algorithm).next().is_none() {
            return Some(FaultReason::UnknownKey { tag, algorithm: fields.algorithm });
        }
        if fields.signer != self.zone.contents.apex().view() {
            return Some(FaultReason::WrongSigner { tag, signer: fields.signer.to_name() });
        }
        // A zone contains no expanded wildcards: the owner of a wildcard RRset is the wildcard.
        let expected = node.name().rrsig_labels();
        if fields.labels != expected {
            return Some(FaultReason::WrongLabels { tag, expected, found: fields.labels });
        }
        let (original, ttl) = (fields.original_ttl, rrset.ttl());
        match ttl.cmp(&original) {
            std::cmp::Ordering::Less => return Some(FaultReason::WrongOriginalTtl { tag, original, ttl }),
            std::cmp::Ordering::Greater => return Some(FaultReason::TtlAboveOriginal { tag, original, ttl }),
            std::cmp::Ordering::Equal => {}
        }
        self.check_times(fields)
    }

    /// Checks the period of validity, in serial number arithmetic (RFC 4034 §3.1.5).
    fn check_times(&self, fields: &Rrsig<'_>) -> Option<FaultReason> {
        let (tag, inception, expiration) = (fields.tag, fields.inception, fields.expiration);
        if serial::is_before(expiration, inception) {
            return Some(FaultReason::EmptyPeriod { tag });
        }
        let now = self.options.now?;
        if serial::is_before(expiration, now) {
            return Some(FaultReason::Expired { tag, expiration });
        }
        serial::is_before(now, inception).then_some(FaultReason::NotYetValid { tag, inception })
    }

    fn finish(mut self) -> (Findings, Vec<usize>) {
        let outcomes = self.verify_all();
        let mut signing_keys = Vec::new();
        let mut good = Vec::new();
        for place in 0..self.subjects.len() {
            self.judge(place, &outcomes, &mut good, &mut signing_keys);
        }
        (self.findings, signing_keys)
    }

    /// Returns one result for each try; `None` if the key is not supported.
    fn verify_all(&self) -> Vec<Option<bool>> {
        let supported = |key: usize| self.keys.keys[key].public.as_ref();
        if self.options.mode == Mode::Structural {
            return self.tries.iter().map(|(_, key)| supported(*key).map(|_| true)).collect();
        }
        let item = |&(place, key): &(usize, usize)| {
            let signature = &self.signatures[place];
            let message = &self.messages[signature.message.clone()];
            Some(VerifyItem { key: supported(key)?, message, signature: signature.octets })
        };
        let in_batch = |try_: &&(usize, usize)| try_.1 < KEYS_IN_BATCHES;
        let items: Vec<_> = self.tries.iter().filter(in_batch).filter_map(item).collect();
        let mut results: Vec<Result<(), BadSignature>> = Vec::with_capacity(items.len());
        verify_batch(&items, &mut results);
        let mut results = results.into_iter();
        let outcome = |try_: &(usize, usize)| {
            let VerifyItem { key, message, signature } = item(try_)?;
            let result = if in_batch(&try_) { results.next()? } else { key.verify(message, signature) };
            Some(result.is_ok())
        };
        self.tries.iter().map(outcome).collect()
    }

    /// Combines the results of the signatures over one RRset. Each signature must be valid, and
    /// each required algorithm must have one.
    fn judge(
        &mut self,
        place: usize,
        outcomes: &[Option<bool>],
        good: &mut Vec<Algorithm>,
        signing_keys: &mut Vec<usize>,
    ) {
        good.clear();
        let Subject { node, rtype, ref signatures } = self.subjects[place];
        let signatures = signatures.clone();
        for signature in &mut self.signatures[signatures.clone()] {
            if signature.fault.is_some() {
                continue;
            }
            let tries = signature.tries.clone();
            let found = tries.clone().find(|place| outcomes[*place] == Some(true));
            let signer = signature.known.or_else(|| found.map(|place| self.tries[place].1));
            if let Some(key) = signer {
                if signature.known.is_some() {
                    self.findings.signatures_kept += 1;
                } else {
                    self.findings.signatures_verified += u64::from(self.options.mode == Mode::Full);
                }
                if !self.keys.keys[key].revoked {
                    good.push(signature.algorithm);
                }
                if rtype == Rtype::DNSKEY && node.index() == 0 {
                    signing_keys.push(key);
                }
            } else if outcomes[tries].contains(&Some(false)) {
                let (tag, algorithm) = (signature.tag, signature.algorithm);
                signature.fault = Some(FaultReason::BadSignature { tag, algorithm });
            }
        }
        self.report(node, rtype, signatures, good);
    }

    fn report(&mut self, node: Node<'_>, rtype: Rtype, signatures: Range<usize>, good: &[Algorithm]) {
        let required = &self.keys.required;
        let complete = !required.is_empty() && required.iter().all(|algorithm| good.contains(algorithm));
        let mut faulty = Vec::new();
        for signature in &mut self.signatures[signatures] {
            let Some(reason) = signature.fault.take() else { continue };
            faulty.push(signature.algorithm);
            // A validator needs one valid signature (RFC 4035 §5.3.3). Surplus signatures from a
            // rollover are therefore not faults.
            let spare = matches!(
                reason,
                FaultReason::Expired { .. }
                    | FaultReason::NotYetValid { .. }
                    | FaultReason::UnknownKey { .. }
            );
            if spare && complete {
                let owner = node.name().to_name();
                self.findings.warn(VerifyWarning::SpareSignature { owner, rtype, reason });
            } else {
                self.findings.fault(node.name(), Some(rtype), reason);
            }
        }
        for &algorithm in &self.keys.required {
            if !good.contains(&algorithm) && !faulty.contains(&algorithm) {
                self.findings.fault(node.name(), Some(rtype), FaultReason::MissingAlgorithm { algorithm });
            }
        }
    }
}
