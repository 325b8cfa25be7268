//! Tests of the runner with a forwarder as the machine.

use super::*;
use crate::forwarder::Forwarder;
use crate::rpl::MatchRule;
use crate::simulator::Fault;
use nonesuch_net::Transport;
use std::cell::RefCell;
use std::path::Path;

/// Forwards to the root server of the scenario, and sends a query up to 100 times.
fn forwarder(settings: &ScenarioSettings) -> Result<Box<dyn Machine>, Unsupported> {
    let root = settings.root_servers.first().map(|(_, address)| *address);
    let stub = settings.stub_zones.first().and_then(|zone| zone.addresses.first().copied());
    let server = root.or(stub).ok_or_else(|| Unsupported("no server".to_owned()))?;
    Ok(Forwarder::to(server, 100))
}

fn deckard(body: &str) -> Scenario {
    let config = "stub-addr: 192.0.2.1\nquery-minimization: off\n";
    let text = format!("{config}CONFIG_END\nSCENARIO_BEGIN x\n{body}\nSCENARIO_END\n");
    Scenario::parse(&text, Path::new("x.rpl"), None).unwrap()
}

fn unbound(body: &str) -> Scenario {
    let config = "server:\n\tqname-minimisation: no\nstub-zone:\n\tname: \".\"\n\tstub-addr: 192.0.2.1\n";
    let text = format!("{config}CONFIG_END\nSCENARIO_BEGIN x\n{body}\nSCENARIO_END\n");
    Scenario::parse(&text, Path::new("x.rpl"), None).unwrap()
}

fn outcome(scenario: &Scenario) -> Outcome {
    run(scenario, &forwarder, RunOptions::default())
}

fn failed(scenario: &Scenario) -> Failed {
    match outcome(scenario) {
        Outcome::Failed(failed) => *failed,
        other => panic!("{other:?}"),
    }
}

/// Returns an entry for `www.example. IN A`.
fn entry(lines: &str, answer: &str) -> String {
    let answer = if answer.is_empty() { String::new() } else { format!("SECTION ANSWER\n{answer}\n") };
    format!("ENTRY_BEGIN\n{lines}\nSECTION QUESTION\nwww.example. IN A\n{answer}ENTRY_END\n")
}

fn range(first: u32, last: u32, address: &str, entries: &[String]) -> String {
    format!("RANGE_BEGIN {first} {last}\nADDRESS {address}\n{}RANGE_END\n", entries.concat())
}

const SERVE: &str = "MATCH opcode qtype qname\nADJUST copy_id\nREPLY QR AA NOERROR";
const EXPECT: &str = "MATCH all\nREPLY QR AA RA NOERROR";
const A: &str = "www.example. IN A 192.0.2.80";

fn query(step: u32) -> String {
    format!("STEP {step} QUERY\n{}", entry("REPLY RD", ""))
}

fn expect(step: u32, lines: &str, answer: &str) -> String {
    format!("STEP {step} CHECK_ANSWER\n{}", entry(lines, answer))
}

#[test]
fn a_scenario_with_the_expected_reply_passes() {
    let servers = range(0, 100, "192.0.2.1", &[entry(SERVE, A)]);
    let body = servers + &query(1) + &expect(2, EXPECT, A) + "STEP 3 TIME_PASSES ELAPSE 7200\n";
    assert_eq!(outcome(&deckard(&body)), Outcome::Passed);
}

#[test]
fn a_wrong_reply_is_a_mismatch() {
    let servers = range(0, 100, "192.0.2.1", &[entry(SERVE, A)]);
    let scenario = deckard(&(servers + &query(1) + &expect(2, EXPECT, "www.example. IN A 192.0.2.81")));
    let failed = failed(&scenario);
    let Failure::Mismatch { step: 2, line, mismatch, reply } = &failed.failure else { panic!("{failed}") };
    assert_eq!((*line, mismatch.rule), (scenario.steps[1].line, MatchRule::Answer));
    assert!(mismatch.expected.contains("192.0.2.81") && mismatch.received.contains("192.0.2.80"));
    assert!(reply.contains("192.0.2.80"));
    assert!(failed.trace.contains("reply 1: id 1, www.example. IN A, NOERROR, QR AA RA"), "{}", failed.trace);
}

