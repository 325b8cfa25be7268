//! Tests that read, write and compile zones from the text of zone files.

use crate::read::{ReadError, ReadFault, read_text};
use crate::write::write_zone;
use crate::{Contents, Image, NameStatus, Warning, ZoneFault, name_statuses};
use nonesuch_proto::message::Message;
use nonesuch_proto::rdata::RdataFault;
use nonesuch_proto::{Class, Name, NameError, NameRef, Rtype};
use proptest::prelude::*;
use std::path::Path;

const HEAD: &str = "$ORIGIN example.\n$TTL 3600\n@ SOA ns hostmaster 1 2 3 4 300\n@ NS ns\nns A 192.0.2.1\n";

fn read(text: &str) -> Result<crate::ParsedZone, ReadError> {
    read_text(text.as_bytes(), Path::new("zone"), Some(&"example.".parse().unwrap()))
}

fn contents(rest: &str) -> Contents {
    read(&format!("{HEAD}{rest}")).unwrap().contents
}

/// Returns an error in the file `zone`.
fn error(line: u32, column: u32, fault: ReadFault) -> ReadError {
    ReadError { file: "zone".into(), line, column, fault }
}

/// Checks that the zone has this error. A [`ReadFault`] can contain an error of the system, so the
/// errors are compared in the format for debugging.
#[track_caller]
fn expect_error(text: &str, expected: &ReadError) {
    assert_eq!(format!("{:?}", read(text).unwrap_err()), format!("{expected:?}"), "{text:?}");
}

fn written(contents: &Contents) -> String {
    let mut text = Vec::new();
    write_zone(contents, &mut text).unwrap();
    String::from_utf8(text).unwrap()
}

#[test]
fn directives_blanks_parentheses_and_comments() {
    let zone = contents(
        "; a comment\nwww 1h IN A 192.0.2.2 ; another\n  IN 60 AAAA ( 2001:db8::1 ; inside\n )\n\
         $ORIGIN sub.example.\n$TTL 1d\na TXT \"b ; c\" d\n@ MX 10 a\n",
    );
    let text = written(&zone);
    for line in [
        "www.example.\t3600\tIN\tA\t192.0.2.2",
        "www.example.\t60\tIN\tAAAA\t2001:db8::1",
        "a.sub.example.\t86400\tIN\tTXT\t\"b ; c\" \"d\"",
        "sub.example.\t86400\tIN\tMX\t10 a.sub.example.",
    ] {
        assert!(text.lines().any(|other| other == line), "{line} not in\n{text}");
    }
}

