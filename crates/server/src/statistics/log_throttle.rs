//! The log throttle for messages that any client can send at will: at most one line per second.
//! Each sender that the configuration contains has a separate limit of one line per second.

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
    /// Rejected signatures, by error: a flood with one error does not hide other errors.
    signatures: [LogInterval; 5],
    /// Rejected signatures of senders in the configuration: a flood from unknown senders does not
    /// hide them.
    known: KnownSenders,
    limited: LimitedNetworks,
}

impl LogThrottle {
    /// Logs `message`, whose TSIG record was rejected at `now`, in seconds since 1970. `known`: the
    /// sender, if the configuration contains it.
    pub(super) fn log_tsig_rejection(
        &self,
        refused: &TsigRejection,
        message: &[u8],
        (peer, known): (SocketAddr, Option<KnownSender>),
        now: u64,
    ) {
        let error = refused.error();
        let (place, words) = match error {
            TsigError::BadKey => (0, "no key with this name and algorithm is configured"),
            TsigError::BadSig => (1, "the secrets differ, or the message was altered in transit"),
            TsigError::BadTime => (2, "the clocks differ by too much"),
            TsigError::BadTrunc => (3, "its MAC is shorter than the minimum"),
            TsigError::Form => (4, "its TSIG record is malformed"),
        };
        let shared = || self.signatures[place].may_log(now);
        let may_say = match known {
            Some(sender) => self.known.may_log((place, sender), now).unwrap_or_else(shared),
            None => shared(),
        };
        let Some(before) = may_say else { return };
        let key = refused.key().map(tracing::field::display);
        let question = question_of(message);
        tracing::warn!(name: "tsig-rejected", %peer, key, question, %error, before, "message with TSIG rejected: {words}");
    }

    /// Logs that rate limiting began for a network, if this response of category `class` at second
    /// `now` is the first one that may be logged.
    pub(super) fn log_limited(&self, network: (IpAddr, u8), class: ResponseCategory, now: u64) {
        if let Some(others) = self.limited.begin(network, now) {
            let (address, bits) = network;
            let what = match class {
                ResponseCategory::Positive => "answers",
                ResponseCategory::Nodata => "NODATA responses",
                ResponseCategory::Nxdomain => "NXDOMAIN responses",
                ResponseCategory::Referral => "referrals",
                ResponseCategory::Error => "errors",
            };
            tracing::info!(
                name: "rate-limiting-started",
                client = %format_args!("{address}/{bits}"), others, "rate limiting of responses over UDP started: first for {what}"
            );
        }
    }

    /// Logs one network whose rate limiting has ended, if there is one.
    pub(super) fn log_unlimited(&self, now: u64) {
        if let Some(((address, bits), seconds)) = self.limited.end(now) {
            tracing::info!(name: "rate-limiting-ended", client = %format_args!("{address}/{bits}"), seconds, "rate limiting of responses over UDP ended");
        }
    }
}

/// Describes the question of a message for the log: the name, and the type or the opcode. Returns
/// `None` if the message cannot be read.
fn question_of(message: &[u8]) -> Option<String> {
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
    fn messages_are_called_by_what_they_ask() {
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
            assert_eq!(question_of(&message(opcode, rest)).as_deref(), expected);
        }
        assert_eq!(question_of(b""), None);
    }
}
