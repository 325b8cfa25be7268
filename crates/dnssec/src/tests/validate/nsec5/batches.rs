//! Proofs that are verified in batches, and remembered.

use super::*;
use crate::validate::JobAlgorithm;

/// The proofs of `example.` and of the name are needed.
fn denial(vrf: &Vrf, owner: &str) -> Reply {
    nxdomain(vrf, owner).proved(vrf, "example.", APEX).covered_by(vrf, owner, 0)
}

fn keys_of(reply: &Reply) -> TrustedKeys {
    let mut keys = trust(&reply.signer);
    keys.set_nsec5_keys(reply.nsec5_keys.iter().map(Vec::as_slice), &ValidationLimits::default());
    keys
}

fn pending(reply: &Reply) -> PendingValidation {
    let question = Question { name: reply.name.view(), rtype: reply.rtype };
    PendingValidation::new(question, reply.message().into(), keys_of(reply).into(), NOW)
}

fn memory() -> ValidSignatures {
    ValidSignatures::new(8192, &[7; 16])
}

/// Verifies the jobs of the validations; returns how many proofs were verified.
fn verify(validations: &mut [&mut PendingValidation], valid: &mut ValidSignatures) -> usize {
    let mut proofs = 0;
    verify_jobs(validations.iter_mut().map(|validation| &mut **validation), valid, |algorithm, _| {
        proofs += usize::from(matches!(algorithm, JobAlgorithm::Proof(_)));
    });
    proofs
}

/// Validates with remembered proofs. Returns the result and the number of verified proofs.
fn validate_with_memory(reply: &Reply, valid: &mut ValidSignatures) -> (Validation, usize) {
    let (mut validation, mut budget, mut verified) = (pending(reply), Budget::default(), 0);
    loop {
        if let Some(ended) = validation.step(&mut budget) {
            assert_eq!(budget.spent(), ended.work);
            return (ended, verified);
        }
        assert!(validation.job_count() > 0, "a validation that waits for nothing");
        verified += verify(&mut [&mut validation], valid);
    }
}

#[test]
fn one_batch_has_the_proofs_of_several_responses() {
    let vrfs = [1, 2].map(|seed| Vrf::new(VrfAlgorithm::P256_SHA256_TAI, seed));
    let [mut first, mut second] = vrfs.each_ref().map(|vrf| pending(&denial(vrf, "b.example.")));
    let (mut budgets, mut valid) = ([Budget::default(); 2], memory());
    assert_eq!((first.step(&mut budgets[0]), second.step(&mut budgets[1])), (None, None));
    // No proof is verified for records whose signatures may be bad.
    assert_eq!(verify(&mut [&mut first, &mut second], &mut valid), 0);
    // Without verdicts, another step changes nothing and costs nothing.
    for _ in 0..2 {
        assert_eq!((first.step(&mut budgets[0]), second.step(&mut budgets[1])), (None, None));
        assert_eq!((first.job_count(), second.job_count()), (2, 2));
        assert_eq!(budgets.map(|budget| budget.spent().proofs), [2, 2]);
    }
    assert_eq!(verify(&mut [&mut first, &mut second], &mut valid), 4);
    let ended = [first.step(&mut budgets[0]), second.step(&mut budgets[1])];
    let proved = ended.map(|validation| validation.and_then(|validation| validation.proved));
    assert_eq!(proved, [Some(ProvedAnswer::NxDomain), Some(ProvedAnswer::NxDomain)]);
    assert_eq!(budgets.map(|budget| budget.spent().proofs), [2, 2]);
}

#[test]
fn valid_proofs_are_remembered_and_charged() {
    for entry in &VRF_ALGORITHMS {
        let (vrf, mut valid) = (Vrf::new(entry.algorithm, 3), memory());
        for (owner, expected) in [("b.example.", 2), ("c.example.", 1), ("b.example.", 0)] {
            let (validation, verified) = validate_with_memory(&denial(&vrf, owner), &mut valid);
            assert_eq!(validation.proved, Some(ProvedAnswer::NxDomain), "{}", entry.name);
            assert_eq!((verified, validation.work.proofs), (expected, 2), "{} {owner}", entry.name);
        }
    }
}

