//! Conditions of a measurement: the CPU time that others used meanwhile, and what limited it.

use crate::process;
use serde::Serialize;
use std::{fmt, fs};

/// Share of a CPU from which a thread counts as the limit of a measurement.
pub(crate) const BUSY_SHARE: f64 = 0.85;
/// Duration from which the CPU time of a program is known well enough to compare it with the wall
/// time, in seconds: ten ticks of the clock with which the kernel counts CPU time.
const MIN_KNOWN_SECONDS: f64 = 0.1;

/// What limited a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Limit {
    /// A thread of the server used at least 85 % of a CPU.
    Server,
    /// The threads of the load generator used on average at least 85 % of a CPU.
    LoadGenerator,
    /// The requested rate, which the responses reached.
    Rate,
    /// All threads of the measured program together used at least 85 % of a CPU.
    Program,
    /// None of them: other programs, the disk or the network.
    Other,
}

impl Limit {
    /// Returns the limit of a program that used `cpu` seconds of CPU time in `wall` seconds.
    /// Returns `None` if the CPU time is unknown, or the wall time is less than 0.1 s.
    pub(crate) fn of_program(cpu: Option<f64>, wall: f64) -> Option<Self> {
        let cpu = cpu.filter(|_| wall >= MIN_KNOWN_SECONDS)?;
        Some(if cpu / wall >= BUSY_SHARE { Self::Program } else { Self::Other })
    }

    /// Returns the limit of a load. `server` is the share of a CPU that the busiest thread of the
    /// server used, `generator` the share that the threads of the generator used on average.
    /// `unlimited` is the limit if neither was busy. Returns `None` if the server can be the limit,
    /// but its use is unknown.
    pub(crate) fn of_load(server: Option<f64>, generator: Option<f64>, unlimited: Self) -> Option<Self> {
        let is_busy = |share: Option<f64>| share.is_some_and(|share| share >= BUSY_SHARE);
        if is_busy(server) {
            return Some(Self::Server);
        }
        if is_busy(generator) {
            return Some(Self::LoadGenerator);
        }
        server.map(|_| unlimited)
    }
}

impl fmt::Display for Limit {
    /// Formats as in the data: `load-generator`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Server => "server",
            Self::LoadGenerator => "load-generator",
            Self::Rate => "rate",
            Self::Program => "program",
            Self::Other => "other",
        })
    }
}

/// Conditions of a measurement, as columns of its row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Conditions {
    /// Share of the CPU time of all CPUs that others used, from 0 to 1.
    pub(crate) others_cpu: Option<f64>,
    pub(crate) limited_by: Option<Limit>,
}

/// CPU times of the machine and of this program at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuSample {
    /// Time of all CPUs since the start of the system, in ticks.
    all: u64,
    /// Part of it in which a CPU executed a program or another virtual machine.
    busy: u64,
    /// CPU time of this process, of the given processes, and of their descendants, in ticks.
    own: u64,
}

impl CpuSample {
    /// Reads the times. The process `server` counts as part of this program. Returns `None` if the
    /// system does not provide the times.
    fn take(server: Option<u32>) -> Option<Self> {
        let (all, busy) = parse_stat(&fs::read_to_string("/proc/stat").ok()?)?;
        let roots: Vec<u32> = [std::process::id()].into_iter().chain(server).collect();
        let own = process::trees_cpu_time(&roots);
        Some(Self { all, busy, own: (own.user_us + own.system_us) / process::CPU_STEP_US })
    }

    /// Returns the share of the CPU time since `self` that others used, from 0 to 1. The clock of
    /// the kernel ticks each 10 ms: for a short measurement, the share is inexact. `None` if no
    /// tick passed.
    fn share_until(self, later: Self) -> Option<f64> {
        let all = later.all.saturating_sub(self.all);
        let own = later.own.saturating_sub(self.own);
        let others = later.busy.saturating_sub(self.busy).saturating_sub(own);
        (all > 0).then(|| (others as f64 / all as f64).min(1.0))
    }
}

/// Measures the CPU time that others use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OthersCpu {
    begun: Option<CpuSample>,
    server: Option<u32>,
}

impl OthersCpu {
    /// Starts a measurement. The process `server`, and its descendants, do not count as others.
    pub(crate) fn begin(server: Option<u32>) -> Self {
        Self { begun: CpuSample::take(server), server }
    }

    /// Returns the share of the CPU time of all CPUs that others used, from 0 to 1. `None` if the
    /// system does not provide it, or less than a tick of its clock (10 ms) passed.
    pub(crate) fn share(self) -> Option<f64> {
        self.begun.zip(CpuSample::take(self.server)).and_then(|(begun, ended)| begun.share_until(ended))
    }
}

/// Reads the sum of all times and the busy time from the line `cpu` of `/proc/stat`
/// (`proc_stat(5)`). Times of interrupts do not count as busy. Most kernels count them in the time
/// of the interrupted program: the share is then too low under network load.
fn parse_stat(text: &str) -> Option<(u64, u64)> {
    let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let times: Vec<u64> = line.split_ascii_whitespace().map_while(|time| time.parse().ok()).collect();
    // The times of guests, which follow, are part of the user time.
    let times: [u64; 8] = *times.first_chunk()?;
    let [user, nice, system, _, _, _, _, steal] = times;
    let sum = |times: &[u64]| times.iter().try_fold(0_u64, |sum, time| sum.checked_add(*time));
    Some((sum(&times)?, sum(&[user, nice, system, steal])?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_busy_time_has_no_idle_time_and_no_interrupts() {
        let text = "cpu  10 2 30 1000 5 7 8 4 9 9\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(parse_stat(text), Some((1066, 46)));
        for wrong in
            ["", "cpu 1 2 3", "cpu0 1 1 1 1 1 1 1 1", "cpu  a b", "cpu  18446744073709551615 1 0 0 0 0 0 0"]
        {
            assert_eq!(parse_stat(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn what_this_program_uses_is_not_that_of_others() {
        let sample = |all, busy, own| CpuSample { all, busy, own };
        assert_eq!(sample(0, 0, 0).share_until(sample(200, 100, 60)), Some(0.2));
        // The clocks of processes and of the system do not tick at the same moments.
        assert_eq!(sample(0, 0, 0).share_until(sample(200, 100, 101)), Some(0.0));
        assert_eq!(sample(5, 5, 5).share_until(sample(5, 5, 5)), None);
    }

    #[test]
    fn the_busiest_process_is_the_limit() {
        let of = |server, generator| Limit::of_load(server, generator, Limit::Other);
        assert_eq!(of(Some(0.99), Some(0.99)), Some(Limit::Server));
        assert_eq!(of(Some(0.5), Some(0.99)), Some(Limit::LoadGenerator));
        assert_eq!(of(Some(0.5), None), Some(Limit::Other));
        assert_eq!(of(None, Some(0.9)), Some(Limit::LoadGenerator));
        assert_eq!(of(None, Some(0.1)), None);
        assert_eq!(Limit::of_program(Some(0.99), 1.0), Some(Limit::Program));
        assert_eq!(Limit::of_program(Some(0.5), 1.0), Some(Limit::Other));
        for limit in [Limit::Server, Limit::LoadGenerator, Limit::Rate, Limit::Program, Limit::Other] {
            assert_eq!(serde_json::json!(limit), limit.to_string());
        }
        assert_eq!((Limit::of_program(None, 1.0), Limit::of_program(Some(1.0), 0.0)), (None, None));
        // A program that is always busy, and whose CPU time is known up to the last tick.
        assert_eq!(Limit::of_program(Some(0.01), 0.019), None);
    }
}
