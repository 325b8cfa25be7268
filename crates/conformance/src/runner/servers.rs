//! The simulated servers of a scenario of Deckard, as `pydnstest/testserver.py` and `Scenario.reply` of
//! `pydnstest/scenario.py`.

use super::failure::{Failure, UndefinedQuery};
use crate::describe::QuestionText;
use crate::rpl::matching::check;
use crate::rpl::respond::{respond, servfail};
use crate::rpl::{Action, Entry, Scenario};
use crate::simulator::{Network, Reaction, ServerQuery};
use nonesuch_net::machine::{Now, SendFailure};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Message, Record};
use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

/// Port of the simulated servers.
const DNS_PORT: u16 = 53;

/// The servers.
pub(super) struct Servers<'s> {
    scenario: &'s Scenario,
    /// Number of the current step.
    pub(super) step: u32,
    /// Addresses of ranges.
    in_ranges: BTreeSet<SocketAddr>,
    /// Addresses at which a server listens: those of ranges, and those in records of REPLY steps.
    listening: BTreeSet<SocketAddr>,
    /// Indexes of the REPLY steps that were used.
    used_replies: BTreeSet<usize>,
    /// Lines of the entries that were used.
    used_entries: BTreeSet<u32>,
    /// Queries for which the scenario defines no response.
    pub(super) undefined: Vec<UndefinedQuery>,
    /// The first malformed query.
    pub(super) malformed: Option<Failure>,
}

impl<'s> Servers<'s> {
    /// Returns the servers before the first step.
    pub(super) fn new(scenario: &'s Scenario) -> Self {
        let in_ranges: BTreeSet<SocketAddr> =
            scenario.ranges.iter().flat_map(|range| range.addresses.iter().copied()).collect();
        let replies = scenario.steps.iter().filter_map(|step| match &step.action {
            Action::Reply(entry) => Some(entry),
            _ => None,
        });
        let addresses = replies.flat_map(|entry| &entry.message.records).filter_map(record_address);
        let listening = addresses.map(|address| SocketAddr::new(address, DNS_PORT));
        let listening = listening.chain(in_ranges.iter().copied()).collect();
        Self {
            scenario,
            step: 0,
            in_ranges,
            listening,
            used_replies: BTreeSet::new(),
            used_entries: BTreeSet::new(),
            undefined: Vec::new(),
            malformed: None,
        }
    }

    /// Returns the line of the first MANDATORY entry of a range that no query matched.
    pub(super) fn unused_mandatory_entry(&self) -> Option<u32> {
        let mut entries = self.scenario.ranges.iter().flat_map(|range| &range.entries);
        let unused = |entry: &&Entry| entry.is_mandatory && !self.used_entries.contains(&entry.line);
        entries.find(unused).map(|entry| entry.line)
    }

    /// Returns the entry for a query. Deckard considers only the first range with the address and the
    /// step, even if another range has a matching entry.
    fn find(&mut self, query: &ServerQuery<'_>, message: &Message) -> Option<&'s Entry> {
        let scenario = self.scenario;
        let dialect = scenario.settings.dialect;
        let matches = |entry: &Entry| check(entry, dialect, message, query.transport).is_ok();
        // A server without a range of its own answers from all ranges.
        let is_known = self.in_ranges.contains(&query.server);
        let range = scenario.ranges.iter().find(|range| {
            let has_address =
                !is_known || range.addresses.is_empty() || range.addresses.contains(&query.server);
            (range.first..=range.last).contains(&self.step) && has_address
        });
        if let Some(range) = range {
            let entry = range.entries.iter().find(|entry| matches(entry))?;
            self.used_entries.insert(entry.line);
            return Some(entry);
        }
        let replies = scenario.steps.iter().enumerate().filter_map(|(index, step)| match &step.action {
            Action::Reply(entry) if step.number >= self.step => Some((index, entry)),
            _ => None,
        });
        let mut unused = replies.filter(|(index, _)| !self.used_replies.contains(index));
        let (index, entry) = unused.find(|(_, entry)| matches(entry))?;
        self.used_replies.insert(index);
        Some(entry)
    }

    fn record_undefined(&mut self, query: &ServerQuery<'_>, message: &Message) {
        let question = message.questions.first();
        self.undefined.push(UndefinedQuery {
            step: self.step,
            server: query.server,
            transport: query.transport,
            question: question.map_or_else(String::new, |question| QuestionText(question).to_string()),
        });
    }
}

impl Network for Servers<'_> {
    fn handle_query(&mut self, query: &ServerQuery<'_>, _now: Now) -> Reaction {
        if !self.listening.contains(&query.server) {
            // Deckard routes all other addresses to an interface that discards packets.
            let is_loopback = query.server.ip().is_loopback();
            return if is_loopback { Reaction::Failure(SendFailure::Refused) } else { Reaction::SILENCE };
        }
        let Ok(message) = Message::parse(query.message) else {
            let message = data_encoding::HEXLOWER.encode(query.message);
            let failure = Failure::MalformedQuery { server: query.server, message };
            self.malformed.get_or_insert(failure);
            return Reaction::SILENCE;
        };
        let response = match self.find(query, &message) {
            Some(entry) => respond(entry, self.scenario.settings.dialect, &message),
            None => {
                self.record_undefined(query, &message);
                Some(servfail(&message))
            }
        };
        response.map_or(Reaction::SILENCE, |response| Reaction::answer(query.server, response))
    }
}

/// Returns the address in an A or AAAA record.
fn record_address(record: &Record) -> Option<IpAddr> {
    match record.rtype {
        Rtype::A => <[u8; 4]>::try_from(record.rdata.as_slice()).ok().map(IpAddr::from),
        Rtype::AAAA => <[u8; 16]>::try_from(record.rdata.as_slice()).ok().map(IpAddr::from),
        _ => None,
    }
}
