//! Versions in between: a primary signs a zone for the first time, or changes its chain of denial (RFC 5155 §10.4, §10.5). They are
//! served; what they lack is missing from answers.

use super::*;
use crate::{Transport, answer};
use nonesuch_dnssec::Mechanism;
use nonesuch_proto::message::{HEADER, Message, Rcode, Section, push_query};
use nonesuch_proto::{Rtype, edns};
use std::collections::BTreeSet;

/// How much of some records a version has.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Share {
    Nothing,
    Part,
    All,
}

use Share::{All, Nothing, Part};

/// What a version has beside the data of the zone.
#[derive(Clone, Copy, Debug)]
struct State {
    has_keys: bool,
    signatures: Share,
    /// `Part`: all but the record at the apex.
    nsec: Share,
    /// `Part`: all but the last record.
    nsec3: Share,
    has_parameters: bool,
}

const fn state(has_keys: bool, signatures: Share, nsec: Share, nsec3: Share, has_parameters: bool) -> State {
    State { has_keys, signatures, nsec, nsec3, has_parameters }
}

/// A record as a line of a zone file: its type, and the type that it covers.
fn types(line: &str) -> (Rtype, Rtype) {
    let mut fields = line.split_whitespace().skip(1);
    let is_type = |field: &&str| *field != "IN" && field.parse::<u32>().is_err();
    let rtype: Rtype = fields.find(is_type).unwrap().parse().unwrap();
    let covered = if rtype == Rtype::RRSIG { fields.next().unwrap().parse().unwrap() } else { rtype };
    (rtype, covered)
}

impl State {
    /// The version of the zone that is in this state.
    fn contents(self) -> Contents {
        let lines = |mechanism| {
            let mut text = Vec::new();
            nonesuch_zone::write::write_zone(&signed_by(&contents(7), &[1], mechanism), &mut text).unwrap();
            String::from_utf8(text).unwrap()
        };
        let (nsec, nsec3) = (lines(Mechanism::Nsec), lines(Mechanism::Nsec3));
        let hashes: BTreeSet<&str> = nsec3
            .lines()
            .filter(|line| types(line).0 == Rtype::NSEC3)
            .map(|line| line.split_whitespace().next().unwrap())
            .collect();
        let last = *hashes.last().unwrap();
        let is_there = |line: &&str| {
            let owner = line.split_whitespace().next().unwrap();
            let has = |share, is_in_part: bool| share == All || share == Part && is_in_part;
            match types(line) {
                (_, Rtype::NSEC) => has(self.nsec, owner != "example."),
                (_, Rtype::NSEC3) => has(self.nsec3, owner != last),
                (_, Rtype::NSEC3PARAM) => self.has_parameters,
                (Rtype::RRSIG, _) => has(self.signatures, owner.starts_with("ns.")),
                (Rtype::DNSKEY, _) => self.has_keys,
                _ => true,
            }
        };
        let all: BTreeSet<&str> = nsec.lines().chain(nsec3.lines()).filter(is_there).collect();
        let text: Vec<&str> = all.into_iter().collect();
        read::read_text(text.join("\n").as_bytes(), Path::new("zone"), None).unwrap().contents
    }
}

/// The answer of what is served to a question with DO.
fn ask(service: &Service, qname: &str, qtype: Rtype) -> Message {
    let state = service.zones().state(&name("example.")).unwrap();
    let mut query = Vec::new();
    push_query(&name(qname), qtype, 7, 0, &mut query);
    edns::push_opt(4096, 0, edns::DO, &mut query);
    query[HEADER - 1] = 1;
    let mut out = Vec::new();
    assert!(answer(state.serving().expect("served").published().image(), &query, Transport::Tcp, &mut out));
    Message::parse(&out).unwrap()
}

/// The types of the records that prove a negative answer, each once.
fn proof(message: &Message) -> Vec<Rtype> {
    let records = message.section(Section::Authority).map(|record| record.rtype);
    let chain: BTreeSet<Rtype> =
        records.filter(|rtype| [Rtype::NSEC, Rtype::NSEC3].contains(rtype)).collect();
    chain.into_iter().collect()
}

fn from_primaries(dir: &Path, verify: VerifyChoice, on_fault: OnFault) -> Settings {
    let mut settings = secondary(dir);
    (settings.zones[0].verify, settings.zones[0].on_fault) = (verify, on_fault);
    settings
}

/// A state, whether verification finds no fault, and what proves negative answers.
const STATES: [(State, bool, Option<Rtype>); 15] = [
    // A zone is signed for the first time: keys, signatures, the chain with its record at the apex last.
    (state(false, Nothing, Nothing, Nothing, false), true, None),
    (state(true, Nothing, Nothing, Nothing, false), false, None),
    (state(true, Part, Nothing, Nothing, false), false, None),
    (state(true, All, Nothing, Nothing, false), false, None),
    (state(true, All, Part, Nothing, false), false, None),
    (state(true, All, All, Nothing, false), true, Some(Rtype::NSEC)),
    // RFC 5155 §10.4: the other chain is added, NSEC3PARAM last, then NSEC is removed.
    (state(true, All, All, Part, false), false, Some(Rtype::NSEC)),
    (state(true, All, All, All, false), false, Some(Rtype::NSEC)),
    (state(true, All, All, All, true), false, Some(Rtype::NSEC3)),
    (state(true, All, Part, All, true), false, Some(Rtype::NSEC3)),
    (state(true, All, Nothing, All, true), true, Some(Rtype::NSEC3)),
    // RFC 5155 §10.5: NSEC is added, NSEC3PARAM is removed, then NSEC3 is.
    (state(true, All, Nothing, All, false), false, None),
    (state(true, All, All, Nothing, true), false, Some(Rtype::NSEC)),
    (state(true, Nothing, All, All, true), false, Some(Rtype::NSEC3)),
    (state(false, All, All, Nothing, false), false, None),
];

