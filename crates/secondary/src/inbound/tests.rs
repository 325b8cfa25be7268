//! Tests of valid and invalid responses of primaries, and of zones after incremental transfers.

use super::*;
use nonesuch_proto::message::MessageError;
use nonesuch_zone::ZoneFault;
use nonesuch_zone::change::{ChangeError, ChangeFault};
use nonesuch_zone::read::{read_records, read_text};
use proptest::prelude::*;
use std::path::Path;

const ID: u16 = 0x1234;
const TTL: u32 = 60;

/// Owner, type and RDATA of a record.
pub(crate) type Row = (Name, Rtype, Vec<u8>);

pub(crate) fn apex() -> Name {
    "example.".parse().unwrap()
}

/// Returns records from zone text, relative to the apex.
pub(crate) fn rows(text: &str) -> Vec<Row> {
    text.lines()
        .filter(|line| !line.trim().is_empty())
        .flat_map(|line| read_records(line.trim().as_bytes(), Path::new("text"), &apex()).unwrap())
        .collect()
}

/// Returns a message of a response to a query of type `qtype`.
pub(crate) fn message(qtype: Rtype, has_question: bool, rows: &[Row]) -> Vec<u8> {
    let mut out = Vec::new();
    push_query(&apex(), qtype, ID, flags::QR | flags::AA, &mut out);
    if !has_question {
        out.truncate(HEADER);
        out[4..6].copy_from_slice(&0u16.to_be_bytes());
    }
    out[6..8].copy_from_slice(&(rows.len() as u16).to_be_bytes());
    for (owner, rtype, rdata) in rows {
        out.extend_from_slice(owner.wire());
        out.extend_from_slice(&rtype.0.to_be_bytes());
        out.extend_from_slice(&Class::IN.0.to_be_bytes());
        out.extend_from_slice(&TTL.to_be_bytes());
        out.extend_from_slice(&(rdata.len() as u16).to_be_bytes());
        out.extend_from_slice(rdata);
    }
    out
}

fn read(asked: InboundRequest, messages: &[Vec<u8>]) -> Result<TransferContent, InboundError> {
    let mut inbound = InboundTransfer::new(apex(), ID, asked, TransferBounds::default());
    for message in messages {
        inbound.push(message)?;
    }
    inbound.finish()
}

fn soa(serial: u32) -> String {
    format!("@ SOA ns hostmaster {serial} 7200 3600 1209600 300\n")
}

fn zone(text: &str) -> Contents {
    read_text(format!("$TTL {TTL}\n{text}").as_bytes(), Path::new("zone"), Some(&apex())).unwrap().contents
}

/// Checks that two zones are identical.
#[track_caller]
pub(crate) fn assert_same(a: &Contents, b: &Contents) {
    let differences = ChangeSet::between(a, b, |_| true);
    assert!(differences.is_empty(), "{:?} {:?}", differences.removed(), differences.added());
    assert_eq!(a.node_count(), b.node_count());
    assert_eq!(a.apex().wire(), b.apex().wire());
}

const IXFR: InboundRequest = InboundRequest::Ixfr { serial: 1 };

#[test]
fn a_whole_zone_comes_in_any_number_of_messages() {
    let text = format!("{}@ NS ns\nns A 192.0.2.1\n*.w MX 10 mail.other.\na.b.c TXT \"x\"\n", soa(3));
    let all = rows(&format!("{text}{}", soa(3)));
    for size in 1..=all.len() {
        let chunks = all.chunks(size).enumerate();
        let messages: Vec<_> = chunks.map(|(at, rows)| message(Rtype::AXFR, at == 0, rows)).collect();
        let TransferContent::Axfr { contents, .. } = read(InboundRequest::Axfr, &messages).unwrap() else {
            panic!("whole")
        };
        assert_same(&contents, &zone(&text));
    }
}

