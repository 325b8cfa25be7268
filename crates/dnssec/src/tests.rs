//! Tests of signing and verifying whole zones, and the functions that these tests share.

mod aliases;
mod changed;
mod denial;
mod faults;
mod keys;
mod nsec5;
mod offline;
mod random;
mod resign;
mod resign_random;
mod rfc;
mod root;
mod rrsets;
mod seals;
mod signing;
mod transition;
mod unusual;
mod validate;
mod zonemd;

use crate::denial::nsec5::{Nsec5Chain, Nsec5Evidence, Proofs};
use crate::denial::{Mechanism, NameHash, Nsec3Params};
use crate::keys::{KeyPair, KeySet};
use crate::rrsig::{Rrsig, push_signed_data};
use crate::sign::{SignError, SignOptions, sign};
use crate::verify::{Fault, FaultReason, Report, VerifyOptions, VerifyWarning, verify, verify_with};
use nonesuch_crypto::{Algorithm, PrivateKey};
use nonesuch_proto::{Name, Rtype, rdata};
use nonesuch_zone::{Contents, Node, NodesBuilder, read, write};
use std::path::Path;
use std::sync::Arc;

const NOW: u32 = 1_750_000_000;
const INCEPTION: u32 = NOW - 3600;
const EXPIRATION: u32 = NOW + 14 * 86_400;
/// The mechanisms that need no VRF key.
const NSEC_AND_NSEC3: [Mechanism; 3] = [Mechanism::Nsec, Mechanism::Nsec3, Mechanism::Nsec3OptOut];
/// Every mechanism.
const ALL_MECHANISMS: [Mechanism; 5] =
    [Mechanism::Nsec, Mechanism::Nsec3, Mechanism::Nsec3OptOut, Mechanism::Nsec5, Mechanism::Nsec5OptOut];

/// `io::Error` does not implement `PartialEq`.
impl PartialEq for SignError {
    fn eq(&self, other: &Self) -> bool {
        format!("{self:?}") == format!("{other:?}")
    }
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// Returns a zone with `records` below `$ORIGIN example.`, after an SOA record with TTL 3600 and
/// minimum 900 and an NS record.
fn zone(records: &str) -> Contents {
    let text = format!(
        "$ORIGIN example.\n$TTL 3600\n@ SOA ns1 hostmaster 7 3600 300 3600000 900\n@ NS ns.elsewhere.test.\n{records}\n"
    );
    read_zone(&text, &name("example."))
}

fn read_zone(text: &str, apex: &Name) -> Contents {
    read::read_text(text.as_bytes(), Path::new("test"), Some(apex)).unwrap().contents
}

/// Three RSA keys. RSA keys cannot be derived from a seed.
const RSA_KEYS: [&str; 3] = [
    include_str!("tests/rsa2048-1.private"),
    include_str!("tests/rsa2048-2.private"),
    include_str!("tests/rsa2048-3.private"),
];

/// Returns a key that is the same in every run. `seed` is its scalar or seed; for RSA it is 1, 2 or
/// 3.
fn key(zone: &str, flags: u16, algorithm: Algorithm, seed: u8) -> KeyPair {
    let octets = if algorithm.without_alias() == Algorithm::ECDSAP384SHA384 { 48 } else { 32 };
    let scalar = data_encoding::BASE64.encode(&vec![seed; octets]);
    let number = algorithm.0;
    let text = match algorithm.without_alias() {
        Algorithm::RSASHA256 => {
            RSA_KEYS[usize::from(seed) - 1].replace("Algorithm: 8 ", &format!("Algorithm: {number} "))
        }
        _ => format!("Private-key-format: v1.3\nAlgorithm: {number} (X)\nPrivateKey: {scalar}\n"),
    };
    KeyPair::new(name(zone), flags, PrivateKey::from_bind(&text).unwrap())
}

/// A KSK and a ZSK of Ed25519.
fn ksk_and_zsk_of(zone: &str) -> KeySet {
    let keys = vec![key(zone, 257, Algorithm::ED25519, 1), key(zone, 256, Algorithm::ED25519, 2)];
    KeySet::new(&name(zone), keys).unwrap()
}

/// A CSK.
fn csk_of(zone: &str) -> KeySet {
    KeySet::new(&name(zone), vec![key(zone, 257, Algorithm::ED25519, 1)]).unwrap()
}

fn options(mechanism: Mechanism) -> SignOptions<'static> {
    SignOptions::new(mechanism, INCEPTION, EXPIRATION)
}

