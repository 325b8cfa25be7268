//! CPU time and resident memory of a process, from `/proc` of Linux.

use std::fs;
use std::time::Duration;

/// Clock ticks per second in `/proc/PID/stat`: `USER_HZ`. It is 100 on all Linux architectures that
/// the standard library of Rust supports.
const TICKS_PER_SECOND: u64 = 100;
/// Resolution of the CPU time, in µs.
pub(crate) const CPU_STEP_US: u64 = 1_000_000 / TICKS_PER_SECOND;

/// CPU time of all threads of a process since its start. The kernel counts in steps of 10 ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTime {
    /// Time in user mode, in µs.
    pub user_us: u64,
    /// Time in the kernel for this process, in µs.
    pub system_us: u64,
}

impl CpuTime {
    /// Returns the difference between this value and `earlier`, an earlier value of the same
    /// process.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            user_us: self.user_us.saturating_sub(earlier.user_us),
            system_us: self.system_us.saturating_sub(earlier.system_us),
        }
    }
}

/// Memory of a process, in KiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Resident set size. It includes the full size of shared pages.
    pub resident_kib: u64,
    /// Proportional set size (PSS): shared pages are divided among their users. Readable only for
    /// processes of the same user.
    pub proportional_kib: Option<u64>,
}

/// Reads the CPU time of process `pid`. Returns `None` if the process does not exist.
#[must_use]
pub fn cpu_time(pid: u32) -> Option<CpuTime> {
    parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?)
}

/// Reads the CPU time of the calling thread, up to the last clock tick. Returns `None` if the
/// system does not provide it.
#[must_use]
pub(crate) fn own_thread_cpu_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_ascii_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// Reads the memory of process `pid`. Returns `None` if the process does not exist.
#[must_use]
pub fn memory(pid: u32) -> Option<Memory> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok();
    Some(Memory {
        resident_kib: kib_of(&status, "VmRSS:")?,
        proportional_kib: rollup.and_then(|text| kib_of(&text, "Pss:")),
    })
}

/// Reads fields 14 and 15 of `proc_pid_stat(5)`. Field 2 is the program name in parentheses. The
/// name can contain any character, including parentheses and spaces. Therefore the function counts
/// the other fields from the last closing parenthesis.
fn parse_stat(stat: &[u8]) -> Option<CpuTime> {
    let name_end = stat.iter().rposition(|&octet| octet == b')')?;
    let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    // The first of these fields is field 3, the state.
    let mut fields = rest.split_ascii_whitespace().skip(14 - 3);
    let mut ticks = || fields.next()?.parse::<u64>().ok()?.checked_mul(CPU_STEP_US);
    Some(CpuTime { user_us: ticks()?, system_us: ticks()? })
}

/// Returns the value of a line `NAME   N kB`.
fn kib_of(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stat_line_is_read_past_a_strange_name() {
        let stat = b"42 (a) b (c) R 1 42 42 0 -1 4194560 100 0 0 0 7 5 0 0 20 0 1 0 100 1000 10";
        assert_eq!(parse_stat(stat), Some(CpuTime { user_us: 70_000, system_us: 50_000 }));
    }

    #[test]
    fn a_cut_stat_line_is_nothing() {
        for stat in [&b""[..], b"42 (a", b"42 (a) R 1 42", b"42 (a) R 1 42 42 0 -1 4194560 100 0 0 0 7 x"] {
            assert_eq!(parse_stat(stat), None);
        }
    }

    #[test]
    fn a_memory_line_is_found() {
        let status = "Name:\tx\nVmPeak:\t  200 kB\nVmRSS:\t  123 kB\n";
        assert_eq!(kib_of(status, "VmRSS:"), Some(123));
        assert_eq!(kib_of(status, "Pss:"), None);
    }

    #[test]
    fn this_process_is_measured() {
        let pid = std::process::id();
        let before = cpu_time(pid).expect("this process runs");
        // Consume CPU time until the counter changes.
        let mut spent = CpuTime { user_us: 0, system_us: 0 };
        while spent.user_us + spent.system_us == 0 {
            spent = cpu_time(pid).expect("this process runs").since(before);
        }
        assert!(spent.user_us + spent.system_us >= CPU_STEP_US);
        let memory = memory(pid).expect("this process runs");
        assert!(memory.resident_kib > 100);
    }

    #[test]
    fn no_process_is_nothing() {
        // Above the maximum process ID of Linux (2^22).
        assert_eq!(cpu_time(u32::MAX), None);
        assert_eq!(memory(u32::MAX), None);
    }
}