#[test]
fn names_may_be_compressed_and_records_out_of_the_zone_are_passed_over() {
    let mut all = rows(&format!("{}@ NS ns\n", soa(3)));
    all.extend(rows("stray.other. A 192.0.2.9\n"));
    all.extend(rows(&soa(3)));
    let mut octets = message(Rtype::AXFR, true, &all);
    // Replaces the owner of the second record by a pointer to the question.
    let second = octets.windows(19).position(|w| w.starts_with(b"\x07example\0\0\x02\0\x01")).unwrap();
    octets.splice(second..second + 9, [0xc0, 12]);
    let mut inbound = InboundTransfer::new(apex(), ID, InboundRequest::Axfr, TransferBounds::default());
    assert!(inbound.push(&octets).unwrap());
    assert_eq!((inbound.out_of_zone(), inbound.records(), inbound.messages()), (1, 4, 1));
    let TransferContent::Axfr { contents, .. } = inbound.finish().unwrap() else { panic!("whole") };
    assert_same(&contents, &zone(&format!("{}@ NS ns\n", soa(3))));
}

#[test]
fn steps_are_read_and_lead_to_the_newest_version() {
    let old = zone(&format!("{}@ NS ns\nns A 192.0.2.1\ngone TXT \"x\"\n", soa(1)));
    let text = [
        soa(3),
        soa(1),
        "gone TXT \"x\"\n".into(),
        soa(2),
        "came TXT \"y\"\n".into(),
        soa(2),
        "came TXT \"y\"\nns A 192.0.2.1\n".into(),
        soa(3),
        "ns A 192.0.2.2\nns A 192.0.2.3\n".into(),
        soa(3),
    ];
    let all = rows(&text.concat());
    for size in 1..=all.len() {
        let messages: Vec<_> = all.chunks(size).map(|rows| message(Rtype::IXFR, true, rows)).collect();
        let TransferContent::Ixfr(steps) = read(IXFR, &messages).unwrap() else { panic!("steps") };
        assert_eq!(steps.len(), 2);
        let (new, change) = apply_steps(&old, &steps).unwrap();
        assert_same(&new, &zone(&format!("{}@ NS ns\nns A 192.0.2.2\nns A 192.0.2.3\n", soa(3))));
        // The combined change does not contain records that were added and removed again.
        assert_eq!(change.touched().count(), 3);
        assert_same(&change.apply(&old, Default::default()).unwrap(), &new);
    }
}

#[test]
fn answers_to_ixfr_may_be_short_or_whole() {
    let one = |serial| message(Rtype::IXFR, true, &rows(&soa(serial)));
    assert!(matches!(read(IXFR, &[one(1)]).unwrap(), TransferContent::UpToDate { serial: 1 }));
    assert!(matches!(read(IXFR, &[one(0)]).unwrap(), TransferContent::UpToDate { serial: 0 }));
    assert!(matches!(read(IXFR, &[one(2)]).unwrap(), TransferContent::Newer));
    let whole = rows(&format!("{}@ NS ns\n{}", soa(2), soa(2)));
    let read_whole = read(IXFR, &[message(Rtype::IXFR, true, &whole)]).unwrap();
    assert!(matches!(read_whole, TransferContent::Axfr { contents, .. } if contents.record_count() == 2));
    let empty = rows(&format!("{}{}", soa(2), soa(2)));
    let read_empty = read(IXFR, &[message(Rtype::IXFR, true, &empty)]).unwrap();
    assert!(matches!(read_empty, TransferContent::Axfr { contents, .. } if contents.record_count() == 1));
    // A whole zone of the local version is not needed.
    let old = rows(&format!("{}@ NS ns\n{}", soa(1), soa(1)));
    let read_old = read(IXFR, &[message(Rtype::IXFR, true, &old)]).unwrap();
    assert!(matches!(read_old, TransferContent::UpToDate { serial: 1 }));
}

#[test]
fn serials_wrap_around() {
    let text = [soa(5), soa(u32::MAX), "a TXT \"x\"\n".into(), soa(5), soa(5)].concat();
    let asked = InboundRequest::Ixfr { serial: u32::MAX };
    let incoming = read(asked, &[message(Rtype::IXFR, true, &rows(&text))]).unwrap();
    assert!(matches!(incoming, TransferContent::Ixfr(steps) if steps.len() == 1));
}

