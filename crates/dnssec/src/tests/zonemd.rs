//! Digests of zones (RFC 8976): generation by the signer, and verification.

use super::*;
use crate::sign::{SignError, SignWarning, sign_streaming};
use crate::verify::{VerifyInputs, VerifyWarning, into_verified, verify_with_inputs};
use nonesuch_zone::zonemd::{self, Zonemd, ZonemdHash};

/// Glue, an occluded name, an empty non-terminal, a wildcard and letters in both cases, distributed
/// over several parts.
fn records() -> String {
    let many: String = (0..1200).map(|number| format!("H{number} A 192.0.2.1\n")).collect();
    format!(
        "{many}sub NS NS.Sub\nns.sub A 192.0.2.7\nx.ent MX 1 Mail.Example.\n*.w TXT \"x\"\nd DNAME e\nz.d A 192.0.2.2"
    )
}

/// RDATA of the zone's ZONEMD records in presentation form.
fn digests(contents: &Contents) -> Vec<String> {
    rdatas(contents, "example.", Rtype::ZONEMD)
}

/// A ZONEMD record of `contents` in presentation form.
fn record(contents: &Contents, serial: u32, hash: ZonemdHash) -> String {
    let digest = zonemd::digest(contents, &[hash]).remove(0).1;
    format!("{serial} 1 {} {}", hash.number(), data_encoding::HEXUPPER.encode(&digest))
}

fn stream(contents: &Contents, options: &SignOptions<'_>) -> (Vec<String>, crate::sign::SignSummary) {
    let mut text = Vec::new();
    let summary = sign_streaming(
        contents,
        &ksk_and_zsk_of("example."),
        options,
        |part, out: &mut Vec<u8>| {
            out.clear();
            write::push_part(part, out);
        },
        |out| {
            text.extend_from_slice(out);
            Ok::<(), SignError>(())
        },
    )
    .unwrap();
    (String::from_utf8(text).unwrap().lines().map(str::to_owned).collect(), summary)
}

#[test]
fn each_mechanism_and_hash_verifies_and_streaming_gives_the_same_zone() {
    let contents = zone(&records());
    for mechanism in NSEC_AND_NSEC3 {
        for hashes in [&[][..], &[ZonemdHash::Sha384], &[ZonemdHash::Sha512], &ZonemdHash::ALL] {
            let mut options = options(mechanism);
            options.zonemd = Some(hashes.to_vec());
            let signed = sign(&contents, &ksk_and_zsk_of("example."), &options).unwrap();
            let report = report(signed.contents());
            assert_eq!((report.faults, report.warnings), (vec![], vec![]));
            assert_eq!(report.zonemd, hashes);
            assert_eq!(report.signatures_verified, signed.statistics().signatures);
            assert_eq!(report.rrsets, signed.statistics().rrsets_signed);
            assert_eq!(signed.contents().record_count(), signed.statistics().records);

            let (lines, summary) = stream(&contents, &options);
            assert_eq!(summary.statistics, signed.statistics());
            let whole = text(signed.contents());
            // The digests and their signature are the last lines. All other lines are in their
            // previous places.
            let is_digest = |line: &&str| {
                line.split(['\t', ' ']).any(|field| field == "ZONEMD") && !line.contains("\tNSEC")
            };
            let (last, others): (Vec<&str>, Vec<&str>) = whole.lines().partition(is_digest);
            assert_eq!(lines, [others, last.clone()].concat());
            assert_eq!(last.len(), if hashes.is_empty() { 0 } else { hashes.len() + 1 });
            assert_eq!(text(&read_zone(&lines.join("\n"), &name("example."))), whole);
        }
    }
}

