//! Runs UDP queries through the responder of one thread, without sockets, for counting
//! instructions: parsing, zone lookup, options, the answer from a zone signed with NSEC, limits and
//! statistics.
//!
//!     valgrind --tool=callgrind target/release/examples/responder_speed positive 100000
//!
//! Arguments: the kind of queries, and their number.
//!
//! - `bare`: existing names with the DO flag, without limits and cookies.
//! - `positive`: the same queries, with limits and cookies as a server has by default. All
//!   following kinds have them too.
//! - `referral`, `nxdomain`: names below delegations; names that do not exist.
//! - `cookie`: as `positive`, with a valid cookie.
//! - `exempt`: all queries come from the loopback address.
//! - `limited`: all queries come from one address, far above its rate limit.
//!
//! Queries of the other kinds come from 100,000 networks, and none of these is limited. The
//! function `ask` runs all queries (see `answer_speed`).

mod common;

use nonesuch_authoritative::zones::{ServedZone, ZoneState, Zones};
use nonesuch_authoritative::{AnswerSettings, Published, Responder, ServerContext};
use nonesuch_crypto::Algorithm;
use nonesuch_dnssec::online::OnlineSigner;
use nonesuch_dnssec::{KeySet, Mechanism, SignOptions, VerifyOptions, into_verified, sign};
use nonesuch_net::Transport;
use nonesuch_net::{Answer, BATCH, Handler as _};
use nonesuch_proto::edns;
use nonesuch_server::clock::seconds_now;
use nonesuch_server::cookies::Cookies;
use nonesuch_server::limits::{LimitSettings, Limits, RateSettings};
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

const SECRET: [u8; 16] = [7; 16];

fn publish() -> Result<Published, Box<dyn Error>> {
    let contents = common::zone(true)?;
    let apex = contents.apex().clone();
    let keys = KeySet::new(&apex, vec![common::key(&apex, Algorithm::ED25519)?])?;
    let options = SignOptions::new(Mechanism::Nsec, 1_750_000_000, 1_760_000_000);
    let signed = sign(&contents, &keys, &options)?.into_contents();
    let verified =
        into_verified(signed, &VerifyOptions::default()).map_err(|_| "the zone does not verify")?;
    Ok(Published::new(&verified)?)
}

fn settings(kind: &str) -> Result<AnswerSettings, Box<dyn Error>> {
    if kind == "bare" {
        return Ok(AnswerSettings::default());
    }
    let limits = LimitSettings { responses: Some(RateSettings::default()), ..LimitSettings::default() };
    let limits = Some(Arc::new(Limits::new(&limits)?));
    Ok(AnswerSettings { limits, cookies: Cookies::new(&[SECRET]), ..AnswerSettings::default() })
}

/// Returns the source address of query `number`.
fn client(kind: &str, number: usize) -> SocketAddr {
    let address = match kind {
        "exempt" => IpAddr::from([127, 0, 0, 1]),
        "limited" | "cookie" => IpAddr::from([192, 0, 2, 1]),
        _ => IpAddr::from((0x0a00_0000 + (number as u32 % 100_000) * 256).to_be_bytes()),
    };
    SocketAddr::new(address, 5353)
}

/// Returns a query. A query with a cookie has the cookie of its client.
fn query(kind: &str, number: u16) -> Result<Vec<u8>, Box<dyn Error>> {
    let name = match kind {
        "referral" => format!("www.d{number}.example."),
        "nxdomain" => format!("none{number}.example."),
        _ => format!("n{number}.example."),
    };
    let mut query = common::query(&name, number)?;
    if kind == "cookie" {
        let cookies = Cookies::new(&[SECRET]).ok_or("no secret")?;
        let checked = cookies.check(Some(&[7; 8]), client(kind, 0).ip(), seconds_now() as u32);
        let start = query.len() - edns::OPT_OCTETS;
        edns::push_option(edns::COOKIE, &[&checked.reply.ok_or("no cookie")?], &mut query);
        edns::set_options_length(start, &mut query);
    }
    Ok(query)
}

/// Answers `count` queries in batches. Returns the number of responses and their total size in
/// octets.
#[inline(never)]
fn ask(responder: &mut Responder, kind: &str, queries: &[Vec<u8>], count: usize) -> (usize, usize) {
    let numbers: Vec<usize> = (0..count).collect();
    let (mut out, mut answers, mut octets) = (Vec::with_capacity(4096), 0, 0);
    for batch in numbers.chunks(BATCH) {
        responder.begin_batch();
        for &number in batch {
            out.clear();
            let query = &queries[number % queries.len()];
            if responder.answer(query, client(kind, number), &mut out) == Answer::Ready {
                (answers, octets) = (answers + 1, octets + out.len());
            }
        }
        responder.end_batch();
    }
    (answers, octets)
}

fn main() -> Result<(), Box<dyn Error>> {
    const KINDS: [&str; 7] = ["bare", "positive", "referral", "nxdomain", "cookie", "exempt", "limited"];
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_else(|| "positive".to_owned());
    if !KINDS.contains(&kind.as_str()) {
        return Err(format!("{kind}: one of {}", KINDS.join(", ")).into());
    }
    let count: usize = arguments.next().map_or(Ok(100_000), |text| text.parse())?;
    let zones = Arc::new(Zones::new());
    let zone = ServedZone::new(publish()?, Arc::default());
    zones.set(&"example.".parse()?, ZoneState::Serving(Arc::new(zone)));
    let shared = ServerContext::new(zones);
    shared.settings.store(Arc::new(settings(&kind)?));
    let local = SocketAddr::from(([127, 0, 0, 1], 53));
    let mut responder =
        Responder::new(&shared, Transport::Udp, local, OnlineSigner::new(1 << 20, Arc::default()), 0);
    let queries = (0..1000).map(|number| query(&kind, number)).collect::<Result<Vec<_>, _>>()?;
    let (answers, octets) = ask(&mut responder, &kind, &queries, count);
    println!("{count} queries, {answers} answers of {octets} octets");
    Ok(())
}
