//! Answers queries from a signed zone of 1,000 names, without sockets, for counting instructions:
//!
//!     perf stat -e instructions:u target/release/examples/answer_speed nsec3 100000
//!
//! Arguments: `none`, `nsec`, `nsec3`, `nsec3-opt-out`, and how many queries; three of four are for names that exist.
//! The run with 0 queries tells what making the zone costs.

mod common;

use nonesuch_authoritative::{Transport, answer};
use nonesuch_crypto::Algorithm;
use nonesuch_dnssec::{KeyPair, KeySet, SignOptions, sign};
use nonesuch_zone::Image;

fn image(mechanism: &str) -> Result<Image, Box<dyn std::error::Error>> {
    let contents = common::zone(true)?;
    let apex = contents.apex().clone();
    if mechanism == "none" {
        return Ok(Image::compile(&contents)?);
    }
    let keys = KeySet::new(&apex, vec![KeyPair::generate(&apex, 257, Algorithm::ED25519, None)?])?;
    let options = SignOptions::new(mechanism.parse()?, 1_750_000_000, 1_760_000_000);
    Ok(Image::compile(sign(&contents, &keys, &options)?.contents())?)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let image = image(&arguments.next().unwrap_or_else(|| "nsec".to_owned()))?;
    let count: usize = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    let mut queries = Vec::new();
    for number in 0..1000 {
        let text = match number % 4 {
            0 => format!("none{number}.example."),
            1 => format!("www.d{number}.example."),
            _ => format!("n{number}.example."),
        };
        queries.push(common::query(&text, number)?);
    }
    let (mut out, mut octets) = (Vec::with_capacity(4096), 0);
    for query in queries.iter().cycle().take(count) {
        if answer(&image, query, Transport::Udp, &mut out) {
            octets += out.len();
        }
    }
    println!("{count} queries, {octets} octets of answers");
    Ok(())
}
