//! Reproduction of "Making NSEC5 Practical for DNSSEC": its example zone (figure 3), the denials of
//! section 5 and of figures 4 and 5, and table 3: the maximum length of a negative response by
//! equations (1) and (2), the number of verifications, and the operations that are computed online.
//! This project's signer signs the zone.
//!
//! The paper counts the data that the mechanism adds: hashes, signatures over the records of the
//! chain, proofs. It does not count the SOA record with its signature, names, types and headers.

use crate::common;
use crate::nsec5_checker::answers;
use crate::nsec5_checker::judges;
use crate::nsec5_checker::zone;
use answers::{Case, SECURE, Shape, answer};
use common::{folder, generate_key, generate_keys, nonesuch, run, serve, sign, text};
use nonesuch_dnssec::rrsig::Rrsig;
use nonesuch_proto::message::{Message, Rcode, Record, Section, push_query};
use nonesuch_proto::{Name, Rtype, bitmap};
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::time::Duration;
use zone::{Kind, Zone};

const ORIGIN: &str = "example.com.";

/// Figure 3, with the SOA and NS records that every zone has. The name of the server is that of
/// figures 4 and 5.
const FIGURE_3: &str = "$ORIGIN example.com.\n$TTL 3600\n@ SOA dns1 hostmaster 1 10800 3600 1209600 3600\n@ NS dns1.example.net.\n\
    @ A 192.0.2.1\nbar A 192.0.2.2\nwww A 192.0.2.3\n*.www A 192.0.2.4\n";

/// Number of names in the zone.
const NAMES: usize = 4;

/// Number of queried missing names, for the maximum response length.
const QUESTIONS: usize = 300;

/// The security level ℓ of the hashes, in bits: half the length of a hash.
const LEVEL_OF_SHA1: usize = 80;
const LEVEL_OF_SHA256: usize = 128;

fn name(text: &str) -> Name {
    text.parse().expect("a name")
}

fn missing() -> impl Iterator<Item = Name> {
    (0..QUESTIONS).map(|number| name(&format!("q{number}.example.com.")))
}

/// The records of the denial: NSEC, NSEC3, NSEC5 with their signatures, and proofs.
fn denial(records: &[Record]) -> Vec<&Record> {
    let chain = [Rtype::NSEC, Rtype::NSEC3, Rtype::NSEC5, Rtype::NSEC5PROOF];
    let covered = |record: &Record| match Rrsig::parse(&record.rdata) {
        Some(rrsig) if record.rtype == Rtype::RRSIG => rrsig.covered,
        _ => record.rtype,
    };
    let authority = records.iter().filter(|record| record.section == Section::Authority);
    authority.filter(|record| chain.contains(&covered(record))).collect()
}

fn count(records: &[Record], rtype: Rtype) -> usize {
    denial(records).into_iter().filter(|record| record.rtype == rtype).count()
}

/// The length that the paper counts, in bits: the hashes of owner and next name, signatures,
/// proofs.
fn length(records: &[Record]) -> usize {
    let octets = denial(records).into_iter().map(|record| match record.rtype {
        Rtype::NSEC3 => 2 * usize::from(record.rdata[5 + usize::from(record.rdata[4])]),
        Rtype::NSEC5 => 2 * usize::from(record.rdata[3]),
        Rtype::RRSIG => Rrsig::parse(&record.rdata).expect("a signature").signature.len(),
        Rtype::NSEC5PROOF => record.rdata.len() - 2,
        _ => 0,
    });
    8 * octets.sum::<usize>()
}

/// Equation (1).
const fn length_of_nsec3(level: usize, signature: usize) -> usize {
    12 * level + 3 * signature
}

/// Equation (2).
const fn length_of_nsec5(level: usize, signature: usize, proof: usize) -> usize {
    8 * level + 2 * signature + 2 * proof
}

