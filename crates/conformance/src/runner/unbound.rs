//! Plays a scenario as Unbound's `testbound` does (`run_scenario` of `testcode/fake_event.c`): a
//! response arrives at once, and time passes only in steps.
//!
//! Unbound has no timers of its own there. The machine has: where the scenario expects a reply or a
//! query that is not there yet, or a timeout, time passes until the machine acts.

use super::deckard::{mismatch_failure, parse_reply, query_octets};
use super::failure::{Failed, Failure, UndefinedQuery};
use super::{DEFAULT_UNIX, RunOptions};
use crate::describe::{QuestionText, Summary};
use crate::rpl::matching::check;
use crate::rpl::respond::respond;
use crate::rpl::{Action, Dialect, Entry, MatchRule, Scenario, Step};
use crate::simulator::{Network, Options, Path, Reaction, ServerQuery, Simulator};
use nonesuch_net::Transport;
use nonesuch_net::machine::{ClientToken, ExchangeId, Machine, Now, SendFailure};
use nonesuch_proto::message::Message;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The client of a step without an address.
const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 53);
/// Maximum number of rounds, as in Unbound.
const MAX_ROUNDS: u32 = 5000;

/// Plays all steps.
pub(super) fn play(
    scenario: &Scenario,
    machine: Box<dyn Machine>,
    options: RunOptions,
) -> Result<(), Box<Failed>> {
    let simulator_options = Options {
        seed: options.seed,
        unix: scenario.settings.unix_time.unwrap_or(DEFAULT_UNIX),
        default_path: Path { delay: Duration::ZERO, ..Path::default() },
        // Time may pass in steps while a query has no reply.
        patience: Duration::MAX,
        ..Options::default()
    };
    let simulator = Simulator::new(simulator_options, vec![machine], Waiting::default());
    let patience = options.patience;
    let mut player =
        Player { scenario, simulator, patience, at: 0, unchecked: Vec::new(), asked: Vec::new() };
    let result = player.play_all();
    result.map_err(|failure| {
        let trace = player.simulator.trace().to_string();
        let undefined = player.undefined();
        Box::new(Failed { failure, undefined, minimises: false, trace })
    })
}

/// A query to a server without a response.
#[derive(Clone, Debug)]
struct Pending {
    exchange: ExchangeId,
    server: SocketAddr,
    transport: Transport,
    octets: Vec<u8>,
    /// `None` for a malformed message.
    message: Option<Message>,
}

/// The network: it keeps queries until the scenario answers them.
#[derive(Default)]
struct Waiting {
    /// The queries, the newest last.
    pending: Vec<Pending>,
    /// Number of changes of `pending` by the machine.
    changes: u64,
}

impl Network for Waiting {
    fn handle_query(&mut self, query: &ServerQuery<'_>, _now: Now) -> Reaction {
        self.changes += 1;
        self.pending.push(Pending {
            exchange: query.exchange,
            server: query.server,
            transport: query.transport,
            octets: query.message.to_vec(),
            message: Message::parse(query.message).ok(),
        });
        Reaction::SILENCE
    }

    fn handle_close(&mut self, _worker: usize, exchange: ExchangeId) {
        self.changes += 1;
        self.pending.retain(|pending| pending.exchange != exchange);
    }
}

/// A client query.
#[derive(Clone, Copy, Debug)]
struct Asked {
    token: ClientToken,
    client: SocketAddr,
    transport: Transport,
}

struct Player<'s> {
    scenario: &'s Scenario,
    simulator: Simulator<'static, Waiting>,
    patience: Duration,
    /// Index of the current step.
    at: usize,
    /// Queries whose reply was not checked yet.
    unchecked: Vec<Asked>,
    /// Queries without a reply.
    asked: Vec<Asked>,
}

