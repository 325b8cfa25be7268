//! Where the octets of an image are: compiles a zone and prints them by section, for each delegation.
//!
//!     cargo run --release -p nonesuch-zone --example image_size -- ZONE
//!
//! ZONE is a zone file or a compiled zone. Resident memory of the process is printed after compiling, the contents of the
//! zone dropped.

use nonesuch_proto::Rtype;
use nonesuch_zone::{Contents, Image, load};
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: image_size ZONE")?;
    let contents = load(Path::new(&path), None)?.contents;
    let delegations = count_delegations(&contents);
    let (names, records) = (contents.node_count(), contents.record_count());
    let image = Image::compile(&contents)?;
    drop(contents);
    let each = |octets: usize| octets as f64 / delegations.max(1) as f64;
    println!("{delegations} delegations, {names} names, {records} records");
    println!("{:14} {:>12} {:>14}", "section", "octets", "a delegation");
    for (name, octets) in image.section_octets() {
        println!("{name:14} {octets:>12} {:>14.1}", each(octets));
    }
    println!("{:14} {:>12} {:>14.1}", "all", image.octets(), each(image.octets()));
    if let Some(resident) = resident() {
        println!("{:14} {resident:>12} {:>14.1}", "resident", each(resident));
    }
    Ok(())
}

/// Owners of NS RRsets but the apex.
fn count_delegations(contents: &Contents) -> usize {
    contents.nodes().skip(1).filter(|node| node.has(Rtype::NS)).count()
}

/// Octets of this process that are in memory.
fn resident() -> Option<usize> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    Some(line.trim().strip_suffix(" kB")?.trim().parse::<usize>().ok()? * 1024)
}
