//! Measures how long a zone takes to be written as a compiled zone and to be loaded from one.
//!
//!     cargo run --release -p nonesuch-zone --example compiled_speed -- ZONEFILE [ROUNDS]
//!
//! Prints the means of wall time and of CPU time (of all threads, from /proc/self/stat, which counts in hundredths of a
//! second: take 20 rounds or more).

use nonesuch_zone::{Verification, compiled, load};
use std::error::Error;
use std::io::BufWriter;
use std::path::Path;
use std::time::Instant;

/// Seconds that a tick of /proc/self/stat has.
const TICK: f64 = 0.01;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().ok_or("usage: compiled_speed ZONEFILE [ROUNDS]")?;
    let rounds: u32 = arguments.next().map_or(Ok(20), |rounds| rounds.parse())?;
    let path = Path::new(&file);
    let contents = measure("read text, once", 1, || load(path, None))?.contents;
    let folder = tempfile::tempdir()?;
    let image = folder.path().join("image");
    measure("write compiled", rounds, || {
        let mut out = BufWriter::new(std::fs::File::create(&image)?);
        compiled::write(&contents, Verification::Nothing, &mut out)
    })?;
    println!(
        "{} names, {} records, {} octets of text, {} octets compiled",
        contents.node_count(),
        contents.record_count(),
        std::fs::metadata(path)?.len(),
        std::fs::metadata(&image)?.len()
    );
    drop(contents);
    measure("load compiled", rounds, || load(&image, None))?;
    measure("read the octets alone", rounds, || std::fs::read(&image))?;
    let octets = std::fs::read(&image)?;
    measure("check and copy alone", rounds, || compiled::read(&octets))?;
    Ok(())
}

fn measure<T, E>(what: &str, rounds: u32, mut run: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let (cpu, wall) = (cpu_seconds(), Instant::now());
    for _ in 1..rounds {
        run()?;
    }
    let last = run()?;
    let (cpu, wall) = (cpu_seconds() - cpu, wall.elapsed().as_secs_f64());
    let each = |seconds: f64| seconds * 1e3 / f64::from(rounds);
    println!("{what}: {:.1} ms wall, {:.1} ms CPU", each(wall), each(cpu));
    Ok(last)
}

fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<f64> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|f| f.parse().ok())
        .collect();
    // utime and stime are fields 14 and 15; behind the closing parenthesis, less the letter of the state, 10 and 11.
    fields.get(10).zip(fields.get(11)).map_or(0.0, |(user, system)| (user + system) * TICK)
}
