//! RDATA of every type in the table: text to octets and back, rejected input, canonical form.

use super::*;
use crate::text::Token;
use crate::{Name, Rtype};
use data_encoding::HEXLOWER;
use proptest::prelude::*;
use std::cmp::Ordering;
use std::collections::BTreeSet;

const VECTORS: &str = include_str!("vectors.txt");

struct Vector {
    rtype: Rtype,
    text: &'static str,
    written: &'static str,
    wire: Vec<u8>,
}

fn vectors() -> Vec<Vector> {
    let lines: Vec<&str> =
        VECTORS.lines().filter(|line| !line.starts_with(';') && !line.is_empty()).collect();
    assert_eq!(lines.len() % 4, 0);
    let vectors = lines.chunks_exact(4).map(|lines| Vector {
        rtype: lines[0].parse().unwrap(),
        text: lines[1],
        written: if lines[2] == "=" { lines[1] } else { lines[2] },
        wire: HEXLOWER.decode(lines[3].as_bytes()).unwrap(),
    });
    vectors.collect()
}

/// Splits one entry into tokens: white space and parentheses separate tokens, except inside
/// quotation marks.
fn tokenize(text: &str) -> Vec<Token<'_>> {
    let octets = text.as_bytes();
    let mut tokens = Vec::new();
    let mut at = 0;
    while at < octets.len() {
        if b" ()".contains(&octets[at]) {
            at += 1;
            continue;
        }
        let start = at;
        let mut in_quotes = false;
        while at < octets.len() && (in_quotes || !b" ()".contains(&octets[at])) {
            match octets[at] {
                b'\\' => at += 1,
                b'"' => in_quotes = !in_quotes,
                _ => {}
            }
            at += 1;
        }
        at = at.min(octets.len());
        let quoted = octets[start] == b'"' && at > start + 1;
        let range = if quoted { start + 1..at - 1 } else { start..at };
        tokens.push(Token { octets: &octets[range.clone()], quoted, at: range.start });
    }
    tokens
}

fn read(rtype: Rtype, text: &str) -> Result<Vec<u8>, RdataError> {
    let origin: Name = "ISI.EDU.".parse().unwrap();
    let mut out = b"before".to_vec();
    let outcome = push_from_tokens(rtype, &tokenize(text), Some(origin.view()), &mut out);
    assert!(out.starts_with(b"before"));
    match outcome {
        Ok(()) => Ok(out.split_off(6)),
        Err(error) => {
            assert_eq!(out, b"before", "a fault leaves nothing behind: {text}");
            Err(error)
        }
    }
}

fn fault(mnemonic: &str, text: &str) -> RdataFault {
    match read(mnemonic.parse().unwrap(), text) {
        Err(error) => error.fault,
        Ok(wire) => panic!("{mnemonic} {text} was read as {wire:02x?}"),
    }
}

fn write(rtype: Rtype, wire: &[u8]) -> String {
    let mut out = Vec::new();
    push_text(rtype, wire, &mut out);
    String::from_utf8(out).unwrap()
}

fn canonical(rtype: Rtype, wire: &[u8]) -> Vec<u8> {
    let mut out = b"Before".to_vec();
    push_canonical(rtype, wire, &mut out);
    assert!(out.starts_with(b"Before"));
    out.split_off(6)
}

#[test]
fn records_of_the_rfcs() {
    for vector in vectors() {
        let Vector { rtype, text, written, wire } = vector;
        assert_eq!(read(rtype, text).as_ref(), Ok(&wire), "{rtype} {text}");
        assert!(is_well_formed(rtype, &wire), "{rtype} {text}");
        assert_eq!(write(rtype, &wire), written, "{rtype} {text}");
        assert_eq!(read(rtype, written).as_ref(), Ok(&wire), "{rtype} {written}");
    }
}

#[test]
fn every_type_has_a_record() {
    let covered: BTreeSet<Rtype> = vectors().iter().map(|vector| vector.rtype).collect();
    let missing: Vec<&str> =
        TYPES.iter().filter(|entry| !covered.contains(&entry.rtype)).map(|entry| entry.mnemonic).collect();
    assert_eq!(missing, Vec::<&str>::new());
}

