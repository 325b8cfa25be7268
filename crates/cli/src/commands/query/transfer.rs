//! Zone transfers (AXFR, RFC 5936; IXFR, RFC 1995). Each record is printed when it is received.

use super::client::QueryClient;
use super::error::{QueryError, TransferFault};
use super::message::read_message;
use super::message::{QueryTemplate, Question};
use super::show::{describe_tls, option_to_json};
use super::tsig::TsigSigner;
use crate::arguments::QueryArguments;
use crate::files::{print_line, print_to_stderr};
use crate::outcome::CommandOutcome;
use nonesuch_lab::message_text::{rcode_name, read_options, record_line, record_to_json, type_and_rdata};
use nonesuch_net::ClientError;
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Message, Rcode, Record, Section, flags};
use nonesuch_server::tsig::ResponseTsigError;
use serde_json::json;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::time::Instant;

/// Counters of a transfer.
#[derive(Default)]
struct TransferTotals {
    messages: u64,
    octets: u64,
    records: u64,
}

pub(super) async fn run(
    arguments: &QueryArguments,
    question: &Question,
    client: &QueryClient<'_>,
) -> Result<CommandOutcome, QueryError> {
    let template = QueryTemplate::new(&arguments.message, &arguments.transport)?;
    let (query, mut verifier) = client.encode_query(question, &template)?;
    let mut connection = client.connect_any().await?;
    let server = connection.peer_addr();
    let started_at = Instant::now();
    connection.send(&query).await?;
    let (mut totals, mut tracker) = (TransferTotals::default(), TransferTracker::new(question.rtype));
    let (mut octets, mut options) = (Vec::new(), Vec::new());
    while !tracker.is_done() {
        let received = connection.receive(&mut octets).await;
        received.map_err(|error| receive_error(error, server, totals.messages))?;
        if let Some(verifier) = &mut verifier
            && let Err(fault) = verifier.verify(&octets)
        {
            return refused(arguments, server, &tsig_reason(client, &fault));
        }
        let message = read_message(&octets, server)?;
        if message.header.id.to_be_bytes()[..] != query[..2] || message.header.flags & flags::QR == 0 {
            return Err(QueryError::OtherQuestion { server });
        }
        if message.rcode() != Rcode::NOERROR {
            return refused(arguments, server, &reason(&message));
        }
        if totals.messages == 0 {
            // RFC 5936 §2.2.5: options in the first message apply to the complete response.
            options = read_options(&message);
        }
        totals.messages += 1;
        totals.octets += octets.len() as u64;
        totals.records += print_records(arguments, server, &message, &mut tracker)?;
    }
    if let Some(Err(fault)) = verifier.map(super::tsig::Verifier::finish) {
        return refused(arguments, server, &tsig_reason(client, &fault));
    }
    let seconds = started_at.elapsed().as_secs_f64();
    let TransferTotals { messages, octets, records } = totals;
    if arguments.json {
        let options: Vec<_> = options.iter().map(option_to_json).collect();
        let summary = json!({ "records": records, "options": options, "messages": messages, "octets": octets, "seconds": seconds,
            "server": server.to_string(), "transport": client.transport().to_string(), "kind": tracker.kind() });
        print_line(&summary.to_string())?;
    } else if !arguments.short {
        if let Some(parameters) = connection.tls() {
            print_line(&format!(";; {}", describe_tls(parameters)))?;
        }
        for option in &options {
            print_line(&format!(";; {} {}", option.name(), option.describe()))?;
        }
        print_line(&format!(
            ";; {}: {records} records in {messages} messages, {octets} octets from {server} over {} in {seconds:.3} s",
            tracker.kind(),
            client.transport()
        ))?;
    }
    Ok(CommandOutcome::Done)
}

/// Converts the error of receiving the next message, after `messages` messages of the transfer.
fn receive_error(error: ClientError, server: SocketAddr, messages: u64) -> QueryError {
    match error {
        ClientError::Closed { .. } if messages > 0 => {
            QueryError::Transfer { server, reason: TransferFault::Incomplete { messages } }
        }
        error => error.into(),
    }
}

