//! Tests from query to response, for zones without DNSSEC and with each denial mechanism; shared
//! code.

mod aliases;
mod allowed;
mod cases;
mod checker;
mod cookie_alone;
mod counted;
mod form;
mod large;
mod letter_case;
mod limited;
mod online;
mod online_owners;
mod oracle;
mod random;
mod responder;
mod rfc;
mod size;
mod validated;
mod zones;

use crate::published::Denial;
use crate::zones::{ServedZone, ZoneState, Zones};
use crate::{Published, Responder, ServerContext};
use checker::{Chain, Mismatch, require};
use nonesuch_crypto::vrf::{VrfAlgorithm, VrfPrivateKey, VrfPublicKey};
use nonesuch_crypto::{Algorithm, PrivateKey, PublicKey, key_tag};
use nonesuch_dnssec::denial::nsec5::{Nsec5Chain, Proofs, ProveOptions, prove_chain};
use nonesuch_dnssec::denial::{DenialGeneration, NameHash};
use nonesuch_dnssec::keys::{CdsSchedule, KeyRecord, Nsec5Key};
use nonesuch_dnssec::online::{
    DEFAULT_VALIDITY, Nsec5Prover, Nsec5Zone, OnlineCounters, OnlineOptions, OnlineSigner, SignerCounters,
    prepare,
};
use nonesuch_dnssec::rrsig::{Rrsig, push_signed_data};
use nonesuch_dnssec::{KeyPair, KeySet, Mechanism, Nsec3Params, SignOptions, VerifyOptions, sign};
use nonesuch_net::Transport;
use nonesuch_net::{Answer, Handler as _};
use nonesuch_proto::message::{HEADER, Message, Rcode, Record, Section, flags, push_query};
use nonesuch_proto::{Name, Rtype, edns, rdata};
use nonesuch_zone::{Contents, Image, ImageFile, Verification, image, read};
use oracle::{Expected, Oracle};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

const INCEPTION: u32 = 1_750_000_000;
const NOW: u32 = INCEPTION + 3600;
const ID: u16 = 0x5a17;
/// Address of client and server.
const ADDRESS: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 53);
/// Without DNSSEC, and signed with each offline mechanism.
const SIGNINGS: [Option<Mechanism>; 4] =
    [None, Some(Mechanism::Nsec), Some(Mechanism::Nsec3), Some(Mechanism::Nsec3OptOut)];

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// Returns a key that is the same in every run.
fn key(zone: &Name, flags: u16, algorithm: Algorithm, seed: u8) -> KeyPair {
    let scalar = data_encoding::BASE64.encode(&[seed; 32]);
    let text = format!("Private-key-format: v1.3\nAlgorithm: {} (X)\nPrivateKey: {scalar}\n", algorithm.0);
    KeyPair::new(zone.clone(), flags, PrivateKey::from_bind(&text).unwrap())
}

/// Returns a combined signing key, with the algorithm number for the mechanism.
fn csk(zone: &Name, algorithm: Algorithm, mechanism: Mechanism) -> KeyPair {
    let alias = mechanism.name_hash() == NameHash::Vrf;
    key(zone, 257, algorithm.nsec5_alias().filter(|_| alias).unwrap_or(algorithm), 7)
}

fn vrf(algorithm: VrfAlgorithm) -> VrfPrivateKey {
    VrfPrivateKey::from_secret(algorithm, &[5; 32]).unwrap()
}

/// Responders of a server with one zone, one for each transport.
struct Server {
    zone: Arc<ServedZone>,
    counters: Arc<SignerCounters>,
    responders: Mutex<[Responder; 3]>,
}

