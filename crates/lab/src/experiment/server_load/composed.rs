//! Composed responses of a conservative transition from NSEC3 to NSEC5 (ePrint 2017/099 §9.1): the
//! responses have the records of both, for old and for new resolvers.
//!
//! No server sends such responses. Two servers answer the same query, one with NSEC3 and one with
//! NSEC5, and the size of a message with the records of both responses is computed.

use super::queries::QueryKind;
use super::subject::{CommonSetup, RunningServer, SAMPLE_SECONDS};
use super::{LoadColumns, Row};
use crate::load::{self, LoadError, LoadOptions, QueryList, SORT_GROUP};
use nonesuch_net::Transport;
use nonesuch_proto::message::{Header, MessageError, read_record};
use nonesuch_proto::{Name, Rtype};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

/// Name of the server in rows of composed responses.
const SERVER: &str = "composed";
/// Denial mechanism in these rows.
const DENIAL: &str = "nsec3+nsec5";
/// Number of queries for a row: one whole sort group of the load generator
/// (`SORT_GROUP`), so that both servers get the same queries.
const QUERIES: u64 = SORT_GROUP as u64;
/// Offset of the question (RFC 1035 §4.1.1).
const HEADER_OCTETS: usize = 12;

/// Two servers of the same zone: one with NSEC3, one with NSEC5.
pub(super) struct Nsec3Nsec5Pair<'s> {
    /// Index of the zone.
    pub(super) zone_index: usize,
    nsec3: &'s RunningServer,
    nsec5: &'s RunningServer,
}

impl<'s> Nsec3Nsec5Pair<'s> {
    /// Returns the pairs of servers with the same zone, one with NSEC3 and one with NSEC5.
    pub(super) fn of(servers: &'s [(usize, RunningServer)]) -> Vec<Self> {
        let pairs = servers.iter().filter_map(|(zone_index, nsec3)| {
            let wanted = nsec3.choice.with_nsec5()?;
            let (_, nsec5) = servers.iter().find(|(_, server)| server.choice == wanted)?;
            Some(Self { zone_index: *zone_index, nsec3, nsec5 })
        });
        pairs.collect()
    }

    /// Returns rows with the sizes of composed responses to queries of a kind, one for each UDP
    /// payload size; none if no response can be composed. `sent` and `received` are the number of
    /// composed responses.
    pub(super) fn rows(
        &self,
        setup: &CommonSetup<'_>,
        round: u32,
        kind: QueryKind,
        list: &Arc<QueryList>,
        at_s: f64,
    ) -> Result<Vec<Row<'static>>, LoadError> {
        let seed = setup.seed.wrapping_add(round.into());
        let [nsec3, nsec5] =
            [self.nsec3, self.nsec5].map(|server| responses(setup, server, kind, list, seed));
        let (nsec3, nsec5): (Vec<_>, HashMap<_, _>) = (nsec3?, nsec5?.into_iter().collect());
        let composed =
            nsec3.iter().filter_map(|(question, old)| composed_octets(old, nsec5.get(question)?).ok());
        let sizes: Vec<u64> = composed.map(|octets| octets as u64).collect();
        let Some(max) = sizes.iter().copied().max() else { return Ok(Vec::new()) };
        let count = sizes.len() as u64;
        let load = |limit: u64| LoadColumns {
            sent: count,
            received: count,
            truncated: sizes.iter().filter(|octets| **octets > limit).count() as u64,
            query_octets: kind.query_octets(list),
            response_octets: Some(sizes.iter().sum::<u64>() as f64 / count as f64),
            response_octets_max: Some(max),
            ..LoadColumns::default()
        };
        let choice = &self.nsec3.choice;
        let row = |payload: u16| Row {
            round,
            server: SERVER.to_owned(),
            zone: choice.zone.to_string(),
            scheme: choice.algorithms.schemes(),
            denial: DENIAL.to_owned(),
            iterations: choice.iterations,
            queries: kind.to_string(),
            payload,
            at_s,
            load: load(payload.min(setup.parameters.udp_octets.value()).into()),
            ..Row::default()
        };
        Ok(setup.parameters.payloads().iter().map(|payload| row(payload.value())).collect())
    }
}

