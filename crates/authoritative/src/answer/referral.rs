//! Responses at a zone cut: referrals, and DS records, which belong to the parent zone (RFC 4035
//! §3.1.4).

use super::{AnswerBuilder, LookupStep};
use crate::response::Section;
use nonesuch_dnssec::denial::prove::{DenialTarget, Proof};
use nonesuch_proto::Rtype;
use nonesuch_server::limits::ResponseCategory;
use nonesuch_zone::image::{Glue, ImageNode, OwnerForm, Template};

impl<'i> AnswerBuilder<'i, '_, '_, '_> {
    /// Answers a query for DS at a zone cut; DS belongs to the parent side of the cut (RFC 4035
    /// §3.1.4.1).
    pub(super) fn answer_ds(&mut self, cut: ImageNode<'i>, owner: OwnerForm) -> LookupStep {
        (self.category, self.source_name) = (ResponseCategory::Positive, cut.name());
        match cut.template(Rtype::DS) {
            Some(template) => {
                self.add(Section::Answer, template, owner, None);
                self.add_proofs(&Proof::default());
            }
            None => {
                self.category = ResponseCategory::Nodata;
                self.deny(DenialTarget::NoDs { cut });
            }
        }
        LookupStep::Complete
    }

    /// Adds a referral: NS RRset, DS RRset or the proof that no DS RRset exists, and addresses (RFC
    /// 4035 §3.1.4).
    pub(super) fn add_referral(&mut self, cut: ImageNode<'i>) -> LookupStep {
        (self.category, self.source_name) = (ResponseCategory::Referral, cut.name());
        // After an alias, the cut is not a suffix of the query name. Therefore the templates'
        // pointers into the query name are not valid.
        let is_after_alias = self.response.has_answer();
        let owner = if is_after_alias {
            OwnerForm::WrittenOut
        } else {
            self.response.suffix_pointer(cut.name().len())
        };
        // AA refers to the first owner name in the answer section (RFC 1035 §4.1.1), which is the
        // alias.
        self.response.authoritative = is_after_alias;
        if let Some(servers) = cut.template(Rtype::NS) {
            self.response.add(Section::Authority, servers, owner);
        }
        if self.response.dnssec_ok {
            match cut.template(Rtype::DS) {
                Some(ds) => {
                    self.add(Section::Authority, ds, owner, None);
                    self.add_proofs(&Proof::default());
                }
                None => self.prove_last_name(DenialTarget::NoDs { cut }),
            }
        }
        // RFC 9471 §3.1: a referral that lacks in-domain glue is truncated. Other addresses may be
        // omitted.
        let mut must_truncate = self.response.is_too_large();
        for Glue { addresses, is_required } in cut.glue() {
            if must_truncate {
                break;
            }
            must_truncate = !self.add_addresses(addresses, is_after_alias) && is_required;
        }
        if must_truncate { LookupStep::Truncate } else { LookupStep::Complete }
    }

    /// Adds addresses to a referral if they fit, and signatures for addresses that are
    /// authoritative in this zone. Returns whether they fit. `is_after_alias` is set if the cut is
    /// not a suffix of the query name; all names are then written in full.
    fn add_addresses(&mut self, addresses: Template<'i>, is_after_alias: bool) -> bool {
        let checkpoint = self.response.checkpoint();
        if !self.response.add_if_fits(addresses, is_after_alias) {
            return false;
        }
        if let Some(online) = &mut self.online
            && self.response.dnssec_ok
        {
            online.sign_referral_addresses(self.response, checkpoint.end, addresses);
            if self.response.is_too_large() {
                self.response.rewind(checkpoint);
                return false;
            }
        }
        true
    }
}
