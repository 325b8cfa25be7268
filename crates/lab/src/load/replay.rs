//! Replay of captured queries: at the recorded times, at scaled times, or as fast as the server
//! answers.
//!
//! All queries are sent over UDP, with their octets except the message ID. Each captured client has
//! its own socket, up to a maximum number of sockets; above it, clients share sockets. If the
//! server has a loopback IPv4 address, each socket has its own source address. These addresses keep
//! the distribution of the clients over networks, because servers limit rates by network: clients
//! of one network (IPv4 /24, IPv6 /56) have addresses in one /24 network below
//! 127.0.0.0/8. Otherwise, the sockets differ by port, or are distributed over the prefix
//! [`LoadOptions::sources`].

mod driver;
mod queries;
mod spread;

pub use queries::{ReplayError, ReplayQueries};

use super::usage::CpuClocks;
use super::{LoadError, LoadOptions, LoadReport, report};
use crate::process;
use driver::Driver;
use std::fmt;
use std::str::FromStr;

/// Default of the maximum number of sockets of a replay. A process may usually open 1024 files.
pub const REPLAY_SOCKETS_DEFAULT: usize = 512;
/// Maximum number of sockets of a replay.
const SOCKETS_MAX: usize = 4096;
/// Range of the factor of [`ReplaySpeed::Scaled`].
const SPEED_FACTORS: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

/// The speed of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReplaySpeed {
    /// The recorded intervals, divided by this factor, from 0.000001 to 1000000.
    Scaled(f64),
    /// A closed loop: as fast as the server answers.
    Max,
}

/// The text is not a speed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a factor from 0.000001 to 1000000, or max")]
pub struct ReplaySpeedError;

impl FromStr for ReplaySpeed {
    type Err = ReplaySpeedError;

    fn from_str(text: &str) -> Result<Self, ReplaySpeedError> {
        if text == "max" {
            return Ok(Self::Max);
        }
        let factor: f64 = text.parse().map_err(|_| ReplaySpeedError)?;
        SPEED_FACTORS.contains(&factor).then_some(Self::Scaled(factor)).ok_or(ReplaySpeedError)
    }
}

impl fmt::Display for ReplaySpeed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scaled(factor) => write!(f, "{factor}"),
            Self::Max => f.write_str("max"),
        }
    }
}

/// Sends the captured queries, and measures the responses. The replay ends after the last query, or
/// after [`LoadOptions::limit`] queries.
///
/// It runs in one thread. Of `options`, it uses `server`, `sources`, `sockets` (the maximum number
/// of sockets), `outstanding`, `timeout`, `limit`, `may_poll`, `server_pid` and the first of
/// `cpus`. In the report, `rate` and `arrivals` are empty; at a scaled speed, it has the lateness
/// of the queries.
///
/// # Errors
/// As for [`super::run`].
pub fn replay(
    options: &LoadOptions,
    queries: &ReplayQueries,
    speed: ReplaySpeed,
) -> Result<LoadReport, LoadError> {
    check(options, speed)?;
    if let Some(pid) = options.server_pid.filter(|pid| process::cpu_time(*pid).is_none()) {
        return Err(LoadError::NoProcess { pid });
    }
    let driver = Driver::new(options, queries, speed)?;
    let clocks = CpuClocks::read(options);
    let tally = driver.run()?;
    let use_of_cpu = clocks.elapsed();
    let options = LoadOptions { rate: None, threads: 1, ..options.clone() };
    Ok(report::build_report(&options, &tally, &use_of_cpu, speed != ReplaySpeed::Max))
}

fn check(options: &LoadOptions, speed: ReplaySpeed) -> Result<(), LoadError> {
    let is_source_valid = options.sources.is_none_or(|sources| sources.has_family_of(options.server.ip()));
    let hour = std::time::Duration::from_secs(3600);
    let is_speed_valid = match speed {
        ReplaySpeed::Scaled(factor) => SPEED_FACTORS.contains(&factor),
        ReplaySpeed::Max => true,
    };
    let rules = [
        (is_speed_valid, "--speed", "a factor from 0.000001 to 1000000, or max"),
        ((1..=SOCKETS_MAX).contains(&options.sockets), "--clients", "1 to 4096"),
        (options.outstanding > 0, "--outstanding", "1 or more"),
        (is_source_valid, "--source", "of the same family as the server's address"),
        (!options.timeout.is_zero() && options.timeout <= hour, "--timeout", "more than 0, at most an hour"),
        (options.limit != Some(0), "--limit", "1 or more"),
    ];
    match rules.into_iter().find(|(holds, ..)| !holds) {
        Some((_, option, wanted)) => Err(LoadError::Misconfigured { option, wanted }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
