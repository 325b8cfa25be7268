//! Requests for transfers (AXFR, IXFR): starts a stream of messages, or refuses the transfer.

use super::{AnswerKind, Batch, RateLimitKey, ThreadState};
use crate::answer::{Request, error_response};
use crate::transfer::outbound::{self, TransferAnswer, ZoneToSend};
use crate::zones::{ZoneEntry, ZonePolicy, ZoneState};
use nonesuch_net::Transport;
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Class, Rtype};
use nonesuch_server::extended_errors::ExtendedError;
use nonesuch_server::trailer::Trailer;
use nonesuch_server::tsig::VerifiedRequest;
use std::net::{IpAddr, SocketAddr};

impl ThreadState {
    /// Answers AXFR and IXFR.
    #[cold]
    pub(super) fn answer_transfer(
        &mut self,
        batch: &Batch,
        message: &[u8],
        request: &Request<'_>,
        verified: Option<&VerifiedRequest>,
        sender: SocketAddr,
        out: &mut Vec<u8>,
    ) -> AnswerKind {
        // Rate limiting is first, because the source address of a UDP message can be forged.
        if self.transport == Transport::Udp && verified.is_none() {
            if !self.apply_rate_limit(batch, request, RateLimitKey::ERROR, sender, out) {
                return AnswerKind::Nothing;
            }
            // Rate limiting has written another response, which is truncated or has BADCOOKIE.
            if !out.is_empty() {
                self.statistics.count_response(request.query, message, out);
                return AnswerKind::Ready;
            }
        }
        let entry = batch.database.find_exact(request.name).filter(|_| request.query.class == Class::IN);
        if let Some(entry) = entry.filter(|_| batch.settings.counts_zone_queries) {
            self.count_zone_query(entry);
        }
        let state = entry.map(|entry| entry.state());
        let state = state.as_deref().map(|state| &**state);
        let state_error = match state {
            Some(ZoneState::NotReady(_)) => Some(ExtendedError::NOT_READY),
            Some(ZoneState::Failed(_) | ZoneState::Expired(_)) => Some(ExtendedError::INVALID_DATA),
            Some(ZoneState::Serving(_)) | None => None,
        };
        if state_error.is_some() {
            error_response(request, Rcode::SERVFAIL, state_error, false, out);
            return self.finish_without_records(batch, message, request, verified, out);
        }
        let zone = state.and_then(ZoneState::serving).map(|zone| ZoneToSend {
            contents: zone.contents(),
            journal: zone.journal().map(|journal| &**journal),
            transfer_access: &zone.policy().transfer_access,
            is_signed_online: zone.published().is_signed_online(),
        });
        if let Some((entry, zone)) = entry.zip(state.and_then(ZoneState::serving)) {
            let serial = outbound::requested_serial(message, request.query);
            self.record_secondary_query(batch, entry, zone.policy(), request, sender.ip(), serial);
        }
        let mut opt = Vec::new();
        match entry.filter(|_| request.trailer.reply.wants_expire()) {
            Some(entry) => {
                Request { trailer: &trailer_with_expiry(entry, request), ..*request }.push_opt_alone(&mut opt)
            }
            None => request.push_opt_alone(&mut opt),
        }
        let transfer = outbound::OutboundRequest {
            message,
            query: request.query,
            is_datagram: self.transport == Transport::Udp,
            tls: self.tls_session,
            client: sender,
            tsig: verified,
            opt: &opt,
            max_datagram_octets: request.trailer.max_datagram_octets(request.query),
        };
        match outbound::begin(&transfer, zone.as_ref(), &self.outgoing_transfers, out) {
            TransferAnswer::Stream(stream) => {
                self.statistics.count_stream(request.query, message);
                self.response_stream = Some(stream);
                AnswerKind::Stream
            }
            TransferAnswer::Single => {
                self.statistics.count_response(request.query, message, out);
                AnswerKind::Ready
            }
            TransferAnswer::Truncate => {
                error_response(request, Rcode::NOERROR, None, true, out);
                self.finish_without_records(batch, message, request, verified, out)
            }
            TransferAnswer::Refuse(refusal) => {
                error_response(request, refusal.rcode(), refusal.extended_error(), false, out);
                self.finish_without_records(batch, message, request, verified, out)
            }
        }
    }

    /// Records a query for the apex, if the client is a secondary that receives NOTIFY for the
    /// zone. `serial` is the serial in an IXFR query; `None` for other queries.
    #[cold]
    pub(super) fn record_secondary_query(
        &self,
        batch: &Batch,
        entry: &ZoneEntry,
        policy: &ZonePolicy,
        request: &Request<'_>,
        client: IpAddr,
        serial: Option<u32>,
    ) {
        let client = client.to_canonical();
        let is_notified =
            || policy.also_notify.iter().any(|remote| remote.address.ip().to_canonical() == client);
        if entry.apex().view() == request.name && is_notified() {
            self.secondary_statuses.record_query(entry.apex(), client, serial, batch.now);
        }
    }

    /// Signs and counts a response without records.
    fn finish_without_records(
        &mut self,
        batch: &Batch,
        message: &[u8],
        request: &Request<'_>,
        verified: Option<&VerifiedRequest>,
        out: &mut Vec<u8>,
    ) -> AnswerKind {
        if let Some(verified) = verified {
            verified.signer().sign(out, batch.now);
        }
        self.statistics.count_response(request.query, message, out);
        AnswerKind::Ready
    }
}

/// Returns the response trailer for a query with the EXPIRE option. The server sends the time to
/// secondaries: in responses to SOA, AXFR and IXFR queries for the apex (RFC 7314 §4).
#[cold]
pub(super) fn trailer_with_expiry<'s>(entry: &ZoneEntry, request: &Request<'s>) -> Trailer<'s> {
    let is_query_of_secondaries = matches!(request.query.qtype, Rtype::SOA | Rtype::AXFR | Rtype::IXFR);
    let seconds = entry
        .seconds_until_expiry()
        .filter(|_| is_query_of_secondaries && entry.apex().view() == request.name);
    Trailer { reply: request.trailer.reply.with_expire(seconds), ..*request.trailer }
}
