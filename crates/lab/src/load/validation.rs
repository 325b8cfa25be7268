//! Validation of sampled responses after a load. The keys of the zone come from the same server,
//! and are trusted if they match a trust anchor (RFC 4035 §5.2).

use std::io;
use std::time::Instant;

use nonesuch_crypto::DigestType;
use nonesuch_dnssec::keys::ds_rdata;
use nonesuch_dnssec::validate::{
    Budget, Question, SecurityStatus, TrustedKeys, ValidationLimits, validate, validate_octets,
};
use nonesuch_dnssec::verify::Anchor;
use nonesuch_net::client::{PolledStream, Poller, StreamClientSocket};
use nonesuch_net::{ClientError, ClientPhase, Transport};
use nonesuch_proto::edns::{self, push_opt};
use nonesuch_proto::message::{Header, Message, Section, push_query};
use nonesuch_proto::{Class, Name, Rtype};
use serde::Serialize;

use super::length_prefix::{self, MessageSplitter};
use super::{LoadError, LoadOptions};

/// Octets that one receive call takes from the connection.
const RECEIVE_SIZE: usize = 1 << 14;

/// Options of a validation.
#[derive(Debug, Clone)]
pub struct ValidationOptions {
    /// The zone of the queries.
    pub zone: Name,
    /// Trust anchors of the zone.
    pub anchors: Vec<Anchor>,
    /// Time at which signatures must be valid, in seconds since 1970 modulo 2^32.
    pub now: u32,
}

/// Number of sampled responses for each status of RFC 4033 §5.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct ValidationCounts {
    /// The keys of the zone prove the response.
    pub secure: u64,
    /// The response is proved to be outside the chain of trust.
    pub insecure: u64,
    /// The keys of the zone should prove the response, and they do not.
    pub bogus: u64,
    /// The response cannot be validated, for example because it is truncated or an error.
    pub indeterminate: u64,
    /// The first reason: of a bogus response, otherwise of an indeterminate one.
    pub first_reason: Option<String>,
}

impl ValidationCounts {
    /// Returns the number of validated responses.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.secure + self.insecure + self.bogus + self.indeterminate
    }

    /// Returns the number of bogus and indeterminate responses, with the first reason. Returns
    /// `None` if all responses are secure or insecure.
    pub(crate) fn invalid(&self) -> Option<(u64, &str)> {
        let count = self.bogus + self.indeterminate;
        (count > 0).then(|| (count, self.first_reason.as_deref().unwrap_or_default()))
    }
}

/// Validates `samples`, responses of the server in `options`. The question of a sample is that of
/// the response itself.
///
/// # Errors
/// Fails if the server does not answer the query for the DNSKEY RRset over TCP (over TLS if the
/// load uses TLS), or if no anchor proves this RRset.
pub fn validate_samples<'s>(
    options: &LoadOptions,
    validation: &ValidationOptions,
    samples: impl IntoIterator<Item = &'s [u8]>,
) -> Result<ValidationCounts, LoadError> {
    let keys = fetch_keys(options, validation)?;
    let mut counts = ValidationCounts::default();
    let mut first_indeterminate = None;
    for sample in samples {
        let status = validate_sample(sample, &keys, validation.now);
        match &status {
            SecurityStatus::Secure => counts.secure += 1,
            SecurityStatus::Insecure(_) => counts.insecure += 1,
            SecurityStatus::Bogus(reason) => {
                counts.bogus += 1;
                counts.first_reason.get_or_insert_with(|| describe(sample, reason));
            }
            SecurityStatus::Indeterminate(reason) => {
                counts.indeterminate += 1;
                first_indeterminate.get_or_insert_with(|| describe(sample, reason));
            }
        }
    }
    counts.first_reason = counts.first_reason.or(first_indeterminate);
    Ok(counts)
}

fn validate_sample(sample: &[u8], keys: &TrustedKeys, now: u32) -> SecurityStatus {
    let root = Name::root();
    let asked = Message::parse(sample).ok().and_then(|message| message.questions.into_iter().next());
    // For a sample without a question, any question gives the status Indeterminate.
    let question = match &asked {
        Some(asked) => Question { name: asked.name.view(), rtype: asked.rtype },
        None => Question { name: root.view(), rtype: Rtype::SOA },
    };
    let mut budget = Budget::new(ValidationLimits::default());
    validate_octets(question, sample, keys, now, &mut budget).status
}

fn describe(sample: &[u8], reason: &impl std::fmt::Display) -> String {
    let asked = Message::parse(sample).ok().and_then(|message| message.questions.into_iter().next());
    asked.map_or_else(|| reason.to_string(), |asked| format!("{} {}: {reason}", asked.name, asked.rtype))
}