#[test]
fn faulty_answers_are_refused_with_their_fault() {
    let whole = |text: &str| vec![message(Rtype::AXFR, true, &rows(text))];
    let steps = |texts: &[String]| vec![message(Rtype::IXFR, true, &rows(&texts.concat()))];
    let truncated = |records| InboundError::Truncated { records };
    let changed = |first, last| InboundError::Changed { first, last };
    let order = |from, to| InboundError::Order { from, to };
    let a = || "a.example.".parse().unwrap();
    let two_aliases = ZoneFault::NotSingleton { owner: a(), rtype: Rtype::CNAME };
    let cases: Vec<(InboundRequest, Vec<Vec<u8>>, InboundError)> = vec![
        (InboundRequest::Axfr, whole("@ NS ns\n"), InboundError::NoSoaFirst),
        (InboundRequest::Axfr, whole(""), truncated(0)),
        (InboundRequest::Axfr, whole(&soa(1)), truncated(1)),
        (InboundRequest::Axfr, whole(&format!("{}@ NS ns\n", soa(1))), truncated(2)),
        (InboundRequest::Axfr, whole(&format!("{}@ NS ns\n{}", soa(1), soa(2))), changed(1, 2)),
        // The octets of the serials differ like upper and lower case letters.
        (InboundRequest::Axfr, whole(&format!("{}@ NS ns\n{}", soa(65), soa(97))), changed(65, 97)),
        (
            InboundRequest::Axfr,
            whole(&format!("{}{}@ NS ns\n", soa(1), soa(1))),
            InboundError::RecordsAfterEnd,
        ),
        (
            InboundRequest::Axfr,
            whole(&format!("{}a SOA b c 1 2 3 4 5\n{}", soa(1), soa(1))),
            InboundError::Zone(ZoneFault::SecondSoa(a())),
        ),
        (
            InboundRequest::Axfr,
            whole(&format!("{}a CNAME b\na CNAME c\n{}", soa(1), soa(1))),
            InboundError::Zone(two_aliases),
        ),
        (IXFR, steps(&[soa(3), soa(1), soa(1), soa(3)]), order(1, 1)),
        (IXFR, steps(&[soa(3), soa(1), soa(2), soa(1), soa(3)]), order(2, 1)),
        (IXFR, steps(&[soa(3), soa(1), soa(4), soa(4), soa(3)]), order(4, 4)),
        (IXFR, steps(&[soa(3), soa(1), soa(3)]), truncated(3)),
        (IXFR, steps(&[soa(3), soa(2), soa(3)]), changed(3, 2)),
    ];
    for (asked, messages, expected) in cases {
        assert_eq!(read(asked, &messages).unwrap_err(), expected);
    }
}

#[test]
fn messages_must_be_the_answer() {
    let good = message(Rtype::AXFR, true, &rows(&soa(1)));
    let change = |at: usize, octet: u8| {
        let mut octets = good.clone();
        octets[at] = octet;
        read(InboundRequest::Axfr, &[octets]).unwrap_err()
    };
    let reason = |error: InboundError| match error {
        InboundError::WrongResponse(reason) => reason,
        other => panic!("{other:?}"),
    };
    let cut = |octets: usize| read(InboundRequest::Axfr, &[good[..octets].to_vec()]).unwrap_err();
    // Each of these faults has its own reason.
    let reasons = [
        reason(change(0, 9)),
        reason(change(2, 0)),
        reason(change(2, 0x86)),
        reason(change(5, 0)),
        reason(change(13, b'f')),
        reason(cut(11)),
    ];
    for (at, found) in reasons.iter().enumerate() {
        assert!(!reasons[..at].contains(found), "{found}");
    }
    for (found, part) in reasons.iter().zip(["ID", "query", "TC", "question", "question", "header"]) {
        assert!(found.contains(part), "{part}: {found}");
    }
    assert_eq!(reason(change(2, 0x84 | 4 << 3)), reasons[1]);
    assert_eq!(reason(change(22, 251)), reasons[4]);
    let refused = change(3, 5);
    assert_eq!(refused, InboundError::Rcode(Rcode::REFUSED));
    assert_eq!(
        refused.to_string(),
        "the primary responded with REFUSED: permit transfers to this server's address or TSIG key on the primary"
    );
    let class = HEADER + 9 + 4 + 9 + 3;
    assert_eq!(good[class], 1);
    assert_eq!(change(class, 3), InboundError::NoZoneData { rtype: Rtype::SOA, class: Class(3) });
    assert_eq!(cut(40), InboundError::Message(MessageError::Truncated));
}

