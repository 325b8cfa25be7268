//! Counts the queries and responses of a resolver, from messages.

use super::domains::DomainCounter;
use super::gap::{Gap, GapReason};
use super::windows::{LATENESS, TimeSource, Windows};
use crate::capture::{CapturedMessage, MessageKind, Transport};
use crate::cost_model::recording::Window;
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Header, Message, flags};
use std::net::IpAddr;

/// Counts of all messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficCounts {
    /// Messages between the resolver and servers.
    pub messages: u64,
    /// Other messages.
    pub others: u64,
    /// Responses that are malformed, so that their signatures cannot be counted.
    pub malformed: u64,
    /// Messages that are too old for an open window: a clock went back.
    pub ignored: u64,
}

/// Counts messages in windows, and the domains of responses. Times are in microseconds since 1970.
#[derive(Debug)]
pub struct TrafficRecorder {
    /// Addresses of the resolver. Empty: all dnstap messages between resolvers and servers count.
    resolver: Vec<IpAddr>,
    windows: Windows,
    domains: DomainCounter,
    counts: TrafficCounts,
}

impl TrafficRecorder {
    /// Time by which the windows of [`advance`](Self::advance) stay open, in microseconds.
    pub const LATENESS: u64 = LATENESS;

    /// Creates a recorder. `resolver`: the addresses from which it queries servers; empty for dnstap.
    /// `window`: length of windows, in microseconds.
    #[must_use]
    pub fn new(resolver: Vec<IpAddr>, window: u64, time_source: TimeSource, domains: DomainCounter) -> Self {
        let windows = Windows::new(window.max(1), time_source);
        Self { resolver, windows, domains, counts: TrafficCounts::default() }
    }

    /// Leaves out all messages before a time: the end of a recording that is continued.
    pub fn continue_after(&mut self, time: u64) {
        self.windows.continue_after(time);
    }

    /// Begins to record at a time, unless it has begun. A file begins with its first message.
    pub fn begin(&mut self, time: u64) {
        self.windows.begin(time);
    }

    /// Counts a message. Returns it if it is a response that was counted and is not truncated.
    pub fn add(&mut self, message: &CapturedMessage) -> Option<Message> {
        if !self.is_of_resolver(message) {
            self.counts.others += 1;
            return None;
        }
        self.counts.messages += 1;
        let Some(window) = self.windows.at(micros(message)) else {
            self.counts.ignored = self.windows.ignored();
            return None;
        };
        if !message.is_response {
            window.queries += 1;
            window.tcp_queries += u64::from(message.transport != Transport::Udp);
            self.windows.close_complete();
            return None;
        }
        window.responses += 1;
        *window.response_octets.get_or_insert(0) += message.octets.len() as u64;
        let is_truncated = Header::read(&message.octets).is_some_and(|header| header.flags & flags::TC != 0);
        window.truncated += u64::from(is_truncated);
        let parsed = Message::parse(&message.octets).ok();
        let signatures = parsed.as_ref().map_or(0, signature_count);
        window.signatures += signatures;
        window.signed_responses += u64::from(signatures > 0);
        self.windows.close_complete();
        let Some(parsed) = parsed else {
            // A truncated message may end inside a record (RFC 2181 §9).
            self.counts.malformed += u64::from(!is_truncated);
            return None;
        };
        self.domains.count(&parsed);
        (!is_truncated).then_some(parsed)
    }

    /// Whether a message is between the resolver and a server.
    fn is_of_resolver(&self, message: &CapturedMessage) -> bool {
        match message.kind {
            // Packets have this kind.
            MessageKind::Auth => self.resolver.contains(&message.client.ip()),
            // Unbound and BIND call queries with the flag RD those of a forwarder.
            MessageKind::Resolver | MessageKind::Forwarder => {
                self.resolver.is_empty() || self.resolver.contains(&message.client.ip())
            }
            _ => false,
        }
    }

    /// Adds verified signatures to the window of a time.
    pub fn add_verified(&mut self, time: u64, signatures: u64) {
        if let Some(window) = self.windows.at(time) {
            window.verified += signatures;
        }
    }

    /// Closes the windows that end [`LATENESS`](Self::LATENESS) before a time of the clock. Windows
    /// without messages are closed too: call it only if the source would have delivered them.
    pub fn advance(&mut self, now: u64) {
        self.windows.advance(now);
    }

    /// Ends recording at a time. [`add`](Self::add) or [`begin`](Self::begin) begin it again.
    pub fn end(&mut self, time: u64) {
        self.windows.end(time);
    }

    /// Ends recording after the last message.
    pub fn end_after_last(&mut self) {
        self.windows.end(self.windows.latest().saturating_add(1));
    }

    /// Ends recording without the windows that are not closed yet.
    pub fn abandon(&mut self, reason: GapReason) {
        self.windows.abandon(reason);
    }

    /// Adds a gap that the caller has found.
    pub fn add_gap(&mut self, gap: Gap) {
        self.windows.add_gap(gap);
    }