#[test]
fn an_undefined_query_gets_servfail_and_fails_the_scenario() {
    // The range has the address and the step, so the second range is not considered.
    let other = "ENTRY_BEGIN\nMATCH qname\nSECTION QUESTION\nother. IN A\nENTRY_END\n".to_owned();
    let servers = range(0, 100, "192.0.2.1", &[other]) + &range(0, 100, "192.0.2.1", &[entry(SERVE, A)]);
    let body = servers + &query(1) + &expect(2, "MATCH rcode\nREPLY SERVFAIL", "");
    let failed = failed(&deckard(&body));
    assert_eq!(failed.failure, Failure::UndefinedQueries);
    let undefined = UndefinedQuery {
        step: 1,
        server: "192.0.2.1:53".parse().unwrap(),
        transport: Transport::Udp,
        question: "www.example. IN A".to_owned(),
    };
    assert_eq!(failed.undefined, [undefined]);
}

#[test]
fn ranges_apply_to_their_steps() {
    let other = "www.example. IN A 192.0.2.81";
    let servers =
        range(0, 9, "192.0.2.1", &[entry(SERVE, A)]) + &range(10, 19, "192.0.2.1", &[entry(SERVE, other)]);
    let body = servers + &query(1) + &expect(2, EXPECT, A) + &query(10) + &expect(11, EXPECT, other);
    assert_eq!(outcome(&deckard(&body)), Outcome::Passed);
}

#[test]
fn a_reply_step_answers_one_query_of_this_or_an_earlier_step() {
    let reply = |step: u32, address: &str| {
        let record = "SECTION ADDITIONAL\nns. IN A 192.0.2.1\n";
        let entry = entry(SERVE, &format!("www.example. IN A {address}"));
        format!("STEP {step} REPLY\n{}", entry.replace("ENTRY_END", &format!("{record}ENTRY_END")))
    };
    let rules = "MATCH rcode answer\nREPLY NOERROR";
    let expected = |step, address| expect(step, rules, &format!("www.example. IN A {address}"));
    let body = query(1) + &reply(2, "192.0.2.7") + &reply(3, "192.0.2.8") + &expected(4, "192.0.2.7");
    assert_eq!(outcome(&deckard(&body)), Outcome::Passed);
    // The second query is asked after the steps of the replies.
    let failed = failed(&deckard(&(body + &query(5) + &expected(6, "192.0.2.8"))));
    assert!(matches!(failed.failure, Failure::Mismatch { step: 6, .. }), "{failed}");
}

#[test]
fn a_client_waits_for_five_seconds() {
    let silent = range(0, 100, "192.0.2.1", &[entry("MATCH qname\nADJUST do_not_answer", "")]);
    let failed_scenario = deckard(&(silent + &query(1)));
    assert!(matches!(failed(&failed_scenario).failure, Failure::NoReply { step: 1, .. }));
}

#[test]
fn only_listed_addresses_serve() {
    let servers = range(0, 100, "192.0.2.2", &[entry(SERVE, A)]);
    let silent = failed(&deckard(&(servers.clone() + &query(1))));
    assert!(matches!(silent.failure, Failure::NoReply { .. }));
    assert!(silent.undefined.is_empty());
    // Nothing listens on a loopback address: the forwarder gives up after its attempts.
    let loopback = |settings: &ScenarioSettings| {
        assert_eq!(settings.qname_minimisation, Some(false));
        Ok(Forwarder::to("127.0.0.1:53".parse().unwrap(), 3))
    };
    let scenario = deckard(&(servers + &query(1) + &expect(2, "MATCH rcode\nREPLY SERVFAIL", "")));
    assert_eq!(run(&scenario, &loopback, RunOptions::default()), Outcome::Passed);
}

