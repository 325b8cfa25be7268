//! Verification of the next version of a zone with a verified predecessor: it reports the same
//! faults as a full verification. The table of faults (`faults`) also plants every class as a
//! change.

use super::random::{any_zone, config};
use super::*;
use crate::sign::PreviousZone;
use crate::verify::{
    FaultyZone, Mode, VerifiedPredecessor, VerifyInputs, VerifyProgress, VerifyWarning, into_verified,
    into_verified_with, verify_with_inputs,
};
use nonesuch_zone::change::{ChangeSet, SerialRule};
use proptest::prelude::*;
use proptest::sample::Index;

const DAY: u32 = 86_400;
const RECORDS: &str = "a A 192.0.2.1\nb A 192.0.2.1\nb TXT \"t\"\nd NS ns.d\nns.d A 192.0.2.9\n\
    s NS ns.elsewhere.test.\ns DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000\n*.w A 192.0.2.1";

fn at(now: u32) -> VerifyOptions {
    VerifyOptions { now: Some(now), ..VerifyOptions::default() }
}

fn known(earlier: VerifiedPredecessor<'_>) -> VerifyInputs<'_> {
    VerifyInputs { predecessor: Some(earlier), ..VerifyInputs::default() }
}

fn by_change(old: &Contents, old_time: u32, new: &Contents, now: u32) -> Report {
    verify_with_inputs(new, &at(now), &known(VerifiedPredecessor::assume_verified(old, Some(old_time))))
}

/// The parts of a report that must be equal for both kinds of verification. The signatures are the
/// sum of those verified and those reused.
fn said(report: &Report) -> (&[Fault], &[VerifyWarning], u64, u64, Option<Mechanism>) {
    let signatures = report.signatures_verified + report.signatures_kept;
    (&report.faults, &report.warnings, signatures, report.rrsets, report.mechanism)
}

/// Signs the zone deterministically: signatures over the same records are the same.
fn signed_with(contents: &Contents, keys: &KeySet, mechanism: Mechanism) -> Contents {
    sign(contents, keys, &options(mechanism)).unwrap().into_contents()
}

/// Number of RRSIG records that both versions have over the same records.
fn count_kept(old: &Contents, new: &Contents) -> u64 {
    let mut kept = 0;
    for node in new.nodes() {
        let Ok(before) = old.find(node.name()) else { continue };
        for set in node.rrsets().filter(|rrset| rrset.rtype() == Rtype::RRSIG) {
            let find = |node: Node<'_>| -> Option<Vec<Vec<u8>>> {
                Some(node.rrset(set.covered())?.rdatas().map(<[u8]>::to_vec).collect())
            };
            let others = before.signatures(set.covered()).filter(|_| find(before) == find(node));
            let others: Vec<&[u8]> = others.into_iter().flat_map(|set| set.rdatas()).collect();
            kept += set.rdatas().filter(|rdata| others.contains(rdata)).count() as u64;
        }
    }
    kept
}

#[test]
fn only_what_changed_is_verified() {
    for mechanism in NSEC_AND_NSEC3 {
        let keys = ksk_and_zsk_of("example.");
        let old = signed_with(&zone(RECORDS), &keys, mechanism);
        let new = signed_with(&zone(&format!("{RECORDS}\nb MX 1 m\nx.new A 192.0.2.4")), &keys, mechanism);
        let report = by_change(&old, NOW, &new, NOW + 1);
        assert_eq!((&report.faults[..], &report.warnings[..]), (&[][..], &[][..]));
        let whole = verify(&new, &at(NOW + 1));
        assert_eq!(report.signatures_kept, count_kept(&old, &new));
        assert_eq!(report.signatures_verified + report.signatures_kept, whole.signatures_verified);
        assert!(report.signatures_verified < 12 && report.signatures_kept > 8, "{report:?}");
        assert!(!report.keys_changed);
        assert_eq!(by_change(&new, NOW, &new, NOW).signatures_verified, 0);
    }
}

