//! Transfers to others: whole zones (AXFR, RFC 5936) and their changes (IXFR, RFC 1995).
//!
//! [`begin`] says what becomes of a request: an answer of many messages, made one by one as the peer takes them, an answer of
//! one message, or a refusal. Changes come from the zone's journal; where that does not reach back to the version that the
//! peer has, or its changes are larger than the zone, the whole zone is sent (RFC 1995 §4). Each message is signed where the
//! request was (RFC 8945 §5.3.1).
//!
//! Records are sent as they stand in the zone: with glue and what zone cuts occlude (RFC 5936 §3), with their letter case.

mod compress;
mod records;
mod status;
mod stream;

pub use status::{
    DEFAULT_EACH, DEFAULT_MOST, OutgoingTransfers, TransferKind, TransferOutcome, TransferStatus,
};
pub use stream::TransferStream;

use nonesuch_net::TlsSession;
use nonesuch_proto::message::{HEADER, Rcode, flags};
use nonesuch_proto::{Class, Name, Rtype, serial};
use nonesuch_server::acl::AccessList;
use nonesuch_server::extended_errors::ExtendedError;
use nonesuch_server::query::Query;
use nonesuch_server::tsig;
use nonesuch_zone::journal::Changes;
use nonesuch_zone::{Contents, Journal};
use records::{LONGEST, TransferRecords};
use std::cmp::Ordering;
use std::net::SocketAddr;
use std::sync::Arc;
use stream::{Frame, MESSAGE};

/// A request for a transfer.
#[derive(Clone, Copy, Debug)]
pub struct OutboundRequest<'a> {
    /// The whole message.
    pub message: &'a [u8],
    /// What it asks: QTYPE AXFR or IXFR.
    pub query: &'a Query<'a>,
    /// Whether it came as a datagram.
    pub is_datagram: bool,
    /// What TLS agreed on, where it came over TLS.
    pub tls: Option<TlsSession>,
    /// Who asks.
    pub client: SocketAddr,
    /// The signature of the request, verified.
    pub tsig: Option<&'a tsig::VerifiedRequest>,
    /// The OPT record of the answer; empty for none.
    pub opt: &'a [u8],
    /// Octets that a datagram may have.
    pub limit: usize,
}

/// The zone that is asked for.
#[derive(Clone, Copy, Debug)]
pub struct ZoneToSend<'z> {
    /// Its records; `None` where they are not kept.
    pub contents: Option<&'z Arc<Contents>>,
    /// Its changes.
    pub journal: Option<&'z Journal>,
    /// Who may have it.
    pub access: &'z AccessList,
    /// Whether what it is answered with is signed when asked: no record of the zone has a signature then.
    pub is_online: bool,
}

/// What becomes of a request.
#[derive(Debug)]
pub enum TransferAnswer {
    /// It is answered with these messages.
    Stream(Box<TransferStream>),
    /// The answer is written, signed where the request was.
    Single,
    /// Not even the current SOA record has room in the datagram: the answer is an empty one with TC (RFC 2181 §9).
    Truncate,
    /// It is refused.
    Refuse(TransferRefusal),
}

/// Why a transfer is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum TransferRefusal {
    /// AXFR is not defined over UDP (RFC 5936 §4.2).
    #[error("AXFR over UDP")]
    Datagram,
    /// An IXFR request has no SOA record of the zone (RFC 1995 §3).
    #[error("an IXFR request without the SOA record that the sender has")]
    NoSerial,
    /// There is no zone of this name here.
    #[error("no zone of this name is served here")]
    NotAuthoritative,
    /// The client may not have the zone.
    #[error("the zone's 'transfer' does not allow it")]
    NotAllowed,
    /// The client may have the zone over TLS, and asks without.
    #[error("the zone's 'transfer' allows it over TLS alone")]
    NeedsTls,
    /// TLS before 1.3, or another protocol than `dot` (RFC 9103 §7.1, §7.2).
    #[error("zones are transferred over TLS 1.3 with the ALPN protocol dot alone")]
    WeakTls,
    /// What the zone is answered with is signed when asked.
    #[error("the zone is signed when asked: its records have no signatures that could be transferred")]
    SignedOnline,
    /// The zone's records are not kept.
    #[error("the zone is served without its records being kept")]
    NoContents,
    /// Too many transfers are under way.
    #[error("too many transfers are under way: raise limits.transfers-out where that is right")]
    TooMany,
    /// Too many transfers to this client's network are under way.
    #[error(
        "too many transfers to this network are under way: raise limits.transfers-out-each where that is right"
    )]
    TooManyOfClient,
}

impl TransferRefusal {
    /// All of them.
    pub const ALL: [Self; 10] = [
        Self::Datagram,
        Self::NoSerial,
        Self::NotAuthoritative,
        Self::NotAllowed,
        Self::NeedsTls,
        Self::WeakTls,
        Self::SignedOnline,
        Self::NoContents,
        Self::TooMany,
        Self::TooManyOfClient,
    ];

