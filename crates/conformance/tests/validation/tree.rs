//! Signed zones in virtual time: the root zone and `child.`, each with one server. The servers are those
//! of `nonesuch-authoritative`; a test changes their responses.

use nonesuch_authoritative::zones::{ServedZone, ZoneState, Zones};
use nonesuch_authoritative::{Published, Responder, ServerContext};
use nonesuch_conformance::simulator::{Network, Options, Reaction, ServerQuery, Simulator};
use nonesuch_crypto::{DigestType, PrivateKey};
use nonesuch_dnssec::keys::ds_rdata;
use nonesuch_dnssec::online::OnlineSigner;
use nonesuch_dnssec::{
    KeyPair, KeySet, Mechanism, Nsec3Params, SignOptions, VerifyOptions, into_verified, sign,
};
use nonesuch_net::machine::{ClientToken, Machine, Now};
use nonesuch_net::{Answer, Handler as _, Transport};
use nonesuch_proto::edns;
use nonesuch_proto::message::{HEADER, Message, Rcode, flags, push_query};
use nonesuch_proto::{Name, Rtype};
use nonesuch_resolver::hints::Hints;
use nonesuch_resolver::options::ResolverOptions;
use nonesuch_resolver::trust_anchors::AnchorRecord;
use nonesuch_resolver::{Resolver, Shared};
use nonesuch_server::acl::AccessList;
use nonesuch_zone::read::read_text;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The begin of the tests, 2026-10-01.
pub(crate) const START: u64 = 1_790_812_800;
const MONTH: u32 = 30 * 86_400;
pub(crate) const ROOT: Ipv4Addr = Ipv4Addr::new(193, 0, 0, 1);
pub(crate) const CHILD: Ipv4Addr = Ipv4Addr::new(193, 0, 0, 2);

/// Changes the response of the server at an address.
pub(crate) type Change = Box<dyn FnMut(Ipv4Addr, &mut Message)>;

pub(crate) fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

/// The key of a zone.
fn pair(apex: &str) -> KeyPair {
    let secret = data_encoding::BASE64.encode(&[apex.len() as u8; 32]);
    let text = format!("Private-key-format: v1.3\nAlgorithm: 13 (ECDSAP256SHA256)\nPrivateKey: {secret}\n");
    KeyPair::new(name(apex), 257, PrivateKey::from_bind(&text).expect("a key"))
}

/// The DS record of the key of a zone.
pub(crate) fn ds(apex: &str) -> Vec<u8> {
    ds_of(apex, &dnskey(apex))
}

/// The key of a zone.
pub(crate) fn dnskey(apex: &str) -> Vec<u8> {
    pair(apex).dnskey_rdata()
}

pub(crate) fn ds_of(apex: &str, dnskey: &[u8]) -> Vec<u8> {
    ds_rdata(name(apex).view(), dnskey, DigestType::SHA256).expect("a digest")
}

/// Signs a zone with NSEC, or NSEC3 with these iterations, and publishes it.
fn publish(apex: &str, text: &str, iterations: Option<u16>) -> Responder {
    let contents = read_text(text.as_bytes(), Path::new("zone"), None).expect("a zone").contents;
    let keys = KeySet::new(&name(apex), vec![pair(apex)]).expect("a key");
    let mechanism = if iterations.is_some() { Mechanism::Nsec3 } else { Mechanism::Nsec };
    let nsec3 = Nsec3Params { salt: Vec::new(), iterations: iterations.unwrap_or(0) };
    let options = SignOptions::new(mechanism, START as u32 - MONTH, START as u32 + MONTH);
    let options = SignOptions { nsec3, ..options };
    let signed = sign(&contents, &keys, &options).expect("signed").into_contents();
    let verification = VerifyOptions { now: Some(START as u32), ..VerifyOptions::default() };
    let verified = into_verified(signed, &verification).expect("a valid zone");
    let zones = Zones::new();
    let served = ServedZone::new(Published::new(&verified).expect("published"), Arc::default());
    zones.set(&name(apex), ZoneState::Serving(Arc::new(served)));
    let server = ServerContext::new(Arc::new(zones));
    Responder::new(&server, Transport::Tcp, CLIENT, OnlineSigner::new(1 << 16, Arc::default()), 0)
}

const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 4000);

fn root_zone(ds_of_child: Option<&[u8]>) -> String {
    let ds = ds_of_child.map(|ds| {
        let [high, low, algorithm, digest_type, digest @ ..] = ds else { panic!("a DS record") };
        let tag = u16::from_be_bytes([*high, *low]);
        let digest = data_encoding::HEXUPPER.encode(digest);
        format!("child. 300 DS {tag} {algorithm} {digest_type} {digest}\n")
    });
    format!(
        ". 300 SOA a.root. h. 1 3600 600 86400 60\n. 300 NS a.root.\na.root. 300 A {ROOT}\n\
         child. 300 NS ns.child.\nns.child. 300 A {CHILD}\n{}",
        ds.unwrap_or_default()
    )
}

/// A name in `child.` with more labels than a resolver looks up for one response.
pub(crate) fn deep_name() -> String {
    "a.".repeat(60) + "child."
}

fn child_zone() -> String {
    format!(
        "child. 300 SOA ns.child. h.child. 1 3600 600 86400 60\nchild. 300 NS ns.child.\n\
         ns.child. 300 A {CHILD}\nhost.child. 300 A 198.18.0.80\nhost.sub.child. 300 A 198.18.0.81\n\
         *.wild.child. 300 A 198.18.0.83\n{} 300 A 198.18.0.82\n",
        deep_name()
    )
}

