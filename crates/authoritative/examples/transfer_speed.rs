//! How long a zone takes to be transferred: the messages of AXFR are made, with and without TSIG, and thrown away.
//!
//!     cargo run --release -p nonesuch-authoritative --example transfer_speed -- ZONE [RUNS]

use nonesuch_authoritative::transfer::outbound::{Asked, Outgoing, Transfer, ZoneToSend, begin};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::push_query;
use nonesuch_server::acl::AccessList;
use nonesuch_server::query::Query;
use nonesuch_server::tsig::{Key, Keys, Verified, sign_request};
use nonesuch_zone::Contents;
use nonesuch_zone::load::load;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

const NOON: u64 = 1_750_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().collect();
    let path = arguments.get(1).ok_or("which zone?")?;
    let runs: usize = arguments.get(2).map_or(Ok(5), |runs| runs.parse())?;
    let contents = Arc::new(load(Path::new(path), None)?.contents);
    let mut message = Vec::new();
    push_query(contents.apex(), Rtype::AXFR, 1, 0, &mut message);
    println!("{} records, {} octets uncompressed", contents.record_count(), contents.octets());
    for _ in 0..runs {
        println!("plain  {}", transfer(&contents, &message, None)?);
    }
    let key = || Key::from_argument("hmac-sha256:key:c2VjcmV0");
    let keys = Keys::new([key()?])?;
    let _verifier = sign_request(&Arc::new(key()?), &mut message, NOON);
    let verified = keys.verify(&message, NOON).ok().flatten().ok_or("our own signature")?;
    for _ in 0..runs {
        println!("signed {}", transfer(&contents, &message, Some(&verified))?);
    }
    Ok(())
}

/// Makes all messages once; tells how many, their octets, and the time.
fn transfer(
    contents: &Arc<Contents>,
    message: &[u8],
    tsig: Option<&Verified>,
) -> Result<String, Box<dyn Error>> {
    let query = Query::parse(message).map_err(|_| "a query")?;
    let client = ([127, 0, 0, 1], 53).into();
    let asked = Asked {
        message,
        query: &query,
        is_datagram: false,
        tls: None,
        client,
        tsig,
        opt: &[],
        limit: 65_535,
    };
    let access = AccessList::anybody();
    let zone = ZoneToSend { contents: Some(contents), journal: None, access: &access, is_online: false };
    let outgoing = Arc::new(Outgoing::new(1, || NOON));
    let begun = Instant::now();
    let mut out = Vec::new();
    let Transfer::Stream(mut sending) = begin(&asked, Some(&zone), &outgoing, &mut out) else {
        return Err("a transfer".into());
    };
    let (mut messages, mut octets) = (0_u64, 0_u64);
    while sending.next(&mut out).map_err(|_| "a whole transfer")? {
        (messages, octets) = (messages + 1, octets + out.len() as u64);
    }
    let milliseconds = begun.elapsed().as_secs_f64() * 1e3;
    Ok(format!("{messages} messages, {octets} octets, {milliseconds:.1} ms"))
}
