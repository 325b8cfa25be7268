//! Tests that reading in blocks gives the same result as sequential reading.

use super::block::{AssumedState, read_speculatively};
use super::reader::Reader;
use super::source::{Block, BlockSplitter, Source};
use super::*;
use crate::builder::{RecordBuffer, ZoneFault};
use crate::write::write_zone;
use nonesuch_proto::NameError;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::path::Path;

const HEAD: &str = "$ORIGIN example.\n$TTL 3600\n@ SOA ns hostmaster 1 2 3 4 300\n@ NS ns\nns A 192.0.2.1\n";

/// Returns the complete result of reading: the zone file, the apex and the warnings, or the error.
fn outcome(read: Result<ParsedZone, ReadError>) -> String {
    let parsed = match read {
        Ok(parsed) => parsed,
        Err(error) => return error.to_string(),
    };
    let mut text = Vec::new();
    write_zone(&parsed.contents, &mut text).unwrap();
    let zone = String::from_utf8(text).unwrap();
    format!("{zone}{} {:?}", parsed.contents.apex(), parsed.warnings)
}

fn in_blocks(text: &[u8], octets: usize) -> String {
    outcome(read_text_in_blocks(text, Path::new("zone"), None, octets))
}

/// Same as [`in_blocks`], from a file.
fn file_in_blocks(text: &[u8], octets: usize) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("zone");
    std::fs::write(&path, text).unwrap();
    let mut reader = Reader::new(&path, octets);
    let read = reader.read_file(&path, EntryState::new(None)).and_then(|_| finish(reader, None));
    outcome(read).replace(path.to_str().unwrap(), "zone")
}

#[test]
fn entries_may_extend_over_many_blocks() {
    let digits: String = (0..200).map(|n| format!("{n:02x}\n")).collect();
    for rest in [
        format!(
            "k DNSKEY 257 3 13 (\n{})\nz A 192.0.2.9\n",
            digits.replace('\n', "==\n").replace("==\n", "AA\n")
        ),
        format!("t TXT (\n{digits}) ; end\nz A 192.0.2.9\n"),
        format!("t TXT (\n{digits}\nz A 192.0.2.9\n"),
        "a\\\nb TXT c\\\nd \"e\\\nf\"\nz A 192.0.2\n".to_owned(),
        format!("m{}", "  TXT x\n".repeat(300)),
    ] {
        let text = format!("{HEAD}{rest}");
        let expected = in_blocks(text.as_bytes(), usize::MAX);
        for octets in [1, 7, 64, 300] {
            assert_eq!(in_blocks(text.as_bytes(), octets), expected, "{octets}: {rest}");
            assert_eq!(file_in_blocks(text.as_bytes(), octets), expected, "{octets}: {rest}");
        }
    }
}

#[test]
fn errors_have_line_and_column_in_the_file() {
    for (text, line, column, fault) in [
        ("\n\na TXT (\nb\nc\nd\n", 3, 7, ReadFault::UnclosedParenthesis),
        ("\u{feff}a TXT (\nb\nc\nd\n", 1, 10, ReadFault::UnclosedParenthesis),
        ("\u{feff}\na TXT (\nb\nc\nd\n", 2, 7, ReadFault::UnclosedParenthesis),
        ("a. 5 TXT b\\\nc\nd. FOO\n", 3, 4, ReadFault::UnknownToken("FOO".to_owned())),
        ("a 5 TXT \"b\\\nc\"\nd.\nd. FOO\n", 1, 1, ReadFault::Owner(NameError::NoOrigin)),
    ] {
        let expected = ReadError { file: "zone".into(), line, column, fault };
        for octets in (1..20).chain([usize::MAX]) {
            let error =
                read_text_in_blocks(text.as_bytes(), Path::new("zone"), None, octets).expect_err("a fault");
            assert_eq!(format!("{error:?}"), format!("{expected:?}"), "{octets}: {text:?}");
        }
    }
}

