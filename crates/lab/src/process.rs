//! CPU time and memory of processes, from `/proc` of Linux.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
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

    /// Returns the sum of both times.
    fn plus(self, other: Self) -> Self {
        Self {
            user_us: self.user_us.saturating_add(other.user_us),
            system_us: self.system_us.saturating_add(other.system_us),
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
    parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?).map(|[own, _]| own)
}

/// Reads the CPU time of each thread of the process `pid` and of its descendants, by thread ID, up
/// to the last clock tick. The list has no threads that have ended, and is empty if the system does
/// not provide the times.
pub(crate) fn thread_times(pid: u32) -> BTreeMap<u32, Duration> {
    let tasks = tree(pid).into_iter().flat_map(|pid| {
        let tasks = fs::read_dir(format!("/proc/{pid}/task"));
        tasks.into_iter().flatten().flatten()
    });
    let time = |task: fs::DirEntry| {
        let id = task.file_name().to_str()?.parse().ok()?;
        Some((id, thread_cpu_time(&task.path())?))
    };
    tasks.filter_map(time).collect()
}

/// Reads the CPU time of the calling thread, up to the last clock tick. Returns `None` if the
/// system does not provide it.
#[must_use]
pub(crate) fn own_thread_cpu_time() -> Option<Duration> {
    thread_cpu_time(Path::new("/proc/thread-self"))
}

/// Reads the CPU time of the thread with this directory in `/proc`.
fn thread_cpu_time(thread: &Path) -> Option<Duration> {
    let text = fs::read_to_string(thread.join("schedstat")).ok()?;
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

/// Returns the number of open sockets of the process `pid`; 0 if the system does not provide it.
pub(crate) fn open_sockets(pid: u32) -> u64 {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let is_socket = |file: &fs::DirEntry| {
        fs::read_link(file.path()).is_ok_and(|target| target.to_string_lossy().starts_with("socket:"))
    };
    files.filter(is_socket).count() as u64
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
    trees(&[pid])
}

/// Returns the process IDs of the processes `roots` and their descendants, each once.
fn trees(roots: &[u32]) -> Vec<u32> {
    let mut all = roots.to_vec();
    let mut visited = 0;
    while let Some(&pid) = all.get(visited) {
        let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        for task in tasks {
            let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
            for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
                if !all.contains(&child) {
                    all.push(child);
                }
            }
        }
        visited += 1;
    }
    all
}

/// Returns the sum of the CPU times of the process `pid` and its descendants. It includes
/// descendants that have ended, if their parent has waited for them.
#[must_use]
pub fn tree_cpu_time(pid: u32) -> CpuTime {
    trees_cpu_time(&[pid])
}

/// Returns the sum of the CPU times of the processes `roots` and their descendants, as
/// [`tree_cpu_time`]. A process counts once if it is in several trees.
pub(crate) fn trees_cpu_time(roots: &[u32]) -> CpuTime {
    let times = |pid: u32| parse_stat(&fs::read(format!("/proc/{pid}/stat")).ok()?);
    trees(roots).into_iter().filter_map(times).flatten().fold(CpuTime::default(), CpuTime::plus)
}

/// Returns the total memory of the process `pid` and its descendants in KiB: the proportional set
/// size, or the resident set size of a process for which the system does not provide the former.
#[must_use]
pub fn tree_memory_kib(pid: u32) -> u64 {
    let memory = tree(pid).into_iter().filter_map(memory);
    memory.map(|memory| memory.proportional_kib.unwrap_or(memory.resident_kib)).sum()
}

