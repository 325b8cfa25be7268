//! Sizes of responses: EDNS over UDP, truncation, and complete answers over TCP (A-85 to A-87, XA-009,
//! XA-010).

use super::super::{Evidence, Outcome, Query, Response, Row, Transport};
use super::cases::Cases;
use super::responses::{answers, expect_rcode, records};
use super::{Authoritative, Fault, quick, row, test_zone};
use nonesuch_proto::message::{Rcode, Section, flags};
use nonesuch_proto::{Name, Rtype};

/// UDP payload size of the queries for large answers, as in the report of JPRS.
const LARGE_PAYLOAD: u16 = 4096;
/// Octets of a message over UDP without EDNS (RFC 1035 §4.2.1).
const PLAIN: u16 = 512;
/// Octets that every DNSSEC server must support (RFC 4035 §3).
const REQUIRED: u16 = 1220;
/// Octets that a DNSSEC server should support (RFC 4035 §3).
const RECOMMENDED: u16 = 4000;

/// The items of the report of JPRS.
pub(super) const JPRS: &[Row<Authoritative>] = &[
    jprs(quick(row(
        "A-85",
        "Answers over UDP with EDNS",
        &["RFC 4035 §3", "RFC 6891 §6.1.1", "RFC 8906 §3.2.5", "RFC 2181 §9", "RFC 7766 §5"],
        "Queries for an answer of more than 512 octets: with the UDP payload size 4096 it is complete and has an \
         OPT record, with 512 it is truncated and then complete over TCP. In a test zone with and without \
         DNSSEC records; otherwise the largest answer at the apex.",
        edns,
    ))),
    jprs(row(
        "A-86",
        "Supports UDP messages of 1,220 octets",
        &["RFC 4035 §3", "RFC 8906 §3.2.5"],
        "Queries for answers of 1,220 and 1,221 octets, with the UDP payload sizes 1220, 1221, 4096 and 512, with \
         and without DNSSEC records.",
        required_size,
    )),
    jprs(row(
        "A-87",
        "Supports UDP messages of 4,000 octets",
        &["RFC 4035 §3", "RFC 8906 §3.2.5", "RFC 9715 §3.1"],
        "Queries for answers of 4,000 and 4,001 octets, with the UDP payload sizes 4000, 4001, 4096 and 512, with \
         and without DNSSEC records. A server that limits UDP by policy must answer over TCP.",
        recommended_size,
    )),
];

/// The items of this project.
pub(super) const ITEMS: &[Row<Authoritative>] = &[
    quick(row(
        "XA-009",
        "Truncates an answer exactly if it exceeds the limit",
        &["RFC 1035 §4.2.1", "RFC 2181 §9", "RFC 6891 §6.2.3", "RFC 6891 §7"],
        "Queries for answers that fit the limit exactly and that exceed it by one octet, without EDNS, with payload \
         sizes of 512 and below, and an answer of 60,000 octets over TCP. Truncated responses need the question \
         and an OPT record.",
        truncation,
    )),
    quick(row(
        "XA-010",
        "Returns the complete DNSKEY RRset over TCP",
        &["RFC 7766 §5", "RFC 2181 §9", "RFC 8906 §3.2.5"],
        "Queries for DNSKEY at the apex over UDP with the payload size 1232 and over TCP. If the answer exceeds 1,232 \
         octets, the response over UDP is truncated.",
        dnskey,
    )),
];

const fn jprs(mut row: Row<Authoritative>) -> Row<Authoritative> {
    row.item.is_jprs = true;
    row
}

/// A question whose answer has a known size.
struct Sized {
    name: Name,
    rtype: Rtype,
    /// Whether the query has DO.
    dnssec: bool,
    /// Octets of the smallest correct response with EDNS.
    octets: u16,
}

impl Sized {
    /// The query. RD is set, because BIND omits the optional authority section from such responses.
    fn query(&self, payload: u16) -> Query {
        let query = Query::new(self.name.clone(), self.rtype).with_flags(flags::RD).with_payload(payload);
        if self.dnssec { query } else { query.without_do() }
    }

    fn label(&self) -> String {
        format!("{} {}{}", self.name, self.rtype, if self.dnssec { " with DO" } else { "" })
    }
}

impl Authoritative {
    /// The question of a test zone whose answer has this size, with or without DNSSEC records.
    fn sized(&self, octets: u16, dnssec: bool) -> Result<Sized, Fault> {
        // In an unsigned zone, DO adds nothing.
        let is_signed_answer = dnssec && self.is_signed();
        let name = self.name(&test_zone::size_label(octets, is_signed_answer))?;
        Ok(Sized { name, rtype: Rtype::TXT, dnssec, octets })
    }