    /// The name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Datagram => "over_udp",
            Self::NoSerial => "no_serial",
            Self::NotAuthoritative => "not_authoritative",
            Self::NotAllowed => "not_allowed",
            Self::NeedsTls => "needs_tls",
            Self::WeakTls => "weak_tls",
            Self::SignedOnline => "signed_when_asked",
            Self::NoContents => "no_records",
            Self::TooMany => "too_many",
            Self::TooManyOfClient => "too_many_of_client",
        }
    }

    /// The response code.
    #[must_use]
    pub const fn rcode(self) -> Rcode {
        match self {
            Self::Datagram | Self::NoSerial => Rcode::FORMERR,
            Self::NotAuthoritative => Rcode::NOTAUTH,
            Self::NotAllowed | Self::NeedsTls | Self::WeakTls | Self::SignedOnline | Self::NoContents => {
                Rcode::REFUSED
            }
            Self::TooMany | Self::TooManyOfClient => Rcode::SERVFAIL,
        }
    }

    /// The extended error (RFC 8914) that says it.
    #[must_use]
    pub const fn extended_error(self) -> Option<ExtendedError> {
        match self {
            Self::NotAllowed => Some(ExtendedError::PROHIBITED),
            Self::NeedsTls => Some(ExtendedError::NEEDS_TLS),
            Self::WeakTls => Some(ExtendedError::WEAK_TLS),
            Self::SignedOnline | Self::NoContents => Some(ExtendedError::NOT_SUPPORTED),
            Self::TooMany | Self::TooManyOfClient => Some(ExtendedError::TOO_MANY_TRANSFERS),
            Self::Datagram | Self::NoSerial | Self::NotAuthoritative => None,
        }
    }
}

/// Says what becomes of a request; `zone` is the one of this very name. `out` is empty, and where the answer is a single
/// message, it is written there. What is refused is logged, as far as that is bounded.
pub fn begin(
    asked: &OutboundRequest<'_>,
    zone: Option<&ZoneToSend<'_>>,
    outgoing: &Arc<OutgoingTransfers>,
    out: &mut Vec<u8>,
) -> TransferAnswer {
    match try_begin(asked, zone, outgoing, out) {
        Ok(transfer) => transfer,
        Err(refusal) => {
            say(asked, refusal, outgoing);
            outgoing.record(asked, 0, TransferOutcome::Refused(refusal), 0);
            TransferAnswer::Refuse(refusal)
        }
    }
}

/// Logs a refusal. What anybody can cause at will is for debugging; of the others there is one line a second at most, which
/// tells how many there were.
fn say(asked: &OutboundRequest<'_>, refusal: TransferRefusal, outgoing: &OutgoingTransfers) {
    let (zone, peer, kind) = (asked.query.name(), asked.client, asked.query.qtype);
    let key = asked.tsig.map(|verified| tracing::field::display(verified.name()));
    match refusal {
        TransferRefusal::Datagram | TransferRefusal::NoSerial | TransferRefusal::NotAuthoritative => {
            tracing::debug!(%zone, %peer, %kind, key, "transfer refused: {refusal}");
        }
        _ => {
            if let Some(before) = outgoing.may_log() {
                tracing::info!(%zone, %peer, %kind, key, before, "transfer refused: {refusal}");
            }
        }
    }
}

fn try_begin(
    asked: &OutboundRequest<'_>,
    zone: Option<&ZoneToSend<'_>>,
    outgoing: &Arc<OutgoingTransfers>,
    out: &mut Vec<u8>,
) -> Result<TransferAnswer, TransferRefusal> {
    let is_incremental = asked.query.qtype == Rtype::IXFR;
    if asked.is_datagram && !is_incremental {
        return Err(TransferRefusal::Datagram);
    }
    let zone = zone.ok_or(TransferRefusal::NotAuthoritative)?;
    // No list could allow it.
    if zone.is_online {
        return Err(TransferRefusal::SignedOnline);
    }
    let key = asked.tsig.map(tsig::VerifiedRequest::name);
    let allows = |is_over_tls| zone.access.allows_over(asked.client.ip(), key, is_over_tls);
    if !allows(asked.tls.is_some()) {
        return Err(if allows(true) { TransferRefusal::NeedsTls } else { TransferRefusal::NotAllowed });
    }
    if asked.tls.is_some_and(|session| !session.is_tls13 || !session.is_dot) {
        return Err(TransferRefusal::WeakTls);
    }
    let contents = zone.contents.ok_or(TransferRefusal::NoContents)?;
    let ours = contents.soa().ok_or(TransferRefusal::NoContents)?.serial;
    if !is_incremental {
        return start(asked, TransferRecords::zone(Arc::clone(contents)), TransferKind::Axfr, ours, outgoing);
    }
    let theirs = requested_serial(asked.message, asked.query).ok_or(TransferRefusal::NoSerial)?;
    // RFC 1995 §2: a sender that has this version, or a later one, is told so.
    if matches!(serial::compare(theirs, ours), Some(Ordering::Equal | Ordering::Greater)) {
        return Ok(answer_with_soa(asked, contents, outgoing, out));
    }
    let changes = zone.journal.and_then(|journal| journal.between(theirs, ours));
    let changes = changes.filter(|changes| changes.octets() <= contents.octets());
    if asked.is_datagram {
        return Ok(answer_datagram(asked, contents, changes, outgoing, out));
    }
    let contents = Arc::clone(contents);
    let (records, kind) = match changes {
        Some(changes) => (TransferRecords::changes(contents, changes), TransferKind::Ixfr),
        None => (TransferRecords::zone(contents), TransferKind::IxfrAsAxfr),
    };
    start(asked, records, kind, ours, outgoing)
}

