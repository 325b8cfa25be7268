//! The machine on which an experiment runs, and the selection of CPUs for server and load
//! generator.

mod processor;

use processor::{Frequency, flags, hypervisor, identifier, number, words};
use serde::{Deserialize, Serialize};
use std::fs;

/// Description of the machine and the program, to compare results of different machines.
///
/// Records of earlier versions lack some fields. Reading such a record gives them empty values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Machine {
    /// Identifier of the machine: 32 hexadecimal digits of a BLAKE3 hash of `/etc/machine-id`, from
    /// which it cannot be computed. Without that file, of host name and CPU model: who guesses the
    /// host name can confirm it.
    pub id: String,
    /// Model of the CPU; empty if unknown.
    pub cpu: String,
    /// Family of the CPU; `None` if the processor has no such number.
    pub cpu_family: Option<u64>,
    /// Model number of the CPU, likewise.
    pub cpu_model: Option<u64>,
    /// Stepping of the CPU, likewise.
    pub cpu_stepping: Option<u64>,
    /// CPU features by which this program and its libraries select code, with their names in
    /// `/proc/cpuinfo`.
    pub cpu_flags: Vec<String>,
    /// Highest frequency of any CPU at the start of the run, in MHz.
    pub cpu_mhz: Option<u64>,
    /// Highest frequency that the system permits for the first CPU, in MHz.
    pub cpu_max_mhz: Option<u64>,
    /// Frequency governor of the first CPU; empty if unknown.
    pub governor: String,
    /// Hypervisor of a virtual machine, or its hardware as the hypervisor names it; `unknown` for a
    /// virtual machine without a name; empty for a machine that is not known to be virtual.
    pub hypervisor: String,
    /// Number of CPUs that this process may use; 1 if unknown.
    pub cpus: u64,
    /// Total memory; 0 if unknown.
    pub memory_kib: u64,
    /// Name of the distribution, and version of the Linux kernel, as in `Debian GNU/Linux 12
    /// (bookworm), Linux 6.1.0`.
    pub system: String,
    /// Release and build of the kernel, as in `Linux 6.1.0 #1 SMP ...`.
    pub kernel: String,
    /// Version of this program.
    pub nonesuch: String,
    /// Version of the compiler of this program; empty if unknown.
    pub rustc: String,
    /// Whether this program is built without debug assertions.
    pub optimised: bool,
    /// CPU chosen for the servers. `None` if no two CPUs were available to this process, or the
    /// experiment chooses no CPUs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_cpu: Option<u64>,
    /// CPU chosen for the load generator. `None` in the same cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_cpu: Option<u64>,
}

impl Machine {
    /// Describes this machine, and the CPUs that the experiment chose, if it did.
    pub(crate) fn describe(chosen: Option<CpuPlacement>) -> Self {
        let cpuinfo = read_or_empty("/proc/cpuinfo");
        let release = read_or_empty("/etc/os-release");
        let name = field(&release, "PRETTY_NAME=").trim_matches('"');
        let cpu = value(field(&cpuinfo, "model name")).to_owned();
        let flags = flags(&cpuinfo);
        let Frequency { current: cpu_mhz, maximum: cpu_max_mhz, governor } = Frequency::read(&cpuinfo);
        let kernel = |name: &str| read_or_empty(&format!("/proc/sys/kernel/{name}")).trim().to_owned();
        let memory =
            field(&read_or_empty("/proc/meminfo"), "MemTotal:").trim_end_matches("kB").trim().parse();
        Self {
            id: identifier(&read_or_empty("/etc/machine-id"), &kernel("hostname"), &cpu),
            cpu,
            cpu_family: number(&cpuinfo, "cpu family"),
            cpu_model: number(&cpuinfo, "model\t"),
            cpu_stepping: number(&cpuinfo, "stepping"),
            hypervisor: hypervisor(&cpuinfo),
            cpu_flags: flags,
            cpu_mhz,
            cpu_max_mhz,
            governor,
            kernel: format!("Linux {} {}", kernel("osrelease"), kernel("version")),
            cpus: std::thread::available_parallelism().map_or(1, |count| count.get() as u64),
            memory_kib: memory.unwrap_or(0),
            system: format!("{name}, Linux {}", kernel("osrelease")),
            nonesuch: env!("CARGO_PKG_VERSION").to_owned(),
            rustc: option_env!("NONESUCH_RUSTC").unwrap_or_default().to_owned(),
            optimised: !cfg!(debug_assertions),
            server_cpu: chosen.map(|chosen| chosen.server as u64),
            load_cpu: chosen.map(|chosen| chosen.load as u64),
        }
    }