#[test]
fn faults_name_file_line_and_column() {
    let name = |text: &str| -> Name { text.parse().unwrap() };
    let of_a = |fault| ReadFault::Rdata { rtype: Rtype::A, fault };
    let token = |text: &str| ReadFault::UnknownToken(text.to_owned());
    let long_ttl = |text: &str| ReadFault::TtlTooLarge(text.to_owned());
    let second_soa = |owner: &str| ReadFault::Zone(ZoneFault::SecondSoa(name(owner)));
    let outside = ZoneFault::OutOfZone { owner: name("www.other."), apex: name("example.") };
    let alias = ZoneFault::CnameAndOther { owner: name("w.example."), other: Rtype::A };
    let several = |rtype| ReadFault::Zone(ZoneFault::NotSingleton { owner: name("w.example."), rtype });
    let cases = [
        ("www A 192.0.2\n", 6, 7, of_a(RdataFault::Address("IPv4"))),
        ("www A\n", 6, 5, of_a(RdataFault::Missing)),
        ("www A 192.0.2.1 x\n", 6, 17, of_a(RdataFault::TrailingToken)),
        ("www TXT \"a\n", 6, 9, ReadFault::UnclosedQuote),
        ("www TXT (a\n", 6, 9, ReadFault::UnclosedParenthesis),
        ("www TXT a )\n", 6, 11, ReadFault::StrayParenthesis),
        ("www TXT ((a))\n", 6, 10, ReadFault::NestedParenthesis),
        ("www FOO a\n", 6, 5, token("FOO")),
        ("www CH TXT a\n", 6, 5, ReadFault::Class(Class::CH)),
        ("www IN CH TXT a\n", 6, 8, ReadFault::Class(Class::CH)),
        ("www IN IN A 192.0.2.1\n", 6, 8, ReadFault::RepeatedClass),
        ("www ANY a\n", 6, 5, ReadFault::MetaType("ANY".parse().unwrap())),
        ("www AXFR a\n", 6, 5, ReadFault::MetaType(Rtype::AXFR)),
        ("www\n", 6, 1, ReadFault::NoType),
        ("a..b A 192.0.2.1\n", 6, 1, ReadFault::Owner(NameError::EmptyLabel)),
        ("$ORIGIN a..b\n", 6, 9, ReadFault::Origin(NameError::EmptyLabel)),
        ("$INCLUDE file a..b\n", 6, 15, ReadFault::Origin(NameError::EmptyLabel)),
        ("$FOO\n", 6, 1, ReadFault::UnknownDirective("$FOO".to_owned())),
        ("$TTL x\n", 6, 6, ReadFault::Directive("$TTL")),
        ("$TTL 2147483648\n", 6, 6, long_ttl("2147483648")),
        ("www 2147483648 A 192.0.2.1\n", 6, 5, long_ttl("2147483648")),
        ("www 9999w A 192.0.2.1\n", 6, 5, long_ttl("9999w")),
        ("www 1hh A 192.0.2.1\n", 6, 5, token("1hh")),
        ("www 192.0.2.1\n", 6, 5, token("192.0.2.1")),
        ("@ SOA ns hostmaster 2 2 3 4 5\n", 6, 1, second_soa("example.")),
        ("www SOA ns hostmaster 2 2 3 4 5\n", 6, 1, second_soa("www.example.")),
        ("www.other. A 192.0.2.1\n", 6, 1, ReadFault::Zone(outside)),
        ("w CNAME x\nw A 192.0.2.1\n", 7, 1, ReadFault::Zone(alias)),
        ("w CNAME x\nw CNAME y\n", 7, 1, several(Rtype::CNAME)),
        ("w DNAME x\nw DNAME y\n", 7, 1, several(Rtype::DNAME)),
    ];
    for (text, line, column, fault) in cases {
        expect_error(&format!("{HEAD}{text}"), &error(line, column, fault));
    }
    let no_soa = ReadFault::Zone(ZoneFault::NoSoa(name("example.")));
    expect_error("@ 60 NS ns\n", &error(0, 0, no_soa));
    let other = ReadFault::Zone(ZoneFault::WrongOrigin { found: name("a."), origin: name("example.") });
    expect_error("$ORIGIN a.\n@ 60 SOA ns h 1 2 3 4 5\n", &error(2, 1, other));
    expect_error(" A 192.0.2.1\n", &error(1, 2, ReadFault::NoOwner));
    expect_error("www A 192.0.2.1\n", &error(1, 1, ReadFault::NoTtl));
    for empty in ["", "; nothing\n\n", "$TTL 60\n"] {
        expect_error(empty, &error(0, 0, ReadFault::Zone(ZoneFault::Empty)));
    }
    let included = read(&format!("{HEAD}$INCLUDE missing\n")).unwrap_err();
    let missing = crate::read::read_file(Path::new("/nonexistent/zone"), None).unwrap_err();
    for (error, path) in [(included, "missing"), (missing, "/nonexistent/zone")] {
        assert_eq!((error.file.as_path(), error.line), (Path::new(path), 0));
        assert!(matches!(error.fault, ReadFault::Io(_)), "{error:?}");
    }
    for (line, column, position) in [(0, 0, "zone"), (7, 0, "zone:7"), (6, 5, "zone:6:5")] {
        let text = error(line, column, ReadFault::NoType).to_string();
        assert_eq!(text, format!("{position}: {}", ReadFault::NoType));
    }
}

