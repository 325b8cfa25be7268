//! Deferred answers: limits for online work, generating signatures and proofs, and SERVFAIL if
//! generating fails.

use super::{Batch, DeferredWork, ThreadState};
use crate::answer::{Request, error_response};
use nonesuch_dnssec::online::{Checkpoint, ZoneSigner};
use nonesuch_net::Transport;
use nonesuch_proto::MAX_NAME;
use nonesuch_proto::message::Rcode;
use nonesuch_server::cookies::CookieStatus;
use nonesuch_server::extended_errors::ExtendedError;
use nonesuch_server::limits::LimitAction;
use nonesuch_server::query::Query;
use nonesuch_server::trailer::Trailer;
use std::net::IpAddr;
use std::time::Instant;

impl ThreadState {
    /// Returns whether the limits permit the online work that this answer has queued since
    /// `checkpoint`. If so, reserves time of the online share for it. If not, removes this work
    /// from the queue, and writes a truncated or REFUSED response to `out`.
    pub(super) fn admit_online_work(
        &mut self,
        batch: &Batch,
        request: &Request<'_>,
        client: IpAddr,
        checkpoint: Checkpoint,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(limits) = &batch.settings.limits else { return true };
        let operations = self.online_signer.pending_count().saturating_sub(checkpoint.pending_count());
        let is_address_proven =
            self.transport != Transport::Udp || request.trailer.reply.cookie_status() == CookieStatus::Valid;
        if limits.admit_online(&mut self.online_share, client, is_address_proven, operations) {
            return true;
        }
        self.online_signer.rollback(checkpoint);
        self.statistics.count_over_budget();
        let truncate = matches!(limits.over_budget_action(self.transport), LimitAction::Truncate);
        let rcode = if truncate { Rcode::NOERROR } else { Rcode::REFUSED };
        error_response(request, rcode, Some(ExtendedError::OVER_BUDGET), truncate, out);
        false
    }

    /// Generates signatures and proofs for the deferred answers of the batch. `now` is the time of
    /// signing, in seconds since 1970 modulo 2^32. When the batch ends, the online share is charged
    /// with the time from `instant` until the answers are built and sent.
    pub(super) fn generate_deferred(&mut self, now: u32, instant: Instant) {
        self.is_second_pass = true;
        let work = self.deferred_work.get_or_insert(DeferredWork { started_at: instant, operations: 0 });
        work.operations += self.online_signer.pending_count();
        let zones = std::mem::take(&mut self.deferred_zones);
        let signers: Vec<ZoneSigner<'_>> = zones.iter().map(|zone| zone.published().signer()).collect();
        self.online_signer.generate_pending(&signers, now);
    }

    /// Answers SERVFAIL because a required signature or proof could not be generated. Returns
    /// `false` if no response is sent.
    pub(super) fn answer_servfail(&mut self, batch: &Batch, message: &[u8], out: &mut Vec<u8>) -> bool {
        let Ok(query) = Query::parse(message) else { return false };
        let mut name_buffer = [0; MAX_NAME];
        let trailer = Trailer { settings: &batch.reply_settings, ..Trailer::PLAIN };
        let request = Request::new(&query, &mut name_buffer, self.transport, &trailer);
        error_response(&request, Rcode::SERVFAIL, None, false, out);
        if let (Some(_), Ok(Some(verified))) =
            (query.tsig_offset, batch.settings.tsig_keys.verify(message, batch.now))
        {
            verified.signer().sign(out, batch.now);
        }
        self.statistics.count_response(&query, message, out);
        true
    }
}