/// Signs with any mechanism. For NSEC5, it proves the names with the VRF key of the tests.
fn sign_any(
    contents: &Contents,
    keys: &KeySet,
    options: &SignOptions<'_>,
) -> (Contents, Option<Arc<Proofs>>) {
    let is_nsec5 = options.mechanism.name_hash() == NameHash::Vrf;
    let proofs = is_nsec5.then(|| nsec5::prove(contents, &nsec5::vrf(), options.mechanism));
    let nsec5 = proofs.as_ref().map(|proofs| Nsec5Chain { proofs, keep_other_keys: true });
    let signed = sign(contents, keys, &SignOptions { nsec5, ..options.clone() }).unwrap();
    (signed.into_contents(), proofs.map(Arc::new))
}

/// The number of `algorithm` in a zone with `mechanism`: for NSEC5 it is the alias number.
fn number_for(algorithm: Algorithm, mechanism: Mechanism) -> Algorithm {
    match mechanism.name_hash() {
        NameHash::Vrf => algorithm.nsec5_alias().unwrap_or(algorithm),
        NameHash::Unhashed | NameHash::Sha1 => algorithm,
    }
}

fn report(contents: &Contents) -> Report {
    verify(contents, &VerifyOptions { now: Some(NOW), ..VerifyOptions::default() })
}

/// Signs with a KSK and a ZSK and asserts that the signed zone has neither faults nor warnings.
fn signed(contents: &Contents, mechanism: Mechanism) -> Contents {
    let keys = ksk_and_zsk_of(&contents.apex().to_string());
    let signed = sign(contents, &keys, &options(mechanism)).unwrap();
    assert_sound(signed.contents());
    let report = report(signed.contents());
    assert_eq!(report.signatures_verified, signed.statistics().signatures);
    assert_eq!(report.rrsets, signed.statistics().rrsets_signed);
    signed.into_contents()
}

#[track_caller]
fn assert_sound(contents: &Contents) {
    let report = report(contents);
    assert_eq!(report.faults, [], "{}", text(contents));
    assert_eq!(report.warnings, []);
}

/// Asserts that the zone is sound. It ignores warnings of keys with alias algorithm numbers in a
/// zone without NSEC5.
#[track_caller]
fn assert_sound_with_aliases(contents: &Contents, keys: &KeySet, mechanism: Mechanism) {
    let report = report(contents);
    assert_eq!(report.faults, [], "{}", text(contents));
    let warning = |key: &KeyPair| {
        let (tag, algorithm) = (key.tag(), key.algorithm());
        VerifyWarning::AliasAlgorithmWithoutNsec5 { tag, algorithm, mechanism }
    };
    assert_eq!(report.warnings.len(), keys.keys().len());
    assert!(keys.keys().iter().all(|key| report.warnings.contains(&warning(key))), "{:?}", report.warnings);
}

fn text(contents: &Contents) -> String {
    let mut out = Vec::new();
    write::write_zone(contents, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn node<'z>(contents: &'z Contents, owner: &str) -> Node<'z> {
    contents.find(name(owner).view()).unwrap_or_else(|_| panic!("{owner} is not in the zone"))
}

fn has_node(contents: &Contents, owner: &str) -> bool {
    contents.find(name(owner).view()).is_ok()
}

/// RDATA of an RRset in presentation form; empty if the RRset does not exist.
fn rdatas(contents: &Contents, owner: &str, rtype: Rtype) -> Vec<String> {
    let Some(rrset) = node(contents, owner).rrset(rtype) else { return Vec::new() };
    let to_text = |octets| {
        let mut out = Vec::new();
        rdata::push_text(rtype, octets, &mut out);
        String::from_utf8(out).unwrap()
    };
    rrset.rdatas().map(to_text).collect()
}

/// Types of the signed RRsets at `owner`.
fn signed_types(contents: &Contents, owner: &str) -> Vec<Rtype> {
    let signatures = node(contents, owner).rrsets().filter(|rrset| rrset.rtype() == Rtype::RRSIG);
    signatures.map(|rrset| rrset.covered()).collect()
}

/// Owner of the NSEC3 record for `owner`, without salt and additional iterations.
fn hashed(owner: &str) -> String {
    let hash = Nsec3Params::default().hash(name(owner).view(), &mut Vec::new());
    let label = crate::denial::nsec3::chain::label(&hash);
    format!("{}.example.", String::from_utf8_lossy(&label))
}

/// Types in the bit map of the NSEC3 record for `owner`; `None` if the record does not exist.
fn nsec3_types(contents: &Contents, owner: &str) -> Option<String> {
    let hashed = hashed(owner);
    let rdata = rdatas(contents.find(name(&hashed).view()).ok().map(|_| contents)?, &hashed, Rtype::NSEC3);
    Some(rdata[0].split(' ').skip(5).collect::<Vec<_>>().join(" "))
}

/// A zone as lines of text, in which a test can plant faults.
#[derive(Clone)]
struct Bench {
    keys: Arc<KeySet>,
    apex: Name,
    mechanism: Mechanism,
    lines: Vec<String>,
    /// The stored proofs of a zone with NSEC5.
    proofs: Option<Arc<Proofs>>,
}

