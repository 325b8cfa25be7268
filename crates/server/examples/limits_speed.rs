//! Measures the cost of options and limits for each query, without sockets, by counting
//! instructions:
//!
//!     perf stat -e instructions:u target/release/examples/limits_speed rates 1000000
//!
//! Arguments: the case and the number of repetitions. `none`: a query without options; `nsid`: with
//! NSID; `new-cookie`: with a client cookie only; `cookie`: with a valid cookie; `exempt`: a client
//! that is exempt from limits; `rates`: 100,000 clients, all below their rate; `flood`: one client
//! above its rate; `online`: online work. A run with 0 repetitions gives the cost of allocating the
//! tables.

use nonesuch_net::Transport;
use nonesuch_proto::Name;
use nonesuch_proto::edns::{self, Opt};
use nonesuch_server::cookies::{CookieStatus, Cookies};
use nonesuch_server::limits::online::thread_time;
use nonesuch_server::limits::{
    LimitAction, LimitSettings, Limits, RateSettings, ResponseCategory, hash_name,
};
use nonesuch_server::reply_options::{ReplyOptions, ReplySettings};
use std::hint::black_box;
use std::net::IpAddr;

const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
const NOW: u32 = 1_750_000_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let what = arguments.next().unwrap_or_else(|| "none".to_owned());
    let count: u64 = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let done = match what.as_str() {
        "none" => options(&[], count),
        "nsid" => options(&option(edns::NSID, b""), count),
        "new-cookie" => options(&option(edns::COOKIE, &[7; 8]), count),
        "cookie" => {
            let cookie = Cookies::new(&[[7; 16]]).and_then(|it| it.check(Some(&[7; 8]), CLIENT, NOW).reply);
            options(&option(edns::COOKIE, &cookie.unwrap_or_default()), count)
        }
        "exempt" => rates(count, |_| IpAddr::from([127, 0, 0, 1]))?,
        "rates" => {
            rates(count, |turn| IpAddr::from(((turn % 100_000) as u32 * 256 + 0x0a00_0000).to_be_bytes()))?
        }
        "flood" => rates(count, |_| CLIENT)?,
        "online" => online(count)?,
        other => {
            return Err(format!(
                "unknown mode {other}: use none, nsid, new-cookie, cookie, exempt, rates, flood or online"
            )
            .into());
        }
    };
    println!("{what}: {done} of {count}");
    Ok(())
}

fn option(code: u16, data: &[u8]) -> Vec<u8> {
    let mut rdata = Vec::new();
    edns::push_option(code, &[data], &mut rdata);
    rdata
}

/// Reads the options of the query, and appends those of the response, `count` times. Returns the
/// octets written.
fn options(rdata: &[u8], count: u64) -> u64 {
    let settings = ReplySettings { nsid: b"site".to_vec(), ..ReplySettings::default() };
    let cookies = Cookies::new(&[[7; 16]]);
    let opt = Opt::from_parts(1232, 0, rdata);
    let (mut out, mut octets) = (Vec::with_capacity(512), 0);
    for _ in 0..count {
        let Some(opt) = black_box(opt) else { return 0 };
        out.clear();
        let read = ReplyOptions::read(&opt, Transport::Udp, &settings, cookies.as_ref(), CLIENT, NOW);
        edns::push_opt(1232, 0, 0, &mut out);
        if let Ok(read) = read {
            read.push(&settings, None, 1232 - read.required_octets(&settings), 0, &mut out);
        }
        octets += out.len() as u64;
    }
    octets
}

/// Processes 100,000 responses per second to these clients. Returns the number of responses sent.
fn rates(count: u64, client: impl Fn(u64) -> IpAddr) -> Result<u64, Box<dyn std::error::Error>> {
    let settings = LimitSettings { responses: Some(RateSettings::default()), ..LimitSettings::default() };
    let limits = Limits::new(&settings)?;
    let name: Name = "www.example.".parse()?;
    let mut sent = 0;
    for turn in 0..count {
        let hash = hash_name(black_box(name.view()));
        let action = limits.check_response(
            turn / 100,
            client(turn),
            ResponseCategory::Positive,
            hash,
            CookieStatus::Absent,
        );
        sent += u64::from(action == LimitAction::Send);
    }
    Ok(sent)
}

/// Processes 100,000 denials per second for 100,000 clients. Returns the number of denials
/// admitted.
fn online(count: u64) -> Result<u64, Box<dyn std::error::Error>> {
    let limits = Limits::new(&LimitSettings::default())?;
    let mut share = limits.worker_share();
    let mut made = 0;
    for turn in 0..count {
        if turn % 64 == 0 {
            share.begin(turn * 10_000, false, thread_time);
        }
        let client = IpAddr::from(((turn % 100_000) as u32 * 256 + 0x0a00_0000).to_be_bytes());
        made += u64::from(limits.admit_online(&mut share, client, false, 1));
        if turn % 64 == 63 {
            share.record_work(1000, 64);
        }
    }
    Ok(made)
}