#[test]
fn table_is_sorted_and_found() {
    assert!(TYPES.is_sorted_by(|a, b| a.rtype < b.rtype));
    for row in TYPES {
        assert_eq!(entry(row.rtype).map(|found| found.mnemonic), Some(row.mnemonic));
        assert_eq!(
            entry_by_mnemonic(row.mnemonic.to_lowercase().as_bytes()).map(|e| e.rtype),
            Some(row.rtype)
        );
    }
    assert!(entry(Rtype(65535)).is_none() && entry(Rtype(0)).is_none() && entry(Rtype(10)).is_none());
}

#[test]
fn zero_octets_are_no_part_of_a_mnemonic() {
    for text in [&b"\0A"[..], b"A\0", b"\0\0NS", b"\0"] {
        assert_eq!(entry_by_mnemonic(text).map(|entry| entry.mnemonic), None, "{text:?}");
    }
}

#[test]
fn cut_or_lengthened_text_is_rejected() {
    // Types whose last field takes any number of tokens, or none.
    let open = [
        "TXT", "SPF", "AVC", "ISDN", "NSEC", "NSEC3", "NSEC5", "NXT", "CSYNC", "HIP", "SVCB", "HTTPS", "APL",
        "LOC",
    ];
    let joined = [
        "SIG",
        "RRSIG",
        "KEY",
        "DNSKEY",
        "CDNSKEY",
        "CERT",
        "DS",
        "CDS",
        "TA",
        "DLV",
        "SSHFP",
        "TLSA",
        "SMIMEA",
        "ZONEMD",
        "DHCID",
        "OPENPGPKEY",
        "IPSECKEY",
        "NSEC5KEY",
        "NSEC5PROOF",
    ];
    for vector in vectors() {
        let mnemonic = vector.rtype.to_string();
        if open.contains(&mnemonic.as_str()) || joined.contains(&mnemonic.as_str()) {
            continue;
        }
        let longer = format!("{} extra", vector.text);
        let is_bare_chain = mnemonic == "A6" && vector.text.starts_with("128 ");
        let expected = if is_bare_chain { RdataFault::Address("IPv6") } else { RdataFault::TrailingToken };
        assert_eq!(fault(&mnemonic, &longer), expected, "{longer}");
        let tokens = tokenize(vector.text);
        let mut out = Vec::new();
        let error = push_from_tokens(vector.rtype, &tokens[..tokens.len() - 1], None, &mut out).unwrap_err();
        let relative = matches!(error.fault, RdataFault::Name(_));
        assert!(relative || error.fault == RdataFault::Missing, "{mnemonic} {}: {error}", vector.text);
    }
}

#[test]
fn malformed_common_fields() {
    use RdataFault::*;
    let cases: &[(&str, &str, RdataFault)] = &[
        ("A", "1.2.3", Address("IPv4")),
        ("A", "1.2.3.256", Address("IPv4")),
        ("A", "", Missing),
        ("AAAA", "1::2::3", Address("IPv6")),
        ("AAAA", "192.0.2.1", Address("IPv6")),
        ("NS", "a..b.", Name(crate::NameError::EmptyLabel)),
        ("MX", "65536 a.", Number(16)),
        ("MX", "-1 a.", Number(16)),
        ("MX", "x a.", Number(16)),
        ("SOA", "a. b. 4294967296 1 1 1 1", Number(32)),
        ("SOA", "a. b. 1 1x 1 1 1", Duration),
        ("TLSA", "256 0 1 AA", Number(8)),
        ("TLSA", "0 0 1 ABC", Encoding("hexadecimal digits")),
        ("TLSA", "0 0 1", Missing),
        ("HINFO", "\\256 x", Text),
        ("TXT", "", Missing),
        ("TXT", "\\12", Text),
        ("URI", "1 1 \"\\999\"", Text),
        ("CAA", "0 is-sue \"x\"", Malformed("property tag (letters and digits)")),
        ("CAA", "0 \"\" \"x\"", Malformed("property tag (letters and digits)")),
        ("DS", "1 NOSUCH 1 AA", MnemonicOrNumber(8)),
        ("DS", "1 256 1 AA", MnemonicOrNumber(8)),
        ("CERT", "NOSUCH 1 8 AAAA", MnemonicOrNumber(16)),
        ("CERT", "65536 1 8 AAAA", MnemonicOrNumber(16)),
        ("DNSKEY", "256 3 8 A", Encoding("base64")),
        ("DHCID", "", Missing),
        ("RRSIG", "NOSUCH 5 3 1 20300101000000 20200101000000 1 a. AAAA", Type),
        ("RRSIG", "A 5 3 1 20301301000000 20200101000000 1 a. AAAA", Time),
        ("NSEC", "a. NOSUCH", Type),
        ("NXT", "a. NOSUCH", Type),
        ("NXT", "a. TYPE0", NxtType),
        ("NXT", "a. TYPE200", NxtType),
        ("NSEC3", "1 0 0 \"\" 2t7b4g4vsa5smi47k61mv5bv1a22bojr", Encoding("salt")),
        ("NSEC3", "1 0 0 ABC 2t7b4g4vsa5smi47k61mv5bv1a22bojr", Encoding("salt")),
        ("NSEC3", "1 0 0 - !", Encoding("base32hex")),
        ("NSEC3", "1 0 0 - \"\"", Encoding("base32hex")),
        ("TYPE65400", "abc", NeedsGeneric),
    ];
    for (mnemonic, text, expected) in cases {
        assert_eq!(fault(mnemonic, text), *expected, "{mnemonic} {text}");
    }
    assert_eq!(fault("TXT", &"x".repeat(256)), Text);
    assert_eq!(fault("NSEC3PARAM", &format!("1 0 0 {}", "ab".repeat(256))), Encoding("salt"));
    assert_eq!(fault("OPENPGPKEY", &"AAAA".repeat(21_846)), TooLong);
}

