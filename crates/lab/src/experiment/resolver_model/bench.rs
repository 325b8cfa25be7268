//! Recordings of several resolvers in front of one tree.

use super::parameters::Parameters;
use super::population::Population;
use super::recorder::Recorder;
use super::zones::{Signed, Zones};
use crate::cost_model::Recording;
use crate::load::{self, LoadOptions, LoadReport};
use crate::testbed::{
    Network, RecordedPeer, Resolver, ResolverOptions, RunningResolver, Site, TestbedError, TreeFiles,
};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Duration of a load with one rate, in seconds.
const STEP_SECONDS: f64 = 2.0;
/// Duration of a simulated day, over which the rate rises and falls once, in seconds.
const DAY_SECONDS: f64 = 40.0;
/// Amplitude of the rate over a day, relative to the mean.
const AMPLITUDE: f64 = 0.6;
/// Maximum random change of each rate, relative to it.
const NOISE: f64 = 0.2;
/// Maximum number of outstanding queries.
const OUTSTANDING_MAX: usize = 4000;
/// Time limit of a query.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Size of the cache, in MiB.
const CACHE_MIB: u32 = 256;
/// UDP payload size, in octets.
const UDP_OCTETS: u16 = 1232;

/// The recording of a slice of time.
#[derive(Debug)]
pub(super) struct Recorded {
    pub(super) resolver: Resolver,
    pub(super) population: String,
    pub(super) slice: u32,
    pub(super) signed: Signed,
    pub(super) recording: Recording,
    /// Share of the client queries of all slices without a response.
    pub(super) lost_share: f64,
    /// Duration of the load of all slices, relative to the planned one.
    pub(super) relative_duration: f64,
}

/// A tree with its running servers.
pub(super) struct Bench<'b> {
    pub(super) parameters: &'b Parameters,
    pub(super) zones: &'b Zones,
    pub(super) tree: &'b TreeFiles,
    pub(super) network: &'b Network,
    pub(super) library: Option<&'b Path>,
    pub(super) program: &'b Path,
    /// Directory for the files of resolvers and recorders; it does not exist yet.
    pub(super) directory: &'b Path,
    pub(super) seed: u64,
}

/// A resolver with its recorder.
struct Pair {
    resolver: Resolver,
    running: RunningResolver,
    recorder: Recorder,
}

