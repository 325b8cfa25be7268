//! Responses at a zone cut: referrals, and DS records, which belong to the parent zone (RFC 4035
//! §3.1.4).

use super::{AnswerBuilder, Step};
use crate::response::Section;
use nonesuch_dnssec::denial::prove::{DenialTarget, Proof};
use nonesuch_proto::Rtype;
use nonesuch_server::limits::ResponseCategory as ResponseClass;
use nonesuch_zone::image::{Glue, ImageNode, OwnerForm, Template};

impl<'i> AnswerBuilder<'i, '_, '_, '_> {
    /// Answers a query for DS at a zone cut; DS belongs to the parent side of the cut (RFC 4035
    /// §3.1.4.1).
    pub(super) fn answer_ds(&mut self, cut: ImageNode<'i>, owner: OwnerForm) -> Step {
        (self.class, self.source) = (ResponseClass::Positive, cut.name());
        match cut.template(Rtype::DS) {
            Some(template) => {
                self.add(Section::Answer, template, owner, None);
                self.finish_proof(&Proof::default());
            }
            None => {
                self.class = ResponseClass::Nodata;
                self.deny(DenialTarget::Ds { cut });
            }
        }
        Step::Done(false)
    }

    /// Adds a referral: NS RRset, DS RRset or the proof that no DS RRset exists, and addresses (RFC
    /// 4035 §3.1.4).
    pub(super) fn add_referral(&mut self, cut: ImageNode<'i>) -> Step {
        (self.class, self.source) = (ResponseClass::Referral, cut.name());
        // After an alias, the cut is not a suffix of the query name. Therefore the templates'
        // pointers into the query name are not valid.
        let behind_alias = self.response.has_answer();
        let owner =
            if behind_alias { OwnerForm::WrittenOut } else { self.response.suffix_pointer(cut.name().len()) };
        self.response.authoritative = behind_alias;
        if let Some(servers) = cut.template(Rtype::NS) {
            self.response.add(Section::Authority, servers, owner);
        }
        if self.response.dnssec_ok {
            match cut.template(Rtype::DS) {
                Some(ds) => {
                    self.add(Section::Authority, ds, owner, None);
                    self.finish_proof(&Proof::default());
                }
                None => self.prove_last(DenialTarget::Ds { cut }),
            }
        }
        // RFC 9471 §3.1: a referral that lacks in-domain glue is truncated. Other addresses may be
        // omitted.
        let mut is_truncated = self.response.is_too_large();
        for Glue { addresses, is_required } in cut.glue() {
            if is_truncated {
                break;
            }
            is_truncated = !self.add_addresses(addresses, behind_alias) && is_required;
        }
        Step::Done(is_truncated)
    }

    /// Adds addresses to a referral if they fit. Adds signatures for addresses that are
    /// authoritative in this zone.
    fn add_addresses(&mut self, addresses: Template<'i>, written_out: bool) -> bool {
        let mark = self.response.mark();
        if !self.response.add_if_fits(addresses, written_out) {
            return false;
        }
        if let Some(online) = &mut self.online
            && self.response.dnssec_ok
        {
            online.sign_glue(self.response, mark.end, addresses);
            if self.response.is_too_large() {
                self.response.rewind(mark);
                return false;
            }
        }
        true
    }
}