    /// The question at the apex, or for a name that does not exist, whose response is largest.
    fn largest(&self, evidence: &mut Evidence) -> Result<Sized, Fault> {
        let missing = self.random_name(&self.zone)?;
        let candidates = [
            (&self.zone, Rtype::DNSKEY),
            (&missing, Rtype::A),
            (&self.zone, Rtype::TXT),
            (&self.zone, Rtype::NS),
        ];
        let mut largest: Option<Sized> = None;
        for (name, rtype) in candidates {
            let mut sized = Sized { name: name.clone(), rtype, dnssec: true, octets: 0 };
            let response = self.over(evidence, &sized.query(LARGE_PAYLOAD), Transport::Tcp)?;
            sized.octets = u16::try_from(response.octets.len()).unwrap_or(u16::MAX);
            if largest.as_ref().is_none_or(|largest| largest.octets < sized.octets) {
                largest = Some(sized);
            }
        }
        largest.ok_or_else(|| "no answer".to_owned())
    }

    fn over(&self, evidence: &mut Evidence, query: &Query, transport: Transport) -> Result<Response, Fault> {
        let response = self.client.ask_over(evidence, query, transport);
        response.map_err(|fault| format!("over {}: {fault}", transport.name()))
    }

    /// Checks the complete response over TCP.
    fn complete_over_tcp(&self, evidence: &mut Evidence, sized: &Sized) -> Result<(), Fault> {
        let response = self.over(evidence, &sized.query(LARGE_PAYLOAD), Transport::Tcp)?;
        if response.has(flags::TC) {
            return Err("the response over TCP has the flag TC".to_owned());
        }
        let octets = response.octets.len();
        if octets < usize::from(sized.octets) {
            return Err(format!("expected at least {} octets over TCP, received {octets}", sized.octets));
        }
        self.check_contents(&response, sized)
    }

    /// Checks that the response has the records of the answer, with signatures if it should.
    fn check_contents(&self, response: &Response, sized: &Sized) -> Result<(), Fault> {
        expect_rcode(response, &[Rcode::NOERROR, Rcode::NXDOMAIN])?;
        let has_signature = response.message.records.iter().any(|record| record.rtype == Rtype::RRSIG);
        match (has_signature, sized.dnssec && self.is_signed()) {
            (false, true) => Err("the response has no RRSIG record".to_owned()),
            (true, false) => Err("the response has RRSIG records".to_owned()),
            _ => Ok(()),
        }
    }

    /// Queries over UDP with a payload size that the answer exceeds: the response is truncated, and
    /// complete over TCP.
    fn truncated_and_retried(
        &self,
        evidence: &mut Evidence,
        sized: &Sized,
        payload: u16,
    ) -> Result<(), Fault> {
        let response = self.over(evidence, &sized.query(payload), Transport::Udp)?;
        check_truncated(&response, payload)?;
        self.complete_over_tcp(evidence, sized)
    }

    /// Queries over UDP with a payload size that the answer does not exceed. Returns whether the response is
    /// complete; a truncated response must be complete over TCP.
    fn fits(&self, evidence: &mut Evidence, sized: &Sized, payload: u16) -> Result<bool, Fault> {
        let response = self.over(evidence, &sized.query(payload), Transport::Udp)?;
        let octets = response.octets.len();
        if octets > usize::from(payload) {
            return Err(format!("expected at most {payload} octets over UDP, received {octets}"));
        }
        if response.message.opt().is_none() {
            return Err("the response has no OPT record".to_owned());
        }
        if response.has(flags::TC) {
            self.complete_over_tcp(evidence, sized)?;
            return Ok(false);
        }
        if octets < usize::from(sized.octets) {
            return Err(format!("expected {} octets over UDP, received {octets} without TC", sized.octets));
        }
        self.check_contents(&response, sized).map(|()| true)
    }
}

/// Checks that a response over UDP is truncated to this size, with the question and an OPT record.
fn check_truncated(response: &Response, payload: u16) -> Result<(), Fault> {
    let octets = response.octets.len();
    if octets > usize::from(payload.max(PLAIN)) {
        return Err(format!("expected at most {payload} octets over UDP, received {octets}"));
    }
    if !response.has(flags::TC) {
        return Err(format!("the response of {octets} octets over UDP is incomplete and lacks the flag TC"));
    }
    if response.message.questions.is_empty() {
        return Err("the truncated response has no question".to_owned());
    }
    // RFC 6891 §7.
    match response.message.opt() {
        Some(_) => Ok(()),
        None => Err("the truncated response has no OPT record".to_owned()),
    }
}

