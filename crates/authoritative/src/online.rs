//! Records, signatures and proofs that the server generates online for an answer.
//!
//! [`OnlineSigner`] either returns the signature or proof that a response needs, or queues it. If
//! it queues one, the response is deferred
//! ([`AnswerInfo::is_deferred`](crate::answer::AnswerInfo)): it is built again when the signer has
//! processed the queue.

use crate::Published;
use crate::response::{Response, Section};
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::denial::NameHash;
use nonesuch_dnssec::denial::proof_piece::{self, GeneratedRecord, ProofPiece};
use nonesuch_dnssec::denial::prove::{DenialTarget, prove_nsec5, prove_online};
use nonesuch_dnssec::online::{Nsec5Prover, OnlineKeys, OnlineSigner, RrsetToSign};
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_zone::Image;
use nonesuch_zone::image::{NodeKind, Template};

/// First octet of the identity of an RRset in the zone, under which the signer caches its
/// signatures.
const IN_ZONE: u8 = 0;
/// First octet of the identity of a generated RRset.
const GENERATED: u8 = 1;

/// Access to the [`OnlineSigner`] while one answer is built.
pub(crate) struct OnlineContext<'i, 'w> {
    published: &'i Published,
    signer: &'w mut OnlineSigner,
    /// Time of signing, in seconds since 1970 modulo 2^32.
    now: u32,
    /// Records and proofs for all denials in the answer, without duplicates.
    noted_pieces: Vec<ProofPiece<'i>>,
    /// Whether a signature, hash or proof was not available.
    pub(crate) is_deferred: bool,
}

impl<'i, 'w> OnlineContext<'i, 'w> {
    pub(crate) const fn new(published: &'i Published, signer: &'w mut OnlineSigner, now: u32) -> Self {
        Self { published, signer, now, noted_pieces: Vec::new(), is_deferred: false }
    }