    /// Returns the next closed window, in the order of time.
    pub fn next_window(&mut self) -> Option<Window> {
        self.windows.take_closed()
    }

    /// Returns the gaps since the last call.
    pub fn take_gaps(&mut self) -> Vec<Gap> {
        self.windows.take_gaps()
    }

    /// The counts of messages so far.
    #[must_use]
    pub const fn counts(&self) -> &TrafficCounts {
        &self.counts
    }

    /// The domains so far.
    #[must_use]
    pub const fn domains(&self) -> &DomainCounter {
        &self.domains
    }
}

/// The time of a message in microseconds since 1970.
fn micros(message: &CapturedMessage) -> u64 {
    message.time_ns / 1000
}

/// Number of RRSIG records in all sections.
fn signature_count(message: &Message) -> u64 {
    message.records.iter().filter(|record| record.rtype == Rtype::RRSIG).count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::{Description, Tree, ZoneDescription};
    use nonesuch_proto::Name;
    use nonesuch_proto::message::push_query;
    use std::net::SocketAddr;

    const RESOLVER: [u8; 4] = [192, 0, 2, 1];

    fn message(seconds: u64, is_response: bool, octets: Vec<u8>) -> CapturedMessage {
        CapturedMessage {
            time_ns: seconds * 1_000_000_000,
            client: SocketAddr::from((RESOLVER, 4711)),
            server: SocketAddr::from(([192, 0, 2, 2], 53)),
            transport: Transport::Udp,
            is_response,
            kind: MessageKind::Auth,
            octets,
        }
    }

    /// A query and its response from a signed zone, with one RRSIG record.
    fn exchange() -> [Vec<u8>; 2] {
        let zones = vec![ZoneDescription::new("."), ZoneDescription::new("example.")];
        let tree = Tree::build(&Description { zones, ..Description::default() }, 1, 1_767_225_600).unwrap();
        let name: Name = "www.example.".parse().unwrap();
        let mut query = Vec::new();
        push_query(&name, Rtype::A, 1, 0, &mut query);
        [query, tree.zones[1].respond(name.view(), Rtype::A).to_octets()]
    }

    fn recorder() -> TrafficRecorder {
        TrafficRecorder::new(
            vec![RESOLVER.into()],
            10_000_000,
            TimeSource::Messages,
            DomainCounter::default(),
        )
    }

    #[test]
    fn queries_responses_and_signatures_are_counted() {
        let [query, response] = exchange();
        let mut truncated = response.clone();
        truncated[2] |= 2;
        truncated.truncate(40);
        let mut recorder = recorder();
        assert!(recorder.add(&message(1000, false, query.clone())).is_none());
        assert!(recorder.add(&message(1001, true, truncated)).is_none());
        let over_tcp = CapturedMessage { transport: Transport::Tcp, ..message(1002, false, query) };
        recorder.add(&over_tcp);
        assert!(recorder.add(&message(1003, true, response.clone())).is_some());
        recorder.add(&message(1003, true, response[..response.len() - 1].to_vec()));
        recorder.add_verified(1_003_000_000, 2);
        recorder.end_after_last();
        let window = recorder.next_window().unwrap();
        let wanted = Window {
            start: 1_000_000_000,
            length: 3_000_001,
            queries: 2,
            tcp_queries: 1,
            responses: 3,
            truncated: 1,
            signed_responses: 1,
            signatures: 1,
            verified: 2,
            response_octets: Some(40 + 2 * response.len() as u64 - 1),
        };
        assert_eq!((window, recorder.next_window()), (wanted, None));
        assert_eq!(
            *recorder.counts(),
            TrafficCounts { messages: 5, malformed: 1, ..TrafficCounts::default() }
        );
        assert_eq!(recorder.domains().counted()[0].domain, "example.".parse::<Name>().unwrap());
    }

    #[test]
    fn messages_of_clients_and_other_hosts_are_left_out() {
        let [query, _] = exchange();
        let mut recorder = recorder();
        let other = SocketAddr::from(([192, 0, 2, 9], 4711));
        recorder.add(&CapturedMessage { client: other, ..message(1000, false, query.clone()) });
        recorder.add(&CapturedMessage { kind: MessageKind::Client, ..message(1000, false, query.clone()) });
        assert_eq!(*recorder.counts(), TrafficCounts { others: 2, ..TrafficCounts::default() });
        let mut of_dnstap =
            TrafficRecorder::new(Vec::new(), 10_000_000, TimeSource::Messages, DomainCounter::default());
        for kind in [MessageKind::Resolver, MessageKind::Forwarder, MessageKind::Client, MessageKind::Auth] {
            of_dnstap.add(&CapturedMessage { kind, client: other, ..message(1000, false, query.clone()) });
        }
        assert_eq!(*of_dnstap.counts(), TrafficCounts { messages: 2, others: 2, ..TrafficCounts::default() });
    }
}
