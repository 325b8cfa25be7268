//! All combinations of key kind and denial mechanism, on a generated zone like that of a TLD. Each
//! zone is signed, verified by this program and by every installed peer that supports the
//! algorithm, and served. The test queries an existing name, a missing name and a missing type, and
//! verifies the signatures of the responses.

use crate::common;
use common::{MECHANISMS, done, folder, generate_key, is_installed, run, serve, sign, text};
use nonesuch_crypto::{ALGORITHMS, Algorithm, PublicKey, key_tag};
use nonesuch_dnssec::rrsig::{Rrsig, push_signed_data};
use nonesuch_proto::message::{Message, Rcode, Record, Section, push_query};
use nonesuch_proto::{Name, Rtype, rdata};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const ORIGIN: &str = "grid.example.";

/// Number of delegations of the zone.
const NAMES: &str = "200";

/// Number of names of the zone, for algorithms that sign slowly. One mechanism is tested with them:
/// the one with the largest responses.
const FEW_NAMES: &str = "6";
const LARGEST_RESPONSES: [&str; 1] = ["nsec3"];

/// A program that verifies a signed zone, and the algorithms that it supports.
struct Peer {
    program: &'static str,
    /// Arguments before the file; `ORIGIN` is replaced with the apex.
    arguments: &'static [&'static str],
    knows: &'static [Algorithm],
}

/// Algorithms that BIND 9.18, ldns 1.8 and Knot DNS 3.2 support: those that an RFC defines.
const RFCS: &[Algorithm] = &[
    Algorithm::RSASHA256,
    Algorithm::RSASHA512,
    Algorithm::ECDSAP256SHA256,
    Algorithm::ECDSAP384SHA384,
    Algorithm::ED25519,
    Algorithm::ED448,
];

const PEERS: [Peer; 3] = [
    Peer { program: "dnssec-verify", arguments: &["-q", "-o", "ORIGIN"], knows: RFCS },
    Peer { program: "ldns-verify-zone", arguments: &["-V1"], knows: RFCS },
    Peer { program: "kzonecheck", arguments: &["-o", "ORIGIN"], knows: RFCS },
];

/// A kind of key.
struct Kind {
    algorithm: &'static str,
    bits: Option<u16>,
}

impl Kind {
    fn number(&self) -> Algorithm {
        self.algorithm.parse().expect("an algorithm of the table")
    }
}

const fn kind(algorithm: &'static str) -> Kind {
    Kind { algorithm, bits: None }
}

const fn rsa(algorithm: &'static str, bits: u16) -> Kind {
    Kind { algorithm, bits: Some(bits) }
}

/// The kinds of keys, with one test for each, so that a failure names its kind.
macro_rules! grid {
    ($($name:ident: $kind:expr,)*) => {
        const KINDS: &[Kind] = &[$($kind),*];
        $(
            #[test]
            fn $name() {
                all_mechanisms(&$kind);
            }
        )*
    };
}

grid! {
    rsasha256_1280: rsa("rsasha256", 1280),
    rsasha256_2048: rsa("rsasha256", 2048),
    rsasha256_3072: rsa("rsasha256", 3072),
    rsasha512_1280: rsa("rsasha512", 1280),
    rsasha512_2048: rsa("rsasha512", 2048),
    rsasha512_3072: rsa("rsasha512", 3072),
    ecdsap256sha256: kind("ecdsap256sha256"),
    ecdsap384sha384: kind("ecdsap384sha384"),
    ed25519: kind("ed25519"),
    ed448: kind("ed448"),
    mldsa44: kind("mldsa44"),
    falcon512: kind("falcon512"),
    mayo2: kind("mayo2"),
    slhdsa128s: kind("slhdsa128s"),
}

#[test]
fn the_grid_has_every_algorithm_of_the_table() {
    let table = ALGORITHMS.iter().filter(|entry| entry.alias_of.is_none()).map(|entry| entry.algorithm);
    let kinds: BTreeSet<Algorithm> = KINDS.iter().map(Kind::number).collect();
    assert_eq!(kinds, table.collect());
}

