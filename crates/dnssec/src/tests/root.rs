//! The root zone of August 2017.

use super::*;
use crate::verify::Anchor;
use nonesuch_crypto::ALGORITHMS;

/// 2017-08-22 00:00:00.
const TIME: u32 = 1_503_360_000;

/// The zone and the number of RRSIG records in its text.
fn root() -> Option<(Contents, u64)> {
    let text = std::fs::read_to_string(nonesuch_testing::public_data("root-zone/2017-root.zone")?).unwrap();
    let signatures =
        text.lines().filter(|line| line.split_ascii_whitespace().nth(3) == Some("RRSIG")).count();
    Some((read_zone(&text, &Name::root()), signatures as u64))
}

fn root_options() -> VerifyOptions {
    // KSK-2010 and KSK-2017, as IANA publishes them.
    let ds = [
        "4A5C080249AAC11D7B6F6446702E54A1607371607A1A41855200FD2CE1CDDE32F24E8FB5",
        "4F660802E06D44B80B8F1D39A95C0B0D7C65D08458E880409BBC683457104237C7F8EC8D",
    ];
    let anchors = ds.iter().map(|hex| Anchor::Ds(data_encoding::HEXUPPER.decode(hex.as_bytes()).unwrap()));
    VerifyOptions { now: Some(TIME), anchors: anchors.collect(), ..VerifyOptions::default() }
}

#[test]
fn the_root_zone_of_2017_is_verified_whole() {
    let Some((contents, signatures)) = root() else { return };
    let report = verify(&contents, &root_options());
    assert_eq!(report.faults, []);
    assert_eq!(report.mechanism, Some(Mechanism::Nsec));
    assert_eq!(report.signatures_verified, signatures);
    assert_eq!(signatures, 2950);
}

#[test]
fn the_root_zone_expires() {
    let Some((contents, signatures)) = root() else { return };
    let options = VerifyOptions { now: Some(TIME + 30 * 86_400), ..root_options() };
    let report = verify(&contents, &options);
    let expired =
        report.faults.iter().filter(|fault| matches!(fault.reason, FaultReason::Expired { .. })).count();
    assert_eq!(expired as u64, signatures);
    let options = VerifyOptions { now: None, ..root_options() };
    assert!(verify(&contents, &options).has_no_faults());
}

#[test]
fn one_flipped_bit_in_the_root_zone_is_reported() {
    let Some((contents, _)) = root() else { return };
    // Every signed RRset and the signatures themselves. A sample of them is damaged one by one.
    let mut targets = Vec::new();
    for node in contents.nodes() {
        for rrset in node.rrsets() {
            if rrset.rtype() == Rtype::RRSIG || node.signatures(rrset.rtype()).is_some() {
                targets.push((node.index(), rrset.rtype(), rrset.covered()));
            }
        }
    }
    for (round, &(index, rtype, covered)) in targets.iter().step_by(targets.len() / 12).enumerate() {
        let mut done = false;
        let damaged = rewrite(&contents, |node, of, covers, rdata| {
            if !done && node.index() == index && (of, covers) == (rtype, covered) {
                let place = round * 7 % rdata.len();
                rdata[place] ^= 1;
                done = true;
            }
        });
        let report = verify(&damaged, &root_options());
        let owner = contents.node(index).name();
        let named =
            report.faults.iter().any(|fault| fault.owner.view() == owner && fault.rtype == Some(covered));
        assert!(named, "{owner} {rtype} {covered} {:?}", report.faults);
    }
}

#[test]
fn the_unsigned_root_zone_can_be_signed_with_all_combinations() {
    let Some((contents, _)) = root() else {
        return;
    };
    let wanted = [Algorithm::RSASHA256, Algorithm::ECDSAP256SHA256, Algorithm::ED25519];
    for algorithm in wanted {
        assert!(ALGORITHMS.iter().any(|entry| entry.algorithm == algorithm));
        let make = |flags| KeyPair::generate(&Name::root(), flags, algorithm, None).unwrap();
        let keys = KeySet::new(&Name::root(), vec![make(257), make(256)]).unwrap();
        for mechanism in NSEC_AND_NSEC3 {
            let mut options = options(mechanism);
            options.drop_foreign_dnskeys = true;
            let signed = sign(&contents, &keys, &options).unwrap();
            let report = report(signed.contents());
            assert_eq!((report.faults, report.warnings), (vec![], vec![]));
            assert_eq!(report.mechanism, Some(mechanism));
            assert_eq!(report.signatures_verified, signed.statistics().signatures);
        }
    }
}

#[test]
fn foreign_keys_of_the_root_zone_are_errors() {
    let Some((contents, _)) = root() else { return };
    let error = sign(&contents, &csk_of("."), &options(Mechanism::Nsec)).unwrap_err();
    assert!(matches!(error, SignError::ForeignKey { algorithm: Algorithm::RSASHA256, .. }), "{error}");
}
