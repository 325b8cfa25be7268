//! CPU time and memory of processes, from `/proc` of Linux.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

/// Clock ticks per second in `/proc/PID/stat`: `USER_HZ`. It is 100 on all Linux architectures that
/// the standard library of Rust supports.
const TICKS_PER_SECOND: u64 = 100;
/// Resolution of [`CpuTime`], in µs.
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
    /// Returns the CPU time since `earlier`, an earlier value of the same process.
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

/// Reads the CPU time of each thread of process `pid`, by thread ID, in µs. The list is empty if
/// the process does not exist.
pub(crate) fn thread_times(pid: u32) -> BTreeMap<u32, u64> {
    let of = |id: u32| {
        let time = parse_stat(&fs::read(format!("/proc/{pid}/task/{id}/stat")).ok()?)?;
        Some((id, time.user_us + time.system_us))
    };
    numbers_in(&format!("/proc/{pid}/task")).filter_map(of).collect()
}

/// Returns the CPU time of the processes `roots` and of all their descendants, in µs. It includes
/// descendants that have ended, if their parent has waited for them.
pub(crate) fn family_cpu_us(roots: &[u32]) -> u64 {
    let of = |pid: u32| Some((pid, parse_family(&fs::read(format!("/proc/{pid}/stat")).ok()?)?));
    family_sum(&numbers_in("/proc").filter_map(of).collect(), roots)
}

/// Adds the times of the processes that are in `roots` or have an ancestor in it. `processes` has
/// the parent and the time of each process.
fn family_sum(processes: &BTreeMap<u32, (u32, u64)>, roots: &[u32]) -> u64 {
    let belongs = |pid: u32| {
        // The number of steps is limited: a process that started between two reads can have the
        // number of an earlier one, which can result in a circle.
        let ancestors = std::iter::successors(Some(pid), |pid| Some(processes.get(pid)?.0));
        ancestors.take(processes.len() + 1).any(|pid| roots.contains(&pid))
    };
    processes.iter().filter(|(pid, _)| belongs(**pid)).map(|(_, (_, time))| time).sum()
}

/// Returns the numbers among the names of the files in a directory.
fn numbers_in(path: &str) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
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
        resident_kib: kib_field(&status, "VmRSS:")?,
        proportional_kib: rollup.and_then(|text| kib_field(&text, "Pss:")),
    })
}

/// Whether the process `pid` exists and has not ended. A process that has ended exists until its
/// parent waits for it (state `Z` of `proc_pid_stat(5)`).
#[must_use]
pub fn is_running(pid: u32) -> bool {
    let stat = fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
    let name_end = stat.iter().rposition(|&octet| octet == b')');
    name_end.and_then(|end| stat.get(end + 2)).is_some_and(|state| !b"ZX".contains(state))
}

/// Returns the process IDs of process `pid` and its descendants, parents first. If the process does
/// not exist, the list contains only `pid`.
#[must_use]
pub fn tree(pid: u32) -> Vec<u32> {
    let mut all = vec![pid];
    let mut visited = 0;
    while let Some(&pid) = all.get(visited) {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            all.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
        visited += 1;
    }
    all
}

/// Returns the sum of the CPU times of the process `pid` and its descendants, without processes
/// that no longer exist.
#[must_use]
pub fn tree_cpu_time(pid: u32) -> CpuTime {
    tree(pid).into_iter().filter_map(cpu_time).fold(CpuTime::default(), |sum, time| CpuTime {
        user_us: sum.user_us + time.user_us,
        system_us: sum.system_us + time.system_us,
    })
}

/// Returns the total memory of the process `pid` and its descendants in KiB: the proportional set
/// size, or the resident set size of a process for which the system does not provide the former.
#[must_use]
pub fn tree_memory_kib(pid: u32) -> u64 {
    let memory = tree(pid).into_iter().filter_map(memory);
    memory.map(|memory| memory.proportional_kib.unwrap_or(memory.resident_kib)).sum()
}