#[test]
fn a_raw_query_needs_no_reply() {
    let servers = range(0, 100, "192.0.2.1", &[entry(SERVE, A)]);
    let raw = "STEP 1 QUERY\nENTRY_BEGIN\nRAW\nb5c9ca3d\nENTRY_END\n";
    let body = servers.clone() + raw + &query(2) + &expect(3, EXPECT, A);
    assert_eq!(outcome(&deckard(&body)), Outcome::Passed);
    let failed = failed(&deckard(&(servers + raw + &expect(3, EXPECT, A))));
    assert!(matches!(failed.failure, Failure::NoReply { step: 3, .. }));
}

#[test]
fn a_mandatory_entry_must_be_used() {
    let unused = format!("ENTRY_BEGIN\nMANDATORY\n{SERVE}\nSECTION QUESTION\nother. IN A\nENTRY_END\n");
    let servers = range(0, 100, "192.0.2.1", &[entry(SERVE, A), unused]);
    let scenario = deckard(&(servers + &query(1) + &expect(2, EXPECT, A)));
    let line = scenario.ranges[0].entries[1].line;
    assert_eq!(failed(&scenario).failure, Failure::MandatoryEntry(line));
}

#[test]
fn a_violation_of_the_interface_is_a_failure() {
    struct Broken;
    impl Machine for Broken {
        fn handle_event(
            &mut self,
            _event: nonesuch_net::machine::Event<'_>,
            _now: nonesuch_net::machine::Now,
        ) {
        }
        fn handle_timeout(&mut self, _now: nonesuch_net::machine::Now) {}
        fn poll_output(&mut self) -> Option<nonesuch_net::machine::Output> {
            Some(nonesuch_net::machine::Output::Close(nonesuch_net::machine::ExchangeId(9)))
        }
        fn poll_timeout(&mut self) -> Option<std::time::Instant> {
            None
        }
    }
    let outcome = run(&deckard(&query(1)), &|_| Ok(Box::new(Broken)), RunOptions::default());
    let Outcome::Failed(failed) = outcome else { panic!("{outcome:?}") };
    assert!(matches!(failed.failure, Failure::Fault(Fault::UnknownExchange { .. })));
}

#[test]
fn a_scenario_without_a_mode_runs_with_and_without_minimisation() {
    let servers = range(0, 100, "192.0.2.1", &[entry(SERVE, A)]);
    let mut scenario = deckard(&(servers + &query(1) + &expect(2, EXPECT, A)));
    scenario.settings.qname_minimisation = None;
    let modes = RefCell::new(Vec::new());
    let make = |settings: &ScenarioSettings| {
        modes.borrow_mut().push(settings.qname_minimisation);
        forwarder(settings)
    };
    assert_eq!(run(&scenario, &make, RunOptions::default()), Outcome::Passed);
    assert_eq!(*modes.borrow(), [Some(true), Some(false)]);
}

#[test]
fn unsupported_scenarios_are_not_applicable() {
    let cases = [
        unbound("STEP 1 ASSIGN t0 = 1"),
        unbound(&format!("STEP 1 QUERY\n{}", entry("ADJUST sleep=1", ""))),
        deckard("STEP 1 TIMEOUT"),
    ];
    for scenario in cases {
        assert!(matches!(outcome(&scenario), Outcome::NotApplicable(reason) if reason.starts_with("line ")));
    }
    let refuse = |_: &ScenarioSettings| Err(Unsupported("DNS64".to_owned()));
    let outcome = run(&deckard(&query(1)), &refuse, RunOptions::default());
    assert_eq!(outcome, Outcome::NotApplicable("DNS64".to_owned()));
}

