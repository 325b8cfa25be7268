//! Responses with NSEC5 in two validators that share no code: this project's validator, and a
//! checker in Python that was written from spec/nsec5.md (`tools/nsec5-checker`). The responses are
//! valid, violate one check, or have a change that must not matter. Each validator must return the
//! expected result.
//!
//! `NONESUCH_CHECKER_ANSWERS` is the number of responses, 640 by default. The full number:
//!
//!     NONESUCH_CHECKER_ANSWERS=10000 cargo test -p nonesuch-cli --test peers -- nsec5_checker

use crate::common;
use nonesuch_testing::require_peer;
pub(crate) mod answers;
pub(crate) mod faults;
pub(crate) mod judges;
pub(crate) mod random;
pub(crate) mod server;
pub(crate) mod zone;

use answers::{BOGUS, Case, answer};
use faults::FAULTS;
use judges::{Judge, Said};
use nonesuch_proto::{Name, Rtype};
use random::Random;
use serde_json::{Value, json};
use server::{Server, answer_of};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use zone::{EVERY_ANSWER, Kind, ORIGIN, Zone};

/// Every VRF with and without opt-out, and every signature algorithm.
const KINDS: [Kind; 8] = [
    Kind { vrf: "p256", algorithm: "ecdsap256sha256", mechanism: "nsec5" },
    Kind { vrf: "p256", algorithm: "ecdsap256sha256", mechanism: "nsec5-opt-out" },
    Kind { vrf: "ed25519", algorithm: "ed25519", mechanism: "nsec5" },
    Kind { vrf: "ed25519", algorithm: "ed25519", mechanism: "nsec5-opt-out" },
    Kind { vrf: "ed25519-tai", algorithm: "ecdsap384sha384", mechanism: "nsec5" },
    Kind { vrf: "ed25519-tai", algorithm: "rsasha512", mechanism: "nsec5-opt-out" },
    Kind { vrf: "rsa", algorithm: "rsasha256", mechanism: "nsec5" },
    Kind { vrf: "rsa", algorithm: "ecdsap256sha256", mechanism: "nsec5-opt-out" },
];

const TYPES: [Rtype; 15] = [
    Rtype::A,
    Rtype::AAAA,
    Rtype::TXT,
    Rtype::MX,
    Rtype::DS,
    Rtype::NS,
    Rtype::SOA,
    Rtype::CNAME,
    Rtype::DNSKEY,
    Rtype::SRV,
    // SSHFP, TLSA, SVCB, HTTPS, and a type without a mnemonic in both validators.
    Rtype(44),
    Rtype(52),
    Rtype(64),
    Rtype(65),
    Rtype(4711),
];

const LABELS: [&[u8]; 6] = [b"a", b"b", b"x", b"www", b"*", b"\0"];

/// Maximum number of questions that are tried to find a response in which a fault can be planted.
const TRIES: usize = 400;

/// Questions to the server for each kind of zone.
const QUESTIONS: usize = 400;

/// One in this number of responses is valid and unchanged.
const SOUND: usize = 3;

fn question(zone: &Zone, random: &mut Random) -> (Name, Rtype) {
    let names: Vec<&Name> = zone.names().collect();
    let mut name = (*random.pick(&names)).clone();
    for _ in 0..[0, 0, 1, 1, 2, 3][random.below(6)] {
        let label = random.pick(&LABELS).to_vec();
        let label =
            if random.below(4) == 0 { format!("n{}", random.below(1000)).into_bytes() } else { label };
        name = Name::prepend(&label, name.view()).expect("a short name");
    }
    let rtype = *random.pick(&TYPES);
    // Below a DNAME, the synthesised CNAME is not a record of the zone (RFC 6672 §3.1).
    if rtype == Rtype::CNAME && is_below_dname(zone, &name) { (name, Rtype::A) } else { (name, rtype) }
}

fn is_below_dname(zone: &Zone, name: &Name) -> bool {
    let mut above = name.view().parent();
    while let Some(at) = above {
        if zone.has(at, Rtype::DNAME) {
            return true;
        }
        above = at.parent();
    }
    false
}

/// A response and the fault or change in it.
struct Planted {
    fault: &'static str,
    case: Case,
}

