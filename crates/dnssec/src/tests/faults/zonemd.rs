//! ZONEMD (RFC 8976): changes of glue and delegations, which signatures do not cover, in a zone
//! with a digest; and wrong digests. These tests compute the digest independently of the code under
//! test.

use super::*;
use nonesuch_crypto::DigestType;
use nonesuch_proto::Class;
use nonesuch_zone::zonemd::ZonemdHash;

const ZONEMD: Rtype = Rtype::ZONEMD;
const APEX: &str = "example.";
const SHA384: ZonemdHash = ZonemdHash::Sha384;

pub(super) const ROWS: &[Row] = &[
    row("digest altered", "RFC 8976 §4", Scope::Every, |bench| {
        let change = |text: &str| {
            let (kept, last) = text.split_at(text.len() - 2);
            format!("{kept}{}", if last == "00" { "01" } else { "00" })
        };
        wrong_record(bench, change, mismatch())
    }),
    row("digest of another serial", "RFC 8976 §4", Scope::Every, |bench| {
        let reason = FaultReason::ZonemdSerial { found: 8, expected: 7 };
        wrong_record(bench, |text| text.replacen("7 ", "8 ", 1), reason)
    }),
    row("digest too short", "RFC 8976 §2.2.4", Scope::Every, |bench| {
        let reason = FaultReason::ZonemdLength { hash: SHA384, found: 11 };
        wrong_record(bench, |text| text[..6 + 22].to_owned(), reason)
    }),
    row("digest of the other algorithm's length", "RFC 8976 §2.2.4", Scope::Every, |bench| {
        let reason = FaultReason::ZonemdLength { hash: SHA384, found: 64 };
        wrong_record(bench, |text| format!("{text}{}", "00".repeat(16)), reason)
    }),
    row("digest under the other algorithm's number", "RFC 8976 §2.2.4", Scope::Every, |bench| {
        let reason = FaultReason::ZonemdLength { hash: ZonemdHash::Sha512, found: 48 };
        wrong_record(bench, |text| text.replacen("7 1 1 ", "7 1 2 ", 1), reason)
    }),
    row("digest twice", "RFC 8976 §2.2", Scope::Every, digest_twice),
    row("ZONEMD record cut off", "RFC 8976 §2.2", Scope::Every, cut_off),
    row("digest taken out", "RFC 8976 §3.3.1", Scope::Every, taken_out),
    row("glue altered", "RFC 8976 §3.3.1", Scope::Every, |bench| {
        behind_the_digest(bench, |bench| bench.edit("ns.d.example.", "A", |_| "192.0.2.99".to_owned()))
    }),
    row("glue added", "RFC 8976 §3.3.1", Scope::Every, |bench| {
        behind_the_digest(bench, |bench| bench.add("ns.d.example. 3600 IN AAAA 2001:db8::1"))
    }),
    row("glue taken out", "RFC 8976 §3.3.1", Scope::Every, |bench| {
        behind_the_digest(bench, |bench| bench.remove("ns.d.example.", "A"))
    }),
    row("delegation altered", "RFC 8976 §3.3.1", Scope::Every, |bench| {
        behind_the_digest(bench, |bench| bench.edit("d.example.", "NS", |_| "ns.evil.test.".to_owned()))
    }),
    row("TTL of a delegation altered", "RFC 8976 §3.3.1", Scope::Every, |bench| {
        behind_the_digest(bench, |bench| {
            for line in bench.lines.iter_mut().filter(|line| Bench::is(line, "d.example.", "NS")) {
                *line = line.replacen("\t3600\t", "\t3599\t", 1);
            }
        })
    }),
    row("occluded data altered", "RFC 8976 §3.3.1", Scope::Every, |bench| {
        behind_the_digest(bench, |bench| bench.edit("o.n.example.", "TXT", |_| "\"x\"".to_owned()))
    }),
    row("good signature added", "RFC 8976 §3.3.1", Scope::Every, |bench| {
        behind_the_digest(bench, |bench| {
            bench.sign_more("b.example.", Rtype::A, |fields| fields.expiration = EXPIRATION - 1);
        })
    }),
];

#[test]
fn faults_of_digests() {
    plant_all(ROWS);
}

