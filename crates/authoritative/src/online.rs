//! What an answer needs beside the image where records, signatures or proofs are made when asked.
//!
//! The online signer either has the signature or proof that a response needs, or puts it on its list. In that case the response
//! is deferred ([`Answered::is_deferred`](crate::answer::AnswerInfo)): it is built again when everything on the list is made.

use crate::Published;
use crate::response::{Response, Section};
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::denial::Mapping;
use nonesuch_dnssec::denial::proof_piece::{self, GeneratedRecord, ProofPiece};
use nonesuch_dnssec::denial::prove::{DenialTarget, prove_nsec5, prove_online};
use nonesuch_dnssec::online::{Nsec5Prover, OnlineKeys, OnlineSigner, RrsetToSign};
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_zone::Image;
use nonesuch_zone::image::{NodeKind, Template};

/// The workshop as one answer sees it.
pub(crate) struct OnlineContext<'i, 'w> {
    published: &'i Published,
    workshop: &'w mut OnlineSigner,
    now: u32,
    /// What proves all that the answer denies, each piece once.
    pieces: Vec<ProofPiece<'i>>,
    /// Whether something was not there.
    pub(crate) is_deferred: bool,
}

impl<'i, 'w> OnlineContext<'i, 'w> {
    pub(crate) const fn new(published: &'i Published, workshop: &'w mut OnlineSigner, now: u32) -> Self {
        Self { published, workshop, now, pieces: Vec::new(), is_deferred: false }
    }

