//! Zone transfers of the zone (XA-012).

use super::super::{Evidence, Exchange, Outcome, Row, Transport};
use super::cases::Cases;
use super::{Authoritative, Fault, row};
use crate::query::{QueryFault, TcpClient, random_id};
use nonesuch_dnssec::denial::DenialGeneration;
use nonesuch_dnssec::inspect::is_signed;
use nonesuch_dnssec::verify::{VerifyOptions, verify};
use nonesuch_proto::message::{Header, Message, Question, Rcode, Record, Section};
use nonesuch_proto::{Class, Rtype};
use nonesuch_zone::{Builder, Contents, SourceLocation};
use std::convert::Infallible;
use std::time::Instant;

pub(super) const ITEMS: &[Row<Authoritative>] = &[row(
    "XA-012",
    "Transfers the complete zone",
    &["RFC 5936 §2.2", "RFC 5936 §3", "RFC 1995 §2", "RFC 1995 §4", "RFC 8945 §5.3.1"],
    "AXFR, with TSIG if there is a key. The transferred zone is verified: signatures, chain of denial, ZONEMD. IXFR with the \
     present serial is answered with one SOA record, with the serial before it with the changes or the zone. A server need \
     not implement IXFR.",
    transfers,
)];

/// Maximum octets of a transfer.
const OCTETS_MAX: usize = 256 << 20;

/// What a transfer returns.
enum Transfer {
    /// The records, with the SOA record at the start and at the end.
    Records(Vec<Record>),
    /// The server does not transfer the zone.
    Refused(Rcode),
}

/// XA-012.
fn transfers(check: &mut Authoritative, evidence: &mut Evidence) -> Outcome {
    let mut cases = Cases::default();
    match transfer(check, evidence, Rtype::AXFR, None) {
        Ok(Transfer::Records(records)) => {
            let verified = verify_zone(check, &records);
            match verified {
                Ok(note) => {
                    cases.add("AXFR", Ok(()));
                    cases.note(note);
                }
                Err(fault) => cases.add("AXFR", Err(fault)),
            }
            if check.signer.is_none() {
                cases.note("the transfer needs no TSIG key");
            }
            incremental(check, evidence, &mut cases);
        }
        Ok(Transfer::Refused(rcode)) if check.signer.is_none() => cases.skip(format!(
            "the server answers {rcode} to AXFR: permit transfers to this client, or use --tsig-key"
        )),
        Ok(Transfer::Refused(rcode)) => cases.add("AXFR", Err(format!("the server answers {rcode}"))),
        Err(fault) => cases.add("AXFR", Err(fault)),
    }
    cases.outcome()
}

/// IXFR with the present serial, and with the serial before it.
fn incremental(check: &Authoritative, evidence: &mut Evidence, cases: &mut Cases) {
    let transferred = transfer(check, evidence, Rtype::IXFR, Some(0));
    // RFC 1995 §2: a client then uses AXFR.
    if matches!(transferred, Ok(Transfer::Refused(Rcode::NOTIMP))) {
        return cases.skip("the server does not implement IXFR");
    }
    let result = transferred.and_then(|transfer| match transfer {
        // RFC 1995 §2.
        Transfer::Records(records) if records.len() == 1 => Ok(()),
        Transfer::Records(records) => {
            Err(format!("expected one SOA record, received {} records", records.len()))
        }
        Transfer::Refused(rcode) => Err(format!("the server answers {rcode}")),
    });
    cases.add("IXFR with the present serial", result);
    let result = transfer(check, evidence, Rtype::IXFR, Some(1)).and_then(|transfer| match transfer {
        Transfer::Records(records) if records.len() > 1 => Ok(()),
        Transfer::Records(_) => Err("expected changes or the zone, received one SOA record".to_owned()),
        Transfer::Refused(rcode) => Err(format!("the server answers {rcode}")),
    });
    cases.add("IXFR with the serial before it", result);
}

/// Sends AXFR, or IXFR with a serial that is this number before the present one, and receives all messages.
fn transfer(
    check: &Authoritative,
    evidence: &mut Evidence,
    rtype: Rtype,
    behind: Option<u32>,
) -> Result<Transfer, Fault> {
    let fail = |fault: QueryFault| fault.to_string();
    let mut query = query(check, rtype, behind, random_id().map_err(fail)?);
    let mut verifier = check.signer.as_ref().map(|sign| sign(&mut query));
    let started_at = Instant::now();
    let deadline = started_at + check.client.timeout;
    let mut connection = TcpClient::connect(check.client.server, deadline).map_err(fail)?;
    connection.send(&query, deadline).map_err(fail)?;
    let mut received = Received::default();
    loop {
        // Each message has the time limit of a response.
        let reply = connection.receive(Instant::now() + check.client.timeout);
        let (reply, octets) = match reply {
            Ok(octets) => (Ok(octets.clone()), Ok(octets)),
            Err(fault) => (Err(fault.to_string()), Err(fault.to_string())),
        };
        evidence.push(Exchange {
            sender: "check",
            server: check.client.server,
            transport: Transport::Tcp,
            query: query.clone(),
            reply,
            elapsed: started_at.elapsed(),
        });
        let octets = octets?;
        let message = Message::parse(&octets).map_err(|error| format!("malformed message: {error}"))?;
        let rcode = message.rcode();
        if rcode == Rcode::NOERROR {
            received.push(message, octets.len())?;
        }
        let is_last = rcode != Rcode::NOERROR || received.is_complete(behind);
        if let Some(verify) = &mut verifier {
            verify(&octets, is_last).map_err(|fault| format!("TSIG: {fault}"))?;
        }
        if rcode != Rcode::NOERROR {
            return Ok(Transfer::Refused(rcode));
        }
        if is_last {
            return Ok(Transfer::Records(received.records));
        }
    }
}

