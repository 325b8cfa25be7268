use super::*;
use crate::trust_anchors::tests::{ROOT_KEYS, ds, name};
use crate::trust_anchors::{AnchorRecord, ZoneAnchor};
use nonesuch_proto::rdata::RdataFault;
use nonesuch_proto::{NameRef, Rtype};
use proptest::prelude::*;

/// A DS record of an unknown digest type, which has no fixed length.
const DS: &str = "1 13 200 abcd";

/// A file with the form of `root-anchors.xml`.
const XML: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
<!-- A comment with <tags> & "quotes" -->
<TrustAnchor id="E9724F53-1851-4F86-85E5-F1392102940B" source="http://data.iana.org/root-anchors/root-anchors.xml">
<Zone>.</Zone>
<KeyDigest id="Kjqmt7v" validFrom="2010-07-15T00:00:00+00:00" validUntil="2019-01-11T00:00:00+00:00">
<KeyTag>19036</KeyTag>
<Algorithm>8</Algorithm>
<DigestType>2</DigestType>
<Digest>49AAC11D7B6F6446702E54A1607371607A1A41855200FD2CE1CDDE32F24E8FB5</Digest>
</KeyDigest>
<KeyDigest validFrom = '2017-02-02T00:00:00+00:00' id="Klajeyz">
<KeyTag>20326</KeyTag>
<Algorithm>8</Algorithm>
<DigestType> 2 </DigestType>
<Digest>
  E06D44B80B8F1D39A95C0B0D7C65D084
  58E880409BBC683457104237C7F8EC8D
</Digest>
<PublicKey>AwEAAa&#43;</PublicKey>
<Flags>257</Flags>
<Empty/>
</KeyDigest>
<KeyDigest id="Kmyv6jo" validFrom="2024-07-18T00:00:00Z">
<KeyTag>38696</KeyTag><Algorithm>8</Algorithm><DigestType>2</DigestType><Digest>683D2D0ACB8C9B712A1948B27F741219298D0A450D612C483AF444A4C0FB2B16</Digest>
</KeyDigest>
</TrustAnchor>
"#;

fn read_text(text: &str) -> Result<TrustAnchors, AnchorFileError> {
    read(text, None)
}

/// Returns the tags of the root zone's anchors.
fn root_tags(anchors: &TrustAnchors) -> Vec<u16> {
    anchors.closest(NameRef::ROOT).map(ZoneAnchor::tags).unwrap_or_default()
}

/// Returns the line and the fault of a record.
fn record_fault(text: &str) -> (u32, Rtype, RecordFault) {
    match read_text(text) {
        Err(AnchorFileError::Record { line, rtype, fault, .. }) => (line, rtype, fault),
        other => panic!("{text}: {other:?}"),
    }
}

/// Returns the line of a syntax fault and the fault.
fn syntax_fault(text: &str) -> (u32, SyntaxFault) {
    match read_text(text) {
        Err(AnchorFileError::Syntax { line, fault }) => (line, fault),
        other => panic!("{text}: {other:?}"),
    }
}

#[test]
fn ttl_class_and_final_dot_are_optional() {
    let expected = read_text(&format!("example. DS {DS}")).unwrap();
    assert_eq!(expected.closest(name("example.").view()).unwrap().records, [ds(DS)]);
    for text in [
        format!("EXAMPLE 3600 IN DS {DS}\n"),
        format!("example. in 1h ds {DS} ; comment"),
        format!("\r\n; comment\r\nexample.\tCLASS1\tTYPE43 {DS}\r\n"),
        format!("$TTL 60\n$ORIGIN .\nexample DS {DS}"),
        format!("$ORIGIN example.\n@ DS {DS}"),
        "\u{feff}example. DS ( 1 13 ; comment )\n\n 200 ab\n cd )\n".to_owned(),
        "example. DS \\# 6 0001 0dc8 abcd".to_owned(),
    ] {
        assert_eq!(read_text(&text).as_ref(), Ok(&expected), "{text}");
    }
}

