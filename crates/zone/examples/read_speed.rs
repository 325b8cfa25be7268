//! Measures the cost of reading a zone file: records, wall and CPU seconds, peak memory.
//!
//!     cargo run --release -p nonesuch-zone --example read_speed -- FILE [ORIGIN] [RUNS]
//!
//! CPU seconds include all threads. They come from Linux counters in /proc and are missing on other
//! systems.

use nonesuch_proto::Name;
use nonesuch_zone::read::read_file;
use std::path::PathBuf;
use std::time::Instant;

/// Ticks per second of the CPU counters in /proc (USER_HZ of the kernel, 100 on all systems).
const TICKS: f64 = 100.0;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let Some(file) = arguments.next().map(PathBuf::from) else {
        eprintln!("usage: read_speed FILE [ORIGIN] [RUNS]");
        std::process::exit(2);
    };
    let origin: Option<Name> = arguments.next().and_then(|text| text.parse().ok());
    let runs: u32 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    let cpu_before = cpu_seconds();
    let mut shortest = f64::INFINITY;
    let mut records = 0;
    for _ in 0..runs {
        let started = Instant::now();
        match read_file(&file, origin.as_ref()) {
            Ok(parsed) => records = parsed.contents.record_count(),
            Err(error) => {
                eprintln!("{error}");
                std::process::exit(2);
            }
        }
        shortest = shortest.min(started.elapsed().as_secs_f64());
    }
    let cpu = (cpu_seconds() - cpu_before) / f64::from(runs);
    println!(
        "{}: {records} records; best of {runs}: {shortest:.3} s; mean CPU {cpu:.3} s ({:.2} million records a CPU second); peak {} MB",
        file.display(),
        records as f64 / cpu / 1e6,
        peak_memory() / 1000,
    );
}

/// Returns the CPU seconds of this process, user and system.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The name in parentheses may contain blanks. utime and stime are the 12th and 13th field after
    // it.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2).filter_map(|field| field.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS
}

/// Returns VmHWM in units of 1,000 bytes.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kibibytes.unwrap_or(0) * 1024 / 1000
}
