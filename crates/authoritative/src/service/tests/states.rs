//! Intermediate versions: a primary signs a zone for the first time, or changes its denial
//! mechanism (RFC 5155 §10.4, §10.5). They are served, and answers lack the records that the
//! version lacks.

use super::*;
use crate::{Responder, ServerContext};
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::online::OnlineSigner;
use nonesuch_dnssec::verify::FaultReason;
use nonesuch_net::Transport;
use nonesuch_net::{Answer, Handler as _};
use nonesuch_proto::message::{HEADER, Message, Rcode, Section, push_query};
use nonesuch_proto::{Rtype, edns};
use std::collections::BTreeSet;

/// The part of certain records that a version contains.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Share {
    Nothing,
    Part,
    All,
}

use Share::{All, Nothing, Part};

/// The content of a version in addition to the data of the zone.
#[derive(Clone, Copy, Debug)]
struct State {
    has_keys: bool,
    signatures: Share,
    /// `Part`: all except the record at the apex.
    nsec: Share,
    /// `Part`: all except the last record.
    nsec3: Share,
    has_parameters: bool,
}

const fn state(has_keys: bool, signatures: Share, nsec: Share, nsec3: Share, has_parameters: bool) -> State {
    State { has_keys, signatures, nsec, nsec3, has_parameters }
}

/// Returns the type of a record in a line of a zone file, and the type that it covers.
fn types(line: &str) -> (Rtype, Rtype) {
    let mut fields = line.split_whitespace().skip(1);
    let is_type = |field: &&str| *field != "IN" && field.parse::<u32>().is_err();
    let rtype: Rtype = fields.find(is_type).unwrap().parse().unwrap();
    let covered = if rtype == Rtype::RRSIG { fields.next().unwrap().parse().unwrap() } else { rtype };
    (rtype, covered)
}

impl State {
    /// Returns the version of the zone in this state.
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

/// Returns the response of the served version to a query with DO.
fn ask(service: &Service, qname: &str, qtype: Rtype) -> Message {
    let mut query = Vec::new();
    push_query(&name(qname), qtype, 7, 0, &mut query);
    edns::push_opt(4096, 0, edns::DO, &mut query);
    query[HEADER - 1] = 1;
    let mut out = Vec::new();
    let address = std::net::SocketAddr::from(([127, 0, 0, 1], 53));
    let shared = ServerContext::new(Arc::clone(service.zones()));
    let mut responder =
        Responder::new(&shared, Transport::Tcp, address, OnlineSigner::new(1 << 16, Arc::default()), 0);
    responder.begin_batch();
    assert_eq!(responder.answer(&query, address, &mut out), Answer::Ready);
    Message::parse(&out).unwrap()
}

/// Returns the types of the records that prove a negative answer, without duplicates.
fn proof(message: &Message) -> Vec<Rtype> {
    let records = message.section(Section::Authority).map(|record| record.rtype);
    let chain: BTreeSet<Rtype> =
        records.filter(|rtype| [Rtype::NSEC, Rtype::NSEC3].contains(rtype)).collect();
    chain.into_iter().collect()
}

fn from_primaries(dir: &Path, verify: VerifyChoice, on_fault: OnFault) -> Settings {
    let mut settings = secondary_settings(dir);
    (settings.zones[0].verify, settings.zones[0].on_fault) = (verify, on_fault);
    settings
}

/// The setting because of which a version with faults is served. The warning about the faults names
/// it.
const SERVED_WITH_FAULTS: &str = "on-fault = \"warn\"";

/// A state, whether verification finds no fault, and the type that proves negative answers.
const STATES: [(State, bool, Option<Rtype>); 15] = [
    // A zone is signed for the first time: keys, signatures, then the chain with its record at the
    // apex last.
    (state(false, Nothing, Nothing, Nothing, false), true, None),
    (state(true, Nothing, Nothing, Nothing, false), false, None),
    (state(true, Part, Nothing, Nothing, false), false, None),
    (state(true, All, Nothing, Nothing, false), false, None),
    (state(true, All, Part, Nothing, false), false, None),
    (state(true, All, All, Nothing, false), true, Some(Rtype::NSEC)),
    // RFC 5155 §10.4: the other chain is added, with NSEC3PARAM last; then NSEC is removed.
    (state(true, All, All, Part, false), false, Some(Rtype::NSEC)),
    (state(true, All, All, All, false), false, Some(Rtype::NSEC)),
    (state(true, All, All, All, true), false, Some(Rtype::NSEC3)),
    (state(true, All, Part, All, true), false, Some(Rtype::NSEC3)),
    (state(true, All, Nothing, All, true), true, Some(Rtype::NSEC3)),
    // RFC 5155 §10.5: NSEC is added, NSEC3PARAM is removed, then NSEC3 is removed.
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
                let is_warned = warnings.iter().any(|warning| warning.contains(SERVED_WITH_FAULTS));
                assert_eq!(
                    is_warned,
                    !is_sound && verify != VerifyChoice::Nothing,
                    "{state:?} {verify:?}: {warnings:?}"
                );
                assert_eq!(service.zone_status(Some(&name("example.")))[0].error, None);
            };
            check(&service);
            end(service);
            // After a restart, the same version is served, with the same messages.
            check(&started(settings()));
        }
    }
}