/// Sends a query with DO over TCP, so that the response is not truncated.
fn ask(server: SocketAddr, name: &Name, rtype: Rtype) -> Message {
    let mut query = vec![0, 0];
    push_query(name, rtype, 0x4567, 0, &mut query);
    query[2 + 11] = 1;
    query.extend_from_slice(&[0, 0, 41, 4, 208, 0, 0, 0x80, 0, 0, 0]);
    let octets = u16::try_from(query.len() - 2).expect("a short query").to_be_bytes();
    query[..2].copy_from_slice(&octets);
    let mut stream = TcpStream::connect(server).expect("connected");
    stream.write_all(&query).expect("sent");
    let mut octets = [0; 2];
    stream.read_exact(&mut octets).expect("a response");
    let mut response = vec![0; usize::from(u16::from_be_bytes(octets))];
    stream.read_exact(&mut response).expect("a whole response");
    Message::parse(&response).expect("a message")
}

/// The served zone with NSEC or NSEC3; its signatures have 512 or 2,048 bits.
fn served(algorithm: &str, mechanism: &str) -> (tempfile::TempDir, common::Running) {
    let folder = folder();
    let (unsigned, signed) = (folder.path().join("zone"), folder.path().join("signed"));
    fs::write(&unsigned, FIGURE_3).expect("written");
    generate_keys(folder.path(), ORIGIN, algorithm);
    sign(&unsigned, ORIGIN, folder.path(), mechanism, &signed);
    let server = serve(&signed, &[]);
    (folder, server)
}

fn signed_with_nsec5(vrf: &'static str, algorithm: &'static str) -> Zone {
    Zone::sign(Kind { vrf, algorithm, mechanism: "nsec5" }, ORIGIN, FIGURE_3)
}

/// The owner of the NSEC5 record of a name.
fn owner_of(zone: &Zone, text: &str) -> Name {
    zone.hash_owner(&zone.prove(&zone.vrf, name(text).view()).0)
}

fn record_at<'r>(records: &'r [Record], owner: &Name, rtype: Rtype) -> &'r Record {
    let mut found = records.iter().filter(|record| record.owner == *owner && record.rtype == rtype);
    let record = found.next().unwrap_or_else(|| panic!("{owner} {rtype}"));
    assert!(found.next().is_none(), "{owner} {rtype} once");
    record
}

fn types_of(record: &Record) -> Vec<Rtype> {
    bitmap::types(&record.rdata[36..]).collect()
}

/// Figure 4: SOA; the records that match the closest encloser and cover the next closer name and
/// the wildcard.
#[test]
fn figure_4() {
    let (_folder, server) = served("ecdsap256sha256", "nsec3");
    let most = missing()
        .map(|name| ask(server.address, &name, Rtype::A))
        .find(|response| count(&response.records, Rtype::NSEC3) == 3);
    let response = most.expect("an answer with three records");
    assert_eq!((response.rcode(), response.header.counts), (Rcode::NXDOMAIN, [1, 0, 8, 1]));
    assert_eq!(count(&response.records, Rtype::RRSIG), 3);
    let soa = response.section(Section::Authority).filter(|record| record.rtype == Rtype::SOA).count();
    assert_eq!(soa, 1);
    // Hash algorithm 1, no flags; the hashes of each record have 160 bits.
    for record in denial(&response.records).into_iter().filter(|record| record.rtype == Rtype::NSEC3) {
        assert_eq!(record.rdata[..2], [1, 0]);
    }
}

