//! Queries of clients: what is resolved, and what is answered at once.

use crate::cache::{Cache, Question};
use crate::local_names::LocalAnswer;
use crate::reply::{ReplyContext, ReplyWriter, write_empty};
use crate::shared::Settings;
use crate::task::Outcome;
use crate::trust_anchors::{Sentinel, SentinelAction, SentinelQuery, ZoneAnchor, sentinel, sentinel_action};
use nonesuch_net::Transport;
use nonesuch_net::machine::{ClientQuery, ClientToken, Now};
use nonesuch_proto::message::{Rcode, flags};
use nonesuch_proto::{Class, MAX_NAME, NameRef, Rtype};
use nonesuch_server::cookies::{CookieStatus, Cookies};
use nonesuch_server::extended_errors::ExtendedError;
use nonesuch_server::query::{Query, QueryFault};
use nonesuch_server::reply_options::ReplyOptions;
use nonesuch_server::statistics::{DropReason, Statistics, ThreadStatistics};
use nonesuch_server::trailer::push_header_only;
use std::net::IpAddr;
use std::time::Instant;

/// RFC 8914 §4.21: the query does not request recursion, and the server is not authoritative.
const NOT_RECURSIVE: ExtendedError = ExtendedError { code: 20, text: "recursion is not requested: set RD" };

/// A client that waits for its reply.
#[derive(Debug)]
pub(crate) struct WaitingClient {
    pub(crate) token: ClientToken,
    /// When the query arrived.
    pub(crate) since: Instant,
    /// A hash of the client network.
    pub(crate) network: u64,
    transport: Transport,
    /// The query, which was parsed before.
    message: Box<[u8]>,
    options: ReplyOptions,
}

/// What happens with a message of a client.
#[derive(Debug)]
pub(crate) enum Admission {
    /// It is answered with these octets.
    Reply(Vec<u8>),
    /// It is not answered.
    Drop,
    /// Its question is resolved.
    Resolve(Question, WaitingClient),
}

/// The side of a worker that faces the clients.
#[derive(Debug)]
pub(crate) struct Clients {
    writer: ReplyWriter,
    /// The octets of an RRset of the cache.
    rrset: Vec<u8>,
    udp: ThreadStatistics,
    tcp: ThreadStatistics,
    tls: ThreadStatistics,
}

impl Clients {
    pub(crate) fn new(statistics: &Statistics) -> Self {
        let [udp, tcp, tls] = Transport::ALL.map(|transport| statistics.thread(transport));
        Self { writer: ReplyWriter::new(), rrset: Vec::new(), udp, tcp, tls }
    }

    const fn statistics(&mut self, transport: Transport) -> &mut ThreadStatistics {
        match transport {
            Transport::Udp => &mut self.udp,
            Transport::Tcp => &mut self.tcp,
            Transport::Tls => &mut self.tls,
        }
    }

    /// Decides what happens with a message. `cached` returns the outcome of a question if the cache
    /// has it.
    pub(crate) fn admit(
        &mut self,
        settings: &Settings,
        (cookies, cache): (Option<&Cookies>, &Cache),
        received: ClientQuery<'_>,
        now: Now,
        cached: impl FnOnce(&Question) -> Option<Outcome>,
    ) -> Admission {
        let (header, rcode) = match Query::parse(received.message) {
            Ok(query) => {
                let admission = self.admit_query(&query, settings, (cookies, cache), received, now, cached);
                if let Admission::Reply(reply) = &admission {
                    self.statistics(received.transport).count_response(&query, received.message, reply);
                }
                return admission;
            }
            Err(QueryFault::Ignore) => {
                self.statistics(received.transport).count_drop(DropReason::NotAQuery);
                return Admission::Drop;
            }
            Err(QueryFault::Opcode(header)) => (header, Rcode::NOTIMP),
            Err(QueryFault::Malformed(header)) => (header, Rcode::FORMERR),
        };
        self.statistics(received.transport).count_other_message(header.opcode(), rcode);
        let mut reply = Vec::new();
        push_header_only(header, rcode, &mut reply);
        Admission::Reply(reply)
    }