#[test]
fn by_default_the_digests_of_the_zone_are_replaced() {
    let contents = zone(&format!(
        "@ 77 ZONEMD 7 1 2 {}\n@ 77 ZONEMD 7 1 240 {}\n@ 77 ZONEMD 7 9 1 {}\na A 192.0.2.1",
        "00".repeat(64),
        "00".repeat(12),
        "00".repeat(48)
    ));
    let mut options = options(Mechanism::Nsec);
    options.serial = crate::sign::SerialPolicy::Increment;
    let signed = sign(&contents, &ksk_and_zsk_of("example."), &options).unwrap();
    assert_eq!(
        signed.warnings(),
        [
            SignWarning::ZonemdDropped { scheme: 1, hash: 240 },
            SignWarning::ZonemdDropped { scheme: 9, hash: 1 }
        ]
    );
    assert_eq!(digests(signed.contents()), [record(signed.contents(), 8, ZonemdHash::Sha512)]);
    let rrset = signed.contents().apex_rrset(Rtype::ZONEMD).unwrap();
    assert_eq!(rrset.ttl(), 77);
    assert_eq!(
        rdatas(signed.contents(), "example.", Rtype::NSEC),
        ["a.example. NS SOA RRSIG NSEC DNSKEY ZONEMD"]
    );

    options.zonemd = Some(vec![]);
    let without = sign(&contents, &ksk_and_zsk_of("example."), &options).unwrap();
    assert_eq!((without.warnings(), digests(without.contents())), (&[][..], vec![]));
    assert_sound(without.contents());

    options.zonemd = Some(vec![ZonemdHash::Sha384, ZonemdHash::Sha384]);
    let asked = sign(&zone(""), &ksk_and_zsk_of("example."), &options).unwrap();
    assert_eq!(digests(asked.contents()), [record(asked.contents(), 8, ZonemdHash::Sha384)]);
    // The TTL of the SOA record.
    assert_eq!(asked.contents().apex_rrset(Rtype::ZONEMD).unwrap().ttl(), 3600);
}

/// Keys of two algorithms, one of them as KSK and ZSK: signatures of several keys, which may not be
/// in canonical order.
#[test]
fn signatures_of_several_keys_are_digested_in_canonical_order() {
    let keys =
        (1..=6).map(|seed| key("example.", 257 - u16::from(seed % 2), Algorithm::ED25519, seed)).collect();
    let keys = KeySet::new(&name("example."), keys).unwrap();
    let mut options = options(Mechanism::Nsec3);
    options.zonemd = Some(ZonemdHash::ALL.to_vec());
    let signed = sign(&zone("a A 192.0.2.1"), &keys, &options).unwrap();
    assert_eq!(report(signed.contents()).zonemd, ZonemdHash::ALL);
    let read = read_zone(&text(signed.contents()), &name("example."));
    assert_eq!(report(&read).zonemd, ZonemdHash::ALL);
}

#[test]
fn an_error_of_the_consumer_ends_signing() {
    #[derive(Debug, PartialEq)]
    enum Failure {
        Sign(SignError),
        Full,
    }
    impl From<SignError> for Failure {
        fn from(error: SignError) -> Self {
            Self::Sign(error)
        }
    }
    let contents = zone(&records());
    let sign = |keys: &KeySet| {
        let render = |_: &Contents, (): &mut ()| {};
        sign_streaming(&contents, keys, &options(Mechanism::Nsec), render, |()| Err(Failure::Full))
    };
    assert_eq!(sign(&ksk_and_zsk_of("example.")), Err(Failure::Full));
    assert!(matches!(
        sign(&ksk_and_zsk_of("elsewhere.")),
        Err(Failure::Sign(SignError::KeysOfOtherZone { .. }))
    ));
}

/// Verifies an unsigned zone with these ZONEMD records at its apex. Returns verified hash
/// algorithms, faults and warnings.
fn outcome(zonemd: &[String]) -> (Vec<ZonemdHash>, Vec<FaultReason>, Vec<VerifyWarning>) {
    let lines: String = zonemd.iter().map(|rdata| format!("@ ZONEMD {rdata}\n")).collect();
    let contents = zone(&format!("a A 192.0.2.1\n{lines}"));
    let report = match into_verified(contents, &VerifyOptions::default()) {
        Ok(verified) => verified.report().clone(),
        Err(faulty) => faulty.report,
    };
    for fault in &report.faults {
        assert_eq!((&fault.owner, fault.rtype), (&name("example."), Some(Rtype::ZONEMD)));
    }
    (report.zonemd, report.faults.into_iter().map(|fault| fault.reason).collect(), report.warnings)
}