#[test]
fn messages_about_numbers_and_types_do_not_ask_for_what_is_written() {
    let message = |mnemonic, text| fault(mnemonic, text).to_string();
    assert_eq!(message("DS", "1 256 1 AA"), "expected a mnemonic or a number of at most 8 bits");
    assert_eq!(message("CERT", "65536 1 8 AAAA"), "expected a mnemonic or a number of at most 16 bits");
    assert_eq!(message("NXT", "a. TYPE200"), "this type cannot be in an NXT bit map (1 to 127)");
}

#[test]
fn malformed_special_fields() {
    let cases: &[(&str, &[&str])] = &[
        (
            "LOC",
            &[
                "91 N 0 E 0m",
                "90 0 0.001 N 0 E 0m",
                "0 N 180 0 1 E 0m",
                "0 60 N 0 E 0m",
                "0 0 60 N 0 E 0m",
                "0 X 0 E 0m",
                "0 E 0 N 0m",
                "0 0 0.1234 N 0 E 0m",
                "0 0 0. N 0 E 0m",
                "0 0.5 N 0 E 0m",
                "0 N 0 E -100000.01m",
                "0 N 0 E 42849672.96m",
                "0 N 0 E 0m 90000000.01m",
                "0 N 0 E 0m -1m",
                "0 N 0 E 0m 1m 1m 1m 1m",
                "0 N 0 E",
                "0 N 0 E xm",
                "0 0 0 0 N 0 E 0m",
                "0 N 0 E 0m 1m 1m xm",
            ],
        ),
        (
            "APL",
            &[
                "1:192.0.2.0/33",
                "2:::/129",
                "3:1.2.3.4/8",
                "1:192.0.2.0",
                "192.0.2.0/8",
                "1:2001::/8",
                "!!1:1.2.3.4/8",
                "65537:1.2.3.4/8",
                "1:1.2.3.4/",
                ":1.2.3.4/8",
                "2:1.2.3.4/8",
            ],
        ),
        (
            "IPSECKEY",
            &[
                "10 0 2 192.0.2.1 AAAA",
                "10 1 2 . AAAA",
                "10 1 2 2001:db8::1 AAAA",
                "10 2 2 192.0.2.1 AAAA",
                "10 4 2 . AAAA",
                "10 129 2 192.0.2.1 AAAA",
                "10 3 2 a..b AAAA",
                "10 1 2",
                "10 1 2 192.0.2.1 A",
            ],
        ),
        (
            "AMTRELAY",
            &["10 2 1 192.0.2.1", "10 0 4 .", "10 0 0 a.", "10 1 192.0.2.1", "10 0 128 .", "10 1 1"],
        ),
        (
            "HIP",
            &[
                "2 20010 AAAA",
                "2 AB A",
                "2 AB",
                "256 AB AAAA",
                "2 \"\" AAAA",
                "2 AB \"\"",
                "2 AB AAAA a..b",
                "2 AB AAAA= b.",
            ],
        ),
        (
            "A6",
            &["129 :: a.", "0 :: a.", "64 ::", "64 a.", "64 1.2.3.4 a.", "0", "128", "128 1 a.", "x :: a."],
        ),
        ("NXT", &["a. TYPE0", "a. TYPE128", "a. NOSUCH", "a. CAA"]),
        (
            "EUI48",
            &[
                "00-00-5e-00-53",
                "00-00-5e-00-53-2a-11",
                "00:00:5e:00:53:2a",
                "0-0-5e-00-53-2a",
                "00005e00532a",
            ],
        ),
        ("EUI64", &["00-00-5e-00-53-2a", "gg-00-5e-ef-10-00-00-2a", ""]),
        (
            "NID",
            &[
                "10 0014:4fff:ff20",
                "10 0014:4fff:ff20:ee64:0",
                "10 00014:4fff:ff20:ee64",
                "10 14::ee64",
                "10 +14:1:1:1",
            ],
        ),
        ("L64", &["10 2001:db8::", "10 2001:0DB8:1140:100g", "10"]),
    ];
    for (mnemonic, texts) in cases {
        for text in *texts {
            let fault = fault(mnemonic, text);
            assert!(!fault.to_string().is_empty(), "{mnemonic} {text}");
        }
    }
}