impl<'s> Player<'s> {
    fn play_all(&mut self) -> Result<(), Failure> {
        for _ in 0..MAX_ROUNDS {
            self.settle()?;
            let Some(step) = self.scenario.steps.get(self.at) else { return self.check_end() };
            if !self.play_out_query(step) && !self.play_check(step)? && !self.play_range(step) {
                self.play_step(step)?;
            }
        }
        Err(Failure::TooManyRounds(MAX_ROUNDS))
    }

    /// Executes everything that is due now, and collects replies.
    fn settle(&mut self) -> Result<(), Failure> {
        self.simulator.run_until(self.simulator.time(), |_| false)?;
        self.collect();
        Ok(())
    }

    fn collect(&mut self) {
        let simulator = &self.simulator;
        let (answered, asked) =
            self.asked.iter().partition::<Vec<Asked>, _>(|asked| simulator.reply(asked.token).is_some());
        self.asked = asked;
        // A dropped query has no reply to check.
        let has_message = |asked: &Asked| simulator.reply(asked.token).is_some_and(|r| r.message.is_some());
        self.unchecked.extend(answered.into_iter().filter(has_message));
    }

    /// Lets time pass until the machine replies, sends a query or ends one. Returns whether it did.
    fn wait(&mut self) -> Result<bool, Failure> {
        let before = (self.simulator.network().changes, self.simulator.unanswered().count());
        let limit = self.simulator.time() + self.patience;
        self.simulator.run_until(limit, |simulator| {
            (simulator.network().changes, simulator.unanswered().count()) != before
        })?;
        self.collect();
        Ok((self.simulator.network().changes, self.simulator.unanswered().count()) != before)
    }

    /// Plays CHECK_OUT_QUERY, if such a query is pending. Returns whether it was.
    fn play_out_query(&mut self, step: &Step) -> bool {
        let Action::CheckOutQuery(entry, address) = &step.action else { return false };
        let pending = self.simulator.network().pending.iter().rev();
        let mut to_address =
            pending.filter(|pending| address.is_none_or(|address| address == pending.server));
        let Some(found) = to_address.find(|pending| matches(entry, pending)).cloned() else { return false };
        self.at += 1;
        if entry.adjust.copies_id {
            self.respond(entry, &found);
        }
        true
    }

    /// Plays CHECK_ANSWER, if there is a reply. Returns whether there was.
    fn play_check(&mut self, step: &Step) -> Result<bool, Failure> {
        let Action::CheckAnswer(entry, address) = &step.action else { return Ok(false) };
        let mut first_failure = None;
        for (index, asked) in self.unchecked.iter().enumerate() {
            let reply = self.simulator.reply(asked.token).and_then(|reply| reply.message.as_deref());
            let (Some(reply), true) = (reply, address.is_none_or(|address| address == asked.client)) else {
                continue;
            };
            let checked = check_octets(entry, step, reply, asked.transport);
            match checked {
                Ok(()) => {
                    self.unchecked.remove(index);
                    self.at += 1;
                    return Ok(true);
                }
                Err(failure) => drop(first_failure.get_or_insert(failure)),
            }
        }
        first_failure.map_or(Ok(false), Err)
    }

    /// Answers a pending query from a range. Returns whether there was one. Ranges that are defined
    /// later take precedence.
    fn play_range(&mut self, step: &Step) -> bool {
        let scenario = self.scenario;
        let find = |pending: &Pending| {
            let mut ranges = scenario.ranges.iter().rev().filter(|range| {
                let is_empty = range.addresses.is_empty();
                let has_address = is_empty || range.addresses.contains(&pending.server);
                has_address && (range.first..=range.last).contains(&step.number)
            });
            ranges.find_map(|range| range.entries.iter().find(|entry| matches(entry, pending)))
        };
        let mut pending = self.simulator.network().pending.iter().rev();
        let found = pending.find_map(|pending| find(pending).map(|entry| (pending.clone(), entry)));
        let Some((pending, entry)) = found else { return false };
        self.respond(entry, &pending);
        true
    }

