//! Counts queries as the server does, to measure the instructions for counting:
//!
//!     valgrind --tool=callgrind target/release/examples/statistics_speed counted 100000
//!
//! Arguments: `counted`, or `bare` for the same loop without counting, and the number of queries.
//! The difference of the two is the cost of counting: a query with EDNS and its response, with
//! their sizes, type and response code.

use nonesuch_net::Transport;
use nonesuch_proto::message::{HEADER, push_query};
use nonesuch_proto::{Rtype, edns};
use nonesuch_server::query::Query;
use nonesuch_server::statistics::Statistics;
use std::hint::black_box;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let is_counted = arguments.next().as_deref() != Some("bare");
    let count: usize = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    let mut messages = Vec::new();
    for number in 0..64 {
        let mut octets = Vec::new();
        let rtype = [Rtype::A, Rtype::AAAA, Rtype::DS, Rtype(65)][usize::from(number) % 4];
        push_query(&format!("n{number}.example.").parse()?, rtype, number, 0, &mut octets);
        edns::push_opt(1232, 0, edns::DO, &mut octets);
        octets[HEADER - 1] = 1;
        let mut response = vec![0; 64 + 16 * usize::from(number)];
        response[2] = 0x80;
        // One record: the response code has no upper bits in an OPT record.
        response[7] = 1;
        response[3] = u8::from(number % 5 == 0) * 3;
        messages.push((octets, response));
    }
    let statistics = Statistics::new();
    let mut thread = statistics.thread(Transport::Udp);
    for (message, response) in messages.iter().cycle().take(count) {
        let Ok(query) = Query::parse(message) else { continue };
        let query = black_box(query);
        if is_counted {
            thread.count_response(&query, message, response);
        } else {
            black_box((&query, message, response));
        }
    }
    let sum = statistics.sum();
    println!(
        "{} queries, {} octets of answers",
        sum.of(Transport::Udp).types.values().sum::<u64>(),
        sum.of(Transport::Udp).response_sizes.octets
    );
    Ok(())
}
