//! Measures a transfer in: asks a primary for a whole zone and says what receiving, reading and building it took.
//!
//!     cargo run --release -p nonesuch-authoritative --example transfer_in -- 127.0.0.1:5300 example. [ROUNDS]

use nonesuch_proto::Name;
use nonesuch_secondary::inbound::{Asked, Inbound, Incoming, TransferBounds, push_question};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let (Some(primary), Some(apex)) = (arguments.next(), arguments.next()) else {
        return Err("give the primary's ADDRESS:PORT and the zone".into());
    };
    let apex: Name = apex.parse()?;
    let rounds: usize = arguments.next().map_or(Ok(1), |rounds| rounds.parse())?;
    for _ in 0..rounds {
        let began = Instant::now();
        let messages = receive(&primary, &apex)?;
        let received = began.elapsed();
        let began = Instant::now();
        let mut inbound = Inbound::new(apex.clone(), 1, Asked::Axfr, TransferBounds::default());
        for message in &messages {
            inbound.push(message)?;
        }
        let read = began.elapsed();
        let (records, octets) = (inbound.records(), inbound.octets());
        let Incoming::Whole { contents, .. } = inbound.finish()? else { return Err("no zone came".into()) };
        println!(
            "{} messages, {records} records, {octets} octets: received in {received:.1?}, read in {read:.1?}, built in {:.1?}, {} names",
            messages.len(),
            began.elapsed() - read,
            contents.node_count()
        );
    }
    Ok(())
}

/// All messages of the answer, as they come.
fn receive(primary: &str, apex: &Name) -> Result<Vec<Vec<u8>>, Failure> {
    let mut question = vec![0, 0];
    push_question(apex, Asked::Axfr, &[], 1, &mut question);
    let length = (question.len() - 2) as u16;
    question[..2].copy_from_slice(&length.to_be_bytes());
    let mut stream = TcpStream::connect(primary)?;
    stream.write_all(&question)?;
    let mut inbound = Inbound::new(apex.clone(), 1, Asked::Axfr, TransferBounds::default());
    let mut messages = Vec::new();
    loop {
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut message)?;
        let is_last = inbound.push(&message)?;
        messages.push(message);
        if is_last {
            return Ok(messages);
        }
    }
}