/// The reason of a refusal if the signature of a message is missing or invalid.
fn tsig_reason(client: &QueryClient<'_>, fault: &ResponseTsigError) -> String {
    let key = client.signer.as_ref().map(TsigSigner::key_name).unwrap_or_default();
    format!("TSIG key {key}: {fault}")
}

/// Prints the records of one message and returns their number.
fn print_records(
    arguments: &QueryArguments,
    server: SocketAddr,
    message: &Message,
    tracker: &mut TransferTracker,
) -> Result<u64, QueryError> {
    let wrong = |reason| QueryError::Transfer { server, reason };
    let (mut text, mut count) = (String::new(), 0);
    for entry in message.section(Section::Answer) {
        if tracker.is_done() {
            return Err(wrong(TransferFault::AfterEnd));
        }
        let change = tracker.process(entry).map_err(wrong)?;
        count += 1;
        if arguments.json {
            let mut value = record_to_json(entry);
            if let Some(change) = change {
                value["change"] = json!(change);
            }
            // Writing to a string does not fail.
            let _ = writeln!(text, "{value}");
        } else if arguments.short {
            let _ = writeln!(text, "{}", type_and_rdata(entry).1);
        } else {
            let mark = match change {
                Some("removed") => "- ",
                Some(_) => "+ ",
                None => "",
            };
            let _ = writeln!(text, "{mark}{}", record_line(entry));
        }
    }
    if count == 0 {
        return Err(wrong(TransferFault::EmptyMessage));
    }
    tracker.end_message();
    print_line(text.trim_end_matches('\n'))?;
    Ok(count)
}

/// The reason of a refusal: the response code and its extended errors (RFC 8914).
fn reason(message: &Message) -> String {
    let options = read_options(message).into_iter();
    let errors = options.filter(|option| option.code == nonesuch_proto::edns::EXTENDED_ERROR);
    let errors = errors.map(|error| format!(", {} {}", error.name(), error.describe()));
    rcode_name(message.rcode()) + &errors.collect::<String>()
}

/// Prints that the server refused the transfer, or that its signature is not valid.
fn refused(
    arguments: &QueryArguments,
    server: SocketAddr,
    reason: &str,
) -> Result<CommandOutcome, QueryError> {
    if arguments.json {
        print_line(&json!({ "error": reason, "server": server.to_string() }).to_string())?;
    } else if arguments.short {
        // Standard output contains only the data, for programs.
        print_to_stderr(&format!("nonesuch: error: {server}: no transfer: {reason}"));
    } else {
        print_line(&format!(";; no transfer: {reason} from {server}"))?;
    }
    Ok(CommandOutcome::Negative)
}

/// The position of the next record in a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TransferPosition {
    /// Before the first SOA record.
    Start,
    /// After the first SOA record of a response to IXFR. The next record shows whether the transfer
    /// is complete or incremental.
    Second,
    /// Among the records of a complete transfer.
    Whole,
    /// Among the records that a step of an incremental transfer removes.
    Removed,
    /// Among the records that a step of an incremental transfer adds.
    Added,
    /// After the last record.
    Done,
}

/// Tracks the position in a transfer up to its end.
#[derive(Debug)]
struct TransferTracker {
    position: TransferPosition,
    is_incremental: bool,
    /// RDATA of the first SOA record, which contains the serial.
    first_soa: Vec<u8>,
}

impl TransferTracker {
    const fn new(rtype: Rtype) -> Self {
        Self {
            position: TransferPosition::Start,
            is_incremental: rtype.0 == Rtype::IXFR.0,
            first_soa: Vec::new(),
        }
    }

    fn is_done(&self) -> bool {
        self.position == TransferPosition::Done
    }