/// The query, whose authority section has the SOA record for IXFR (RFC 1995 §3).
fn query(check: &Authoritative, rtype: Rtype, behind: Option<u32>, id: u16) -> Vec<u8> {
    let question = Question { name: check.zone.clone(), rtype, class: Class::IN };
    let soa = behind.map(|behind| {
        let mut rdata = check.soa.clone();
        // The serial is the first of the five numbers at the end.
        let at = rdata.len().saturating_sub(20);
        if let Some(serial) = rdata.get_mut(at..at + 4) {
            let value = u32::from_be_bytes(serial.try_into().unwrap_or_default());
            serial.copy_from_slice(&value.wrapping_sub(behind).to_be_bytes());
        }
        let (section, owner) = (Section::Authority, check.zone.clone());
        Record { section, owner, rtype: Rtype::SOA, class: Class::IN, ttl: 0, rdata }
    });
    let header = Header { id, flags: 0, counts: [0; 4] };
    Message { header, questions: vec![question], records: soa.into_iter().collect() }.to_octets()
}

/// The records of a transfer so far.
#[derive(Default)]
struct Received {
    records: Vec<Record>,
    octets: usize,
    messages: usize,
    /// Records with the RDATA of the first record.
    ends: usize,
}

impl Received {
    fn push(&mut self, message: Message, octets: usize) -> Result<(), Fault> {
        self.octets += octets;
        self.messages += 1;
        if self.octets > OCTETS_MAX {
            return Err(format!("the transfer has more than {OCTETS_MAX} octets"));
        }
        let is_answer = |record: &Record| record.section == Section::Answer && record.rtype != Rtype::OPT;
        let answers: Vec<Record> = message.records.into_iter().filter(is_answer).collect();
        if answers.is_empty() {
            return Err("a message of the transfer has no record".to_owned());
        }
        self.records.extend(answers);
        match self.records.first() {
            Some(first) if first.rtype == Rtype::SOA => {
                let is_end = |record: &&Record| record.rtype == Rtype::SOA && record.rdata == first.rdata;
                self.ends = self.records.iter().filter(is_end).count();
                Ok(())
            }
            _ => Err("the transfer does not begin with the SOA record".to_owned()),
        }
    }

    /// Whether the last record is the SOA record of the start (RFC 5936 §2.2). The response to IXFR with the
    /// present serial is one SOA record (RFC 1995 §2). An incremental response has the new SOA record also
    /// between the changes (RFC 1995 §4). `behind` is `None` for AXFR.
    fn is_complete(&self, behind: Option<u32>) -> bool {
        let ends_with_soa = self.records.last().is_some_and(|last| last.rtype == Rtype::SOA);
        let Some(behind) = behind else { return self.ends >= 2 && ends_with_soa };
        match &self.records[..] {
            // A server may send the first SOA record in a message of its own.
            [_] => behind == 0,
            [_, second, ..] if second.rtype == Rtype::SOA => self.ends >= 3 && ends_with_soa,
            _ => self.ends >= 2 && ends_with_soa,
        }
    }
}

/// Verifies the zone of an AXFR. Returns a note for the result.
fn verify_zone(check: &Authoritative, records: &[Record]) -> Result<String, Fault> {
    let zone = &records[..records.len() - 1];
    let contents = contents(check, zone)?;
    let count = zone.len();
    if !check.is_signed() {
        return Ok(format!("{count} records"));
    }
    let is_online =
        check.mechanism().is_some_and(|mechanism| mechanism.generation() == DenialGeneration::Online);
    if is_online && !is_signed(&contents) {
        return Ok(format!("{count} records without signatures: the server signs online"));
    }
    let options =
        VerifyOptions { now: Some(check.now), anchors: check.anchors.clone(), ..VerifyOptions::default() };
    let report = verify(&contents, &options);
    match report.faults.first() {
        None => Ok(format!("{count} records, verified")),
        Some(first) => Err(format!("the zone has {}: {first}", report.format_fault_count())),
    }
}

fn contents(check: &Authoritative, records: &[Record]) -> Result<Contents, Fault> {
    let mut builder = Builder::default();
    for record in records.iter().filter(|record| record.class == Class::IN) {
        let write = |out: &mut Vec<u8>| {
            out.extend_from_slice(&record.rdata);
            Ok::<_, Infallible>(())
        };
        let pushed =
            builder.push(record.owner.view(), record.rtype, record.ttl, SourceLocation::default(), write);
        match pushed {
            Ok(()) => {}
            Err(never) => match never {},
        }
    }
    let parsed = builder.finish(Some(&check.zone));
    parsed.map(|parsed| parsed.contents).map_err(|error| format!("the records are no zone: {}", error.fault))
}
