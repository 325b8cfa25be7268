//! Tests of the simulator with small machines.

use super::*;
use crate::forwarder::{Forwarder, RETRY, SERVER};
use nonesuch_net::machine::{Event, Output, Upstream};
use nonesuch_proto::message::{Header, flags, push_query};
use nonesuch_proto::{Name, Rtype};
use std::time::Instant;

const CLIENT: &str = "127.0.0.1:4000";

fn query(id: u16) -> Vec<u8> {
    let mut out = Vec::new();
    push_query(&"www.example.".parse::<Name>().unwrap(), Rtype::A, id, flags::RD, &mut out);
    out
}

/// A server that sends the query back as a response.
fn echo(query: &ServerQuery<'_>, _now: Now) -> Reaction {
    let mut message = query.message.to_vec();
    message[2] |= 0x80;
    Reaction::answer(query.server, message)
}

fn ask<N: Network>(simulator: &mut Simulator<'_, N>, milliseconds: u64, id: u16) -> ClientToken {
    let at = Duration::from_millis(milliseconds);
    simulator.query_at(at, 0, CLIENT.parse().unwrap(), Transport::Udp, query(id))
}

#[test]
fn a_reply_takes_two_times_the_delay() {
    let mut simulator = Simulator::new(Options::default(), vec![Forwarder::boxed(1)], echo);
    let token = ask(&mut simulator, 5, 7);
    simulator.run_until_answered().unwrap();
    let reply = simulator.reply(token).unwrap();
    assert_eq!(reply.at, Duration::from_millis(25));
    assert_eq!(Header::read(reply.message.as_ref().unwrap()).unwrap().id, 7);
    assert_eq!((simulator.open_exchanges(), simulator.statistics().sent), (0, 1));
}

#[test]
fn an_unanswered_query_is_sent_again_and_then_fails() {
    let silent = |_: &ServerQuery<'_>, _: Now| Reaction::SILENCE;
    let mut simulator = Simulator::new(Options::default(), vec![Forwarder::boxed(3)], silent);
    let token = ask(&mut simulator, 0, 7);
    simulator.run_until_answered().unwrap();
    let reply = simulator.reply(token).unwrap();
    assert_eq!(reply.at, RETRY * 3);
    assert_eq!(Header::read(reply.message.as_ref().unwrap()).unwrap().rcode().0, 2);
}

#[test]
fn a_truncated_response_leads_to_tcp_with_one_more_round_trip() {
    let path = Path { truncation: 1.0, ..Path::default() };
    let options = Options { default_path: path, ..Options::default() };
    let mut simulator = Simulator::new(options, vec![Forwarder::boxed(2)], echo);
    let token = ask(&mut simulator, 0, 7);
    simulator.run_until_answered().unwrap();
    assert_eq!(simulator.reply(token).unwrap().at, Duration::from_millis(20 + 40));
    let transports = simulator.trace().entries().filter_map(|entry| match entry.event {
        TraceEvent::Send(_, _, transport, _) => Some(transport),
        _ => None,
    });
    assert_eq!(transports.collect::<Vec<_>>(), [Transport::Udp, Transport::Tcp]);
}