    const fn kind(&self) -> &'static str {
        if self.is_incremental { "IXFR" } else { "AXFR" }
    }

    /// Processes the next record. In an incremental transfer, returns whether the record is removed
    /// or added.
    fn process(&mut self, record: &Record) -> Result<Option<&'static str>, TransferFault> {
        let is_soa = record.rtype == Rtype::SOA;
        let is_last = is_soa && serial(&record.rdata) == serial(&self.first_soa);
        let (position, change) = match self.position {
            TransferPosition::Start if !is_soa => return Err(TransferFault::NoSoa),
            TransferPosition::Start => {
                self.first_soa.clone_from(&record.rdata);
                (if self.is_incremental { TransferPosition::Second } else { TransferPosition::Whole }, None)
            }
            TransferPosition::Second if is_soa && !is_last => (TransferPosition::Removed, Some("removed")),
            TransferPosition::Second | TransferPosition::Whole => {
                self.is_incremental = false;
                (if is_soa { TransferPosition::Done } else { TransferPosition::Whole }, None)
            }
            TransferPosition::Removed if is_soa => (TransferPosition::Added, Some("added")),
            TransferPosition::Removed => (TransferPosition::Removed, Some("removed")),
            TransferPosition::Added if is_last => (TransferPosition::Done, None),
            TransferPosition::Added if is_soa => (TransferPosition::Removed, Some("removed")),
            TransferPosition::Added => (TransferPosition::Added, Some("added")),
            TransferPosition::Done => return Err(TransferFault::AfterEnd),
        };
        self.position = position;
        Ok(change)
    }

    /// Processes the end of a message. A response to IXFR with a single SOA record means that there
    /// is no newer version (RFC 1995 section 4).
    fn end_message(&mut self) {
        if self.position == TransferPosition::Second {
            self.position = TransferPosition::Done;
        }
    }
}

/// The serial in the RDATA of an SOA record, which begins 20 octets before its end.
fn serial(rdata: &[u8]) -> Option<[u8; 4]> {
    rdata.get(rdata.len().checked_sub(20)?..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_proto::Class;

    fn soa(serial: u32) -> Record {
        let rdata = [&[0, 0][..], &serial.to_be_bytes(), &[0; 16]].concat();
        Record { rtype: Rtype::SOA, rdata, ..a(0) }
    }

    fn a(last: u8) -> Record {
        let owner = "example.".parse().expect("a name");
        let rdata = vec![192, 0, 2, last];
        Record { section: Section::Answer, owner, rtype: Rtype::A, class: Class::IN, ttl: 0, rdata }
    }

    fn follow(rtype: Rtype, records: &[Record]) -> (String, bool, &'static str) {
        let mut tracker = TransferTracker::new(rtype);
        let mut changes = String::new();
        for record in records {
            assert!(!tracker.is_done());
            changes += tracker.process(record).expect("right").map_or("=", |change| &change[..1]);
        }
        (changes, tracker.is_done(), tracker.kind())
    }

    #[test]
    fn the_tracker_finds_the_end_of_transfers() {
        let whole = [soa(2), a(1), a(2), soa(2)];
        assert_eq!(follow(Rtype::AXFR, &whole), ("====".to_owned(), true, "AXFR"));
        assert_eq!(follow(Rtype::AXFR, &whole[..3]), ("===".to_owned(), false, "AXFR"));
        assert_eq!(follow(Rtype::IXFR, &whole), ("====".to_owned(), true, "AXFR"));
        let steps = [soa(3), soa(1), a(1), soa(2), a(2), soa(2), soa(3), a(3), soa(3)];
        assert_eq!(follow(Rtype::IXFR, &steps), ("=rraaraa=".to_owned(), true, "IXFR"));
        // A zone with only a SOA record.
        assert_eq!(follow(Rtype::IXFR, &[soa(3), soa(3)]), ("==".to_owned(), true, "AXFR"));
        assert!(matches!(TransferTracker::new(Rtype::AXFR).process(&a(1)), Err(TransferFault::NoSoa)));
    }

    #[test]
    fn the_reason_of_a_refusal_includes_its_extended_error() {
        let mut octets = vec![0, 7, 0x80, 5, 0, 0, 0, 0, 0, 0, 0, 1];
        // OPT with option 15: Prohibited.
        octets.extend([0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 6, 0, 15, 0, 2, 0, 18]);
        assert_eq!(reason(&Message::parse(&octets).expect("a message")), "REFUSED, EDE 18 (Prohibited)");
        octets[11] = 0;
        octets.truncate(12);
        assert_eq!(reason(&Message::parse(&octets).expect("a message")), "REFUSED");
    }

    #[test]
    fn a_single_soa_record_ends_an_incremental_transfer() {
        let mut tracker = TransferTracker::new(Rtype::IXFR);
        tracker.process(&soa(7)).expect("right");
        tracker.end_message();
        assert!(tracker.is_done());
    }
}