    const fn image(&self) -> &'i Image {
        self.published.image()
    }

    fn keys(&self) -> Option<&'i OnlineKeys> {
        self.published.online_keys()
    }

    fn prover(&self) -> Option<&'i Nsec5Prover> {
        self.published.nsec5_prover()
    }

    /// Returns whether the zone uses compact denial (RFC 9824).
    pub(crate) fn is_compact(&self) -> bool {
        self.keys().is_some_and(|keys| keys.mechanism() == Mechanism::Compact)
    }

    /// Adds the signatures over the RRset of `template`, which begins at offset `start` of the
    /// response, if the image does not contain them. `expanded_name` is the name in lower case to
    /// which a wildcard was expanded.
    pub(crate) fn add_missing_signatures(
        &mut self,
        response: &mut Response<'_>,
        section: Section,
        start: usize,
        template: Template<'i>,
        expanded_name: Option<NameRef<'_>>,
    ) {
        match self.signatures(template, expanded_name) {
            Some(signatures) => response.add_signatures_over(section, start, signatures),
            None => self.is_deferred |= self.is_signed_online(template),
        }
    }

    /// Adds only the signatures over the RRset of `template`; `owner` is the pointer that encodes
    /// their owner.
    pub(crate) fn add_signatures(&mut self, response: &mut Response<'_>, template: Template<'i>, owner: u16) {
        match self.signatures(template, None) {
            Some(signatures) => {
                let (owner, ttl) = (owner.to_be_bytes(), template.ttl());
                response.add_signature_records(Section::Answer, &owner, ttl, signatures);
            }
            None => self.is_deferred |= self.is_signed_online(template),
        }
    }

    /// Returns whether the RRset has no signatures in the image and is signed online.
    pub(crate) fn is_signed_online(&self, template: Template<'_>) -> bool {
        template.signature_count() == 0 && self.keys().is_some()
    }

    /// Returns the signatures over the RRset of `template`, in the form of
    /// [`OnlineSigner::signatures`]. Returns `None` if the RRset is not signed online, or if the
    /// signer has only queued the signatures.
    fn signatures(&mut self, template: Template<'i>, expanded_name: Option<NameRef<'_>>) -> Option<&[u8]> {
        let keys = self.keys().filter(|_| template.signature_count() == 0)?;
        let template = self.with_zone_ttl(template);
        // RFC 9824 §3.3: records expanded from a wildcard are signed with the query name as owner.
        let owner = expanded_name.filter(|_| keys.mechanism() == Mechanism::Compact);
        let generation = self.published.generation().to_be_bytes();
        let index = template.id().to_be_bytes();
        let identity = [&[IN_ZONE][..], &generation, &index, owner.map_or(&[], NameRef::wire)];
        self.signer.signatures(keys, None, &identity, self.now, || rrset_to_sign(template, owner))
    }

    /// Returns the RRset with its TTL in the zone. The SOA record of negative answers has a
    /// different TTL but the same signature.
    fn with_zone_ttl(&self, template: Template<'i>) -> Template<'i> {
        let image = self.image();
        if !template.is_same(image.negative_soa()) {
            return template;
        }
        image.find_exact(image.apex()).and_then(|apex| apex.template(Rtype::SOA)).unwrap_or(template)
    }

    /// Adds the signatures over addresses in a referral, which begin at offset `start`, if they are
    /// authoritative in this zone.
    pub(crate) fn sign_referral_addresses(
        &mut self,
        response: &mut Response<'_>,
        start: usize,
        addresses: Template<'i>,
    ) {
        if !self.is_signed_online(addresses) {
            return;
        }
        let Some(address) = addresses.expand().into_iter().next() else { return };
        let host = address.owner.view().to_canonical();
        let own_node =
            self.image().find_exact(host.view()).filter(|node| node.kind() == NodeKind::Authoritative);
        if let Some(template) = own_node.and_then(|node| node.template(address.rtype)) {
            self.add_missing_signatures(response, Section::Additional, start, template, None);
        }
    }

    /// Notes the records and proofs for a denial. [`add_noted_pieces`](Self::add_noted_pieces) adds
    /// them to the response.
    pub(crate) fn note_denial(&mut self, denied: DenialTarget<'i, '_>) {
        let image = self.image();
        let proof = if let Some(keys) = self.keys() {
            prove_online(image, keys.mechanism(), denied)
        } else if let Some(prover) = self.prover() {
            let (signer, is_deferred) = (&mut *self.signer, &mut self.is_deferred);
            prove_nsec5(image, denied, &mut |name| {
                let hash = signer.hash_of(prover, name);
                *is_deferred |= hash.is_none();
                hash
            })
        } else {
            return;
        };
        for piece in proof.into_pieces() {
            proof_piece::add_or_merge(&mut self.noted_pieces, piece);
        }
    }

    /// Adds the noted records and proofs to the authority section.
    pub(crate) fn add_noted_pieces(&mut self, response: &mut Response<'_>) {
        for piece in std::mem::take(&mut self.noted_pieces) {
            match piece {
                ProofPiece::Stored(template) => {
                    response.add(Section::Authority, template, nonesuch_zone::image::OwnerForm::AsRendered);
                }
                ProofPiece::Generated(record) => {
                    self.add_generated(response, Section::Authority, &record, None)
                }
                ProofPiece::Proven { name, ttl } => self.add_nsec5_proof(response, name.view(), ttl),
            }
        }
    }

    /// Adds a record that was generated for this answer, with its signatures if the client requests
    /// DNSSEC records. `pointer` encodes the owner if it differs from the signed owner; the signed
    /// owner is then a wildcard.
    pub(crate) fn add_generated(
        &mut self,
        response: &mut Response<'_>,
        section: Section,
        record: &GeneratedRecord,
        pointer: Option<u16>,
    ) {
        let owner = record.owner.view();
        let start =
            response.add_generated(section, owner, pointer, record.rtype, record.ttl, &[&record.rdata]);
        let Some(keys) = self.keys().filter(|_| response.dnssec_ok) else { return };
        let generated_for = Some(keys.mechanism());
        let (rtype, ttl) = (record.rtype.0.to_be_bytes(), record.ttl.to_be_bytes());
        let identity = [&[GENERATED][..], record.owner.wire(), &rtype, &ttl, &record.rdata];
        let rrset = || RrsetToSign {
            owner: record.owner.clone(),
            rtype: record.rtype,
            ttl: record.ttl,
            rdatas: vec![record.rdata.clone()],
            generated_for,
        };
        match self.signer.signatures(keys, generated_for, &identity, self.now, rrset) {
            Some(signatures) => response.add_signatures_over(section, start, signatures),
            None => self.is_deferred = true,
        }
    }

    /// Adds the NSEC5PROOF record of a name to the authority section.
    fn add_nsec5_proof(&mut self, response: &mut Response<'_>, name: NameRef<'_>, ttl: u32) {
        let Some(prover) = self.prover() else { return };
        match self.signer.proof_of(prover, name) {
            Some(proof) => {
                let tag = prover.tag().to_be_bytes();
                let rtype = Rtype::NSEC5PROOF;
                response.add_generated(Section::Authority, name, None, rtype, ttl, &[&tag, proof]);
            }
            None => self.is_deferred = true,
        }
    }

    /// Returns the NSEC record that answers a query for NSEC, or `None` if the mechanism does not
    /// generate NSEC records. `denied` is the denial that a query for a type other than NSEC would
    /// need; `owner` is the owner of the record. If a record with the same owner is already noted,
    /// the two are merged: records with the same owner and type are one RRset in all sections (RFC
    /// 2181 §5).
    pub(crate) fn nsec_record(
        &mut self,
        denied: DenialTarget<'i, '_>,
        owner: NameRef<'_>,
    ) -> Option<GeneratedRecord> {
        let mechanism = self.keys()?.mechanism();
        if mechanism.name_hash() != NameHash::Unhashed {
            return None;
        }
        let pieces = prove_online(self.image(), mechanism, denied).into_pieces();
        let mut record = pieces.into_iter().find_map(|piece| match piece {
            ProofPiece::Generated(record) if record.rtype == Rtype::NSEC && record.owner.view() == owner => {
                Some(record)
            }
            _ => None,
        })?;
        for piece in &mut self.noted_pieces {
            if let ProofPiece::Generated(present) = piece
                && present.merge(&record)
            {
                record.clone_from(present);
            }
        }
        Some(record)
    }
}

/// Returns the RRset of a template for signing. `owner` replaces the owner name in the zone, unless
/// it is `None`.
fn rrset_to_sign(template: Template<'_>, owner: Option<NameRef<'_>>) -> RrsetToSign {
    let records = template.expand();
    let in_zone = records.first().map(|record| record.owner.view());
    RrsetToSign {
        owner: owner.or(in_zone).unwrap_or(NameRef::ROOT).to_canonical(),
        rtype: template.rtype(),
        ttl: template.ttl(),
        rdatas: records.into_iter().map(|record| record.rdata).collect(),
        generated_for: None,
    }
}