#[test]
fn rfc9460_appendix_d3_and_other_bad_parameters() {
    let appendix = [
        "key123=abc key123=def",
        "mandatory",
        "alpn",
        "port",
        "ipv4hint",
        "ipv6hint",
        "no-default-alpn=abc",
        "mandatory=key123",
        "mandatory=mandatory",
        "mandatory=key123,key123 key123=abc",
    ];
    let others = [
        "ech",
        "dohpath",
        "ohttp=x",
        "key3=a",
        "port=65536",
        "port=\\053\\051",
        "port=",
        "ipv4hint=1.2.3.4,",
        "ech=A",
        "ipv4hint=::1",
        "ipv6hint=1.2.3.4",
        "alpn=h2,,h3",
        "alpn=\"\"",
        "alpn=h2,",
        "alpn=h\\\\2",
        "alpn=\\\\",
        "no-default-alpn",
        "mandatory=no-such-key alpn=h2",
        "ALPN=h2",
        "key01=x",
        "key=x",
        "key65536=x",
        "=x",
        "key2=x",
        "dohpath=/dns-query",
        "dohpath=dns{?dns}",
        "dohpath=/{?dns",
        "dohpath=/}{?dns}",
        "dohpath=/\\255{?dns}",
        "key667=a\"b\"",
        "key667=\"a\"b",
        "\"alpn=h2\"",
        "key667=\\9",
        "alpn=h2 key1=\\002h3",
        "key0=\\000\\000",
        "mandatory=\\097lpn alpn=h2",
    ];
    for text in appendix.into_iter().chain(others) {
        let fault = fault("SVCB", &format!("1 foo.example.com. {text}"));
        assert!(
            matches!(
                fault,
                RdataFault::Malformed(_)
                    | RdataFault::Number(16)
                    | RdataFault::Address(_)
                    | RdataFault::Encoding(_)
            ),
            "{text}: {fault}"
        );
    }
    assert_eq!(
        fault("SVCB", &format!("1 . alpn={}", "x".repeat(256))),
        RdataFault::Malformed("value of a service parameter")
    );
    assert_eq!(fault("HTTPS", &format!("1 . key9={}", "x".repeat(65_536))), RdataFault::TooLong);
}

#[test]
fn service_parameter_forms_agree() {
    let svcb = |text: &str| read(Rtype(64), &format!("1 . {text}")).unwrap();
    assert_eq!(svcb("key1=\\002h2 key3=\\0005"), svcb("port=53 alpn=h2"));
    assert_eq!(svcb("key667"), svcb("key667=\"\""));
    assert_eq!(svcb("key667="), svcb("key667"));
    assert_eq!(svcb("key667=\"a b\""), svcb("key667=a\\032b"));
    assert_eq!(svcb("mandatory=key1 alpn=h2"), svcb("alpn=\"h2\" mandatory=alpn"));
    assert_eq!(write(Rtype(64), &svcb("key667=\"a b;\\\"\"")), "1 . key667=\"a b;\\\"\"");
    // A zone file reader may return the quoted value as a separate token.
    let line = "1 . alpn=\"h2\"";
    let value = Token { octets: b"h2", quoted: true, at: 10 };
    let mut tokens = tokenize("1 . alpn=");
    tokens.push(value);
    let mut out = Vec::new();
    push_from_tokens(Rtype(64), &tokens, None, &mut out).unwrap();
    assert_eq!(Ok(out), read(Rtype(64), line));
    // After white space, the quoted token does not belong to the key.
    tokens[3].at += 1;
    assert!(push_from_tokens(Rtype(64), &tokens, None, &mut Vec::new()).is_err());
}

