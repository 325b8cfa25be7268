//! Comparison of this resolver with Unbound, BIND, Knot Resolver and PowerDNS Recursor, without
//! validation, on a local tree with a zone for each kind of fault of a delegation:
//!
//!     cargo test -p nonesuch-cli --test peers -- resolvers --nocapture
//!
//! The test needs the right to create a network namespace. It compares the RCODE and the records of
//! the answer section, without TTLs. A peer without a reply after 12 s fails as one with SERVFAIL
//! does; a question with another reply than ours is asked once more. Differences are listed by cause in
//! `resolvers/classes.rs` and in docs/differences.md. Any other difference fails the test, and so does
//! a listed one that does not occur.

pub(crate) mod classes;
pub(crate) mod exchange;

use crate::common;
use classes::{CLASSES, Class};
use common::configured::Configured;
use exchange::{Reply, ask_all};
use nonesuch_conformance::simulation::{FaultyTree, TreeQuestion};
use nonesuch_conformance::sockets::{self, React};
use nonesuch_lab::peers::{Peer, PeerServer, ResolverSetup, RootServer, Setup, Upstream};
use nonesuch_net::namespace::{Interface, NetworkNamespace};
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Name, Rtype};
use nonesuch_resolver::local_names::known_zones;
use nonesuch_testing::{public_data, record_skip};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::thread;

/// Address of the root server.
const ROOT: Ipv4Addr = Ipv4Addr::new(127, 54, 0, 1);
/// First octets of the other servers. Knot Resolver queries no loopback address that a
/// delegation names, so the test runs in a network namespace in which this network is local.
const NETWORK: [u8; 2] = [193, 0];
const DNS_PORT: u16 = 53;
const PEERS: [Peer; 4] = [Peer::Unbound, Peer::BindResolver, Peer::KnotResolver, Peer::PowerDnsRecursor];

/// Starts the servers of the tree.
fn start_tree() -> FaultyTree {
    let tree = FaultyTree::new(ROOT, NETWORK);
    let served = tree.clone();
    let react: React = Arc::new(move |query| served.react(query));
    for (address, transports) in tree.listeners() {
        sockets::serve(SocketAddr::new(address, DNS_PORT), transports, &react)
            .unwrap_or_else(|error| panic!("{address}: {error}"));
    }
    tree
}

/// A namespace in which the network of the tree is local; `None` if the system does not permit it.
fn namespace() -> Option<NetworkNamespace> {
    let Ok(namespace) = NetworkNamespace::new() else {
        record_skip("network namespaces or TUN devices cannot be used");
        return None;
    };
    let address = Ipv4Addr::new(NETWORK[0], NETWORK[1], 255, 254).into();
    namespace.add_address(Interface::LOOPBACK, address, 16).expect("an address");
    Some(namespace)
}

fn start_ours(folder: &Path, root: &RootServer) -> Configured {
    let RootServer { name, address } = root;
    let hints = folder.join("root.hints");
    fs::write(&hints, format!(". 3600 NS {name}\n{name} 3600 A {address}\n")).expect("written");
    let arguments = ["--listen", "127.0.0.1:0", "--workers", "1", "--hints", common::text(&hints)];
    Configured::start_command("resolve", &arguments, &folder.join("nonesuch"), Stdio::null())
}

fn start_peer(folder: &Path, root: &RootServer, peer: Peer) -> PeerServer {
    let upstream = Upstream::Roots { servers: vec![root.clone()], port: DNS_PORT };
    let setup = Setup {
        resolver: ResolverSetup { upstream, ..ResolverSetup::default() },
        ..Setup::new(&folder.join(format!("{peer:?}")))
    };
    common::peers::start(peer, &setup)
}

