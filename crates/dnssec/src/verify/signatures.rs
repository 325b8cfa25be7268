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
const CHUNK_NODES: RangeInclusive<usize> = 128..=1024;

/// Number of chunks into which a zone is split, unless [`CHUNK_NODES`] requires larger or smaller
/// chunks.
const TARGET_CHUNKS: usize = 64;

/// Checks the signatures of every RRset and returns the indices of the keys that sign the DNSKEY
/// RRset. `predecessor` is a verified version of the zone with the same keys; its signatures are
/// not verified again if they and their records are unchanged.
pub(super) fn check(
    zone: &Zone<'_>,
    keys: &ZoneKeys<'_>,
    options: &VerifyOptions,
    predecessor: Option<VerifiedPredecessor<'_>>,
    findings: &mut Findings,
) -> Vec<usize> {
    let count = zone.contents.node_count();
    let size = count.div_ceil(TARGET_CHUNKS).clamp(*CHUNK_NODES.start(), *CHUNK_NODES.end());
    let outcomes: Vec<(Findings, Vec<usize>)> = (0..count.div_ceil(size))
        .into_par_iter()
        .map(|chunk| {
            let mut checker = Checker::new(zone, keys, options, predecessor);
            let end = ((chunk + 1) * size).min(count);
            (chunk * size..end).for_each(|index| checker.collect(zone.contents.node(index)));
            let outcome = checker.finish();
            zone.progress
                .report(end - chunk * size, outcome.0.signatures_verified + outcome.0.signatures_kept);
            outcome
        })
        .collect();
    let mut signing_keys = Vec::new();
    for (chunk_findings, keys) in outcomes {
        findings.append(chunk_findings);
        signing_keys.extend(keys);
    }
    signing_keys
}

/// Maximum number of keys with batch verification, which builds tables of up to 256 KiB for each
/// key. The signatures of further keys are verified one by one; no legitimate zone has more keys.
const MAX_BATCH_KEYS: usize = 32;

/// A signature and the state of its verification.
struct Signature<'z> {
    tag: u16,
    algorithm: Algorithm,
    /// Why the signature is invalid; `None` if no fault is known yet.
    fault: Option<FaultReason>,
    /// Index of the key that made it, if the previous version has the same verified signature.
    known_key: Option<usize>,
    /// Its part of [`Checker::tries`]; empty if `fault` or `known_key` is set.
    tries: Range<usize>,
    /// Its part of [`Checker::messages`].
    message: Range<usize>,
    /// The Signature field of the RRSIG record.
    octets: &'z [u8],
}

/// An RRset that must be signed and has signatures.
struct SignedRrset<'z> {
    node: Node<'z>,
    rtype: Rtype,
    /// Its part of [`Checker::signatures`].
    signatures: Range<usize>,
}

/// Checks the signatures of one chunk: [`Checker::collect`] for each node, then
/// [`Checker::finish`], which verifies the signatures as one batch.
struct Checker<'c, 'z> {
    zone: &'c Zone<'z>,
    keys: &'c ZoneKeys<'c>,
    options: &'c VerifyOptions,
    reuse: SignatureReuse<'c>,
    findings: Findings,
    signed_rrsets: Vec<SignedRrset<'z>>,
    signatures: Vec<Signature<'z>>,
    /// The verifications to do: each has the index of a signature and the index of a candidate key.
    tries: Vec<(usize, usize)>,
    /// The signed data of all signatures, concatenated.
    messages: Vec<u8>,
}

