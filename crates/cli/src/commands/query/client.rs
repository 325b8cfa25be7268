//! Client for UDP, TCP and TLS: sends one query and receives one response.

use super::error::QueryError;
use super::message::{QueryTemplate, Question, is_answer};
use super::target::Target;
use super::tsig::{TsigSigner, Verdict, Verifier};
use crate::arguments::QueryTransport;
use nonesuch_lab::message_text::read_options;
use nonesuch_net::client::{ConnectOptions, Connection, DatagramOptions, TlsParameters, exchange_udp};
use nonesuch_net::tls::ClientTls;
use nonesuch_net::{ClientError, Transport};
use nonesuch_proto::edns::COOKIE;
use nonesuch_proto::message::{Header, Message, flags};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Maximum number of messages that are read on a connection to find the response to the query.
const MAX_MESSAGES: usize = 16;

/// The settings for sending a query.
pub(super) struct QueryClient<'a> {
    pub(super) arguments: &'a QueryTransport,
    pub(super) target: &'a Target,
    /// `Some` exactly if `arguments.tls` is set. If the two differ, the query can be sent in clear
    /// text.
    pub(super) tls: Option<&'a ClientTls>,
    pub(super) signer: Option<TsigSigner>,
}

/// A response and its transport.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) octets: Vec<u8>,
    pub(super) server: SocketAddr,
    pub(super) transport: Transport,
    pub(super) tls: Option<TlsParameters>,
    /// Time from the query to the response. Over UDP, from the last attempt; over TCP and TLS,
    /// without connect and handshake; after a truncated response, only of the exchange over TCP.
    pub(super) elapsed: Duration,
    /// Notes about the transport for the user.
    pub(super) notes: Vec<String>,
    pub(super) signature: Option<Verdict>,
}

impl QueryClient<'_> {
    /// Sends the query to the addresses of the server in order, until a server responds at one of
    /// them. An error other than [`QueryError::Client`] ends the search.
    pub(super) async fn ask(
        &self,
        question: &Question,
        template: &QueryTemplate,
    ) -> Result<Received, QueryError> {
        let (first, others) = self.target.addresses();
        let mut notes = Vec::new();
        let mut answer = self.ask_one(first, question, template).await;
        for &server in others {
            let Err(QueryError::Client(error)) = answer else { break };
            notes.push(error.to_string());
            answer = self.ask_one(server, question, template).await;
        }
        let mut received = answer?;
        received.notes.splice(0..0, notes);
        Ok(received)
    }

    /// Opens a connection to the first address of the server that accepts one.
    pub(super) async fn connect_any(&self) -> Result<Connection, ClientError> {
        let (first, others) = self.target.addresses();
        let mut connection = self.connect(first).await;
        for &server in others {
            if connection.is_ok() {
                break;
            }
            connection = self.connect(server).await;
        }
        connection
    }

    /// Encodes the query. If there is a key, signs the query and returns the verifier of the
    /// responses.
    pub(super) fn encode_query(
        &self,
        question: &Question,
        template: &QueryTemplate,
    ) -> Result<(Vec<u8>, Option<Verifier>), QueryError> {
        let tsig_octets = self.signer.as_ref().map_or(0, TsigSigner::octets);
        let mut query = template.encode(question, tsig_octets)?;
        let verifier = self.signer.as_ref().map(|signer| signer.sign(&mut query));
        Ok((query, verifier))
    }

    /// Sends the query to one address; over UDP, again over TCP if the response is truncated.
    async fn ask_one(
        &self,
        server: SocketAddr,
        question: &Question,
        template: &QueryTemplate,
    ) -> Result<Received, QueryError> {
        if self.arguments.tcp || self.arguments.tls {
            return self.ask_connected(server, question, template).await;
        }
        let received = self.ask_datagram(server, question, template).await?;
        let is_truncated = Header::read(&received.octets).is_some_and(|header| header.flags & flags::TC != 0);
        if !is_truncated || self.arguments.ignore_truncation {
            return Ok(received);
        }
        // RFC 7766 section 5: a truncated response is requested again over TCP.
        let mut whole = self.ask_connected(server, question, template).await?;
        whole.notes.push(format!("truncated over UDP ({} octets): repeated over TCP", received.octets.len()));
        Ok(whole)
    }

    async fn ask_datagram(
        &self,
        server: SocketAddr,
        question: &Question,
        template: &QueryTemplate,
    ) -> Result<Received, QueryError> {
        let (query, verifier) = self.encode_query(question, template)?;
        let options = DatagramOptions {
            local: self.local(),
            timeout: self.timeout(),
            attempts: self.arguments.retries.saturating_add(1),
        };
        let fits = |octets: &[u8]| is_answer(&query, octets) && has_client_cookie(octets, template);
        let answer = exchange_udp(server, &query, fits, &options).await?;
        let mut notes = Vec::new();
        if answer.attempts > 1 {
            notes.push(format!("answered at attempt {}", answer.attempts));
        }
        Ok(Received {
            signature: verifier.map(|verifier| verifier.verify_single(&answer.octets)),
            octets: answer.octets,
            server,
            transport: Transport::Udp,
            tls: None,
            elapsed: answer.elapsed,
            notes,
        })
    }

    async fn ask_connected(
        &self,
        server: SocketAddr,
        question: &Question,
        template: &QueryTemplate,
    ) -> Result<Received, QueryError> {
        let (query, verifier) = self.encode_query(question, template)?;
        let mut connection = self.connect(server).await?;
        let started_at = Instant::now();
        connection.send(&query).await?;
        let mut octets = Vec::new();
        for _ in 0..MAX_MESSAGES {
            connection.receive(&mut octets).await?;
            if octets.get(..2) == query.get(..2) && is_answer(&query, &octets) {
                return Ok(Received {
                    signature: verifier.map(|verifier| verifier.verify_single(&octets)),
                    octets,
                    server,
                    transport: self.transport(),
                    tls: connection.tls().cloned(),
                    elapsed: started_at.elapsed(),
                    notes: Vec::new(),
                });
            }
        }
        Err(QueryError::OtherQuestion { server })
    }

    /// Opens a connection of the selected transport.
    async fn connect(&self, server: SocketAddr) -> Result<Connection, ClientError> {
        let timeout = self.timeout();
        let options = ConnectOptions {
            local: self.local(),
            connect_timeout: timeout,
            send_timeout: timeout,
            receive_timeout: timeout,
        };
        match self.tls {
            Some(tls) => Connection::open_tls(server, &options, tls).await,
            None => Connection::open(server, &options).await,
        }
    }

    /// The transport of connections.
    pub(super) const fn transport(&self) -> Transport {
        if self.tls.is_some() { Transport::Tls } else { Transport::Tcp }
    }

    fn local(&self) -> Option<SocketAddr> {
        self.arguments.source.map(|address| SocketAddr::new(address, 0))
    }

    fn timeout(&self) -> Duration {
        Duration::from_secs_f64(self.arguments.timeout)
    }
}

/// Whether each cookie in the response contains the client cookie of the query. A response with
/// another cookie is forged (RFC 7873 section 5.3). Also true if the query or the response has no
/// cookie, or the response cannot be parsed; the caller reports this later.
fn has_client_cookie(octets: &[u8], template: &QueryTemplate) -> bool {
    let (Some(own), Ok(message)) = (template.client_cookie(), Message::parse(octets)) else { return true };
    let options = read_options(&message);
    options.iter().filter(|option| option.code == COOKIE).all(|option| option.data.starts_with(own))
}