#[test]
fn bounds_hold() {
    let all = message(Rtype::AXFR, true, &rows(&format!("{}@ NS ns\n{}", soa(1), soa(1))));
    let push = |records, octets| {
        let bounds = TransferBounds { records, octets, ..TransferBounds::default() };
        InboundTransfer::new(apex(), ID, InboundRequest::Axfr, bounds).push(&all)
    };
    // Each record is charged with 64 bytes in addition to its owner and its data; the message needs
    // 10 octets for these fields. The header and the question are not charged.
    let length = all.len() as u64 + 3 * 54 - (HEADER + 9 + 4) as u64;
    assert!(push(3, length).unwrap());
    assert_eq!(push(2, length).unwrap_err(), InboundError::TooManyRecords { records: 2 });
    assert_eq!(push(3, length - 1).unwrap_err(), InboundError::TooLarge { octets: length - 1 });
    // Compressed names are charged at their full length.
    let mut packed = message(Rtype::AXFR, true, &rows(&soa(1)));
    for number in 0..100 {
        packed.extend_from_slice(&[0xc0, HEADER as u8, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, number]);
    }
    packed[6..8].copy_from_slice(&101u16.to_be_bytes());
    let within = |octets| {
        let bounds = TransferBounds { octets, ..TransferBounds::default() };
        InboundTransfer::new(apex(), ID, InboundRequest::Axfr, bounds).push(&packed)
    };
    let octets = packed.len() as u64;
    assert_eq!(within(octets).unwrap_err(), InboundError::TooLarge { octets });
    assert!(!within(5 * octets).unwrap());
    let most = TransferBounds::default().octets;
    assert!((1..=16 << 30).contains(&most), "{most}");
}

/// Returns a response of `count` steps that change only the serial, in one message.
fn tiny_steps(count: u32) -> Vec<u8> {
    let steps = (1..=count).map(|serial| soa(serial) + &soa(serial + 1));
    let text = soa(count + 1) + &steps.collect::<String>() + &soa(count + 1);
    message(Rtype::IXFR, true, &rows(&text))
}

#[test]
fn many_tiny_steps_are_charged_and_bounded() {
    let all = tiny_steps(200);
    let push = |bounds| {
        let mut inbound = InboundTransfer::new(apex(), ID, IXFR, bounds);
        inbound.push(&all).map(|_| inbound.charged())
    };
    let charged = push(TransferBounds::default()).unwrap();
    // Each step uses a few hundred bytes of memory, however short its records are.
    assert!(charged > 200 * 1024, "{charged}");
    let within = |octets| TransferBounds { octets, ..TransferBounds::default() };
    assert_eq!(push(within(charged)).unwrap(), charged);
    let octets = charged - 1;
    assert_eq!(push(within(octets)).unwrap_err(), InboundError::StepsTooLarge { octets });
    let bounded = |steps| TransferBounds { steps, ..TransferBounds::default() };
    assert!(push(bounded(200)).is_ok());
    assert_eq!(push(bounded(199)).unwrap_err(), InboundError::TooManySteps { steps: 199 });
    // A transfer of the whole zone has no steps.
    assert!(push(bounded(199)).unwrap_err().may_succeed_as_axfr());
    assert!(push(within(octets)).unwrap_err().may_succeed_as_axfr());
}

#[test]
fn steps_that_do_not_fit_are_refused() {
    let old = zone(&format!("{}@ NS ns\nns A 192.0.2.1\n", soa(1)));
    let apply = |removed: &str, added: &str| {
        let text = [soa(2), soa(1), removed.into(), soa(2), added.into(), soa(2)].concat();
        let incoming = read(IXFR, &[message(Rtype::IXFR, true, &rows(&text))]).unwrap();
        let TransferContent::Ixfr(steps) = incoming else { panic!("steps") };
        apply_steps(&old, &steps).map(drop)
    };
    let fails = |fault| -> Result<(), IxfrApplyError> { Err(ChangeError { line: 0, fault }.into()) };
    let missing = |record: &str| fails(ChangeFault::Missing(record.to_owned()));
    assert_eq!(apply("ns A 192.0.2.1\n", "ns A 192.0.2.2\n"), Ok(()));
    assert_eq!(apply("ns A 192.0.2.2\n", ""), missing("ns.example. 60 IN A 192.0.2.2"));
    assert_eq!(apply("gone A 192.0.2.2\n", ""), missing("gone.example. 60 IN A 192.0.2.2"));
    let existing = ChangeFault::AlreadyExists("ns.example. 60 IN A 192.0.2.1".to_owned());
    assert_eq!(apply("", "ns A 192.0.2.1\n"), fails(existing));
    let alias = ZoneFault::CnameAndOther { owner: "ns.example.".parse().unwrap(), other: Rtype::A };
    assert_eq!(apply("", "ns CNAME a\n"), fails(ChangeFault::Zone(alias)));
}

