//! Faults of the stored proofs of a zone with NSEC5. The zone itself is sound.

use super::nsec5::{NSEC5, take_out};
use super::*;
use crate::keys::Nsec5Key;
use crate::tests::nsec5::{altered, prove, vrf, vrf_of};
use nonesuch_crypto::vrf::VrfAlgorithm;

const PROOF: Option<Rtype> = Some(Rtype::NSEC5PROOF);
const B: &str = "b.example.";
/// Proofs are stored with the zone. "Making NSEC5 Practical for DNSSEC", §5.4, lists the values
/// that can be computed in advance.
const RULE: &str = "draft-vcelak-nsec5-07 §7";

pub(super) const ROWS: &[Row] = &[
    row("stored proof altered", RULE, Scope::Nsec5, |bench| {
        of_b(bench, FaultReason::BadProof, |b, _, proofs| proofs[b][70] ^= 1)
    }),
    row("stored proof that is none", RULE, Scope::Nsec5, |bench| {
        of_b(bench, FaultReason::BadProof, |b, _, proofs| proofs[b].fill(0xff))
    }),
    row("stored proof of another name", RULE, Scope::Nsec5, |bench| {
        let hashed = name(&bench.chain_owner("example."));
        of_b(bench, FaultReason::ProofOfOtherName { hashed }, |b, hashes, proofs| {
            (hashes[b], proofs[b]) = (hashes[0], proofs[0].clone());
        })
    }),
    row("another hash next to a stored proof", RULE, Scope::Nsec5, |bench| {
        of_b(bench, FaultReason::StoredHashMismatch, |b, hashes, _| hashes[b][0] ^= 1)
    }),
    row("stored proof missing", RULE, Scope::Nsec5, |bench| {
        let proofs = proofs_of(bench, &without_b());
        found(B, PROOF, FaultReason::ProofMissing).by(proofs)
    }),
    row("stored proof too much", RULE, Scope::Nsec5, |bench| {
        let proofs = proofs_of(bench, &format!("{RECORDS}\nmore A 192.0.2.1"));
        found("more.example.", PROOF, FaultReason::ProofExtra).by(proofs)
    }),
    row("stored proofs of an older zone", RULE, Scope::Nsec5, |bench| {
        let proofs = proofs_of(bench, &format!("{}\nolder A 192.0.2.1", without_b()));
        found(B, PROOF, FaultReason::ProofMissing)
            .and("older.example.", PROOF, FaultReason::ProofExtra)
            .by(proofs)
    }),
    row("stored proofs of names that opt-out leaves out", RULE, Scope::Nsec5OptOut, |_| {
        let proofs = prove(&zone(RECORDS), &vrf(), Mechanism::Nsec5);
        let names = ["d.example.", "g.example.", "i.un.example."];
        names
            .iter()
            .fold(Found::default(), |all, owner| all.and(owner, PROOF, FaultReason::ProofExtra))
            .by(proofs)
    }),
    row("stored proofs of another key", RULE, Scope::Nsec5, |bench| {
        let other = vrf_of(VrfAlgorithm::P256_SHA256_TAI, 5);
        let proofs = prove(&zone(RECORDS), &other, bench.mechanism);
        found("example.", PROOF, FaultReason::ProofsOfOtherKey { tag: Nsec5Key::of(&other).tag() })
            .warned(VerifyWarning::NamesNotMatched)
            .by(proofs)
    }),
    row("stored proofs of another zone", RULE, Scope::Nsec5, |bench| {
        let other = read_zone("@ 60 SOA a b 1 2 3 4 5\n@ 60 NS a.\n", &name("other."));
        let proofs = prove(&other, &vrf(), bench.mechanism);
        found("example.", PROOF, FaultReason::ProofsOfOtherZone { zone: name("other.") })
            .warned(VerifyWarning::NamesNotMatched)
            .by(proofs)
    }),
    row("name forgotten by chain and proofs", RULE, Scope::Nsec5, forgotten),
];

#[test]
fn faults_of_stored_proofs() {
    plant_all(ROWS);
}

/// If a proof is invalid, the key computes the hash. A key other than that of the chain is not
/// used.
#[test]
fn proofs_and_keys_together() {
    let bench = control(number_for(Algorithm::ED25519, Mechanism::Nsec5), Mechanism::Nsec5);
    let found_by = |proofs, key| {
        let options = VerifyOptions { now: Some(NOW), ..VerifyOptions::default() };
        let report = verify_with(&bench.contents(), &options, &Nsec5Evidence { proofs, key });
        (report.faults, report.warnings)
    };
    let garbage = of_b(&bench, FaultReason::BadProof, |b, _, proofs| proofs[b].fill(0xff));
    let vrf = vrf();
    assert_eq!(found_by(garbage.proofs.as_ref(), Some(&vrf)), (garbage.faults, vec![]));
    let other = vrf_of(VrfAlgorithm::P256_SHA256_TAI, 5);
    assert_eq!(found_by(None, Some(&other)), (vec![], vec![VerifyWarning::NamesNotMatched]));
}

fn without_b() -> String {
    RECORDS.lines().filter(|line| !line.starts_with("b ")).map(|line| format!("{line}\n")).collect()
}

fn proofs_of(bench: &Bench, records: &str) -> Proofs {
    prove(&zone(records), &vrf(), bench.mechanism)
}

/// Modifies the file of proofs: `change` receives the index of the name `b`, and the hashes and
/// proofs of all names.
fn of_b(
    bench: &Bench,
    reason: FaultReason,
    change: impl Fn(usize, &mut [[u8; 32]], &mut [Vec<u8>]),
) -> Found {
    let proofs = bench.proofs.as_deref().unwrap();
    let b = proofs.entries().position(|entry| entry.name == name("b.").view()).unwrap();
    found(B, PROOF, reason).by(altered(proofs, |hashes, proofs| change(b, hashes, proofs)))
}

/// Only the number of records shows the fault, because the hash is unknown. In an opt-out chain the
/// number of records may be correct, but the number of their kind is not.
fn forgotten(bench: &mut Bench) -> Found {
    take_out(bench, B);
    let proofs = proofs_of(bench, &without_b());
    let records = proofs.len() as u64;
    let insecure = if bench.mechanism.is_opt_out() { 3 } else { 0 };
    let reason =
        FaultReason::ChainCount { records, min_names: records + 1, max_names: records + 1 + insecure };
    found("example.", NSEC5, reason).and(B, PROOF, FaultReason::ProofMissing).by(proofs)
}
