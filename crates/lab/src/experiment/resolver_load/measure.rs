//! Loads of one resolver.

use super::parameters::{ClientTransport, Event, LoadCase, Parameters, ResolverCase, Surroundings};
use super::replayed::Recorded;
use super::row::Row;
use super::traffic::Traffic;
use crate::conditions::Conditions;
use crate::load::{self, LoadOptions, LoadReport, Progress};
use crate::machine::CpuPlacement;
use crate::peers::TlsIdentity;
use crate::process::{self, CpuTime};
use crate::testbed::{Network, ResolverOptions, RunningResolver, Site, TestbedError, TreeFiles, TreeServers};
use nonesuch_net::tls::ClientTls;
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Header, Message, Record, flags};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Time limit of a query. Clients repeat a query after about this time.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Maximum number of outstanding queries of a load with a rate.
const OUTSTANDING_MAX: usize = 16_000;
/// Maximum duration of the queries before a load, in seconds.
const WARMING_SECONDS: f64 = 60.0;

/// Time from the start of a load until the event.
const PROGRESS: Duration = Duration::from_millis(100);

/// Name in the certificate of the resolver.
pub(super) const TLS_NAME: &str = "resolver.example";

/// A tree with its running servers.
pub(super) struct Bench<'b> {
    pub(super) parameters: &'b Parameters,
    pub(super) surroundings: &'b Surroundings,
    pub(super) tree: &'b TreeFiles,
    pub(super) network: &'b Network,
    pub(super) servers: &'b TreeServers,
    pub(super) recorded: Option<&'b Recorded>,
    pub(super) tls: Option<&'b TlsIdentity>,
    pub(super) cpus: Option<CpuPlacement>,
    pub(super) program: &'b Path,
    pub(super) directory: &'b Path,
    pub(super) seed: u64,
}