/// Reads fields 14 to 17 (`utime`, `stime`, `cutime`, `cstime`) of `proc_pid_stat(5)`: the time of
/// the process, and that of the descendants that have been waited for. Field 2 is the program name
/// in parentheses. The name can contain any character, including parentheses and spaces. Therefore
/// the function counts the other fields from the last closing parenthesis.
fn parse_stat(stat: &[u8]) -> Option<[CpuTime; 2]> {
    let name_end = stat.iter().rposition(|&octet| octet == b')')?;
    let rest = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?;
    // The first field after the name is field 3, the state.
    let mut fields = rest.split_ascii_whitespace().skip(14 - 3);
    let mut ticks = || fields.next()?.parse::<u64>().ok()?.checked_mul(CPU_STEP_US);
    let mut time = || Some(CpuTime { user_us: ticks()?, system_us: ticks()? });
    Some([time()?, time()?])
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
    fn the_threads_of_this_process_have_times() {
        let own = std::process::id();
        assert!(thread_times(own).contains_key(&own));
        assert!(thread_times(u32::MAX).is_empty());
        let before = own_thread_cpu_time().expect("the system has schedstat");
        while own_thread_cpu_time().expect("a time") == before {}
    }

    #[test]
    fn a_stat_line_is_read_past_a_strange_name() {
        let stat = b"42 (a) b (c) R 1 42 42 0 -1 4194560 100 0 0 0 7 5 30 4 20 0 1 0 100 1000 10";
        let own = CpuTime { user_us: 70_000, system_us: 50_000 };
        assert_eq!(parse_stat(stat), Some([own, CpuTime { user_us: 300_000, system_us: 40_000 }]));
    }

    #[test]
    fn a_cut_stat_line_is_nothing() {
        for stat in [
            &b""[..],
            b"42 (a",
            b"42 (a) R 1 42",
            b"42 (a) R 1 42 42 0 -1 4194560 100 0 0 0 7 x",
            b"42 (a) R 1 42 42 0 -1 4194560 100 0 0 0 7 5 30",
        ] {
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
        // The shell prints the line after it has started the child.
        let mut shell = shell_with_line("sleep 60 & echo; wait");
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

    /// Starts a shell that executes `script`, and waits for its first line of output.
    fn shell_with_line(script: &str) -> std::process::Child {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", script]).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut shell = shell.spawn().expect("a shell");
        let output = shell.stdout.take().expect("piped");
        std::io::BufRead::read_line(&mut std::io::BufReader::new(output), &mut String::new())
            .expect("a line");
        shell
    }

    #[test]
    fn children_count_while_they_work_and_after_their_end() {
        let total = |time: CpuTime| time.user_us + time.system_us;
        // The shell reads its standard input while its child works.
        let mut shell = shell_with_line(
            "(n=0; while [ $n -lt 99999999 ]; do n=$((n+1)); done) & echo; read line; kill $!; wait",
        );
        let of_child = |times: &BTreeMap<u32, Duration>| {
            times.iter().filter(|(id, _)| **id != shell.id()).map(|(_, time)| *time).max()
        };
        while of_child(&thread_times(shell.id())).is_none_or(|time| time < Duration::from_millis(30)) {}
        assert!(total(tree_cpu_time(shell.id())) > total(cpu_time(shell.id()).expect("it runs")));
        // Trees that overlap count once.
        let child = tree(shell.id())[1];
        assert_eq!(trees(&[child, shell.id()]).len(), 2);
        drop(shell.stdin.take());
        shell.wait().expect("ended");

        let mut shell =
            shell_with_line("(n=0; while [ $n -lt 99999 ]; do n=$((n+1)); done); echo; read line");
        let (own, all) = (cpu_time(shell.id()).expect("it runs"), tree_cpu_time(shell.id()));
        assert_eq!(tree(shell.id()), [shell.id()]);
        assert!(total(all) > total(own), "{all:?}, {own:?}");
        drop(shell.stdin.take());
        shell.wait().expect("ended");
    }

    #[test]
    fn no_process_is_nothing() {
        // Above the maximum process ID of Linux (2^22).
        assert_eq!(cpu_time(u32::MAX), None);
        assert_eq!(memory(u32::MAX), None);
    }
}
