//! The machine that figures were measured on, and which of its CPUs do what.

use serde::{Deserialize, Serialize};
use std::fs;

/// What a reader must know to hold figures against those of another machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    pub cpu: String,
    /// CPUs that this process may use.
    pub cpus: u64,
    pub memory_kib: u64,
    pub system: String,
    pub nonesuch: String,
    /// The compiler that built it; empty where unknown.
    pub rustc: String,
    /// Whether it was built for speed, without checks for developers.
    pub optimised: bool,
    /// The CPU that servers were kept on, where they were.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu: Option<u64>,
    /// The CPU that the load generator was kept on, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_cpu: Option<u64>,
}

impl Machine {
    /// This machine. What it does not tell stays empty.
    pub(crate) fn here(places: Option<CpuPlacement>) -> Self {
        let cpuinfo = read("/proc/cpuinfo");
        let release = read("/etc/os-release");
        let name = field(&release, "PRETTY_NAME=").trim_matches('"');
        let memory = field(&read("/proc/meminfo"), "MemTotal:").trim_end_matches("kB").trim().parse();
        Self {
            cpu: field(&cpuinfo, "model name").trim_start_matches([':', ' ', '\t']).to_owned(),
            cpus: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
            memory_kib: memory.unwrap_or(0),
            system: format!("{name}, Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            nonesuch: env!("CARGO_PKG_VERSION").to_owned(),
            rustc: option_env!("NONESUCH_RUSTC").unwrap_or_default().to_owned(),
            optimised: !cfg!(debug_assertions),
            server_cpu: places.map(|places| places.server as u64),
            load_cpu: places.map(|places| places.load as u64),
        }
    }

    /// A warning where the program was not built for speed.
    pub(crate) fn note_of_debug_build(&self) -> Option<String> {
        let remedy = "make it again with a release build (cargo run --release)";
        let note = || format!("A build with the checks of a debug build was measured: {remedy}.");
        (!self.optimised).then(note)
    }
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// What follows `name` on its line.
fn field<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines().find_map(|line| line.strip_prefix(name)).map_or("", str::trim)
}

/// CPUs for the server and for the load generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuPlacement {
    pub(crate) server: usize,
    pub(crate) load: usize,
}

/// Chooses two CPUs that this process may use, of different cores where there are two; nothing where there is one
/// CPU.
pub(crate) fn choose_cpus() -> Option<CpuPlacement> {
    places_among(&allowed_cpus(), |cpu| {
        parse_list(read(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")).trim())
    })
}

/// The CPUs that this process may use, ascending; none where the system does not tell.
pub(crate) fn allowed_cpus() -> Vec<usize> {
    parse_list(field(&read("/proc/self/status"), "Cpus_allowed_list:"))
}

/// Whether the CPU has all features of `names`, as `/proc/cpuinfo` calls them.
pub(crate) fn has_features(names: &[&str]) -> bool {
    let cpuinfo = read("/proc/cpuinfo");
    let flags = field(&cpuinfo, "flags");
    names.iter().all(|name| flags.split_ascii_whitespace().any(|flag| flag == *name))
}

/// The last CPU serves: interrupts mostly go to the first.
fn places_among(allowed: &[usize], siblings: impl Fn(usize) -> Vec<usize>) -> Option<CpuPlacement> {
    let (&server, others) = allowed.split_last()?;
    let shared = siblings(server);
    let load = others.iter().find(|cpu| !shared.contains(cpu)).or_else(|| others.first())?;
    Some(CpuPlacement { server, load: *load })
}

/// CPUs in the form `0-3,8`; none where the text is no such list.
fn parse_list(text: &str) -> Vec<usize> {
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (Ok(first), Ok(last)) = (first.trim().parse::<usize>(), last.trim().parse::<usize>()) else {
            return Vec::new();
        };
        cpus.extend(first..=last.min(first.saturating_add(65_536)));
    }
    cpus
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(parse_list("0-2,5,7-8"), [0, 1, 2, 5, 7, 8]);
        assert_eq!(parse_list("3"), [3]);
        for wrong in ["", "a", "1-", "-1", "1,,2"] {
            assert_eq!(parse_list(wrong), [0; 0], "{wrong:?}");
        }
    }

    #[test]
    fn server_and_load_have_cores_of_their_own_where_there_are_two() {
        let pairs = |cpu: usize| vec![cpu & !1, cpu | 1];
        assert_eq!(places_among(&[0, 1, 2, 3], pairs), Some(CpuPlacement { server: 3, load: 0 }));
        assert_eq!(places_among(&[2, 3], pairs), Some(CpuPlacement { server: 3, load: 2 }));
        assert_eq!(places_among(&[1], pairs), None);
        assert_eq!(places_among(&[], pairs), None);
    }

    #[test]
    fn this_machine_is_known() {
        let machine = Machine::here(Some(CpuPlacement { server: 1, load: 0 }));
        assert!(machine.cpus >= 1 && machine.memory_kib > 0);
        assert!(machine.system.contains("Linux "), "{}", machine.system);
        assert_eq!((machine.server_cpu, machine.load_cpu), (Some(1), Some(0)));
        assert!(machine.rustc.starts_with("rustc "), "{}", machine.rustc);
    }
}
