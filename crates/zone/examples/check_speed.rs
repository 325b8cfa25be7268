//! Measures the time of reading and compiling a zone file and of the semantic checks:
//! `check_speed FILE`.

use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os().nth(1).ok_or("usage: check_speed FILE")?;
    let started = Instant::now();
    let contents = nonesuch_zone::load(Path::new(&path), None)?.contents;
    let read = started.elapsed();
    let started = Instant::now();
    let image = nonesuch_zone::Image::compile(&contents)?;
    let compiled = started.elapsed();
    drop(image);
    let started = Instant::now();
    let findings = nonesuch_zone::semantics::check(&contents, 20);
    let checked = started.elapsed();
    println!(
        "{} records read in {read:?}, compiled in {compiled:?}, checked in {checked:?}",
        contents.record_count()
    );
    for (kind, count) in findings.counts() {
        println!("{kind}: {count}");
    }
    Ok(())
}
