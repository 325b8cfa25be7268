//! Resolves by itself, from the root or through the system's resolvers, and records each query to a server and
//! how its response was validated.

use super::client::QueryClient;
use super::error::QueryError;
use super::message::{self, QueryTemplate};
use super::show::{ParsedResponse, milliseconds};
use super::target::Target;
use crate::arguments::{QueryArguments, QueryTransport};
use crate::files::count_text;
use crate::hints::read_hints;
use crate::server::resolver::{self, ResolveError};
use crate::trust_anchors::trust_anchors;
use crate::zones::time_or_now;
use nonesuch_lab::message_text::{rcode_name, type_and_rdata};
use nonesuch_net::event_loop::{EventLoopOptions, EventLoopSockets, serve};
use nonesuch_net::machine::{Event, ExchangeId, Machine, Now, Output, SendFailure, Upstream};
use nonesuch_net::{Transport, bind};
use nonesuch_proto::message::{Message, Question, Rcode, Record, Section, flags};
use nonesuch_proto::{Name, Rtype};
use nonesuch_resolver::options::{MEMORY_RANGE, ResolverOptions};
use nonesuch_resolver::zones::ZoneRules;
use nonesuch_resolver::{Resolver, TraceStep};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Records and nameservers that a line shows.
const SHOWN: usize = 3;

/// A query to a server.
#[derive(Debug)]
pub(super) struct Step {
    server: SocketAddr,
    transport: Transport,
    name: Name,
    rtype: Rtype,
    begin: Instant,
    elapsed: Duration,
    result: StepResult,
}

/// The end of a query to a server.
#[derive(Debug)]
enum StepResult {
    NoResponse,
    Failed(SendFailure),
    Malformed,
    Response(Box<Message>),
}

/// What a resolution did.
#[derive(Debug, Default)]
pub(super) struct Steps {
    /// The queries to servers, in order.
    pub(super) queries: Vec<Step>,
    /// The steps of the validation, in order.
    pub(super) chain: Vec<TraceStep>,
}

type SharedSteps = Arc<Mutex<Steps>>;

/// Resolves the question with a resolver that lives only for this command, at a free port of
/// 127.0.0.1. `rules` has the servers, if it does not begin at the root.
pub(super) async fn ask(
    arguments: &QueryArguments,
    question: &message::Question,
    rules: ZoneRules,
) -> Result<ParsedResponse, QueryError> {
    let mut options = ResolverOptions { memory: *MEMORY_RANGE.start(), ..ResolverOptions::default() };
    options.zones = rules;
    if let Some(file) = &arguments.hints {
        options.hints = read_hints(file).map_err(ResolveError::from)?;
    }
    options.validation.anchors =
        trust_anchors(arguments.anchor.as_deref(), arguments.hints.is_some(), time_or_now(None))
            .map_err(ResolveError::from)?;
    // The resolver answers in this time, with SERVFAIL at worst.
    let transport = QueryTransport {
        tcp: true,
        timeout: 2.0 * options.limits.time.as_secs_f64(),
        ..arguments.transport.clone()
    };
    let listeners = bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 1).map_err(ResolveError::Bind)?;
    let target = Target::at(listeners.local_addr);
    let steps = SharedSteps::default();
    let (shared, seed) = (Arc::new(resolver::shared(options)?), resolver::random()?);
    let traced = Arc::clone(&steps);
    let make_machine = move |worker| {
        let mut inner = Resolver::new(Arc::clone(&shared), worker, seed);
        inner.start_trace();
        Traced { inner, steps: Arc::clone(&traced), open: HashMap::new() }
    };
    let server =
        serve(EventLoopSockets::without_tls(vec![listeners]), &EventLoopOptions::default(), make_machine)
            .map_err(ResolveError::from)?;
    let client = QueryClient { arguments: &transport, target: &target, tls: None, signer: None };
    let template = QueryTemplate::new(&arguments.message, &transport)?;
    let received = client.ask(question, &template).await?;
    server.stop().map_err(ResolveError::from)?;
    let mut response = ParsedResponse::read(received, &template)?;
    response.steps = Some(std::mem::take(&mut *steps.lock().unwrap_or_else(PoisonError::into_inner)));
    Ok(response)
}

/// A resolver whose queries to servers are recorded.
struct Traced {
    inner: Resolver,
    steps: SharedSteps,
    /// Positions of the steps that have not ended.
    open: HashMap<ExchangeId, usize>,
}

impl Traced {
    fn begin(&mut self, sent: &Upstream) {
        // The resolver writes well-formed queries.
        let question =
            Message::parse(&sent.message).ok().and_then(|message| message.questions.into_iter().next());
        let Some(Question { name, rtype, .. }) = question else { return };
        let queries = &mut self.steps.lock().unwrap_or_else(PoisonError::into_inner).queries;
        self.open.insert(sent.exchange, queries.len());
        let (begin, elapsed, result) = (Instant::now(), Duration::ZERO, StepResult::NoResponse);
        let (server, transport) = (sent.server, sent.transport);
        queries.push(Step { server, transport, name, rtype, begin, elapsed, result });
    }