    const fn image(&self) -> &'i Image {
        self.published.image()
    }

    fn keys(&self) -> Option<&'i OnlineKeys> {
        self.published.online_keys()
    }

    fn prover(&self) -> Option<&'i Nsec5Prover> {
        self.published.prover()
    }

    /// Whether denial is compact (RFC 9824).
    pub(crate) fn is_compact(&self) -> bool {
        self.keys().is_some_and(|keys| keys.mechanism() == Mechanism::Compact)
    }

    /// Adds the signatures over the RRset of `template` that begins at `start` of the response, where the image has none.
    /// `expanded` is the name in lower case that a wildcard was expanded to.
    pub(crate) fn sign(
        &mut self,
        response: &mut Response<'_>,
        section: Section,
        start: usize,
        template: Template<'i>,
        expanded: Option<NameRef<'_>>,
    ) {
        match self.signatures(template, expanded) {
            Some(signatures) => response.add_signatures_over(section, start, signatures),
            None => self.is_deferred |= self.is_to_sign(template),
        }
    }

    /// Adds the signatures over the RRset of `template` alone, whose owner is written as `owner`.
    pub(crate) fn add_signatures(&mut self, response: &mut Response<'_>, template: Template<'i>, owner: u16) {
        match self.signatures(template, None) {
            Some(signatures) => {
                let (owner, ttl) = (owner.to_be_bytes(), template.ttl());
                response.add_signature_records(Section::Answer, &owner, ttl, signatures);
            }
            None => self.is_deferred |= self.is_to_sign(template),
        }
    }

    /// Whether the image has no signatures of an RRset that has some in answers.
    pub(crate) fn is_to_sign(&self, template: Template<'_>) -> bool {
        template.signature_count() == 0 && self.keys().is_some()
    }

    fn signatures(&mut self, template: Template<'i>, expanded: Option<NameRef<'_>>) -> Option<&[u8]> {
        let keys = self.keys().filter(|_| template.signature_count() == 0)?;
        let template = self.as_in_zone(template);
        // RFC 9824 §3.3: what a wildcard is expanded to is signed as if it stood there itself.
        let owner = expanded.filter(|_| keys.mechanism() == Mechanism::Compact);
        let generation = self.published.generation().to_be_bytes();
        let index = template.number().to_be_bytes();
        let identity = [&[0][..], &generation, &index, owner.map_or(&[], NameRef::wire)];
        self.workshop.signatures(keys, None, &identity, self.now, || rrset_of(template, owner))
    }

    /// The RRset as it stands in the zone: the SOA record of negative answers has another TTL, and no other signature.
    fn as_in_zone(&self, template: Template<'i>) -> Template<'i> {
        let image = self.image();
        if !template.is(image.negative_soa()) {
            return template;
        }
        image.find_exact(image.apex()).and_then(|apex| apex.template(Rtype::SOA)).unwrap_or(template)
    }

    /// Adds the signatures over the addresses in a referral that begin at `start`, where they are the zone's own.
    pub(crate) fn sign_glue(&mut self, response: &mut Response<'_>, start: usize, addresses: Template<'i>) {
        if !self.is_to_sign(addresses) {
            return;
        }
        let Some(address) = addresses.expand().into_iter().next() else { return };
        let host = address.owner.view().to_canonical();
        let own = self.image().find_exact(host.view()).filter(|node| node.kind() == NodeKind::Authoritative);
        if let Some(template) = own.and_then(|node| node.template(address.rtype)) {
            self.sign(response, Section::Additional, start, template, None);
        }
    }

    /// Notes what proves a denial.
    pub(crate) fn prove(&mut self, denied: DenialTarget<'i, '_>) {
        let image = self.image();
        let proof = if let Some(keys) = self.keys() {
            prove_online(image, keys.mechanism(), denied)
        } else if let Some(prover) = self.prover() {
            let (workshop, wants) = (&mut *self.workshop, &mut self.is_deferred);
            prove_nsec5(image, denied, &mut |name| {
                let hash = workshop.hash_of(prover, name);
                *wants |= hash.is_none();
                hash
            })
        } else {
            return;
        };
        for piece in proof.into_pieces() {
            proof_piece::push(&mut self.pieces, piece);
        }
    }

    /// Adds what was noted to the authority section.
    pub(crate) fn add_pieces(&mut self, response: &mut Response<'_>) {
        for piece in std::mem::take(&mut self.pieces) {
            match piece {
                ProofPiece::Stored(template) => {
                    response.add(Section::Authority, template, nonesuch_zone::image::OwnerForm::AsRendered);
                }
                ProofPiece::Generated(record) => {
                    self.add_generated(response, Section::Authority, &record, None)
                }
                ProofPiece::Proven { name, ttl } => self.add_proof(response, name.view(), ttl),
            }
        }
    }

    /// Adds a record that was made for the answer, with its signatures where they are wanted; `pointer` names its owner where
    /// that is another one than the signed one, which is a wildcard then.
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
        let made_for = Some(keys.mechanism());
        let (rtype, ttl) = (record.rtype.0.to_be_bytes(), record.ttl.to_be_bytes());
        let identity = [&[1][..], record.owner.wire(), &rtype, &ttl, &record.rdata];
        let rrset = || RrsetToSign {
            owner: record.owner.clone(),
            rtype: record.rtype,
            ttl: record.ttl,
            rdatas: vec![record.rdata.clone()],
            generated_for: made_for,
        };
        match self.workshop.signatures(keys, made_for, &identity, self.now, rrset) {
            Some(signatures) => response.add_signatures_over(section, start, signatures),
            None => self.is_deferred = true,
        }
    }

    fn add_proof(&mut self, response: &mut Response<'_>, name: NameRef<'_>, ttl: u32) {
        let Some(prover) = self.prover() else { return };
        match self.workshop.proof_of(prover, name) {
            Some(proof) => {
                let tag = prover.tag().to_be_bytes();
                let rtype = Rtype::NSEC5PROOF;
                response.add_generated(Section::Authority, name, None, rtype, ttl, &[&tag, proof]);
            }
            None => self.is_deferred = true,
        }
    }

    /// The NSEC record that answers a query for it, where the mechanism makes such records; `denied` is what it would
    /// deny if the query were for another type, and `owner` its owner. A record of that owner that is noted already is the
    /// same one: the records of one owner and type are one RRset, whatever the section (RFC 2181 §5).
    pub(crate) fn nsec_record(
        &mut self,
        denied: DenialTarget<'i, '_>,
        owner: NameRef<'_>,
    ) -> Option<GeneratedRecord> {
        let mechanism = self.keys()?.mechanism();
        if mechanism.mapping() != Mapping::Itself {
            return None;
        }
        let pieces = prove_online(self.image(), mechanism, denied).into_pieces();
        let mut record = pieces.into_iter().find_map(|piece| match piece {
            ProofPiece::Generated(record) if record.rtype == Rtype::NSEC && record.owner.view() == owner => {
                Some(record)
            }
            _ => None,
        })?;
        for piece in &mut self.pieces {
            if let ProofPiece::Generated(present) = piece
                && present.merge(&record)
            {
                record.clone_from(present);
            }
        }
        Some(record)
    }
}

/// What is signed of a template's RRset; `owner` where it is another one than in the zone.
fn rrset_of(template: Template<'_>, owner: Option<NameRef<'_>>) -> RrsetToSign {
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
