//! Snapshot of the counters and gauges of a running server, for the metrics.

use crate::logging;
use crate::metrics::{RefreshTimes, Snapshot, ZoneRow};
use crate::server::daemon::Daemon;
use crate::zones::time_or_now;
use nonesuch_authoritative::server::Server;
use nonesuch_proto::Name;
use nonesuch_proto::message::opcode;
use nonesuch_secondary::Counts;
use nonesuch_server::statistics::{Direction, NotifyCount, TransferKind, TransferResult, TransferTotals};
use std::collections::HashMap;
use std::sync::PoisonError;

impl Daemon {
    /// The values for the metrics.
    pub(crate) fn snapshot(&self) -> Snapshot {
        let zones = self.service.zone_status(None);
        let max_zones_with_gauges = self.configuration().server.metrics_zones;
        // With more zones, the metrics contain no gauges for single zones.
        let secondaries =
            if zones.len() <= max_zones_with_gauges { self.transfers.status() } else { Vec::new() };
        let secondaries: HashMap<String, _> =
            secondaries.iter().map(|zone| (zone.apex.to_string(), zone)).collect();
        let configuration = self.configuration();
        let counts_queries =
            configuration.server.metrics_zone_queries && zones.len() <= max_zones_with_gauges;
        drop(configuration);
        let database = self.service.zones().database();
        let queries = |zone: &str| {
            let apex: Name = zone.parse().ok().filter(|_| counts_queries)?;
            Some(database.find_exact(apex.view().to_canonical().view())?.query_count())
        };
        let rows = zones.into_iter().map(|status| ZoneRow {
            queries: queries(&status.zone),
            refresh: secondaries.get(&status.zone).map(|zone| RefreshTimes {
                refreshed: zone.refreshed,
                next: zone.next,
                expires: zone.expires,
            }),
            state: status.state.as_str(),
            serial: status.serial,
            loaded_at: status.loaded_at,
            nearest_expiration: status.nearest_expiration.map(u64::from),
            records: status.records,
            is_rejected: status.error.is_some(),
            zone: status.zone,
        });
        let mut statistics = self.context.statistics.sum();
        add_incoming_transfers(&self.transfers.counts(), &mut statistics.transfers);
        let refused = statistics.error_responses(opcode::NOTIFY);
        statistics.transfers.add_notifies(Direction::In, NotifyCount::Refused, refused);
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        let server = server.as_ref();
        Snapshot {
            statistics,
            online: server.map(Server::online_counters).unwrap_or_default(),
            udp: server.map(Server::udp_counters).unwrap_or_default(),
            tcp: server.map(Server::tcp_counters).unwrap_or_default(),
            tls: server.and_then(Server::tls_counters),
            dnstap: self.context.dnstap.as_ref().map(|dnstap| dnstap.counters()),
            zones: rows.collect(),
            max_zones_with_gauges,
            reloads: self.reloads.history.counters(),
            resolver: None,
            log: logging::counters(),
            now: u64::from(time_or_now(None)),
        }
    }
}

/// Adds the results of transfers from primaries and of NOTIFY. Transfers that `counts` does not
/// count as IXFR (`ixfr_outcomes`) count as AXFR.
fn add_incoming_transfers(counts: &Counts, sum: &mut TransferTotals) {
    let ixfr_outcomes = counts.ixfr_outcomes;
    for (kind, result, times) in [
        (TransferKind::Axfr, TransferResult::Done, counts.axfr),
        (TransferKind::Ixfr, TransferResult::Done, counts.ixfr),
        (TransferKind::Axfr, TransferResult::UpToDate, counts.up_to_date - ixfr_outcomes.up_to_date),
        (TransferKind::Axfr, TransferResult::Refused, counts.refused - ixfr_outcomes.refused),
        (TransferKind::Axfr, TransferResult::Failed, counts.failed - ixfr_outcomes.failed),
        (TransferKind::Ixfr, TransferResult::UpToDate, ixfr_outcomes.up_to_date),
        (TransferKind::Ixfr, TransferResult::Refused, ixfr_outcomes.refused),
        (TransferKind::Ixfr, TransferResult::Failed, ixfr_outcomes.failed),
    ] {
        sum.add(Direction::In, kind, result, times);
    }
    if counts.octets > 0 {
        sum.messages.insert(Direction::In, counts.messages);
        sum.octets.insert(Direction::In, counts.octets);
    }
    sum.add_notifies(Direction::In, NotifyCount::Accepted, counts.notified);
    sum.add_notifies(Direction::Out, NotifyCount::Accepted, counts.acknowledged);
    sum.add_notifies(Direction::Out, NotifyCount::Refused, counts.notify_refused);
    sum.add_notifies(Direction::Out, NotifyCount::Unanswered, counts.notify_unanswered);
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_secondary::IxfrOutcomes;

    #[test]
    fn transfers_are_counted_by_kind_and_a_silent_secondary_counts_as_unanswered() {
        let ixfr_outcomes = IxfrOutcomes { up_to_date: 1, failed: 2, refused: 0 };
        let counts = Counts {
            axfr: 1,
            up_to_date: 1,
            failed: 5,
            refused: 1,
            acknowledged: 7,
            notify_unanswered: 3,
            ixfr_outcomes,
            ..Counts::default()
        };
        let mut sum = TransferTotals::default();
        add_incoming_transfers(&counts, &mut sum);
        let times = |kind, result| sum.ended.get(&(Direction::In, kind, result)).copied();
        assert_eq!(times(TransferKind::Axfr, TransferResult::Done), Some(1));
        assert_eq!(times(TransferKind::Axfr, TransferResult::Failed), Some(3));
        assert_eq!(times(TransferKind::Ixfr, TransferResult::Failed), Some(2));
        assert_eq!(times(TransferKind::Axfr, TransferResult::Refused), Some(1));
        assert_eq!(times(TransferKind::Axfr, TransferResult::UpToDate), None);
        let notifies = |result| sum.notifies.get(&(Direction::Out, result)).copied();
        assert_eq!(
            [NotifyCount::Accepted, NotifyCount::Refused, NotifyCount::Unanswered].map(notifies),
            [Some(7), None, Some(3)]
        );
    }
}