fn start(
    asked: &OutboundRequest<'_>,
    records: TransferRecords,
    kind: TransferKind,
    serial: u32,
    outgoing: &Arc<OutgoingTransfers>,
) -> Result<TransferAnswer, TransferRefusal> {
    let active = outgoing.begin(asked, kind, serial)?;
    let frame = frame(asked, outgoing.clock(), MESSAGE, LONGEST);
    Ok(TransferAnswer::Stream(Box::new(TransferStream::new(frame, records, Some(active)))))
}

fn frame(asked: &OutboundRequest<'_>, clock: fn() -> u64, wanted: usize, most: usize) -> Frame {
    Frame {
        id: asked.query.header.id,
        flags: asked.query.header.flags & flags::RD,
        question: asked.query.question.to_vec(),
        opt: asked.opt.to_vec(),
        signer: asked.tsig.map(tsig::VerifiedRequest::signer),
        clock,
        wanted,
        most,
    }
}

/// Answers with the changes where they have room, else with the SOA record alone: the sender asks again over TCP
/// (RFC 1995 §2).
fn answer_datagram(
    asked: &OutboundRequest<'_>,
    contents: &Arc<Contents>,
    changes: Option<Changes>,
    outgoing: &Arc<OutgoingTransfers>,
    out: &mut Vec<u8>,
) -> TransferAnswer {
    // Compression does not make a quarter of them: what is longer need not be tried.
    if let Some(changes) = changes.filter(|changes| changes.octets() / 4 <= asked.limit as u64) {
        let records = TransferRecords::changes(Arc::clone(contents), changes);
        let mut sending =
            TransferStream::new(frame(asked, outgoing.clock(), asked.limit, asked.limit), records, None);
        if sending.write_alone(out) {
            outgoing.record(asked, serial_of(contents), TransferOutcome::Sent, out.len());
            return TransferAnswer::Single;
        }
        out.clear();
    }
    answer_with_soa(asked, contents, outgoing, out)
}

fn answer_with_soa(
    asked: &OutboundRequest<'_>,
    contents: &Arc<Contents>,
    outgoing: &Arc<OutgoingTransfers>,
    out: &mut Vec<u8>,
) -> TransferAnswer {
    let records = TransferRecords::soa(Arc::clone(contents));
    // RFC 1995 §2: the answer is limited like any other over UDP.
    let limit = if asked.is_datagram { asked.limit } else { LONGEST };
    let mut sending = TransferStream::new(frame(asked, outgoing.clock(), limit, limit), records, None);
    if !sending.write_alone(out) {
        out.clear();
        return TransferAnswer::Truncate;
    }
    outgoing.record(asked, serial_of(contents), TransferOutcome::UpToDate, out.len());
    TransferAnswer::Single
}

fn serial_of(contents: &Contents) -> u32 {
    contents.soa().map_or(0, |soa| soa.serial)
}

/// The serial of the SOA record in the authority section, which is the zone's (RFC 1995 §3).
pub(crate) fn requested_serial(message: &[u8], query: &Query<'_>) -> Option<u32> {
    if query.qtype != Rtype::IXFR || query.header.counts[2] != 1 {
        return None;
    }
    let at = HEADER + query.question.len();
    let (owner, fixed) = Name::from_message(message, at).ok()?;
    let [a, b, c, d, _, _, _, _, l, m] = *message.get(fixed..)?.first_chunk()?;
    let is_soa =
        Rtype(u16::from_be_bytes([a, b])) == Rtype::SOA && Class(u16::from_be_bytes([c, d])) == Class::IN;
    let start = fixed + 10;
    let rdata = message.get(start..start + usize::from(u16::from_be_bytes([l, m])))?;
    // The names in front may be compressed; the five numbers are the last 20 octets (RFC 1035 §3.3.13).
    let numbers = rdata.len().checked_sub(20).filter(|names| *names >= 2).map(|names| &rdata[names..])?;
    let serial = numbers.first_chunk().map(|octets| u32::from_be_bytes(*octets));
    serial.filter(|_| is_soa && owner.view() == query.name())
}

#[cfg(test)]
mod tests;
