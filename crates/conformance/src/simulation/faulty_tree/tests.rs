use super::*;
use crate::simulator::Simulator;
use nonesuch_net::machine::{Machine, Now};
use nonesuch_proto::message::{Message, Rcode, flags, push_query};
use nonesuch_resolver::hints::Hints;
use nonesuch_resolver::options::ResolverOptions;
use nonesuch_resolver::{Resolver, Shared};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

const ROOT: Ipv4Addr = Ipv4Addr::new(193, 0, 0, 1);
const NETWORK: [u8; 2] = [193, 0];

/// The RCODE of the reply to a question.
fn rcode(question: &TreeQuestion) -> Rcode {
    let tree = FaultyTree::new(ROOT, NETWORK);
    let options =
        ResolverOptions { hints: Hints::new([tree.root_server()]).unwrap(), ..ResolverOptions::default() };
    let now = Now { instant: Instant::now(), unix: 1_800_000_000 };
    let shared = Shared::new(options, [7; 16], &[7; 32], now).unwrap();
    let resolver: Box<dyn Machine> = Box::new(Resolver::new(Arc::new(shared), 0, [7; 32]));
    let network = |query: &ServerQuery<'_>, _: Now| tree.react(query);
    let mut simulator = Simulator::new(Options::default(), vec![resolver], network);
    let mut query = Vec::new();
    push_query(&question.name, question.rtype, 7, flags::RD, &mut query);
    let client: SocketAddr = "127.0.0.1:4000".parse().unwrap();
    let token = simulator.query_at(Duration::ZERO, 0, client, Transport::Tcp, query);
    simulator.run_until_answered().unwrap_or_else(|fault| panic!("{question:?}: {fault}"));
    let reply = simulator.reply(token).and_then(|reply| reply.message.clone()).expect("a reply");
    Message::parse(&reply).expect("a message").rcode()
}

#[test]
fn there_are_enough_faults() {
    let tree = FaultyTree::new(ROOT, NETWORK);
    assert!(tree.labels.len() >= 50, "{}", tree.labels.len());
    let mut kinds: Vec<&str> =
        tree.labels.iter().map(|label| label.trim_end_matches("-one").trim_end_matches("-all")).collect();
    kinds.dedup();
    assert!(kinds.len() >= 30, "{kinds:?}");
    let addresses: std::collections::BTreeSet<IpAddr> =
        tree.listeners().map(|(address, _)| address).collect();
    assert_eq!(addresses.len(), tree.listeners().count());
}

/// With one correct server, each name resolves.
#[test]
fn a_correct_server_is_enough() {
    let questions = FaultyTree::new(ROOT, NETWORK).questions();
    let is_resolvable =
        |fault: &str| ["correct", "name-is-alias"].contains(&fault) || fault.ends_with("-one");
    for question in questions.iter().filter(|question| is_resolvable(&question.fault)) {
        let is_missing = question.name.to_string().starts_with("missing.");
        let expected = if is_missing { Rcode::NXDOMAIN } else { Rcode::NOERROR };
        assert_eq!(rcode(question), expected, "{question:?}");
    }
}