#[test]
fn a_machine_that_forgets_a_client_hangs() {
    struct Forgetful;
    impl Machine for Forgetful {
        fn handle_event(&mut self, _event: Event<'_>, _now: Now) {}
        fn handle_timeout(&mut self, _now: Now) {}
        fn poll_output(&mut self) -> Option<Output> {
            None
        }
        fn poll_timeout(&mut self) -> Option<Instant> {
            None
        }
    }
    let mut simulator = Simulator::new(Options::default(), vec![Box::new(Forgetful)], echo);
    let token = ask(&mut simulator, 1, 7);
    let fault = simulator.run_until_answered().unwrap_err();
    assert_eq!(fault, Fault::Hang { unanswered: vec![token], at: Duration::from_millis(1) });
}

#[test]
fn patience_has_an_end() {
    let silent = |_: &ServerQuery<'_>, _: Now| Reaction::SILENCE;
    let options = Options { patience: Duration::from_secs(1), ..Options::default() };
    let mut simulator = Simulator::new(options, vec![Forwarder::boxed(9)], silent);
    ask(&mut simulator, 0, 7);
    assert!(matches!(simulator.run_until_answered(), Err(Fault::Hang { .. })));
}

/// Does one thing wrong at each query.
struct Wrong(Option<Output>, bool);

impl Machine for Wrong {
    fn handle_event(&mut self, _event: Event<'_>, _now: Now) {
        self.1 = true;
    }
    fn handle_timeout(&mut self, _now: Now) {}
    fn poll_output(&mut self) -> Option<Output> {
        self.0.clone().filter(|_| self.1)
    }
    fn poll_timeout(&mut self) -> Option<Instant> {
        None
    }
}

#[test]
fn violations_of_the_interface_are_faults() {
    let (worker, exchange, token) = (0, ExchangeId(1), ClientToken(1));
    let server = SERVER.parse().unwrap();
    let send = Upstream { exchange, server, transport: Transport::Udp, message: query(1) };
    // Each machine repeats its output.
    let cases = [
        (Output::Send(send), Fault::ExchangeReused { worker, exchange }),
        (Output::Close(exchange), Fault::UnknownExchange { worker, exchange }),
        (Output::Reply(token, query(1)), Fault::UnknownToken { worker, token }),
        (Output::Drop(ClientToken(8)), Fault::UnknownToken { worker, token: ClientToken(8) }),
        (Output::Wake(vec![1]), Fault::UnknownWorker { worker, woken: 1 }),
        (Output::Wake(vec![]), Fault::TooManyOutputs { worker, at: Duration::ZERO }),
    ];
    for (output, expected) in cases {
        let machine: Box<dyn Machine> = Box::new(Wrong(Some(output), false));
        let mut simulator = Simulator::new(Options::default(), vec![machine], echo);
        ask(&mut simulator, 0, 7);
        assert_eq!(simulator.run_for(Duration::from_secs(1)), Err(expected));
    }
}

#[test]
fn a_machine_with_a_timeout_that_stays_due_is_a_fault() {
    struct Busy(Option<Instant>);
    impl Machine for Busy {
        fn handle_event(&mut self, _event: Event<'_>, now: Now) {
            self.0 = Some(now.instant);
        }
        fn handle_timeout(&mut self, _now: Now) {}
        fn poll_output(&mut self) -> Option<Output> {
            None
        }
        fn poll_timeout(&mut self) -> Option<Instant> {
            self.0
        }
    }
    let options = Options { turn_limit: 1000, ..Options::default() };
    let mut simulator = Simulator::new(options, vec![Box::new(Busy(None))], echo);
    ask(&mut simulator, 0, 7);
    let expected = Fault::TooManyTurns { turns: 1000, at: Duration::ZERO };
    assert_eq!(simulator.run_until_answered(), Err(expected));
}

#[test]
fn messages_of_other_senders_and_for_ended_exchanges_are_discarded() {
    let other: SocketAddr = "192.0.2.66:53".parse().unwrap();
    let network = move |query: &ServerQuery<'_>, _: Now| {
        let delivery = |from, milliseconds| Delivery {
            delay: Duration::from_millis(milliseconds),
            from,
            message: query.message.to_vec(),
        };
        Reaction::Messages(vec![delivery(other, 0), delivery(query.server, 1), delivery(query.server, 2)])
    };
    let mut simulator = Simulator::new(Options::default(), vec![Forwarder::boxed(1)], network);
    ask(&mut simulator, 0, 7);
    simulator.run_for(Duration::from_secs(1)).unwrap();
    let reasons = simulator.trace().entries().filter_map(|entry| match entry.event {
        TraceEvent::Discarded(_, _, reason) => Some(reason),
        _ => None,
    });
    assert_eq!(reasons.collect::<Vec<_>>(), [DiscardReason::OtherSender, DiscardReason::ExchangeEnded]);
    assert_eq!((simulator.statistics().received, simulator.time()), (1, Duration::from_secs(1)));
}

