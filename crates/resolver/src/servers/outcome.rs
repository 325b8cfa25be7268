//! What the table learns from the end of a query.

use super::attempt::PAYLOAD_MIN;
use super::cookie::ServerCookie;
use super::entry::{EdnsSupport, Server, count_round};
use super::{Attempt, ServerTable, ZoneKey};
use nonesuch_net::Transport;
use nonesuch_net::machine::{Now, SendFailure};
use nonesuch_proto::message::Rcode;
use std::net::SocketAddr;

/// The parts of a response from which the table learns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseFacts<'m> {
    /// The response code, with the upper bits of the OPT record.
    pub rcode: Rcode,
    /// Whether the response has an OPT record.
    pub has_opt: bool,
    /// The data of the cookie option.
    pub cookie: Option<&'m [u8]>,
    /// Length of the message in octets.
    pub octets: usize,
}

/// What follows a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use = "the query may have to be repeated"]
pub enum Next {
    /// Use the response.
    Use,
    /// Do not use the response. Send the query again, to the same server.
    Repeat(Repeat),
}

/// Why a query is repeated, and how. [`ServerTable::begin`] applies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repeat {
    /// The server does not seem to support EDNS: without OPT (RFC 6891 §7).
    WithoutEdns,
    /// The server requires the cookie that it has just sent (RFC 7873 §5.3).
    WithCookie,
    /// The server rejects its own cookie, or a response may be forged because it lacks the cookie
    /// that the server used to send: over TCP (RFC 7873 §5.3).
    OverTcp,
}

impl ServerTable {
    /// Ends a query with its response, which matches the query: its source, ID and question, and
    /// [its cookie](Attempt::matches_cookie).
    pub fn answered(&self, attempt: Attempt, response: &ResponseFacts<'_>, now: Now) -> Next {
        let now_ms = self.milliseconds(now.instant);
        self.family(&attempt.place).record_response();
        let mut shard = self.lock(&attempt.place);
        let server = shard.server_mut(&attempt.place, now_ms);
        server.silent = 0;
        // The time of a TCP query includes that of the connection, if it was opened for the query.
        if attempt.transport == Transport::Udp {
            server.rtt.update(now.instant.saturating_duration_since(attempt.begun), now_ms);
        } else {
            let payload = attempt.payload.unwrap_or(PAYLOAD_MIN);
            let fits = response.octets <= usize::from(payload);
            server.record_tcp_response(fits, attempt.is_tcp_at_once);
        }
        let next = learn(server, &attempt, response, now_ms);
        if server.has_paths {
            let (hash, key) = attempt.place.path(attempt.purpose.zone);
            if let Some(path) = shard.paths.get(hash, &key) {
                path.record_response(attempt.transport);
            }
        }
        drop((shard, attempt));
        next
    }

    /// Ends a query without a response within its [timeout](Attempt::timeout). If a query ends earlier
    /// because of the deadline of its client query, drop the attempt.
    pub fn timed_out(&self, attempt: Attempt, now: Now) {
        self.record_silence(&attempt, now);
        drop(attempt);
    }

    /// Ends a query that failed.
    pub fn failed(&self, attempt: Attempt, failure: SendFailure, now: Now) {
        match failure {
            SendFailure::Local => {}
            SendFailure::Refused => self.record_silence(&attempt, now),
            SendFailure::Unreachable => {
                self.family(&attempt.place).record_failed_send(self.milliseconds(now.instant));
                self.record_silence(&attempt, now);
            }
        }
        drop(attempt);
    }

    fn record_silence(&self, attempt: &Attempt, now: Now) {
        let now_ms = self.milliseconds(now.instant);
        let [of_zone, of_server] = attempt.silent;
        let mut shard = self.lock(&attempt.place);
        let server = shard.server_mut(&attempt.place, now_ms);
        server.silent = count_round(server.silent, of_server);
        if attempt.transport != Transport::Udp {
            server.record_tcp_silence();
        }
        let is_known = server.rtt.is_known(now_ms);
        let path = shard.path_mut(&attempt.place, attempt.purpose.zone, now_ms);
        path.record_timeout(attempt.purpose.kind, attempt.transport, of_zone, now_ms);
        drop(shard);
        if !is_known && attempt.transport == Transport::Udp {
            let network = self.hash.octets(attempt.place.key.network());
            self.family(&attempt.place).record_silence(network, now_ms);
        }
    }