#[test]
fn unbound_answers_from_the_last_range_that_matches() {
    let other = "www.example. IN A 192.0.2.81";
    let none = "ENTRY_BEGIN\nMATCH qname\nSECTION QUESTION\nother. IN A\nENTRY_END\n".to_owned();
    let servers = range(0, 9, "192.0.2.1", &[entry(SERVE, other)])
        + &range(0, 9, "192.0.2.1", &[entry(SERVE, A)])
        + &range(0, 9, "192.0.2.1", &[none]);
    assert_eq!(outcome(&unbound(&(servers + &query(1) + &expect(2, EXPECT, A)))), Outcome::Passed);
}

#[test]
fn unbound_checks_a_query_to_a_server_and_answers_it() {
    let out_query = |lines: &str, answer: &str| {
        format!("STEP 2 CHECK_OUT_QUERY ADDRESS 192.0.2.1\n{}", entry(lines, answer))
    };
    let at_once = query(1) + &out_query(&format!("{SERVE}\nREPLY QR"), A) + &expect(3, EXPECT, A);
    assert_eq!(outcome(&unbound(&at_once)), Outcome::Passed);
    let reply = format!("STEP 3 REPLY\n{}", entry(SERVE, A));
    let later = query(1) + &out_query("MATCH qname", "") + &reply + &expect(4, EXPECT, A);
    assert_eq!(outcome(&unbound(&later)), Outcome::Passed);
    let other = (query(1) + &out_query("MATCH qname TCP", "")).replace("STEP 2", "STEP 3");
    assert!(matches!(failed(&unbound(&other)).failure, Failure::TooManyRounds(_) | Failure::NoQuery { .. }));
}

#[test]
fn unbound_lets_time_pass_until_a_timeout_and_fails_queries() {
    // After the timeout of the first query, the forwarder sends a second one, which fails; the third
    // one is answered.
    let reply = format!("STEP 5 REPLY\n{}", entry(SERVE, A));
    let body = query(1) + "STEP 2 TIMEOUT\nSTEP 3 ERROR\nSTEP 4 NOTHING\n" + &reply + &expect(6, EXPECT, A);
    assert_eq!(outcome(&unbound(&body)), Outcome::Passed);
    let failed = failed(&unbound("STEP 1 TIMEOUT"));
    assert!(matches!(failed.failure, Failure::NoQuery { step: 1, .. }));
}

#[test]
fn unbound_expects_no_open_query_and_no_unchecked_reply_at_the_end() {
    let pending = failed(&unbound(&query(1)));
    assert_eq!((pending.failure, pending.undefined.len()), (Failure::UndefinedQueries, 1));
    let servers = range(0, 9, "192.0.2.1", &[entry(SERVE, A)]);
    let unchecked = failed(&unbound(&(servers.clone() + &query(1) + "STEP 2 NOTHING\n")));
    assert_eq!(unchecked.failure, Failure::UncheckedReplies(1));
    let mismatch = failed(&unbound(&(servers + &query(1) + &expect(2, "MATCH rcode\nREPLY REFUSED", ""))));
    assert!(matches!(mismatch.failure, Failure::Mismatch { step: 2, .. }));
}

#[test]
fn the_list_of_exceptions_is_well_formed() {
    let list = Exceptions::built_in().unwrap();
    assert!(list.iter().count() > 0);
    assert_eq!(Exceptions::parse("a.rpl = because: x"), Err(ExceptionsError::Line(1)));
    assert_eq!(Exceptions::parse("# x\n\na.rpl = deviation:"), Err(ExceptionsError::Line(3)));
    let twice = "a.rpl = deviation: RFC 1\na.rpl = not-applicable: x";
    assert_eq!(Exceptions::parse(twice), Err(ExceptionsError::Duplicate(2, "a.rpl".to_owned())));
    let list = Exceptions::parse("dir/a.rpl = deviation: RFC 1").unwrap();
    assert!(list.find(Path::new("/x/dir/a.rpl")).is_some());
    assert!(list.find(Path::new("/x/other/a.rpl")).is_none());
    assert!(list.find(Path::new("/x/dir/ba.rpl")).is_none());
}