/// Reads fields 14 and 15 (`utime`, `stime`) of `proc_pid_stat(5)`. Field 2 is the program name in
/// parentheses. The name can contain any character, including parentheses and spaces. Therefore the
/// function counts the other fields from the last closing parenthesis.
fn parse_stat(stat: &[u8]) -> Option<CpuTime> {
    let mut fields = fields(stat, 14)?;
    let mut ticks = || fields.next()?.parse::<u64>().ok()?.checked_mul(CPU_STEP_US);
    Some(CpuTime { user_us: ticks()?, system_us: ticks()? })
}

/// Reads the parent (field 4) and the CPU time of the process and of the children for which it has
/// waited (fields 14 to 17), in µs.
fn parse_family(stat: &[u8]) -> Option<(u32, u64)> {
    let parent = fields(stat, 4)?.next()?.parse().ok()?;
    let ticks: Vec<u64> = fields(stat, 14)?.take(4).filter_map(|field| field.parse().ok()).collect();
    let sum = ticks.iter().try_fold(0_u64, |sum, ticks| sum.checked_add(*ticks))?;
    Some((parent, sum.checked_mul(CPU_STEP_US).filter(|_| ticks.len() == 4)?))
}

/// Returns the fields from number `first` (3 or more) onwards.
fn fields(stat: &[u8], first: usize) -> Option<impl Iterator<Item = &str>> {
    let name_end = stat.iter().rposition(|&octet| octet == b')')?;
    let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    // The first field after the name is field 3, the state.
    Some(rest.split_ascii_whitespace().skip(first - 3))
}

/// Returns the value of a line `NAME   N kB`.
fn kib_field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().strip_suffix("kB")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_the_process_and_its_descendants() {
        let stat = b"7 (a) b) S 3 7 7 0 -1 4194560 1 0 0 0 10 2 30 4 20 0 1 0 5";
        assert_eq!(parse_family(stat), Some((3, 46 * CPU_STEP_US)));
        assert_eq!(parse_family(b"7 (a) S 3 7 7 0 -1 4194560 1 0 0 0 10 2 30"), None);
        assert_eq!(parse_family(b""), None);
        let processes = BTreeMap::from([
            (1, (0, 1)),
            (2, (1, 10)),
            (3, (2, 100)),
            (4, (1, 1000)),
            (8, (9, 7)),
            (9, (8, 7)),
        ]);
        assert_eq!(family_sum(&processes, &[2]), 110);
        assert_eq!(family_sum(&processes, &[2, 3]), 110);
        assert_eq!(family_sum(&processes, &[3, 4]), 1100);
        assert_eq!(family_sum(&processes, &[5]), 0);
    }

    #[test]
    fn the_threads_of_this_process_have_times() {
        let own = std::process::id();
        assert!(thread_times(own).contains_key(&own));
        assert!(thread_times(u32::MAX).is_empty());
    }

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
        assert_eq!(kib_field(status, "VmRSS:"), Some(123));
        assert_eq!(kib_field(status, "Pss:"), None);
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
    fn a_tree_has_the_descendants_of_a_process() {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "sleep 60 & echo; wait"]).stdout(std::process::Stdio::piped());
        let mut shell = shell.spawn().expect("a shell");
        // The shell prints the line after it has started the child.
        let output = shell.stdout.take().expect("piped");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut String::new())
            .expect("a line");
        let all = tree(shell.id());
        assert_eq!((all.len(), all[0]), (2, shell.id()), "{all:?}");
        assert!(
            tree_memory_kib(shell.id())
                > memory(all[1]).map_or(0, |child| child.proportional_kib.unwrap_or(0))
        );
        assert!(all.iter().all(|pid| is_running(*pid)));
        nonesuch_net::signal_process(all[1], nonesuch_net::ProcessSignal::Kill).expect("killed");
        shell.wait().expect("ended");
        assert!(!all.iter().any(|pid| is_running(*pid)));
        assert_eq!((tree(shell.id()).len(), tree_cpu_time(shell.id())), (1, CpuTime::default()));
    }

    #[test]
    fn no_process_is_nothing() {
        // Above the maximum process ID of Linux (2^22).
        assert_eq!(cpu_time(u32::MAX), None);
        assert_eq!(memory(u32::MAX), None);
    }
}
