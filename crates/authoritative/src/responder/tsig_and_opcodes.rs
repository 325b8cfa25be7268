//! TSIG verification, query access control, and messages with other opcodes: NOTIFY, UPDATE, and
//! opcodes that are not implemented.

use super::{AnswerKind, Batch, ThreadState};
use crate::answer::{Request, error_response};
use crate::zones::{ZoneDatabase, ZonePolicy};
use nonesuch_net::Transport;
use nonesuch_proto::message::{HEADER, Header, Rcode, opcode};
use nonesuch_proto::{NameRef, edns};
use nonesuch_secondary::notify::{self, NotifyRole};
use nonesuch_server::clock::LogInterval;
use nonesuch_server::cookies::CookieStatus;
use nonesuch_server::extended_errors::ExtendedError;
use nonesuch_server::limits::{LimitAction, ResponseCategory};
use nonesuch_server::query::{Query, edns_version};
use nonesuch_server::statistics::{self, TsigResult};
use nonesuch_server::trailer::push_header_only;
use nonesuch_server::tsig::{self, VerifiedRequest};
use std::net::{IpAddr, SocketAddr};

impl ThreadState {
    /// Answers a query with a TSIG record (RFC 8945 §5.2).
    #[cold]
    pub(super) fn answer_signed(
        &mut self,
        batch: &Batch,
        message: &[u8],
        query: &Query<'_>,
        sender: SocketAddr,
        out: &mut Vec<u8>,
    ) -> AnswerKind {
        match self.verify_tsig(batch, message, query.opt.is_some(), sender, out) {
            Ok(verified) => self.answer_query(batch, message, query, verified.as_ref(), sender, out),
            Err(rcode) => self.finish_bare(batch, query.header, rcode, sender, out),
        }
    }

    /// Verifies the TSIG record of a message; returns `None` if it has none. If verification fails,
    /// writes the response to `out` and returns its response code as the error.
    fn verify_tsig(
        &mut self,
        batch: &Batch,
        message: &[u8],
        has_opt: bool,
        sender: SocketAddr,
        out: &mut Vec<u8>,
    ) -> Result<Option<VerifiedRequest>, Rcode> {
        match batch.settings.tsig_keys.verify(message, batch.now) {
            Ok(verified) => {
                if verified.is_some() && !self.is_second_pass {
                    self.statistics.count_tsig(TsigResult::Valid);
                }
                Ok(verified)
            }
            Err(rejection) => {
                let error = rejection.error();
                self.statistics.count_tsig(tsig_result(error));
                self.log_tsig_rejection(batch, &rejection, message, sender);
                let mut opt = Vec::new();
                if has_opt {
                    edns::push_opt(batch.reply_settings.max_udp_size, 0, 0, &mut opt);
                }
                rejection.answer(message, &opt, batch.now, out);
                Err(if error == tsig::TsigError::Form { Rcode::FORMERR } else { Rcode::NOTAUTH })
            }
        }
    }

    /// Returns whether the access list permits the client to query the zone. If not, writes a
    /// REFUSED response to `out` (RFC 8914 §4.19).
    #[cold]
    pub(super) fn check_query_access(
        &mut self,
        policy: &ZonePolicy,
        request: &Request<'_>,
        verified: Option<&VerifiedRequest>,
        sender: IpAddr,
        out: &mut Vec<u8>,
    ) -> bool {
        let Some(list) = &policy.query_access else { return true };
        if list.allows_request(sender, verified.map(VerifiedRequest::name), self.transport == Transport::Tls)
        {
            return true;
        }
        self.statistics.count_prohibited();
        error_response(request, Rcode::REFUSED, Some(ExtendedError::PROHIBITED), false, out);
        false
    }

    /// Counts and rate-limits a bare response, to a message that is not a readable query. A bare
    /// response is a header, possibly with an OPT record.
    #[cold]
    pub(super) fn finish_bare(
        &mut self,
        batch: &Batch,
        header: Header,
        rcode: Rcode,
        sender: SocketAddr,
        out: &mut Vec<u8>,
    ) -> AnswerKind {
        self.finish_bare_with_cookie(batch, header, rcode, sender, CookieStatus::Absent, out)
    }