fn plant(zone: &Zone, server: Option<&Server>, which: usize, random: &mut Random) -> Option<Planted> {
    let (fault, plant) = FAULTS[which];
    for _ in 0..TRIES {
        let (name, rtype) = question(zone, random);
        let mut case = answer_of(zone, server, &name, rtype);
        if case.expected == BOGUS {
            continue;
        }
        if let Some(expected) = plant(zone, &mut case, random) {
            case.expected = expected;
            return Some(Planted { fault, case });
        }
    }
    None
}

fn answers_of(zone: &Zone, server: Option<&Server>, count: usize, random: &mut Random) -> Vec<Planted> {
    let mut made = Vec::new();
    let mut which = random.below(FAULTS.len());
    while made.len() < count {
        if made.len() % SOUND == 0 {
            let (name, rtype) = question(zone, random);
            made.push(Planted { fault: "none", case: answer_of(zone, server, &name, rtype) });
            continue;
        }
        which = (which + 1) % FAULTS.len();
        made.extend(plant(zone, server, which, random));
    }
    made
}

fn describe(judge: &Judge, planted: &Planted, said: &Said) -> String {
    let case = &planted.case;
    format!(
        "{}: {} {}, {:?}, expected {}: {said:?}",
        judge.name, case.name, case.rtype, case.shape, case.expected
    )
}

/// For each fault, the number of responses and their statuses.
type Tally = BTreeMap<&'static str, (usize, BTreeSet<&'static str>)>;

/// Failures by fault, with an example.
type Failures = BTreeMap<String, (usize, String)>;

fn judge_zone(
    zone: &Zone,
    judges: &[Judge],
    planted: &[Planted],
    tally: &mut Tally,
    failures: &mut Failures,
) {
    let folder = common::folder();
    let file = folder.path().join("answers");
    judges::write(&file, ORIGIN, planted.iter().map(|planted| &planted.case));
    let said: Vec<Vec<Said>> = judges.iter().map(|judge| judge.judge(&file)).collect();
    for said in &said {
        assert_eq!(said.len(), planted.len(), "a line for each line");
    }
    for (at, planted) in planted.iter().enumerate() {
        let seen = tally.entry(planted.fault).or_default();
        seen.0 += 1;
        seen.1.insert(planted.case.expected);
        let mut fail = |text: String| {
            let failure = failures.entry(format!("{:?}, {}", zone.kind, planted.fault)).or_default();
            failure.0 += 1;
            failure.1 = text;
        };
        for (judge, said) in judges.iter().zip(&said) {
            if said[at].status != planted.case.expected {
                fail(describe(judge, planted, &said[at]));
            }
        }
        let differ = said.windows(2).any(|pair| {
            pair[0][at].status == pair[1][at].status
                && pair[0][at].status != BOGUS
                && pair[0][at].proved != pair[1][at].proved
        });
        if differ {
            let both: Vec<&Said> = said.iter().map(|said| &said[at]).collect();
            fail(format!("{} {}: {both:?}", planted.case.name, planted.case.rtype));
        }
    }
}

#[test]
fn two_judges_agree() {
    let Some(python) = judges::python() else { return };
    let judges: Vec<Judge> = vec![python, judges::ours()];
    let wanted = std::env::var("NONESUCH_CHECKER_ANSWERS").ok().and_then(|count| count.parse().ok());
    let count: usize = wanted.unwrap_or(640);
    let (mut tally, mut failures) = (Tally::new(), Failures::new());
    let mut random = Random(5);
    for kind in KINDS {
        let zone = Zone::sign(kind, ORIGIN, EVERY_ANSWER);
        let server = Server::start(&zone);
        let planted = answers_of(&zone, server.as_ref(), count.div_ceil(KINDS.len()), &mut random);
        judge_zone(&zone, &judges, &planted, &mut tally, &mut failures);
    }
    let names: Vec<&str> = judges.iter().map(|judge| judge.name).collect();
    for (fault, (count, statuses)) in &tally {
        eprintln!("{count:6} {fault}: {statuses:?}");
    }
    let total: usize = tally.values().map(|seen| seen.0).sum();
    eprintln!("{total} answers, judged by {names:?}");
    let mut text = String::new();
    for (fault, (count, example)) in &failures {
        let _ = writeln!(text, "{count} × {fault}: {example}");
    }
    assert!(text.is_empty(), "{text}");
    let missing: Vec<&str> =
        FAULTS.iter().map(|fault| fault.0).filter(|fault| !tally.contains_key(fault)).collect();
    assert!(missing.is_empty(), "no answer has a place for {missing:?}");
}