impl Server {
    fn new(apex: &Name, published: Published) -> Self {
        let zone = Arc::new(ServedZone::new(published, Arc::default()));
        let zones = Arc::new(Zones::new());
        zones.set(apex, ZoneState::Serving(Arc::clone(&zone)));
        let (context, counters) = (ServerContext::new(zones), Arc::new(SignerCounters::default()));
        let responder = |transport| {
            let signer = OnlineSigner::new(1 << 20, Arc::clone(&counters));
            Responder::new(&context, transport, ADDRESS, signer, 0)
        };
        let responders = Mutex::new([Transport::Udp, Transport::Tcp, Transport::Tls].map(responder));
        Self { zone, counters, responders }
    }

    fn send(&self, octets: &[u8], transport: Transport, now: u32) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.send_batch(&[octets], transport, now, |_, response| out.clone_from(response));
        (!out.is_empty()).then_some(out)
    }

    /// Sends `queries` in one batch. Calls `take` with the number and the response of each query
    /// that is answered. Returns the number of deferred responses.
    fn send_batch(
        &self,
        queries: &[&[u8]],
        transport: Transport,
        now: u32,
        mut take: impl FnMut(usize, &Vec<u8>),
    ) -> usize {
        let responder = &mut self.responders.lock().unwrap()[transport as usize];
        let (mut out, mut deferred) = (Vec::with_capacity(4096), Vec::new());
        responder.begin_batch_at(Instant::now(), u64::from(now), || None);
        for (number, query) in queries.iter().enumerate() {
            out.clear();
            match responder.answer(query, ADDRESS, &mut out) {
                Answer::Ready => take(number, &out),
                Answer::Nothing => {}
                Answer::Deferred => deferred.push(number),
                Answer::Stream => panic!("a stream"),
            }
        }
        if !deferred.is_empty() {
            responder.generate_deferred_at(Instant::now());
        }
        let batches = self.counters.read().batches;
        for &number in &deferred {
            out.clear();
            assert!(responder.answer_again(queries[number], ADDRESS, &mut out));
            take(number, &out);
        }
        assert_eq!(
            self.counters.read().batches,
            batches,
            "the deferred part is available in the second pass"
        );
        responder.end_batch_at(Instant::now());
        deferred.len()
    }
}

/// A zone before it is signed, and as it is served.
struct Zone {
    plain: Contents,
    server: Server,
    /// The same image, written to a file and opened, if answers come only from the image.
    from_file: Option<Server>,
    signing: Option<Mechanism>,
}

/// How a zone is signed and served.
#[derive(Clone, Debug)]
struct SigningSetup {
    signing: Option<Mechanism>,
    algorithm: Algorithm,
    nsec3: Nsec3Params,
    /// With an online mechanism: how the zone is presigned.
    presigned_with: Option<Mechanism>,
    vrf: VrfAlgorithm,
    /// With NSEC5: whether proofs are stored.
    stored: bool,
}

impl SigningSetup {
    fn new(signing: Option<Mechanism>) -> Self {
        Self {
            signing,
            algorithm: Algorithm::ED25519,
            nsec3: Nsec3Params::default(),
            presigned_with: None,
            vrf: VrfAlgorithm::P256_SHA256_TAI,
            stored: true,
        }
    }

    /// Returns all variants that generate records online, with two algorithms.
    fn all_online() -> Vec<Self> {
        let mut setups = Vec::new();
        let mechanisms = [Mechanism::MinimalNsec, Mechanism::Compact, Mechanism::WhiteLies];
        for mechanism in mechanisms {
            let setup = Self::new(Some(mechanism));
            setups.push(Self { algorithm: Algorithm::ECDSAP256SHA256, ..setup.clone() });
            for presigned_with in SIGNINGS {
                setups.push(Self { presigned_with, ..setup.clone() });
            }
        }
        for mechanism in [Mechanism::Nsec5, Mechanism::Nsec5OptOut] {
            let setup = Self::new(Some(mechanism));
            setups.push(Self { vrf: VrfAlgorithm::EDWARDS25519_SHA512_ELL2, stored: false, ..setup.clone() });
            setups.push(setup);
        }
        setups
    }