/// Figure 5: SOA; the record that matches the closest encloser, with its Wildcard flag clear; the
/// record that covers the next closer name; a proof for each, and nothing for the wildcard.
#[test]
fn figure_5() {
    let zone = signed_with_nsec5("p256", "ecdsap256sha256");
    let two = |case: &Case| count(&case.records, Rtype::NSEC5) == 2;
    let case =
        missing().map(|name| answer(&zone, &name, Rtype::A)).find(two).expect("an answer with two records");
    assert_eq!((case.shape, case.flags & 0xf), (Shape::NxDomain, 3));
    let authority = case.records.iter().filter(|record| record.section == Section::Authority).count();
    assert_eq!((case.records.len(), authority), (8, 8));
    assert_eq!((count(&case.records, Rtype::RRSIG), count(&case.records, Rtype::NSEC5PROOF)), (2, 2));
    let matching = record_at(&case.records, &owner_of(&zone, ORIGIN), Rtype::NSEC5);
    assert_eq!(matching.rdata[2], 0, "flags");
    let wanted = [Rtype::A, Rtype::NS, Rtype::SOA, Rtype::RRSIG, Rtype::DNSKEY, Rtype::NSEC5KEY];
    assert_eq!(types_of(matching), wanted);
    for proved in [name(ORIGIN), case.name.clone()] {
        let proof = record_at(&case.records, &proved, Rtype::NSEC5PROOF);
        assert_eq!(proof.rdata[..2], matching.rdata[..2], "one key tag");
    }
}

/// §5.1 and §5.3: a.b.c.example.com does not exist; its closest encloser is example.com, the next
/// closer name c.example.com. Only the flag shows that there is no *.example.com. The same applies
/// below www.
#[test]
fn closest_encloser_and_wildcard_bit() {
    let zone = signed_with_nsec5("p256", "ecdsap256sha256");
    let case = answer(&zone, &name("a.b.c.example.com."), Rtype::A);
    assert_eq!(case.shape, Shape::NxDomain);
    let proofs: Vec<&Record> =
        case.records.iter().filter(|record| record.rtype == Rtype::NSEC5PROOF).collect();
    let owners: Vec<&Name> = proofs.iter().map(|record| &record.owner).collect();
    assert_eq!(owners, [&name(ORIGIN), &name("c.example.com.")]);
    let flags: BTreeMap<&str, u8> = ["", "bar.", "www.", "*.www."]
        .into_iter()
        .map(|label| {
            let owner = owner_of(&zone, &format!("{label}{ORIGIN}"));
            let node = zone.node(owner.view()).expect("a record");
            (label, node.rrset(Rtype::NSEC5).and_then(|rrset| rrset.rdatas().next()).expect("RDATA")[2])
        })
        .collect();
    assert_eq!(flags, BTreeMap::from([("", 0), ("bar.", 0), ("www.", 2), ("*.www.", 0)]));
}

/// §5.5: www.example.com has A and no AAAA. The response has one record with the bit of A set and
/// that of AAAA clear, and one proof.
#[test]
fn nodata_takes_one_record() {
    let zone = signed_with_nsec5("p256", "ecdsap256sha256");
    let www = name("www.example.com.");
    let case = answer(&zone, &www, Rtype::AAAA);
    let counts = [Rtype::NSEC5, Rtype::RRSIG, Rtype::NSEC5PROOF].map(|rtype| count(&case.records, rtype));
    assert_eq!((case.shape, counts), (Shape::NoData, [1, 1, 1]));
    let record = record_at(&case.records, &owner_of(&zone, "www.example.com."), Rtype::NSEC5);
    assert_eq!(types_of(record), [Rtype::A, Rtype::RRSIG]);
}

/// §5.4: there is a record and a stored proof for each existing name. The proof of a queried
/// missing name is never stored.
#[test]
fn one_proof_is_computed_when_asked() {
    let zone = signed_with_nsec5("p256", "ecdsap256sha256");
    let stored = fs::read(zone.secrets.join("example.com.proofs")).expect("the stored proofs");
    let stored = nonesuch_dnssec::denial::nsec5::Proofs::read(&stored).expect("proofs");
    assert_eq!(stored.len(), NAMES);
    let has = |name: &Name| stored.entries().any(|entry| entry.full_name(zone.apex.view()) == *name);
    for question in missing() {
        let case = answer(&zone, &question, Rtype::A);
        let proofs = case.records.iter().filter(|record| record.rtype == Rtype::NSEC5PROOF);
        let made: Vec<&Name> = proofs.map(|record| &record.owner).filter(|owner| !has(owner)).collect();
        assert_eq!(made, [&question]);
    }
    for name in zone.names() {
        let case = answer(&zone, name, Rtype::TXT);
        let proofs = case.records.iter().filter(|record| record.rtype == Rtype::NSEC5PROOF);
        assert!(proofs.map(|record| &record.owner).all(has), "NODATA at {name}");
    }
}

