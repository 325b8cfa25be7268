//! The root zone, whose keys roll: it is signed for each response, with the keys of the moment.

use nonesuch_conformance::simulator::{Network, Options, Reaction, ServerQuery, Simulator};
use nonesuch_crypto::{Algorithm, DigestType, PrivateKey, key_tag};
use nonesuch_dnssec::keys::{REVOKE, SEP, ZONE_KEY, ds_rdata};
use nonesuch_dnssec::rrsig::{Rrsig, push_signed_data};
use nonesuch_net::Transport;
use nonesuch_net::machine::{Machine, Now};
use nonesuch_proto::message::{Header, Message, Rcode, Record, Section, flags, push_query};
use nonesuch_proto::{Class, Name, Rtype};
use nonesuch_resolver::hints::Hints;
use nonesuch_resolver::options::ResolverOptions;
use nonesuch_resolver::trust_anchors::managed::ManagedAnchor;
use nonesuch_resolver::trust_anchors::{AnchorRecord, TrustAnchors};
use nonesuch_resolver::{Resolver, Shared};
use nonesuch_server::acl::AccessList;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

pub(crate) const DAY: u64 = 86_400;
/// The begin of the tests, 2026-10-01.
pub(crate) const START: u64 = 1_790_812_800;
const ROOT: Ipv4Addr = Ipv4Addr::new(193, 0, 0, 1);
/// The TTL of the DNSKEY RRset: it is queried each day.
const KEYS_TTL: u32 = 172_800;
const DATA_TTL: u32 = 300;
/// The time from a signature to its expiration.
const VALIDITY: u32 = 14 * 86_400;

pub(crate) fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

/// A key pair of the zone.
pub(crate) struct ZoneKey {
    private: PrivateKey,
}

impl ZoneKey {
    /// Returns the key of which all octets of the private key are `octet`.
    pub(crate) fn new(octet: u8) -> Self {
        let secret = data_encoding::BASE64.encode(&[octet; 32]);
        let text =
            format!("Private-key-format: v1.3\nAlgorithm: 13 (ECDSAP256SHA256)\nPrivateKey: {secret}\n");
        Self { private: PrivateKey::from_bind(&text).expect("a key") }
    }

    /// Returns the RDATA of the DNSKEY record.
    pub(crate) fn rdata(&self, is_revoked: bool) -> Vec<u8> {
        let flags = ZONE_KEY | SEP | if is_revoked { REVOKE } else { 0 };
        let mut rdata = flags.to_be_bytes().to_vec();
        rdata.extend([3, Algorithm::ECDSAP256SHA256.0]);
        rdata.extend(self.private.public_key());
        rdata
    }

    pub(crate) fn tag(&self) -> u16 {
        key_tag(&self.rdata(false))
    }

    fn sign(&self, owner: &Name, records: &[Record], is_revoked: bool, now: u64) -> Record {
        let mut sorted: Vec<&[u8]> = records.iter().map(|record| record.rdata.as_slice()).collect();
        sorted.sort_unstable();
        let apex = Name::root();
        let fields = Rrsig {
            covered: records[0].rtype,
            algorithm: Algorithm::ECDSAP256SHA256,
            labels: owner.view().rrsig_labels(),
            original_ttl: records[0].ttl,
            expiration: now as u32 + VALIDITY,
            inception: now as u32 - 3600,
            tag: key_tag(&self.rdata(is_revoked)),
            signer: apex.view(),
            signature: &[],
        };
        let (mut message, mut rdata) = (Vec::new(), Vec::new());
        push_signed_data(&fields, owner.view(), sorted.iter().copied(), &mut message);
        fields.push_fields(&mut rdata);
        self.private.sign(&message, &mut rdata).expect("a signature");
        Record { rtype: Rtype::RRSIG, rdata, ..records[0].clone() }
    }
}

/// A key in the DNSKEY RRset.
#[derive(Clone)]
pub(crate) struct Published {
    pub(crate) key: Arc<ZoneKey>,
    pub(crate) is_revoked: bool,
    /// Whether the key signs the DNSKEY RRset.
    pub(crate) signs: bool,
}

/// The root zone and its only server.
#[derive(Clone)]
pub(crate) struct RootZone {
    /// The first key signs the other RRsets.
    pub(crate) keys: Vec<Published>,
    pub(crate) asked: Vec<(Name, Rtype)>,
}

impl RootZone {
    fn records(&self, owner: &Name, rtype: Rtype, now: u64) -> Vec<Record> {
        let rdata: Vec<Vec<u8>> = match (owner.to_string().as_str(), rtype) {
            (".", Rtype::NS) => vec![name("a.root.").wire().to_vec()],
            (".", Rtype::DNSKEY) => self.keys.iter().map(|key| key.key.rdata(key.is_revoked)).collect(),
            ("a.root.", Rtype::A) => vec![ROOT.octets().to_vec()],
            ("host.", Rtype::A) => vec![vec![198, 18, 0, 80]],
            _ => return Vec::new(),
        };
        let is_keys = rtype == Rtype::DNSKEY;
        let ttl = if is_keys { KEYS_TTL } else { DATA_TTL };
        let record = |rdata| Record {
            section: Section::Answer,
            owner: owner.clone(),
            rtype,
            class: Class::IN,
            ttl,
            rdata,
        };
        let mut records: Vec<Record> = rdata.into_iter().map(record).collect();
        let signers = self.keys.iter().filter(|key| key.signs).take(if is_keys { usize::MAX } else { 1 });
        let signatures: Vec<Record> =
            signers.map(|key| key.key.sign(owner, &records, key.is_revoked && is_keys, now)).collect();
        records.extend(signatures);
        records
    }
}