#[test]
fn every_state_of_a_zone_from_primaries_is_served_with_the_proofs_that_it_has() {
    for (state, is_sound, expected) in STATES {
        for verify in [VerifyChoice::Auto, VerifyChoice::Nothing] {
            let dir = tempfile::tempdir().unwrap();
            let settings = || from_primaries(dir.path(), verify, OnFault::Warn);
            let service = started(settings());
            service.publish(&name("example."), state.contents(), &[]).unwrap();
            let check = |service: &Service| {
                for (qname, qtype, rcode) in
                    [("nope.example.", Rtype::A, Rcode::NXDOMAIN), ("t.example.", Rtype::A, Rcode::NOERROR)]
                {
                    let answer = ask(service, qname, qtype);
                    assert_eq!(
                        (answer.rcode(), proof(&answer)),
                        (rcode, expected.into_iter().collect()),
                        "{state:?} {qname}"
                    );
                }
                let answer = ask(service, "t.example.", Rtype::TXT);
                let records = answer.section(Section::Answer).count();
                assert_eq!(records, if state.signatures == All { 2 } else { 1 }, "{state:?}");
                let warnings = service.warnings(&name("example."));
                let is_warned = warnings.iter().any(|warning| warning.starts_with("verification found "));
                assert_eq!(
                    is_warned,
                    !is_sound && verify != VerifyChoice::Nothing,
                    "{state:?} {verify:?}: {warnings:?}"
                );
                assert_eq!(service.zone_status(Some(&name("example.")))[0].error, None);
            };
            check(&service);
            end(service);
            // What was served is served after a restart, with what was said of it.
            check(&started(settings()));
        }
    }
}

#[test]
fn faulty_versions_are_rejected_where_that_is_configured() {
    for (state, is_sound, _) in STATES {
        let dir = tempfile::tempdir().unwrap();
        let service = started(from_primaries(dir.path(), VerifyChoice::Auto, OnFault::Reject));
        let published = service.publish(&name("example."), state.contents(), &[]);
        assert_eq!(published.is_ok(), is_sound, "{state:?}: {published:?}");
        assert_eq!(serial(&service).is_some(), is_sound);
    }
}

/// RFC 2181 §6.1: without NS records it is no zone.
#[test]
fn a_version_without_ns_records_is_rejected_whatever_is_done_about_faults() {
    let dir = tempfile::tempdir().unwrap();
    let without = zone_text(8).replace("@ 60 NS ns\n", "");
    let without = || read::read_text(without.as_bytes(), Path::new("zone"), None).unwrap().contents;
    for (verify, on_fault) in [
        (VerifyChoice::Auto, OnFault::Warn),
        (VerifyChoice::Nothing, OnFault::Warn),
        (VerifyChoice::Nothing, OnFault::Reject),
    ] {
        let service = started(from_primaries(dir.path(), verify, on_fault));
        service.publish(&name("example."), contents(7), &[]).unwrap();
        let rejected = service.publish(&name("example."), without(), &[]);
        assert!(matches!(rejected, Err(Refused::NoApexNs)), "{rejected:?}");
        assert_eq!(serial(&service), Some(7));
        end(service);
    }
}

/// A zone that its primary has not signed with NSEC5 yet is served by a secondary that has the VRF key already.
#[test]
fn nsec5_keys_may_be_there_before_the_chain() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = from_primaries(dir.path(), VerifyChoice::Auto, OnFault::Warn);
    settings.zones[0].making = Making::Nsec5 { keys: dir.path().join("vrf") };
    let service = started(settings);
    service.publish(&name("example."), signed(7, 1), &[]).unwrap();
    let warnings = service.warnings(&name("example."));
    assert!(warnings[0].contains("not signed with NSEC5"), "{warnings:?}");
    assert_eq!(proof(&ask(&service, "nope.example.", Rtype::A)), [Rtype::NSEC]);
}

/// Answers of a secondary that signs online are whole whatever the primary has signed so far.
#[test]
fn states_are_served_where_answers_are_signed_online() {
    const KEYS: KeyFiles =
        KeyFiles { signing: |_, zone| Ok((Vec::new(), vec![key_pair(zone, 1)])), ..KEY_FILES };
    for (on_fault, is_served) in [(OnFault::Warn, true), (OnFault::Reject, false)] {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = from_primaries(dir.path(), VerifyChoice::Auto, on_fault);
        let (mechanism, keys) = (Mechanism::MinimalNsec, dir.path().join("keys"));
        settings.zones[0].making = Making::Online { mechanism, keys, validity: 86_400 };
        let service = Service::open(settings, KEYS, Arc::new(Zones::new())).unwrap();
        service.begin().unwrap();
        let _ = service.wait();
        let partly = state(true, Part, Part, All, true);
        assert_eq!(service.publish(&name("example."), partly.contents(), &[]).is_ok(), is_served);
        assert_eq!(serial(&service).is_some(), is_served);
        let warnings = service.warnings(&name("example."));
        assert_eq!(warnings.iter().any(|warning| warning.contains("verification found")), is_served);
    }
}