/// All mechanisms with one kind of key.
fn all_mechanisms(kind: &Kind) {
    let folder = folder();
    let (unsigned, keys) = (folder.path().join("unsigned"), folder.path().join("keys"));
    let is_slow = kind.number().entry().expect("a row").scheme.signs_slowly;
    let names = if is_slow { FEW_NAMES } else { NAMES };
    done(["zone", "generate", "--like", "tld", "--names", names, "-o", ORIGIN, "-f", text(&unsigned)]);
    let delegation = secure_delegation(&unsigned);
    let bits = kind.bits.map(|bits| bits.to_string());
    let bits = bits.as_deref().map_or_else(Vec::new, |bits| vec!["--bits", bits]);
    generate_key(&keys, ORIGIN, kind.algorithm, &[&["--ksk"], &bits[..]].concat());
    generate_key(&keys, ORIGIN, kind.algorithm, &bits);
    for mechanism in if is_slow { &LARGEST_RESPONSES[..] } else { &MECHANISMS[..] } {
        let signed = folder.path().join(mechanism);
        sign(&unsigned, ORIGIN, &keys, mechanism, &signed);
        done(["zone", "verify", text(&signed)]);
        for peer in
            PEERS.iter().filter(|peer| peer.knows.contains(&kind.number()) && is_installed(peer.program))
        {
            let what = format!("{} on {}, {:?}, {mechanism}", peer.program, kind.algorithm, kind.bits);
            let arguments =
                peer.arguments.iter().map(|argument| if *argument == "ORIGIN" { ORIGIN } else { argument });
            run(Command::new(peer.program).args(arguments).arg(&signed)).expect_done(&what);
        }
        answers_are_signed(&signed, kind.number(), &delegation);
    }
}

/// The first name with a DS record.
fn secure_delegation(zone: &Path) -> Name {
    let zone = std::fs::read_to_string(zone).expect("the zone");
    let origin: Name = ORIGIN.parse().expect("a name");
    let line =
        zone.lines().find(|line| line.split_whitespace().any(|word| word == "DS")).expect("a DS record");
    let owner = line.split_whitespace().next().expect("an owner");
    Name::from_text(owner.as_bytes(), Some(origin.view())).expect("a name")
}

/// Serves the zone and verifies the responses: an existing name, its DS, a missing name, a missing
/// type.
fn answers_are_signed(signed: &Path, algorithm: Algorithm, delegation: &Name) {
    let server = serve(signed, &["--verify", "structural"]);
    let apex: Name = ORIGIN.parse().expect("a name");
    // No generated zone contains a label with this doubled letter: see the generator of queries.
    let missing: Name = format!("aaqqzzaaqq.{ORIGIN}").parse().expect("a name");
    let dnskeys = ask(server.address, &apex, Rtype::DNSKEY);
    let keys: Vec<Vec<u8>> = dnskeys
        .records
        .iter()
        .filter(|record| record.rtype == Rtype::DNSKEY)
        .map(|record| record.rdata.clone())
        .collect();
    assert_eq!(keys.len(), 2, "{algorithm}");
    assert!(keys.iter().all(|key| key[3] == algorithm.0), "{algorithm}");
    let cases = [
        (&apex, Rtype::DNSKEY, Rcode::NOERROR, Some(Rtype::DNSKEY)),
        (&apex, Rtype::SOA, Rcode::NOERROR, Some(Rtype::SOA)),
        (delegation, Rtype::DS, Rcode::NOERROR, Some(Rtype::DS)),
        (delegation, Rtype::A, Rcode::NOERROR, None),
        (&apex, Rtype(65), Rcode::NOERROR, None),
        (&missing, Rtype::A, Rcode::NXDOMAIN, None),
    ];
    for (name, rtype, rcode, answered) in cases {
        let response = ask(server.address, name, rtype);
        let what = format!("{name} {rtype}, {algorithm}");
        assert_eq!(response.rcode(), rcode, "{what}");
        let answers: Vec<&Record> = response.section(Section::Answer).collect();
        match answered {
            Some(rtype) => assert!(answers.iter().any(|record| record.rtype == rtype), "{what}"),
            None => assert!(answers.is_empty(), "{what}: {answers:?}"),
        }
        let verified = verify_sections(&response, algorithm, &keys, &what);
        let denial = [Rtype::NSEC, Rtype::NSEC3].iter().any(|rtype| verified.contains(rtype));
        let is_referral = name == delegation && rtype == Rtype::A;
        match answered {
            Some(rtype) => assert!(verified.contains(&rtype), "{what}: {verified:?}"),
            None if is_referral => assert!(verified.contains(&Rtype::DS), "{what}: {verified:?}"),
            None => assert!(denial && verified.contains(&Rtype::SOA), "{what}: {verified:?}"),
        }
    }
}