#[test]
fn faults_of_digests_are_reported() {
    let contents = zone("a A 192.0.2.1");
    let (short, long) = (ZonemdHash::Sha384, ZonemdHash::Sha512);
    let good = record(&contents, 7, short);
    let other = record(&contents, 7, long);
    // A digest of other records.
    let wrong = record(&zone("a A 192.0.2.2"), 7, short);
    let mismatch = FaultReason::ZonemdMismatch { hash: short };
    assert_eq!(outcome(&[]), (vec![], vec![], vec![]));
    assert_eq!(outcome(std::slice::from_ref(&good)), (vec![short], vec![], vec![]));
    assert_eq!(outcome(&[good.clone(), other.clone()]), (vec![short, long], vec![], vec![]));
    assert_eq!(outcome(std::slice::from_ref(&wrong)), (vec![], vec![mismatch.clone()], vec![]));
    // One valid record is sufficient.
    let spare = |reason: &FaultReason| vec![VerifyWarning::UnusableZonemd { reason: reason.clone() }];
    assert_eq!(outcome(&[wrong.clone(), other.clone()]), (vec![long], vec![], spare(&mismatch)));

    let of_old = record(&contents, 6, short);
    let serial = FaultReason::ZonemdSerial { found: 6, expected: 7 };
    assert_eq!(outcome(std::slice::from_ref(&of_old)), (vec![], vec![serial.clone()], vec![]));
    assert_eq!(outcome(&[of_old, other.clone()]), (vec![long], vec![], spare(&serial)));

    let duplicate = FaultReason::ZonemdDuplicate { hash: short };
    assert_eq!(outcome(&[good.clone(), wrong.clone()]), (vec![], vec![duplicate.clone()], vec![]));
    assert_eq!(outcome(&[good.clone(), wrong, other]), (vec![long], vec![], spare(&duplicate)));

    for digits in ["00", &good[6..50], &format!("{}00", &good[6..])] {
        let (found, expected) =
            (digits.len() / 2, FaultReason::ZonemdLength { hash: short, found: digits.len() / 2 });
        assert_eq!(outcome(&[format!("7 1 1 {digits}")]), (vec![], vec![expected], vec![]), "{found}");
    }
    // No reader of zone files accepts these records, but a transfer could contain them.
    let cut = |octets: usize| {
        let whole = zone(&format!("a A 192.0.2.1\n@ ZONEMD {good}"));
        let cut = rewrite(&whole, |_, rtype, _, rdata| {
            if rtype == Rtype::ZONEMD {
                rdata.truncate(octets);
            }
        });
        into_verified(cut, &VerifyOptions::default()).unwrap_err().report.faults.remove(0).reason
    };
    assert_eq!(cut(6), FaultReason::ZonemdLength { hash: short, found: 0 });
    assert_eq!(cut(5), FaultReason::MalformedRecord);
}

#[test]
fn unsupported_digests_prove_nothing() {
    let unknown = |scheme, hash| VerifyWarning::UnsupportedZonemd { scheme, hash };
    let records = ["7 1 240 00112233445566778899AABB", "7 2 1 00112233445566778899AABB"].map(str::to_owned);
    assert_eq!(outcome(&records), (vec![], vec![], vec![unknown(1, 240), unknown(2, 1)]));
    // Together with an invalid record of a supported algorithm they do not help.
    let wrong = format!("7 1 1 {}", "00".repeat(48));
    let all = [&records[..], &[wrong]].concat();
    assert_eq!(outcome(&all).1, [FaultReason::ZonemdMismatch { hash: ZonemdHash::Sha384 }]);
}

#[test]
fn a_zonemd_record_below_the_apex_is_data() {
    let contents = zone("a ZONEMD 1 1 1 00112233445566778899AABB\nb.a ZONEMD 1 1 1 00112233445566778899AABB");
    let signed = sign(&contents, &ksk_and_zsk_of("example."), &options(Mechanism::Nsec)).unwrap();
    let report = report(signed.contents());
    assert_eq!(report.faults, []);
    assert_eq!(report.warnings, [VerifyWarning::MisplacedZonemd { first: name("a.example."), count: 2 }]);
    assert_eq!(rdatas(signed.contents(), "a.example.", Rtype::ZONEMD), ["1 1 1 00112233445566778899AABB"]);
}

/// Signatures do not cover glue. Only the digest detects a change of it.
#[test]
fn altered_glue_of_a_signed_zone_is_found() {
    let contents = zone("sub NS ns.sub\nns.sub A 192.0.2.7");
    let mut options = options(Mechanism::Nsec);
    options.zonemd = Some(vec![ZonemdHash::Sha384]);
    let signed = sign(&contents, &ksk_and_zsk_of("example."), &options).unwrap();
    let altered = text(signed.contents()).replace("192.0.2.7", "192.0.2.8");
    let faults = report(&read_zone(&altered, &name("example."))).faults;
    let reason = FaultReason::ZonemdMismatch { hash: ZonemdHash::Sha384 };
    assert_eq!(faults, [Fault { owner: name("example."), rtype: Some(Rtype::ZONEMD), reason }]);
    // Without the ZONEMD record, the chain shows that it existed.
    let without: Vec<&str> =
        altered.lines().filter(|line| !line.contains("\tZONEMD\t") && !line.contains("\tZONEMD ")).collect();
    let faults = report(&read_zone(&without.join("\n"), &name("example."))).faults;
    assert_eq!(faults[0].reason, FaultReason::BitmapExtra(Rtype::ZONEMD));
}