///
fn edns(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    let mut cases = Cases::default();
    if check.is_test_zone {
        for dnssec in [true, false] {
            match check.sized(PLAIN + 1, dnssec) {
                Ok(sized) => edns_cases(check, evidence, &sized, &mut cases),
                Err(fault) => cases.add("name", Err(fault)),
            }
        }
    } else {
        match check.largest(evidence) {
            Ok(sized) if sized.octets > PLAIN => edns_cases(check, evidence, &sized, &mut cases),
            Ok(sized) => cases.skip(too_small(&sized, PLAIN)),
            Err(fault) => cases.add("answers over TCP", Err(fault)),
        }
    }
    if let Some(octets) = check.announced {
        cases.note(format!("announces {octets} octets"));
    }
    cases.outcome()
}

fn edns_cases(check: &Authoritative, evidence: &mut Evidence, sized: &Sized, cases: &mut Cases) {
    match check.fits(evidence, sized, LARGE_PAYLOAD) {
        Ok(true) => cases.add(&sized.label(), Ok(())),
        // The answer of a test zone fits every limit that RFC 4035 §3 permits; a larger answer may not.
        Ok(false) if sized.octets <= REQUIRED => cases.add(
            &sized.label(),
            Err(format!("the response of {} octets is truncated with the payload size 4096", sized.octets)),
        ),
        Ok(false) => cases.note(LIMITED),
        Err(fault) => cases.add(&sized.label(), Err(fault)),
    }
    let label = format!("{}, payload size 512", sized.label());
    cases.add(&label, check.truncated_and_retried(evidence, sized, PLAIN));
}

///
fn required_size(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    size_item(check, evidence, REQUIRED)
}

///
fn recommended_size(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    size_item(check, evidence, RECOMMENDED)
}

/// Text of a pass for an answer that the server truncates by policy.
const LIMITED: &str = "limited by policy (RFC 9715), answered over TCP";

/// Tests answers of `octets` and of one octet more.
fn size_item(check: &mut Authoritative, evidence: &mut Evidence, octets: u16) -> Outcome {
    let mut cases = Cases::default();
    if check.is_test_zone {
        for dnssec in [true, false] {
            for octets in [octets, octets + 1] {
                match check.sized(octets, dnssec) {
                    Ok(sized) => size_cases(check, evidence, &sized, &mut cases),
                    Err(fault) => cases.add("name", Err(fault)),
                }
            }
        }
    } else {
        match check.largest(evidence) {
            Ok(sized) if sized.octets >= octets => size_cases(check, evidence, &sized, &mut cases),
            Ok(sized) => cases.skip(too_small(&sized, octets)),
            Err(fault) => cases.add("answers over TCP", Err(fault)),
        }
    }
    cases.outcome()
}

fn size_cases(check: &Authoritative, evidence: &mut Evidence, sized: &Sized, cases: &mut Cases) {
    let label = format!("{} octets{}", sized.octets, if sized.dnssec { " with DO" } else { "" });
    for payload in [sized.octets, LARGE_PAYLOAD] {
        let result = check.fits(evidence, sized, payload.max(sized.octets));
        let result = match result {
            Ok(true) => Ok(()),
            // RFC 4035 §3: a server must support 1,220 octets, and should support 4,000.
            Ok(false) if sized.octets <= REQUIRED => Err("the response is truncated".to_owned()),
            Ok(false) => {
                cases.note(LIMITED);
                Ok(())
            }
            Err(fault) => Err(fault),
        };
        cases.add(&format!("{label}, payload size {payload}"), result);
    }
    let result = check.truncated_and_retried(evidence, sized, PLAIN);
    cases.add(&format!("{label}, payload size 512"), result);
}

fn too_small(sized: &Sized, wanted: u16) -> String {
    format!(
        "the largest answer found ({}) has {} octets, not more than {wanted}: load a test zone \
         (--write-test-zones)",
        sized.label(),
        sized.octets
    )
}

/// XA-009.
fn truncation(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    let mut cases = Cases::default();
    let result = if check.is_test_zone {
        exact_truncation(check, evidence, &mut cases)
    } else {
        truncation_of_largest(check, evidence, &mut cases)
    };
    if let Err(fault) = result {
        cases.add("queries", Err(fault));
    }
    cases.outcome()
}

/// The cases with the largest answer: a limit of one octet less than the answer.
fn truncation_of_largest(
    check: &Authoritative,
    evidence: &mut Evidence,
    cases: &mut Cases,
) -> Result<(), Fault> {
    let sized = check.largest(evidence)?;
    if sized.octets <= PLAIN {
        cases.skip(too_small(&sized, PLAIN));
        return Ok(());
    }
    cases.add("payload size 512", check.truncated_and_retried(evidence, &sized, PLAIN));
    // A server may omit optional records instead (RFC 2181 §9).
    let limit = sized.octets - 1;
    let response = check.over(evidence, &sized.query(limit), Transport::Udp)?;
    let octets = response.octets.len();
    let result = if octets > usize::from(limit) {
        Err(format!("received {octets} octets"))
    } else if response.has(flags::TC) {
        check_truncated(&response, limit)
    } else {
        check.check_contents(&response, &sized)
    };
    cases.add(&format!("payload size {limit}"), result);
    Ok(())
}

