//! The log throttle for events that any client can cause at will. Each of these limits permits one
//! line per second:
//!
//! - for each TSIG error, one limit for all unknown senders together, and one limit for each sender
//!   that the configuration contains;
//! - one limit for the start and end of rate limiting.

mod known_senders;
mod limited_networks;

pub use known_senders::KnownSender;
pub(super) use limited_networks::LimitedNetworks;

use known_senders::KnownSenders;

use crate::clock::LogInterval;
use crate::limits::rates::ResponseCategory;
use crate::query::Query;
use crate::tsig::{TsigError, TsigRejection};
use nonesuch_proto::message::{HEADER, Header, opcode};
use nonesuch_proto::{NameRef, Rtype};
use std::net::{IpAddr, SocketAddr};

/// The state of the log throttle, shared by all threads.
#[derive(Debug, Default)]
pub(super) struct LogThrottle {
    /// Rejected TSIG records, by [`error_index`]: a flood with one error does not hide other
    /// errors.
    tsig: [LogInterval; 5],
    /// Rejected TSIG records of senders in the configuration: a flood from unknown senders does not
    /// hide them.
    known_senders: KnownSenders,
    limited_networks: LimitedNetworks,
}

impl LogThrottle {
    /// Logs the rejection of `message` because of its TSIG record, unless the throttle suppresses
    /// the line. `peer` is the sender; `known` is its entry if the configuration contains it. `now`
    /// is in seconds since 1970.
    pub(super) fn log_tsig_rejection(
        &self,
        rejection: &TsigRejection,
        message: &[u8],
        (peer, known): (SocketAddr, Option<KnownSender>),
        now: u64,
    ) {
        let error = rejection.error();
        let index = error_index(error);
        let may_log_any = || self.tsig[index].may_log(now);
        let may_log = match known {
            Some(sender) => self.known_senders.may_log((index, sender), now).unwrap_or_else(may_log_any),
            None => may_log_any(),
        };
        let Some(before) = may_log else { return };
        let key = rejection.key().map(tracing::field::display);
        let question = describe_question(message);
        let reason = describe_error(error);
        tracing::warn!(name: "tsig-rejected", %peer, key, question, %error, before, "message with TSIG rejected: {reason}");
    }

    /// Records that a response of category `category` to `network` was rate limited at `now`, in
    /// seconds since 1970. Logs the start of rate limiting for the network, unless it is logged
    /// already or the throttle suppresses the line. In the latter case, the next response tries
    /// again.
    pub(super) fn log_limited(&self, network: (IpAddr, u8), category: ResponseCategory, now: u64) {
        if let Some(others) = self.limited_networks.record(network, now) {
            let (address, bits) = network;
            let responses = match category {
                ResponseCategory::Positive => "answers",
                ResponseCategory::Nodata => "NODATA responses",
                ResponseCategory::Nxdomain => "NXDOMAIN responses",
                ResponseCategory::Referral => "referrals",
                ResponseCategory::Error => "errors",
            };
            tracing::info!(
                name: "rate-limiting-started",
                client = %format_args!("{address}/{bits}"), others, "rate limiting of responses over UDP started: first for {responses}"
            );
        }
    }

    /// Logs the end of rate limiting for one network, if there is such a network and the throttle
    /// permits the line. The caller calls this every second.
    pub(super) fn log_limiting_ended(&self, now: u64) {
        if let Some(((address, bits), seconds)) = self.limited_networks.take_ended(now) {
            tracing::info!(name: "rate-limiting-ended", client = %format_args!("{address}/{bits}"), seconds, "rate limiting of responses over UDP ended");
        }
    }
}

/// Returns the number of an error in the log throttle: 0 to 4.
const fn error_index(error: TsigError) -> usize {
    match error {
        TsigError::BadKey => 0,
        TsigError::BadSig => 1,
        TsigError::BadTime => 2,
        TsigError::BadTrunc => 3,
        TsigError::Form => 4,
    }
}

/// Describes the reason of a rejection for the log.
const fn describe_error(error: TsigError) -> &'static str {
    match error {
        TsigError::BadKey => "no key with this name and algorithm is configured",
        TsigError::BadSig => "the secrets differ, or the message was altered in transit",
        TsigError::BadTime => "the clocks differ by too much",
        TsigError::BadTrunc => "its MAC is shorter than the minimum",
        TsigError::Form => "its TSIG record is malformed",
    }
}

/// Describes the question of a message for the log: the name, and the type or the opcode. Returns
/// `None` if the message does not have exactly one question, or if the question is malformed.
fn describe_question(message: &[u8]) -> Option<String> {
    let header = Header::read(message).filter(|header| header.counts[0] == 1)?;
    if let Ok(query) = Query::parse(message) {
        return Some(format!("{} {}", query.name(), query.qtype));
    }
    let (name, rest) = NameRef::split_from(message.get(HEADER..)?).ok()?;
    let rtype = rest.first_chunk().map(|octets| Rtype(u16::from_be_bytes(*octets)))?;
    Some(match header.opcode() {
        opcode::NOTIFY => format!("{name} NOTIFY"),
        opcode::UPDATE => format!("{name} UPDATE"),
        _ => format!("{name} {rtype}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_description_of_a_question_has_the_name_and_the_type_or_opcode() {
        let message = |opcode: u16, rest: &[u8]| {
            let header = Header { id: 1, flags: opcode << 11, counts: [1, 0, 0, 0] };
            [&header.to_octets()[..], rest].concat()
        };
        let transfer = b"\x02ex\x00\x00\xfc\x00\x01";
        for (opcode, rest, expected) in [
            (0, &transfer[..], Some("ex. AXFR")),
            (4, &transfer[..], Some("ex. NOTIFY")),
            (5, &transfer[..], Some("ex. UPDATE")),
            (0, &transfer[..5], None),
            (0, b"\x02e", None),
        ] {
            assert_eq!(describe_question(&message(opcode, rest)).as_deref(), expected);
        }
        assert_eq!(describe_question(b""), None);
    }
}