/// Asks all resolvers at the same time, because some questions take them long, and compares their
/// replies with ours.
fn compare(peers: &[Peer], root: &RootServer, questions: &[TreeQuestion]) -> Judge {
    let folder = common::folder();
    let ours = start_ours(folder.path(), root);
    let servers: Vec<PeerServer> = peers.iter().map(|peer| start_peer(folder.path(), root, *peer)).collect();
    let (our_replies, their_replies) = thread::scope(|scope| {
        let ask = |server: SocketAddr| scope.spawn(move || ask_all(server, questions));
        let ours = ask(ours.address);
        let theirs: Vec<_> = servers.iter().map(|server| ask(server.address)).collect();
        let replies = |thread: thread::ScopedJoinHandle<'_, Vec<Reply>>| thread.join().expect("replies");
        (replies(ours), theirs.into_iter().map(replies).collect::<Vec<_>>())
    });
    let mut judge = Judge { ours: our_replies, ..Judge::default() };
    for ((peer, server), replies) in peers.iter().zip(&servers).zip(&their_replies) {
        let differs = |index: &usize| !judge.explain(*peer, &questions[*index], *index, &replies[*index]);
        let different: Vec<usize> = (0..questions.len()).filter(differs).collect();
        // Some servers respond late or never, so that a reply can depend on the order of events.
        let again: Vec<TreeQuestion> = different.iter().map(|index| questions[*index].clone()).collect();
        for (index, theirs) in different.into_iter().zip(ask_all(server.address, &again)) {
            let question = &questions[index];
            if !judge.explain(*peer, question, index, &theirs) {
                let (program, ours) = (peer.info().programs[0], &judge.ours[index]);
                let TreeQuestion { fault, name, rtype } = question;
                let difference =
                    format!("{program}: {fault}: {name} {rtype}: {ours:?}, and theirs {theirs:?}");
                judge.unexplained.push(difference);
            }
        }
    }
    judge
}

fn installed() -> Vec<Peer> {
    PEERS.into_iter().filter(|peer| common::is_installed(peer.info().programs[0])).collect()
}

#[test]
fn replies_are_those_of_other_resolvers() {
    let (peers, Some(namespace)) = (installed(), namespace()) else { return };
    let faulty_tree = || {
        let tree = start_tree();
        let (questions, name) = (tree.questions(), tree.root_server().0.to_string());
        let judge = compare(&peers, &RootServer { name, address: ROOT }, &questions);
        let faults: BTreeSet<&str> = questions.iter().map(|question| &*question.fault).collect();
        println!("{} questions about {} zones", questions.len(), faults.len());
        judge.finish(&peers);
    };
    namespace.run(faulty_tree).expect("a thread in the namespace");
}

/// The servers of the top-level domains are unreachable in the namespace.
#[test]
fn the_root_zone_is_resolved_as_by_others() {
    let Some(root) = public_data("root-zone/2017-root.zone") else { return };
    let Some(sample) = public_data("root-queries/root-server-sample.txt") else { return };
    let (peers, Some(namespace)) = (installed(), namespace()) else { return };
    let zone = fs::read_to_string(&root).expect("the root zone");
    let records = || zone.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let addresses = records()
        .filter(|record| record.len() == 5 && record[0].ends_with(".root-servers.net.") && record[3] == "A");
    let addresses: Vec<IpAddr> = addresses.map(|record| record[4].parse().expect("an address")).collect();
    assert_eq!(addresses.len(), 13);
    for address in &addresses {
        namespace.add_address(Interface::LOOPBACK, *address, 32).expect("an address");
    }
    let delegated: BTreeSet<Name> = records()
        .filter(|record| record.len() == 5 && record[3] == "NS" && record[0] != ".")
        .map(|record| record[0].parse().expect("a name"))
        .collect();
    let questions = questions_of_sample(&fs::read_to_string(sample).expect("the sample"), &delegated);
    println!("{} questions", questions.len());
    let replay = || {
        let folder = common::folder();
        let listen: Vec<String> =
            addresses.iter().chain([&IpAddr::from(ROOT)]).map(|address| format!("\"{address}\"")).collect();
        let configuration = folder.path().join("root.toml");
        let text = format!(
            "version = 1\nlisten = [{}]\nuser = \"root\"\nworkers = 1\n[zone.\".\"]\nfile = {root:?}\nverify = \"none\"\n",
            listen.join(", ")
        );
        fs::write(&configuration, text).expect("written");
        let server = Configured::start(&configuration);
        assert_eq!(server.ready["serving"], 1, "{}", server.ready);
        let root = RootServer { name: "a.root-servers.net.".to_owned(), address: ROOT };
        let judge = compare(&peers, &root, &questions);
        for (question, reply) in questions.iter().zip(&judge.ours) {
            assert_eq!(reply.rcode, expected_at_root(&question.name, &delegated), "{question:?}: {reply:?}");
        }
        assert!(judge.unexplained.is_empty(), "{}", judge.unexplained.join("\n"));
    };
    namespace.run(replay).expect("a thread in the namespace");
}

