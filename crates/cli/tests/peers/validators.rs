//! Comparison of validators on a local tree with a zone for each kind of DNSSEC fault: `nonesuch
//! resolve`, Unbound, BIND, Knot Resolver and PowerDNS Recursor. Without `--ignored`, only the first:
//!
//!     cargo test -p nonesuch-cli --test peers -- validators --nocapture
//!     cargo test -p nonesuch-cli --test peers -- validators --nocapture --ignored
//!
//! The test needs the right to create a network namespace. It compares RCODE and AD flag with the
//! expected result of the tree: of a new process, of the same process again, and of another process
//! in shuffled order, also twice. It also compares the extended errors of `nonesuch resolve`. Another
//! program without a reply in time fails as one with SERVFAIL does, and is asked once more after an
//! unexpected failure. Differences are listed by cause in `validators/classes.rs` and in
//! docs/differences.md. Any other difference fails the test, and so does a listed one that does not
//! occur.
//!
//! `Tree::respond` serves the tree: `nonesuch serve` omits denial records that a validator would
//! reject.

mod cases;
mod classes;
mod exchange;
mod servers;

use crate::common;
use cases::{Case, Size, Status};
use classes::{CLASSES, OURS};
use exchange::{Reply, ask_all};
use nonesuch_crypto::DigestType;
use nonesuch_lab::peers::Peer;
use nonesuch_lab::tree::Tree;
use nonesuch_net::namespace::{Interface, NetworkNamespace};
use nonesuch_testing::record_skip;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

/// The network of the servers. Knot Resolver queries no loopback address that a delegation names,
/// so the test runs in a network namespace in which this network is local.
const NETWORK: (Ipv4Addr, u8) = (Ipv4Addr::new(198, 18, 255, 254), 16);
const PEERS: [Peer; 4] = [Peer::Unbound, Peer::BindResolver, Peer::KnotResolver, Peer::PowerDnsRecursor];
/// Seed of the shuffled order.
const SEED: u64 = 1;
/// The parts of a comparison.
const RUNS: [&str; 4] = ["cold", "cached", "shuffled", "shuffled and cached"];

/// A kind of validator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Validator {
    Ours,
    Other(Peer),
}

impl Validator {
    fn program(self) -> &'static str {
        match self {
            Self::Ours => OURS,
            Self::Other(peer) => peer.info().programs[0],
        }
    }

    /// The expected status: only Nonesuch knows the experimental algorithms, and zones with unknown
    /// algorithms are insecure (RFC 4035 §5.2).
    fn expected(self, case: &Case) -> Status {
        let is_unknown = self != Self::Ours && case.has_experimental_algorithm();
        if is_unknown { Status::Insecure } else { case.expected }
    }

    /// Starts the validator, and passes its address to `body`.
    fn run<T>(self, tree: &Tree, body: impl FnOnce(SocketAddr) -> T) -> T {
        let folder = common::folder();
        match self {
            Self::Ours => body(servers::start_ours(folder.path(), tree).address),
            Self::Other(peer) => body(servers::start_peer(folder.path(), tree, peer).address),
        }
    }

    /// The status of a reply.
    fn status(self, case: &Case, reply: Option<Reply>) -> Status {
        match case.status(reply) {
            Status::Silent if self != Self::Ours => Status::Fails,
            status => status,
        }
    }

    /// The replies to the questions of `order`. Another program is asked once more after an unexpected
    /// failure, because it may be late on a busy machine.
    fn ask(self, address: SocketAddr, cases: &[Case], order: &[usize]) -> Vec<Option<Reply>> {
        let mut replies = ask_all(address, cases, order);
        let fails = |index: &usize| {
            let (case, reply) = (&cases[*index], replies[*index]);
            self.status(case, reply) == Status::Fails && self.expected(case) != Status::Fails
        };
        if self != Self::Ours {
            let again: Vec<usize> = order.iter().copied().filter(fails).collect();
            let repeated = ask_all(address, cases, &again);
            again.iter().for_each(|index| replies[*index] = repeated[*index]);
        }
        replies
    }

    /// The replies of the runs.
    fn replies(self, tree: &Tree, cases: &[Case]) -> Vec<Vec<Option<Reply>>> {
        let order: Vec<usize> = (0..cases.len()).collect();
        let mut shuffled = order.clone();
        shuffled.sort_by_key(|index| DigestType::SHA256.digest(&[&SEED.to_be_bytes(), &index.to_be_bytes()]));
        let ask_twice =
            |order: &[usize]| self.run(tree, |address| [(); 2].map(|()| self.ask(address, cases, order)));
        // Both processes wait for time limits most of the time.
        thread::scope(|scope| {
            let second = scope.spawn(|| ask_twice(&shuffled));
            let first = ask_twice(&order);
            first.into_iter().chain(second.join().expect("replies")).collect()
        })
    }
}