/// Verifies a signature over every RRset of the answer and authority sections, except the NS RRset
/// of a referral (RFC 4035 §2.2). Returns the verified types.
fn verify_sections(
    response: &Message,
    algorithm: Algorithm,
    keys: &[Vec<u8>],
    what: &str,
) -> BTreeSet<Rtype> {
    let apex: Name = ORIGIN.parse().expect("a name");
    let mut rrsets: BTreeMap<(Section, Name, Rtype), Vec<&[u8]>> = BTreeMap::new();
    let mut signatures = Vec::new();
    for record in response.records.iter().filter(|record| record.section != Section::Additional) {
        match record.rtype {
            Rtype::RRSIG => signatures.push((record, Rrsig::parse(&record.rdata).expect("an RRSIG"))),
            rtype => {
                rrsets.entry((record.section, record.owner.clone(), rtype)).or_default().push(&record.rdata);
            }
        }
    }
    let mut verified = BTreeSet::new();
    for ((section, owner, rtype), mut rdatas) in rrsets {
        if rtype == Rtype::NS && owner != apex {
            continue;
        }
        rdatas.sort_by(|a, b| rdata::cmp_canonical(rtype, a, b));
        let covers = |(record, rrsig): &&(&Record, Rrsig<'_>)| {
            record.section == section && record.owner == owner && rrsig.covered == rtype
        };
        let (_, rrsig) =
            signatures.iter().find(covers).unwrap_or_else(|| panic!("{what}: {owner} {rtype} is not signed"));
        assert_eq!((rrsig.algorithm, rrsig.signer), (algorithm, apex.view()), "{what}: {owner} {rtype}");
        let key = keys.iter().find(|key| key_tag(key) == rrsig.tag).expect("the key of the signature");
        let key = PublicKey::parse(algorithm, &key[4..]).expect("a key");
        let mut message = Vec::new();
        push_signed_data(rrsig, owner.view(), rdatas.into_iter(), &mut message);
        assert_eq!(key.verify(&message, rrsig.signature), Ok(()), "{what}: {owner} {rtype}");
        verified.insert(rtype);
    }
    verified
}

/// Sends a query with DO over TCP, which has room for responses of every size.
fn ask(server: SocketAddr, name: &Name, rtype: Rtype) -> Message {
    let mut query = vec![0, 0];
    push_query(name, rtype, 0x4567, 0, &mut query);
    // One additional record: OPT, 1232 octets, DO (RFC 6891 §6.1.2, RFC 3225).
    query[2 + 11] = 1;
    query.extend_from_slice(&[0, 0, 41, 4, 208, 0, 0, 0x80, 0, 0, 0]);
    let length = u16::try_from(query.len() - 2).expect("a short query").to_be_bytes();
    query[..2].copy_from_slice(&length);
    let mut stream = TcpStream::connect(server).expect("connected");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
    stream.write_all(&query).expect("sent");
    let mut length = [0; 2];
    stream.read_exact(&mut length).expect("a response");
    let mut response = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut response).expect("a whole response");
    Message::parse(&response).expect("a message")
}