#[test]
fn directives_and_ttls_apply_to_later_blocks() {
    let hosts: String = (0..100).map(|n| format!("h{n} A 192.0.2.{n}\n")).collect();
    let soa = "@ SOA ns h 1 2 3 4 300\n@ NS ns\n";
    for (text, line) in [
        (format!("$ORIGIN example.\n$TTL 60\n{soa}{hosts}"), "h99.example.\t60\tIN\tA\t192.0.2.99"),
        (format!("$ORIGIN example.\n{soa}{hosts}"), "h99.example.\t300\tIN\tA\t192.0.2.99"),
        (format!("$ORIGIN example.\n{soa}x 7 A 192.0.2.1\n{hosts}"), "h99.example.\t7\tIN\tA\t192.0.2.99"),
        (
            format!("$ORIGIN eXample.\n{soa}$ORIGIN S.example.\n{hosts}"),
            "h99.S.example.\t300\tIN\tA\t192.0.2.99",
        ),
        (
            format!("$ORIGIN example.\n{soa}$ORIGIN s\n$TTL 5\n{hosts}"),
            "h99.s.example.\t5\tIN\tA\t192.0.2.99",
        ),
    ] {
        for octets in [1, 50, 500, usize::MAX] {
            let zone = in_blocks(text.as_bytes(), octets);
            assert!(zone.lines().any(|other| other == line), "{octets}: {line} not in\n{zone}");
        }
    }
}

#[test]
fn assumptions_are_correct_for_usual_text() {
    let hosts: String = (0..2000).map(|n| format!("h{n} A 192.0.2.1\n  A 192.0.2.2\n")).collect();
    let relative: String =
        (0..2000).map(|n| format!("$ORIGIN z{n}.example.\nns A 192.0.2.1\n$ORIGIN example.\n")).collect();
    for rest in [hosts, relative] {
        let text = format!("{HEAD}{rest}");
        let mut splitter = BlockSplitter::new(Source::Text(text.as_bytes()), 1000);
        let blocks = splitter.take_blocks(usize::MAX);
        assert!(blocks.len() > 20);
        let mut state = EntryState::new(None);
        let mut assumed = AssumedState::from_state(&state);
        let mut wrong = 0;
        for block in &blocks {
            let speculative = read_speculatively(assumed.clone(), block, &mut RecordBuffer::default());
            assumed.advance_past(block);
            wrong +=
                usize::from(speculative.and_then(|speculative| speculative.accept(&mut state)).is_none());
        }
        assert_eq!(wrong, 0, "of {} blocks", blocks.len());
    }
}

#[test]
fn blocks_begin_where_entries_may_begin() {
    let text = format!("{HEAD}a TXT ( b\n c\nd )\n\n; e\nf A 192.0.2.1\n");
    for octets in 1..text.len() {
        let blocks: Vec<Block<'_>> =
            BlockSplitter::new(Source::Text(text.as_bytes()), octets).take_blocks(usize::MAX);
        assert_eq!(blocks.iter().map(|block| &block.text[..]).collect::<Vec<_>>().concat(), text.as_bytes());
        let (first, last) = (blocks.first().unwrap(), blocks.last().unwrap());
        assert!(first.is_first && last.is_last);
        assert!(blocks[1..].iter().all(|block| block.text[0].is_ascii_graphic() && !block.is_first));
    }
}

#[cfg(unix)]
#[test]
fn the_first_fault_in_the_text_is_reported_before_a_later_system_error() {
    let dir = tempfile::tempdir().unwrap();
    let error = read_file(dir.path(), None).unwrap_err();
    assert!(matches!(error.fault, ReadFault::Io(_)) && error.line == 0, "{error}");
    std::fs::write(dir.path().join("zone"), format!("{HEAD}$INCLUDE .\nw FOO\n")).unwrap();
    let error = read_file(&dir.path().join("zone"), None).unwrap_err();
    assert!(matches!(error.fault, ReadFault::Io(_)) && error.line == 0, "{error}");
    std::fs::write(dir.path().join("zone"), format!("{HEAD}w FOO\n$INCLUDE .\n")).unwrap();
    let error = read_file(&dir.path().join("zone"), None).unwrap_err();
    assert_eq!((error.file, error.line, error.column), (dir.path().join("zone"), 6, 3));
    assert!(matches!(&error.fault, ReadFault::UnknownToken(token) if token == "FOO"), "{:?}", error.fault);
}

