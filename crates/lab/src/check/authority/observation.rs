//! The queries that the servers of a check receive.

use crate::check::{Exchange, Transport};
use nonesuch_proto::message::{Header, Message};
use nonesuch_proto::{Name, Rtype, edns};
use std::net::SocketAddr;

/// Maximum number of queries that the log has; further ones are ignored.
const OBSERVATIONS_MAX: usize = 100_000;

/// A query of the resolver, and the response.
#[derive(Clone, Debug)]
pub(in crate::check) struct Observation {
    /// The server that received it.
    pub(in crate::check) server: SocketAddr,
    /// Its source.
    pub(in crate::check) client: SocketAddr,
    pub(in crate::check) transport: Transport,
    pub(in crate::check) query: Vec<u8>,
    /// `None`: the server did not answer.
    pub(in crate::check) reply: Option<Vec<u8>>,
}

impl Observation {
    /// The contents of the query; `None` if it cannot be parsed.
    pub(in crate::check) fn message(&self) -> Option<Message> {
        Message::parse(&self.query).ok()
    }

    /// The queried name and type.
    pub(in crate::check) fn question(&self) -> Option<(Name, Rtype)> {
        let message = self.message()?;
        let question = message.questions.first()?;
        Some((question.name.clone(), question.rtype))
    }

    /// Whether the query is for this name or one below it.
    pub(in crate::check) fn is_at_or_below(&self, name: &Name) -> bool {
        self.question().is_some_and(|(asked, _)| asked.view().is_at_or_below(name.view()))
    }

    /// Whether the query is for this name.
    pub(in crate::check) fn is_for(&self, name: &Name) -> bool {
        self.question().is_some_and(|(asked, _)| asked.view() == name.view())
    }

    /// The UDP payload size, flags and options of the OPT record; `None` without EDNS.
    pub(in crate::check) fn edns(&self) -> Option<(u16, u16, Vec<u8>)> {
        let message = self.message()?;
        let opt = message.opt()?;
        Some((opt.class.0, opt.ttl as u16, opt.rdata.clone()))
    }

    /// The data of an EDNS option of the query.
    pub(in crate::check) fn option(&self, code: u16) -> Option<Vec<u8>> {
        let (_, _, options) = self.edns()?;
        edns::Options::new(&options).find(|(found, _)| *found == code).map(|(_, data)| data.to_vec())
    }

    /// The header of the query.
    pub(in crate::check) fn header(&self) -> Option<Header> {
        Header::read(&self.query)
    }

    /// As an exchange of the evidence.
    pub(in crate::check) fn into_exchange(self, sender: &'static str) -> Exchange {
        Exchange {
            sender,
            server: self.server,
            transport: self.transport,
            query: self.query,
            reply: self
                .reply
                .ok_or_else(|| "the server of the check sent no response, as the item requires".to_owned()),
            elapsed: std::time::Duration::ZERO,
        }
    }
}

/// All queries, in the order of their arrival.
#[derive(Debug, Default)]
pub(in crate::check) struct Log {
    observations: Vec<Observation>,
}

impl Log {
    pub(in crate::check) fn push(&mut self, observation: Observation) {
        if self.observations.len() < OBSERVATIONS_MAX {
            self.observations.push(observation);
        }
    }

    /// The number of queries, and those from this number on.
    pub(in crate::check) fn from(&self, number: usize) -> (usize, Vec<Observation>) {
        let new = self.observations.get(number..).unwrap_or_default();
        (self.observations.len(), new.to_vec())
    }
}
