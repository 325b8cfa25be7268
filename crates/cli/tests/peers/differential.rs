//! Comparison of this server with NSD, Knot DNS and BIND: the same zone and the same questions, in
//! each denial mode.
//!
//! `NONESUCH_DIFFERENTIAL_QUESTIONS` is the number of questions in each mode, about 27,000 by
//! default. The full number:
//!
//!     NONESUCH_DIFFERENTIAL_QUESTIONS=100000 cargo test -p nonesuch-cli --test peers -- differential
//!
//! The test compares RCODE, AA, and the answer and authority sections as sets. Permitted
//! differences are listed by cause in `differential/classes.rs` and in docs/differences.md. Any
//! other difference fails the test, and so does a listed one that no longer occurs.

use crate::common;
pub(crate) mod classes;
pub(crate) mod exchange;
pub(crate) mod questions;
pub(crate) mod zone;

use classes::{CLASSES, Case};
use exchange::{ObservedRecord, Question, Reply, ask_all};
use nonesuch_lab::peers::{Peer, Serving, Setup};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use zone::{ORIGIN, Zone};

/// Number of differences of one kind that a failure shows in full.
const EXAMPLES: usize = 1;

/// Differences so far.
#[derive(Default)]
struct Differences {
    /// How often each class explained a difference, by peer.
    explained: BTreeMap<(&'static str, Peer), usize>,
    /// Differences that no class explains, by their outline.
    unexplained: BTreeMap<String, Vec<String>>,
}

#[test]
fn answers_are_those_of_nsd_knot_and_bind() {
    let all = [Peer::Nsd, Peer::Knot, Peer::Bind].into_iter();
    let peers: Vec<Peer> = all.filter(|peer| common::is_installed(peer.info().programs[0])).collect();
    if peers.is_empty() {
        return;
    }
    let folder = common::folder();
    let unsigned = zone::prepare(folder.path());
    let mut outcome = Differences::default();
    for mechanism in common::MECHANISMS {
        let zone = Zone::sign(folder.path(), &unsigned, mechanism);
        let questions = questions::questions(&zone);
        let ours = common::serve(&zone.file, &["--origin", ORIGIN]);
        let our_replies = ask_all(ours.address, &questions);
        for &peer in &peers {
            let at = folder.path().join(format!("{peer:?}.{mechanism}"));
            let setup = common::peers::zone(&at, ORIGIN, &zone.peer_file, Serving::Presigned);
            // With the name servers of the zone in the authority section, as NSD does by default.
            let lines = if peer == Peer::Nsd { "  minimal-responses: no\n" } else { "" };
            let theirs = common::peers::start(peer, &Setup { lines: lines.to_owned(), ..setup });
            let their_replies = ask_all(theirs.address, &questions);
            for ((question, ours), theirs) in questions.iter().zip(&our_replies).zip(their_replies) {
                compare(&Case { zone: &zone, question, peer }, mechanism, ours, theirs, &mut outcome);
            }
        }
    }
    judge(&outcome, &peers);
}

#[test]
fn every_class_is_documented() {
    crate::assert_documented(CLASSES.iter().map(|class| class.name));
}

/// Class `data-below-dname`: RFC 6672 §2.4 forbids such data. This server neither signs nor serves
/// them; the peers' servers do not load the zone. The test uses the peers' checkers.
#[test]
fn peers_refuse_data_below_a_dname() {
    let folder = common::folder();
    let unsigned = zone::prepare(folder.path());
    let zone = Zone::sign(folder.path(), &unsigned, "nsec");
    let file = common::text(&zone.file);
    let refusals = [
        ("nsd-checkzone", ["", ORIGIN, file], "has data below it"),
        ("kzonecheck", ["-o", ORIGIN, file], "under DNAME"),
    ];
    for (program, arguments, message) in refusals {
        if common::is_installed(program) {
            let arguments = arguments.iter().filter(|argument| !argument.is_empty());
            let ended = common::run(std::process::Command::new(program).args(arguments));
            assert_ne!(ended.status, 0, "{program} accepts the zone: remove the class");
            assert!(ended.text().contains(message), "{program}: {}", ended.text());
        }
    }
}

fn compare(case: &Case<'_>, mechanism: &str, ours: &Reply, mut theirs: Reply, outcome: &mut Differences) {
    assert!(!ours.repeats, "{:?}: a section of ours holds a record twice", case.question);
    if *ours == theirs {
        return;
    }
    let (our_reply, their_reply) = (ours, theirs.clone());
    let mut ours = ours.clone();
    for class in CLASSES.iter().filter(|class| class.peers.contains(&case.peer)) {
        if (class.explain)(case, &mut ours, &mut theirs) {
            *outcome.explained.entry((class.name, case.peer)).or_default() += 1;
        }
    }
    if ours != theirs {
        let outline = format!("{:?} {mechanism} {}", case.peer, outline(case.question, &ours, &theirs));
        let whole = describe(case.question, our_reply, &their_reply);
        outcome.unexplained.entry(outline).or_default().push(whole);
    }
}

/// Fails if a difference has no class, or if a class has no difference.
fn judge(outcome: &Differences, peers: &[Peer]) {
    let mut text = String::new();
    for (outline, cases) in &outcome.unexplained {
        let examples = cases.iter().take(EXAMPLES).fold(String::new(), |text, case| text + case);
        let _ = writeln!(text, "{} × {outline}\n{examples}", cases.len());
    }
    for class in CLASSES {
        for peer in class.peers.iter().filter(|peer| peers.contains(peer)) {
            match outcome.explained.get(&(class.name, *peer)) {
                Some(count) => {
                    eprintln!("{peer:?}, {}: {count}, right: {:?}; {}", class.name, class.right, class.rule);
                }
                None => {
                    let _ =
                        writeln!(text, "{peer:?} does not differ as class {} says: remove it", class.name);
                }
            }
        }
    }
    assert!(text.is_empty(), "{text}");
}

/// The difference without names, so that similar cases are grouped.
fn outline(question: &Question, ours: &Reply, theirs: &Reply) -> String {
    let mut text = format!("{} DO={}", question.rtype, u8::from(question.dnssec_ok));
    if ours.rcode != theirs.rcode {
        let _ = write!(text, " rcode {}/{}", ours.rcode, theirs.rcode);
    }
    if ours.authoritative != theirs.authoritative {
        let _ = write!(text, " AA {}/{}", ours.authoritative, theirs.authoritative);
    }
    if ours.repeats != theirs.repeats {
        let _ = write!(text, " repeats {}/{}", ours.repeats, theirs.repeats);
    }
    let sections =
        [("answer", &ours.answer, &theirs.answer), ("authority", &ours.authority, &theirs.authority)];
    for (name, ours, theirs) in sections {
        for (sign, left, right) in [('+', ours, theirs), ('-', theirs, ours)] {
            let types: BTreeSet<String> = left.difference(right).map(|seen| seen.rtype.to_string()).collect();
            if !types.is_empty() {
                let _ = write!(text, " {name} {sign}{types:?}");
            }
        }
    }
    text
}

fn describe(question: &Question, ours: &Reply, theirs: &Reply) -> String {
    let mut text = format!("  {} {} DO={}\n", question.name, question.rtype, u8::from(question.dnssec_ok));
    for (who, reply) in [("ours", ours), ("theirs", theirs)] {
        let _ = writeln!(text, "    {who}: {} AA={}", reply.rcode, reply.authoritative);
        for (section, records) in [("answer", &reply.answer), ("authority", &reply.authority)] {
            for seen in records {
                let _ = writeln!(text, "      {section} {}", line(seen));
            }
        }
    }
    text
}

fn line(seen: &ObservedRecord) -> String {
    let mut rdata = Vec::new();
    nonesuch_proto::rdata::push_text(seen.rtype, &seen.rdata, &mut rdata);
    rdata.truncate(70);
    let owner = nonesuch_proto::NameRef::from_wire_unchecked(&seen.owner);
    format!("{owner} {} {} {}", seen.ttl, seen.rtype, String::from_utf8_lossy(&rdata))
}