#[test]
fn included_files_share_ttls_and_do_not_change_line_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("zone");
    std::fs::write(dir.path().join("part"), "$TTL 77\na A 192.0.2.1\n\nb A 192.0.2.2\n").unwrap();
    let hosts: String = (0..50).map(|n| format!("h{n} A 192.0.2.{n}\n")).collect();
    let fault = |column, fault| Err(ReadError { file: path.clone(), line: 57, column, fault });
    let name = |text: &str| text.parse().unwrap();
    let outside = ZoneFault::OutOfZone { owner: name("z.other."), apex: name("example.") };
    for (rest, expected) in [
        ("z A 192.0.2.3\n", Ok("z.example.\t77\tIN\tA\t192.0.2.3")),
        ("z FOO\n", fault(3, ReadFault::UnknownToken("FOO".to_owned()))),
        ("z.other. A 192.0.2.1\n", fault(1, ReadFault::Zone(outside))),
    ] {
        std::fs::write(&path, format!("{HEAD}{hosts}$INCLUDE part\n{rest}")).unwrap();
        for octets in [1, 40, 400, usize::MAX] {
            let mut reader = Reader::new(&path, octets);
            let read = reader.read_file(&path, EntryState::new(None)).and_then(|_| finish(reader, None));
            match (read, &expected) {
                (Err(error), Err(expected)) => {
                    assert_eq!(format!("{error:?}"), format!("{expected:?}"), "{octets}: {rest}");
                }
                (read, expected) => {
                    let zone = outcome(read);
                    let is_expected = expected.as_ref().is_ok_and(|line| zone.contains(line));
                    assert!(is_expected, "{octets}: {expected:?} not in\n{zone}");
                }
            }
        }
    }
}

/// Generates valid and invalid lines. Most texts have several faults, of which the first must be
/// reported.
fn any_line() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        20 => proptest::sample::select(vec![
            "a A 192.0.2.1\n", "b 60 IN A 192.0.2.2\n", "B 30 IN A 192.0.2.3\n", "c.d MX 1 mail\r\n", "n 5 TXT \"x;(\" y ; z\n",
            "d TXT b\\;c\\\"\n", "a 7 A 192.0.2.1\n", "*.w TXT \\000\n", "e TYPE700 \\# 2 0102\n",
        ]),
        6 => proptest::sample::select(vec![
            "  TXT more\n", "\t90 A 192.0.2.4\n", "\n", "\r\n", "; comment ( \"\n", "   \n", "; c\n",
        ]),
        5 => proptest::sample::select(vec![
            "$ORIGIN sub.example.\n", "$ORIGIN sub\n", "$ORIGIN EXAMPLE.\n", "$TTL 60\n", "$ttl 1h ; hour\n",
        ]),
        4 => proptest::sample::select(vec![
            "g ( A\n192.0.2.3\n)\n", "h MX ( 1\nmail ) ; c\n", "(i A 192.0.2.9)\n", "j TXT ( ; (\n\nx\n y )\n",
            "k TXT \"a\\\nb\"\n", "l\\\nm TXT x\n", "o TXT p\\\n", "q TXT k=\"v w\"\n",
        ]),
        1 => proptest::sample::select(vec![
            "r TXT \"unclosed\n", "(\n", ")\n", "s TXT (\n", "$TTL x\n", "$FOO\n", "$ORIGIN ..\n", "t FOO\n", "u A\n", "v\n",
            "w CNAME x\n", "x.other. A 192.0.2.1\n", "@ SOA ns h 1 2 3 4 5\n", "\u{feff}", "a..b A 192.0.2.1\n", "\\",
        ]),
    ]
}

fn any_text() -> impl Strategy<Value = String> {
    let head = prop_oneof![
        4 => Just(HEAD),
        1 => Just("\u{feff}$ORIGIN example.\n@ SOA ns h 1 2 3 4 300\n"),
        1 => Just("$ORIGIN example.\n@ 9 SOA ( ns h\n1 2 3\n4 300 )\n"),
        1 => Just(""),
        1 => Just("\n"),
    ];
    (head, proptest::collection::vec(any_line(), 0..40), any::<bool>()).prop_map(|(head, lines, whole)| {
        let mut text = format!("{head}{}", lines.concat());
        if !whole {
            text.pop();
        }
        text
    })
}

/// Configuration with the same cases in every run.
fn seeded(cases: u32) -> ProptestConfig {
    ProptestConfig { rng_seed: RngSeed::Fixed(1), cases, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(seeded(2048))]

    #[test]
    fn the_result_does_not_depend_on_the_block_size(text in any_text(), octets in 1usize..80) {
        prop_assert_eq!(in_blocks(text.as_bytes(), octets), in_blocks(text.as_bytes(), usize::MAX));
    }
}

proptest! {
    #![proptest_config(seeded(128))]

    #[test]
    fn reading_a_file_equals_reading_its_text(text in any_text(), octets in 1usize..80) {
        prop_assert_eq!(file_in_blocks(text.as_bytes(), octets), in_blocks(text.as_bytes(), usize::MAX));
    }
}
