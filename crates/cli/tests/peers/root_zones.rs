//! The real root zones of 2014 and 2017, each at its date: the resolver and Unbound agree on the security of
//! DS RRsets, of their absence, of the RRsets of the apex, and of names that do not exist.
//!
//! The time of the resolver is virtual: its state machine runs in the simulator. delv is no third
//! validator, because it has no option for the date.

use crate::common;
use common::configured::Configured;
use common::{ask, folder, peers, text};
use nonesuch_authoritative::{Request, answer};
use nonesuch_conformance::simulator::{Network, Options, Reaction, ServerQuery, Simulator};
use nonesuch_crypto::DigestType;
use nonesuch_dnssec::keys::{SEP, ds_rdata};
use nonesuch_lab::peers::{Peer, PeerServer, Setup};
use nonesuch_net::Transport;
use nonesuch_net::machine::{Machine, Now};
use nonesuch_proto::message::{HEADER, Message, flags, push_query};
use nonesuch_proto::{MAX_NAME, Name, NameRef, Rtype, edns};
use nonesuch_resolver::hints::Hints;
use nonesuch_resolver::options::ResolverOptions;
use nonesuch_resolver::trust_anchors::AnchorRecord;
use nonesuch_resolver::{Resolver, Shared};
use nonesuch_server::acl::AccessList;
use nonesuch_server::query::Query;
use nonesuch_server::trailer::Trailer;
use nonesuch_testing::{public_data, require_peer};
use nonesuch_zone::{Contents, Image, read::read_file};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const WAIT: Duration = Duration::from_secs(20);
const CLIENT: (Ipv4Addr, u16) = (Ipv4Addr::LOCALHOST, 4000);
/// Each so many top-level domains one is asked for.
const STEP: usize = 7;

/// A root zone: file, a time in the validity of its signatures in seconds since 1970, the same time as
/// Unbound reads it, and a time after their expiration.
const ZONES: [(&str, u64, &str, u64); 2] = [
    ("root-zone/2014/root.zone", 1_403_740_800, "20140626000000", 1_412_121_600),
    ("root-zone/2017-root.zone", 1_503_360_000, "20170822000000", 1_514_764_800),
];

/// A server of the zone at each address.
struct RootServers(Image);

impl Network for RootServers {
    fn handle_query(&mut self, query: &ServerQuery<'_>, _now: Now) -> Reaction {
        let parsed = Query::parse(query.message).expect("a query");
        let (mut octets, mut room) = (Vec::new(), [0; MAX_NAME]);
        let request = Request::new(&parsed, &mut room, Transport::Tcp, &Trailer::PLAIN);
        answer(&self.0, &request, &mut octets);
        Reaction::answer(query.server, octets)
    }
}

/// RDATA of the DS records of the zone's keys with the SEP flag.
fn ds_records(zone: &Contents) -> Vec<Vec<u8>> {
    let apex = zone.find(NameRef::ROOT).expect("the apex");
    let keys = apex.rrset(Rtype::DNSKEY).expect("keys");
    let is_entry = |rdata: &&[u8]| u16::from_be_bytes([rdata[0], rdata[1]]) & SEP != 0;
    let digest = |rdata| ds_rdata(NameRef::ROOT, rdata, DigestType::SHA256).expect("a digest");
    keys.rdatas().filter(is_entry).map(digest).collect()
}

/// The resolver in virtual time.
fn start_ours(zone: &Contents, unix: u64) -> Simulator<'static, RootServers> {
    let mut options = ResolverOptions {
        hints: Hints::new([(
            "a.root-servers.net.".parse().expect("a name"),
            Ipv4Addr::new(198, 41, 0, 4).into(),
        )])
        .expect("hints"),
        access: AccessList::allow_all(),
        ..ResolverOptions::default()
    };
    for ds in ds_records(zone) {
        options.validation.anchors.insert(NameRef::ROOT, AnchorRecord::Ds(ds));
    }
    let simulated = Options { unix, ..Options::default() };
    let now = Now { instant: simulated.start, unix };
    let shared = Arc::new(Shared::new(options, [7; 16], &[7; 32], now).expect("local names"));
    let machine: Box<dyn Machine> = Box::new(Resolver::new(shared, 0, [7; 32]));
    Simulator::new(simulated, vec![machine], RootServers(Image::compile(zone).expect("an image")))
}