/// Returns why a signature over `covered` is not allowed at a name with this status. `exists`
/// states whether the name has records of this type.
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
        predecessor: Option<VerifiedPredecessor<'c>>,
    ) -> Self {
        Self {
            zone,
            keys,
            options,
            reuse: SignatureReuse::new(predecessor),
            findings: Findings::default(),
            signed_rrsets: Vec::new(),
            signatures: Vec::new(),
            tries: Vec::new(),
            messages: Vec::new(),
        }
    }

    /// Collects the RRsets and signatures of a node, and reports signatures that must not exist.
    fn collect(&mut self, node: Node<'z>) {
        let status = self.zone.name_status(node);
        self.reuse.advance_to(node.name());
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
                let mut previous_signatures = self.reuse.signatures(rrset);
                for rdata in signatures.rdatas() {
                    self.collect_signature(node, rrset, rdata, &mut previous_signatures);
                }
            }
        }
        let signatures = start..self.signatures.len();
        if !signatures.is_empty() {
            self.signed_rrsets.push(SignedRrset { node, rtype: rrset.rtype(), signatures });
        }
    }

    fn collect_signature(
        &mut self,
        node: Node<'z>,
        rrset: Rrset<'z>,
        rdata: &'z [u8],
        previous_signatures: &mut PreviousSignatures<'_>,
    ) {
        let Some(fields) = Rrsig::parse(rdata) else {
            self.findings.fault(node.name(), Some(rrset.rtype()), FaultReason::MalformedRecord);
            return;
        };
        let (first_try, first_octet) = (self.tries.len(), self.messages.len());
        let index = self.signatures.len();
        let fault = self.check_fields(node, rrset, &fields);
        let known_key = previous_signatures.find_key(rdata, &fields, self.keys).filter(|_| fault.is_none());
        if fault.is_none() && known_key.is_none() {
            self.tries.extend(self.keys.candidates(fields.tag, fields.algorithm).map(|key| (index, key)));
            if self.options.mode == Mode::Full {
                push_signed_data(&fields, node.name(), rrset.rdatas(), &mut self.messages);
            }
        }
        self.signatures.push(Signature {
            tag: fields.tag,
            algorithm: fields.algorithm,
            fault,
            known_key,
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
            std::cmp::Ordering::Less => return Some(FaultReason::TtlBelowOriginal { tag, original, ttl }),
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

    /// Returns the findings, and the indices of the keys that sign the DNSKEY RRset.
    fn finish(mut self) -> (Findings, Vec<usize>) {
        let outcomes = self.verify_all();
        let mut signing_keys = Vec::new();
        let mut valid_algorithms = Vec::new();
        for index in 0..self.signed_rrsets.len() {
            self.evaluate(index, &outcomes, &mut valid_algorithms, &mut signing_keys);
        }
        (self.findings, signing_keys)
    }

    /// Returns for each element of [`Checker::tries`] whether the signature is valid; `None` if the
    /// key is not usable. In structural mode, every signature by a usable key counts as valid.
    fn verify_all(&self) -> Vec<Option<bool>> {
        let public_key = |key: usize| self.keys.keys[key].public.as_ref();
        if self.options.mode == Mode::Structural {
            return self.tries.iter().map(|(_, key)| public_key(*key).map(|_| true)).collect();
        }
        let item = |&(signature, key): &(usize, usize)| {
            let signature = &self.signatures[signature];
            let message = &self.messages[signature.message.clone()];
            Some(VerifyItem { key: public_key(key)?, message, signature: signature.octets })
        };
        let in_batch = |try_: &&(usize, usize)| try_.1 < MAX_BATCH_KEYS;
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

    /// Evaluates the signatures over the RRset at `index`, and reports faults. Each signature must
    /// be valid, and each required algorithm must have one. `outcomes` are from
    /// [`Checker::verify_all`]. Adds the keys that sign the DNSKEY RRset to `signing_keys`.
    /// `valid_algorithms` is a buffer.
    fn evaluate(
        &mut self,
        index: usize,
        outcomes: &[Option<bool>],
        valid_algorithms: &mut Vec<Algorithm>,
        signing_keys: &mut Vec<usize>,
    ) {
        valid_algorithms.clear();
        let SignedRrset { node, rtype, ref signatures } = self.signed_rrsets[index];
        let signatures = signatures.clone();
        for signature in &mut self.signatures[signatures.clone()] {
            if signature.fault.is_some() {
                continue;
            }
            let tries = signature.tries.clone();
            let valid = tries.clone().find(|index| outcomes[*index] == Some(true));
            let signing_key = signature.known_key.or_else(|| valid.map(|index| self.tries[index].1));
            if let Some(key) = signing_key {
                if signature.known_key.is_some() {
                    self.findings.signatures_kept += 1;
                } else {
                    self.findings.signatures_verified += u64::from(self.options.mode == Mode::Full);
                }
                if !self.keys.keys[key].revoked {
                    valid_algorithms.push(signature.algorithm);
                }
                if rtype == Rtype::DNSKEY && node.index() == 0 {
                    signing_keys.push(key);
                }
            } else if outcomes[tries].contains(&Some(false)) {
                let (tag, algorithm) = (signature.tag, signature.algorithm);
                signature.fault = Some(FaultReason::BadSignature { tag, algorithm });
            }
        }
        self.report(node, rtype, signatures, valid_algorithms);
    }

    /// Reports the faults of the signatures over one RRset. `valid_algorithms` are the algorithms
    /// of its valid signatures.
    fn report(
        &mut self,
        node: Node<'_>,
        rtype: Rtype,
        signatures: Range<usize>,
        valid_algorithms: &[Algorithm],
    ) {
        let required = &self.keys.required_algorithms;
        let is_complete =
            !required.is_empty() && required.iter().all(|algorithm| valid_algorithms.contains(algorithm));
        let mut faulty_algorithms = Vec::new();
        for signature in &mut self.signatures[signatures] {
            let Some(reason) = signature.fault.take() else { continue };
            faulty_algorithms.push(signature.algorithm);
            // A validator needs one valid signature (RFC 4035 §5.3.3). Surplus signatures from a
            // rollover are therefore not faults.
            let is_surplus = matches!(
                reason,
                FaultReason::Expired { .. }
                    | FaultReason::NotYetValid { .. }
                    | FaultReason::UnknownKey { .. }
            );
            if is_surplus && is_complete {
                let owner = node.name().to_name();
                self.findings.warn(VerifyWarning::SurplusSignature { owner, rtype, reason });
            } else {
                self.findings.fault(node.name(), Some(rtype), reason);
            }
        }
        for &algorithm in &self.keys.required_algorithms {
            if !valid_algorithms.contains(&algorithm) && !faulty_algorithms.contains(&algorithm) {
                self.findings.fault(node.name(), Some(rtype), FaultReason::MissingAlgorithm { algorithm });
            }
        }
    }
}