impl Network for RootZone {
    fn handle_query(&mut self, query: &ServerQuery<'_>, now: Now) -> Reaction {
        let asked = Message::parse(query.message).expect("a query");
        let question = &asked.questions[0];
        self.asked.push((question.name.clone(), question.rtype));
        let mut records = self.records(&question.name.view().to_canonical(), question.rtype, now.unix);
        let rcode = if records.is_empty() { Rcode::NXDOMAIN.0 } else { 0 };
        let opt = Record {
            section: Section::Additional,
            owner: Name::root(),
            rtype: Rtype::OPT,
            class: Class(1232),
            ttl: 0x8000,
            rdata: Vec::new(),
        };
        records.push(opt);
        let header = Header { flags: flags::QR | flags::AA | rcode, ..asked.header };
        let response = Message { header, questions: asked.questions.clone(), records };
        Reaction::answer(query.server, response.to_octets())
    }
}

/// A resolver whose trust anchor is managed, in virtual time.
pub(crate) struct World {
    pub(crate) simulator: Simulator<'static, RootZone>,
    pub(crate) shared: Arc<Shared>,
    configured: TrustAnchors,
    options: ResolverOptions,
}

/// The state of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Secure,
    Insecure,
    Failed,
}

impl World {
    /// Starts a resolver with the DS record of the first key of the zone as configured trust anchor.
    pub(crate) fn new(zone: RootZone) -> Self {
        let mut configured = TrustAnchors::default();
        let ds = ds_rdata(Name::root().view(), &zone.keys[0].key.rdata(false), DigestType::SHA256);
        configured.insert(Name::root().view(), AnchorRecord::Ds(ds.expect("a digest")));
        Self::start(zone, configured, START, None)
    }

    fn start(zone: RootZone, configured: TrustAnchors, unix: u64, state: Option<&str>) -> Self {
        let mut options = ResolverOptions {
            hints: Hints::new([(name("a.root."), ROOT.into())]).expect("hints"),
            access: AccessList::allow_all(),
            memory: 2 << 20,
            ..ResolverOptions::default()
        };
        options.validation.anchors = configured.clone();
        let options_of_simulator = Options { unix, ..Options::default() };
        let now = Now { instant: options_of_simulator.start, unix };
        let shared = Arc::new(Shared::new(options.clone(), [7; 16], &[7; 32], now).expect("local names"));
        let anchor = configured.iter().next().expect("an anchor");
        let anchor = match state {
            Some(text) => ManagedAnchor::parse(text, anchor, unix).expect("a state"),
            None => ManagedAnchor::new(anchor, unix).expect("an anchor"),
        };
        shared.manage_anchors(vec![anchor], now);
        let machine =
            |worker| -> Box<dyn Machine> { Box::new(Resolver::new(Arc::clone(&shared), worker, [7; 32])) };
        let simulator = Simulator::new(options_of_simulator, (0..2).map(machine).collect(), zone);
        Self { simulator, shared, configured, options }
    }

    /// Starts the resolver again, with nothing but the text of the state.
    pub(crate) fn restart(self) -> Self {
        let state = self.state();
        self.restart_from(&state)
    }

    /// Returns the text of the state.
    pub(crate) fn state(&self) -> String {
        let [(_, state)] = self.shared.anchor_states().try_into().expect("the state of one zone");
        state
    }

    /// Starts the resolver again with the text of an earlier state.
    pub(crate) fn restart_from(self, state: &str) -> Self {
        let unix = self.simulator.now().unix;
        Self::start(self.simulator.network().clone(), self.configured, unix, Some(state))
    }

    /// Replaces the options by the configured ones with a change, as a reload does.
    pub(crate) fn reload(&mut self, change: impl FnOnce(&mut ResolverOptions)) {
        let mut options = self.options.clone();
        change(&mut options);
        let unix = self.simulator.now().unix;
        self.shared.replace_options(options, unix).expect("options");
    }

    pub(crate) fn run_for_days(&mut self, days: u64) {
        self.simulator.run_for(Duration::from_secs(days * DAY)).expect("no fault");
    }

    /// Publishes these keys from now on.
    pub(crate) fn publish(&mut self, keys: &[Published]) {
        self.simulator.network_mut().keys = keys.to_vec();
    }

    /// Asks for the address of `host.`, which is not cached for longer than 5 minutes.
    pub(crate) fn ask(&mut self, worker: usize) -> Answer {
        let mut message = Vec::new();
        push_query(&name("host."), Rtype::A, 7, flags::RD | flags::AD, &mut message);
        let client = SocketAddr::from((Ipv4Addr::LOCALHOST, 4000));
        let token = self.simulator.query_at(Duration::ZERO, worker, client, Transport::Tcp, message);
        self.simulator.run_until_answered().unwrap_or_else(|fault| panic!("{fault}"));
        let reply = self.simulator.reply(token).and_then(|reply| reply.message.clone()).expect("a reply");
        let reply = Message::parse(&reply).expect("a message");
        match reply.rcode() {
            Rcode::NOERROR if reply.header.flags & flags::AD != 0 => Answer::Secure,
            Rcode::NOERROR => Answer::Insecure,
            _ => Answer::Failed,
        }
    }

    /// Returns the tags of the current trust anchors.
    pub(crate) fn tags(&self) -> Vec<u16> {
        self.shared.managed_anchors().iter().flat_map(ManagedAnchor::tags).collect()
    }
}
