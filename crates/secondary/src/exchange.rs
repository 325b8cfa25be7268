//! Exchanges with another server: one query and its response, or a transfer. Messages are signed
//! and verified if the server has a key. TLS is used if it is configured.

use super::error::ExchangeError;
use super::options::TransfersOptions;
use nonesuch_net::client::{ConnectOptions, Connection, DatagramOptions, exchange_udp};
use nonesuch_net::tls::ClientTls;
use nonesuch_proto::NameRef;
use nonesuch_proto::edns::{self, Options};
use nonesuch_proto::message::{HEADER, Header, Message, flags};
use nonesuch_server::acl::{Remote, TlsName};
use nonesuch_server::clock::seconds_now;
use nonesuch_server::reply_options::DEFAULT_UDP_SIZE;
use nonesuch_server::tsig::{self, ResponseVerifier, TsigKeys};
use std::net::SocketAddr;
use std::time::Duration;

/// Appends the EXPIRE option to a query without additional records. The option requests the time
/// until the zone expires at the primary (RFC 7314 §4).
pub(super) fn push_expire_request(query: &mut Vec<u8>) {
    let start = query.len();
    edns::push_opt(DEFAULT_UDP_SIZE, 0, 0, query);
    edns::push_expire(None, query);
    edns::set_options_length(start, query);
    query[10..HEADER].copy_from_slice(&1u16.to_be_bytes());
}

/// Returns the seconds until the zone expires at the primary, if the response has them.
pub(super) fn read_expire(answer: &[u8]) -> Option<u32> {
    let message = Message::parse(answer).ok()?;
    let (_, data) = Options::new(&message.opt()?.rdata).find(|(code, _)| *code == edns::EXPIRE)?;
    edns::read_expire(data)?
}

/// Another server, and the settings for queries to it.
pub(super) struct QueryTarget<'p> {
    pub(super) remote: &'p Remote,
    pub(super) keys: &'p TsigKeys,
    pub(super) options: &'p TransfersOptions,
}

impl QueryTarget<'_> {
    /// Signs `query` if the server has a key.
    pub(super) fn sign(&self, query: &mut Vec<u8>) -> Result<Option<ResponseVerifier>, ExchangeError> {
        let Some(name) = &self.remote.key else { return Ok(None) };
        let key = self.keys.find(name).ok_or_else(|| ExchangeError::NoKey(name.clone()))?;
        Ok(Some(tsig::sign_request(key, query, seconds_now())))
    }

    /// Sends a query once: in a datagram, or over TLS if the server is configured so. Returns the
    /// complete response, which is verified if the server has a key.
    pub(super) async fn query_once(
        &self,
        mut query: Vec<u8>,
        timeout: Duration,
    ) -> Result<Vec<u8>, ExchangeError> {
        if self.remote.tls.is_some() {
            return self.query_over_stream(query, timeout).await;
        }
        let unsigned_query = query.clone();
        let verifier = self.sign(&mut query)?;
        let mut fault = None;
        let is_answer = |octets: &[u8]| {
            // A forged response must not end the wait for the real response.
            is_answer_to(octets, &unsigned_query)
                && verify(verifier.clone(), octets).map_err(|found| fault = Some(found)).is_ok()
        };
        let datagrams = DatagramOptions { local: self.source_address(), timeout, attempts: 1 };
        let answer = exchange_udp(self.remote.address, &query, is_answer, &datagrams).await;
        answer.map(|answer| answer.octets).map_err(|error| fault.unwrap_or_else(|| error.into()))
    }

    /// Sends a query over TCP or TLS, and returns the complete response.
    pub(super) async fn query_over_stream(
        &self,
        mut query: Vec<u8>,
        timeout: Duration,
    ) -> Result<Vec<u8>, ExchangeError> {
        let unsigned_query = query.clone();
        let verifier = self.sign(&mut query)?;
        let mut connection = self.connect(timeout).await?;
        connection.send(&query).await?;
        let mut answer = Vec::new();
        connection.receive(&mut answer).await?;
        if !is_answer_to(&answer, &unsigned_query) {
            return Err(ExchangeError::QueryMismatch);
        }
        verify(verifier, &answer)?;
        Ok(answer)
    }

    /// Opens a connection. `idle`: maximum time until the next message of the server.
    pub(super) async fn connect(&self, idle: Duration) -> Result<Connection, ExchangeError> {
        let address = self.remote.address;
        let connect = ConnectOptions {
            local: self.source_address(),
            receive_timeout: idle,
            ..ConnectOptions::default()
        };
        Ok(match &self.remote.tls {
            None => Connection::open(address, &connect).await?,
            Some(name) => Connection::open_tls(address, &connect, &client_tls(name, self.options)?).await?,
        })
    }

    /// Returns the configured source address, with port 0; `None`: the system chooses.
    fn source_address(&self) -> Option<SocketAddr> {
        self.remote.source.map(|address| SocketAddr::new(address, 0))
    }
}

fn verify(verifier: Option<ResponseVerifier>, answer: &[u8]) -> Result<(), ExchangeError> {
    let Some(mut verifier) = verifier else { return Ok(()) };
    verifier.verify(answer, seconds_now()).map(drop).map_err(|fault| ExchangeError::from_tsig(fault, answer))
}

/// Whether `answer` has the ID, opcode and question of `query`. A response without a question
/// matches if it reports an error.
fn is_answer_to(answer: &[u8], query: &[u8]) -> bool {
    let (Some(query_header), Some(header)) = (Header::read(query), Header::read(answer)) else {
        return false;
    };
    let is_response = header.id == query_header.id
        && header.opcode() == query_header.opcode()
        && header.flags & flags::QR != 0
        && header.counts[0] <= 1;
    if !is_response || header.counts[0] == 0 {
        return is_response && header.rcode().0 != 0;
    }
    let name_of = |message| NameRef::split_from(message).ok();
    match (name_of(&query[HEADER..]), name_of(&answer[HEADER..])) {
        (Some((query_name, asked_type)), Some((name, found))) => {
            query_name == name
                && asked_type.get(..4).is_some_and(|asked_type| found.get(..4) == Some(asked_type))
        }
        _ => false,
    }
}

fn client_tls(name: &TlsName, options: &TransfersOptions) -> Result<ClientTls, ExchangeError> {
    let tls = match (name, options.tls_authorities.as_deref()) {
        (TlsName::Any, _) => ClientTls::for_transfers(None, None),
        (TlsName::Named(name), Some(authorities)) => ClientTls::for_transfers(Some(authorities), Some(name)),
        (TlsName::Named(name), None) => return Err(ExchangeError::NoAuthorities(name.clone())),
    };
    Ok(tls?)
}