impl Bench<'_> {
    /// Starts all resolvers, sends them the same queries at the same time, and returns a recording for each
    /// resolver and slice of time.
    pub(super) fn record(
        &self,
        resolvers: &[Resolver],
        population: &Population,
        signed: Signed,
    ) -> Result<Vec<Recorded>, TestbedError> {
        let fault = |source| TestbedError::Write { path: self.directory.to_owned(), source };
        fs::create_dir_all(self.directory).map_err(fault)?;
        let pairs: Vec<Pair> =
            resolvers.iter().map(|resolver| self.start(*resolver)).collect::<Result<_, _>>()?;
        let addresses: Vec<SocketAddr> = pairs.iter().map(|pair| pair.running.address).collect();
        let mut first = 0;
        self.load(&addresses, population, self.parameters.warm_up.value(), &mut first)?;
        let start = unix_micros();
        let lost = self.load(&addresses, population, self.parameters.recorded_seconds(), &mut first)?;
        let end = unix_micros();
        let relative_duration = end.saturating_sub(start) as f64 * 1e-6 / self.parameters.recorded_seconds();
        let mut all = Vec::new();
        for (Pair { resolver, recorder, .. }, lost_share) in pairs.into_iter().zip(lost) {
            let recording = recorder.stop()?;
            let slices = self.parameters.slices.value();
            all.extend((0..slices).map(|slice| Recorded {
                resolver,
                population: population.to_string(),
                slice,
                signed,
                recording: part(&recording, (start, end), (slice, slices)),
                lost_share,
                relative_duration,
            }));
        }
        Ok(all)
    }

    /// Starts a resolver with an empty cache, and its recorder.
    fn start(&self, resolver: Resolver) -> Result<Pair, TestbedError> {
        let path = |suffix: &str| self.directory.join(format!("{resolver}{suffix}"));
        let output = path(".recording");
        let record = |source: &[(&str, &Path)]| {
            self.network.run(Site::Resolver, || Recorder::start(self.program, source, &output))?
        };
        let Some(library) = self.library.filter(|_| resolver != Resolver::Nonesuch) else {
            let running = self.start_resolver(resolver, None)?;
            let control = running.control_socket().unwrap_or_default();
            let recorder = record(&[("--control", &control)])?;
            return Ok(Pair { resolver, running, recorder });
        };
        let (dnstap, totals) = (path(".dnstap"), path(".totals"));
        // The resolver connects to the socket of the recorder.
        let recorder = record(&[("--dnstap", &dnstap), ("--verified", &totals)])?;
        let recorded = RecordedPeer { dnstap, library: library.to_owned(), totals };
        let running = self.start_resolver(resolver, Some(&recorded))?;
        recorder.wait_for("connected")?;
        Ok(Pair { resolver, running, recorder })
    }

    fn start_resolver(
        &self,
        resolver: Resolver,
        recorded: Option<&RecordedPeer>,
    ) -> Result<RunningResolver, TestbedError> {
        let options = ResolverOptions {
            validates: true,
            aggressive: false,
            experimental: false,
            cache_mib: CACHE_MIB,
            udp_octets: UDP_OCTETS,
            tls: None,
            recorded,
            cpu: None,
        };
        let places = (self.program, self.directory);
        RunningResolver::start(resolver, self.tree, self.network, &options, places, None)
    }

    /// Sends all resolvers the queries from `first` at changing rates for a time in seconds. Returns for each the
    /// share of queries without a response.
    fn load(
        &self,
        addresses: &[SocketAddr],
        population: &Population,
        seconds: f64,
        first: &mut u64,
    ) -> Result<Vec<f64>, TestbedError> {
        let mut counts = vec![(0, 0); addresses.len()];
        let mut elapsed = 0.0;
        while elapsed < seconds {
            let step = STEP_SECONDS.min(seconds - elapsed);
            let rate = self.rate_at(*first, elapsed);
            let count = (rate * step).ceil() as u64;
            let queries = population.queries(self.zones, (*first, count), self.seed);
            let queries = queries.map_err(TestbedError::Queries)?;
            let options = |address: &SocketAddr| LoadOptions {
                rate: Some(rate),
                seconds: step,
                outstanding: OUTSTANDING_MAX,
                timeout: TIMEOUT,
                may_poll: false,
                ..LoadOptions::new(*address, queries.clone())
            };
            let all: Vec<LoadOptions> = addresses.iter().map(options).collect();
            let reports = self.network.run(Site::Clients, || load_all(&all))?;
            for (count, report) in counts.iter_mut().zip(reports) {
                let report = report?;
                count.0 += report.lost + report.late + report.unsent;
                count.1 += report.sent + report.unsent;
            }
            *first += count;
            elapsed += step;
        }
        Ok(counts.iter().map(|(lost, sent)| *lost as f64 / (*sent).max(1) as f64).collect())
    }

    /// The rate of a step. It depends on the time of the simulated day, and on chance.
    fn rate_at(&self, step: u64, elapsed: f64) -> f64 {
        let mut random = ChaCha8Rng::seed_from_u64(self.seed ^ step);
        let day = 1.0 + AMPLITUDE * (elapsed / DAY_SECONDS * std::f64::consts::TAU).sin();
        let noise = 1.0 + random.random_range(-NOISE..NOISE);
        f64::from(self.parameters.rate.value()) * day * noise
    }
}

/// Runs several loads at the same time.
fn load_all(all: &[LoadOptions]) -> Vec<Result<LoadReport, load::LoadError>> {
    thread::scope(|scope| {
        let running: Vec<_> = all.iter().map(|options| scope.spawn(|| load::run(options))).collect();
        let join =
            |load: thread::ScopedJoinHandle<'_, _>| load.join().unwrap_or(Err(load::LoadError::Panicked));
        running.into_iter().map(join).collect()
    })
}

/// The windows of one of several equal parts of a time, in microseconds since 1970.
fn part(recording: &Recording, (start, end): (u64, u64), (slice, slices): (u32, u32)) -> Recording {
    let length = end.saturating_sub(start) / u64::from(slices);
    let from = start + length * u64::from(slice);
    let mut recording = recording.clone();
    recording.windows.retain(|window| from <= window.start && window.end() <= from + length);
    recording
}

/// The time of the system, in microseconds since 1970.
fn unix_micros() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_micros() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost_model::{VerificationSource, Window};

    #[test]
    fn the_parts_of_a_recording_have_only_whole_windows() {
        let window = |start: u64| Window { start, length: 10, ..Window::default() };
        let recording = Recording {
            name: "r".to_owned(),
            verified_by: VerificationSource::Counters,
            windows: (0..20).map(|number| window(10 * number)).collect(),
            domains: Vec::new(),
        };
        let starts = |slice| -> Vec<u64> {
            part(&recording, (25, 125), (slice, 2)).windows.iter().map(|window| window.start).collect()
        };
        assert_eq!(starts(0), [30, 40, 50, 60]);
        assert_eq!(starts(1), [80, 90, 100, 110]);
    }
}
