//! Measurements of one resolver.

use super::attack::Attack;
use super::parameters::Parameters;
use super::probe::{Probe, Series};
use super::row::Row;
use super::zones::GOOD_NAMES;
use crate::load::{self, LoadOptions, LoadReport, QueryList, SourcePrefix};
use crate::machine::CpuPlacement;
use crate::peers::Peer;
use crate::testbed::{Network, Resolver, ResolverOptions, RunningResolver, Site, TestbedError, TreeFiles};
use nonesuch_net::pin_current_thread;
use nonesuch_proto::Name;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Time from the start of an attack to the first query that counts.
pub(super) const WARM_UP: Duration = Duration::from_millis(500);
/// Time limit of a query.
const TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum duration of the queries that fill the cache, in seconds.
const FILLING_SECONDS: f64 = 30.0;
/// Maximum number of outstanding queries of a load with a rate.
const OUTSTANDING_MAX: usize = 4_000;
/// Source sockets of each load.
const SOCKETS: usize = 4;
/// Responses of each load whose flags are read.
const SAMPLES: usize = 1_000;
/// Hostile names of a load without a rate: as many as no resolver answers in a few seconds.
const MANY_NAMES: u64 = 100_000;
/// Size of the cache, in MiB.
const CACHE_MIB: u32 = 64;
/// Networks of the other clients and of the attackers.
const OTHERS: Ipv4Addr = Ipv4Addr::new(127, 2, 0, 0);
const ATTACKERS: Ipv4Addr = Ipv4Addr::new(127, 1, 7, 0);

/// What a row measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Measurement {
    /// A series of queries for cached names.
    Hit,
    /// The first query for each hostile zone.
    NewZone,
    /// A query for a new name of each known zone.
    NewName,
    /// The same queries again.
    Repeated,
    /// A load of other clients without an attack.
    Alone,
    /// The same load during an attack with a rate.
    Rate,
    /// The same load during an attack that saturates the resolver.
    Saturated,
}

impl Measurement {
    /// Name in the data.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::NewZone => "new-zone",
            Self::NewName => "new-name",
            Self::Repeated => "repeated",
            Self::Alone => "alone",
            Self::Rate => "rate",
            Self::Saturated => "saturated",
        }
    }
}

/// A tree with running servers.
pub(super) struct Bench<'b> {
    pub(super) parameters: &'b Parameters,
    pub(super) attack: &'b Attack,
    pub(super) tree: &'b TreeFiles,
    pub(super) network: &'b Network,
    pub(super) cpus: Option<CpuPlacement>,
    pub(super) program: &'b Path,
    pub(super) directory: &'b Path,
    /// The queries of the other clients.
    pub(super) good: &'b Arc<QueryList>,
}

/// The queries of the other clients: for each name of `good.example.`
pub(super) fn good_queries() -> Result<Arc<QueryList>, TestbedError> {
    list((0..GOOD_NAMES).map(|number| format!("host{number}.good.example. A\n")))
}

fn list(lines: impl Iterator<Item = String>) -> Result<Arc<QueryList>, TestbedError> {
    let text: String = lines.collect();
    let list = QueryList::parse(Path::new("generated queries"), text.as_bytes());
    Ok(Arc::new(list.map_err(TestbedError::Queries)?))
}

/// The names of lines of a query list.
fn names(lines: impl Iterator<Item = String>) -> Vec<Name> {
    lines.filter_map(|line| line.split(' ').next()?.parse().ok()).collect()
}

