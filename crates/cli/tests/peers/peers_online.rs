//! Online denial compared with other name servers: NSEC3 white lies with PowerDNS ("narrow"),
//! compact denial with CoreDNS ("black lies"). The octets differ, because each server signs with
//! its own times and chooses the span of a record. Therefore the test compares the meaning of the
//! responses: RCODE, AA, the RRsets of the answer, the delegation, and the denied names and types.
//! Permitted differences are listed by cause in `peers_online/classes.rs` and in
//! docs/differences.md.
//!
//! The meaning of NSEC3 records does not depend on the generator, so presigned zones are tested in
//! the same way.
//!
//! `NONESUCH_DIFFERENTIAL_QUESTIONS` is the number of questions, about 14,000 by default. The full
//! number:
//!
//!     NONESUCH_DIFFERENTIAL_QUESTIONS=100000 cargo test -p nonesuch-cli --test peers -- peers_online

use crate::common;
use crate::differential::exchange;
use crate::differential::questions;
use crate::differential::zone;
use nonesuch_testing::require_peer;
mod classes;
mod meaning;

use classes::{CLASSES, Case, Class};
use common::{Running, is_installed, nonesuch, run, serve, stripped, text};
use exchange::{Question, Reply, ask_all};
use meaning::Meaning;
use nonesuch_lab::peers::{OnlineDenial, Peer, PeerServer, Serving, Setup};
use nonesuch_proto::{MAX_NAME, Rtype};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use zone::{ORIGIN, Zone};

/// A zone file for the peers, the signed zone, and the key.
struct Prepared {
    folder: tempfile::TempDir,
    zone: Zone,
    unsigned: PathBuf,
    key: PathBuf,
}

fn prepare(mechanism: &str) -> Prepared {
    let folder = common::folder();
    let whole = zone::prepare(folder.path());
    let zone = Zone::sign(folder.path(), &whole, mechanism);
    // Names are absolute in this file, and it contains no records that the peers reject.
    let kept = stripped(&fs::read_to_string(&zone.peer_file).expect("the zone"));
    let unsigned = folder.path().join("zone");
    fs::write(&unsigned, kept).expect("written");
    let mut files =
        fs::read_dir(folder.path()).expect("a directory").map(|entry| entry.expect("an entry").path());
    let key = files.find(|file| text(file).ends_with(".private")).expect("a key");
    Prepared { folder, zone, unsigned, key }
}

/// Questions with DO, of types whose responses do not depend on the mechanism.
fn asked(zone: &Zone) -> Vec<Question> {
    let excluded = [Rtype::ANY, Rtype::RRSIG, Rtype::NSEC, Rtype::NSEC3, Rtype::NSEC3PARAM];
    let mut all = questions::questions_with_do(zone);
    all.retain(|question| !excluded.contains(&question.rtype));
    all
}

/// Whether `nonesuch serve` generates this denial online.
fn is_made(mechanism: &str) -> bool {
    let help = run(&mut nonesuch(["serve", "--help"])).stdout;
    let is_made = help.contains("--denial") && help.contains(mechanism);
    if !is_made {
        nonesuch_testing::record_skip(&format!("nonesuch serve does not make {mechanism}"));
    }
    is_made
}

/// This server with `mechanism`; NSEC3 is presigned.
fn serve_ours(prepared: &Prepared, mechanism: &str) -> Running {
    if mechanism == "nsec3" {
        return serve(&prepared.zone.peer_file, &["--origin", ORIGIN]);
    }
    let options = ["--origin", ORIGIN, "--denial", mechanism, "--keys", text(prepared.folder.path())];
    serve(&prepared.unsigned, &options)
}

/// A peer that signs the zone online with the same key. PowerDNS caches no response.
fn start_online(prepared: &Prepared, peer: Peer, denial: OnlineDenial) -> PeerServer {
    let serving = Serving::Online { denial, keys: vec![prepared.key.with_extension("")] };
    let setup = common::peers::zone(prepared.folder.path(), ORIGIN, &prepared.unsigned, serving);
    let caches = "cache-ttl=0\nquery-cache-ttl=0\nnegquery-cache-ttl=0\n";
    let lines = if peer == Peer::PowerDns { caches.to_owned() } else { String::new() };
    common::peers::start(peer, &Setup { lines, ..setup })
}

/// Differences so far: how often each class explained one, and those that no class explains.
#[derive(Default)]
struct Differences {
    explained: BTreeMap<&'static str, usize>,
    unexplained: BTreeMap<String, Vec<String>>,
    compared: usize,
}

type Read = fn(&Zone, &Question, &Reply) -> Meaning;

