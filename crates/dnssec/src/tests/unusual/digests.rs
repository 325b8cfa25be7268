//! Unusual ZONEMD records (RFC 8976): several records, unknown schemes and algorithms, wrong
//! records together with a correct one.

use super::*;
use nonesuch_zone::zonemd::ZonemdHash;

pub(super) const ROWS: &[Row] = &[
    row("a SHA-384 digest", "RFC 8976 §2.2.3", Scope::Every, |variant| {
        digested(variant, &[ZonemdHash::Sha384]).into()
    }),
    row("a SHA-512 digest", "RFC 8976 §2.2.3", Scope::Every, |variant| {
        digested(variant, &[ZonemdHash::Sha512]).into()
    }),
    row("digests by both algorithms", "RFC 8976 §2", Scope::Every, |variant| {
        digested(variant, &ZonemdHash::ALL).into()
    }),
    row("a digest of an unknown algorithm alone", "RFC 8976 §4", Scope::Every, |variant| {
        Sound::from(with_record(digested(variant, &[]), &format!("7 1 240 {}", "00".repeat(12))))
            .warned(VerifyWarning::UnsupportedZonemd { scheme: 1, hash: 240 })
    }),
    row("a digest of an unknown scheme next to a good one", "RFC 8976 §4", Scope::Every, |variant| {
        Sound::from(with_record(
            digested(variant, &[ZonemdHash::Sha384]),
            &format!("7 9 1 {}", "00".repeat(48)),
        ))
        .warned(VerifyWarning::UnsupportedZonemd { scheme: 9, hash: 1 })
    }),
    row("a wrong digest next to a good one", "RFC 8976 §4", Scope::Every, |variant| {
        let reason = FaultReason::ZonemdMismatch { hash: ZonemdHash::Sha512 };
        spare(variant, &format!("7 1 2 {}", "00".repeat(64)), reason)
    }),
    row("a digest of another serial next to a good one", "RFC 8976 §4", Scope::Every, |variant| {
        let reason = FaultReason::ZonemdSerial { found: 6, expected: 7 };
        spare(variant, &format!("6 1 2 {}", "00".repeat(64)), reason)
    }),
    row("digests with a TTL of their own", "RFC 8976 §2.1", Scope::Every, |variant| {
        let contents = zone(&format!("{RECORDS}\n@ 77 ZONEMD 7 1 1 {}", "00".repeat(48)));
        variant.bench(&contents, variant.csk(), &variant.options()).into()
    }),
    row("ZONEMD away from the apex", "RFC 8976 §2", Scope::Every, |variant| {
        let first = name("x.example.");
        let records = format!("x ZONEMD 1 1 1 {}", "00".repeat(48));
        Sound::from(variant.signed(&records, variant.csk()))
            .warned(VerifyWarning::MisplacedZonemd { first, count: 1 })
    }),
];

#[test]
fn unusual_digests() {
    try_all(ROWS);
}

fn digested(variant: Variant, hashes: &[ZonemdHash]) -> Bench {
    let options = SignOptions { zonemd: Some(hashes.to_vec()), ..variant.options() };
    variant.bench(&zone(RECORDS), variant.csk(), &options)
}

/// Adds a ZONEMD record and signs the RRset again. The chain has the type.
fn with_record(mut bench: Bench, rdata: &str) -> Bench {
    if !bench.lines.iter().any(|line| Bench::is(line, "example.", "ZONEMD")) {
        bench.edit_chain("example.", |rdata| format!("{rdata} ZONEMD"));
    }
    bench.add(&format!("example. 3600 IN ZONEMD {rdata}"));
    bench.sign_again("example.", Rtype::ZONEMD, |_| {});
    bench
}

/// A correct SHA-384 digest together with an incorrect record, which causes a warning.
fn spare(variant: Variant, rdata: &str, reason: FaultReason) -> Sound {
    Sound::from(with_record(digested(variant, &[ZonemdHash::Sha384]), rdata))
        .warned(VerifyWarning::UnusableZonemd { reason })
}
