//! Answers the queries of a file from a zone, again and again, without sockets: for counting what an answer takes.
//!
//!     cargo build --release -p nonesuch-authoritative --example answer_cost
//!     perf stat -e instructions:u target/release/examples/answer_cost ZONE QUERIES ROUNDS
//!
//! ZONE is a zone file or a compiled zone, QUERIES has a name and a type on each line. All queries have the DO bit set. The
//! difference of two counts with different ROUNDS is free of what loading takes.

use nonesuch_authoritative::{Transport, answer};
use nonesuch_proto::message::{HEADER, push_query};
use nonesuch_proto::{Name, Rtype, edns};
use nonesuch_zone::{Image, load};
use std::error::Error;
use std::path::Path;
use std::time::Instant;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [zone, queries, rounds] = arguments.as_slice() else {
        return Err("usage: answer_cost ZONE QUERIES ROUNDS".into());
    };
    let image = Image::compile(&load(Path::new(zone), None)?.contents)?;
    let queries = read_queries(&std::fs::read_to_string(queries)?)?;
    let rounds: u32 = rounds.parse()?;
    let mut out = Vec::new();
    let (mut octets, begun) = (0, Instant::now());
    for _ in 0..rounds {
        for query in &queries {
            answer(&image, query, Transport::Udp, &mut out);
            octets += out.len();
        }
    }
    let count = u64::from(rounds) * queries.len() as u64;
    println!("{count} answers, {octets} octets, {:?} each", begun.elapsed() / count.max(1) as u32);
    Ok(())
}

fn read_queries(text: &str) -> Result<Vec<Vec<u8>>, Box<dyn Error>> {
    let mut queries = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (name, rtype) = line.split_once(' ').ok_or("a line of QUERIES is a name, a blank and a type")?;
        let (name, rtype): (Name, Rtype) = (name.parse()?, rtype.trim().parse()?);
        let mut query = Vec::new();
        push_query(&name, rtype, 1, 0, &mut query);
        edns::push_opt(1232, 0, edns::DO, &mut query);
        query[HEADER - 1] = 1;
        queries.push(query);
    }
    Ok(queries)
}