impl Bench {
    fn new(contents: &Contents, keys: impl Into<Arc<KeySet>>, mechanism: Mechanism) -> Self {
        let bench = Self::of(contents, keys.into(), &options(mechanism));
        let report = bench.report();
        assert_eq!((report.faults, report.warnings), (vec![], vec![]), "{}", bench.lines.join("\n"));
        bench
    }

    /// The signed zone, without any assertion.
    fn of(contents: &Contents, keys: Arc<KeySet>, options: &SignOptions<'_>) -> Self {
        let (signed, proofs) = sign_any(contents, &keys, options);
        let lines = lines_of(&signed);
        Self { keys, apex: contents.apex().clone(), mechanism: options.mechanism, lines, proofs }
    }

    /// Signs the zone again with other contents.
    fn sign_anew(&mut self, contents: &Contents) {
        *self = Self::of(contents, Arc::clone(&self.keys), &options(self.mechanism));
    }

    fn evidence(&self) -> Nsec5Evidence<'_> {
        Nsec5Evidence { proofs: self.proofs.as_deref(), key: None }
    }

    /// Verifies the zone, with the stored proofs if there are any.
    fn report(&self) -> Report {
        let options = VerifyOptions { now: Some(NOW), ..VerifyOptions::default() };
        verify_with(&self.contents(), &options, &self.evidence())
    }

    fn is_nsec5(&self) -> bool {
        self.mechanism.name_hash() == NameHash::Vrf
    }

    /// An algorithm that no key of the table has, with the number that the zone uses for it.
    fn other_algorithm(&self) -> Algorithm {
        number_for(Algorithm::ECDSAP384SHA384, self.mechanism)
    }

    /// Type of the chain records.
    fn chain_type(&self) -> Rtype {
        match self.mechanism.name_hash() {
            NameHash::Unhashed => Rtype::NSEC,
            NameHash::Sha1 => Rtype::NSEC3,
            NameHash::Vrf => Rtype::NSEC5,
        }
    }

    /// Owner of the chain record for `owner`.
    fn chain_owner(&self, owner: &str) -> String {
        match self.mechanism.name_hash() {
            NameHash::Unhashed => owner.to_owned(),
            NameHash::Sha1 => hashed(owner),
            NameHash::Vrf => nsec5::hashed(owner),
        }
    }

    /// Changes the chain record for `owner` and signs it again. Returns the owner of the record.
    fn edit_chain(&mut self, owner: &str, change: impl Fn(&str) -> String) -> String {
        let (at, rtype) = (self.chain_owner(owner), self.chain_type());
        self.edit(&at, &rtype.to_string(), change);
        self.sign_again(&at, rtype, |_| {});
        at
    }

    fn contents(&self) -> Contents {
        read_zone(&self.lines.join("\n"), &self.apex)
    }

    fn faults(&self) -> Vec<Fault> {
        self.report().faults
    }

    /// Asserts the owner, type and reason of each fault.
    #[track_caller]
    fn assert_faults(&self, expected: &[(&str, Option<Rtype>, FaultReason)]) {
        let expected: Vec<Fault> = expected
            .iter()
            .map(|(owner, rtype, reason)| Fault { owner: name(owner), rtype: *rtype, reason: reason.clone() })
            .collect();
        assert_eq!(self.faults(), expected);
    }

    /// Fields of a line: owner, TTL, class, type, RDATA.
    fn fields(line: &str) -> Vec<&str> {
        line.splitn(5, '\t').collect()
    }

    fn is(line: &str, owner: &str, rtype: &str) -> bool {
        let fields = Self::fields(line);
        name(fields[0]) == name(owner) && is_type(fields[3], rtype)
    }

    /// Whether the line is an RRSIG record at `owner` that covers `rtype`.
    fn is_signature(line: &str, owner: &str, rtype: &str) -> bool {
        Self::is(line, owner, "RRSIG")
            && Self::fields(line)[4].split(' ').next().is_some_and(|covered| is_type(covered, rtype))
    }

    fn remove(&mut self, owner: &str, rtype: &str) {
        let before = self.lines.len();
        self.lines.retain(|line| !Self::is(line, owner, rtype));
        assert!(self.lines.len() < before, "{owner} {rtype}");
    }

    fn remove_signatures(&mut self, owner: &str, rtype: &str) {
        self.lines.retain(|line| !Self::is_signature(line, owner, rtype));
    }

    /// Adds a record. One space separates its fields.
    fn add(&mut self, line: &str) {
        self.lines.push(line.replacen(' ', "\t", 4));
    }

    /// Changes the RDATA text of every record of an RRset.
    fn edit(&mut self, owner: &str, rtype: &str, change: impl Fn(&str) -> String) {
        let mut changed = false;
        for line in self.lines.iter_mut().filter(|line| Self::is(line, owner, rtype)) {
            let mut fields: Vec<String> = Self::fields(line).into_iter().map(str::to_owned).collect();
            let new = change(&fields[4]);
            changed |= new != fields[4];
            fields[4] = new;
            *line = fields.join("\t");
        }
        assert!(changed, "{owner} {rtype}");
    }

    /// Signs an RRset again with the keys that should sign it. `change` may modify the RRSIG fields
    /// before.
    fn sign_again(&mut self, owner: &str, rtype: Rtype, change: impl Fn(&mut Rrsig<'_>)) {
        self.remove_signatures(owner, &rtype.to_string());
        self.sign_more(owner, rtype, change);
    }

    /// Adds signatures to an RRset.
    fn sign_more(&mut self, owner: &str, rtype: Rtype, change: impl Fn(&mut Rrsig<'_>)) {
        let (contents, keys) = (self.contents(), Arc::clone(&self.keys));
        for &place in keys.signers(rtype) {
            self.sign_with(&contents, owner, rtype, &keys.keys()[place], &change);
        }
    }

    /// Adds a signature by `key`.
    fn sign_by(&mut self, owner: &str, rtype: Rtype, key: &KeyPair) {
        let contents = self.contents();
        self.sign_with(&contents, owner, rtype, key, |_| {});
    }

    fn sign_with(
        &mut self,
        contents: &Contents,
        owner: &str,
        rtype: Rtype,
        key: &KeyPair,
        change: impl Fn(&mut Rrsig<'_>),
    ) {
        let octets = signature(contents, owner, rtype, key, change);
        let ttl = node(contents, owner).rrset(rtype).unwrap().ttl();
        let mut out = Vec::new();
        rdata::push_text(Rtype::RRSIG, &octets, &mut out);
        let rdata = String::from_utf8(out).unwrap();
        self.lines.push(format!("{owner}\t{ttl}\tIN\tRRSIG\t{rdata}"));
    }
}

/// Whether two words mean the same type, as mnemonic or number.
fn is_type(word: &str, other: &str) -> bool {
    word == other || word.parse::<Rtype>().is_ok_and(|rtype| other.parse() == Ok(rtype))
}

/// A zone as lines. Types in the form of unknown types (RFC 3597) with their mnemonic form as a
/// comment are in the mnemonic form.
fn lines_of(contents: &Contents) -> Vec<String> {
    let in_mnemonics = |line: &str| match line.split_once(" ; ") {
        Some((fields, comment)) if fields.contains("\t\\# ") => {
            let (rtype, rdata) = comment.split_once(' ').unwrap();
            let head: Vec<&str> = fields.split('\t').take(3).collect();
            format!("{}\t{rtype}\t{rdata}", head.join("\t"))
        }
        _ => line.to_owned(),
    };
    text(contents).lines().map(in_mnemonics).collect()
}

/// RDATA of an RRSIG record by `key` over an RRset. `change` may modify the fields before.
fn signature(
    contents: &Contents,
    owner: &str,
    rtype: Rtype,
    key: &KeyPair,
    change: impl Fn(&mut Rrsig<'_>),
) -> Vec<u8> {
    let rrset = node(contents, owner).rrset(rtype).unwrap();
    let owner = name(owner);
    let mut fields = Rrsig {
        covered: rtype,
        algorithm: key.algorithm(),
        labels: owner.view().rrsig_labels(),
        original_ttl: rrset.ttl(),
        expiration: EXPIRATION,
        inception: INCEPTION,
        tag: key.tag(),
        signer: contents.apex().view(),
        signature: &[],
    };
    change(&mut fields);
    let (mut message, mut octets) = (Vec::new(), Vec::new());
    push_signed_data(&fields, owner.view(), rrset.rdatas(), &mut message);
    fields.push_fields(&mut octets);
    key.private().sign(&message, &mut octets).unwrap();
    octets
}

/// Copies contents and applies `change` (node, type, type covered, RDATA) to the RDATA of each
/// record.
fn rewrite(contents: &Contents, mut change: impl FnMut(Node<'_>, Rtype, Rtype, &mut Vec<u8>)) -> Contents {
    let mut run = NodesBuilder::default();
    for node in contents.nodes() {
        run.begin_node(node.name());
        for rrset in node.rrsets() {
            run.begin_rrset(rrset.rtype(), rrset.covered(), rrset.ttl());
            for octets in rrset.rdatas() {
                let mut octets = octets.to_vec();
                change(node, rrset.rtype(), rrset.covered(), &mut octets);
                run.push_record(|out| out.extend_from_slice(&octets));
            }
        }
    }
    Contents::from_parts(contents.apex(), vec![run])
}