    /// Records that a server does not serve a zone: its response is REFUSED, or not authoritative and
    /// no referral to a zone below. The server is avoided for this zone for five minutes. Not for
    /// SERVFAIL, which may concern one name only.
    pub fn mark_lame(&self, server: SocketAddr, zone: ZoneKey, now: Now) {
        let (place, now_ms) = (self.place(server), self.milliseconds(now.instant));
        self.lock(&place).path_mut(&place, zone, now_ms).mark_lame(now_ms);
    }

    /// Records that a server does not copy the case of the query name, as a response over TCP showed.
    pub fn mark_changes_case(&self, server: SocketAddr, now: Now) {
        self.change(server, now, |server, now| server.changed_case_at = Some(now));
    }

    /// Records that a server is queried over TCP from now on, for 15 minutes.
    pub fn mark_requires_tcp(&self, server: SocketAddr, now: Now) {
        self.change(server, now, |server, now| server.required_tcp_at = Some(now));
    }

    fn change(&self, server: SocketAddr, now: Now, change: impl FnOnce(&mut Server, u64)) {
        let (place, now_ms) = (self.place(server), self.milliseconds(now.instant));
        change(self.lock(&place).server_mut(&place, now_ms), now_ms);
    }
}

/// Learns cookie and EDNS support from a response.
fn learn(server: &mut Server, attempt: &Attempt, response: &ResponseFacts<'_>, now: u64) -> Next {
    let cookie = learn_cookie(server, attempt, response, now);
    let edns = learn_edns(server, attempt, response, now);
    cookie.or(edns).map_or(Next::Use, Next::Repeat)
}

fn learn_cookie(
    server: &mut Server,
    attempt: &Attempt,
    response: &ResponseFacts<'_>,
    now: u64,
) -> Option<Repeat> {
    let sent = attempt.cookie?;
    let received = response.cookie.filter(|data| sent.matches(Some(data)));
    let learned = received.and_then(|data| ServerCookie::read(data, attempt.day));
    if learned.is_some() {
        server.cookie = learned;
    }
    if attempt.transport != Transport::Udp {
        // An attacker cannot forge this: the server sends no cookies any more.
        if received.is_none() {
            server.cookie = None;
        }
        return None;
    }
    if response.rcode == Rcode::BADCOOKIE {
        if learned.is_some() && attempt.repeat != Some(Repeat::WithCookie) {
            return Some(Repeat::WithCookie);
        }
        // RFC 7873 §5.3: after the second BADCOOKIE, TCP.
        server.required_tcp_at = Some(now);
        return Some(Repeat::OverTcp);
    }
    // RFC 7873 §5.3: a server that sends cookies sends them always. As BIND, ask over TCP instead of
    // waiting for another response, because the server may have changed.
    (received.is_none() && sent.has_server_cookie()).then_some(Repeat::OverTcp)
}

fn learn_edns(
    server: &mut Server,
    attempt: &Attempt,
    response: &ResponseFacts<'_>,
    now: u64,
) -> Option<Repeat> {
    if attempt.payload.is_none() {
        let is_good = matches!(response.rcode, Rcode::NOERROR | Rcode::NXDOMAIN);
        if attempt.repeat == Some(Repeat::WithoutEdns) && is_good {
            server.edns = EdnsSupport::Unsupported(now);
        }
        return None;
    }
    // RFC 6891 §7. Some servers reject only options that they do not know, with FORMERR or BADVERS;
    // they get no options without EDNS. Timeouts are no reason (DNS flag day 2019).
    let is_rejected = match response.rcode {
        Rcode::FORMERR | Rcode::BADVERS => true,
        Rcode::NOTIMP => !response.has_opt,
        _ => false,
    };
    if response.has_opt && !is_rejected {
        server.edns = EdnsSupport::Supported(now);
    }
    // A server that supports EDNS does not lose it: then the response is an error of the server, or
    // forged to remove DNSSEC.
    (is_rejected && !server.has_edns(now)).then_some(Repeat::WithoutEdns)
}