/// Table 3, NSEC and NSEC3: at most 2 and 3 signatures; 2σ and, by equation (1), 3σ + 12ℓ bits.
/// Nothing is computed online: the same question has the same response to the octet, including
/// signatures, and the server has no key.
#[test]
fn table_3_nsec_and_nsec3() {
    for (algorithm, signature) in [("ecdsap256sha256", 512), ("rsasha256", 2048)] {
        for (mechanism, signatures, bits) in
            [("nsec", 2, 2 * signature), ("nsec3", 3, length_of_nsec3(LEVEL_OF_SHA1, signature))]
        {
            let (_folder, server) = served(algorithm, mechanism);
            let all: Vec<Message> = missing().map(|name| ask(server.address, &name, Rtype::A)).collect();
            let most = |of: fn(&[Record]) -> usize| all.iter().map(|response| of(&response.records)).max();
            assert_eq!(
                most(|records| count(records, Rtype::RRSIG)),
                Some(signatures),
                "{algorithm}, {mechanism}"
            );
            assert_eq!(most(length), Some(bits), "{algorithm}, {mechanism}");
        }
    }
    assert_eq!(length_of_nsec3(80, 512), 2496);
    assert_eq!(length_of_nsec3(80, 2048), 7104);
}

/// Table 3, NSEC5: at most 2 signatures and 2 proofs are verified; by equation (2), 2σ + 8ℓ + 2p
/// bits. The paper's p of 641 bits has 648 bits in RFC 9381, where a point begins with an octet for
/// one bit.
#[test]
fn table_3_nsec5() {
    let python = judges::python();
    for (vrf, algorithm, signature, proof) in [
        ("p256", "ecdsap256sha256", 512, 641 + 7),
        ("ed25519", "ed25519", 512, 640),
        ("rsa", "rsasha256", 2048, 2048),
    ] {
        let zone = signed_with_nsec5(vrf, algorithm);
        let cases: Vec<Case> = missing().map(|name| answer(&zone, &name, Rtype::A)).collect();
        let most = |rtype| cases.iter().map(|case| count(&case.records, rtype)).max();
        let counts = [Rtype::NSEC5, Rtype::RRSIG, Rtype::NSEC5PROOF].map(most);
        assert_eq!(counts, [Some(2); 3], "{vrf}");
        let bits = cases.iter().map(|case| length(&case.records)).max();
        assert_eq!(bits, Some(length_of_nsec5(LEVEL_OF_SHA256, signature, proof)), "{vrf}");
        for judge in python.iter().chain([&judges::ours()]) {
            let folder = folder();
            let file = folder.path().join("answers");
            judges::write(&file, ORIGIN, cases.iter());
            let said = judge.judge(&file);
            assert!(said.iter().all(|said| said.status == SECURE), "{}, {vrf}", judge.name);
            // In addition to the two, the signature of the SOA record.
            assert_eq!(said.iter().map(|said| said.signatures).max(), Some(3), "{}, {vrf}", judge.name);
            assert_eq!(said.iter().map(|said| said.vrf).max(), Some(2), "{}, {vrf}", judge.name);
        }
    }
    assert_eq!(length_of_nsec5(128, 512, 641), 3330);
    assert_eq!(length_of_nsec5(128, 2048, 2048), 9216);
}

/// A server that reports its operations when it ends.
struct Counted {
    child: Child,
    address: SocketAddr,
    output: PathBuf,
}

impl Counted {
    fn start(folder: &Path, arguments: &[&str]) -> Self {
        let output = folder.join("counted");
        let file = fs::File::create(&output).expect("a file");
        let fixed = ["serve", "--listen", "127.0.0.1:0", "--workers", "1", "--json"];
        let child = nonesuch(fixed).args(arguments).stdout(file).spawn().expect("nonesuch starts");
        let mut counted = Self { child, address: SocketAddr::from(([127, 0, 0, 1], 0)), output };
        let ready = counted.line(0);
        counted.address =
            ready["ready"]["address"].as_str().and_then(|text| text.parse().ok()).expect("ready");
        counted
    }