    fn admit_query(
        &mut self,
        query: &Query<'_>,
        settings: &Settings,
        (cookies, cache): (Option<&Cookies>, &Cache),
        received: ClientQuery<'_>,
        now: Now,
        cached: impl FnOnce(&Question) -> Option<Outcome>,
    ) -> Admission {
        let (address, transport) = (received.client.ip(), received.transport);
        let reply = &settings.reply;
        let options = query
            .opt
            .filter(|opt| opt.version == 0)
            .map(|opt| ReplyOptions::read(&opt, transport, reply, cookies, address, now.unix as u32));
        let context = |options| ReplyContext { query, transport, options, settings: reply };
        let empty = |options, rcode, error| Admission::Reply(write_empty(context(options), rcode, error));
        let options = match options.transpose() {
            Ok(options) => options.unwrap_or(ReplyOptions::NONE),
            Err(_) => {
                self.statistics(transport).count_cookie(CookieStatus::Malformed);
                return empty(ReplyOptions::NONE, Rcode::FORMERR, None);
            }
        };
        self.statistics(transport).count_cookie(options.cookie_status());
        if !settings.options.access.allows_request(address, None, transport == Transport::Tls) {
            self.statistics(transport).count_prohibited();
            return empty(options, Rcode::REFUSED, Some(ExtendedError::PROHIBITED));
        }
        if query.opt.is_some_and(|opt| opt.version != 0) {
            return empty(options, Rcode::BADVERS, None);
        }
        if let Some((rcode, error)) = reject_type(query.qtype) {
            return empty(options, rcode, error);
        }
        let local = settings.local_names.answer(query.name(), query.qtype, query.class);
        if let Some(LocalAnswer { rcode, answer, authority }) = local {
            let outcome = Outcome { rcode, answer, authority, ..Outcome::EMPTY };
            return Admission::Reply(self.writer.write(context(options), &outcome));
        }
        if query.class != Class::IN {
            return empty(options, Rcode::REFUSED, None);
        }
        if query.header.flags & flags::RD == 0 {
            return empty(options, Rcode::REFUSED, Some(NOT_RECURSIVE));
        }
        let checking_disabled = query.header.flags & flags::CD != 0;
        let asked = (query.qtype, query.class, checking_disabled);
        let mut buffer = [0; MAX_NAME];
        let lower = query.lower_name(&mut buffer);
        if sentinel(lower).is_none()
            && let Some((ttl, rrset)) = cache.copy_rrset(lower, asked, now, &mut self.rrset)
            && let Some(reply) = ReplyWriter::write_rrset(context(options), ttl, rrset)
        {
            return Admission::Reply(reply);
        }
        let question =
            Question { name: lower.to_name(), rtype: query.qtype, class: query.class, checking_disabled };
        if let Some(outcome) = cached(&question) {
            return Admission::Reply(self.write(context(options), settings, &outcome));
        }
        let (message, network) = (received.message.into(), network_hash(address));
        let waiting =
            WaitingClient { token: received.token, since: now.instant, network, transport, message, options };
        Admission::Resolve(question, waiting)
    }

    /// Writes the reply with this outcome, unless the query asks for the trust in a key of the root zone
    /// (RFC 8509).
    fn write(&mut self, context: ReplyContext<'_>, settings: &Settings, outcome: &Outcome) -> Vec<u8> {
        match sentinel(context.query.name()) {
            Some(sentinel) if denies_sentinel(sentinel, context.query, settings, outcome) => {
                self.writer.write(context, &Outcome { rcode: Rcode::SERVFAIL, ..Outcome::EMPTY })
            }
            _ => self.writer.write(context, outcome),
        }
    }

    /// Writes the reply with this outcome to a client that waited.
    pub(crate) fn reply(
        &mut self,
        client: &WaitingClient,
        settings: &Settings,
        outcome: &Outcome,
        now: Now,
    ) -> Vec<u8> {
        let query = Query::parse(&client.message).expect("the query was parsed when it was admitted");
        let (transport, options) = (client.transport, client.options);
        let context = ReplyContext { query: &query, transport, options, settings: &settings.reply };
        let reply = self.write(context, settings, outcome);
        let statistics = self.statistics(transport);
        statistics.count_response(&query, &client.message, &reply);
        statistics.record_latency(now.instant.saturating_duration_since(client.since));
        reply
    }
}

/// Whether the answer to a sentinel query is SERVFAIL.
fn denies_sentinel(sentinel: Sentinel, query: &Query<'_>, settings: &Settings, outcome: &Outcome) -> bool {
    let properties = SentinelQuery {
        rtype: query.qtype,
        is_query: true,
        checking_disabled: query.header.flags & flags::CD != 0,
        is_secure: outcome.is_secure(),
    };
    let root = settings.options.validation.anchors.closest(NameRef::ROOT);
    let tags = root.map(ZoneAnchor::tags).unwrap_or_default();
    sentinel_action(sentinel, properties, &tags) == SentinelAction::ReturnServfail
}

/// Returns a number for the network of a client: its IPv4 address, or the /56 of its IPv6 address.
fn network_hash(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => (address.to_bits() >> 72) as u64 | 1 << 63,
    }
}

/// Returns the response code of queries for a type that is never resolved.
const fn reject_type(rtype: Rtype) -> Option<(Rcode, Option<ExtendedError>)> {
    match rtype {
        Rtype::ANY => None,
        Rtype::AXFR | Rtype::IXFR | Rtype::MAILA | Rtype::MAILB => Some((Rcode::NOTIMP, None)),
        // RFC 9824 §3.5: no resolver forwards a query for NXNAME.
        Rtype::NXNAME => Some((Rcode::FORMERR, Some(ExtendedError::INVALID_QUERY_TYPE))),
        rtype if rtype.is_meta() => Some((Rcode::FORMERR, None)),
        _ => None,
    }
}
