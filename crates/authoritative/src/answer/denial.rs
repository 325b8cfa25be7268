//! Negative answers and denial proofs (RFC 4035 §3.1.3, RFC 5155 §7.2, RFC 9824).

use super::AnswerBuilder;
use crate::response::Section;
use nonesuch_dnssec::denial::prove::{DenialTarget, Proof, is_accepted_by_validators, prove};
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_server::limits::ResponseCategory;
use nonesuch_zone::Image;
use nonesuch_zone::image::{ImageNode, OwnerForm, QUESTION_POINTER};

impl<'i> AnswerBuilder<'i, '_, '_, '_> {
    /// Denies that a name exists. With compact denial, the response claims that the name exists
    /// (RFC 9824 §3.1); the response code is NXDOMAIN only if the client sets the CO flag or
    /// requests no DNSSEC records (§4, §5.1).
    pub(super) fn deny_name(&mut self, name: NameRef<'_>, encloser: ImageNode<'i>, owner: OwnerForm) {
        (self.category, self.source_name) = (ResponseCategory::Nxdomain, self.image.apex());
        let denied = DenialTarget::NxDomain { name, encloser };
        let compact = self.online.as_mut().filter(|online| online.is_compact() && self.response.dnssec_ok);
        if compact.is_none() || self.accepts_compact_nxdomain {
            self.response.rcode = Rcode::NXDOMAIN;
        } else if let (Some(online), Rtype::NSEC) = (compact, self.qtype)
            && let Some(record) = online.nsec_record(denied, name)
        {
            // The claimed name owns this NSEC record, which therefore answers a query for NSEC.
            let pointer = if let OwnerForm::At(pointer) = owner { pointer } else { QUESTION_POINTER };
            online.add_generated(self.response, Section::Answer, &record, Some(pointer));
            return self.add_proofs(&Proof::default());
        }
        self.deny(denied);
    }

    /// Adds the SOA record of a negative answer and, if the client requests DNSSEC records, the
    /// proof.
    pub(super) fn deny(&mut self, denied: DenialTarget<'i, '_>) {
        let owner = self.response.suffix_pointer(self.image.apex().len());
        self.add(Section::Authority, self.image.negative_soa(), owner, None);
        self.prove_last_name(denied);
    }

    /// Returns the proof of a denial from the image. Proofs that are generated online are noted,
    /// and added at the end of the response. Returns an empty proof if the client requests no
    /// DNSSEC records, if the response is truncated anyway, or if the zone was not verified and its
    /// records do not prove the denial.
    pub(super) fn prove(&mut self, denied: DenialTarget<'i, '_>) -> Proof<'i> {
        if !self.response.dnssec_ok || self.response.is_too_large() {
            return Proof::default();
        }
        match &mut self.online {
            None if self.image.is_chain_verified() || !self.image.is_signed() => prove(self.image, denied),
            None => prove_unverified(self.image, denied, self.qtype),
            Some(online) => {
                online.note_denial(denied);
                Proof::default()
            }
        }
    }

    /// Proves the denial for the last name of the alias chain, and adds all proofs.
    pub(super) fn prove_last_name(&mut self, denied: DenialTarget<'i, '_>) {
        let proof = self.prove(denied);
        self.add_proofs(&proof);
    }

    /// Adds all proofs to the authority section: `last`, the proof for the last name of the alias
    /// chain, then the proofs for the aliases before it, then the noted proofs that are generated
    /// online. `last` is empty if the last name needs no proof.
    pub(super) fn add_proofs(&mut self, last: &Proof<'i>) {
        if self.response.is_too_large() {
            return;
        }
        for template in last.templates() {
            self.response.add(Section::Authority, template, OwnerForm::AsRendered);
        }
        if !self.alias_proofs.is_empty() {
            self.add_alias_proofs(last);
        }
        if let Some(online) = &mut self.online {
            online.add_noted_pieces(self.response);
        }
    }

    /// Adds the proofs for the aliases before the last name, without the records that `last`
    /// contains.
    #[cold]
    fn add_alias_proofs(&mut self, last: &Proof<'i>) {
        let aliases = std::mem::take(&mut self.alias_proofs);
        for (index, template) in aliases.iter().enumerate() {
            let is_duplicate = last.templates().any(|other| other.is_same(*template))
                || aliases[..index].iter().any(|other| other.is_same(*template));
            if !is_duplicate {
                self.response.add(Section::Authority, *template, OwnerForm::AsRendered);
            }
        }
    }
}

/// Proves a denial as [`prove`] does, from a chain that was not verified. Returns an empty proof if
/// a validator would reject it.
#[cold]
fn prove_unverified<'i>(image: &'i Image, denied: DenialTarget<'i, '_>, qtype: Rtype) -> Proof<'i> {
    let proof = prove(image, denied);
    if is_accepted_by_validators(image, &proof, denied, qtype) { proof } else { Proof::default() }
}
