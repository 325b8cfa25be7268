//! Measures the cost of writing a zone:
//! `cargo run --release -p nonesuch-zone --example write_speed -- FILE [ORIGIN]`.
//!
//! Converts the zone to text, and to canonical form for ZONEMD, on one thread, seven times each.
//! Prints the median CPU time of this thread (Linux).

use nonesuch_zone::{read, write, zonemd};
use std::path::Path;

const RUNS: usize = 7;

/// Returns the CPU time of this thread in nanoseconds.
fn thread_cpu_nanoseconds() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|field| field.parse().ok()).unwrap_or(0)
}

fn median_cpu_seconds(mut work: impl FnMut()) -> f64 {
    let mut times: Vec<u64> = (0..RUNS)
        .map(|_| {
            let started = thread_cpu_nanoseconds();
            work();
            thread_cpu_nanoseconds() - started
        })
        .collect();
    times.sort_unstable();
    times[RUNS / 2] as f64 / 1e9
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("give a zone file")?;
    let origin = arguments.next().map(|text| text.parse()).transpose()?;
    let contents = read::read_file(Path::new(&file), origin.as_ref())?.contents;
    let mut out = Vec::new();
    let mut measure = |render: &dyn Fn(&mut Vec<u8>)| {
        let seconds = median_cpu_seconds(|| {
            out.clear();
            render(&mut out);
        });
        (seconds, out.len())
    };
    let (text, octets) = measure(&|out| write::push_part(&contents, out));
    println!("{} records, {octets} octets of text: {text:.3} s of CPU", contents.record_count());
    let (canonical, octets) = measure(&|out| zonemd::push_canonical(&contents, out));
    println!("canonical form for ZONEMD, {octets} octets: {canonical:.3} s of CPU");
    Ok(())
}