impl fmt::Display for Nsec3Nsec5Pair<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SERVER}, {} and {}", self.nsec3.choice.zone_description(), self.nsec5.choice.denial)
    }
}

/// A question in wire form.
type Question = Vec<u8>;

/// Returns complete responses, each after its question. The queries are the same for each server.
fn responses(
    setup: &CommonSetup<'_>,
    server: &RunningServer,
    kind: QueryKind,
    list: &Arc<QueryList>,
    seed: u64,
) -> Result<Vec<(Question, Vec<u8>)>, LoadError> {
    let report = load::run(&LoadOptions {
        transport: Transport::Tcp,
        follow_truncated: false,
        samples: QUERIES as usize,
        limit: Some(QUERIES),
        seconds: SAMPLE_SECONDS,
        repeatable: true,
        seed,
        ..setup.options(server, kind, list)
    })?;
    let with_question = report.samples.into_iter().filter_map(|response| {
        let (_, end) = Name::from_message(&response, HEADER_OCTETS).ok()?;
        Some((response.get(HEADER_OCTETS..end + 4)?.to_vec(), response))
    });
    Ok(with_question.collect())
}

/// A record of a message: owner, type and RDATA.
type WireRecord = (Vec<u8>, Rtype, Vec<u8>);

/// Returns the size of a message with all records of `old` and those of `new` that `old` does not
/// have. A moved record keeps its size if all names that it points to are also in the composed
/// message; this is true for the question and for all records of both.
fn composed_octets(old: &[u8], new: &[u8]) -> Result<usize, MessageError> {
    let known: HashSet<WireRecord> = records(old)?.into_iter().map(|(record, _)| record).collect();
    let is_added = |record: &WireRecord| record.1 != Rtype::OPT && !known.contains(record);
    let added = records(new)?.into_iter().filter(|(record, _)| is_added(record));
    Ok(old.len() + added.map(|(_, octets)| octets).sum::<usize>())
}

/// Returns the records of a message with their sizes in the message.
fn records(message: &[u8]) -> Result<Vec<(WireRecord, usize)>, MessageError> {
    let header = Header::read(message).ok_or(MessageError::Truncated)?;
    let [questions, counts @ ..] = header.counts;
    let mut at = HEADER_OCTETS;
    for _ in 0..questions {
        at = Name::from_message(message, at)?.1 + 4;
    }
    let mut records = Vec::new();
    for _ in 0..counts.iter().map(|count| u32::from(*count)).sum() {
        let (mut owner, mut rdata) = (Vec::new(), Vec::new());
        let (fields, end) = read_record(message, at, &mut owner, &mut rdata)?;
        records.push(((owner, fields.rtype, rdata), end - at));
        at = end;
    }
    Ok(records)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a response for `a.example. A` with records after the question.
    fn response(records: &[&[u8]]) -> Vec<u8> {
        let header = Header { id: 1, flags: 0, counts: [1, 0, records.len() as u16, 0] };
        let question = b"\x01a\x07example\x00\x00\x01\x00\x01";
        [&header.to_octets()[..], question, &records.concat()].concat()
    }

    #[test]
    fn a_record_of_both_responses_is_counted_once() {
        // TXT records of `example.`, compressed; one has another RDATA. The last record is OPT.
        let soa = b"\xc0\x0e\x00\x10\x00\x01\x00\x00\x00\x05\x00\x02\x01s";
        let other = b"\xc0\x0e\x00\x10\x00\x01\x00\x00\x00\x05\x00\x03\x02st";
        let opt = b"\x00\x00\x29\x04\xd0\x00\x00\x80\x00\x00\x00";
        let old = response(&[soa, opt]);
        assert_eq!(composed_octets(&old, &old), Ok(old.len()));
        assert_eq!(composed_octets(&old, &response(&[soa, other, opt])), Ok(old.len() + other.len()));
        assert_eq!(composed_octets(&response(&[opt]), &old), Ok(old.len()));
        assert!(composed_octets(&old, &old[..old.len() - 1]).is_err());
    }
}