#[test]
fn other_keys_have_everything_verified() {
    let (one, other) = (csk_of("example."), ksk_and_zsk_of("example."));
    let (old, new) = (
        signed_with(&zone(RECORDS), &one, NSEC_AND_NSEC3[0]),
        signed_with(&zone(RECORDS), &other, NSEC_AND_NSEC3[0]),
    );
    let report = by_change(&old, NOW, &new, NOW);
    assert_eq!((report.signatures_kept, report.keys_changed, report.has_no_faults()), (0, true, true));
    assert_eq!(report.signatures_verified, verify(&new, &at(NOW)).signatures_verified);
    // Another zone or an unsigned zone as the predecessor saves no verification either.
    let elsewhere = read_zone("@ 60 SOA . . 1 1 1 1 1\n@ 60 NS .\n", &name("other."));
    for old in [elsewhere, zone(RECORDS)] {
        let report = by_change(&old, NOW, &new, NOW);
        assert_eq!((report.signatures_kept, report.keys_changed, report.has_no_faults()), (0, true, true));
    }
}

/// A signature that was not valid yet, in addition to a valid one, was never verified.
#[test]
fn a_signature_that_was_not_looked_at_is_verified_when_its_time_comes() {
    let mut bench = Bench::new(&zone(RECORDS), csk_of("example."), Mechanism::Nsec);
    bench.sign_more("b.example.", Rtype::A, |fields| fields.inception = NOW + DAY);
    let line = bench.lines.pop().unwrap();
    // The signature of another RRset replaces it.
    let good = bench.lines.iter().find(|line| Bench::is_signature(line, "a.example.", "A")).unwrap();
    let octets = |line: &str| line.rsplit_once(' ').unwrap().1.to_owned();
    bench.lines.push(line.replace(&octets(&line), &octets(good)));
    let old = bench.contents();
    let before = verify(&old, &at(NOW));
    assert!(
        before.has_no_faults() && matches!(before.warnings[..], [VerifyWarning::SurplusSignature { .. }])
    );
    for now in [NOW, NOW + DAY] {
        let (full, changed) = (verify(&old, &at(now)), by_change(&old, NOW, &old, now));
        assert_eq!(said(&changed), said(&full));
        assert_eq!(changed.has_no_faults(), now == NOW);
    }
    // A verification without regard to times verifies every signature and finds this fault.
    assert!(!verify(&old, &VerifyOptions::default()).has_no_faults());
}

#[test]
fn of_keys_with_one_tag_nothing_is_known() {
    let mut bench = Bench::new(&zone(RECORDS), csk_of("example."), Mechanism::Nsec);
    let rdata = bench.keys.keys()[0].dnskey_rdata();
    let mut twin = rdata.clone();
    // The tag is a sum of words in any order (RFC 4034, appendix B).
    twin[4..8].rotate_left(2);
    assert_ne!(twin, rdata);
    let mut text = Vec::new();
    rdata::push_text(Rtype::DNSKEY, &twin, &mut text);
    bench.add(&format!("example. 3600 IN DNSKEY {}", String::from_utf8(text).unwrap()));
    bench.sign_again("example.", Rtype::DNSKEY, |_| {});
    let contents = bench.contents();
    let (full, changed) = (verify(&contents, &at(NOW)), by_change(&contents, NOW, &contents, NOW));
    assert!(full.has_no_faults(), "{full:?}");
    assert_eq!(said(&changed), said(&full));
    assert_eq!((changed.signatures_kept, changed.keys_changed), (0, false));
}

#[test]
fn the_next_versions_are_verified_by_the_ones_before() {
    let keys = csk_of("example.");
    let old = signed_with(&zone(RECORDS), &keys, Mechanism::Nsec);
    let structural = VerifyOptions { mode: Mode::Structural, ..at(NOW) };
    let mut verified = into_verified(old, &at(NOW)).unwrap();
    for version in 1..4 {
        let records = format!("{RECORDS}\nb TXT \"{version}\"");
        let next = signed_with(&zone(&records), &keys, Mechanism::Nsec);
        let earlier = VerifiedPredecessor::assume_verified(verified.contents(), Some(NOW));
        // The mode of the options is ignored: the verification with a predecessor is always full.
        let changed = into_verified_with(next, &structural, &known(earlier)).unwrap();
        assert_eq!(changed.report().signatures_verified, 1, "{version}");
        verified = changed;
    }
    let mut bench = Bench::new(&zone(RECORDS), csk_of("example."), Mechanism::Nsec);
    bench.edit("b.example.", "A", |_| "192.0.2.2".to_owned());
    let earlier = VerifiedPredecessor::assume_verified(verified.contents(), Some(NOW));
    let FaultyZone { contents, report } =
        *into_verified_with(bench.contents(), &at(NOW), &known(earlier)).unwrap_err();
    assert_eq!(text(&contents), text(&bench.contents()));
    assert_eq!(report.faults, verify(&contents, &at(NOW)).faults);
    // An unsigned zone is accepted after a signed one in the same way as without a predecessor.
    let unsigned = into_verified_with(zone(RECORDS), &at(NOW), &known(earlier)).unwrap();
    assert_eq!(unsigned.mechanism(), None);
}

