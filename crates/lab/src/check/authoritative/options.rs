//! Optional features, which a server implements correctly or not at all: DNS cookies, small responses to ANY,
//! error reporting (XA-016 to XA-018).

use super::super::{Evidence, Outcome, Query, Response, Row, Transport};
use super::cases::Cases;
use super::responses::{expect_aa, expect_rcode};
use super::{Authoritative, Fault, quick, row};
use nonesuch_proto::message::{Rcode, Section, flags};
use nonesuch_proto::{Rtype, edns};
use std::time::{SystemTime, UNIX_EPOCH};

pub(super) const ITEMS: &[Row<Authoritative>] = &[
    quick(row(
        "XA-016",
        "Implements DNS cookies as other servers do",
        &["RFC 7873 §4", "RFC 7873 §5.2", "RFC 9018 §4"],
        "Queries with a client cookie, with the server cookie of the response, with a wrong server cookie and with a \
         malformed cookie. The server cookie has the form of RFC 9018: version 1 and the present time.",
        cookies,
    )),
    quick(row(
        "XA-017",
        "Answers queries for ANY",
        &["RFC 8482 §4", "RFC 1035 §3.2.3"],
        "A query for ANY at the apex over UDP and, if the response is truncated, over TCP: NOERROR with AA and at least \
         one RRset. The text of the result names the method of RFC 8482.",
        any,
    )),
    quick(row(
        "XA-018",
        "Announces a reporting agent in correct form",
        &["RFC 9567 §4", "RFC 9567 §5", "RFC 9567 §6.2", "RFC 9567 §8.1"],
        "The option 18 in the response to a query for SOA with EDNS: at most one option, with exactly one domain name, \
         which is neither the root nor in the zone.",
        report_channel,
    )),
];

/// HINFO, the type of a synthesised answer (RFC 8482 §4.2).
const HINFO: Rtype = Rtype(13);
/// Octets of a client cookie (RFC 7873 §4).
const CLIENT_COOKIE: usize = 8;
/// Octets of a server cookie in the form of RFC 9018 §4.
const SERVER_COOKIE: usize = 16;
/// BADCOOKIE or the answer: what a server may send for a wrong server cookie (RFC 7873 §5.2.4).
const WITH_WRONG_COOKIE: &[Rcode] = &[Rcode::NOERROR, Rcode::BADCOOKIE];

fn option_of(response: &Response, wanted: u16) -> Option<Vec<u8>> {
    options_of(response, wanted).into_iter().next()
}

/// The data of all options with this code.
fn options_of(response: &Response, wanted: u16) -> Vec<Vec<u8>> {
    let rdata = response.message.opt().map(|opt| opt.rdata.as_slice()).unwrap_or_default();
    edns::Options::new(rdata).filter(|(code, _)| *code == wanted).map(|(_, data)| data.to_vec()).collect()
}

impl Authoritative {
    fn soa_with_option(&self, code: u16, data: &[u8]) -> Query {
        let mut query = self.query(&self.zone, Rtype::SOA).without_do();
        query.options.push((code, data.to_vec()));
        query
    }
}

/// XA-016.
fn cookies(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    let mut cases = Cases::default();
    let client: [u8; CLIENT_COOKIE] = [0x24, 0x64, 0xc4, 0xab, 0xcf, 0x10, 0xc9, 0x57];
    match check.ask(evidence, &check.soa_with_option(edns::COOKIE, &client)) {
        Ok(response) => match option_of(&response, edns::COOKIE) {
            Some(cookie) => cookie_cases(check, evidence, &client, &cookie, &mut cases),
            None => cases.skip("the server returns no cookie"),
        },
        Err(fault) => cases.add("client cookie", Err(fault)),
    }
    cases.outcome()
}

fn cookie_cases(
    check: &Authoritative,
    evidence: &mut Evidence,
    client: &[u8],
    cookie: &[u8],
    cases: &mut Cases,
) {
    cases.add("server cookie", check_cookie(client, cookie));
    let mut ask = |data: &[u8], rcodes: &[Rcode]| {
        let response = check.ask(evidence, &check.soa_with_option(edns::COOKIE, data))?;
        expect_rcode(&response, rcodes)?;
        Ok::<_, Fault>(response)
    };
    cases.add("the cookie again", ask(cookie, &[Rcode::NOERROR]).map(drop));
    let mut wrong = cookie.to_vec();
    if let Some(last) = wrong.last_mut() {
        *last ^= 1;
    }
    let result =
        ask(&wrong, WITH_WRONG_COOKIE).and_then(|response| match option_of(&response, edns::COOKIE) {
            Some(new) if new == wrong => Err("the server returned the wrong cookie".to_owned()),
            Some(new) => check_cookie(client, &new),
            None => Err("the response has no new cookie".to_owned()),
        });
    cases.add("wrong server cookie", result);
    // RFC 7873 §5.2.2: less than 8, or 9 to 15 octets.
    for length in [5, 12] {
        cases.add(
            &format!("{length} octets"),
            ask(&cookie[..length.min(cookie.len())], &[Rcode::FORMERR]).map(drop),
        );
    }
    match cookie.get(CLIENT_COOKIE..) {
        Some([1, ..]) if cookie.len() == CLIENT_COOKIE + SERVER_COOKIE => {
            cases.add("time of the cookie", check_time(cookie));
        }
        Some(server) => {
            cases.note(format!("server cookie of {} octets, not in the form of RFC 9018", server.len()))
        }
        None => {}
    }
}

