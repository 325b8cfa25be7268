//! Parameters of the experiment.

use super::population::PopulationName;
use crate::experiment::parameters::{Count, Seconds};
use crate::testbed::Resolver;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name of the counting library.
const LIBRARY: &str = "libcount_verifications.so";
/// The directory in which `just count-verifications` leaves it.
const LIBRARY_DIRECTORY: &str = "tools/count-verifications/target/release";
/// Expected time to build a tree and to start its servers, in seconds for each zone.
const ZONE_SECONDS: f64 = 2e-3;
/// Expected time to start and to stop the resolvers, in seconds.
const START_SECONDS: f64 = 8.0;

/// Parameters of the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Parameters {
    /// The resolvers.
    pub resolvers: Vec<Resolver>,
    /// The client populations.
    pub populations: Vec<PopulationName>,
    /// Number of zones of each of the two top-level domains.
    pub zones: Count,
    /// Share of the zones that are signed today, for each of the two top-level domains.
    pub signed_shares: [f64; 2],
    /// Number of names of each zone.
    pub names: Count,
    /// TTL of the records of the zones, in seconds.
    pub ttl: Count,
    /// TTL of the records of the root and of the top-level domains, in seconds.
    pub parent_ttl: Count,
    /// Client queries per second of each resolver, on average.
    pub rate: Count,
    /// Duration of the load before the recording, in seconds.
    pub warm_up: Seconds,
    /// Number of slices of time. The model is fitted to each of them.
    pub slices: Count,
    /// Duration of a slice, in seconds. A window has a second.
    pub slice_seconds: Seconds,
    /// File with the queries of the population `logged`: a name and a type in each line.
    pub query_file: PathBuf,
    /// The counting library. Empty: the file in the directory of the program, or the one that
    /// `just count-verifications` builds.
    pub library: PathBuf,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            resolvers: vec![Resolver::Nonesuch],
            populations: vec![PopulationName::Homes, PopulationName::Mail],
            zones: Count::of(10_000),
            signed_shares: [0.017, 0.6],
            names: Count::of(3),
            ttl: Count::of(5),
            parent_ttl: Count::of(30),
            rate: Count::of(500),
            warm_up: Seconds::of(20.0),
            slices: Count::of(2),
            slice_seconds: Seconds::of(34.0),
            query_file: PathBuf::new(),
            library: PathBuf::new(),
        }
    }
}

impl Parameters {
    /// Returns the approximate duration.
    pub fn duration(&self) -> Duration {
        let trees = 4.0 * f64::from(self.zones.value()) * ZONE_SECONDS;
        let of_population = START_SECONDS + self.warm_up.value() + self.recorded_seconds();
        let seconds = trees + 2.0 * self.populations.len() as f64 * of_population;
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// Duration of a recording after the warm-up, in seconds.
    pub(super) fn recorded_seconds(&self) -> f64 {
        f64::from(self.slices.value()) * self.slice_seconds.value()
    }

    /// The counting library, if it exists.
    pub(super) fn counting_library(&self, program: &Path) -> Option<PathBuf> {
        let given = Some(self.library.clone()).filter(|path| !path.as_os_str().is_empty());
        let usual = || {
            let beside = program.with_file_name(LIBRARY);
            [beside, Path::new(LIBRARY_DIRECTORY).join(LIBRARY)].into_iter().find(|path| path.is_file())
        };
        given.or_else(usual).and_then(|path| std::path::absolute(path).ok())
    }
}
