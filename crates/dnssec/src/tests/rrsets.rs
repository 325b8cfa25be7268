//! RRsets that the signer repairs or rejects: different TTLs, and more octets than a message can
//! have.

use super::*;
use crate::sign::{PreviousZone, SignError, resign_changes, sign_streaming};
use nonesuch_zone::{ChangeSet, ZoneFault};

/// RFC 2181 §5.2: all records get the lowest TTL, and the signed zone is sound.
#[test]
fn records_of_different_ttls_are_signed_with_the_lowest() {
    let contents = zone("many 600 A 192.0.2.1\nmany 300 A 192.0.2.2");
    for mechanism in NSEC_AND_NSEC3 {
        let signed = signed(&contents, mechanism);
        assert_eq!(node(&signed, "many.example.").rrset(Rtype::A).unwrap().ttl(), 300);
    }
    // The same test with a zone that is already signed.
    let lines = text(&signed(&zone("many A 192.0.2.1\nmany A 192.0.2.2"), Mechanism::Nsec));
    let raised = lines.replacen("many.example.\t3600\tIN\tA\t", "many.example.\t7200\tIN\tA\t", 1);
    let previous = read_zone(&raised, &name("example."));
    let faults =
        [Fault { owner: name("many.example."), rtype: Some(Rtype::A), reason: FaultReason::MixedTtls }];
    assert_eq!(report(&previous).faults, faults);
    assert_sound(&nonesuch_zone::Splice::of(&previous).to_contents().unwrap());
    assert_sound(sign(&previous, &ksk_and_zsk_of("example."), &options(Mechanism::Nsec)).unwrap().contents());
}

/// TXT records that take 65,455 octets with header and question. They fit into a message, but not
/// together with a signature.
fn nearly_a_message(owner: &str) -> String {
    let record = |number: usize| format!("{owner} TXT \"{number:05}{}\"\n", "x".repeat(239));
    let all: String = (0..254).map(record).collect();
    format!("{all}{owner} TXT \"{}\"\n", "y".repeat(137))
}

#[test]
fn an_rrset_that_is_too_large_for_a_message_with_its_signatures_is_an_error() {
    let keys = csk_of("example.");
    let is_too_large = |error: SignError| {
        let fault = match error {
            SignError::Zone(fault) => fault,
            other => panic!("{other:?}"),
        };
        let (owner, rtype) = (name("t.example."), Rtype::TXT);
        assert_eq!(fault, ZoneFault::RrsetTooLarge { owner, rtype, octets: 65_569, is_signed: true });
        assert_eq!(
            fault.to_string(),
            "t.example.: the TXT records with their signatures take a message of 65569 octets, but the maximum is 65535 \
             (RFC 1035 section 4.2.2): remove some, or distribute them over several names"
        );
    };
    let small = zone("t TXT x");
    let large = zone(&nearly_a_message("t"));
    for mechanism in NSEC_AND_NSEC3 {
        is_too_large(sign(&large, &keys, &options(mechanism)).expect_err("too large"));
        let render = |_: &Contents, _: &mut ()| ();
        let take = |_: &mut ()| Ok::<(), SignError>(());
        let streamed = sign_streaming(&large, &keys, &options(mechanism), render, take);
        is_too_large(streamed.expect_err("too large"));
        let previous = sign(&small, &keys, &options(mechanism)).unwrap().into_contents();
        let refresh = PreviousZone { contents: &previous, refresh: 0, verify: false };
        let options = SignOptions { previous: Some(refresh), ..options(mechanism) };
        let changes = ChangeSet::between(&small, &large, |rrset| rrset.rtype() == Rtype::TXT);
        is_too_large(resign_changes(&changes, &keys, &options).expect_err("too large"));
    }
}
