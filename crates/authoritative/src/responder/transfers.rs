//! Requests for transfers (AXFR, IXFR): from the zone's state to a stream of messages, or to a refusal.

use super::{Batch, Outcome, Thread};
use crate::answer::{Asked, decline};
use crate::extended_errors::ExtendedError;
use crate::limits::Class;
use crate::response::{Ending, Transport};
use crate::transfer::outbound::{self, Transfer, ZoneToSend};
use crate::tsig::Verified;
use crate::zones::{Slot, ZoneState};
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Class as DnsClass, Rtype};
use std::net::SocketAddr;

impl Thread {
    /// Answers AXFR and IXFR.
    #[cold]
    pub(super) fn transfer(
        &mut self,
        batch: &Batch,
        message: &[u8],
        asked: &Asked<'_>,
        verified: Option<&Verified>,
        sender: SocketAddr,
        out: &mut Vec<u8>,
    ) -> Outcome {
        // Before anything is looked for: an address in a datagram may be forged.
        if self.transport == Transport::Udp && verified.is_none() {
            if !self.admit(batch, asked, (Class::Error, 0), sender, out) {
                return Outcome::Nothing;
            }
            if !out.is_empty() {
                self.count(asked.query, message, out);
                return Outcome::Ready;
            }
        }
        let slot = batch.table.slot(asked.name).filter(|_| asked.query.class == DnsClass::IN);
        let state = slot.map(|slot| slot.state());
        let state = state.as_deref().map(|state| &**state);
        let unready = match state {
            Some(ZoneState::NotReady(_)) => Some(ExtendedError::NOT_READY),
            Some(ZoneState::Expired(_)) => Some(ExtendedError::INVALID_DATA),
            Some(ZoneState::Serving(_)) | None => None,
        };
        if unready.is_some() {
            let error = (Rcode::SERVFAIL, unready);
            return self.refuse_transfer(batch, message, asked, verified, error, out);
        }
        let zone = state.and_then(ZoneState::serving).map(|zone| ZoneToSend {
            contents: zone.contents(),
            journal: zone.journal().map(|journal| &**journal),
            access: &zone.policy().transfer,
            is_online: zone.published().is_signed_when_asked(),
        });
        let mut opt = Vec::new();
        match slot.filter(|_| asked.ending.reply.wants_expire()) {
            Some(slot) => {
                Asked { ending: &ending_with_expiry(slot, asked), ..*asked }.push_opt_alone(&mut opt)
            }
            None => asked.push_opt_alone(&mut opt),
        }
        let request = outbound::Asked {
            message,
            query: asked.query,
            is_datagram: self.transport == Transport::Udp,
            tls: self.session,
            client: sender,
            tsig: verified,
            opt: &opt,
            limit: asked.datagram_octets(),
        };
        match outbound::begin(&request, zone.as_ref(), &self.outgoing, out) {
            Transfer::Stream(stream) => {
                self.stream = Some(stream);
                Outcome::Stream
            }
            Transfer::Single => {
                self.count(asked.query, message, out);
                Outcome::Ready
            }
            Transfer::Truncate => {
                decline(asked, Rcode::NOERROR, None, true, out);
                self.end_transfer(batch, message, asked, verified, out)
            }
            Transfer::Refuse(refusal) => {
                let error = refusal.extended_error();
                self.refuse_transfer(batch, message, asked, verified, (refusal.rcode(), error), out)
            }
        }
    }

    fn refuse_transfer(
        &mut self,
        batch: &Batch,
        message: &[u8],
        asked: &Asked<'_>,
        verified: Option<&Verified>,
        (rcode, error): (Rcode, Option<ExtendedError>),
        out: &mut Vec<u8>,
    ) -> Outcome {
        decline(asked, rcode, error, false, out);
        self.end_transfer(batch, message, asked, verified, out)
    }

    /// Signs and counts an answer without records.
    fn end_transfer(
        &mut self,
        batch: &Batch,
        message: &[u8],
        asked: &Asked<'_>,
        verified: Option<&Verified>,
        out: &mut Vec<u8>,
    ) -> Outcome {
        if let Some(verified) = verified {
            verified.signer().sign(out, batch.now);
        }
        self.count(asked.query, message, out);
        Outcome::Ready
    }
}

/// The end of an answer to who asks when the zone expires: told to those that look after a copy of it, with its SOA record and with its
/// transfer (RFC 7314 §4).
#[cold]
pub(super) fn ending_with_expiry<'s>(slot: &Slot, asked: &Asked<'s>) -> Ending<'s> {
    let is_of_copies = matches!(asked.query.qtype, Rtype::SOA | Rtype::AXFR | Rtype::IXFR);
    let seconds = slot.seconds_left().filter(|_| is_of_copies && slot.apex().view() == asked.name);
    Ending { reply: asked.ending.reply.with_expire(seconds), ..*asked.ending }
}