/// RFC 7873 §4: the client cookie, and a server cookie of 8 to 32 octets.
fn check_cookie(client: &[u8], cookie: &[u8]) -> Result<(), Fault> {
    match cookie.strip_prefix(client) {
        None => Err("the cookie of the response does not begin with the client cookie".to_owned()),
        Some(server) if !(8..=32).contains(&server.len()) => {
            Err(format!("expected a server cookie of 8 to 32 octets, it has {}", server.len()))
        }
        Some(_) => Ok(()),
    }
}

/// RFC 9018 §4.3: the time is at most an hour before and five minutes after the present.
fn check_time(cookie: &[u8]) -> Result<(), Fault> {
    let Some(time) = cookie.get(12..16).and_then(|octets| octets.try_into().ok()) else {
        return Err("the cookie is too short".to_owned());
    };
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as u32);
    let ahead = u32::from_be_bytes(time).wrapping_sub(now).cast_signed();
    if (-3600..=300).contains(&ahead) {
        Ok(())
    } else {
        Err(format!("the time of the cookie differs from the present by {ahead} s"))
    }
}

/// XA-017.
fn any(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    let mut cases = Cases::default();
    match answer_any(check, evidence) {
        Ok(note) => {
            cases.add("ANY", Ok(()));
            cases.note(note);
        }
        Err(fault) => cases.add("ANY", Err(fault)),
    }
    cases.outcome()
}

/// Returns the method of the server.
fn answer_any(check: &Authoritative, evidence: &mut Evidence) -> Result<String, Fault> {
    let query = check.query(&check.zone, Rtype::ANY);
    let first = check
        .client
        .ask_over(evidence, &query, Transport::Udp)
        .map_err(|fault| format!("over UDP: {fault}"))?;
    let response = if first.has(flags::TC) { check.ask(evidence, &query)? } else { first.clone() };
    expect_rcode(&response, &[Rcode::NOERROR])?;
    expect_aa(&response, true)?;
    let mut types: Vec<Rtype> =
        response.message.section(Section::Answer).map(|record| record.rtype).collect();
    types.retain(|rtype| *rtype != Rtype::RRSIG);
    types.sort_unstable();
    types.dedup();
    let truncated = if first.has(flags::TC) { " over TCP; truncated over UDP" } else { "" };
    match types[..] {
        [] => Err("the answer section has no RRset".to_owned()),
        [HINFO] => Ok(format!("a HINFO record (RFC 8482 §4.2){truncated}")),
        [one] => Ok(format!("one RRset, {one} (RFC 8482 §4.1){truncated}")),
        _ => Ok(format!("{} RRsets{truncated}", types.len())),
    }
}

/// XA-018.
fn report_channel(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    let mut cases = Cases::default();
    // RFC 9567 §6.1: a query does not have the option.
    match check.ask(evidence, &check.query(&check.zone, Rtype::SOA).without_do()) {
        Ok(response) => match &options_of(&response, edns::REPORT_CHANNEL)[..] {
            [] => cases.skip("the server announces no reporting agent"),
            [data] => match reporting_agent(check, data) {
                Ok(note) => {
                    cases.add("option 18", Ok(()));
                    cases.note(note);
                }
                Err(fault) => cases.add("option 18", Err(fault)),
            },
            several => cases.add("option 18", Err(format!("the response has it {} times", several.len()))),
        },
        Err(fault) => cases.add("query", Err(fault)),
    }
    cases.outcome()
}

/// Reads the agent in the data of the option. Returns a note for the result.
fn reporting_agent(check: &Authoritative, data: &[u8]) -> Result<String, Fault> {
    match edns::read_report_channel(data) {
        Some(agent) if agent.is_at_or_below(check.zone.view()) => {
            Err(format!("the agent {agent} is in the zone whose errors it gets"))
        }
        Some(agent) if !agent.is_root() => Ok(format!("the agent is {agent}")),
        _ => Err(format!("its {} octets are not a name below the root", data.len())),
    }
}
