//! Random zones: a signed zone verifies, and a zone that is damaged afterwards does not.

use super::*;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;

/// Owners from a small alphabet, so that zone cuts, DNAMEs, wildcards and empty non-terminals
/// coincide.
pub(super) fn any_zone() -> impl Strategy<Value = String> {
    let label = prop::sample::select(vec!["a", "b", "C", "*", "\\000", "z1"]);
    let owner = prop::collection::vec(label, 1..5).prop_map(|labels| labels.join("."));
    let data = prop::sample::select(vec![
        "A 192.0.2.1",
        "A 192.0.2.2",
        "TXT \"text\"",
        "MX 1 Mail",
        "TYPE65400 \\# 2 0102",
        "NS ns.elsewhere.test.",
        "NS ns.elsewhere.test.",
        "DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000",
        "DNAME target.test.",
    ]);
    prop::collection::vec((owner, data), 0..24)
        .prop_map(|records| records.into_iter().map(|(owner, data)| format!("{owner} {data}\n")).collect())
}

fn any_mechanism() -> impl Strategy<Value = Mechanism> {
    prop::sample::select(NSEC_AND_NSEC3.to_vec())
}

pub(super) fn config(cases: u32, seed: u64) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(seed), ..ProptestConfig::default() }
}

/// Signed records and signatures: node, type, type covered, index in the RRset.
fn protected(contents: &Contents) -> Vec<(usize, Rtype, Rtype, usize)> {
    let mut out = Vec::new();
    for node in contents.nodes() {
        for rrset in node.rrsets() {
            if rrset.rtype() == Rtype::RRSIG || node.signatures(rrset.rtype()).is_some() {
                out.extend((0..rrset.count()).map(|at| (node.index(), rrset.rtype(), rrset.covered(), at)));
            }
        }
    }
    out
}

proptest! {
    #![proptest_config(config(400, 11))]

    #[test]
    fn what_is_signed_verifies(records in any_zone(), mechanism in any_mechanism(), pair: bool, salt: bool) {
        let contents = zone(&records);
        let keys = if pair { ksk_and_zsk_of("example.") } else { csk_of("example.") };
        let mut options = options(mechanism);
        if salt {
            options.nsec3 = Nsec3Params { salt: vec![1, 2], iterations: 1 };
        }
        let signed = sign(&contents, &keys, &options).unwrap();
        let report = report(signed.contents());
        prop_assert_eq!(report.faults, vec![]);
        prop_assert_eq!(report.mechanism, Some(mechanism));
        // The zone is the same after it is written and read. Signing it again generates the same
        // chain.
        let again = read_zone(&text(signed.contents()), contents.apex());
        prop_assert_eq!(text(&again), text(signed.contents()));
        let twice = sign(&again, &keys, &options).unwrap();
        prop_assert_eq!(text(twice.contents()), text(signed.contents()));
    }

    #[test]
    fn a_flipped_bit_is_found(records in any_zone(), mechanism in any_mechanism(), which: Index, octet: Index) {
        let signed = sign(&zone(&records), &csk_of("example."), &options(mechanism)).unwrap();
        let targets = protected(signed.contents());
        let (index, rtype, covered, at) = targets[which.index(targets.len())];
        let mut seen = 0;
        // Flips the lowest bit. The sixth bit distinguishes upper and lower case, which the
        // canonical form removes.
        let damaged = rewrite(signed.contents(), |node, of, covers, rdata| {
            if node.index() == index && (of, covers) == (rtype, covered) {
                if seen == at {
                    let place = octet.index(rdata.len());
                    rdata[place] ^= 1;
                }
                seen += 1;
            }
        });
        prop_assert!(!report(&damaged).has_no_faults());
    }

    #[test]
    fn a_dropped_record_is_missed(records in any_zone(), mechanism in any_mechanism(), which: Index) {
        let bench = Bench::new(&zone(&records), csk_of("example."), mechanism);
        let contents = bench.contents();
        let signed = |line: &&String| {
            let fields = Bench::fields(line);
            let rtype: Rtype = fields[3].parse().unwrap();
            let node = node(&contents, fields[0]);
            // A zone without its SOA record is rejected when it is read.
            rtype != Rtype::SOA && (rtype == Rtype::RRSIG || node.signatures(rtype).is_some())
        };
        let targets: Vec<&String> = bench.lines.iter().filter(signed).collect();
        let dropped = targets[which.index(targets.len())].clone();
        let mut bench = Bench { lines: bench.lines.clone(), ..bench };
        bench.lines.retain(|line| *line != dropped);
        prop_assert!(!bench.faults().is_empty(), "{}", dropped);
    }
}
