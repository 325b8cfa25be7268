//! Deferred answers: limits for online work, generating signatures and proofs, and SERVFAIL if
//! generating fails.

use super::{Batch, DeferredWork, Thread};
use crate::answer::{Request, error_response};
use nonesuch_dnssec::online::Checkpoint;
use nonesuch_proto::MAX_NAME;
use nonesuch_proto::message::Rcode;
use nonesuch_server::cookies::CookieStatus;
use nonesuch_server::extended_errors::ExtendedError;
use nonesuch_server::limits::LimitAction;
use nonesuch_server::query::Query;
use nonesuch_server::trailer::{Trailer, Transport};
use std::net::IpAddr;
use std::time::Instant;

impl Thread {
    /// Returns whether the limits permit the online work for this answer. If not, writes the
    /// response for this case to `out`.
    pub(super) fn may_generate(
        &mut self,
        batch: &Batch,
        request: &Request<'_>,
        client: IpAddr,
        before: Checkpoint,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(limits) = &batch.settings.limits else { return true };
        let operations = self.online_signer.pending_count().saturating_sub(before.pending_count());
        let is_proven =
            self.transport != Transport::Udp || request.trailer.reply.cookie() == CookieStatus::Valid;
        if limits.online(&mut self.share, client, is_proven, operations) {
            return true;
        }
        self.online_signer.rollback(before);
        self.statistics.count_over_budget();
        let truncate = matches!(limits.over_budget(self.transport), LimitAction::Truncate);
        let rcode = if truncate { Rcode::NOERROR } else { Rcode::REFUSED };
        error_response(request, rcode, Some(ExtendedError::OVER_BUDGET), truncate, out);
        false
    }

    /// Generates signatures and proofs for the deferred answers of the batch, with signatures of
    /// the time `now`. The online share is charged when the batch ends: with the time from
    /// `instant` until the answers are built and sent.
    pub(super) fn generate_deferred(&mut self, now: u32, instant: Instant) {
        self.is_second_pass = true;
        let deferred = self.deferred.get_or_insert(DeferredWork { begun: instant, operations: 0 });
        deferred.operations += self.online_signer.pending_count();
        for zone in std::mem::take(&mut self.deferred_zones) {
            zone.published().generate_deferred(&mut self.online_signer, now);
        }
    }

    /// Answers SERVFAIL because a required signature or proof could not be generated. Returns
    /// `false` if no response is sent.
    pub(super) fn answer_servfail(&mut self, batch: &Batch, message: &[u8], out: &mut Vec<u8>) -> bool {
        let Ok(query) = Query::parse(message) else { return false };
        let mut room = [0; MAX_NAME];
        let trailer = Trailer { settings: &batch.reply, ..Trailer::PLAIN };
        let request = Request::new(&query, &mut room, self.transport, &trailer);
        error_response(&request, Rcode::SERVFAIL, None, false, out);
        if let (Some(_), Ok(Some(verified))) = (query.tsig, batch.settings.keys.verify(message, batch.now)) {
            verified.signer().sign(out, batch.now);
        }
        self.count(&query, message, out);
        true
    }
}