    fn sign(&self, plain: &Contents, mechanism: Mechanism, proofs: Option<&Proofs>) -> Contents {
        let options = SignOptions {
            nsec3: self.nsec3.clone(),
            drop_foreign_dnskeys: true,
            nsec5: proofs.map(|proofs| Nsec5Chain { proofs, keep_other_keys: false }),
            ..SignOptions::new(mechanism, INCEPTION, INCEPTION + 86_400)
        };
        let keys = KeySet::new(plain.apex(), vec![csk(plain.apex(), self.algorithm, mechanism)]).unwrap();
        sign(plain, &keys, &options).unwrap().into_contents()
    }

    fn publish(&self, plain: &Contents) -> Published {
        let of_image =
            |contents: &Contents, denial| Published::from_parts(Image::compile(contents).unwrap(), denial);
        let Some(mechanism) = self.signing else { return of_image(plain, Denial::Image) };
        if mechanism.name_hash() == NameHash::Vrf {
            let options = ProveOptions::new(mechanism);
            let proofs = prove_chain(plain, &vrf(self.vrf), &options).unwrap().0;
            let signed = self.sign(plain, mechanism, Some(&proofs));
            let key = vrf(self.vrf);
            if self.stored {
                // As in a server that maps an image and does not read the records.
                let image = reopen(&Image::compile(&signed).unwrap());
                let prover = Nsec5Prover::for_zone(&Nsec5Zone::of_image(&image), key, Some(proofs)).unwrap();
                return Published::from_parts(image, Denial::Nsec5(prover.into()));
            }
            let prover = Nsec5Prover::new(&signed, key, None).unwrap();
            return of_image(&signed, Denial::Nsec5(prover.into()));
        }
        if mechanism.generation() == DenialGeneration::Offline {
            return of_image(&self.sign(plain, mechanism, None), Denial::Image);
        }
        let contents = self
            .presigned_with
            .map_or_else(|| plain.clone(), |presigned_with| self.sign(plain, presigned_with, None));
        let pair = csk(plain.apex(), self.algorithm, mechanism);
        let options = OnlineOptions {
            mechanism,
            records: vec![KeyRecord::of(&pair)],
            pairs: vec![pair],
            validity: DEFAULT_VALIDITY,
            sync: CdsSchedule::default(),
        };
        let verify = VerifyOptions { now: Some(NOW), ..VerifyOptions::default() };
        Published::online(prepare(contents, options, &verify).unwrap()).unwrap()
    }
}

impl Zone {
    fn new(text: &str, apex: &str, signing: Option<Mechanism>) -> Self {
        Self::read(text, apex, &SigningSetup::new(signing))
    }

    fn read(text: &str, apex: &str, setup: &SigningSetup) -> Self {
        let read = read::read_text(text.as_bytes(), Path::new("test"), Some(&name(apex)));
        let plain = read.unwrap_or_else(|error| panic!("{error}\n{text}")).contents;
        Self::from_contents(plain, setup)
    }

    fn from_contents(plain: Contents, setup: &SigningSetup) -> Self {
        let published = setup.publish(&plain);
        let from_file = (!published.needs_online_work()).then(|| {
            let image = reopen(published.image());
            Server::new(plain.apex(), Published::from_parts(image, Denial::Image))
        });
        let server = Server::new(plain.apex(), published);
        Self { plain, server, from_file, signing: setup.signing }
    }

    fn image(&self) -> &Image {
        self.server.zone.published().image()
    }

    fn counters(&self) -> OnlineCounters {
        self.server.counters.read()
    }

    fn is_compact(&self) -> bool {
        self.signing == Some(Mechanism::Compact)
    }

    /// Returns the response over TCP.
    fn query_over_tcp(&self, qname: &Name, qtype: Rtype, dnssec_ok: bool) -> Message {
        let octets = self.send(&query(qname, qtype, Some((1232, dnssec_ok))), Transport::Tcp).unwrap();
        let message = Message::parse(&octets).unwrap_or_else(|error| panic!("{qname} {qtype}: {error}"));
        assert_eq!(message.header.id, ID);
        assert_eq!(message.questions.len(), 1);
        assert_eq!(message.questions[0].name.wire(), qname.wire(), "the question is repeated octet by octet");
        assert_eq!(message.questions[0].rtype, qtype);
        assert_eq!(message.header.flags & (flags::TC | flags::RA | flags::AD), 0);
        message
    }