#[test]
fn a_file_that_includes_itself_ends() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("zone");
    std::fs::write(&path, format!("{HEAD}$INCLUDE zone\n")).unwrap();
    let error = crate::read::read_file(&path, None).unwrap_err();
    assert!(matches!(error, ReadError { line: 6, fault: ReadFault::IncludeDepth, .. }), "{error:?}");
}

#[test]
fn included_files_keep_the_origin_of_the_including_one() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("sub"), "$ORIGIN elsewhere.example.\na A 192.0.2.9\n").unwrap();
    let path = dir.path().join("zone");
    std::fs::write(&path, format!("{HEAD}$INCLUDE sub s.example.\nb A 192.0.2.8\n")).unwrap();
    let text = written(&crate::read::read_file(&path, None).unwrap().contents);
    assert!(text.contains("a.elsewhere.example.\t") && text.contains("\nb.example.\t"), "{text}");
}

#[test]
fn duplicates_are_removed_and_mixed_ttls_cause_a_warning() {
    let reading = read(&format!("{HEAD}w 60 MX 1 A\nw 30 MX 2 b\nw 60 MX 1 a\n")).unwrap();
    let node = reading.contents.find("w.example.".parse::<Name>().unwrap().view()).unwrap();
    let mail = node.rrset(Rtype::MX).unwrap();
    assert_eq!((mail.count(), mail.ttl(), mail.has_mixed_ttls()), (2, 30, true));
    assert!(reading.warnings.contains(&Warning::Duplicates { count: 1 }), "{:?}", reading.warnings);
    assert!(reading.warnings.iter().any(|w| matches!(w, Warning::MixedTtl { rtype: Rtype::MX, .. })));
}

/// RRSIG records form RRsets by the covered type. A duplicate record is one record.
#[test]
fn only_ttls_within_one_rrset_count_as_mixed() {
    let signature = |covered: &str, ttl: u32, tag: u16| {
        format!("w {ttl} RRSIG {covered} 13 2 60 20300101000000 20200101000000 {tag} example. AAAA\n")
    };
    let text = format!(
        "{HEAD}w 60 A 192.0.2.1\nw 30 TXT x\nd 60 A 192.0.2.1\nd 30 A 192.0.2.1\n{}{}{}",
        signature("A", 60, 1),
        signature("TXT", 30, 1),
        signature("TXT", 60, 2),
    );
    let contents = read(&text).unwrap().contents;
    let mixed: Vec<_> = contents
        .nodes()
        .flat_map(|node| node.rrsets())
        .filter(|rrset| rrset.has_mixed_ttls())
        .map(|rrset| (rrset.rtype(), rrset.covered(), rrset.ttl()))
        .collect();
    assert_eq!(mixed, [(Rtype::RRSIG, Rtype::TXT, 30)]);
}

#[test]
fn changes_keep_the_mark_for_mixed_ttls() {
    let old = contents("w 60 A 192.0.2.1\nw 30 A 192.0.2.2\nw 60 A 192.0.2.3\nx A 192.0.2.1\n");
    let is_mixed = |contents: &Contents| {
        let node = contents.find("w.example.".parse::<Name>().unwrap().view()).unwrap();
        node.rrset(Rtype::A).unwrap().has_mixed_ttls()
    };
    let with = |records: &str| contents(&format!("{records}x A 192.0.2.1\n"));
    let changed = |new: &Contents| {
        let change = crate::ChangeSet::between(&old, new, |_| true);
        change.apply(&old, crate::change::SerialRule::Any).unwrap()
    };
    assert!(is_mixed(&old));
    // In the first change a record remains, in the second a single record remains, in the third all
    // records are replaced.
    assert!(is_mixed(&changed(&with("w 30 A 192.0.2.1\nw 30 A 192.0.2.2\n"))));
    assert!(!is_mixed(&changed(&with("w 30 A 192.0.2.2\n"))));
    assert!(!is_mixed(&changed(&with("w 20 A 192.0.2.1\nw 20 A 192.0.2.2\n"))));
}

