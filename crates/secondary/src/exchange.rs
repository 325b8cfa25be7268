//! One message and its answer, or the messages of a transfer: signed and verified where there is a key, over TLS where that is
//! asked for.

use super::options::TransfersOptions;
use nonesuch_net::client::{ConnectOptions, Connection, DatagramOptions, exchange_udp};
use nonesuch_net::tls::ClientTls;
use nonesuch_proto::NameRef;
use nonesuch_proto::edns::{self, Options};
use nonesuch_proto::message::{HEADER, Header, Message, Rcode, flags};
use nonesuch_server::acl::{Remote, TlsName};
use nonesuch_server::clock::seconds_now;
use nonesuch_server::reply_options::DEFAULT_UDP_SIZE;
use nonesuch_server::tsig::{self, AnswerVerifier, Key, Keys};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The key that messages to `remote` are signed with.
pub(super) fn key_of(remote: &Remote, keys: &Keys) -> Result<Option<Arc<Key>>, String> {
    let Some(name) = &remote.key else { return Ok(None) };
    let found = keys.find(name).cloned();
    found.map(Some).ok_or_else(|| format!("there is no TSIG key {name}: define it"))
}

/// Asks, with a question that ends without additional records, how long the zone has at its primary (RFC 7314 §4).
pub(super) fn push_expire_question(question: &mut Vec<u8>) {
    let start = question.len();
    edns::push_opt(DEFAULT_UDP_SIZE, 0, 0, question);
    edns::push_expire(None, question);
    edns::set_options_length(start, question);
    question[10..HEADER].copy_from_slice(&1u16.to_be_bytes());
}

/// Seconds that the zone has at the primary, where its answer says so.
pub(super) fn read_expire(answer: &[u8]) -> Option<u32> {
    let message = Message::parse(answer).ok()?;
    let (_, data) = Options::new(&message.opt()?.rdata).find(|(code, _)| *code == edns::EXPIRE)?;
    edns::read_expire(data)?
}

/// Asks in one datagram, or over TLS where the remote wants that; returns the whole answer, verified where there is a key.
pub(super) async fn ask(
    remote: &Remote,
    mut question: Vec<u8>,
    keys: &Keys,
    patience: Duration,
    options: &TransfersOptions,
) -> Result<Vec<u8>, String> {
    if remote.tls.is_some() {
        return ask_by_stream(remote, question, keys, patience, options).await;
    }
    let plain = question.clone();
    let verifier = key_of(remote, keys)?.map(|key| tsig::sign_request(&key, &mut question, seconds_now()));
    let mut fault = None;
    let is_answer = |octets: &[u8]| {
        // A forged answer must not end the wait for the true one.
        is_answer_to(octets, &plain)
            && verify(verifier.clone(), octets).map_err(|found| fault = Some(found)).is_ok()
    };
    let datagrams = DatagramOptions { local: local(remote), timeout: patience, attempts: 1 };
    let answer = exchange_udp(remote.address, &question, is_answer, &datagrams).await;
    answer.map(|answer| answer.octets).map_err(|error| fault.unwrap_or_else(|| error.to_string()))
}

/// Asks over TCP or TLS.
pub(super) async fn ask_by_stream(
    remote: &Remote,
    mut question: Vec<u8>,
    keys: &Keys,
    patience: Duration,
    options: &TransfersOptions,
) -> Result<Vec<u8>, String> {
    let plain = question.clone();
    let verifier = key_of(remote, keys)?.map(|key| tsig::sign_request(&key, &mut question, seconds_now()));
    let mut link = Link::open(remote, options, patience).await?;
    link.send(&question).await?;
    let mut answer = Vec::new();
    link.receive(&mut answer).await?;
    if !is_answer_to(&answer, &plain) {
        return Err("what came is not the answer to the question".into());
    }
    verify(verifier, &answer)?;
    Ok(answer)
}

fn verify(verifier: Option<AnswerVerifier>, answer: &[u8]) -> Result<(), String> {
    let Some(mut verifier) = verifier else { return Ok(()) };
    verifier
        .verify(answer, seconds_now())
        .map(drop)
        .map_err(|fault| refused_words(&fault.to_string(), answer))
}

/// Why an answer is not taken, and the error that it tells, which nobody vouches for and which may well be why.
fn refused_words(fault: &str, answer: &[u8]) -> String {
    match Header::read(answer).map(Header::rcode) {
        None | Some(Rcode::NOERROR) => fault.to_owned(),
        Some(rcode) => format!("{fault}; it says {rcode}"),
    }
}

/// Whether `answer` has identifier, opcode and question of `question`, or says with an error that it could not read it.
fn is_answer_to(answer: &[u8], question: &[u8]) -> bool {
    let (Some(asked), Some(header)) = (Header::read(question), Header::read(answer)) else { return false };
    let fits = header.id == asked.id
        && header.opcode() == asked.opcode()
        && header.flags & flags::QR != 0
        && header.counts[0] <= 1;
    if !fits || header.counts[0] == 0 {
        return fits && header.rcode().0 != 0;
    }
    let name_of = |message| NameRef::split_from(message).ok();
    match (name_of(&question[HEADER..]), name_of(&answer[HEADER..])) {
        (Some((asked, kind)), Some((name, found))) => {
            asked == name && kind.get(..4).is_some_and(|kind| found.get(..4) == Some(kind))
        }
        _ => false,
    }
}

/// The address to send from.
fn local(remote: &Remote) -> Option<SocketAddr> {
    remote.source.map(|address| SocketAddr::new(address, 0))
}

/// A connection to a primary or secondary.
pub(super) struct Link(Connection);

impl Link {
    /// Opens it; the other side may be silent no longer than `idle`.
    pub(super) async fn open(
        remote: &Remote,
        options: &TransfersOptions,
        idle: Duration,
    ) -> Result<Self, String> {
        let connect =
            ConnectOptions { local: local(remote), receive_timeout: idle, ..ConnectOptions::default() };
        let opened = match &remote.tls {
            None => Connection::open(remote.address, &connect).await,
            Some(name) => Connection::open_tls(remote.address, &connect, &client_tls(name, options)?).await,
        };
        opened.map(Self).map_err(|error| error.to_string())
    }

    pub(super) async fn send(&mut self, message: &[u8]) -> Result<(), String> {
        self.0.send(message).await.map_err(|error| error.to_string())
    }

    /// Waits for the next message.
    pub(super) async fn receive(&mut self, message: &mut Vec<u8>) -> Result<(), String> {
        self.0.receive(message).await.map_err(|error| error.to_string())
    }
}

fn client_tls(name: &TlsName, options: &TransfersOptions) -> Result<ClientTls, String> {
    let made = match (name, options.tls_authorities.as_deref()) {
        (TlsName::Any, _) => ClientTls::for_transfers(None, None),
        (TlsName::Named(name), Some(authorities)) => ClientTls::for_transfers(Some(authorities), Some(name)),
        (TlsName::Named(name), None) => {
            return Err(format!(
                "{name} cannot be authenticated: name the file with the certificates of its authority"
            ));
        }
    };
    made.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_not_signed_is_told_with_its_error() {
        let answer = |rcode: Rcode| Header { id: 1, flags: flags::QR | rcode.0, counts: [0; 4] }.to_octets();
        let words = |rcode| refused_words("the answer is not signed", &answer(rcode));
        assert_eq!(words(Rcode::NOTAUTH), "the answer is not signed; it says NOTAUTH");
        assert_eq!(words(Rcode::NOERROR), "the answer is not signed");
    }
}