#[test]
fn malformed_parameters_on_the_wire() {
    let bad: &[&[u8]] = &[
        &[0, 1, 0, 3, 2, b'h', b'2', 0, 1, 0, 3, 2, b'h', b'2'],
        &[0, 3, 0, 2, 0, 53, 0, 1, 0, 3, 2, b'h', b'2'],
        &[0, 3, 0, 1, 53],
        &[0, 1, 0, 3, 3, b'h', b'2'],
        &[0, 1, 0, 1, 0],
        &[0, 0, 0, 2, 0, 0],
        &[0, 0, 0, 4, 0, 3, 0, 1],
        &[0, 4, 0, 0],
        &[0, 9, 0, 1],
        &[0, 9, 0],
    ];
    for parameters in bad {
        let wire = [&[0, 1, 0][..], parameters].concat();
        assert!(!is_well_formed(Rtype(64), &wire), "{parameters:?}");
        assert!(write(Rtype(64), &wire).starts_with("\\# "));
    }
}

#[test]
fn what_text_cannot_say_is_written_in_generic_form() {
    let cases: &[(&str, &[u8])] = &[
        // LOC with a version other than 0 (RFC 1876 §2).
        ("LOC", &[1, 2, 3]),
        // An address family without presentation form.
        ("APL", &[0, 3, 8, 1, 10]),
        // NXT with bit 0 set (RFC 2535 §5.2).
        ("NXT", &[0, 0x80, 0]),
        // A6 with a nonzero pad bit.
        ("A6", &[1, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        // no-default-alpn without alpn, and mandatory with a key that is missing (RFC 9460 §7.1.1
        // and §8).
        ("SVCB", &[0, 1, 0, 0, 2, 0, 0]),
        ("SVCB", &[0, 1, 0, 0, 0, 0, 2, 0, 3]),
    ];
    for (mnemonic, wire) in cases {
        let rtype = mnemonic.parse().unwrap();
        assert!(is_well_formed(rtype, wire), "{mnemonic}");
        let text = write(rtype, wire);
        assert!(text.starts_with("\\# "), "{mnemonic} {text}");
        assert_eq!(read(rtype, &text).as_deref(), Ok(*wire));
    }
}

#[test]
fn fields_of_zero_octets() {
    assert_eq!(write(Rtype(257), b"\0\x05issue"), "0 issue \"\"");
    assert_eq!(write(Rtype(48), &[1, 0, 3, 8]), "256 3 8");
    assert_eq!(write(Rtype(42), &[]), "");
    assert_eq!(read(Rtype(42), ""), Ok(Vec::new()));
    assert_eq!(write(Rtype(47), &[0]), ".");
    assert_eq!(write(Rtype(45), &[10, 0, 0]), "10 0 0 .");
    assert_eq!(write(Rtype(16), &[0]), "\"\"");
}

#[test]
fn malformed_wire() {
    let cases: &[(&str, &[u8])] = &[
        ("CAA", b"\0\x02a-x"),
        ("CAA", b"\0\0x"),
        ("LOC", &[0; 15]),
        ("LOC", &[0x00, 0x05, 0x16, 0x13, 0x80, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0]),
        ("LOC", &[0x00, 0xa0, 0x16, 0x13, 0x80, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0]),
        ("LOC", &[0x00, 0x12, 0x16, 0x13, 0xff, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0]),
        ("APL", &[0, 1, 8, 2, 10, 0]),
        ("APL", &[0, 1, 33, 1, 10]),
        ("APL", &[0, 1, 8, 5, 1, 1, 1, 1, 1]),
        ("APL", &[0, 1, 8]),
        ("NXT", &[0, 0x40, 0]),
        ("IPSECKEY", &[10, 129, 2, 192, 0, 2, 1, 9]),
        ("IPSECKEY", &[10, 1, 2, 192, 0, 2]),
        ("AMTRELAY", &[10, 0x84, 0]),
        ("HIP", &[0, 2, 0, 1, 9]),
        ("HIP", &[1, 2, 0, 0, 9]),
        ("A6", &[129, 0]),
        ("A6", &[0, 1, 2]),
        ("TXT", &[]),
        ("TXT", &[2, b'a']),
        ("A", &[1, 2, 3, 4, 5]),
    ];
    for (mnemonic, wire) in cases {
        let rtype = mnemonic.parse().unwrap();
        assert!(!is_well_formed(rtype, wire), "{mnemonic} {wire:?}");
        assert!(write(rtype, wire).starts_with("\\# "));
    }
}

#[test]
fn generic_form_of_known_types() {
    // RFC 3597 §5: the generic form is also accepted for known types, and written in the form of
    // the type.
    let wire = read(Rtype::A, "\\# 4 0A 000001").unwrap();
    assert_eq!(write(Rtype::A, &wire), "10.0.0.1");
    let wire = read(Rtype::MX, "\\# 6 000a 01410142 00".trim()).map_err(|error| error.fault);
    assert_eq!(wire, Err(RdataFault::Generic), "the length does not match");
    let wire = read(Rtype::MX, "\\# 7 000a 01410142 00").unwrap();
    assert_eq!(write(Rtype::MX, &wire), "10 A.B.");
    assert_eq!(read(Rtype(65280), "\\# 0"), Ok(Vec::new()));
    assert_eq!(write(Rtype(65280), &[]), "\\# 0");
    assert_eq!(write(Rtype(65280), &[0xab, 1]), "\\# 2 ab01");
    for (mnemonic, text) in [
        ("A", "\\# 3 0A0000"),
        ("A", "\\# 5 0A00000100"),
        ("MX", "\\# 4 000a c000"),
        ("SVCB", "\\# 8 0001 00 0003 0001 05"),
    ] {
        assert_eq!(fault(mnemonic, text), RdataFault::Generic, "{mnemonic} {text}");
    }
    assert_eq!(fault("A", "\\# 4 0A00000"), RdataFault::Encoding("hexadecimal digits"));
    assert_eq!(fault("A", "\\# 65536 00"), RdataFault::Number(16));
    assert_eq!(fault("A", "\\#"), RdataFault::Missing);
}

#[test]
fn names_that_canonical_form_lowers() {
    // RFC 4034 §6.2, without NSEC and HINFO (RFC 6840 §5.1).
    let cases = [
        ("NS", "A.B.", "a.b."),
        ("MD", "A.B.", "a.b."),
        ("MF", "A.B.", "a.b."),
        ("CNAME", "A.B.", "a.b."),
        ("SOA", "A.B. C.D. 1 2 3 4 5", "a.b. c.d. 1 2 3 4 5"),
        ("MB", "A.B.", "a.b."),
        ("MG", "A.B.", "a.b."),
        ("MR", "A.B.", "a.b."),
        ("PTR", "A.B.", "a.b."),
        ("MINFO", "A.B. C.D.", "a.b. c.d."),
        ("MX", "16705 A.B.", "16705 a.b."),
        ("RP", "A.B. C.D.", "a.b. c.d."),
        ("AFSDB", "16705 A.B.", "16705 a.b."),
        ("RT", "16705 A.B.", "16705 a.b."),
        (
            "SIG",
            "A 65 65 1094795585 20300101000000 20200101000000 16705 A.B. QUFB",
            "A 65 65 1094795585 20300101000000 20200101000000 16705 a.b. QUFB",
        ),
        ("PX", "16705 A.B. C.D.", "16705 a.b. c.d."),
        ("NXT", "A.B. NS MX", "a.b. NS MX"),
        ("NAPTR", "1 1 \"S\" \"A\" \"B\" C.D.", "1 1 \"S\" \"A\" \"B\" c.d."),
        ("KX", "16705 A.B.", "16705 a.b."),
        ("SRV", "1 16705 1 A.B.", "1 16705 1 a.b."),
        ("DNAME", "A.B.", "a.b."),
        ("A6", "64 ::4142:4344:4546:4748 A.B.", "64 ::4142:4344:4546:4748 a.b."),
        ("A6", "0 4142::4142", "0 4142::4142"),
        (
            "RRSIG",
            "A 65 65 1094795585 20300101000000 20200101000000 16705 A.B. QUFB",
            "A 65 65 1094795585 20300101000000 20200101000000 16705 a.b. QUFB",
        ),
    ];
    for (mnemonic, text, lowered) in cases {
        let rtype = mnemonic.parse().unwrap();
        let (wire, expected) = (read(rtype, text).unwrap(), read(rtype, lowered).unwrap());
        assert_eq!(canonical(rtype, &wire), expected, "{mnemonic} {text}");
        assert_eq!(cmp_canonical(rtype, &wire, &expected), Ordering::Equal);
    }
}

#[test]
fn rdata_that_canonical_form_leaves_alone() {
    let cases = [
        ("NSEC", "A.B. NS"),
        ("HINFO", "CPU OS"),
        ("TXT", "ABC"),
        ("LP", "10 A.B."),
        ("SVCB", "1 A.B. alpn=H2"),
        ("HTTPS", "0 A.B."),
        ("HIP", "2 4142 QUFB A.B."),
        ("IPSECKEY", "10 3 2 A.B. QUFB"),
        ("AMTRELAY", "10 0 3 A.B."),
        ("CAA", "0 ISSUE \"CA\""),
    ];
    for (mnemonic, text) in cases {
        let rtype = mnemonic.parse().unwrap();
        let wire = read(rtype, text).unwrap();
        assert!(wire.iter().any(u8::is_ascii_uppercase));
        assert_eq!(canonical(rtype, &wire), wire, "{mnemonic} {text}");
        assert_ne!(cmp_canonical(rtype, &wire, &wire.to_ascii_lowercase()), Ordering::Equal);
    }
}

#[test]
fn compressible_names_are_those_of_rfc_1035() {
    let compressed: BTreeSet<u16> = vectors()
        .iter()
        .filter(|vector| names(vector.rtype, &vector.wire).any(|name| name.compress))
        .map(|vector| vector.rtype.0)
        .collect();
    // RFC 3597 §4: NS, MD, MF, CNAME, SOA, MB, MG, MR, PTR, MINFO and MX.
    assert_eq!(compressed.into_iter().collect::<Vec<_>>(), [2, 3, 4, 5, 6, 7, 8, 9, 12, 14, 15]);
}

#[test]
fn mnemonics_of_algorithms_and_certificates() {
    let names: &[(&[u8], u8)] = &[
        (b"RSAMD5", 1),
        (b"DH", 2),
        (b"DSA", 3),
        (b"RSASHA1", 5),
        (b"DSA-NSEC3-SHA1", 6),
        (b"RSASHA1-NSEC3-SHA1", 7),
        (b"rsasha256", 8),
        (b"RSASHA512", 10),
        (b"ECC-GOST", 12),
        (b"ECDSAP256SHA256", 13),
        (b"ECDSAP384SHA384", 14),
        (b"Ed25519", 15),
        (b"ED448", 16),
        (b"INDIRECT", 252),
        (b"PRIVATEDNS", 253),
        (b"PRIVATEOID", 254),
        (b"255", 255),
    ];
    for (name, number) in names {
        assert_eq!(special::algorithm_number(name), Some(*number));
    }
    assert_eq!(special::algorithm_number(b"256"), None);
    assert_eq!(special::algorithm_number(b""), None);
    assert_eq!(special::certificate_type(b"oid"), Some(254));
    assert_eq!(special::certificate_type(b"IACPKIX"), Some(8));
    assert_eq!(special::certificate_type(b"65535"), Some(65535));
    assert_eq!(special::certificate_type(b"65536"), None);
}

/// Writes `wire` and reads it back. The result must be the same octets if `wire` is well formed,
/// and an error otherwise. Nothing may panic.
fn check(rtype: Rtype, wire: &[u8]) -> Result<(), TestCaseError> {
    for name in names(rtype, wire) {
        prop_assert!(name.range.end <= wire.len());
    }
    let lowered = canonical(rtype, wire);
    prop_assert!(lowered.eq_ignore_ascii_case(wire));
    let text = write(rtype, wire);
    let again = read(rtype, &text);
    if is_well_formed(rtype, wire) {
        prop_assert_eq!(again.as_deref(), Ok(wire), "{} {}", rtype, text);
        prop_assert!(is_well_formed(rtype, &lowered));
        prop_assert_eq!(cmp_canonical(rtype, wire, &lowered), Ordering::Equal);
    } else {
        prop_assert!(again.is_err(), "{} {}", rtype, text);
    }
    Ok(())
}

fn any_type() -> impl Strategy<Value = Rtype> {
    (0..TYPES.len()).prop_map(|index| TYPES[index].rtype)
}

/// Zone files contain records of private use in the generic form, followed by the mnemonic form as
/// a comment for readers.
#[test]
fn private_types_have_a_comment() {
    let comment = |rtype: Rtype, text: &str| {
        let wire = read(rtype, text).unwrap();
        let mut out = Vec::new();
        push_comment(rtype, &wire, &mut out);
        let comment = String::from_utf8(out).unwrap();
        // The comment, read as a record, has the same RDATA.
        if let Some(mnemonic) = comment.strip_prefix(" ; ") {
            let (name, fields) = mnemonic.split_once(' ').unwrap();
            assert_eq!((name.parse(), read(rtype, fields)), (Ok(rtype), Ok(wire)));
        }
        comment
    };
    assert_eq!(comment(Rtype::NSEC5, "7 1 CPNMUOJ1E8 A RRSIG"), " ; NSEC5 7 1 cpnmuoj1e8 A RRSIG");
    assert_eq!(comment(Rtype::NSEC5KEY, "1 Zm9v Yg=="), " ; NSEC5KEY 1 Zm9vYg==");
    assert_eq!(comment(Rtype::NSEC5PROOF, "2 Zm9vYg=="), " ; NSEC5PROOF 2 Zm9vYg==");
    assert_eq!(comment(Rtype::A, "192.0.2.1"), "");
    let mut out = Vec::new();
    push_comment(Rtype::NSEC5, b"\0", &mut out);
    assert_eq!(out, b"");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn arbitrary_octets(rtype in any_type(), wire in proptest::collection::vec(any::<u8>(), 0..64)) {
        check(rtype, &wire)?;
    }

    #[test]
    fn octets_near_well_formed_ones(
        pick: prop::sample::Index,
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0u8..8), 0..4),
    ) {
        let vectors = vectors();
        let vector = pick.get(&vectors);
        let mut wire = vector.wire.clone();
        for (at, octet, kind) in edits {
            let at = at.index(wire.len() + 1);
            match (kind, wire.get_mut(at)) {
                (0, _) => wire.insert(at, octet),
                (1, Some(_)) => { wire.remove(at); }
                (2, _) => wire.truncate(at),
                (_, Some(slot)) => *slot = octet,
                (_, None) => wire.push(octet),
            }
        }
        check(vector.rtype, &wire)?;
    }

    #[test]
    fn arbitrary_text_never_panics(rtype in any_type(), text in "[ -~]{0,80}") {
        if let Ok(wire) = read(rtype, &text) {
            prop_assert!(is_well_formed(rtype, &wire), "{} {}", rtype, text);
            prop_assert_eq!(read(rtype, &write(rtype, &wire)), Ok(wire));
        }
    }

    #[test]
    fn edited_text_never_panics(
        pick: prop::sample::Index,
        at: prop::sample::Index,
        insert in "[ -~]{0,3}",
        drop in 0usize..4,
    ) {
        let vectors = vectors();
        let vector = pick.get(&vectors);
        let at = at.index(vector.text.len() + 1);
        let end = (at + drop).min(vector.text.len());
        let text = format!("{}{insert}{}", &vector.text[..at], &vector.text[end..]);
        if let Ok(wire) = read(vector.rtype, &text) {
            prop_assert!(is_well_formed(vector.rtype, &wire), "{} {}", vector.rtype, text);
            prop_assert_eq!(read(vector.rtype, &write(vector.rtype, &wire)), Ok(wire));
        }
    }

    #[test]
    fn order_is_that_of_canonical_octets(
        rtype in any_type(),
        a in proptest::collection::vec(any::<u8>(), 0..24),
        b in proptest::collection::vec(any::<u8>(), 0..24),
    ) {
        let expected = canonical(rtype, &a).cmp(&canonical(rtype, &b));
        prop_assert_eq!(cmp_canonical(rtype, &a, &b), expected);
        prop_assert_eq!(cmp_canonical(rtype, &b, &a), expected.reverse());
    }
}