    /// Returns a note for the results if this program is built with debug assertions.
    pub(crate) fn debug_build_note(&self) -> Option<String> {
        let remedy = "repeat the measurement with a release build (cargo run --release)";
        let note = || format!("A build with debug assertions was measured: {remedy}.");
        (!self.optimised).then(note)
    }
}

/// Returns the content of a file, or an empty text if it cannot be read.
fn read_or_empty(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Returns the rest of the first line that begins with `name`, or an empty text if there is none.
fn field<'a>(text: &'a str, name: &str) -> &'a str {
    text.lines().find_map(|line| line.strip_prefix(name)).map_or("", str::trim)
}

/// Returns the value of a field of `/proc/cpuinfo`, without the colon before it.
fn value(field: &str) -> &str {
    field.trim_start_matches([':', ' ', '\t'])
}

/// CPU numbers for the server and for the load generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CpuPlacement {
    pub(crate) server: usize,
    pub(crate) load: usize,
}

/// Selects two CPUs that this process may use, on different cores if possible. Returns `None` if
/// this process may use only one CPU, or the system does not state which.
pub(crate) fn choose_cpus() -> Option<CpuPlacement> {
    choose_among(&allowed_cpus(), |cpu| {
        parse_list(
            read_or_empty(&format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list")).trim(),
        )
    })
}

/// Returns the CPUs that this process may use, in ascending order. The list is empty if the system
/// does not provide it.
pub(crate) fn allowed_cpus() -> Vec<usize> {
    parse_list(field(&read_or_empty("/proc/self/status"), "Cpus_allowed_list:"))
}

/// Whether the CPU has all features in `names`. The names are those of the `flags` in
/// `/proc/cpuinfo`. Returns false if the system does not provide this file, and on every machine
/// that is not x86.
pub(crate) fn has_features(names: &[&str]) -> bool {
    let cpuinfo = read_or_empty("/proc/cpuinfo");
    let flags = words(&cpuinfo, &["flags"]);
    names.iter().all(|name| flags.contains(name))
}

/// Selects two of the `allowed` CPUs. `siblings` returns the CPUs of the same core. The server has
/// the last CPU, because most interrupts occur on the first CPU.
fn choose_among(allowed: &[usize], siblings: impl Fn(usize) -> Vec<usize>) -> Option<CpuPlacement> {
    let (&server, others) = allowed.split_last()?;
    let shared = siblings(server);
    let load = others.iter().find(|cpu| !shared.contains(cpu)).or_else(|| others.first())?;
    Some(CpuPlacement { server, load: *load })
}

/// Parses a list of CPUs such as `0-3,8`. Returns an empty list if the text has another format. At
/// most 65,537 CPUs of a range are returned, so that a wrong text cannot exhaust memory.
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
        assert_eq!(choose_among(&[0, 1, 2, 3], pairs), Some(CpuPlacement { server: 3, load: 0 }));
        assert_eq!(choose_among(&[2, 3], pairs), Some(CpuPlacement { server: 3, load: 2 }));
        assert_eq!(choose_among(&[1], pairs), None);
        assert_eq!(choose_among(&[], pairs), None);
    }

    const fn machine_cpus() -> Option<CpuPlacement> {
        Some(CpuPlacement { server: 1, load: 0 })
    }

    #[test]
    fn this_machine_is_known() {
        let machine = Machine::describe(machine_cpus());
        assert!(machine.cpus >= 1 && machine.memory_kib > 0);
        assert!(machine.system.contains("Linux "), "{}", machine.system);
        assert_eq!((machine.server_cpu, machine.load_cpu), (Some(1), Some(0)));
        assert!(machine.rustc.starts_with("rustc "), "{}", machine.rustc);
        assert_eq!(machine.id.len(), 32);
        assert_eq!(machine, Machine { cpu_mhz: machine.cpu_mhz, ..Machine::describe(machine_cpus()) });
    }
}