#[test]
fn faulty_versions_are_rejected_if_configured() {
    for (state, is_sound, _) in STATES {
        let dir = tempfile::tempdir().unwrap();
        let service = started(from_primaries(dir.path(), VerifyChoice::Auto, OnFault::Reject));
        let published = service.publish(&name("example."), state.contents(), &[]);
        assert_eq!(published.is_ok(), is_sound, "{state:?}: {published:?}");
        assert_eq!(serial(&service).is_some(), is_sound);
    }
}

/// RFC 2181 §6.1: a zone needs NS records.
#[test]
fn a_version_without_ns_records_is_rejected_with_any_on_fault() {
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
        assert!(matches!(rejected, Err(VersionError::NoApexNs)), "{rejected:?}");
        assert_eq!(serial(&service), Some(7));
        end(service);
    }
}

/// A secondary that already has the VRF key serves a zone that its primary has not yet signed with
/// NSEC5.
#[test]
fn nsec5_keys_may_exist_before_the_chain() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = from_primaries(dir.path(), VerifyChoice::Auto, OnFault::Warn);
    settings.zones[0].signing_mode = SigningMode::Nsec5 { key_directory: dir.path().join("vrf") };
    let service = started(settings);
    service.publish(&name("example."), signed(7, 1), &[]).unwrap();
    let warnings = service.warnings(&name("example."));
    assert_eq!(warnings[0], build::WITHOUT_NSEC5);
    assert_eq!(proof(&ask(&service, "nope.example.", Rtype::A)), [Rtype::NSEC]);
}

/// Answers of a secondary that signs online are complete, independent of what the primary has
/// signed.
#[test]
fn intermediate_versions_are_served_with_online_signing() {
    const KEYS: KeyLoader = KeyLoader {
        load_signing_keys: |_, zone, _| {
            Ok(SigningKeys { pairs: vec![key_pair(zone, 1)], ..SigningKeys::default() })
        },
        ..KEY_FILES
    };
    for (on_fault, is_served) in [(OnFault::Warn, true), (OnFault::Reject, false)] {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = from_primaries(dir.path(), VerifyChoice::Auto, on_fault);
        let (mechanism, key_directory) = (Mechanism::MinimalNsec, dir.path().join("keys"));
        settings.zones[0].signing_mode = SigningMode::Online(OnlineSigning {
            mechanism,
            key_directory,
            validity: 86_400,
            ignore_key_times: false,
        });
        let service = Service::open(settings, KEYS, Arc::new(Zones::new())).unwrap();
        service.begin().unwrap();
        let _ = service.wait_until_loaded();
        let partly = state(true, Part, Part, All, true);
        assert_eq!(service.publish(&name("example."), partly.contents(), &[]).is_ok(), is_served);
        assert_eq!(serial(&service).is_some(), is_served);
        let warnings = service.warnings(&name("example."));
        assert_eq!(warnings.iter().any(|warning| warning.contains(SERVED_WITH_FAULTS)), is_served);
    }
}

/// Returns the records of a signed zone as lines.
fn signed_lines(text: &str, mechanism: Mechanism) -> Vec<String> {
    let contents = read::read_text(text.as_bytes(), Path::new("zone"), None).unwrap().contents;
    let mut out = Vec::new();
    nonesuch_zone::write::write_zone(&signed_by(&contents, &[1], mechanism), &mut out).unwrap();
    String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
}

fn contents_of(lines: &[String]) -> Contents {
    read::read_text(lines.join("\n").as_bytes(), Path::new("zone"), None).unwrap().contents
}