impl Bench<'_> {
    /// Starts the resolver, loads it in all intervals, and returns a row for each.
    pub(super) fn measure(&self, case: &ResolverCase, load: &LoadCase) -> Result<Vec<Row>, TestbedError> {
        let mut resolver = self.start(case, load, None)?;
        self.warm(&resolver, load)?;
        let count = self.parameters.queries_of(load);
        let intervals = self.parameters.intervals.value();
        let mut rows = Vec::with_capacity(intervals as usize);
        for interval in 0..intervals {
            let event = if interval == self.parameters.event_at { load.event } else { Event::None };
            let range = (u64::from(interval) * count, count);
            let row = match event {
                Event::None => self.load(&resolver, case, load, range, false)?,
                Event::CacheFlush => self.load(&resolver, case, load, range, true)?,
                Event::Restart => {
                    let (restarted, row) = self.load_during_restart(resolver, case, load, range)?;
                    resolver = restarted;
                    row
                }
            };
            rows.push(Row { interval, ..row });
        }
        Ok(rows)
    }

    fn start(
        &self,
        case: &ResolverCase,
        load: &LoadCase,
        port: Option<u16>,
    ) -> Result<RunningResolver, TestbedError> {
        let options = ResolverOptions {
            validates: case.validates(),
            aggressive: case.aggressive,
            experimental: case.experimental,
            cache_mib: self.parameters.cache_mib.value(),
            udp_octets: case.udp_octets,
            tls: self.tls.filter(|_| load.transport == ClientTransport::Tls),
            recorded: None,
            cpu: self.cpus.map(|cpus| cpus.server),
        };
        let places = (self.program, self.directory);
        RunningResolver::start(case.resolver, self.tree, self.network, &options, places, port)
    }

    /// Queries each zone, so that the resolver knows its servers and keys, and the names that must
    /// be in the cache.
    fn warm(&self, resolver: &RunningResolver, load: &LoadCase) -> Result<(), TestbedError> {
        let list = load.traffic.warming(self.parameters.queried_tree()).map_err(TestbedError::Queries)?;
        let limit = Some(list.len() as u64);
        let options = LoadOptions {
            seconds: WARMING_SECONDS,
            limit,
            outstanding: 10,
            timeout: TIMEOUT,
            ..LoadOptions::new(resolver.address, list)
        };
        self.network.run(Site::Clients, || load::run(&options))??;
        Ok(())
    }

    /// Loads the resolver with the queries of `range` (first number and count). With `flushes`, its cached data are
    /// removed meanwhile.
    fn load(
        &self,
        resolver: &RunningResolver,
        case: &ResolverCase,
        load: &LoadCase,
        range: (u64, u64),
        flushes: bool,
    ) -> Result<Row, TestbedError> {
        let options = self.options(resolver, case, load, range)?;
        let options = LoadOptions { server_pid: Some(resolver.pid()), ..options };
        let memory_before_kib = resolver.memory_kib();
        let before = self.reading(Some(resolver))?;
        let report = if flushes {
            let flush = || self.network.run(Site::Resolver, || resolver.flush_cache())?;
            let (report, flushed) = self.load_with_event(&options, flush);
            flushed.and(report)?
        } else {
            self.network.run(Site::Clients, || load::run(&options))??
        };
        let used = self.reading(Some(resolver))?.since(&before);
        Ok(Row { memory_before_kib, ..self.row(case, load, resolver, &report, &used) })
    }

    /// Loads the resolver, and meanwhile stops it and starts it again on the same port.
    fn load_during_restart(
        &self,
        resolver: RunningResolver,
        case: &ResolverCase,
        load: &LoadCase,
        range: (u64, u64),
    ) -> Result<(RunningResolver, Row), TestbedError> {
        let options = self.options(&resolver, case, load, range)?;
        let (memory_before_kib, port) = (resolver.memory_kib(), resolver.address.port());
        // The CPU time of the new process begins at zero.
        let before = self.reading(None)?;
        let restart = || {
            drop(resolver);
            self.start(case, load, Some(port))
        };
        let (report, started) = self.load_with_event(&options, restart);
        let (resolver, report) = (started?, report?);
        let used = self.reading(Some(&resolver))?.since(&before);
        let row = Row { memory_before_kib, ..self.row(case, load, &resolver, &report, &used) };
        Ok((resolver, row))
    }

    /// Loads a resolver in another thread, and calls `event` when the load runs.
    fn load_with_event<T>(
        &self,
        options: &LoadOptions,
        event: impl FnOnce() -> T,
    ) -> (Result<LoadReport, TestbedError>, T) {
        thread::scope(|scope| {
            let (sender, is_running) = mpsc::channel();
            let generator = scope.spawn(move || {
                // The load would end at once if no resolver listened at its start. Only the first
                // message is received.
                let progress = |_: &Progress| _ = sender.send(());
                let run = || load::run_with_progress(options, PROGRESS, progress);
                Ok(self.network.run(Site::Clients, run)??)
            });
            // An error ends the load, whose result the caller gets.
            let _ = is_running.recv();
            let result = event();
            (generator.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), result)
        })
    }

    fn options(
        &self,
        resolver: &RunningResolver,
        case: &ResolverCase,
        load: &LoadCase,
        range: (u64, u64),
    ) -> Result<LoadOptions, TestbedError> {
        let Parameters { seconds, sockets, queries_per_connection, samples, .. } = self.parameters;
        let tree = self.parameters.queried_tree();
        let list = match (load.traffic, self.recorded) {
            (Traffic::Replayed, Some(recorded)) => recorded.queries(tree, range),
            (traffic, _) => traffic.queries(tree, range, self.seed),
        };
        let list = list.map_err(TestbedError::Queries)?;
        let repeats = load.traffic.repeats() && load.rate.is_none();
        let outstanding = if load.rate.is_some() { OUTSTANDING_MAX } else { load.outstanding as usize };
        let sockets = (sockets.value() as usize).min(outstanding);
        let is_udp = load.transport == ClientTransport::Udp;
        let server = resolver.tls_address.filter(|_| load.transport == ClientTransport::Tls);
        let tls = server.map(|_| ClientTls::opportunistic(Some(TLS_NAME))).transpose()?;
        Ok(LoadOptions {
            seconds: seconds.value(),
            limit: (!repeats).then_some(range.1),
            outstanding,
            sockets,
            connections: sockets,
            queries_per_connection: u64::from(*queries_per_connection),
            transport: load.transport.of_load(),
            tls,
            follow_truncated: is_udp,
            rate: load.rate,
            dnssec_ok: case.dnssec_ok(),
            authentic_data: case.validates() && !case.dnssec_ok(),
            edns_size: case.udp_octets,
            samples: samples.value() as usize,
            timeout: TIMEOUT,
            may_poll: false,
            cpus: self.cpus.map(|cpus| vec![cpus.load]),
            seed: self.seed,
            ..LoadOptions::new(server.unwrap_or(resolver.address), list)
        })
    }

    fn reading(&self, resolver: Option<&RunningResolver>) -> Result<Reading, TestbedError> {
        Ok(Reading {
            cpu: resolver.map(|resolver| process::tree_cpu_time(resolver.pid())).unwrap_or_default(),
            servers_cpu: self.servers.cpu_time(),
            upstream: self.servers.counts(self.network)?,
        })
    }

    fn row(
        &self,
        case: &ResolverCase,
        load: &LoadCase,
        resolver: &RunningResolver,
        report: &LoadReport,
        used: &Reading,
    ) -> Row {
        let round_trip = self.surroundings.path.round_trip_to_servers();
        Row {
            memory_kib: resolver.memory_kib(),
            sockets: resolver.open_sockets(),
            from_cache: round_trip.and_then(|time| share_below(report, time)),
            authenticated: share_of(&report.samples, is_authenticated),
            with_nsec3: share_of(&report.samples, has_nsec3),
            conditions: Conditions { others_cpu: report.others_cpu, limited_by: report.limited_by },
            ..Row::new(self.surroundings, case, load, report, used)
        }
    }
}