#[test]
fn failures_reach_the_machine_and_the_number_of_exchanges_is_limited() {
    let refused = |_: &ServerQuery<'_>, _: Now| Reaction::Failure(SendFailure::Refused);
    let mut simulator = Simulator::new(Options::default(), vec![Forwarder::boxed(1)], refused);
    let token = ask(&mut simulator, 0, 7);
    simulator.run_until_answered().unwrap();
    assert_eq!(simulator.reply(token).unwrap().at, Duration::from_millis(20));

    let options = Options { exchange_limit: 1, ..Options::default() };
    let mut simulator = Simulator::new(options, vec![Forwarder::boxed(1)], echo);
    let tokens = [ask(&mut simulator, 0, 7), ask(&mut simulator, 0, 8)];
    simulator.run_until_answered().unwrap();
    let at = tokens.map(|token| simulator.reply(token).unwrap().at);
    assert_eq!(at, [Duration::from_millis(20), Duration::ZERO]);
    assert_eq!((simulator.statistics().sent, simulator.open_exchanges()), (1, 0));
}

#[test]
fn a_change_of_the_clock_changes_only_unix_time() {
    let mut simulator = Simulator::new(Options::default(), vec![Forwarder::boxed(1)], echo);
    let before = simulator.now();
    simulator.set_clock_at(Duration::from_secs(5), -100);
    simulator.run_for(Duration::from_secs(10)).unwrap();
    let after = simulator.now();
    assert_eq!(after.instant - before.instant, Duration::from_secs(10));
    assert_eq!(after.unix, before.unix + 10 - 100);
}

#[test]
fn time_ends_without_an_overflow() {
    let silent = |_: &ServerQuery<'_>, _: Now| Reaction::SILENCE;
    let mut simulator = Simulator::new(Options::default(), vec![Forwarder::boxed(1)], silent);
    simulator.run_for(Duration::MAX).unwrap();
    ask(&mut simulator, 0, 7);
    simulator.run_for(Duration::MAX).unwrap();
    assert_eq!(simulator.time(), END_OF_TIME);
}

/// Runs 200 queries over a bad path and returns the trace.
fn run_bad_path(seed: u64) -> Trace {
    let path = Path {
        delay: Duration::from_millis(20),
        jitter: Duration::from_millis(300),
        loss: 0.2,
        duplication: 0.2,
        corruption: 0.1,
        truncation: 0.1,
        datagram_limit: 1232,
    };
    let options = Options { seed, default_path: path, ..Options::default() };
    let machines = vec![Forwarder::boxed(5), Forwarder::boxed(5)];
    let mut simulator = Simulator::new(options, machines, echo);
    for id in 0..200 {
        let at = Duration::from_millis(u64::from(id) * 3);
        let worker = usize::from(id % 2);
        simulator.query_at(at, worker, CLIENT.parse().unwrap(), Transport::Udp, query(id));
    }
    if let Err(fault) = simulator.run_until_answered() {
        panic!("{fault}\n{}", simulator.trace());
    }
    simulator.run_for(Duration::from_secs(5)).unwrap();
    assert_eq!(simulator.open_exchanges(), 0);
    simulator.trace().clone()
}

#[test]
fn the_same_seed_gives_the_same_trace() {
    let trace = run_bad_path(11);
    assert_eq!(trace, run_bad_path(11));
    assert_eq!(trace.to_string(), run_bad_path(11).to_string());
    assert_ne!(trace, run_bad_path(12));
    let has = |find: fn(&TraceEvent) -> bool| trace.entries().any(|entry| find(&entry.event));
    assert!(has(|event| matches!(event, TraceEvent::Lost(_, Loss::Query))));
    assert!(has(|event| matches!(event, TraceEvent::Lost(_, Loss::Response))));
    assert!(has(|event| matches!(event, TraceEvent::Discarded(_, _, DiscardReason::ExchangeEnded))));
    // Responses arrive in another order than their queries were sent.
    let order: Vec<ExchangeId> = trace
        .entries()
        .filter(|entry| entry.worker == Some(0))
        .filter_map(|entry| match entry.event {
            TraceEvent::Response(exchange, ..) => Some(exchange),
            _ => None,
        })
        .collect();
    assert!(!order.is_sorted());
}

#[test]
fn a_trace_keeps_its_newest_entries() {
    let mut trace = Trace::new(2);
    for exchange in 0..5 {
        trace.push(Duration::from_secs(exchange), Some(0), TraceEvent::Closed(ExchangeId(exchange)));
    }
    assert_eq!((trace.entries().count(), trace.removed()), (2, 3));
    assert!(trace.to_string().ends_with("   4.000000 worker=0 closed 4\n"));
}