/// The cases of a test zone.
fn exact_truncation(check: &Authoritative, evidence: &mut Evidence, cases: &mut Cases) -> Result<(), Fault> {
    let fits = |evidence: &mut Evidence, sized: &Sized, payload| match check.fits(evidence, sized, payload)? {
        true => Ok(()),
        false => Err("the response is truncated".to_owned()),
    };
    let (exact, larger) = (check.sized(PLAIN, false)?, check.sized(PLAIN + 1, false)?);
    cases.add("512 octets, payload size 512", fits(evidence, &exact, PLAIN));
    cases.add("513 octets, payload size 512", check.truncated_and_retried(evidence, &larger, PLAIN));
    // RFC 6891 §6.2.3: values below 512 count as 512.
    for payload in [0, 100] {
        let result = check.over(evidence, &exact.query(payload), Transport::Udp).and_then(|response| {
            if response.has(flags::TC) { Err("the response is truncated".to_owned()) } else { Ok(()) }
        });
        cases.add(&format!("512 octets, payload size {payload}"), result);
    }
    let opt = test_zone::OPT_OCTETS;
    let (exact, larger) = (check.sized(PLAIN + opt, false)?, check.sized(PLAIN + opt + 1, false)?);
    cases.add("512 octets without EDNS", plain_udp(check, evidence, &exact, false));
    cases.add("513 octets without EDNS", plain_udp(check, evidence, &larger, true));
    let signed = check.sized(REQUIRED, true)?;
    cases.add("1,220 octets with DO, payload size 1220", fits(evidence, &signed, REQUIRED));
    let result = check.truncated_and_retried(evidence, &signed, REQUIRED - 1);
    cases.add("1,220 octets with DO, payload size 1219", result);
    let large = check.sized(test_zone::LARGEST, false)?;
    cases.add("60,000 octets over TCP", check.complete_over_tcp(evidence, &large));
    Ok(())
}

/// Queries without EDNS.
fn plain_udp(
    check: &Authoritative,
    evidence: &mut Evidence,
    sized: &Sized,
    is_truncated: bool,
) -> Result<(), Fault> {
    let response = check.over(evidence, &sized.query(PLAIN).without_edns(), Transport::Udp)?;
    let octets = response.octets.len();
    if octets > usize::from(PLAIN) {
        return Err(format!("expected at most 512 octets, received {octets}"));
    }
    if response.message.opt().is_some() {
        return Err("the response has an OPT record, the query has none".to_owned());
    }
    match (response.has(flags::TC), is_truncated) {
        (true, false) => Err("the response is truncated".to_owned()),
        (false, true) => Err(format!("the response of {octets} octets lacks the flag TC")),
        _ => Ok(()),
    }
}

/// XA-010.
fn dnskey(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    let mut cases = Cases::default();
    if !check.is_signed() {
        cases.skip("the zone is unsigned");
        return cases.outcome();
    }
    match dnskey_sizes(check, evidence, &mut cases) {
        Ok(note) => cases.note(note),
        Err(fault) => cases.add("DNSKEY", Err(fault)),
    }
    cases.outcome()
}

fn dnskey_sizes(check: &Authoritative, evidence: &mut Evidence, cases: &mut Cases) -> Result<String, Fault> {
    let query = check.query(&check.zone, Rtype::DNSKEY);
    let complete = check.over(evidence, &query, Transport::Tcp)?;
    let octets = complete.octets.len();
    let keys = answers(&complete.message, &check.zone, Rtype::DNSKEY).count();
    let signatures = records(&complete.message, Section::Answer, Rtype::RRSIG).count();
    let is_complete = !complete.has(flags::TC) && keys > 0 && signatures > 0;
    cases.add(
        "over TCP",
        if is_complete {
            Ok(())
        } else {
            Err(format!(
                "received {keys} DNSKEY and {signatures} RRSIG records, TC {}",
                complete.has(flags::TC)
            ))
        },
    );
    let response = check.over(evidence, &query, Transport::Udp)?;
    let result = if octets > 1232 {
        check_truncated(&response, 1232)
    } else if response.has(flags::TC)
        || answers(&response.message, &check.zone, Rtype::DNSKEY).count() == keys
    {
        Ok(())
    } else {
        Err("the response over UDP has other keys than over TCP".to_owned())
    };
    cases.add("over UDP, payload size 1232", result);
    Ok(format!("{octets} octets"))
}
