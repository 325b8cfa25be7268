//! The resolver behind the proxy: it answers each query from the name, with all flags, options and sizes.
//!
//! | label | answer |
//! | --- | --- |
//! | `size-N` | TXT, so that the response has N octets |
//! | `bogus` | SERVFAIL without CD, an address with CD |
//! | others | an address; for other types than A and TXT, RDATA of three octets |
//!
//! With DO, answers have an RRSIG record. AD is set if the query has DO or AD. Messages with other opcodes
//! than QUERY get NOTIMP with the same opcode.

use super::super::Transport;
use super::super::authority::{Log, Observation, RunningServer, push_message, serve, serve_tcp, txt_rdata};
use nonesuch_net::{NetError, bind_tcp};
use nonesuch_proto::message::{HEADER, Header, Message, Rcode, Record, Section, flags};
use nonesuch_proto::{Class, Name, Rtype, edns};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The reserved flag Z (RFC 1035 §4.1.1).
pub(super) const Z: u16 = 0x40;
/// Octets of RDATA of the RRSIG records; they are no valid signature.
const SIGNATURE: usize = 100;
/// Octets of the fixed fields of a record: the pointer that is its owner, type, class, TTL, RDLENGTH.
const RECORD: usize = 12;
/// Maximum size of a response over UDP without EDNS.
const PLAIN_OCTETS: u16 = 512;
/// TTL of all answers, in seconds.
const TTL: u32 = 300;

/// The running resolver. Dropping it stops it.
#[derive(Debug)]
pub(super) struct Upstream {
    /// Its address.
    pub(super) address: SocketAddr,
    log: Arc<Mutex<Log>>,
    server: RunningServer,
}

impl Upstream {
    /// Starts the resolver. Port 0 selects a free port.
    pub(super) fn start(listen: SocketAddr) -> Result<Self, NetError> {
        let log = Arc::new(Mutex::new(Log::default()));
        let server = serve(listen, answer_and_record(&log))?;
        Ok(Self { address: server.address, log, server })
    }

    /// Refuses TCP connections from now on.
    pub(super) fn close_tcp(&mut self) {
        self.server.tcp = None;
    }

    /// Accepts TCP connections again.
    pub(super) fn open_tcp(&mut self) -> Result<(), NetError> {
        let listener = bind_tcp(self.address)?;
        self.server.tcp = Some(serve_tcp(listener, self.address, answer_and_record(&self.log))?);
        Ok(())
    }

    /// The number of queries so far, and those from this number on.
    pub(super) fn observations_from(&self, number: usize) -> (usize, Vec<Observation>) {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).from(number)
    }
}

/// The function that answers queries and adds them to the log.
fn answer_and_record(
    log: &Arc<Mutex<Log>>,
) -> impl Fn(SocketAddr, SocketAddr, Transport, &[u8], &mut Vec<u8>) -> bool + Clone + Send + Sync + 'static {
    let log = Arc::clone(log);
    move |server, client, transport, query, out| {
        let is_answered = answer(query, transport, out).is_some();
        let reply = is_answered.then(|| out.clone());
        let observation = Observation { server, client, transport, query: query.to_vec(), reply };
        log.lock().unwrap_or_else(PoisonError::into_inner).push(observation);
        is_answered
    }
}

/// Writes the response to `out`. `None`: the query gets no response.
fn answer(query: &[u8], transport: Transport, out: &mut Vec<u8>) -> Option<()> {
    let header = Header::read(query)?;
    if header.opcode() != 0 {
        // A response with an error may omit the question.
        let kept = flags::OPCODE | flags::RD | flags::AD | flags::CD | Z;
        let flags = flags::QR | header.flags & kept | Rcode::NOTIMP.0;
        out.extend_from_slice(&Header { id: header.id, flags, counts: [0; 4] }.to_octets());
        return Some(());
    }
    let asked = Message::parse(query).ok()?;
    let question = asked.questions.first()?;
    let octets = query.get(HEADER..HEADER + question.name.wire().len() + 4)?;
    let opt = asked.opt().map(|opt| (opt.class.0, opt.ttl as u16));
    let wants_dnssec = opt.is_some_and(|(_, flags)| flags & edns::DO != 0);
    let label = question.name.view().labels().next().unwrap_or_default();
    let is_bogus = label.starts_with(b"bogus") && header.flags & flags::CD == 0;
    let rcode = if is_bogus { Rcode::SERVFAIL } else { Rcode::NOERROR };
    let has_ad = (wants_dnssec || header.flags & flags::AD != 0) && !label.starts_with(b"bogus");
    let kept = flags::RD | flags::CD | Z;
    let flags = flags::QR | flags::RA | header.flags & kept | if has_ad { flags::AD } else { 0 } | rcode.0;
    let header = Header { id: header.id, flags, counts: [0; 4] };
    let mut message = Message { header, questions: vec![question.clone()], records: Vec::new() };
    if !is_bogus {
        message.records = records(&question.name, question.rtype, label, (wants_dnssec, opt.is_some()));
    }
    if let Some((payload, sent)) = opt {
        message.records.push(opt_record(payload, sent));
    }
    push_message(&message, octets, out);
    let accepted = opt.map_or(PLAIN_OCTETS, |(payload, _)| payload.max(PLAIN_OCTETS));
    if transport == Transport::Udp && out.len() > usize::from(accepted) {
        message.header.flags |= flags::TC;
        message.records.retain(|record| record.rtype == Rtype::OPT);
        out.clear();
        push_message(&message, octets, out);
    }
    Some(())
}