#[test]
fn progress_counts_what_is_kept_too() {
    let old = signed_with(&zone(RECORDS), &csk_of("example."), Mechanism::Nsec);
    let seen = std::sync::Mutex::new((0, 0));
    let tell = |at: VerifyProgress| {
        let mut seen = seen.lock().unwrap();
        *seen = (seen.0.max(at.names), seen.1.max(at.signatures));
    };
    let earlier = Some(VerifiedPredecessor::assume_verified(&old, Some(NOW)));
    let aids = VerifyInputs { predecessor: earlier, progress: Some(&tell), ..VerifyInputs::default() };
    let verified = into_verified_with(old.clone(), &at(NOW), &aids).unwrap();
    let kept = verified.report().signatures_kept;
    assert_eq!(*seen.lock().unwrap(), (old.node_count() as u64, kept));
    assert!(kept > 10);
}

proptest! {
    #![proptest_config(config(300, 31))]

    /// Random zones. The second version reuses valid signatures of the first, and one bit is
    /// flipped in one or both versions.
    #[test]
    fn a_change_is_judged_as_the_whole_zone_is(
        records in any_zone(),
        more in any_zone(),
        cut in any::<Index>(),
        mechanism in prop::sample::select(NSEC_AND_NSEC3.to_vec()),
        pair: bool,
        days in 0_u32..16,
        damage in prop::option::of((any::<Index>(), any::<Index>(), any::<Index>())),
    ) {
        let keys = if pair { ksk_and_zsk_of("example.") } else { csk_of("example.") };
        let lines: Vec<&str> = records.lines().collect();
        let kept = &lines[..lines.len() - if lines.is_empty() { 0 } else { cut.index(lines.len()) }];
        let (before, after) = (zone(&records), zone(&format!("{}\n{more}", kept.join("\n"))));
        let mut first = options(mechanism);
        first.jitter = 10 * DAY;
        let old = sign(&before, &keys, &first).unwrap().into_contents();
        let now = NOW + days * DAY;
        let mut second = SignOptions { now, ..SignOptions::new(mechanism, now - 3600, now + 14 * DAY) };
        second.previous = Some(PreviousZone { contents: &old, refresh: DAY, verify: false });
        let new = sign(&after, &keys, &second).unwrap().into_contents();
        let new = damage.map_or_else(|| new.clone(), |(node, rrset, octet)| turn_bit(&new, node, rrset, octet));
        let (full, changed) = (verify(&new, &at(now)), by_change(&old, NOW, &new, now));
        prop_assert_eq!(said(&changed), said(&full));
        prop_assert_eq!(&changed.zonemd, &full.zonemd);
        if !changed.keys_changed {
            prop_assert!(changed.signatures_kept <= count_kept(&old, &new));
        }
        if damage.is_none() {
            prop_assert!(full.has_no_faults(), "{:?}", full.faults);
            // The serials and therefore the SOA records differ. The signatures over the key set are
            // reused while they are valid.
            prop_assert_eq!(changed.signatures_kept, count_kept(&old, &new));
        }
        // The zone that results from applying a change set to the previous version, as in a
        // transfer, is the same.
        let set = ChangeSet::between(&old, &new, |_| true);
        if let Ok(applied) = set.apply(&old, SerialRule::Exact) {
            let changed = by_change(&old, NOW, &applied, now);
            prop_assert_eq!(said(&changed), said(&full));
        }
    }
}

/// Flips the lowest bit of an octet of the first record of one RRset.
fn turn_bit(contents: &Contents, node: Index, rrset: Index, octet: Index) -> Contents {
    let node = node.index(contents.node_count());
    let rrset = rrset.index(contents.node(node).rrsets().count());
    let wanted = contents.node(node).rrsets().nth(rrset).map(|rrset| (rrset.rtype(), rrset.covered()));
    let mut is_done = false;
    rewrite(contents, |of, rtype, covered, rdata| {
        if of.index() == node && wanted == Some((rtype, covered)) && !is_done && !rdata.is_empty() {
            let place = octet.index(rdata.len());
            rdata[place] ^= 1;
            is_done = true;
        }
    })
}