    fn send(&self, octets: &[u8], transport: Transport) -> Option<Vec<u8>> {
        let response = self.server.send(octets, transport, NOW);
        if let Some(from_file) = &self.from_file {
            let again = from_file.send(octets, transport, NOW);
            assert_eq!(response, again, "an image answers the same from a file");
        }
        response
    }

    /// Sends a query, and checks the response with the oracle and the checker.
    fn check_response(&self, qname: &Name, qtype: Rtype, dnssec_ok: bool) -> Result<Message, Mismatch> {
        let message = self.query_over_tcp(qname, qtype, dnssec_ok);
        let expected = Oracle::new(&self.plain).resolve(qname, qtype);
        let outcome = self.check_sections(&message, &expected, dnssec_ok).and_then(|()| {
            let is_signed = self.signing.is_some() && dnssec_ok;
            check_signatures(&message, &expected, is_signed)?;
            if is_signed { self.check_proofs((qname, qtype), &message, &expected) } else { Ok(()) }
        });
        outcome.map_err(|what| {
            let (signing, message) = (self.signing, display_message(&message));
            format!("{qname} {qtype} {signing:?} DO {dnssec_ok}: {what}\nexpected {expected:#?}\n{message}")
        })?;
        Ok(message)
    }

    /// Checks the header and the records that also exist in the unsigned zone.
    fn check_sections(
        &self,
        message: &Message,
        expected: &Expected,
        dnssec_ok: bool,
    ) -> Result<(), Mismatch> {
        // RFC 9824 §3.1: a name that does not exist looks like a name without data.
        let is_hidden = self.is_compact() && dnssec_ok && expected.rcode == Rcode::NXDOMAIN;
        let rcode = if is_hidden { Rcode::NOERROR } else { expected.rcode };
        require(message.rcode() == rcode, "rcode")?;
        require((message.header.flags & flags::AA != 0) == expected.authoritative, "AA")?;
        let data = |section| -> Vec<String> {
            message.section(section).filter(|r| !is_dnssec(r.rtype)).map(line).collect()
        };
        for section in [Section::Answer, Section::Authority, Section::Additional] {
            let lines: Vec<String> = message.section(section).map(whole_line).collect();
            let distinct = lines.iter().collect::<BTreeSet<_>>().len();
            require(lines.len() == distinct, "a section contains a record twice")?;
        }
        require(has_one_denial_for_each_owner(message), "two denial records at one owner")?;
        require(expected.accepts_answer(data(Section::Answer)), "answer")?;
        let mut authority = expected.authority.clone();
        if dnssec_ok {
            authority.extend(expected.delegation_signers.iter().cloned());
        }
        require(BTreeSet::from_iter(data(Section::Authority)) == authority, "authority")?;
        require(BTreeSet::from_iter(data(Section::Additional)) == expected.additional, "additional")
    }

    /// Checks the signatures and proofs of a signed zone.
    fn check_proofs(
        &self,
        (qname, qtype): (&Name, Rtype),
        message: &Message,
        expected: &Expected,
    ) -> Result<(), Mismatch> {
        self.verify(message)?;
        let verify = |owner: &Name, rdata: &[u8]| self.verify_proof(owner, rdata);
        let chain = Chain::of(message, self.plain.apex(), self.is_compact(), verify);
        expected.needs.iter().try_for_each(|need| chain.prove(need, expected))?;
        require(!expected.needs.is_empty() || chain.is_empty(), "an unnecessary proof")?;
        validated::check(self, (qname, qtype), message, expected)
    }