/// The answer to a question, with a signature if the client wants it.
fn records(name: &Name, rtype: Rtype, label: &[u8], (wants_dnssec, has_edns): (bool, bool)) -> Vec<Record> {
    let record = |rtype, rdata| Record {
        section: Section::Answer,
        owner: name.clone(),
        rtype,
        class: Class::IN,
        ttl: TTL,
        rdata,
    };
    let size = std::str::from_utf8(label).ok().and_then(|label| label.strip_prefix("size-"));
    let size = size.and_then(|rest| rest.split('-').next()).and_then(|number| number.parse::<usize>().ok());
    let rdata = match (rtype, size) {
        (Rtype::TXT, Some(size)) => {
            let signature = if wants_dnssec { RECORD + SIGNATURE } else { 0 };
            let others = HEADER
                + name.wire().len()
                + 4
                + RECORD
                + signature
                + if has_edns { edns::OPT_OCTETS } else { 0 };
            txt_rdata(size.saturating_sub(others).max(1))
        }
        (Rtype::TXT, None) => txt_rdata(20),
        (Rtype::A, _) => vec![192, 0, 2, 1],
        // Preference and the root.
        (Rtype::MX, _) => vec![0, 10, 0],
        _ => vec![1, 2, 3],
    };
    let mut records = vec![record(rtype, rdata)];
    if wants_dnssec {
        records.push(record(Rtype::RRSIG, signature(name, rtype)));
    }
    records
}

/// RDATA of an RRSIG record of [`SIGNATURE`] octets, whose signature is not valid.
fn signature(name: &Name, rtype: Rtype) -> Vec<u8> {
    let mut rdata = rtype.0.to_be_bytes().to_vec();
    rdata.extend_from_slice(&[13, name.view().rrsig_labels()]);
    rdata.extend_from_slice(&TTL.to_be_bytes());
    rdata.extend_from_slice(&[0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1, 0x12, 0x34]);
    // The signer is the root.
    rdata.push(0);
    rdata.resize(SIGNATURE, 0x5a);
    rdata
}

fn opt_record(payload: u16, sent: u16) -> Record {
    Record {
        section: Section::Additional,
        owner: Name::root(),
        rtype: Rtype::OPT,
        class: Class(payload.max(PLAIN_OCTETS)),
        ttl: u32::from(sent & edns::DO),
        rdata: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Query;

    #[test]
    fn responses_have_the_size_that_the_name_asks_for() {
        for size in [512, 513, 1220, 1221, 1472, 1473, 4000] {
            let name: Name = format!("size-{size}-x.proxy.check.").parse().expect("a name");
            for query in [
                Query::new(name.clone(), Rtype::TXT).with_payload(4096),
                Query::new(name, Rtype::TXT).with_payload(4096).without_do(),
            ] {
                let mut out = Vec::new();
                answer(&query.to_octets(7), Transport::Udp, &mut out).expect("a response");
                assert_eq!(out.len(), size);
                let message = Message::parse(&out).expect("a message");
                let has_signature = message.records.iter().any(|record| record.rtype == Rtype::RRSIG);
                assert_eq!(has_signature, query.edns_flags & edns::DO != 0);
            }
        }
    }

    #[test]
    fn larger_responses_are_truncated_over_udp_only() {
        let name: Name = "size-1300-x.proxy.check.".parse().expect("a name");
        let query = Query::new(name, Rtype::TXT).with_payload(1232).to_octets(7);
        for (transport, is_truncated) in [(Transport::Udp, true), (Transport::Tcp, false)] {
            let mut out = Vec::new();
            answer(&query, transport, &mut out).expect("a response");
            let header = Header::read(&out).expect("a header");
            assert_eq!(header.flags & flags::TC != 0, is_truncated);
        }
    }
}