#[test]
fn statuses_of_names() {
    let zone = contents(
        "cut NS a.cut\ncut DS 1 13 2 00\na.cut A 192.0.2.3\nb.a.cut TXT x\nd DNAME x\ne.d TXT occluded\ncutter TXT x\n",
    );
    let expected = [
        ("example.", NameStatus::Authoritative),
        ("cut.example.", NameStatus::Delegation),
        ("a.cut.example.", NameStatus::BelowCut),
        ("b.a.cut.example.", NameStatus::BelowCut),
        ("cutter.example.", NameStatus::Authoritative),
        ("d.example.", NameStatus::Authoritative),
        ("e.d.example.", NameStatus::BelowDname),
        ("ns.example.", NameStatus::Authoritative),
    ];
    let found: Vec<(String, NameStatus)> = zone
        .nodes()
        .zip(name_statuses(&zone))
        .map(|(node, status)| (node.name().to_string(), status))
        .collect();
    let expected: Vec<(String, NameStatus)> = expected.map(|(name, status)| (name.to_owned(), status)).into();
    assert_eq!(found, expected);
}

#[test]
fn expanded_templates_are_the_records_of_the_zone() {
    let zone = contents(
        "a MX 1 mail.a\na MX 2 mail.b.a\na MX 3 example.\nx.y SRV 0 0 1 ns\n*.w MX 1 w\ncut NS ns.cut\ncut NS ns\ncut NS ns.other.\n\
         ns.cut A 192.0.2.7\nns.cut AAAA 2001:db8::7\na NSEC cut A MX\na RRSIG NSEC 13 2 60 1 2 3 example. AAAA\n",
    );
    let image = Image::compile(&zone).unwrap();
    for node in zone.nodes() {
        let compiled = image.find_exact(node.name().to_canonical().view());
        // Glue below a zone cut has no node in the image.
        assert_eq!(compiled.is_none(), node.name().to_string() == "ns.cut.example.", "{}", node.name());
        let Some(compiled) = compiled else { continue };
        for template in compiled.templates() {
            let rrset = node.rrset(template.rtype()).unwrap();
            let expanded = template.expand();
            let own: Vec<&[u8]> =
                expanded.iter().filter(|r| r.rtype == rrset.rtype()).map(|r| r.rdata.as_slice()).collect();
            assert_eq!(own, rrset.rdatas().collect::<Vec<_>>(), "{} {}", node.name(), rrset.rtype());
            assert!(expanded.iter().all(|record| record.owner.view() == node.name()), "{expanded:?}");
        }
    }
    let cut = image.find_exact("cut.example.".parse::<Name>().unwrap().view()).unwrap();
    let glue: Vec<(String, bool)> =
        cut.glue().map(|glue| (glue.addresses.expand()[0].owner.to_string(), glue.is_required)).collect();
    let expected = [("ns.cut.example.", true), ("ns.cut.example.", true), ("ns.example.", false)];
    assert_eq!(glue, expected.map(|(name, required)| (name.to_owned(), required)));
    assert!(matches!(
        image.find("y.example.".parse::<Name>().unwrap().view()),
        crate::image::Lookup::Exact(node) if node.templates().count() == 0
    ));
}