    /// Sends the message of an entry as the response to a query, which is then no longer pending.
    fn respond(&mut self, entry: &Entry, pending: &Pending) {
        let response = pending.message.as_ref().and_then(|query| respond(entry, Dialect::Unbound, query));
        self.remove(pending.exchange);
        if let Some(response) = response {
            self.simulator.inject(0, pending.exchange, pending.server, response);
        }
    }

    fn remove(&mut self, exchange: ExchangeId) {
        self.simulator.network_mut().pending.retain(|pending| pending.exchange != exchange);
    }

    fn play_step(&mut self, step: &'s Step) -> Result<(), Failure> {
        let newest = self.simulator.network().pending.last().cloned();
        let no_query = || Failure::NoQuery { step: step.number, line: step.line, pending: String::new() };
        match &step.action {
            Action::Query(entry, client) => self.query(entry, client.unwrap_or(CLIENT)),
            Action::CheckAnswer(..) if !self.wait()? => {
                return Err(Failure::NoReply { step: step.number, line: step.line });
            }
            Action::CheckOutQuery(..) if !self.wait()? => {
                let pending = self.pending_text();
                return Err(Failure::NoQuery { step: step.number, line: step.line, pending });
            }
            // The next round considers the change.
            Action::CheckAnswer(..) | Action::CheckOutQuery(..) => return Ok(()),
            Action::Reply(entry) => self.respond(entry, &newest.ok_or_else(no_query)?),
            Action::Error => {
                let exchange = newest.ok_or_else(no_query)?.exchange;
                self.remove(exchange);
                self.simulator.inject_failure(0, exchange, SendFailure::Refused);
            }
            Action::Timeout => {
                newest.ok_or_else(no_query)?;
                self.wait()?;
            }
            Action::TimePasses(duration) => self.simulator.run_for(*duration)?,
            Action::Nothing | Action::Unsupported(_) => {}
        }
        self.at += 1;
        Ok(())
    }

    fn query(&mut self, entry: &Entry, client: SocketAddr) {
        let is_tcp = entry.rules.contains(&MatchRule::Tcp);
        let transport = if is_tcp { Transport::Tcp } else { Transport::Udp };
        let now = self.simulator.time();
        let token = self.simulator.query_at(now, 0, client, transport, query_octets(entry, 0));
        self.asked.push(Asked { token, client, transport });
    }

    fn check_end(&self) -> Result<(), Failure> {
        if !self.simulator.network().pending.is_empty() {
            return Err(Failure::UndefinedQueries);
        }
        match self.unchecked.len() {
            0 => Ok(()),
            count => Err(Failure::UncheckedReplies(count)),
        }
    }

    fn pending_text(&self) -> String {
        let pending = self.simulator.network().pending.iter();
        pending.map(|pending| format!("\n    {}: {}", pending.server, Summary(&pending.octets))).collect()
    }

    fn undefined(&self) -> Vec<UndefinedQuery> {
        let step =
            self.scenario.steps.get(self.at).or_else(|| self.scenario.steps.last()).map_or(0, |s| s.number);
        let question = |pending: &Pending| {
            let question = pending.message.as_ref().and_then(|message| message.questions.first());
            question.map_or_else(String::new, |question| QuestionText(question).to_string())
        };
        let pending = self.simulator.network().pending.iter();
        let undefined = pending.map(|pending| UndefinedQuery {
            step,
            server: pending.server,
            transport: pending.transport,
            question: question(pending),
        });
        undefined.collect()
    }
}

/// Returns whether an entry matches a query to a server.
fn matches(entry: &Entry, pending: &Pending) -> bool {
    let message = pending.message.as_ref();
    message.is_some_and(|message| check(entry, Dialect::Unbound, message, pending.transport).is_ok())
}

fn check_octets(entry: &Entry, step: &Step, reply: &[u8], transport: Transport) -> Result<(), Failure> {
    let message = parse_reply(step, reply)?;
    let result = check(entry, Dialect::Unbound, &message, transport);
    result.map_err(|mismatch| mismatch_failure(step, mismatch, &message))
}