fn mismatch() -> FaultReason {
    FaultReason::ZonemdMismatch { hash: SHA384 }
}

fn wrong_record(bench: &mut Bench, change: impl Fn(&str) -> String, reason: FaultReason) -> Found {
    *bench = with_zonemd(bench);
    bench.edit(APEX, "ZONEMD", change);
    bench.sign_again(APEX, ZONEMD, untouched);
    found(APEX, Some(ZONEMD), reason)
}

fn behind_the_digest(bench: &mut Bench, change: impl Fn(&mut Bench)) -> Found {
    *bench = with_zonemd(bench);
    change(bench);
    found(APEX, Some(ZONEMD), mismatch())
}

/// Two records of one scheme and hash algorithm: neither is used, although one is correct.
fn digest_twice(bench: &mut Bench) -> Found {
    *bench = with_zonemd(bench);
    bench.add(&format!("example. 3600 IN ZONEMD 7 1 1 {}", "00".repeat(48)));
    bench.sign_again(APEX, ZONEMD, untouched);
    found(APEX, Some(ZONEMD), FaultReason::ZonemdDuplicate { hash: SHA384 })
}

fn cut_off(bench: &mut Bench) -> Found {
    *bench = with_zonemd(bench);
    let contents = damaged(bench, APEX, ZONEMD, |rdata| rdata.truncate(5));
    found(APEX, Some(ZONEMD), FaultReason::MalformedRecord).within(contents)
}

/// An attacker who modifies glue could remove the ZONEMD record. The chain shows that it is
/// missing.
fn taken_out(bench: &mut Bench) -> Found {
    *bench = with_zonemd(bench);
    bench.remove(APEX, "ZONEMD");
    bench.remove_signatures(APEX, "ZONEMD");
    found(&bench.chain_owner(APEX), Some(bench.chain_type()), FaultReason::BitmapExtra(ZONEMD))
}

/// The input of the digest according to RFC 8976 §3.3.
fn digest_input(contents: &Contents) -> Vec<u8> {
    let mut out = Vec::new();
    for node in contents.nodes() {
        let mut records: Vec<(Rtype, u32, &[u8])> = Vec::new();
        for rrset in node.rrsets().filter(|rrset| node.index() > 0 || rrset.covered() != ZONEMD) {
            records.extend(rrset.rdatas().map(|octets| (rrset.rtype(), rrset.ttl(), octets)));
        }
        records.sort_by(|a, b| a.0.cmp(&b.0).then_with(|| rdata::cmp_canonical(a.0, a.2, b.2)));
        for (rtype, ttl, octets) in records {
            node.name().push_canonical(&mut out);
            out.extend(rtype.0.to_be_bytes());
            out.extend(Class::IN.0.to_be_bytes());
            out.extend(ttl.to_be_bytes());
            let mut canonical = Vec::new();
            rdata::push_canonical(rtype, octets, &mut canonical);
            out.extend((canonical.len() as u16).to_be_bytes());
            out.extend(canonical);
        }
    }
    out
}

/// The zone of a cell with a correct ZONEMD record (SHA-384).
fn with_zonemd(control: &Bench) -> Bench {
    let contents = zone(&format!("{RECORDS}\n@ ZONEMD 7 1 1 {}", "00".repeat(48)));
    let keys = Arc::clone(&control.keys);
    let mut bench = Bench::of(&contents, keys, &options(control.mechanism));
    let digest = DigestType::SHA384.digest(&[&digest_input(&bench.contents())]).unwrap();
    let wanted = format!("7 1 1 {}", data_encoding::HEXUPPER.encode(&digest));
    for line in bench.lines.iter_mut().filter(|line| Bench::is(line, APEX, "ZONEMD")) {
        let head = line.rfind('\t').unwrap() + 1;
        line.replace_range(head.., &wanted);
    }
    bench.sign_again(APEX, ZONEMD, untouched);
    bench
}

#[test]
fn a_right_digest_is_sound() {
    for (algorithm, mechanism) in cells(Scope::Every) {
        let report = with_zonemd(&control(algorithm, mechanism)).report();
        assert_eq!((report.faults, report.warnings, report.zonemd), (vec![], vec![], vec![SHA384]));
    }
}