    /// Returns the public keys of the zone with their tags.
    fn public_keys(&self) -> Vec<(u16, PublicKey)> {
        let parse = |rdata: &Vec<u8>| PublicKey::parse(Algorithm(rdata[3]), &rdata[4..]).unwrap();
        let dnskeys = self.image().apex_rdatas(Rtype::DNSKEY);
        dnskeys.iter().map(|rdata| (key_tag(rdata), parse(rdata))).collect()
    }

    /// Verifies every signature of a response (RFC 4035 §5.3).
    fn verify(&self, message: &Message) -> Result<(), Mismatch> {
        let keys = self.public_keys();
        for record in message.records.iter().filter(|record| record.rtype == Rtype::RRSIG) {
            let fields = Rrsig::parse(&record.rdata).unwrap();
            let mut rdatas: Vec<&[u8]> = message
                .records
                .iter()
                .filter(|other| other.section == record.section && other.owner == record.owner)
                .filter(|other| other.rtype == fields.covered)
                .map(|other| other.rdata.as_slice())
                .collect();
            rdatas.sort_by(|a, b| rdata::cmp_canonical(fields.covered, a, b));
            let mut data = Vec::new();
            push_signed_data(&fields, record.owner.view(), rdatas.into_iter(), &mut data);
            let signer =
                keys.iter().find(|(tag, key)| *tag == fields.tag && key.algorithm() == fields.algorithm);
            let verified = signer.is_some_and(|(_, key)| key.verify(&data, fields.signature).is_ok());
            let is_valid_now =
                fields.inception <= NOW && NOW < fields.expiration - record.ttl.min(86_400 - 3600 - 1);
            if !verified || !is_valid_now {
                return Err(format!("an invalid signature: {}", line(record)).into());
            }
        }
        Ok(())
    }

    /// Returns the hash that an NSEC5PROOF record proves for its owner.
    fn verify_proof(&self, owner: &Name, rdata: &[u8]) -> Option<[u8; 32]> {
        let keys = self.image().apex_rdatas(Rtype::NSEC5KEY);
        let key = Nsec5Key::from_rdata(keys.first()?)?;
        let public = VrfPublicKey::parse(key.algorithm(), &key.rdata()[1..]).ok()?;
        let proof = rdata.strip_prefix(&key.tag().to_be_bytes())?;
        public.verify(owner.view().to_canonical().wire(), proof).ok()
    }

    #[track_caller]
    fn checked_response(&self, qname: &str, qtype: Rtype, dnssec_ok: bool) -> Message {
        self.check_response(&name(qname), qtype, dnssec_ok).unwrap_or_else(|what| panic!("{what}"))
    }
}

/// Writes the image to a file and opens the file.
fn reopen(image: &Image) -> Image {
    let contents =
        read::read_text(b"example. SOA . . 1 1 1 1 1\n", Path::new("zone"), None).unwrap().contents;
    let mut octets = Vec::new();
    let nothing = Verification::Nothing;
    image::file::write(image, nothing, &contents, nothing, &mut octets).unwrap();
    ImageFile::open(octets).unwrap().into_image()
}

/// Returns a query. `opt` contains payload size and DO flag.
fn query(qname: &Name, qtype: Rtype, opt: Option<(u16, bool)>) -> Vec<u8> {
    let mut octets = Vec::new();
    push_query(qname, qtype, ID, 0, &mut octets);
    if let Some((payload, dnssec_ok)) = opt {
        edns::push_opt(payload, 0, if dnssec_ok { edns::DO } else { 0 }, &mut octets);
        octets[HEADER - 1] = 1;
    }
    octets
}

const fn is_dnssec(rtype: Rtype) -> bool {
    matches!(rtype, Rtype::RRSIG | Rtype::NSEC | Rtype::NSEC3 | Rtype::NSEC5 | Rtype::NSEC5PROOF)
}

