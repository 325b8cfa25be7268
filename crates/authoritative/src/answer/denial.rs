//! Negative answers, and the proofs that answers need (RFC 4035 §3.1.3, RFC 5155 §7.2, RFC 9824).

use super::AnswerBuilder;
use crate::response::Section;
use nonesuch_dnssec::denial::prove::{DenialTarget, Proof, is_accepted, prove};
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_server::limits::ResponseCategory as ResponseClass;
use nonesuch_zone::Image;
use nonesuch_zone::image::{ImageNode, OwnerForm, TO_QUESTION};

impl<'i> AnswerBuilder<'i, '_, '_, '_> {
    /// Denies that a name exists. With compact denial it does, in the words of the response (RFC 9824 §3.1): the response
    /// code is NXDOMAIN where the sender understands that, or takes no DNSSEC records (§4, §5.1).
    pub(super) fn deny_name(&mut self, name: NameRef<'_>, encloser: ImageNode<'i>, owner: OwnerForm) {
        (self.class, self.source) = (ResponseClass::Nxdomain, self.image.apex());
        let denied = DenialTarget::Name { name, encloser };
        let compact = self.online.as_mut().filter(|online| online.is_compact() && self.response.dnssec_ok);
        if compact.is_none() || self.compact_ok {
            self.response.rcode = Rcode::NXDOMAIN;
        } else if let (Some(online), Rtype::NSEC) = (compact, self.qtype)
            && let Some(record) = online.nsec_record(denied, name)
        {
            let pointer = if let OwnerForm::At(pointer) = owner { pointer } else { TO_QUESTION };
            online.add_generated(self.response, Section::Answer, &record, Some(pointer));
            return self.finish_proof(&Proof::default());
        }
        self.deny(denied);
    }

    /// Adds a negative answer's SOA and, where DNSSEC records are wanted, the proof.
    pub(super) fn deny(&mut self, denied: DenialTarget<'i, '_>) {
        let owner = self.response.suffix_pointer(self.image.apex().len());
        self.add(Section::Authority, self.image.negative_soa(), owner, None);
        self.prove_last(denied);
    }

    /// Returns the proof of a denial from the image, and notes records generated online for the end. Proves nothing where the
    /// client wants no DNSSEC records or the response is truncated anyway, or where the records of a zone that was not verified
    /// do not prove it.
    pub(super) fn prove(&mut self, denied: DenialTarget<'i, '_>) -> Proof<'i> {
        if !self.response.dnssec_ok || self.response.is_too_large() {
            return Proof::default();
        }
        match &mut self.online {
            None if self.image.is_chain_verified() || !self.image.is_signed() => prove(self.image, denied),
            None => prove_unverified(self.image, denied, self.qtype),
            Some(online) => {
                online.prove(denied);
                Proof::default()
            }
        }
    }

    /// Proves what the last name needs, and ends the proofs.
    pub(super) fn prove_last(&mut self, denied: DenialTarget<'i, '_>) {
        let proof = self.prove(denied);
        self.finish_proof(&proof);
    }

    /// Adds the proof of the last name, then what the aliases before it need and it does not have.
    pub(super) fn finish_proof(&mut self, last: &Proof<'i>) {
        if self.response.is_too_large() {
            return;
        }
        for template in last.templates() {
            self.response.add(Section::Authority, template, OwnerForm::AsRendered);
        }
        if !self.proved.is_empty() {
            self.add_alias_proofs(last);
        }
        if let Some(online) = &mut self.online {
            online.add_pieces(self.response);
        }
    }

    /// Adds what the aliases before the last name need and its proof does not have.
    #[cold]
    fn add_alias_proofs(&mut self, last: &Proof<'i>) {
        let aliases = std::mem::take(&mut self.proved);
        for (index, template) in aliases.iter().enumerate() {
            let is_there = last.templates().any(|other| other.is(*template))
                || aliases[..index].iter().any(|other| other.is(*template));
            if !is_there {
                self.response.add(Section::Authority, *template, OwnerForm::AsRendered);
            }
        }
    }
}

/// As [`prove`], from a chain that was not verified: empty where a validator would refuse the proof.
#[cold]
fn prove_unverified<'i>(image: &'i Image, denied: DenialTarget<'i, '_>, qtype: Rtype) -> Proof<'i> {
    let proof = prove(image, denied);
    if is_accepted(image, &proof, denied, qtype) { proof } else { Proof::default() }
}