    /// Counts and rate-limits a response as [`finish_bare`](Self::finish_bare) for a client that
    /// sent a cookie. A client with a valid cookie is not limited, because its address is proven.
    #[cold]
    pub(super) fn finish_bare_with_cookie(
        &mut self,
        batch: &Batch,
        header: Header,
        rcode: Rcode,
        sender: SocketAddr,
        cookie: CookieStatus,
        out: &mut Vec<u8>,
    ) -> AnswerKind {
        let limits = batch.settings.limits.as_ref().filter(|_| self.transport == Transport::Udp);
        if let Some(limits) = limits {
            let action =
                limits.check_response(batch.elapsed_ms, sender.ip(), ResponseCategory::Error, 0, cookie);
            // Truncation is useless here, because the message has no query to repeat over TCP.
            if !matches!(action, LimitAction::Send) {
                self.log_rate_limiting(batch, limits, ResponseCategory::Error, sender);
                self.statistics.count_drop(statistics::DropReason::RateLimited);
                out.clear();
                return AnswerKind::Nothing;
            }
        }
        self.statistics.count_other_message(header.opcode(), rcode);
        AnswerKind::Ready
    }

    /// Answers a message that is not a query: NOTIFY, UPDATE or an opcode that is not implemented.
    #[cold]
    pub(super) fn answer_opcode(
        &mut self,
        batch: &Batch,
        header: Header,
        message: &[u8],
        sender: SocketAddr,
        out: &mut Vec<u8>,
    ) -> AnswerKind {
        let version = edns_version(message);
        let is_other_version = version.is_some_and(|version| version != 0);
        if !matches!(header.opcode(), opcode::NOTIFY | opcode::UPDATE) {
            let rcode = if is_other_version { Rcode::BADVERS } else { Rcode::NOTIMP };
            push_header_only(header, rcode, out);
            push_opt_if_requested(batch, message, rcode, None, out);
            return self.finish_bare(batch, header, rcode, sender, out);
        }
        let verified = match self.verify_tsig(batch, message, version.is_some(), sender, out) {
            Ok(verified) => verified,
            Err(rcode) => return self.finish_bare(batch, header, rcode, sender, out),
        };
        if is_other_version {
            // RFC 6891 §6.1.3: BADVERS for an unknown EDNS version.
            push_header_only(header, Rcode::BADVERS, out);
            push_opt_if_requested(batch, message, Rcode::BADVERS, None, out);
            if let Some(verified) = &verified {
                verified.signer().sign(out, batch.now);
            }
            return self.finish_bare(batch, header, Rcode::BADVERS, sender, out);
        }
        if header.opcode() == opcode::UPDATE {
            refuse_update(&batch.database, header, message, out);
            push_opt_if_requested(batch, message, Rcode::REFUSED, Some(ExtendedError::UPDATE_REFUSED), out);
        } else if !self.answer_notify(batch, message, verified.as_ref(), sender, out) {
            self.statistics.count_drop(statistics::DropReason::Failed);
            out.clear();
            return AnswerKind::Nothing;
        } else {
            push_opt_if_requested(batch, message, Rcode::NOERROR, None, out);
        }
        let rcode = Header::read(out).map_or(Rcode::SERVFAIL, Header::rcode);
        if let Some(verified) = &verified {
            verified.signer().sign(out, batch.now);
        }
        if rcode == Rcode::NOERROR {
            // No rate limit: a primary of many zones may send NOTIFY for all of them at once.
            self.statistics.count_other_message(header.opcode(), rcode);
            return AnswerKind::Ready;
        }
        self.finish_bare(batch, header, rcode, sender, out)
    }

