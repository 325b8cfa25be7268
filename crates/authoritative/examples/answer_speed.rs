//! Answers queries from a signed zone of 1,000 names, without sockets, for counting instructions:
//!
//!     valgrind --tool=callgrind target/release/examples/answer_speed nsec3 100000
//!
//! Arguments: `none`, `nsec`, `nsec3` or `nsec3-opt-out`, and the number of queries. Three of four
//! queries are for existing names. The function `ask` runs all queries, so that callgrind can
//! exclude the cost of building the zone (`--toggle-collect='*answer_speed::ask*'`).

mod common;

use nonesuch_authoritative::{Request, answer};
use nonesuch_crypto::Algorithm;
use nonesuch_dnssec::{KeySet, SignOptions, sign};
use nonesuch_net::Transport;
use nonesuch_proto::MAX_NAME;
use nonesuch_server::query::Query;
use nonesuch_server::trailer::Trailer;
use nonesuch_zone::Image;

fn image(mechanism: &str) -> Result<Image, Box<dyn std::error::Error>> {
    let contents = common::zone(true)?;
    let apex = contents.apex().clone();
    if mechanism == "none" {
        return Ok(Image::compile(&contents)?);
    }
    let keys = KeySet::new(&apex, vec![common::key(&apex, Algorithm::ED25519)?])?;
    let options = SignOptions::new(mechanism.parse()?, 1_750_000_000, 1_760_000_000);
    Ok(Image::compile(sign(&contents, &keys, &options)?.contents())?.with_verified_chain())
}

/// Answers `count` queries and returns the total size of the responses, in octets.
#[inline(never)]
fn ask(image: &Image, queries: &[Vec<u8>], count: usize) -> usize {
    let (mut out, mut octets) = (Vec::with_capacity(4096), 0);
    for message in queries.iter().cycle().take(count) {
        let Ok(query) = Query::parse(message) else { continue };
        let mut name_buffer = [0; MAX_NAME];
        let request = Request::new(&query, &mut name_buffer, Transport::Udp, &Trailer::PLAIN);
        answer(image, &request, &mut out);
        octets += out.len();
    }
    octets
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
    println!("{count} queries, {} octets of answers", ask(&image, &queries, count));
    Ok(())
}