/// The server sends exactly the records in the table of spec/nsec5.md.
#[test]
fn the_server_answers_as_the_table_says() {
    let mut random = Random(7);
    for kind in KINDS {
        let zone = Zone::sign(kind, ORIGIN, EVERY_ANSWER);
        let Some(server) = Server::start(&zone) else { return };
        for _ in 0..QUESTIONS {
            let (name, rtype) = question(&zone, &mut random);
            let ours = answer_of(&zone, Some(&server), &name, rtype).content();
            let wanted = answer(&zone, &name, rtype).content();
            assert_eq!(ours.0, wanted.0, "{kind:?}: RCODE of {name} {rtype}");
            let more: Vec<_> = ours.1.difference(&wanted.1).map(|record| (&record.1, record.2)).collect();
            let less: Vec<_> = wanted.1.difference(&ours.1).map(|record| (&record.1, record.2)).collect();
            assert!(
                more.is_empty() && less.is_empty(),
                "{kind:?}: {name} {rtype}: more {more:?}, less {less:?}"
            );
        }
    }
}

/// Each output line has the `id` of the input line and a `status`, even if a line cannot be parsed.
/// Types are mnemonics in any letter case, `TYPEn` (RFC 3597 §5) or numbers.
#[test]
fn every_line_keeps_its_id_and_has_a_status() {
    let Some(python) = judges::python() else { return };
    let judges: Vec<Judge> = vec![python, judges::ours()];
    // An empty response: a type that is parsed leads to a verdict, another one to an error.
    let types = [
        (json!("SVCB"), "indeterminate"),
        (json!("HTTPS"), "indeterminate"),
        (json!("TLSA"), "indeterminate"),
        (json!("SSHFP"), "indeterminate"),
        (json!("https"), "indeterminate"),
        (json!("TYPE4711"), "indeterminate"),
        (json!("type65"), "indeterminate"),
        (json!(65535), "indeterminate"),
        (json!("NONESUCH"), "error"),
        (json!("TYPE65536"), "error"),
        (json!("TYPE-1"), "error"),
        (json!(65536), "error"),
        (json!(true), "error"),
        (Value::Null, "error"),
    ];
    let lines = types.iter().enumerate().map(|(id, (rtype, _))| {
        let question = json!({ "name": "a.example.", "type": rtype });
        json!({ "id": id, "zone": "example.", "now": 7, "question": question, "response": "" }).to_string()
    });
    let unreadable = [r#"{"id": "x"}"#, r#"{"id": [1], "zone": 7}"#, "{", "7"];
    let lines: Vec<String> = lines.chain(unreadable.map(str::to_owned)).collect();
    let folder = common::folder();
    let file = folder.path().join("lines");
    fs::write(&file, lines.join("\n") + "\n").expect("written");
    for judge in &judges {
        let said = judge.answer(&file);
        assert_eq!(said.len(), lines.len(), "{}: a line for each line", judge.name);
        for (id, ((rtype, status), said)) in types.iter().zip(&said).enumerate() {
            assert_eq!(said["id"], json!(id), "{}: {rtype}: {said}", judge.name);
            assert_eq!(said["status"], *status, "{}: {rtype}: {said}", judge.name);
        }
        let ids = [json!("x"), json!([1]), Value::Null, Value::Null];
        for (id, said) in ids.iter().zip(&said[types.len()..]) {
            assert_eq!((&said["id"], &said["status"]), (id, &json!("error")), "{}: {said}", judge.name);
            assert!(said["error"].is_string(), "{}: {said}", judge.name);
        }
    }
}

/// The VRFs of the checker pass the examples of the RFC.
#[test]
fn the_checker_knows_the_examples_of_the_rfc() {
    require_peer!("python3");
    let vectors = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../crypto/tests/vrf-vectors.json");
    let mut command = std::process::Command::new("python3");
    let ended = common::run(command.arg("-B").arg(judges::checker().join("test_vrf.py")).arg(vectors));
    let said = ended.expect_done("test_vrf.py").stdout;
    assert_eq!(said.trim(), "12 examples of RFC 9381 hold");
}