/// Returns whether each owner has only one denial record of a type, in all sections together. Two
/// different records would form an RRset that no signature matches (RFC 2181 §5).
fn has_one_denial_for_each_owner(message: &Message) -> bool {
    let is_denial = |record: &&Record| matches!(record.rtype, Rtype::NSEC | Rtype::NSEC3 | Rtype::NSEC5);
    let denials: Vec<&Record> = message.records.iter().filter(is_denial).collect();
    let fits = |a: &Record, b: &Record| (&a.owner, a.rtype) != (&b.owner, b.rtype) || a.rdata == b.rdata;
    denials.iter().all(|a| denials.iter().all(|b| fits(a, b)))
}

/// Returns type covered and labels of an RRSIG record.
fn signed_type_and_labels(record: &Record) -> (Rtype, u8) {
    (Rtype(u16::from_be_bytes([record.rdata[0], record.rdata[1]])), record.rdata[3])
}

/// Returns a record in lower case. For a signature, only the fields that do not depend on key and
/// time.
fn line(record: &Record) -> String {
    let (owner, ttl, rtype) = (&record.owner, record.ttl, record.rtype);
    if rtype == Rtype::RRSIG {
        let (covered, labels) = signed_type_and_labels(record);
        return format!("{owner} {ttl} {rtype} {covered} {labels}").to_lowercase();
    }
    whole_line(record)
}

fn whole_line(record: &Record) -> String {
    text_line(&record.owner, record.ttl, record.rtype, &record.rdata)
}

fn text_line(owner: &Name, ttl: u32, rtype: Rtype, octets: &[u8]) -> String {
    let mut text = Vec::new();
    rdata::push_text(rtype, octets, &mut text);
    format!("{owner} {ttl} {rtype} {}", String::from_utf8_lossy(&text)).to_lowercase()
}

fn lines(message: &Message, section: Section) -> BTreeSet<String> {
    message.section(section).map(line).collect()
}

fn set(lines: &[&str]) -> BTreeSet<String> {
    lines.iter().map(|line| line.to_lowercase()).collect()
}

/// Returns the whole response as text for failure messages.
fn display_message(message: &Message) -> String {
    let mut text = format!("{} flags {:04x}\n", message.rcode(), message.header.flags);
    for record in &message.records {
        let rest = if record.rtype == Rtype::OPT { String::from("OPT") } else { line(record) };
        text.push_str(&format!("{:?}: {rest}\n", record.section));
    }
    text
}

/// RFC 4035 §3.1.1: with DO, every signed RRset has its signatures in the response, with the same
/// TTL. Without DO, the response contains no DNSSEC record.
fn check_signatures(message: &Message, expected: &Expected, is_expected: bool) -> Result<(), Mismatch> {
    if !is_expected {
        let stray = message.records.iter().find(|record| is_dnssec(record.rtype));
        return stray
            .map_or(Ok(()), |record| Err(format!("DNSSEC record without DO: {}", line(record)).into()));
    }
    for record in message.records.iter().filter(|r| r.rtype != Rtype::OPT) {
        let signatures = |rtype: Rtype| {
            message.records.iter().filter(move |other| {
                other.rtype == Rtype::RRSIG
                    && other.section == record.section
                    && other.owner == record.owner
                    && signed_type_and_labels(other).0 == rtype
            })
        };
        if record.rtype == Rtype::RRSIG {
            let rtype = signed_type_and_labels(record).0;
            let same = |other: &&Record| {
                other.rtype == rtype && other.owner == record.owner && other.section == record.section
            };
            if !message.records.iter().any(|other| same(&other)) {
                return Err(format!("signature without its RRset: {}", line(record)).into());
            }
            continue;
        }
        let count = signatures(record.rtype).count();
        // A proof needs no signature, because it can be generated only with the VRF key.
        let signed = expected.is_signed(record) && record.rtype != Rtype::NSEC5PROOF;
        if (count > 0) != signed {
            return Err(format!("{count} signatures: {}", line(record)).into());
        }
        if signatures(record.rtype).any(|signature| signature.ttl != record.ttl) {
            return Err(format!("TTL of the signature: {}", line(record)).into());
        }
    }
    Ok(())
}
