//! Plays a scenario as Deckard does: each query waits for its reply.

use super::failure::{Failed, Failure};
use super::servers::Servers;
use super::{DEFAULT_UNIX, RunOptions};
use crate::describe::MessageText;
use crate::rpl::matching::{Mismatch, check};
use crate::rpl::{Action, Entry, Scenario, Step};
use crate::simulator::{Options, Path, Simulator};
use data_encoding::HEXLOWER;
use nonesuch_net::Transport;
use nonesuch_net::machine::Machine;
use nonesuch_proto::message::{Header, Message};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The client.
const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 40_000);
/// Time of a message to or from a server.
const DELAY: Duration = Duration::from_millis(1);

/// Plays all steps.
pub(super) fn play(
    scenario: &Scenario,
    machine: Box<dyn Machine>,
    options: RunOptions,
) -> Result<(), Box<Failed>> {
    let simulator_options = Options {
        seed: options.seed,
        unix: scenario.settings.unix_time.unwrap_or(DEFAULT_UNIX),
        default_path: Path { delay: DELAY, ..Path::default() },
        ..Options::default()
    };
    let simulator = Simulator::new(simulator_options, vec![machine], Servers::new(scenario));
    let mut player = Player { simulator, patience: options.patience, last_reply: None };
    let result = player.play_all(scenario);
    result.map_err(|failure| {
        let servers = player.simulator.network();
        let failure = match failure {
            Failure::Fault(_) | Failure::MalformedQuery { .. } => failure,
            other => servers.malformed.clone().unwrap_or(other),
        };
        let undefined = servers.undefined.clone();
        let trace = player.simulator.trace().to_string();
        Box::new(Failed { failure, undefined, minimises: false, trace })
    })
}

struct Player<'s> {
    simulator: Simulator<'static, Servers<'s>>,
    patience: Duration,
    /// The reply to the last query.
    last_reply: Option<Vec<u8>>,
}

impl Player<'_> {
    fn play_all(&mut self, scenario: &Scenario) -> Result<(), Failure> {
        for step in &scenario.steps {
            self.simulator.network_mut().step = step.number;
            self.play_step(step)?;
        }
        // RAW queries have no reply in the scenario, but the machine has to finish them.
        self.simulator.run_until_answered()?;
        let servers = self.simulator.network();
        if let Some(line) = servers.unused_mandatory_entry() {
            return Err(Failure::MandatoryEntry(line));
        }
        match &servers.malformed {
            Some(malformed) => Err(malformed.clone()),
            None if !servers.undefined.is_empty() => Err(Failure::UndefinedQueries),
            None => Ok(()),
        }
    }

    fn play_step(&mut self, step: &Step) -> Result<(), Failure> {
        match &step.action {
            Action::Query(entry, _) => self.query(entry, step),
            Action::CheckAnswer(entry, _) => check_reply(entry, step, self.last_reply.as_deref()),
            Action::TimePasses(duration) => Ok(self.simulator.run_for(*duration)?),
            // Servers use REPLY; Deckard ignores the others.
            _ => Ok(()),
        }
    }

    /// Sends a query and waits for the reply. There is no wait after a RAW query.
    fn query(&mut self, entry: &Entry, step: &Step) -> Result<(), Failure> {
        let message = query_octets(entry, step.number as u16);
        let now = self.simulator.time();
        let token = self.simulator.query_at(now, 0, CLIENT, Transport::Udp, message);
        if entry.raw.is_some() {
            self.last_reply = None;
            self.simulator.run_until(now, |_| false)?;
            return Ok(());
        }
        self.simulator.run_until(now + self.patience, |simulator| simulator.reply(token).is_some())?;
        let reply = self.simulator.reply(token).and_then(|reply| reply.message.clone());
        let no_reply = Failure::NoReply { step: step.number, line: step.line };
        self.last_reply = Some(reply.ok_or(no_reply)?);
        Ok(())
    }
}

/// Returns the message of a query, with an ID unless it is RAW.
pub(super) fn query_octets(entry: &Entry, id: u16) -> Vec<u8> {
    match &entry.raw {
        Some(raw) => raw.clone(),
        None => {
            let mut message = entry.message.clone();
            message.header = Header { id, ..message.header };
            message.to_octets()
        }
    }
}

/// Compares a reply over UDP with the entry of a step.
fn check_reply(entry: &Entry, step: &Step, reply: Option<&[u8]>) -> Result<(), Failure> {
    let (number, line) = (step.number, step.line);
    let reply = reply.ok_or(Failure::NoReply { step: number, line })?;
    if let Some(raw) = &entry.raw {
        let [expected, received] = [raw, reply].map(|octets| HEXLOWER.encode(octets));
        let is_equal = expected == received;
        let failure = Failure::RawMismatch { step: number, line, expected, received };
        return if is_equal { Ok(()) } else { Err(failure) };
    }
    let message = parse_reply(step, reply)?;
    let result = check(entry, crate::rpl::Dialect::Deckard, &message, Transport::Udp);
    result.map_err(|mismatch| mismatch_failure(step, mismatch, &message))
}

/// Reads a reply.
pub(super) fn parse_reply(step: &Step, reply: &[u8]) -> Result<Message, Failure> {
    let malformed =
        || Failure::MalformedReply { step: step.number, line: step.line, reply: HEXLOWER.encode(reply) };
    Message::parse(reply).map_err(|_| malformed())
}

/// Returns the failure for a reply that is not the expected one.
pub(super) fn mismatch_failure(step: &Step, mismatch: Mismatch, reply: &Message) -> Failure {
    let reply = MessageText(reply).to_string().replace('\n', "\n    ");
    Failure::Mismatch { step: step.number, line: step.line, mismatch: Box::new(mismatch), reply }
}