#[test]
fn the_question_for_steps_has_the_version_that_is_here() {
    let rdata = &rows(&soa(7))[0].2;
    let mut out = Vec::new();
    push_transfer_query(&apex(), InboundRequest::Ixfr { serial: 7 }, rdata, ID, &mut out);
    let parsed = nonesuch_proto::message::Message::parse(&out).unwrap();
    let question = nonesuch_proto::message::Question { name: apex(), rtype: Rtype::IXFR, class: Class::IN };
    assert_eq!(parsed.questions, [question]);
    let [record] = &parsed.records[..] else { panic!("one record") };
    assert_eq!(
        (record.section, &record.owner, record.rtype),
        (nonesuch_proto::message::Section::Authority, &apex(), Rtype::SOA)
    );
    assert_eq!(&record.rdata, rdata);
}

/// Returns a version; the bits select records of a few names.
fn version(serial: u32, bits: u32) -> Contents {
    let mut text = format!("{}@ NS ns\n", soa(serial));
    for bit in 0..20 {
        if bits >> bit & 1 == 1 {
            let (owner, value) = (bit % 7, bit / 7);
            text.push_str(&format!("n{owner} TXT \"{value}\"\n"));
        }
    }
    zone(&text)
}

fn push_rows(contents: &Contents, skip_soa: bool, out: &mut Vec<Row>) {
    for node in contents.nodes() {
        for rrset in node.rrsets().filter(|rrset| !skip_soa || rrset.rtype() != Rtype::SOA) {
            out.extend(rrset.rdatas().map(|rdata| (node.name().to_name(), rrset.rtype(), rdata.to_vec())));
        }
    }
}

/// Returns the records of an incremental response through `versions`.
fn step_rows(versions: &[Contents]) -> Vec<Row> {
    let soa_row = |contents: &Contents| {
        let rdata = contents.apex_rrset(Rtype::SOA).unwrap().rdatas().next().unwrap().to_vec();
        (apex(), Rtype::SOA, rdata)
    };
    let last = soa_row(versions.last().unwrap());
    let mut out = vec![last.clone()];
    for pair in versions.windows(2) {
        let change = ChangeSet::between(&pair[0], &pair[1], |_| true);
        out.push(soa_row(&pair[0]));
        push_rows(change.removed(), true, &mut out);
        out.push(soa_row(&pair[1]));
        push_rows(change.added(), true, &mut out);
    }
    out.push(last);
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_steps_lead_to_the_last_version(all in proptest::collection::vec(any::<u32>(), 2..20), size in 1usize..9) {
        let versions: Vec<_> = all.iter().zip(1..).map(|(bits, serial)| version(serial, *bits)).collect();
        let rows = step_rows(&versions);
        let messages: Vec<_> = rows.chunks(size).map(|rows| message(Rtype::IXFR, true, rows)).collect();
        let TransferContent::Ixfr(steps) = read(IXFR, &messages).unwrap() else { panic!("steps") };
        prop_assert_eq!(steps.len(), versions.len() - 1);
        let (new, change) = apply_steps(&versions[0], &steps).unwrap();
        assert_same(&new, versions.last().unwrap());
        assert_same(&change.apply(&versions[0], Default::default()).unwrap(), &new);
        // Applying the steps one by one to the whole zone gives the same result.
        let mut slowly = versions[0].clone();
        for step in &steps {
            slowly = step.apply(&slowly, Default::default()).unwrap();
        }
        assert_same(&slowly, &new);
    }

    #[test]
    fn altered_answers_never_panic(bits in any::<u32>(), at in any::<prop::sample::Index>(), octet: u8, asked: bool) {
        let versions = [version(1, bits), version(2, !bits), version(3, bits >> 3)];
        let mut octets = message(Rtype::IXFR, true, &step_rows(&versions));
        let at = at.index(octets.len());
        octets[at] = octet;
        let asked = if asked { IXFR } else { InboundRequest::Axfr };
        if let Ok(TransferContent::Ixfr(steps)) = read(asked, &[octets]) {
            let _ = apply_steps(&versions[0], &steps);
        }
    }
}