#[test]
fn a_file_may_have_several_zones_and_records_without_owner() {
    let text = format!("b. DS {DS}\n  DS 2 13 200 ab\n\na.b. DS {DS}\nb. DS {DS}\n");
    let anchors = read_text(&text).unwrap();
    let zones: Vec<_> = anchors.iter().map(|zone| (zone.apex.to_string(), zone.tags())).collect();
    assert_eq!(zones, [("b.".to_owned(), vec![1, 2]), ("a.b.".to_owned(), vec![1])]);
}

#[test]
fn keys_of_debian_are_read_and_a_key_without_sep_flag_too() {
    assert_eq!(root_tags(&read_text(ROOT_KEYS).unwrap()), [20326, 38696]);
    let zsk = ROOT_KEYS.lines().next().unwrap().replace("257", "256");
    assert_eq!(root_tags(&read_text(&zsk).unwrap()), [20325]);
}

#[test]
fn keys_of_unbound_are_anchors_if_they_are_valid_or_missing() {
    let line = |index: usize, state: &str| {
        let key =
            ROOT_KEYS.lines().nth(index).unwrap().split(" ;").next().unwrap().replace("IN", "172800 IN");
        format!("{key} ;{{id = 1 (ksk), size = 2048b}} ;;state={state} ;;count=0 ;;lastchange=1 ;;Fri\n")
    };
    let head = "; autotrust trust anchor file\n;;id: . 1\n;;last_queried: 1 ;;Thu\n;;query_interval: 43200\n";
    let tags = |second: &str| {
        root_tags(&read_text(&format!("{head}{}{}", line(0, "2 [  VALID  ]"), line(1, second))).unwrap())
    };
    assert_eq!(tags("2 [  VALID  ]"), [20326, 38696]);
    assert_eq!(tags("3 [ MISSING ]"), [20326, 38696]);
    for state in ["0 [  START  ]", "1 [ ADDPEND ]", "4 [ REVOKED ]", "5 [ REMOVED ]", "22", ""] {
        assert_eq!(tags(state), [20326], "{state}");
    }
    let revoked = line(1, "4 [ REVOKED ]").replace("257", "385");
    assert_eq!(root_tags(&read_text(&format!("{}{revoked}", line(0, "2"))).unwrap()), [20326]);
    let all_revoked = format!("{head};;REVOKED\n; The zone has all keys revoked\n{}", line(0, "2"));
    assert_eq!(read_text(&all_revoked), Err(AnchorFileError::NoAnchor { records: 1 }));
}

#[test]
fn a_file_without_anchor_is_an_error() {
    for text in ["", "; nothing\n\n", "$TTL 60\n", "<TrustAnchor><Zone>.</Zone></TrustAnchor>"] {
        assert_eq!(read_text(text), Err(AnchorFileError::NoRecord), "{text}");
    }
}

#[test]
fn records_that_cannot_be_anchors_are_errors_with_line_and_reason() {
    let key = ROOT_KEYS.lines().next().unwrap();
    let changed = |flags: &str| record_fault(&format!("\n\n{}", key.replace("257 3", flags)));
    assert_eq!(changed("385 3"), (3, Rtype::DNSKEY, RecordFault::Revoked { tag: 20454 }));
    let (_, _, fault) = changed("1 3");
    assert!(matches!(fault, RecordFault::NotZoneKey { flags: 1, .. }), "{fault:?}");
    let (_, _, fault) = changed("257 2");
    assert!(matches!(fault, RecordFault::Protocol { protocol: 2, .. }), "{fault:?}");
    let (_, _, fault) = record_fault("a. DNSKEY 257 3 13 abcd");
    assert!(matches!(fault, RecordFault::Key { .. }), "{fault:?}");
    assert_eq!(record_fault("a. A 192.0.2.1"), (1, Rtype::A, RecordFault::OtherType));
    for (digest_type, digest, lengths) in [(1, "ab", (20, 1)), (2, "abcd", (32, 2)), (4, "ab", (48, 1))] {
        let (_, _, fault) = record_fault(&format!("a. DS 7 13 {digest_type} {digest}"));
        let RecordFault::DigestLength { tag: 7, expected, found, .. } = fault else { panic!("{fault:?}") };
        assert_eq!((expected, found), lengths);
    }
    for text in ["a. DS 1 13 2", "a. DS", "a. DNSKEY 257 3"] {
        let (_, _, fault) = record_fault(text);
        assert_eq!(fault, RecordFault::Rdata(RdataFault::Missing), "{text}");
    }
}