#[test]
fn invalid_proofs_are_not_remembered() {
    let (vrf, mut valid) = (Vrf::first(), memory());
    let bad = denial(&vrf, "b.example.").altered(proof_of("b.example."), |record| record.rdata[60] ^= 1);
    for expected in [2, 1, 1] {
        let (validation, verified) = validate_with_memory(&bad, &mut valid);
        let reason = BogusReason::BadProof(name("b.example."));
        assert_eq!((validation.status, verified), (SecurityStatus::Bogus(reason), expected));
    }
}

/// The remembered proofs are valid for one name and one key, whatever the tag in the record is.
#[test]
fn remembered_proofs_are_not_valid_for_other_names_and_keys() {
    let [vrf, other] = [1, 2].map(|seed| Vrf::new(VrfAlgorithm::P256_SHA256_TAI, seed));
    let mut valid = memory();
    let sound = denial(&vrf, "b.example.");
    assert_eq!(validate_with_memory(&sound, &mut valid).0.status, SecurityStatus::Secure);

    let bad = || SecurityStatus::Bogus(BogusReason::BadProof(name("c.example.")));
    let renamed = sound.clone().altered(proof_of("b.example."), |record| record.owner = name("c.example."));
    let renamed = Reply { name: name("c.example."), ..renamed };
    assert_eq!(validate_with_memory(&renamed, &mut valid).0.status, bad());

    // The zone has another key now. The proof has its tag, and the same octets as before.
    let rekeyed = denial(&other, "b.example.").altered(proof_of("b.example."), |record| {
        record.rdata = [&other.record.tag().to_be_bytes()[..], &vrf.prove("b.example.").0].concat();
    });
    let bad = SecurityStatus::Bogus(BogusReason::BadProof(name("b.example.")));
    assert_eq!(validate_with_memory(&rekeyed, &mut valid).0.status, bad);
    let sound = denial(&other, "b.example.");
    assert_eq!(validate_with_memory(&sound, &mut valid).0.status, SecurityStatus::Secure);
}

/// Responses with random changes in their proofs: the results are those of [`validate`], with the
/// same memory for all of them.
#[test]
fn changed_proofs_have_the_same_results_as_without_batches() {
    let vrfs = [VrfAlgorithm::P256_SHA256_TAI, VrfAlgorithm::EDWARDS25519_SHA512_ELL2]
        .map(|algorithm| Vrf::new(algorithm, 5));
    let mut draws =
        (0_u32..).map(|index| nonesuch_crypto::DigestType::SHA256.digest(&[&index.to_be_bytes()]));
    let mut below = |limit: usize| usize::from(draws.next().flatten().expect("a digest")[0]) % limit;
    let (mut valid, mut secure) = (memory(), 0);
    for round in 0..60 {
        let owner = ["b.example.", "c.example.", "d.example."][below(3)];
        let mut reply = denial(&vrfs[round % 2], owner);
        for record in reply.records.iter_mut().filter(|record| record.rtype == Rtype::NSEC5PROOF) {
            let place = below(record.rdata.len());
            match below(5) {
                0 => record.rdata[place] ^= 1 << below(8),
                1 => record.rdata.truncate(place),
                _ => {}
            }
        }
        let expected = validate(
            Question { name: reply.name.view(), rtype: reply.rtype },
            &reply.message(),
            &keys_of(&reply),
            NOW,
            &mut Budget::default(),
        );
        let (found, _) = validate_with_memory(&reply, &mut valid);
        assert!((expected.work.proofs..=2).contains(&found.work.proofs));
        secure += usize::from(found.status == SecurityStatus::Secure);
        assert_eq!(Validation { work: expected.work, ..found }, expected);
    }
    assert!((15..45).contains(&secure), "{secure} of 60");
}
