//! Outgoing transfers of complete zones (AXFR, RFC 5936) and of changes (IXFR, RFC 1995).
//!
//! [`begin`] answers a request with a stream of messages that is generated as the client reads it,
//! with a single message, or with a refusal. The changes come from the journal of the zone. The
//! server sends the complete zone if the journal does not contain the client's version, or if the
//! changes are larger than the zone (RFC 1995 §4). The server signs each message if the request is
//! signed (RFC 8945 §5.3.1).
//!
//! Records are sent as they are in the zone: with glue and occluded records (RFC 5936 §3), and with
//! unchanged letter case.

mod records;
mod status;
mod stream;

pub use status::{
    DEFAULT_MAX_PER_NETWORK, DEFAULT_MAX_TRANSFERS, OutgoingTransfers, TransferKind, TransferOutcome,
    TransferStatus,
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
use records::{MAX_OCTETS, TransferRecords};
use std::cmp::Ordering;
use std::net::SocketAddr;
use std::sync::Arc;
use stream::{MessageLayout, TARGET_OCTETS};

/// A request for a transfer.
#[derive(Clone, Copy, Debug)]
pub struct OutboundRequest<'a> {
    /// The complete message.
    pub message: &'a [u8],
    /// The query, with QTYPE AXFR or IXFR.
    pub query: &'a Query<'a>,
    /// Whether the request was received over UDP.
    pub is_datagram: bool,
    /// TLS parameters, if the request was received over TLS.
    pub tls: Option<TlsSession>,
    /// Address and port of the client.
    pub client: SocketAddr,
    /// The verified TSIG of the request, if it is signed.
    pub tsig: Option<&'a tsig::VerifiedRequest>,
    /// The OPT record of the response; empty for none.
    pub opt: &'a [u8],
    /// Maximum size of a UDP response, in octets.
    pub max_datagram_octets: usize,
}

/// The requested zone.
#[derive(Clone, Copy, Debug)]
pub struct ZoneToSend<'z> {
    /// The records of the zone; `None` if the server does not have them in memory.
    pub contents: Option<&'z Arc<Contents>>,
    /// The journal of the zone.
    pub journal: Option<&'z Journal>,
    /// Clients that may transfer the zone.
    pub transfer_access: &'z AccessList,
    /// Whether responses are signed online. The records of such a zone have no signatures.
    pub is_signed_online: bool,
}

/// The answer to a request.
#[derive(Debug)]
pub enum TransferAnswer {
    /// A stream of messages.
    Stream(Box<TransferStream>),
    /// A single message. It is written, and signed if the request is signed.
    Single,
    /// Not even the current SOA record fits into a UDP response. The response is empty, with TC
    /// (RFC 2181 §9).
    Truncate,
    /// The transfer is refused.
    Refuse(TransferRefusal),
}

/// Reasons why a transfer is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum TransferRefusal {
    /// AXFR is not defined over UDP (RFC 5936 §4.2).
    #[error("AXFR is not defined over UDP")]
    Datagram,
    /// The IXFR request contains no SOA record of the zone (RFC 1995 §3).
    #[error("the IXFR request has no SOA record of the zone")]
    NoSerial,
    /// The server has no zone with this name.
    #[error("the server has no zone with this name")]
    NotAuthoritative,
    /// The access list does not permit the client to transfer the zone.
    #[error("the zone's 'transfer' does not permit this client")]
    NotAllowed,
    /// The access list permits the client to transfer the zone only over TLS, and the request was
    /// not received over TLS.
    #[error("the zone's 'transfer' permits this client only over TLS")]
    NeedsTls,
    /// The TLS version is lower than 1.3, or the ALPN protocol is not `dot` (RFC 9103 §7.1, §7.2).
    #[error("zone transfers over TLS require TLS 1.3 with the ALPN protocol dot")]
    WeakTls,
    /// Responses from this zone are signed online, and its records have no signatures to transfer.
    #[error("the zone is signed online: its records have no signatures to transfer")]
    SignedOnline,
    /// The server does not have the records of the zone in memory.
    #[error("the server does not have the records of the zone in memory")]
    NoContents,
    /// Too many transfers are in progress.
    #[error("too many transfers are in progress: increase limits.transfers-out if appropriate")]
    TooMany,
    /// Too many transfers to the network of this client are in progress.
    #[error(
        "too many transfers to this network are in progress: increase limits.transfers-out-each if appropriate"
    )]
    TooManyOfClient,
}

impl TransferRefusal {
    /// All refusals.
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

    /// Returns the name for metrics and the log.
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

    /// Returns the response code.
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

