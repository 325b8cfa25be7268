//! The table `[limits]`: limits for clients and transfers.

use super::keys::{Row, Table, default, example, key};
use super::section::{Item, Section};
use super::tls::handshake_row;
use super::value_error::ValueError;
use super::values::{bytes, choice, duration_text, list, number, parsed, seconds, size_text};
use nonesuch_authoritative::transfer::outbound;
use nonesuch_net::tcp::TcpOptions;
use nonesuch_secondary::TransfersOptions;
use nonesuch_server::acl::Prefix;
use nonesuch_server::limits::{
    OnlineSettings, OverBudgetAction, RATE_RANGE, RateSettings, SHARE_RANGE, SLIP_RANGE, TABLE_OCTETS_RANGE,
};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Range of short time limits, in seconds: up to an hour.
pub(super) const UP_TO_HOUR: RangeInclusive<u64> = 1..=3600;
/// Range of long time limits, in seconds: up to a week.
const UP_TO_WEEK: RangeInclusive<u64> = 1..=604_800;
/// Values of `online-over`.
const ONLINE_OVER: [(&str, OverBudgetAction); 2] =
    [("truncate", OverBudgetAction::Truncate), ("refuse", OverBudgetAction::Refuse)];
/// The message about the removed limits of online work.
const REMOVED_ONLINE_LIMIT: &str = "this key was removed: each client gets an equal share of online-share once \
    a worker has spent it, and has no limit before that; delete this line";

/// Limits for clients and transfers. Times are in seconds, sizes in bytes. [`Default`] sets all
/// limits to zero; [`Limits::defaults`] returns the declared defaults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) exempt: Vec<Prefix>,
    pub(crate) tcp_connections: usize,
    pub(crate) tcp_connections_each: usize,
    pub(crate) tcp_queries_in_flight: usize,
    pub(crate) tcp_memory: u64,
    pub(crate) tcp_idle: u64,
    pub(crate) tcp_first_message: u64,
    pub(crate) tcp_write: u64,
    pub(crate) tls_handshake: u64,
    /// Maximum responses per second of one category and name to each network; 0 for no limit.
    pub(crate) responses_per_second: u32,
    /// Maximum NXDOMAIN responses per second of one zone to each network; 0 for no limit.
    pub(crate) nxdomain_responses_per_second: u32,
    /// Maximum referrals per second to each network; 0 for no limit.
    pub(crate) referral_responses_per_second: u32,
    /// Maximum responses per second of all categories to each network; 0 for no limit.
    pub(crate) client_responses_per_second: u32,
    pub(crate) slip: u8,
    pub(crate) response_table: u64,
    /// Percentage of each worker's time that online work may use.
    pub(crate) online_share: u8,
    /// The same percentage while other work takes the rest of the worker's time.
    pub(crate) online_busy_share: u8,
    pub(crate) online_over: OverBudgetAction,
    pub(crate) transfers_out: usize,
    /// Maximum simultaneous outgoing transfers to one network.
    pub(crate) transfers_out_each: usize,
    /// Maximum time in which a secondary acknowledges 16 KiB of a transfer.
    pub(crate) transfer_out_idle: u64,
    /// Time limit for a complete outgoing transfer.
    pub(crate) transfer_out_time: u64,
    pub(crate) transfers_in: usize,
    pub(crate) transfers_in_each: usize,
    /// Time limit for an incoming transfer, without verification.
    pub(crate) transfer_in_time: u64,
    /// Maximum time without data from the primary during a transfer.
    pub(crate) transfer_in_idle: u64,
}