/// Returns the message with another TTL in the record with this RDATA, which must be unique.
fn with_ttl(mut message: Vec<u8>, rdata: &[u8], ttl: u32) -> Vec<u8> {
    let place = message.windows(rdata.len()).rposition(|found| found == rdata).unwrap();
    message[place - 6..place - 2].copy_from_slice(&ttl.to_be_bytes());
    message
}

fn mixed(contents: &Contents) -> Vec<(Name, Rtype, u32)> {
    let rrsets = contents.nodes().flat_map(|node| node.rrsets().map(move |rrset| (node, rrset)));
    let rrsets = rrsets.filter(|(_, rrset)| rrset.has_mixed_ttls());
    rrsets.map(|(node, rrset)| (node.name().to_name(), rrset.rtype(), rrset.ttl())).collect()
}

/// Verification needs to know about different TTLs, because the zone then has only the lowest TTL
/// (RFC 2181 §5.2).
#[test]
fn records_with_different_ttls_are_known_in_whole_zones_and_in_steps() {
    let expected = [("many.example.".parse().unwrap(), Rtype::A, 30)];
    let text = format!("{}@ NS ns\nmany A 192.0.2.1\nmany A 192.0.2.2\n{}", soa(2), soa(2));
    let whole = with_ttl(message(Rtype::AXFR, true, &rows(&text)), &[192, 0, 2, 2], 30);
    let TransferContent::Axfr { contents, .. } = read(InboundRequest::Axfr, &[whole]).unwrap() else {
        panic!("whole")
    };
    assert_eq!(mixed(&contents), expected);
    let before = zone(&format!("{}@ NS ns\n", soa(1)));
    let step = format!("{}{}{}many A 192.0.2.1\nmany A 192.0.2.2\n{}", soa(2), soa(1), soa(2), soa(2));
    let step = with_ttl(message(Rtype::IXFR, true, &rows(&step)), &[192, 0, 2, 2], 30);
    let TransferContent::Ixfr(steps) = read(IXFR, &[step]).unwrap() else { panic!("steps") };
    assert_eq!(mixed(&apply_steps(&before, &steps).unwrap().0), expected);
}

/// The TTL of each record is not known any more, so the whole zone is needed.
#[test]
fn steps_that_change_a_part_of_an_rrset_of_different_ttls_do_not_fit() {
    let many = "many A 192.0.2.1\nmany A 192.0.2.2\nmany A 192.0.2.3\n";
    let text = format!("{}@ NS ns\n{many}{}", soa(1), soa(1));
    let whole = with_ttl(message(Rtype::AXFR, true, &rows(&text)), &[192, 0, 2, 2], 30);
    let TransferContent::Axfr { contents: old, .. } = read(InboundRequest::Axfr, &[whole]).unwrap() else {
        panic!("whole")
    };
    let apply = |old: &Contents, removed: &str, added: &str, ttl: u32| {
        let text = [soa(2), soa(1), removed.into(), soa(2), added.into(), soa(2)].concat();
        let step = with_ttl(message(Rtype::IXFR, true, &rows(&text)), &[192, 0, 2, 2], ttl);
        let TransferContent::Ixfr(steps) = read(IXFR, &[step]).unwrap() else { panic!("steps") };
        apply_steps(old, &steps).map(|(new, _)| mixed(&new))
    };
    let different =
        IxfrApplyError::DifferentTtls { owner: "many.example.".parse().unwrap(), rtype: Rtype::A };
    // The two remaining records have one TTL, which is not the lowest one.
    assert_eq!(apply(&old, "many A 192.0.2.2\n", "", 30), Err(different.clone()));
    // A change of the whole RRset is permitted.
    assert_eq!(apply(&old, many, "many A 192.0.2.7\n", 30), Ok(vec![]));
    // The TTLs differ at the primary, but not in the local version.
    let uniform = zone(&format!("{}@ NS ns\n{many}", soa(1)));
    assert_eq!(apply(&uniform, "many A 192.0.2.1\nmany A 192.0.2.2\n", "", 86_400), Err(different));
}