/// Query name, query type, and whether the negative answer has a proof.
type Asked = (&'static str, Rtype, bool);

#[track_caller]
fn expect_proofs(what: &str, lines: &[String], expected: &[Asked]) {
    for verify in [VerifyChoice::Auto, VerifyChoice::Nothing] {
        let dir = tempfile::tempdir().unwrap();
        let settings = || from_primaries(dir.path(), verify, OnFault::Warn);
        let check = |service: &Service| {
            for (qname, qtype, is_proved) in expected {
                let answer = ask(service, qname, *qtype);
                assert_eq!(answer.section(Section::Answer).count(), 0, "{what}: {qname} {qtype}");
                assert_eq!(!proof(&answer).is_empty(), *is_proved, "{what}: {qname} {qtype} {verify:?}");
            }
        };
        let service = started(settings());
        service.publish(&name("example."), contents_of(lines), &[]).unwrap();
        check(&service);
        end(service);
        check(&started(settings()));
    }
}

const NAMES: &str = "$ORIGIN example.\n@ 60 SOA ns h 7 60 60 3600 60\n@ 60 NS ns\nd 60 A 192.0.2.2\nns 60 A 192.0.2.1\nt 60 TXT \"x\"\n";

/// A record that does not cover the name, or that contains the type, is no proof: validators would
/// regard the answer as bogus, and other clients do not need it.
#[test]
fn stale_nsec_records_are_not_sent_as_proofs() {
    let sound = signed_lines(NAMES, Mechanism::Nsec);
    let without = |is_left_out: &dyn Fn(&str, (Rtype, Rtype)) -> bool| -> Vec<String> {
        let owner = |line: &str| line.split_whitespace().next().unwrap().to_owned();
        sound.iter().filter(|line| !is_left_out(&owner(line), types(line))).cloned().collect()
    };
    expect_proofs(
        "nothing",
        &sound,
        &[("e.example.", Rtype::A, true), ("t.example.", Rtype::A, true), ("zz.example.", Rtype::A, true)],
    );
    expect_proofs(
        "no record at ns",
        &without(&|owner, (_, covered)| owner == "ns.example." && covered == Rtype::NSEC),
        &[
            ("e.example.", Rtype::A, true),
            ("o.example.", Rtype::A, false),
            ("ns.example.", Rtype::TXT, false),
            ("zz.example.", Rtype::A, true),
        ],
    );
    expect_proofs(
        "no signature over the record at t",
        &without(&|owner, of| owner == "t.example." && of == (Rtype::RRSIG, Rtype::NSEC)),
        &[("t.example.", Rtype::A, false), ("zz.example.", Rtype::A, false), ("e.example.", Rtype::A, true)],
    );
    expect_proofs(
        "a bit map with a type whose RRset is missing",
        &without(&|owner, (_, covered)| owner == "t.example." && covered == Rtype::TXT),
        &[("t.example.", Rtype::TXT, false), ("t.example.", Rtype::A, true)],
    );
    let added = [&sound[..], &["m.example. 60 A 192.0.2.7".to_owned()]].concat();
    expect_proofs(
        "a name between owner and next name",
        &added,
        &[("m.example.", Rtype::TXT, false), ("l.example.", Rtype::TXT, true)],
    );
}

/// If an NSEC3 chain lacks one record, all other names are still proved.
#[test]
fn a_gap_in_a_chain_of_nsec3_proves_nothing() {
    let sound = signed_lines(NAMES, Mechanism::Nsec3);
    let hash = nonesuch_crypto::nsec3_hash(name("t.example.").view().wire(), &[], 0);
    let owner = data_encoding::BASE32HEX_NOPAD.encode(&hash).to_lowercase();
    let broken: Vec<String> =
        sound.iter().filter(|line| !line.to_lowercase().starts_with(&owner)).cloned().collect();
    assert_eq!(broken.len() + 2, sound.len());
    let whole = [("t.example.", Rtype::A, true), ("ns.example.", Rtype::TXT, true)];
    expect_proofs("nothing", &sound, &whole);
    expect_proofs(
        "no record of t",
        &broken,
        &[
            ("t.example.", Rtype::A, false),
            ("ns.example.", Rtype::TXT, true),
            ("d.example.", Rtype::TXT, true),
        ],
    );
    // Names with hashes in the gap are no longer covered; other names are.
    let service =
        started(from_primaries(tempfile::tempdir().unwrap().path(), VerifyChoice::Auto, OnFault::Warn));
    service.publish(&name("example."), contents_of(&broken), &[]).unwrap();
    let proved =
        (0..64).filter(|number| !proof(&ask(&service, &format!("n{number}.example."), Rtype::A)).is_empty());
    assert!((1..64).contains(&proved.count()));
}

/// Faults because of the clock, missing keys or foreign files are not permanent faults of a
/// version.
#[test]
fn a_rejection_contains_its_period() {
    use nonesuch_secondary::{PublishError, ReceivedVersion, RejectionPeriod, ZoneStore as _};
    let primary = || Remote::plain(([127, 0, 0, 1], 1).into());
    let transfer = |making: SigningMode, contents: Contents| {
        let dir = tempfile::tempdir().unwrap();
        let mut settings = from_primaries(dir.path(), VerifyChoice::Auto, OnFault::Reject);
        settings.zones[0].transfers.primaries = vec![primary()];
        settings.zones[0].signing_mode = making;
        let link = ServiceZoneStore { service: started(settings), settings: Arc::default() };
        let received = ReceivedVersion { primary: primary(), contents, steps: Vec::new() };
        link.publish(&name("example."), received).unwrap_err()
    };
    let now = seconds_now() as u32;
    let signed_in = |from: u32, to: u32| signed_until(&contents(8), &[1], Mechanism::Nsec, (from, to));
    let verdict = |contents| match transfer(SigningMode::AsLoaded, contents) {
        PublishError::Rejected { verdict, .. } => verdict,
        other => panic!("{other:?}"),
    };
    let early = verdict(signed_in(now + 1000, now + 2000));
    assert!(matches!(early, RejectionPeriod::For { seconds: 900..=1000 }), "{early:?}");
    assert_eq!(verdict(signed_in(now - 2000, now - 1000)), RejectionPeriod::For { seconds: 0 });
    assert_eq!(verdict(tampered(&signed_in(now - 1000, now + 1000))), RejectionPeriod::Final);
    let (mechanism, key_directory) = (Mechanism::MinimalNsec, PathBuf::from("nowhere"));
    let online = SigningMode::Online(OnlineSigning {
        mechanism,
        key_directory,
        validity: 86_400,
        ignore_key_times: false,
    });
    let without_keys = transfer(online, contents(8));
    assert!(matches!(without_keys, PublishError::Failed(_)), "{without_keys:?}");
}

/// RFC 8976 §4: the publisher computed the digest over other records.
#[test]
fn a_version_whose_digest_does_not_verify_is_rejected_with_any_on_fault() {
    let digest = |serial: u32| format!("@ 60 ZONEMD {serial} 1 1 {}\n", "00".repeat(48));
    let version = |serial: u32, more: &str| {
        let text = format!("{}{more}", zone_text(serial));
        read::read_text(text.as_bytes(), Path::new("zone"), None).unwrap().contents
    };
    for on_fault in [OnFault::Warn, OnFault::Reject] {
        let dir = tempfile::tempdir().unwrap();
        let service = started(from_primaries(dir.path(), VerifyChoice::Auto, on_fault));
        service.publish(&name("example."), version(7, ""), &[]).unwrap();
        for zonemd in [digest(8), digest(7)] {
            let rejected = service.publish(&name("example."), version(8, &zonemd), &[]);
            assert!(matches!(rejected, Err(VersionError::WrongDigest(_))), "{rejected:?}");
        }
        let signed = signed_by(&version(8, &digest(8)), &[1], Mechanism::Nsec);
        let rejected = service.publish(&name("example."), tampered(&signed), &[]);
        assert!(matches!(rejected, Err(VersionError::WrongDigest(_))), "{rejected:?}");
        assert_eq!(serial(&service), Some(7));
    }
    let dir = tempfile::tempdir().unwrap();
    let service = started(from_primaries(dir.path(), VerifyChoice::Nothing, OnFault::Warn));
    service.publish(&name("example."), version(8, &digest(8)), &[]).unwrap();
}

/// The digest covers the TTLs that the records had, and the server stores only the lowest. An
/// attacker who alters a transfer could add such a TTL.
#[test]
fn a_digest_that_cannot_be_checked_is_rejected_with_the_reason() {
    let zonemd = format!("@ 60 ZONEMD 8 1 1 {}\n", "00".repeat(48));
    let text = format!("{}{zonemd}m 60 A 192.0.2.1\nm 300 A 192.0.2.2\n", zone_text(8));
    let version = || read::read_text(text.as_bytes(), Path::new("zone"), None).unwrap().contents;
    for on_fault in [OnFault::Reject, OnFault::Warn] {
        let dir = tempfile::tempdir().unwrap();
        let service = started(from_primaries(dir.path(), VerifyChoice::Full, on_fault));
        let rejected = service.publish(&name("example."), version(), &[]);
        let Err(VersionError::WrongDigest(fault)) = &rejected else { panic!("{rejected:?}") };
        assert!(matches!(fault.reason, FaultReason::ZonemdMixedTtls { .. }), "{fault:?}");
        end(service);
    }
}

/// Returns a signed zone without one of its records.
fn tampered(zone: &Contents) -> Contents {
    let mut text = Vec::new();
    nonesuch_zone::write::write_zone(zone, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    let lines: Vec<String> =
        text.lines().filter(|line| types(line) != (Rtype::A, Rtype::A)).map(str::to_owned).collect();
    contents_of(&lines)
}