/// Returns RCODE and AD flag.
fn ask_ours(simulator: &mut Simulator<'_, RootServers>, name: &str, rtype: Rtype) -> (u8, bool) {
    let mut message = Vec::new();
    push_query(&name.parse::<Name>().expect("a name"), rtype, 7, flags::RD, &mut message);
    edns::push_opt(1232, 0, edns::DO, &mut message);
    message[HEADER - 1] = 1;
    let client = SocketAddr::from(CLIENT);
    let token = simulator.query_at(Duration::ZERO, 0, client, Transport::Tcp, message);
    simulator.run_until_answered().expect("a reply");
    let reply = simulator.reply(token).and_then(|reply| reply.message.clone()).expect("a reply");
    let reply = Message::parse(&reply).expect("a message");
    (reply.rcode().0 as u8, reply.header.flags & flags::AD != 0)
}

/// Unbound at the date, with our server of the zone.
fn start_unbound(folder: &Path, zone: &Contents, file: &Path, date: &str) -> (Configured, PeerServer) {
    let configuration = folder.join("root.toml");
    let content = format!(
        "version = 1\nlisten = [\"127.0.0.1:0\"]\nworkers = 1\n[zone.\".\"]\nfile = {file:?}\nverify = \"none\"\n"
    );
    fs::write(&configuration, content).expect("written");
    let server = Configured::start(&configuration);
    let anchors = ds_records(zone).into_iter().map(|ds| {
        let [high, low, algorithm, digest_type, digest @ ..] = ds.as_slice() else { panic!("a DS record") };
        let tag = u16::from_be_bytes([*high, *low]);
        let digest: String = digest.iter().map(|octet| format!("{octet:02X}")).collect();
        peers::anchor(&format!(". DS {tag} {algorithm} {digest_type} {digest}"))
    });
    let anchors: Vec<_> = anchors.collect();
    let mut setup = peers::resolver(&folder.join("unbound"), &anchors[0], server.address);
    setup.resolver.anchors = anchors;
    let lines = format!("  qname-minimisation: no\n  val-override-date: \"{date}\"\n");
    (server, peers::start(Peer::Unbound, &Setup { lines, ..setup }))
}

/// Questions that the root zone answers.
fn questions(zone: &Contents) -> Vec<(String, Rtype)> {
    let cuts = zone.nodes().filter(|node| node.name().label_count() == 1 && node.has(Rtype::NS));
    let names: Vec<String> = cuts.map(|node| node.name().to_string()).step_by(STEP).collect();
    let apex = [Rtype::SOA, Rtype::NS, Rtype::DNSKEY, Rtype::TXT].map(|rtype| (".".to_owned(), rtype));
    let missing = |name: &String| (format!("no-such-{name}"), Rtype::A);
    let denied = names.iter().step_by(3).map(missing);
    apex.into_iter().chain(denied).chain(names.iter().map(|name| (name.clone(), Rtype::DS))).collect()
}

#[test]
fn the_real_root_zones_are_secure_at_their_dates() {
    require_peer!("unbound");
    for (file, unix, date, expired) in ZONES {
        let Some(file) = public_data(file) else { return };
        let zone = read_file(&file, Some(&Name::root())).expect("the root zone").contents;
        let folder = folder();
        let (_server, unbound) = start_unbound(folder.path(), &zone, &file, date);
        let mut ours = start_ours(&zone, unix);
        let questions = questions(&zone);
        let (mut secure, mut failed) = (0, Vec::new());
        for (name, rtype) in &questions {
            let found = ask_ours(&mut ours, name, *rtype);
            let theirs = ask(unbound.address, name, rtype.0, WAIT).expect("a reply");
            if found != (theirs.rcode, theirs.authenticated) {
                failed.push(format!("{name} {rtype}: {found:?}, Unbound {theirs:?}"));
            }
            secure += usize::from(found.1);
        }
        println!("{}: {} questions, {secure} secure", text(&file), questions.len());
        assert!(failed.is_empty(), "{}", failed.join("\n"));
        assert_eq!(secure, questions.len());
        // After the expiration, the answers are bogus.
        assert_eq!(ask_ours(&mut start_ours(&zone, expired), ".", Rtype::SOA), (2, false));
    }
}