/// After a restart, RRsets with different TTLs are still known. Without record `.2`, the TTL of the
/// remaining records is 300, not 60.
#[test]
fn different_ttls_are_known_of_a_stored_version() {
    let text = format!("{}@ NS ns\nmany A 192.0.2.1\nmany A 192.0.2.2\n{}", soa(1), soa(1));
    let whole = with_ttl(message(Rtype::AXFR, true, &rows(&text)), &[192, 0, 2, 2], 30);
    let TransferContent::Axfr { contents, .. } = read(InboundRequest::Axfr, &[whole]).unwrap() else {
        panic!("whole")
    };
    let mut octets = Vec::new();
    nonesuch_zone::compiled::write(&contents, nonesuch_zone::Verification::Nothing, &mut octets).unwrap();
    let (stored, _) = nonesuch_zone::compiled::read(&octets).unwrap();
    let step = [soa(2), soa(1), "many A 192.0.2.2\n".into(), soa(2), soa(2)].concat();
    let step = with_ttl(message(Rtype::IXFR, true, &rows(&step)), &[192, 0, 2, 2], 30);
    let TransferContent::Ixfr(steps) = read(IXFR, &[step]).unwrap() else { panic!("steps") };
    let error = apply_steps(&stored, &steps).map(drop).unwrap_err();
    assert!(matches!(error, IxfrApplyError::DifferentTtls { .. }), "{error}");
}

/// Each step copies all records of the name that it changes, so many steps at a large name would
/// take hours.
#[test]
fn the_octets_that_steps_copy_are_bounded() {
    let mut text = format!("{}@ NS ns\n", soa(1));
    for number in 0..4000 {
        let data = format!("{number:08x}{}", "00".repeat(250));
        text.push_str(&format!("big TYPE{} \\# 254 {data}\n", 65_300 + number % 20));
    }
    let old = zone(&text);
    let apply = |last: u32| {
        let mut text = soa(last);
        for serial in 1..last {
            text.push_str(&format!("{}{}big A 192.0.2.{serial}\n", soa(serial), soa(serial + 1)));
        }
        let messages = [message(Rtype::IXFR, true, &rows(&(text + &soa(last))))];
        let TransferContent::Ixfr(steps) = read(IXFR, &messages).unwrap() else { panic!("steps") };
        assert_eq!(steps.len() as u32, last - 1);
        apply_steps(&old, &steps)
    };
    let (new, _) = apply(11).unwrap();
    assert_eq!(new.record_count(), old.record_count() + 10);
    let error = apply(151).unwrap_err();
    assert_eq!(error, IxfrApplyError::TooMuchCopied { octets: 64 << 20 });
}

/// A primary cannot make a secondary serve an RRset that fits into no message.
#[test]
fn an_rrset_that_fits_no_message_is_rejected_whole_and_in_steps() {
    let texts = |range: std::ops::Range<u32>| -> String {
        range.map(|number| format!("t TXT \"{number:05}{}\"\n", "x".repeat(239))).collect()
    };
    let is_too_large = |fault: &ZoneFault| {
        let ZoneFault::RrsetTooLarge { owner, rtype: Rtype::TXT, is_signed: false, .. } = fault else {
            return false;
        };
        owner.to_string() == "t.example."
    };
    let whole = [soa(3), "@ NS ns\n".into(), texts(0..300), soa(3)].concat();
    let messages: Vec<_> = rows(&whole).chunks(100).map(|rows| message(Rtype::AXFR, true, rows)).collect();
    let error = read(InboundRequest::Axfr, &messages).map(drop).unwrap_err();
    assert!(matches!(&error, InboundError::Zone(fault) if is_too_large(fault)), "{error:?}");
    let old = zone(&format!("{}@ NS ns\n{}", soa(1), texts(0..200)));
    let step = [soa(2), soa(1), soa(2), texts(200..300), soa(2)].concat();
    let messages: Vec<_> = rows(&step).chunks(100).map(|rows| message(Rtype::IXFR, true, rows)).collect();
    let TransferContent::Ixfr(steps) = read(IXFR, &messages).unwrap() else { panic!("steps") };
    let error = apply_steps(&old, &steps).map(drop).unwrap_err();
    let IxfrApplyError::Change(ChangeError { fault: ChangeFault::Zone(fault), .. }) = &error else {
        panic!("{error:?}")
    };
    assert!(is_too_large(fault), "{error:?}");
}