/// The replies of each validator in each run. The validators run at the same time.
fn all_replies(validators: &[Validator], tree: &Tree, cases: &[Case]) -> Vec<Vec<Vec<Option<Reply>>>> {
    thread::scope(|scope| {
        let ask = |validator: &Validator| {
            let validator = *validator;
            scope.spawn(move || validator.replies(tree, cases))
        };
        let threads: Vec<_> = validators.iter().map(ask).collect();
        threads.into_iter().map(|thread| thread.join().expect("replies")).collect()
    })
}

fn compare(validators: &[Validator], size: Size) {
    let network = NetworkNamespace::new();
    let Ok(namespace) = network else {
        return record_skip("network namespaces or TUN devices cannot be used");
    };
    let (address, prefix) = NETWORK;
    namespace.add_address(Interface::LOOPBACK, address.into(), prefix).expect("an address");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970").as_secs();
    let tree = Arc::new(cases::tree(size, now as u32));
    let cases = cases::cases(&tree, size);
    let kinds: BTreeSet<&str> = cases.iter().map(|case| &*case.kind).collect();
    let names = cases.iter().map(|case| &case.name).collect::<BTreeSet<_>>().len();
    println!("{names} names, {} questions, {} kinds, {} zones", cases.len(), kinds.len(), tree.zones.len());
    let body = || {
        servers::serve(Arc::clone(&tree));
        all_replies(validators, &tree, &cases)
    };
    let replies = namespace.run(body).expect("a thread in the namespace");
    let mut judge = Judge::default();
    for (validator, runs) in validators.iter().zip(&replies) {
        for (run, replies) in RUNS.iter().zip(runs) {
            cases.iter().zip(replies).for_each(|(case, reply)| judge.judge(*validator, run, case, *reply));
        }
    }
    judge.finish(validators);
}

#[derive(Default)]
struct Judge {
    /// How often each class explained a difference, by program and kind.
    explained: BTreeMap<(&'static str, &'static str, &'static str), usize>,
    unexplained: BTreeSet<String>,
}

impl Judge {
    fn judge(&mut self, validator: Validator, run: &str, case: &Case, reply: Option<Reply>) {
        let (program, found) = (validator.program(), validator.status(case, reply));
        let (expected, Case { kind, name, rtype, .. }) = (validator.expected(case), case);
        if found == expected {
            return self.judge_error(validator, run, case, reply);
        }
        let explanation = CLASSES.iter().find_map(|class| {
            let has_statuses = class.expected == expected && class.found.contains(&found);
            let is_class = has_statuses && class.programs.contains(&program);
            let kind = class.kinds.iter().find(|of_class| is_class && *of_class == kind)?;
            Some((program, class.name, *kind))
        });
        if let Some(explanation) = explanation {
            *self.explained.entry(explanation).or_default() += 1;
        } else {
            let text =
                format!("{program}: {kind}: {expected:?} expected, {found:?} found ({run}, {name} {rtype})");
            self.unexplained.insert(text);
        }
    }

    /// Nonesuch names the cause of a failure.
    fn judge_error(&mut self, validator: Validator, run: &str, case: &Case, reply: Option<Reply>) {
        let (found, expected) = (reply.and_then(|reply| reply.extended_error), case.extended_error);
        let is_compared = validator == Validator::Ours && case.expected == Status::Fails;
        if is_compared && expected.is_some() && found != expected {
            let Case { kind, name, rtype, .. } = case;
            let text = format!(
                "{kind}: extended error {expected:?} expected, {found:?} found ({run}, {name} {rtype})"
            );
            self.unexplained.insert(text);
        }
    }

    /// Fails if a difference has no class, or if a class has no difference.
    fn finish(&self, validators: &[Validator]) {
        for ((program, class, kind), count) in &self.explained {
            println!("{program}: {class}: {kind}: {count}");
        }
        let certain = CLASSES.iter().filter(|class| class.is_certain).flat_map(|class| {
            let programs = validators.iter().map(|validator| validator.program());
            let programs = programs.filter(|program| class.programs.contains(program));
            programs.flat_map(move |program| class.kinds.iter().map(move |kind| (program, class.name, *kind)))
        });
        let missing: Vec<_> = certain.filter(|row| !self.explained.contains_key(row)).collect();
        let unexplained: Vec<&str> = self.unexplained.iter().map(String::as_str).collect();
        assert!(
            missing.is_empty() && unexplained.is_empty(),
            "{} differences without class:\n{}\nclasses without difference: {missing:?}",
            unexplained.len(),
            unexplained.join("\n")
        );
    }
}

#[test]
fn ours_finds_the_expected_status_of_2_000_names() {
    compare(&[Validator::Ours], Size { names: 3, questions: 12 });
}

#[test]
#[ignore = "20,000 questions to each of five programs, in minutes"]
fn validators_find_the_expected_status_of_20_000_names() {
    let peers = PEERS.into_iter().filter(|peer| common::is_installed(peer.info().programs[0]));
    let validators: Vec<Validator> =
        [Validator::Ours].into_iter().chain(peers.map(Validator::Other)).collect();
    compare(&validators, Size { names: 60, questions: 110 });
}

#[test]
fn every_class_of_validators_is_documented() {
    crate::assert_documented(CLASSES.iter().map(|class| class.name));
}