#[test]
fn names_beyond_the_maximum_pointer_offset_are_written_in_full() {
    let many: String = (0..2000).map(|n| format!("big MX {n} host{n}\n")).collect();
    let zone = contents(&many);
    let image = Image::compile(&zone).unwrap();
    let name: Name = "big.example.".parse().unwrap();
    let template = image.find_exact(name.view()).unwrap().template(Rtype::MX).unwrap();
    // After 20,000 octets of other data, no compression pointer can refer to the names of the
    // template.
    let mut out = vec![0; 12];
    out[5] = 1;
    out.extend_from_slice(name.wire());
    out.extend_from_slice(&[0, 15, 0, 1]);
    out.extend_from_slice(b"\0\xff\x00\x00\x01\x00\x00\x00\x00\x4e\x20");
    out.extend_from_slice(&[0; 20_000]);
    let position = crate::image::Position {
        question_octets: name.wire().len(),
        owner: crate::image::OwnerForm::AsRendered,
    };
    let count = template.append(position, false, usize::MAX, &mut out).expect("room");
    out[6..8].copy_from_slice(&(count + 1).to_be_bytes());
    let message = Message::parse(&out).unwrap();
    let rrset = zone.find(name.view()).unwrap().rrset(Rtype::MX).unwrap();
    let read: Vec<&[u8]> = message.records[1..].iter().map(|record| record.rdata.as_slice()).collect();
    assert_eq!(read, rrset.rdatas().collect::<Vec<_>>());
    assert!(message.records[1..].iter().all(|record| record.owner == name));
}

fn any_zone() -> impl Strategy<Value = String> {
    let label = prop_oneof![Just("a"), Just("b"), Just("*"), Just("\\000"), Just("A")];
    let owner = proptest::collection::vec(label, 0..4)
        .prop_map(|labels| if labels.is_empty() { "@".to_owned() } else { labels.join(".") });
    let data = prop_oneof![
        Just("A 192.0.2.1"),
        Just("A 192.0.2.2"),
        Just("MX 1 a"),
        Just("MX 1 A"),
        Just("TXT \"\\000\" b"),
        Just("TYPE700 \\# 2 0102"),
        Just("SRV 1 2 3 b.a"),
        Just("NAPTR 1 2 \"\" \"x\" \"\" ."),
    ];
    proptest::collection::vec((owner, data), 0..20)
        .prop_map(|records| records.iter().map(|(owner, data)| format!("{owner} {data}\n")).collect())
}

proptest! {
    #[test]
    fn a_written_zone_is_read_back_unchanged(records in any_zone()) {
        let zone = contents(&records);
        let text = written(&zone);
        let again = read(&text).unwrap().contents;
        prop_assert_eq!(written(&again), text);
        prop_assert!(zone.nodes().zip(zone.nodes().skip(1)).all(|(a, b)| a.name() < b.name()));
    }

    #[test]
    fn every_name_is_found_in_the_image(records in any_zone()) {
        let zone = contents(&records);
        let image = Image::compile(&zone).unwrap();
        for node in zone.nodes() {
            let mut name: Option<NameRef<'_>> = Some(node.name());
            while let Some(at) = name.filter(|at| at.is_at_or_below(zone.apex().view())) {
                prop_assert!(image.find_exact(at.to_canonical().view()).is_some());
                name = at.parent();
            }
        }
    }

    #[test]
    fn arbitrary_text_never_panics(text in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = read_text(&text, Path::new("zone"), None);
    }
}

/// A search from any node at or before the name finds the same node or index as a search from the
/// first node, in any letter case, also for a name that does not exist.
#[test]
fn find_from_equals_find() {
    let names: String = (0..40).map(|number| format!("n{number:02} A 192.0.2.1\n")).collect();
    let zone = contents(&names);
    let mut names: Vec<Name> = Vec::new();
    for number in 0..41 {
        for text in [
            format!("n{number:02}.example."),
            format!("N{number:02}.EXAMPLE."),
            format!("n{number:02}a.example."),
        ] {
            names.push(text.parse().unwrap());
        }
    }
    for name in &names {
        let found = zone.find(name.view()).map(|node| node.index());
        let index = found.unwrap_or_else(|index| index);
        for from in 0..=index {
            assert_eq!(zone.find_from(from, name.view()).map(|node| node.index()), found, "{name} {from}");
        }
    }
}