    fn end(&mut self, exchange: ExchangeId) {
        let Some(position) = self.open.remove(&exchange) else { return };
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(step) = steps.queries.get_mut(position)
            && matches!(step.result, StepResult::NoResponse)
        {
            step.elapsed = step.begin.elapsed();
        }
    }

    fn record(&self, exchange: ExchangeId, now: Instant, result: StepResult) {
        let Some(position) = self.open.get(&exchange) else { return };
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(step) = steps.queries.get_mut(*position) {
            step.elapsed = now.saturating_duration_since(step.begin);
            step.result = result;
        }
    }
}

impl Machine for Traced {
    fn handle_event(&mut self, event: Event<'_>, now: Now) {
        match event {
            Event::Response(exchange, octets) => {
                let message = Message::parse(octets);
                let result =
                    message.map_or(StepResult::Malformed, |message| StepResult::Response(message.into()));
                self.record(exchange, now.instant, result);
            }
            Event::Failed(exchange, failure) => {
                self.record(exchange, now.instant, StepResult::Failed(failure));
            }
            Event::Query(_) | Event::Wake => {}
        }
        self.inner.handle_event(event, now);
    }

    fn handle_timeout(&mut self, now: Now) {
        self.inner.handle_timeout(now);
    }

    fn end_turn(&mut self, now: Now) {
        self.inner.end_turn(now);
    }

    fn poll_output(&mut self) -> Option<Output> {
        let validated = self.inner.take_trace();
        self.steps.lock().unwrap_or_else(PoisonError::into_inner).chain.extend(validated);
        let output = self.inner.poll_output()?;
        match &output {
            Output::Send(sent) => self.begin(sent),
            Output::Close(exchange) => self.end(*exchange),
            _ => {}
        }
        Some(output)
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.inner.poll_timeout()
    }
}

impl Step {
    pub(super) fn to_json(&self) -> Value {
        json!({
            "server": self.server.to_string(),
            "transport": self.transport.to_string(),
            "name": self.name.to_string(),
            "type": self.rtype.to_string(),
            "milliseconds": milliseconds(self.elapsed),
            "result": self.result.to_string(),
        })
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { server, transport, name, rtype, elapsed, result, .. } = self;
        let milliseconds = milliseconds(*elapsed);
        write!(f, "{server} over {transport} in {milliseconds:.3} ms: {name} {rtype}: {result}")
    }
}

impl fmt::Display for StepResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoResponse => f.write_str("no response"),
            Self::Failed(SendFailure::Refused) => f.write_str("connection refused"),
            Self::Failed(SendFailure::Unreachable) => f.write_str("network unreachable"),
            Self::Failed(SendFailure::Local) => f.write_str("no free socket"),
            Self::Malformed => f.write_str("malformed response"),
            Self::Response(message) => f.write_str(&describe(message)),
        }
    }
}

/// Describes what a response contains, and where the resolver continues.
fn describe(message: &Message) -> String {
    let rcode = message.rcode();
    let data = |section| message.section(section).filter(|record: &&Record| record.rtype != Rtype::RRSIG);
    let authority = |rtype| data(Section::Authority).filter(move |record| record.rtype == rtype);
    let answer: Vec<String> = data(Section::Answer).map(short_text).collect();
    if message.header.flags & flags::TC != 0 {
        "truncated".to_owned()
    } else if !answer.is_empty() {
        let rcode = if rcode == Rcode::NOERROR { String::new() } else { format!("{}, ", rcode_name(rcode)) };
        format!("{rcode}answer {}", list(&answer, "record"))
    } else if let (Rcode::NOERROR, None, Some(first)) =
        (rcode, authority(Rtype::SOA).next(), authority(Rtype::NS).next())
    {
        let servers: Vec<String> = authority(Rtype::NS).map(|record| server_text(record, message)).collect();
        format!("referral to {}, servers {}", first.owner, list(&servers, "server"))
    } else if rcode == Rcode::NOERROR {
        "no data".to_owned()
    } else {
        rcode_name(rcode)
    }
}

/// The first items, and the number of the others.
fn list(items: &[String], noun: &str) -> String {
    let shown = items.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match items.len().saturating_sub(SHOWN) {
        0 => shown,
        others => format!("{shown} and {}", count_text(others, &format!("other {noun}"))),
    }
}

fn short_text(record: &Record) -> String {
    let (rtype, rdata) = type_and_rdata(record);
    format!("{rtype} {rdata}")
}

/// The name of a nameserver with the addresses that the response has for it.
fn server_text(ns: &Record, message: &Message) -> String {
    let is_address = |record: &&Record| {
        matches!(record.rtype, Rtype::A | Rtype::AAAA) && record.owner.wire().eq_ignore_ascii_case(&ns.rdata)
    };
    let addresses = message.section(Section::Additional).filter(is_address);
    let addresses: Vec<String> = addresses.map(|record| type_and_rdata(record).1).collect();
    let name = type_and_rdata(ns).1;
    if addresses.is_empty() { name } else { format!("{name} ({})", addresses.join(" ")) }
}