pub(super) fn table() -> Table<Limits> {
    let (rates, online) = (RateSettings::default(), OnlineSettings::default());
    let (tcp, incoming) = (TcpOptions::default(), TransfersOptions::default());
    let duration = |time: Duration| duration_text(time.as_secs());
    Table::new(vec![
        Row::Text("
[limits]
# Networks to which the limits for each client do not apply: response rate limiting, the shares of
# online work, tcp-connections-each and transfers-out-each. The limits for all clients together do
# apply. The default is loopback, because packets from other hosts cannot have such an address. For
# connections and transfers, a change needs a restart."),
        key("exempt", list("prefixes", parsed), default(r#"["127.0.0.0/8", "::1"]"#), |l, v| l.exempt = v),
        Row::Text("
# Limits of connections over TCP and TLS (restart, all of them). Each listen address has its own
# limits.
#
# Maximum number of connections of all clients: 1 to 1000000."),
        key("tcp-connections", limit_count(), default(4096), |l, v| l.tcp_connections = v),
        Row::Text("# Maximum number of connections of one client (an IPv4 address or an IPv6 /64): 1 to 1000000, at
# most tcp-connections."),
        key("tcp-connections-each", limit_count(), default(128), |l, v| l.tcp_connections_each = v),
        Row::Text("# Maximum number of queries of one connection that are answered at the same time: 1 to 1000000."),
        key("tcp-queries-in-flight", limit_count(), default(64), |l, v| l.tcp_queries_in_flight = v),
        Row::Text("# Maximum memory for buffers and TLS handshakes, of all connections to one listen address together:
# 1MiB to 1024GiB."),
        key("tcp-memory", bytes(1 << 20..=1 << 40), default("64MiB"), |l, v| l.tcp_memory = v),
        Row::Text("# Maximum time that a connection is idle: 1s to 1h. When more than half of tcp-connections are open,
# it decreases with their number, to a tenth when all are open."),
        key("tcp-idle", seconds(UP_TO_HOUR), default("10s"), |l, v| l.tcp_idle = v),
        Row::Text("# Maximum time until the first query of a connection is complete: 1s to 1h."),
        key("tcp-first-message", seconds(UP_TO_HOUR), default("5s"), |l, v| l.tcp_first_message = v),
        Row::Text("# Maximum time until the client acknowledges the next 16 KiB of a response, or what remains of the
# response if that is less: 1s to 1h. For transfers, transfer-out-idle applies instead."),
        key("tcp-write", seconds(UP_TO_HOUR), default("5s"), |l, v| l.tcp_write = v),
        Row::Text("# Maximum time of a TLS handshake: 1s to 1h."),
        handshake_row(|l: &mut Limits, v| l.tls_handshake = v),
        Row::Text("
# Response rate limiting (RRL) of responses over UDP. A client is a network (IPv4 /24, IPv6 /56).
# Clients with a valid cookie are not limited. The default is off, because resolvers of a large
# network can send more queries than a limit that stops a flood allows.
#
# Maximum number of responses per second to one client for one name and response category: 0 to
# 1000000. Default: 0, no limit. 200 is a strict limit."),
        key("responses-per-second", number(RATE_RANGE), example("200"), |l, v| l.responses_per_second = v),
        Row::Text("# The same for NXDOMAIN responses of one zone: 0 to 1000000; 0: no limit. Default:
# responses-per-second."),
        key("nxdomain-responses-per-second", number(RATE_RANGE), example("500"), |l, v| l.nxdomain_responses_per_second = v),
        Row::Text("# The same for referrals to one zone cut: 0 to 1000000; 0: no limit. Default: responses-per-second."),
        key("referral-responses-per-second", number(RATE_RANGE), example("500"), |l, v| l.referral_responses_per_second = v),
        Row::Text("# Maximum number of responses per second to one client, of all categories and names together: 0 to
# 1000000; 0: no limit. Default: 2000 if responses-per-second is above 0, else 0."),
        key("client-responses-per-second", number(RATE_RANGE), example("2000"), |l, v| l.client_responses_per_second = v),
        Row::Text("# One of every slip responses over a limit is sent, empty with TC, so that a client with a real
# address repeats the query over TCP. The others are dropped. 0 to 15; 1 drops none, 0 drops all."),
        key("slip", number(SLIP_RANGE), default(rates.slip), |l, v| l.slip = v),
        Row::Text("# Memory for the counters of clients and names: 4KiB to 1GiB."),
        key("response-table", bytes(TABLE_OCTETS_RANGE), default(size_text(rates.table_octets as u64)), |l, v| l.response_table = v),
        Row::Text("
# Maximum percentage of each worker's time for signatures and proofs that are generated online: 1 to
# 100. No client is limited until a worker has spent this share. Then each network (IPv4 /24, IPv6
# /48) gets an equal part."),
        key("online-share", number(SHARE_RANGE), default(online.share), |l, v| l.online_share = v),
        Row::Text("# Lower bound of that percentage: 1 to online-share. As the other work of a worker takes more of its
# time, the percentage falls from online-share to this value."),
        key("online-busy-share", number(SHARE_RANGE), default(online.busy_share), |l, v| l.online_busy_share = v),
        Row::Text("# Response over UDP to a query that exceeds the share. truncate: empty with TC. refuse: REFUSED.
# Over TCP and TLS it is REFUSED."),
        key("online-over", choice(ONLINE_OVER), default("truncate"), |l, v| l.online_over = v),
        Row::Text("
# Limits of zone transfers (restart, all of them).
#
# Maximum number of concurrent transfers to secondaries: 1 to 1000000."),
        key("transfers-out", limit_count(), default(outbound::DEFAULT_MAX_TRANSFERS), |l, v| l.transfers_out = v),
        Row::Text("# Maximum number of concurrent transfers to one network (IPv4 /24, IPv6 /56) that is not exempt: 1
# to transfers-out. Default: 5, or transfers-out if that is less."),
        key("transfers-out-each", limit_count(), default(outbound::DEFAULT_MAX_PER_NETWORK), |l, v| l.transfers_out_each = v),
        Row::Text("# Maximum number of concurrent transfers from primaries: 1 to 1000000."),
        key("transfers-in", limit_count(), default(incoming.transfers), |l, v| l.transfers_in = v),
        Row::Text("# Maximum number of concurrent transfers from one primary: 1 to 1000000."),
        key("transfers-in-each", limit_count(), default(incoming.transfers_per_primary), |l, v| l.transfers_in_each = v),
        Row::Text("# Maximum time until a secondary acknowledges the next 16 KiB of a transfer, or what remains of the
# transfer if that is less: 1s to 1h. The default requires 546 octets per second."),
        key("transfer-out-idle", seconds(UP_TO_HOUR), default(duration(tcp.stream_idle_timeout)), |l, v| l.transfer_out_idle = v),
        Row::Text("# Maximum time of a whole transfer to a secondary: 1s to 1w."),
        key("transfer-out-time", seconds(UP_TO_WEEK), default(duration(tcp.stream_time_max)), |l, v| l.transfer_out_time = v),
        Row::Text("# Maximum time of a transfer from a primary, without the verification that follows: 1s to 1w."),
        key("transfer-in-time", seconds(UP_TO_WEEK), default(duration(incoming.time_limit)), |l, v| l.transfer_in_time = v),
        Row::Text("# Maximum time in which a primary sends nothing during a transfer: 1s to 1h."),
        key("transfer-in-idle", seconds(UP_TO_HOUR), default(duration(incoming.idle_limit)), |l, v| l.transfer_in_idle = v),
        Row::Removed("online-operations", REMOVED_ONLINE_LIMIT),
        Row::Removed("online-proven-factor", REMOVED_ONLINE_LIMIT),
    ])
}

/// A limit on the number of connections, queries or transfers.
fn limit_count() -> impl Fn(Item<'_, '_>) -> Result<usize, ValueError> {
    number(1..=1_000_000)
}

impl Limits {
    /// The declared defaults.
    pub(crate) fn defaults() -> Self {
        table().defaults()
    }

    /// Reads `[limits]`. Computes defaults that depend on other limits, and reports contradictions.
    pub(super) fn read(root: &Section<'_>) -> Self {
        let Some(section) = root.subtable("limits") else { return Self::defaults() };
        let mut limits = table().read_all(&section);
        limits.set_default_rates(&section);
        if !section.has("transfers-out-each") {
            limits.transfers_out_each = limits.transfers_out_each.min(limits.transfers_out);
        }
        limits.check(&section);
        limits
    }

    /// Derives the rates that are not set from `responses-per-second`. Warns of keys that have no
    /// effect without rate limiting.
    fn set_default_rates(&mut self, section: &Section<'_>) {
        let rate = self.responses_per_second;
        if !section.has("nxdomain-responses-per-second") {
            self.nxdomain_responses_per_second = rate;
        }
        if !section.has("referral-responses-per-second") {
            self.referral_responses_per_second = rate;
        }
        if !section.has("client-responses-per-second") && rate > 0 {
            self.client_responses_per_second = RateSettings::DEFAULT_CLIENT_RATE;
        }
        let others = [self.nxdomain_responses_per_second, self.referral_responses_per_second];
        if rate == 0 && others == [0, 0] && self.client_responses_per_second == 0 {
            for key in ["slip", "response-table"].into_iter().filter(|key| section.has(key)) {
                let message = "no effect, because response rate limiting is off: set \
                    responses-per-second";
                section.warn(key, message);
            }
        }
    }

    /// Reports limits that exceed the limit that contains them.
    fn check(&self, section: &Section<'_>) {
        let fault = |is_wrong: bool, key: &str, message: &str| {
            if is_wrong {
                section.report_fault(key, message);
            }
        };
        fault(
            self.tcp_connections_each > self.tcp_connections,
            "tcp-connections-each",
            "more than tcp-connections: lower it",
        );
        fault(
            self.transfers_out_each > self.transfers_out,
            "transfers-out-each",
            "more than transfers-out: lower it",
        );
        fault(
            self.online_busy_share > self.online_share,
            "online-busy-share",
            "more than online-share: lower it",
        );
    }
}