/// The servers.
pub(crate) struct Tree {
    pub(crate) servers: BTreeMap<Ipv4Addr, Responder>,
    pub(crate) change: Change,
    pub(crate) asked: Vec<(Name, Rtype, Transport)>,
}

impl Tree {
    pub(crate) fn new() -> Self {
        let root = publish(".", &root_zone(Some(&ds("child."))), None);
        let servers = BTreeMap::from([(ROOT, root), (CHILD, publish("child.", &child_zone(), None))]);
        Self { servers, change: Box::new(|_, _| ()), asked: Vec::new() }
    }

    /// Signs `child.` with NSEC3 with these iterations.
    pub(crate) fn set_nsec3(&mut self, iterations: u16) {
        self.servers.insert(CHILD, publish("child.", &child_zone(), Some(iterations)));
    }

    /// Replaces the DS RRset of `child.` in the root zone.
    pub(crate) fn set_ds(&mut self, ds_of_child: Option<&[u8]>) {
        self.servers.insert(ROOT, publish(".", &root_zone(ds_of_child), None));
    }
}

impl Network for Tree {
    fn handle_query(&mut self, query: &ServerQuery<'_>, _now: Now) -> Reaction {
        let IpAddr::V4(address) = query.server.ip() else { return Reaction::SILENCE };
        let asked = Message::parse(query.message).expect("a query");
        let question = &asked.questions[0];
        self.asked.push((question.name.clone(), question.rtype, query.transport));
        let Some(responder) = self.servers.get_mut(&address) else { return Reaction::SILENCE };
        let mut octets = Vec::new();
        responder.begin_batch();
        assert_eq!(responder.answer(query.message, CLIENT, &mut octets), Answer::Ready);
        responder.end_batch();
        let mut response = Message::parse(&octets).expect("a response");
        (self.change)(address, &mut response);
        Reaction::answer(query.server, response.to_octets())
    }
}

/// A reply of the resolver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) rcode: Rcode,
    pub(crate) is_secure: bool,
    /// Code and text of the extended error.
    pub(crate) error: Option<(u16, String)>,
}

impl Reply {
    /// The code of the extended error.
    pub(crate) fn code(&self) -> Option<u16> {
        self.error.as_ref().map(|(code, _)| *code)
    }
}

/// A resolver with two workers that validates from the key of the root zone, in virtual time.
pub(crate) struct World {
    pub(crate) simulator: Simulator<'static, Tree>,
    pub(crate) shared: Arc<Shared>,
    options: ResolverOptions,
}

impl World {
    /// `change` changes the options of the resolver.
    pub(crate) fn new(tree: Tree, change: impl FnOnce(&mut ResolverOptions)) -> Self {
        let mut options = ResolverOptions {
            hints: Hints::new([(name("a.root."), ROOT.into())]).expect("hints"),
            access: AccessList::allow_all(),
            memory: 8 << 20,
            ..ResolverOptions::default()
        };
        options.validation.anchors.insert(name(".").view(), AnchorRecord::Ds(ds(".")));
        change(&mut options);
        let simulator_options = Options { unix: START, ..Options::default() };
        let now = Now { instant: simulator_options.start, unix: START };
        let shared = Arc::new(Shared::new(options.clone(), [7; 16], &[7; 32], now).expect("local names"));
        let machine =
            |worker| -> Box<dyn Machine> { Box::new(Resolver::new(Arc::clone(&shared), worker, [7; 32])) };
        let simulator = Simulator::new(simulator_options, (0..2).map(machine).collect(), tree);
        Self { simulator, shared, options }
    }

    /// Replaces the options, as a reload does.
    pub(crate) fn reload(&mut self, change: impl FnOnce(&mut ResolverOptions)) {
        change(&mut self.options);
        let unix = self.simulator.now().unix;
        self.shared.replace_options(self.options.clone(), unix).expect("options");
        self.wake();
    }

    pub(crate) fn wake(&mut self) {
        self.simulator.wake_all();
        self.run_for(0);
    }

    pub(crate) fn run_for(&mut self, seconds: u64) {
        self.simulator.run_for(Duration::from_secs(seconds)).expect("no fault");
    }

    /// Asks a worker for the addresses of a name.
    pub(crate) fn ask(&mut self, worker: usize, asked: &str) -> Reply {
        self.ask_for(worker, asked, Rtype::A)
    }

    /// Sends a worker a query.
    pub(crate) fn send(&mut self, worker: usize, asked: &str, rtype: Rtype) -> ClientToken {
        let mut message = Vec::new();
        push_query(&name(asked), rtype, 7, flags::RD, &mut message);
        edns::push_opt(1232, 0, edns::DO, &mut message);
        message[HEADER - 1] = 1;
        self.simulator.query_at(Duration::ZERO, worker, CLIENT, Transport::Tcp, message)
    }

    pub(crate) fn ask_for(&mut self, worker: usize, asked: &str, rtype: Rtype) -> Reply {
        let token = self.send(worker, asked, rtype);
        self.simulator.run_until_answered().unwrap_or_else(|fault| panic!("{fault}"));
        let reply = self.simulator.reply(token).and_then(|reply| reply.message.clone()).expect("a reply");
        let reply = Message::parse(&reply).expect("a message");
        assert!(reply.opt().is_some(), "no OPT record");
        let error = reply.extended_error();
        Reply {
            rcode: reply.rcode(),
            is_secure: reply.header.flags & flags::AD != 0,
            error: error.map(|(code, text)| (code, String::from_utf8_lossy(text).into_owned())),
        }
    }
}
