//! What the system knows of this process, under the names that Prometheus' own clients use. What cannot be read is left out.

use nix::sys::resource::{Resource, UsageWho, getrlimit, getrusage};
use nix::sys::time::TimeValLike as _;
use std::fs;
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// The start of the process, as good as: when metrics are first served. The system's word for it stands outside of what a
/// sandboxed process sees of `/proc`.
static STARTED: LazyLock<SystemTime> = LazyLock::new(SystemTime::now);

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

    /// Without the one that counts them.
    pub(super) fn open_files() -> Option<usize> {
        Some(fs::read_dir("/proc/self/fd").ok()?.count().saturating_sub(1))
    }

    pub(super) fn most_files() -> Option<u64> {
        getrlimit(Resource::RLIMIT_NOFILE).ok().map(|(soft, _)| soft)
    }

    pub(super) fn start_time() -> Option<f64> {
        Some(STARTED.duration_since(UNIX_EPOCH).ok()?.as_secs_f64())
    }
}

/// Takes down that the process has started.
pub(super) fn note_start() {
    LazyLock::force(&STARTED);
}