#[test]
fn unknown_algorithms_and_digest_types_are_accepted() {
    let anchors = read_text("a. DNSKEY 257 3 200 abcd\na. DS 1 200 200 ab").unwrap();
    let records = &anchors.closest(name("a.").view()).unwrap().records;
    assert_eq!(*records, [AnchorRecord::Dnskey(vec![1, 1, 3, 200, 0x69, 0xb7, 0x1d]), ds("1 200 200 ab")]);
}

#[test]
fn syntax_faults_have_their_line() {
    for (text, expected) in [
        ("\na. DS ( 1 13 200\nab", (2, SyntaxFault::OpenParenthesis)),
        ("a. DS (\n(", (2, SyntaxFault::OpenParenthesis)),
        ("a. DS 1 13 200 ab )", (1, SyntaxFault::ClosingParenthesis)),
        ("\n\n DS 1 13 200 ab", (3, SyntaxFault::NoOwner)),
        ("a. 60 IN", (1, SyntaxFault::NoType)),
        ("a. IN IN DS 1 13 200 ab", (1, SyntaxFault::NoType)),
        ("trust-anchors {", (1, SyntaxFault::NoType)),
        ("a. CH DS 1 13 200 ab", (1, SyntaxFault::Class)),
        ("$INCLUDE /etc/passwd", (1, SyntaxFault::Directive)),
        ("$ORIGIN", (1, SyntaxFault::Origin)),
        ("$ORIGIN a..b", (1, SyntaxFault::Origin)),
    ] {
        assert_eq!(syntax_fault(text), expected, "{text}");
    }
    assert!(matches!(syntax_fault("a..b DS 1 13 200 ab"), (1, SyntaxFault::Owner(_))));
}

#[test]
fn a_file_of_iana_has_the_digests_that_are_valid_at_the_time() {
    assert_eq!(root_tags(&read_text(XML).unwrap()), [19036, 20326, 38696]);
    let tags = |now| root_tags(&read(XML, Some(now)).unwrap());
    // 2010-07-15, 2017-02-02, 2019-01-11 and 2024-07-18, each at midnight.
    assert_eq!(read(XML, Some(1_279_151_999)), Err(AnchorFileError::NoAnchor { records: 3 }));
    assert_eq!(tags(1_279_152_000), [19036]);
    assert_eq!(tags(1_485_993_600), [19036, 20326]);
    assert_eq!(tags(1_547_164_800), [19036, 20326]);
    assert_eq!(tags(1_547_164_801), [20326]);
    let both = read(XML, Some(1_800_000_000)).unwrap();
    assert_eq!(both, TrustAnchors::iana());
}