    /// Answers NOTIFY (RFC 1996) and forwards it to the sink. Returns `false` if the sink does not
    /// accept it; the server then sends no response, so that the primary repeats the NOTIFY.
    fn answer_notify(
        &mut self,
        batch: &Batch,
        message: &[u8],
        verified: Option<&VerifiedRequest>,
        sender: SocketAddr,
        out: &mut Vec<u8>,
    ) -> bool {
        let key = verified.map(VerifiedRequest::name);
        let role_of = |apex: NameRef<'_>| {
            let Some(entry) = batch.database.find_exact(apex) else { return NotifyRole::NotServed };
            let state = entry.state();
            let policy = state.policy();
            if !policy.is_secondary {
                return NotifyRole::Primary;
            }
            let is_sender_permitted =
                policy.notify_from.allows_request(sender.ip(), key, self.transport == Transport::Tls);
            if !is_sender_permitted {
                log_refused_notify(apex, sender, key, batch.now);
            }
            NotifyRole::Secondary { is_sender_permitted }
        };
        match (notify::handle(message, sender.ip(), role_of, out), &self.notify_sink) {
            (Some(notify), Some(sink)) => sink(notify),
            _ => true,
        }
    }
}

/// Logs a NOTIFY from a sender that is not permitted (RFC 1996 §3.10). At most one line a second,
/// because any host can cause it.
fn log_refused_notify(zone: NameRef<'_>, peer: SocketAddr, key: Option<NameRef<'_>>, now: u64) {
    static INTERVAL: LogInterval = LogInterval::new();
    // `before` is the number of suppressed lines.
    if let Some(before) = INTERVAL.may_log(now) {
        let key = key.map(tracing::field::display);
        tracing::info!(name: "notify-refused", %zone, %peer, key, before, "NOTIFY refused: the sender is neither a primary of the zone with its TSIG key, nor permitted by the zone's 'notify-from'");
    }
}

/// Answers UPDATE (RFC 2136 §3) with a refusal. Repeats the zone section of the message if it is
/// readable.
fn refuse_update(database: &ZoneDatabase, header: Header, message: &[u8], out: &mut Vec<u8>) {
    let zone = NameRef::split_from(&message[HEADER..]).ok().filter(|_| header.counts[0] == 1);
    let zone = zone.and_then(|(name, _)| Some((name, message.get(HEADER..HEADER + name.len() + 4)?)));
    let Some((name, section)) = zone else {
        return push_header_only(header, Rcode::FORMERR, out);
    };
    let is_served = database.find_enclosing(name.to_canonical().view()).is_some();
    push_header_only(header, if is_served { Rcode::REFUSED } else { Rcode::NOTAUTH }, out);
    out[4..6].copy_from_slice(&1u16.to_be_bytes());
    out.extend_from_slice(section);
}

/// Appends an OPT record if the message has one (RFC 6891 §6.1.1). It contains the upper bits of
/// the response code and `error`.
pub(super) fn push_opt_if_requested(
    batch: &Batch,
    message: &[u8],
    rcode: Rcode,
    error: Option<ExtendedError>,
    out: &mut Vec<u8>,
) {
    let start = out.len();
    if start < HEADER || edns_version(message).is_none() {
        return;
    }
    edns::push_opt(batch.reply_settings.max_udp_size, (rcode.0 >> 4) as u8, 0, out);
    if let Some(error) = error {
        edns::push_extended_error(error.code, error.text, out);
        edns::set_options_length(start, out);
    }
    // The OPT record is the only record after the question.
    out[10..HEADER].copy_from_slice(&1u16.to_be_bytes());
}

/// Returns the result under which statistics count a TSIG error.
const fn tsig_result(error: tsig::TsigError) -> TsigResult {
    match error {
        tsig::TsigError::Form => TsigResult::Malformed,
        tsig::TsigError::BadKey => TsigResult::BadKey,
        tsig::TsigError::BadSig => TsigResult::BadSignature,
        tsig::TsigError::BadTime => TsigResult::BadTime,
        tsig::TsigError::BadTrunc => TsigResult::BadTruncation,
    }
}