#[test]
fn all_public_scenarios_are_read() {
    let Some(directory) = nonesuch_testing::public_data("deckard") else { return };
    let mut failures = Vec::new();
    let files = find_scenarios(&[directory]).unwrap();
    for file in &files {
        match Scenario::read(file, None) {
            Ok(scenario) => {
                assert_eq!(scenario.settings.dialect, Dialect::Deckard, "{}", file.display());
                assert!(!scenario.steps.is_empty(), "{}", file.display());
            }
            Err(error) => failures.push(error.to_string()),
        }
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
    assert_eq!(files.len(), 193);
}

#[test]
fn each_listed_scenario_exists() {
    let Some(directory) = nonesuch_testing::public_data("deckard") else { return };
    let files = find_scenarios(&[directory]).unwrap();
    for exception in Exceptions::built_in().unwrap().iter() {
        assert!(files.iter().any(|file| file.ends_with(&exception.file)), "{}", exception.file);
    }
}

#[test]
fn a_suite_compares_outcomes_with_the_list() {
    let directory = tempfile::tempdir().unwrap();
    let write = |file: &str, servers: &str, answer: &str| {
        let config = "stub-addr: 192.0.2.1\nquery-minimization: off\nCONFIG_END\nSCENARIO_BEGIN x\n";
        let text = format!("{config}{servers}{}{}SCENARIO_END\n", query(1), expect(2, EXPECT, answer));
        let path = directory.path().join(file);
        std::fs::write(&path, text).unwrap();
        path
    };
    let servers = range(0, 100, "192.0.2.1", &[entry(SERVE, A)]);
    let wrong = "www.example. IN A 192.0.2.81";
    let files = [
        write("a-passes.rpl", &servers, A),
        write("b-fails.rpl", &servers, wrong),
        write("c-deviates.rpl", &servers, wrong),
        write("d-deviates.rpl", &servers, wrong),
        write("e-is-not-applicable.rpl", &servers, wrong),
        write("f-listed.rpl", &servers, A),
        write("g-malformed.rpl", "garbage\n", A),
    ];
    std::fs::write(directory.path().join("notes.txt"), "x").unwrap();
    assert_eq!(find_scenarios(&[directory.path().to_owned()]).unwrap(), files);
    let list = "c-deviates.rpl = deviation: RFC 1\nd-deviates.rpl = deviation: RFC 2\n\
        e-is-not-applicable.rpl = not-applicable: policies\nf-listed.rpl = deviation: RFC 2\n";
    let suite = Suite { exceptions: Exceptions::parse(list).unwrap(), ..Suite::default() };
    let mut counts = Counts::default();
    let verdicts: Vec<Verdict> = files.iter().map(|file| suite.judge(file, &forwarder)).collect();
    verdicts.iter().for_each(|verdict| counts.add(verdict));
    let expected = Counts { passed: 1, failed: 3, not_applicable: 1, deviations: 2 };
    assert_eq!(counts, expected);
    assert_eq!(verdicts[5], Verdict::ListedButPasses(4));
    assert!(matches!(verdicts[6], Verdict::Malformed(_)));
    let failures = verdicts.iter().map(Verdict::is_failure).collect::<Vec<_>>();
    assert_eq!(failures, [false, true, false, false, false, true, true]);
}

#[test]
fn a_panic_of_the_machine_is_a_verdict() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("x.rpl");
    let text = format!("stub-addr: 192.0.2.1\nCONFIG_END\nSCENARIO_BEGIN x\n{}SCENARIO_END\n", query(1));
    std::fs::write(&file, text).unwrap();
    let verdict = Suite::default().judge(&file, &|_| panic!("no machine"));
    assert_eq!(verdict, Verdict::Panicked("no machine".to_owned()));
}

#[test]
fn a_run_is_the_same_each_time() {
    let servers = range(0, 100, "192.0.2.1", &[entry("MATCH qname\nADJUST do_not_answer", "")]);
    let scenario = deckard(&(servers + &query(1) + &query(2)));
    assert_eq!(failed(&scenario), failed(&scenario));
}