/// Fetches the DNSKEY and NSEC5KEY RRsets of the zone, and validates the DNSKEY RRset with the keys
/// that match an anchor.
fn fetch_keys(options: &LoadOptions, validation: &ValidationOptions) -> Result<TrustedKeys, LoadError> {
    let zone = &validation.zone;
    let limits = ValidationLimits::default();
    let mut budget = Budget::new(limits);
    let response = query_over_stream(options, zone, Rtype::DNSKEY)?;
    let dnskeys: Vec<&[u8]> = response
        .section(Section::Answer)
        .filter(|record| (record.rtype, record.class) == (Rtype::DNSKEY, Class::IN) && record.owner == *zone)
        .map(|record| record.rdata.as_slice())
        .collect();
    let trusted = dnskeys.iter().copied().filter(|rdata| is_trusted(zone, rdata, &validation.anchors));
    let anchored_keys = TrustedKeys::new(zone, trusted, &limits);
    let question = Question { name: zone.view(), rtype: Rtype::DNSKEY };
    let status = validate(question, &response, &anchored_keys, validation.now, &mut budget).status;
    if status != SecurityStatus::Secure {
        let reason = match &status {
            SecurityStatus::Bogus(reason) => reason.to_string(),
            SecurityStatus::Indeterminate(reason) => reason.to_string(),
            SecurityStatus::Insecure(reason) => reason.to_string(),
            SecurityStatus::Secure => String::new(),
        };
        return Err(LoadError::Untrusted { zone: zone.clone(), server: options.server, reason });
    }
    let mut keys = TrustedKeys::new(zone, dnskeys, &limits);
    let response = query_over_stream(options, zone, Rtype::NSEC5KEY)?;
    // A zone without NSEC5 has no such keys.
    let _ = keys.learn_nsec5_keys(&response, validation.now, &mut budget);
    Ok(keys)
}

/// Whether a DNSKEY record matches one of the anchors.
pub(crate) fn is_trusted(zone: &Name, dnskey: &[u8], anchors: &[Anchor]) -> bool {
    anchors.iter().any(|anchor| match anchor {
        Anchor::Dnskey(rdata) => rdata == dnskey,
        Anchor::Ds(ds) => ds
            .get(3)
            .and_then(|digest_type| ds_rdata(zone.view(), dnskey, DigestType(*digest_type)))
            .is_some_and(|computed| computed == *ds),
        _ => false,
    })
}

/// Sends one query over TCP or TLS, and waits for its response.
fn query_over_stream(options: &LoadOptions, name: &Name, rtype: Rtype) -> Result<Message, LoadError> {
    let transport = if options.transport == Transport::Tls { Transport::Tls } else { Transport::Tcp };
    let fail = |error| ClientError::from_io(options.server, transport, ClientPhase::Receive, error);
    let tls = options.tls.as_ref().filter(|_| transport == Transport::Tls);
    let mut query = Vec::new();
    push_query(name, rtype, 0, 0, &mut query);
    push_opt(options.edns_size, 0, edns::DO, &mut query);
    // ARCOUNT: the OPT record.
    query[11] = 1;
    let mut stream = Vec::new();
    length_prefix::push_message(&mut stream, query.len(), |slot| {
        slot.copy_from_slice(&query);
        query.len()
    });
    let socket = StreamClientSocket::connect(None, options.server, tls).map_err(fail)?;
    let octets = exchange(socket, &stream, options).map_err(fail)?;
    let malformed = |_| fail(io::Error::new(io::ErrorKind::InvalidData, "the response is malformed"));
    Ok(Message::parse(&octets).map_err(malformed)?)
}

/// Sends the octets `stream` and receives one message. Fails after the timeout of the load.
fn exchange(mut socket: StreamClientSocket, stream: &[u8], options: &LoadOptions) -> io::Result<Vec<u8>> {
    let end = Instant::now() + options.timeout;
    let (mut sent, mut splitter, mut buffer) = (0, MessageSplitter::default(), vec![0; RECEIVE_SIZE]);
    let (mut ready, mut message) = (Poller::default(), None);
    while message.is_none() {
        let until_end = end.saturating_duration_since(Instant::now());
        if until_end.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        let has_output = sent < stream.len() || socket.has_unsent();
        ready.wait([], [PolledStream { stream: &socket, has_output }], until_end)?;
        if sent < stream.len() {
            sent += would_block_to_none(socket.send(&stream[sent..]))?.unwrap_or(0);
        }
        socket.flush()?;
        match would_block_to_none(socket.receive(&mut buffer))? {
            Some(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Some(octets) => splitter.split(&buffer[..octets], |found| message = Some(found.to_vec())),
            None => {}
        }
    }
    // The loop ends with a message. Every message has a header.
    message.filter(|found| Header::read(found).is_some()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Converts `WouldBlock`, which means that nothing can be sent or received now, to `None`.
fn would_block_to_none(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        result => result.map(Some),
    }
}