impl Bench<'_> {
    /// Starts the resolver and returns a row for each measurement.
    pub(super) fn measure(&self, resolver: Resolver) -> Result<Vec<Row>, TestbedError> {
        let options = ResolverOptions {
            experimental: true,
            validates: true,
            aggressive: false,
            cache_mib: CACHE_MIB,
            udp_octets: 1232,
            tls: None,
            recorded: None,
            cpu: self.cpus.map(|cpus| cpus.server),
        };
        let places = (self.program, self.directory);
        let running = RunningResolver::start(resolver, self.tree, self.network, &options, places, None)?;
        self.fill_cache(&running)?;
        let mut rows = self.measure_single(resolver, &running)?;
        rows.extend(self.measure_loads(resolver, &running)?);
        Ok(rows)
    }

    /// Queries all names of the other clients.
    fn fill_cache(&self, running: &RunningResolver) -> Result<(), TestbedError> {
        let options = LoadOptions {
            seconds: FILLING_SECONDS,
            limit: Some(GOOD_NAMES.into()),
            ..LoadOptions::new(running.address, Arc::clone(self.good))
        };
        self.network.run(Site::Clients, || load::run(&options))??;
        Ok(())
    }

    /// CPU time of single queries.
    fn measure_single(
        &self,
        resolver: Resolver,
        running: &RunningResolver,
    ) -> Result<Vec<Row>, TestbedError> {
        let zones = u64::from(self.parameters.zones.value());
        let is_unbound = resolver == Resolver::Peer(Peer::Unbound);
        let at_once = is_unbound && self.attack.is_interrupted_by_unbound();
        let hits =
            names((0..zones).map(|number| format!("host{}.good.example. A", number % u64::from(GOOD_NAMES))));
        let hostile = |number| names((0..zones).map(move |zone| self.attack.question(zone, number)));
        let series = [
            (Measurement::Hit, hits, false),
            (Measurement::NewZone, hostile(0), at_once),
            (Measurement::NewName, hostile(1), at_once),
            (Measurement::Repeated, hostile(1), at_once),
        ];
        let ask_all = || -> std::io::Result<Vec<(Measurement, Series, bool)>> {
            // Unpinned, the client would still measure.
            let _ = self.cpus.map(|cpus| pin_current_thread(cpus.load));
            let mut probe = Probe::new(running.address, running.pid())?;
            let mut results = Vec::new();
            for (measurement, names, at_once) in series {
                let found = if at_once { probe.at_once(&names) } else { probe.in_turn(&names) };
                results.push((measurement, found?, at_once));
            }
            Ok(results)
        };
        let results = self.network.run(Site::Clients, ask_all)?.map_err(TestbedError::Client)?;
        let row = |(measurement, series, at_once)| {
            Row::new(self.attack, resolver, measurement).with_series(&series, at_once)
        };
        Ok(results.into_iter().map(row).collect())
    }

    /// The other clients without an attack and during two attacks.
    fn measure_loads(&self, resolver: Resolver, running: &RunningResolver) -> Result<Vec<Row>, TestbedError> {
        let row = |measurement| Row::new(self.attack, resolver, measurement);
        let mut rows = vec![row(Measurement::Alone).with_others(&self.load_others(running)?)];
        let rate = f64::from(self.parameters.rate.value());
        let first = (rate * self.attack_seconds()).ceil() as u64;
        let zones = u64::from(self.parameters.zones_of(self.attack));
        let unused = zones.saturating_sub(u64::from(self.parameters.zones.value()) + first).max(1);
        let many = if self.attack.needs_new_zones() { unused } else { MANY_NAMES };
        for (measurement, numbers, rate) in
            [(Measurement::Rate, 0..first, Some(rate)), (Measurement::Saturated, first..first + many, None)]
        {
            let hostile = list(numbers.map(|number| self.question(number)))?;
            let (others, attack) = thread::scope(|scope| {
                let attack = scope.spawn(|| self.load_hostile(running, &hostile, rate));
                let others = self.load_others(running);
                (others, attack.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            });
            rows.push(row(measurement).with_hostile(&attack?).with_others(&others?));
        }
        Ok(rows)
    }

    /// A question that was not asked before: those of single queries have the numbers 0 and 1.
    fn question(&self, number: u64) -> String {
        let known = u64::from(self.parameters.zones.value());
        let all = u64::from(self.parameters.zones_of(self.attack));
        let zone = if self.attack.needs_new_zones() { (known + number) % all } else { number % known };
        self.attack.question(zone, number + 2)
    }

    /// The attack begins before the latency counts.
    fn attack_seconds(&self) -> f64 {
        self.parameters.seconds.value() + WARM_UP.as_secs_f64()
    }

    /// Loads the resolver with the queries of the other clients.
    fn load_others(&self, running: &RunningResolver) -> Result<LoadReport, TestbedError> {
        let options = LoadOptions {
            rate: Some(self.parameters.others_rate.value().into()),
            warm_up: WARM_UP,
            seconds: self.parameters.seconds.value(),
            outstanding: OUTSTANDING_MAX,
            server_pid: Some(running.pid()),
            ..self.options(running, self.good, OTHERS)
        };
        Ok(self.network.run(Site::Clients, || load::run(&options))??)
    }

    /// Loads the resolver with hostile queries: at a rate, or as many as it answers. No name is
    /// repeated, which would be cheap.
    fn load_hostile(
        &self,
        running: &RunningResolver,
        queries: &Arc<QueryList>,
        rate: Option<f64>,
    ) -> Result<LoadReport, TestbedError> {
        let saturating = self.parameters.outstanding.value() as usize;
        let outstanding = if rate.is_some() { OUTSTANDING_MAX } else { saturating };
        let options = LoadOptions {
            rate,
            seconds: self.attack_seconds(),
            limit: Some(queries.len() as u64),
            outstanding,
            sockets: SOCKETS.min(outstanding),
            ..self.options(running, queries, ATTACKERS)
        };
        Ok(self.network.run(Site::Clients, || load::run(&options))??)
    }

    fn options(&self, running: &RunningResolver, queries: &Arc<QueryList>, sources: Ipv4Addr) -> LoadOptions {
        LoadOptions {
            sources: format!("{sources}/24").parse::<SourcePrefix>().ok(),
            sockets: SOCKETS,
            samples: SAMPLES,
            timeout: TIMEOUT,
            may_poll: false,
            cpus: self.cpus.map(|cpus| vec![cpus.load]),
            ..LoadOptions::new(running.address, Arc::clone(queries))
        }
    }
}