fn compare(prepared: &Prepared, peer: Peer, ours: &Running, theirs: &PeerServer, read: Read) -> Differences {
    let mut questions = asked(&prepared.zone);
    // Class `next-name-too-long`: CoreDNS's response to such a question cannot be parsed.
    questions.retain(|question| peer != Peer::CoreDns || question.name.view().len() + 2 <= MAX_NAME);
    let (our_replies, their_replies) =
        (ask_all(ours.address, &questions), ask_all(theirs.address, &questions));
    let mut outcome = Differences::default();
    let zone = &prepared.zone;
    for ((question, our_reply), their_reply) in questions.iter().zip(&our_replies).zip(&their_replies) {
        outcome.compared += 1;
        let (mut ours, mut theirs) = (read(zone, question, our_reply), read(zone, question, their_reply));
        let before = (ours.clone(), theirs.clone());
        let case = Case { zone, question };
        for class in CLASSES.iter().filter(|class| class.peer == peer) {
            if (class.explain)(&case, &mut ours, &mut theirs) {
                *outcome.explained.entry(class.name).or_default() += 1;
            }
        }
        if ours != theirs {
            let text = format!(
                "  {} {}\n  ours {:?}\n  theirs {:?}\n",
                question.name, question.rtype, before.0, before.1
            );
            outcome.unexplained.entry(outline(question, &ours, &theirs)).or_default().push(text);
        }
    }
    outcome
}

/// The difference without names, so that similar cases are grouped.
fn outline(question: &Question, ours: &Meaning, theirs: &Meaning) -> String {
    let mut text = question.rtype.to_string();
    let pairs = [
        ("rcode", ours.rcode != theirs.rcode),
        ("AA", ours.authoritative != theirs.authoritative),
        ("answer", ours.answer != theirs.answer),
        ("referral", ours.referral != theirs.referral),
        ("SOA", ours.has_soa != theirs.has_soa),
        ("matched", ours.denial.matched != theirs.denial.matched),
        ("covered", ours.denial.covered != theirs.denial.covered),
    ];
    for (what, differs) in pairs {
        if differs {
            let _ = write!(text, " {what}");
        }
    }
    text
}

/// Fails if a difference has no class, or if a class has no difference.
fn judge(outcome: &Differences, peer: Peer, mechanism: &str) {
    eprintln!("{peer:?}: {} answers compared", outcome.compared);
    let mut text = String::new();
    for (outline, cases) in &outcome.unexplained {
        let _ = writeln!(text, "{} × {outline}\n{}", cases.len(), cases[0]);
    }
    let expected = CLASSES.iter().filter(|class| class.peer == peer && class.mechanisms.contains(&mechanism));
    for Class { name, right, rule, .. } in expected {
        match outcome.explained.get(name) {
            Some(count) => eprintln!("{peer:?}, {name}: {count}, right: {right:?}; {rule}"),
            None => {
                let _ = writeln!(text, "{peer:?} does not differ as class {name} says: remove it");
            }
        }
    }
    assert!(text.is_empty(), "{text}");
}

fn beside_powerdns(mechanism: &str) {
    require_peer!("pdns_server", "pdnsutil");
    let prepared = prepare("nsec3");
    let ours = serve_ours(&prepared, mechanism);
    let theirs = start_online(&prepared, Peer::PowerDns, OnlineDenial::WhiteLies);
    let outcome = compare(&prepared, Peer::PowerDns, &ours, &theirs, |zone, question, reply| {
        Meaning::of_nsec3(zone, &question.name, reply)
    });
    judge(&outcome, Peer::PowerDns, mechanism);
}

#[test]
fn signed_beforehand_with_nsec3_means_what_powerdns_means() {
    beside_powerdns("nsec3");
}

#[test]
fn white_lies_mean_what_powerdns_means() {
    if is_made("white-lies") {
        beside_powerdns("white-lies");
    }
}

#[test]
fn compact_denial_means_what_coredns_means() {
    if !is_made("compact") || !is_installed("coredns") {
        return;
    }
    let prepared = prepare("nsec");
    let ours = serve_ours(&prepared, "compact");
    let theirs = start_online(&prepared, Peer::CoreDns, OnlineDenial::Compact);
    let outcome = compare(&prepared, Peer::CoreDns, &ours, &theirs, |zone, question, reply| {
        Meaning::of_compact(zone, question, reply)
    });
    judge(&outcome, Peer::CoreDns, "compact");
}

#[test]
fn every_class_is_documented() {
    crate::assert_documented(CLASSES.iter().map(|class| class.name));
}