#[test]
fn faults_of_xml_have_their_line() {
    let digest = "<KeyTag>1</KeyTag><Algorithm>13</Algorithm><DigestType>200</DigestType><Digest>ab</Digest>";
    let file = |inner: &str| format!("<TrustAnchor><Zone>a</Zone>\n{inner}\n</TrustAnchor>");
    assert!(read_text(&file(&format!("<KeyDigest>{digest}</KeyDigest>"))).is_ok());
    let missing = |parent, element| SyntaxFault::MissingElement { parent, element };
    for (text, expected) in [
        (file("<KeyDigest/>"), (2, missing("KeyDigest", "KeyTag"))),
        (
            file(&format!("<KeyDigest>{digest}{digest}</KeyDigest>")),
            (2, SyntaxFault::SecondElement("KeyTag")),
        ),
        (file("<Zone>b</Zone>"), (2, SyntaxFault::SecondElement("Zone"))),
        (file("<KeyDigest validFrom=\"today\"/>"), (2, SyntaxFault::Time("validFrom"))),
        ("<!DOCTYPE a>".to_owned(), (1, SyntaxFault::XmlDeclaration)),
        ("<html></html>".to_owned(), (1, SyntaxFault::XmlRoot)),
        ("<TrustAnchor/>\n<TrustAnchor/>".to_owned(), (2, SyntaxFault::XmlRoot)),
        ("<TrustAnchor/>".to_owned(), (1, missing("TrustAnchor", "Zone"))),
    ] {
        assert_eq!(syntax_fault(&text), expected, "{text}");
    }
    for text in [
        "<TrustAnchor>",
        "<TrustAnchor",
        "<TrustAnchor a>",
        "<TrustAnchor a=b>",
        "<TrustAnchor a=\"b>",
        "<TrustAnchor></Zone></TrustAnchor>",
        "</TrustAnchor>",
        "<",
        "< a>",
        "<!-- comment",
        "<?xml",
        "<TrustAnchor><Zone>&amp;</Zone></TrustAnchor>",
        &format!("<TrustAnchor>{}", "<a>".repeat(100)),
        &format!("<TrustAnchor {}>", "a='' ".repeat(100)),
    ] {
        assert!(matches!(syntax_fault(text), (1, SyntaxFault::Xml(_))), "{text}");
    }
    let zone = "<TrustAnchor><Zone>a..b</Zone></TrustAnchor>";
    assert!(matches!(syntax_fault(zone), (1, SyntaxFault::Zone(_))));
    let number = file(
        "<KeyDigest><KeyTag>99999</KeyTag><Algorithm>1</Algorithm><DigestType>2</DigestType><Digest>ab</Digest></KeyDigest>",
    );
    let (line, _, fault) = record_fault(&number);
    assert_eq!((line, fault), (2, RecordFault::Rdata(RdataFault::Number(16))));
}

#[test]
fn the_size_of_a_file_is_limited() {
    assert_eq!(read_text(&" ".repeat(MAX_FILE_OCTETS + 1)), Err(AnchorFileError::TooLarge));
    let records = |count: usize| (0..count).map(|i| format!("a. DS {i} 13 200 ab\n")).collect::<String>();
    assert!(read_text(&records(MAX_FILE_RECORDS)).is_ok());
    let line = MAX_FILE_RECORDS as u32 + 1;
    assert_eq!(read_text(&records(MAX_FILE_RECORDS + 1)), Err(AnchorFileError::TooManyRecords { line }));
}

proptest! {
    #[test]
    fn any_text_is_read_or_rejected(text in any::<String>()) {
        let _ = read_text(&text);
    }

    #[test]
    fn any_text_of_plausible_pieces_is_read_or_rejected(pieces in prop::collection::vec(
        prop::sample::select(vec![
            "a. ", "DS ", "DNSKEY ", "1 13 200 ab", "257 3 200 abcd", "\n", " ", "(", ")", ";", ";;state=2", "\\", "$ORIGIN ",
            "<", ">", "/>", "</", "<TrustAnchor>", "</TrustAnchor>", "<Zone>", "</Zone>", "<KeyDigest ", "validFrom=", "\"",
            "<!--", "-->", "<?", "?>", "é",
        ]), 0..40)) {
        let _ = read(&pieces.concat(), Some(1_800_000_000));
    }

    #[test]
    fn records_are_read_unchanged(tags in prop::collection::btree_set(any::<u16>(), 1..20), digest: [u8; 32]) {
        use std::fmt::Write as _;
        let hex: String = digest.iter().map(|octet| format!("{octet:02x}")).collect();
        let (mut text, mut expected) = (String::new(), TrustAnchors::default());
        for tag in tags {
            let (apex, rdata) = (format!("z{}.test.", tag % 3), format!("{tag} 13 2 {hex}"));
            writeln!(text, "{apex} 60 IN DS {rdata}").unwrap();
            expected.insert(name(&apex).view(), ds(&rdata));
        }
        prop_assert_eq!(read_text(&text), Ok(expected));
    }
}