/// The publisher computed the digest with the original TTLs (RFC 8976 §3.3). Only the lowest TTL of
/// each RRset is known.
#[test]
fn a_digest_over_records_with_different_ttls_cannot_be_checked() {
    let check = |rest: &str| {
        let contents = zone(&format!("@ ZONEMD 7 1 1 {}\n{rest}", "00".repeat(48)));
        let report = verify(&contents, &VerifyOptions::default());
        (
            report.digest_fault().is_some(),
            report.faults.into_iter().map(|fault| fault.reason).collect::<Vec<_>>(),
        )
    };
    let hash = ZonemdHash::Sha384;
    assert_eq!(
        check("m 60 A 192.0.2.1\nm 60 A 192.0.2.2"),
        (true, vec![FaultReason::ZonemdMismatch { hash }])
    );
    let (is_wrong, reasons) = check("m 60 A 192.0.2.1\nm 30 A 192.0.2.2");
    assert!(is_wrong && reasons.contains(&FaultReason::ZonemdMixedTtls { hash }), "{reasons:?}");
}

#[test]
fn the_digest_of_an_unsigned_zone_is_verified() {
    let contents = zone(&format!("@ ZONEMD 7 1 1 {}", "00".repeat(48)));
    let reasons: Vec<FaultReason> =
        verify(&contents, &VerifyOptions::default()).faults.into_iter().map(|fault| fault.reason).collect();
    assert_eq!(reasons, [FaultReason::ZonemdMismatch { hash: ZonemdHash::Sha384 }]);
    let digest = &zonemd::digest(&contents, &[ZonemdHash::Sha384])[0];
    let right = zone(&format!("@ ZONEMD 7 1 1 {}", data_encoding::HEXUPPER.encode(&digest.1)));
    let report = verify(&right, &VerifyOptions::default());
    assert_eq!((report.faults, report.zonemd, report.mechanism), (vec![], vec![ZonemdHash::Sha384], None));
    // If a trust anchor shows that the zone is signed, the digest is not sufficient.
    let anchors = vec![crate::verify::Anchor::Ds(vec![0; 36])];
    let report = verify(&right, &VerifyOptions { anchors, ..VerifyOptions::default() });
    assert_eq!(report.faults[0].reason, FaultReason::NoDnskey);
}

#[test]
fn the_last_progress_of_verification_is_the_whole_zone() {
    let signed = signed(&zone(&records()), Mechanism::Nsec);
    let told = std::sync::Mutex::new(Vec::new());
    let progress = |at| told.lock().unwrap().push(at);
    let aids = VerifyInputs { progress: Some(&progress), ..VerifyInputs::default() };
    let report = verify_with_inputs(&signed, &VerifyOptions::default(), &aids);
    let told: Vec<crate::verify::VerifyProgress> = told.into_inner().unwrap();
    let names = signed.node_count() as u64;
    assert!(told.iter().all(|at| at.total_names == names));
    assert_eq!(told.iter().map(|at| at.names).max(), Some(names));
    assert_eq!(told.iter().map(|at| at.signatures).max(), Some(report.signatures_verified));
}

#[test]
fn the_example_zones_of_rfc_8976_signed_anew() {
    let Some(folder) = nonesuch_testing::public_data("rfc-zones/test-data") else { return };
    for (file, origin, hashes) in [
        ("example.rfc8976-multiple-digests", "example.", &ZonemdHash::ALL[..]),
        ("root-servers.net.rfc8976", "root-servers.net.", &[ZonemdHash::Sha384]),
        ("uri.arpa.rfc8976", "uri.arpa.", &[ZonemdHash::Sha384]),
    ] {
        let contents = read::read_file(&folder.join(file), Some(&name(origin))).unwrap().contents;
        let mut options = options(Mechanism::Nsec);
        options.drop_foreign_dnskeys = true;
        let signed = sign(&contents, &ksk_and_zsk_of(origin), &options).unwrap();
        let report = report(signed.contents());
        assert_eq!((report.faults, &report.zonemd[..]), (vec![], hashes), "{file}");
        let first =
            signed.contents().apex_rrset(Rtype::ZONEMD).unwrap().rdatas().next().and_then(Zonemd::parse);
        assert_eq!(first.map(|record| record.serial), contents.soa().map(|soa| soa.serial));
    }
}
