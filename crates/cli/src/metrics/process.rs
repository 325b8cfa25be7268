//! Metrics of this process from the operating system, with the names that Prometheus client
//! libraries use. Values that cannot be read are omitted.

use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage};
use nix::sys::time::TimeValLike as _;
use std::fs;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// Approximate start time of the process: the time when metrics are first served. The exact time is
/// outside the part of `/proc` that a sandboxed process can read.
static START_TIME: LazyLock<SystemTime> = LazyLock::new(SystemTime::now);

/// Functions that read the metrics of this process.
pub(super) struct Process;

impl Process {
    pub(super) fn cpu_seconds() -> Option<f64> {
        let usage = getrusage(UsageWho::RUSAGE_SELF).ok()?;
        Some((usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6)
    }

    pub(super) fn resident_octets() -> Option<u64> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kibibytes << 10)
    }

    /// The number of open files, without the directory handle that is open during the count.
    pub(super) fn open_files() -> Option<usize> {
        Some(fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1))
    }

    pub(super) fn max_open_files() -> Option<u64> {
        getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(soft, _)| soft)
    }

    pub(super) fn start_time() -> Option<f64> {
        Some(START_TIME.duration_since(UNIX_EPOCH).ok()?.as_secs_f64())
    }
}

/// Records the current time as the start time of the process, unless it is already recorded.
pub(super) fn record_start() {
    LazyLock::force(&START_TIME);
}