    /// The line of the output with this number, when it is available.
    fn line(&mut self, number: usize) -> serde_json::Value {
        for _ in 0..3000 {
            let text = fs::read_to_string(&self.output).expect("read");
            if let Some(line) = text.split_inclusive('\n').nth(number).filter(|line| line.ends_with('\n')) {
                return serde_json::from_str(line).expect("JSON");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("nonesuch serve does not write line {number}: {:?}", self.child.try_wait());
    }

    /// Stops the server; returns its private-key operations by kind.
    fn stop(mut self) -> BTreeMap<String, u64> {
        run(Command::new("kill").arg("-TERM").arg(self.child.id().to_string())).expect_done("kill");
        let stopped = self.line(1);
        let operations = stopped["stopped"]["online"]["operations"].clone();
        serde_json::from_value(operations).unwrap_or_default()
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether `nonesuch serve` has the option.
fn serves_with(option: &str) -> bool {
    let has = run(&mut nonesuch(["serve", "--help"])).stdout.contains(option);
    if !has {
        nonesuch_testing::record_skip(&format!("nonesuch serve has no {option}"));
    }
    has
}

/// Table 3 and footnote 5, white lies: one signature is generated for each question. Those of the
/// SOA record, of the closest encloser and of the wildcard are generated once, for the first
/// question.
#[test]
fn table_3_white_lies() {
    if !serves_with("--denial") {
        return;
    }
    let folder = folder();
    let (zone, keys) = (folder.path().join("zone"), folder.path().join("keys"));
    fs::write(&zone, FIGURE_3).expect("written");
    generate_key(&keys, ORIGIN, "ecdsap256sha256", &["--csk"]);
    let server =
        Counted::start(folder.path(), &[text(&zone), "--denial", "white-lies", "--keys", text(&keys)]);
    let all: Vec<Message> = missing().map(|name| ask(server.address, &name, Rtype::A)).collect();
    let most = all.iter().map(|response| count(&response.records, Rtype::RRSIG)).max();
    let bits = all.iter().map(|response| length(&response.records)).max();
    assert_eq!((most, bits), (Some(3), Some(length_of_nsec3(LEVEL_OF_SHA1, 512))));
    let operations = server.stop();
    let denials: u64 =
        operations.iter().filter(|(kind, _)| !kind.starts_with("data ")).map(|(_, times)| times).sum();
    assert_eq!(denials, QUESTIONS as u64 + 2, "{operations:?}");
}

/// Table 3, NSEC5: one proof and no signature is generated for each question. The server has no
/// signing key.
#[test]
fn table_3_nsec5_when_asked() {
    if !serves_with("--nsec5-keys") {
        return;
    }
    let zone = signed_with_nsec5("p256", "ecdsap256sha256");
    let folder = folder();
    let server = Counted::start(folder.path(), &[text(&zone.file), "--nsec5-keys", text(&zone.secrets)]);
    for question in missing() {
        let response = ask(server.address, &question, Rtype::A);
        let mut case = answer(&zone, &question, Rtype::A);
        let wanted = case.content();
        case.take(&response);
        assert_eq!(case.content(), wanted, "{question}");
    }
    let operations: Vec<u64> = server.stop().into_values().collect();
    assert_eq!(operations, [QUESTIONS as u64]);
}

/// The owner names of NSEC5 records are hashes directly below the apex.
#[test]
fn owners_are_hashes_below_the_apex() {
    let zone = signed_with_nsec5("ed25519", "ed25519");
    let owners = zone.contents.nodes().filter(|node| node.has(Rtype::NSEC5));
    let mut count = 0;
    for node in owners {
        assert_eq!(node.name().parent(), Some(zone.apex.view()));
        count += 1;
    }
    assert_eq!(count, NAMES);
}