    /// Returns the extended error (RFC 8914), if there is one for this refusal.
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

/// Answers a request. `zone` is the zone with exactly the name in the query; `None` if the server
/// has no such zone. `out` must be empty; a single message is written to it. Refusals are logged
/// with a rate limit.
pub fn begin(
    request: &OutboundRequest<'_>,
    zone: Option<&ZoneToSend<'_>>,
    outgoing: &Arc<OutgoingTransfers>,
    out: &mut Vec<u8>,
) -> TransferAnswer {
    match try_begin(request, zone, outgoing, out) {
        Ok(transfer) => transfer,
        Err(refusal) => {
            log_refusal(request, refusal, outgoing);
            outgoing.report_ended(request, 0, TransferOutcome::Refused(refusal), 0);
            TransferAnswer::Refuse(refusal)
        }
    }
}

/// Logs a refusal. Refusals that any host can cause are logged with level debug. For the others,
/// there is at most one line a second, with the number of suppressed lines.
fn log_refusal(request: &OutboundRequest<'_>, refusal: TransferRefusal, outgoing: &OutgoingTransfers) {
    let (zone, peer, kind) = (request.query.name(), request.client, request.query.qtype);
    let key = request.tsig.map(|verified| tracing::field::display(verified.name()));
    let reason = refusal.name();
    match refusal {
        TransferRefusal::Datagram | TransferRefusal::NoSerial | TransferRefusal::NotAuthoritative => {
            tracing::debug!(name: "transfer-refused", %zone, %peer, %kind, key, reason, "transfer refused: {refusal}");
        }
        _ => {
            if let Some(before) = outgoing.may_log() {
                tracing::info!(name: "transfer-refused", %zone, %peer, %kind, key, reason, before, "transfer refused: {refusal}");
            }
        }
    }
}

/// Answers a request as [`begin`] does, but returns a refusal as the error and does not log it.
fn try_begin(
    request: &OutboundRequest<'_>,
    zone: Option<&ZoneToSend<'_>>,
    outgoing: &Arc<OutgoingTransfers>,
    out: &mut Vec<u8>,
) -> Result<TransferAnswer, TransferRefusal> {
    let is_incremental = request.query.qtype == Rtype::IXFR;
    if request.is_datagram && !is_incremental {
        return Err(TransferRefusal::Datagram);
    }
    let zone = zone.ok_or(TransferRefusal::NotAuthoritative)?;
    // Before the access list, because no access list can permit this transfer.
    if zone.is_signed_online {
        return Err(TransferRefusal::SignedOnline);
    }
    let key = request.tsig.map(tsig::VerifiedRequest::name);
    let allows = |is_over_tls| zone.transfer_access.allows_request(request.client.ip(), key, is_over_tls);
    if !allows(request.tls.is_some()) {
        return Err(if allows(true) { TransferRefusal::NeedsTls } else { TransferRefusal::NotAllowed });
    }
    if request.tls.is_some_and(|session| !session.is_tls13 || !session.is_dot) {
        return Err(TransferRefusal::WeakTls);
    }
    let contents = zone.contents.ok_or(TransferRefusal::NoContents)?;
    let own_serial = contents.soa().ok_or(TransferRefusal::NoContents)?.serial;
    if !is_incremental {
        return start(
            request,
            TransferRecords::zone(Arc::clone(contents)),
            TransferKind::Axfr,
            own_serial,
            outgoing,
        );
    }
    let client_serial = requested_serial(request.message, request.query).ok_or(TransferRefusal::NoSerial)?;
    // RFC 1995 §2: if the client has this version or a later one, the response is the SOA record.
    if matches!(serial::compare(client_serial, own_serial), Some(Ordering::Equal | Ordering::Greater)) {
        return Ok(answer_with_soa(request, contents, outgoing, out));
    }
    let changes = zone.journal.and_then(|journal| journal.between(client_serial, own_serial));
    let changes = changes.filter(|changes| changes.octets() <= contents.octets());
    if request.is_datagram {
        return Ok(answer_datagram(request, contents, changes, outgoing, out));
    }
    let contents = Arc::clone(contents);
    let (records, kind) = match changes {
        Some(changes) => (TransferRecords::changes(contents, changes), TransferKind::Ixfr),
        None => (TransferRecords::zone(contents), TransferKind::IxfrAsAxfr),
    };
    start(request, records, kind, own_serial, outgoing)
}

/// Begins a stream of `records`, if the limits for concurrent transfers permit it.
fn start(
    request: &OutboundRequest<'_>,
    records: TransferRecords,
    kind: TransferKind,
    serial: u32,
    outgoing: &Arc<OutgoingTransfers>,
) -> Result<TransferAnswer, TransferRefusal> {
    let permit = outgoing.begin(request, kind, serial)?;
    let layout = message_layout(request, outgoing.clock(), TARGET_OCTETS, MAX_OCTETS);
    Ok(TransferAnswer::Stream(Box::new(TransferStream::new(layout, records, Some(permit)))))
}

/// Returns the properties that all messages of a response have.
fn message_layout(
    request: &OutboundRequest<'_>,
    clock: fn() -> u64,
    target_octets: usize,
    max_octets: usize,
) -> MessageLayout {
    MessageLayout {
        id: request.query.header.id,
        flags: request.query.header.flags & flags::RD,
        question: request.query.question.to_vec(),
        opt: request.opt.to_vec(),
        signer: request.tsig.map(tsig::VerifiedRequest::signer),
        clock,
        target_octets,
        max_octets,
    }
}

/// Answers an IXFR request over UDP with the changes if they fit. Otherwise answers with only the
/// SOA record, and the client repeats the request over TCP (RFC 1995 §2).
fn answer_datagram(
    request: &OutboundRequest<'_>,
    contents: &Arc<Contents>,
    changes: Option<Changes>,
    outgoing: &Arc<OutgoingTransfers>,
    out: &mut Vec<u8>,
) -> TransferAnswer {
    // Name compression removes less than three quarters of the size. Therefore changes of more than
    // four times the limit cannot fit.
    if let Some(changes) =
        changes.filter(|changes| changes.octets() / 4 <= request.max_datagram_octets as u64)
    {
        let records = TransferRecords::changes(Arc::clone(contents), changes);
        let mut stream = TransferStream::new(
            message_layout(
                request,
                outgoing.clock(),
                request.max_datagram_octets,
                request.max_datagram_octets,
            ),
            records,
            None,
        );
        if stream.write_single(out) {
            outgoing.report_ended(request, serial_of(contents), TransferOutcome::Sent, out.len());
            return TransferAnswer::Single;
        }
        out.clear();
    }
    answer_with_soa(request, contents, outgoing, out)
}

/// Answers with only the current SOA record.
fn answer_with_soa(
    request: &OutboundRequest<'_>,
    contents: &Arc<Contents>,
    outgoing: &Arc<OutgoingTransfers>,
    out: &mut Vec<u8>,
) -> TransferAnswer {
    let records = TransferRecords::soa(Arc::clone(contents));
    // RFC 1995 §2: over UDP, the size limit of all UDP responses applies.
    let limit = if request.is_datagram { request.max_datagram_octets } else { MAX_OCTETS };
    let layout = message_layout(request, outgoing.clock(), limit, limit);
    let mut stream = TransferStream::new(layout, records, None);
    if !stream.write_single(out) {
        out.clear();
        return TransferAnswer::Truncate;
    }
    outgoing.report_ended(request, serial_of(contents), TransferOutcome::SoaOnly, out.len());
    TransferAnswer::Single
}

/// Returns the serial of a zone; 0 if it has no SOA record.
fn serial_of(contents: &Contents) -> u32 {
    contents.soa().map_or(0, |soa| soa.serial)
}

/// Returns the serial of the client's version from an IXFR request: that of the SOA record in the
/// authority section, whose owner must be the zone (RFC 1995 §3). Returns `None` for other queries,
/// and if there is no such record.
pub(crate) fn requested_serial(message: &[u8], query: &Query<'_>) -> Option<u32> {
    if query.qtype != Rtype::IXFR || query.header.counts[2] != 1 {
        return None;
    }
    let record_start = HEADER + query.question.len();
    let (owner, owner_end) = Name::from_message(message, record_start).ok()?;
    // Type, class, TTL (ignored) and length of the RDATA.
    let [a, b, c, d, _, _, _, _, e, f] = *message.get(owner_end..)?.first_chunk()?;
    let is_soa =
        Rtype(u16::from_be_bytes([a, b])) == Rtype::SOA && Class(u16::from_be_bytes([c, d])) == Class::IN;
    let rdata_start = owner_end + 10;
    let rdata = message.get(rdata_start..rdata_start + usize::from(u16::from_be_bytes([e, f])))?;
    // The length of the two names at the start is not known, because they may be compressed. The
    // five numbers are the last 20 octets (RFC 1035 §3.3.13); the first of them is the serial.
    let names_length = rdata.len().checked_sub(20).filter(|length| *length >= 2)?;
    let numbers = &rdata[names_length..];
    let serial = numbers.first_chunk().map(|octets| u32::from_be_bytes(*octets));
    serial.filter(|_| is_soa && owner.view() == query.name())
}

#[cfg(test)]
mod tests;