/// Counters before or after a load.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Reading {
    /// CPU time of the resolver.
    pub(super) cpu: CpuTime,
    /// CPU time of the authoritative servers.
    pub(super) servers_cpu: CpuTime,
    pub(super) upstream: crate::testbed::UpstreamCounts,
}

impl Reading {
    fn since(&self, earlier: &Self) -> Self {
        Self {
            cpu: self.cpu.since(earlier.cpu),
            servers_cpu: self.servers_cpu.since(earlier.servers_cpu),
            upstream: self.upstream.since(earlier.upstream),
        }
    }
}

/// Share of the responses that arrived within `time`: the resolver asked no server for them, if a
/// server is `time` away. `None` without responses.
fn share_below(report: &LoadReport, time: Duration) -> Option<f64> {
    let limit = time.as_nanos() as u64;
    let fast = report.latency_histogram_ns.iter().filter(|(ns, _)| *ns < limit).map(|(_, count)| count);
    (report.received > 0).then(|| fast.sum::<u64>() as f64 / report.received as f64)
}

/// Share of the sampled responses for which `applies`; `None` without samples.
fn share_of(samples: &[Vec<u8>], applies: fn(&[u8]) -> bool) -> Option<f64> {
    let count = samples.iter().filter(|sample| applies(sample)).count();
    (!samples.is_empty()).then(|| count as f64 / samples.len() as f64)
}

/// Whether a response has the flag AD.
fn is_authenticated(response: &[u8]) -> bool {
    Header::read(response).is_some_and(|header| header.flags & flags::AD != 0)
}

/// Whether a response has an NSEC3 record.
fn has_nsec3(response: &[u8]) -> bool {
    let is_nsec3 = |record: &Record| record.rtype == Rtype::NSEC3;
    Message::parse(response).is_ok_and(|message| message.records.iter().any(is_nsec3))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_proto::message::Section;
    use nonesuch_proto::{Class, Name};

    #[test]
    fn responses_within_the_round_trip_time_are_from_the_cache() {
        let histogram = vec![(50_000, 30), (9_999_999, 10), (10_000_001, 60)];
        let report = LoadReport { received: 100, latency_histogram_ns: histogram, ..LoadReport::default() };
        assert_eq!(share_below(&report, Duration::from_millis(10)), Some(0.4));
        assert_eq!(share_below(&LoadReport::default(), Duration::from_millis(10)), None);
    }

    #[test]
    fn a_response_with_nsec3_records_is_found() {
        let record = |rtype| Record {
            section: Section::Authority,
            owner: Name::root(),
            rtype,
            class: Class::IN,
            ttl: 0,
            rdata: vec![1, 0, 0, 0, 0, 1, 7],
        };
        let response = |rtype| {
            let header = Header { id: 0, flags: flags::QR, counts: [0; 4] };
            Message { header, questions: Vec::new(), records: vec![record(rtype)] }.to_octets()
        };
        assert!(has_nsec3(&response(Rtype::NSEC3)));
        assert!(!has_nsec3(&response(Rtype(65_400))));
        assert!(!has_nsec3(&response(Rtype::NSEC3)[..20]));
    }

    #[test]
    fn the_flag_ad_is_counted() {
        let response = |flags: u16| [&[0, 1][..], &flags.to_be_bytes(), &[0; 8]].concat();
        let samples = [flags::QR | flags::AD, flags::QR, flags::QR, flags::QR | flags::AD].map(response);
        assert_eq!(share_of(&samples, is_authenticated), Some(0.5));
        assert_eq!(share_of(&[], is_authenticated), None);
    }
}
