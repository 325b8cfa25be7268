//! Properties of the processor and the identifier of the machine, from files of Linux.

use super::{read_or_empty, value};
use data_encoding::HEXLOWER;

/// CPU features by which this program and its libraries select code, with their names in
/// `/proc/cpuinfo`: first those of x86, then those of ARM.
const FLAGS: &[&str] = &[
    "ssse3",
    "sse4_1",
    "sse4_2",
    "popcnt",
    "cx16",
    "lahf_lm",
    "pclmulqdq",
    "aes",
    "avx",
    "f16c",
    "fma",
    "bmi1",
    "bmi2",
    "abm",
    "movbe",
    "adx",
    "avx2",
    "sha_ni",
    "vaes",
    "vpclmulqdq",
    "gfni",
    "avx512f",
    "avx512bw",
    "avx512dq",
    "avx512vl",
    "avx512ifma",
    "avx512vbmi",
    "avx512_vbmi2",
    "asimd",
    "pmull",
    "sha1",
    "sha2",
    "sha3",
    "sha512",
    "sve",
    "sve2",
];

/// Context of the keyed hash, so that the identifier cannot be linked to a hash that another
/// program computes from the same file.
const IDENTIFIER_CONTEXT: &str = "nonesuch 2026-11 identifier of a machine in records of the laboratory";

/// Returns the value of the first line that begins with one of `names`, as a list of words.
pub(super) fn words<'c>(cpuinfo: &'c str, names: &[&str]) -> Vec<&'c str> {
    let line = |name: &&str| cpuinfo.lines().find_map(|line| line.strip_prefix(*name));
    names.iter().find_map(line).map_or(Vec::new(), |line| value(line).split_ascii_whitespace().collect())
}

/// Returns the features of the processor that are in [`FLAGS`], in the order of that list.
pub(super) fn flags(cpuinfo: &str) -> Vec<String> {
    let found = words(cpuinfo, &["flags", "Features"]);
    FLAGS.iter().filter(|flag| found.contains(flag)).map(ToString::to_string).collect()
}

/// Returns the number in the first line that begins with `name`.
pub(super) fn number(cpuinfo: &str, name: &str) -> Option<u64> {
    words(cpuinfo, &[name]).first()?.parse().ok()
}

/// Names the hypervisor of a virtual machine.
pub(super) fn hypervisor(cpuinfo: &str) -> String {
    let read = |path: &str| read_or_empty(path).trim().to_owned();
    let kind = read("/sys/hypervisor/type");
    if !kind.is_empty() {
        return kind;
    }
    if !words(cpuinfo, &["flags"]).contains(&"hypervisor") {
        return String::new();
    }
    let dmi = ["sys_vendor", "product_name"].map(|name| read(&format!("/sys/class/dmi/id/{name}")));
    let name = dmi.join(" ").trim().to_owned();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

/// Frequencies of the CPUs, in MHz, and the governor of the first CPU.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Frequency {
    pub(super) current: Option<u64>,
    pub(super) maximum: Option<u64>,
    pub(super) governor: String,
}

impl Frequency {
    /// Reads the frequencies. A virtual machine often has only the current one, and a processor
    /// that is not x86 only the maximum.
    pub(super) fn read(cpuinfo: &str) -> Self {
        let read = |name: &str| {
            read_or_empty(&format!("/sys/devices/system/cpu/cpu0/cpufreq/{name}")).trim().to_owned()
        };
        let megahertz = |kilohertz: String| Some(kilohertz.parse::<u64>().ok()? / 1000);
        Self {
            current: highest(cpuinfo),
            maximum: megahertz(read("scaling_max_freq")),
            governor: read("scaling_governor"),
        }
    }
}

/// Returns the highest frequency in `/proc/cpuinfo`, in MHz.
fn highest(cpuinfo: &str) -> Option<u64> {
    let lines = cpuinfo.lines().filter_map(|line| line.strip_prefix("cpu MHz"));
    lines.filter_map(|line| value(line).parse::<f64>().ok()).map(|mhz| mhz as u64).max()
}

/// Returns the identifier of the machine. If there is no `machine_id` (`/etc/machine-id`), it
/// depends on `host` and `cpu`.
pub(super) fn identifier(machine_id: &str, host: &str, cpu: &str) -> String {
    let machine_id = machine_id.trim();
    // systemd writes this word to the file until the first start is complete.
    let is_set = !machine_id.is_empty() && machine_id != "uninitialized";
    let secret = if is_set { machine_id.to_owned() } else { format!("{host}\n{cpu}") };
    let hash = blake3::derive_key(IDENTIFIER_CONTEXT, secret.as_bytes());
    HEXLOWER.encode(&hash[..16])
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPUINFO: &str = "processor\t: 0\ncpu family\t: 26\nmodel\t\t: 2\nmodel name\t: A CPU\nstepping\t: 1\n\
        cpu MHz\t\t: 2599.998\nflags\t\t: fpu sha_ni avx2 hypervisor avx512f\n\nprocessor\t: 1\ncpu MHz\t\t: 3100.5\n";

    #[test]
    fn properties_of_a_processor_are_read() {
        assert_eq!(number(CPUINFO, "cpu family"), Some(26));
        assert_eq!((number(CPUINFO, "model\t"), number(CPUINFO, "stepping")), (Some(2), Some(1)));
        assert_eq!((number(CPUINFO, "model name"), number("", "model\t")), (None, None));
        assert_eq!(flags(CPUINFO), ["avx2", "sha_ni", "avx512f"]);
        // Some of these features distinguish instruction levels.
        let levels = "popcnt cx16 lahf_lm abm movbe";
        assert_eq!(flags(&format!("flags\t: {levels}\n")).join(" "), levels);
        assert_eq!(flags("Features\t: fp asimd sha2\n"), ["asimd", "sha2"]);
        assert_eq!((highest(CPUINFO), highest("")), (Some(3100), None));
        assert_ne!(hypervisor(CPUINFO), "");
    }

    #[test]
    fn an_identifier_depends_on_the_machine_and_hides_it() {
        let raw = "0123456789abcdef0123456789abcdef\n";
        let own = identifier(raw, "host", "A CPU");
        assert!(own.len() == 32 && own.bytes().all(|digit| digit.is_ascii_hexdigit()), "{own}");
        assert!(!own.contains(&raw[..8]), "{own}");
        assert_eq!(own, identifier(raw.trim(), "another host", "another CPU"));
        assert_ne!(own, identifier("1123456789abcdef0123456789abcdef\n", "host", "A CPU"));
        let without = identifier("", "host", "A CPU");
        assert_eq!(without, identifier("uninitialized\n", "host", "A CPU"));
        assert_ne!(without, identifier("", "host 2", "A CPU"));
        assert_ne!(without, identifier("", "host", "A CPU 2"));
    }
}