/// Some questions of the sample, each of them once, without those for local names. Of those for names
/// in top-level domains, only a few, because some resolvers wait long for unreachable servers.
fn questions_of_sample(sample: &str, delegated: &BTreeSet<Name>) -> Vec<TreeQuestion> {
    let names = sample.lines().filter_map(|line| line.strip_suffix(" A"));
    let names = names.step_by(7).filter_map(|name| name.parse().ok());
    let mut local: Vec<Name> = known_zones().into_iter().map(|zone| zone.apex).collect();
    // The root servers are those of arpa too; here they do not serve it.
    local.push("arpa.".parse().expect("a name"));
    let is_local = |name: &Name| local.iter().any(|apex| name.view().is_at_or_below(apex.view()));
    let names: BTreeSet<Name> = names.filter(|name| !is_local(name)).collect();
    let (existing, missing): (Vec<Name>, Vec<Name>) =
        names.into_iter().partition(|name| expected_at_root(name, delegated) == Rcode::SERVFAIL);
    let question = |name| TreeQuestion { fault: "root".to_owned(), name, rtype: Rtype::A };
    existing.into_iter().step_by(100).chain(missing).map(question).collect()
}

/// The RCODE for a name if only the root zone has a server.
fn expected_at_root(name: &Name, delegated: &BTreeSet<Name>) -> Rcode {
    let above = std::iter::successors(Some(name.view()), |name| name.parent());
    match above.filter(|name| !name.is_root()).last() {
        None => Rcode::NOERROR,
        Some(domain) if delegated.contains(&domain.to_canonical()) => Rcode::SERVFAIL,
        Some(_) => Rcode::NXDOMAIN,
    }
}

#[derive(Default)]
struct Judge {
    ours: Vec<Reply>,
    /// How often each class explained a difference, by peer.
    explained: BTreeMap<(&'static str, &'static str), usize>,
    unexplained: Vec<String>,
}

impl Judge {
    /// Whether the replies are equal or differ as a class says.
    fn explain(&mut self, peer: Peer, question: &TreeQuestion, index: usize, theirs: &Reply) -> bool {
        let ours = &self.ours[index];
        let explains = |class: &&Class| {
            class.peers.contains(&peer)
                && class.faults.contains(&&*question.fault)
                && (class.explains)(ours, theirs)
        };
        let class = (ours != theirs).then(|| CLASSES.iter().find(explains)).flatten();
        if let Some(class) = class {
            *self.explained.entry((class.name, peer.info().programs[0])).or_default() += 1;
        }
        class.is_some() || ours == theirs
    }

    /// Fails if a difference has no class, or if a class has no difference.
    fn finish(&self, peers: &[Peer]) {
        let mut text = self.unexplained.iter().fold(String::new(), |text, line| text + line + "\n");
        for class in CLASSES {
            for peer in class.peers.iter().filter(|peer| peers.contains(peer)) {
                let program = peer.info().programs[0];
                match self.explained.get(&(class.name, program)) {
                    Some(count) => println!("{program}: {}: {count}", class.name),
                    None if class.is_certain => {
                        let _ = writeln!(
                            text,
                            "{program} does not differ as class {} says: remove it",
                            class.name
                        );
                    }
                    None => {}
                }
            }
        }
        assert!(text.is_empty(), "{} differences without class\n{text}", self.unexplained.len());
    }
}

#[test]
fn every_class_of_resolvers_is_documented() {
    crate::assert_documented(CLASSES.iter().map(|class| class.name));
}
