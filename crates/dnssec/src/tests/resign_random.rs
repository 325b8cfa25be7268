//! Random zones and random edits. Both methods of incremental signing generate the same zone as
//! signing from scratch, apart from the signatures that they reuse. They make no unnecessary
//! signature.

use super::*;
use crate::sign::{
    IncrementalResult, PreviousZone, resign_changes, resign_stored, resign_stored_with_contents,
};
use nonesuch_zone::change::{SerialRule, is_data};
use nonesuch_zone::write::write_splice;
use nonesuch_zone::{ChangeSet, StoredZone, Verification, compiled};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const DAY: u32 = 86_400;

/// A record: owner below `example.`, TTL, type and RDATA.
type Line = (String, u32, &'static str);

/// Owners from a small alphabet, so that zone cuts, DNAMEs, wildcards and empty non-terminals
/// coincide, and so that an owner can equal that of an NSEC3 record.
fn any_owner() -> impl Strategy<Value = String> {
    let mut labels: Vec<String> = ["a", "b", "C", "*", "\\000", "z1"].map(str::to_owned).to_vec();
    for owner in ["a.example.", "example."] {
        labels.push(hashed(owner).trim_end_matches(".example.").to_owned());
    }
    let labels = prop::sample::select(labels);
    let below = prop::collection::vec(labels, 1..5).prop_map(|labels| labels.join("."));
    prop_oneof![20 => below, 1 => Just("@".to_owned())]
}

fn any_line() -> impl Strategy<Value = Line> {
    let data = prop::sample::select(vec![
        "A 192.0.2.1",
        "A 192.0.2.2",
        "TXT \"text\"",
        "MX 1 Mail",
        "TYPE65400 \\# 2 0102",
        "NS ns.elsewhere.test.",
        "NS ns.elsewhere.test.",
        "NS NS2.elsewhere.test.",
        "DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000",
        "DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000000",
        "DNAME target.test.",
    ]);
    (any_owner(), prop::sample::select(vec![3600, 3600, 600]), data)
}

/// An edit of a record.
#[derive(Clone, Copy, Debug)]
enum Edit {
    Keep,
    Drop,
    /// Writes the owner in upper case.
    Raise,
    Ttl,
}

fn any_edits() -> impl Strategy<Value = Vec<Edit>> {
    let edit = prop_oneof![12 => Just(Edit::Keep), 2 => Just(Edit::Drop), 1 => Just(Edit::Raise), 1 => Just(Edit::Ttl)];
    prop::collection::vec(edit, 24)
}

fn edited(lines: &[Line], edits: &[Edit], more: &[Line]) -> Vec<Line> {
    let kept = lines.iter().zip(edits).filter_map(|((owner, ttl, data), edit)| match edit {
        Edit::Keep => Some((owner.clone(), *ttl, *data)),
        Edit::Drop => None,
        Edit::Raise => Some((owner.to_uppercase(), *ttl, *data)),
        Edit::Ttl => Some((owner.clone(), 1200, *data)),
    });
    kept.chain(more.iter().cloned()).collect()
}

/// The zone of these records with this serial and SOA minimum.
fn zone_with(lines: &[Line], serial: u32, minimum: u32) -> Contents {
    let mut text = format!(
        "$ORIGIN example.\n@ 3600 SOA ns1 hostmaster {serial} 3600 300 3600000 {minimum}\n@ 3600 NS ns.elsewhere.test.\n"
    );
    // DS records of the apex belong to the parent zone (RFC 4035 §2.4), and the verifier reports
    // them.
    let is_ours = |(owner, _, data): &&Line| *owner != "@" || !data.starts_with("DS ");
    for (owner, ttl, data) in lines.iter().filter(is_ours) {
        text += &format!("{owner} {ttl} {data}\n");
    }
    read_zone(&text, &name("example."))
}

/// Parameters of the first and second signing.
#[derive(Clone, Debug)]
struct SigningParameters {
    mechanism: Mechanism,
    has_zsk: bool,
    has_salt: bool,
    minimum: u32,
}

impl SigningParameters {
    fn keys(&self) -> KeySet {
        if self.has_zsk { ksk_and_zsk_of("example.") } else { csk_of("example.") }
    }

    fn options(&self, now: u32) -> SignOptions<'static> {
        let mut options = SignOptions::new(self.mechanism, now - 3600, now + 14 * DAY);
        options.now = now;
        options.jitter = 10 * DAY;
        // The second signing may use other keys.
        options.allow_unsafe_transition = true;
        if self.has_salt {
            options.nsec3 = Nsec3Params { salt: vec![1, 2], iterations: 1 };
        }
        options
    }
}

fn any_parameters() -> impl Strategy<Value = SigningParameters> {
    (prop::sample::select(NSEC_AND_NSEC3.to_vec()), any::<bool>(), any::<bool>()).prop_map(
        |(mechanism, has_zsk, has_salt)| SigningParameters { mechanism, has_zsk, has_salt, minimum: 900 },
    )
}

/// Two equal parameters, or sometimes two different ones.
fn any_two_parameters() -> impl Strategy<Value = (SigningParameters, SigningParameters)> {
    let minimum = prop::sample::select(vec![900, 900, 300]);
    let other = (any_parameters(), minimum)
        .prop_map(|(parameters, minimum)| SigningParameters { minimum, ..parameters });
    (any_parameters(), other, 0..4).prop_map(|(first, other, same)| {
        let second = if same > 0 { first.clone() } else { other };
        (first, second)
    })
}

/// Asserts that each signature of `new` equals that of `old` if that one is still suitable.
fn assert_minimal(old: &Contents, new: &Contents, now: u32, refresh: u32, generated: u64) {
    let mut missing = 0;
    for node in new.nodes() {
        for rrset in node.rrsets().filter(|rrset| rrset.rtype() == Rtype::RRSIG) {
            let before = old.find(node.name()).ok();
            let find = |rtype| before.and_then(|node| node.rrset(rtype));
            let same = find(rrset.covered())
                .zip(node.rrset(rrset.covered()))
                .is_some_and(|(a, b)| a.ttl() == b.ttl() && a.rdatas().eq(b.rdatas()));
            let olds: Vec<&[u8]> = before
                .filter(|_| same)
                .and_then(|node| node.signatures(rrset.covered()))
                .map_or_else(Vec::new, |signatures| signatures.rdatas().collect());
            for rdata in rrset.rdatas() {
                let fields = Rrsig::parse(rdata).unwrap();
                let good = olds.iter().find(|old| {
                    let old = Rrsig::parse(old).unwrap();
                    old.tag == fields.tag && old.expiration > now + refresh
                });
                match good {
                    Some(good) => assert_eq!(*good, rdata, "{}", node.name().to_name()),
                    None => missing += 1,
                }
            }
        }
    }
    assert_eq!(missing, generated);
}

/// The text of the zone without the RDATA of its signatures.
fn unsigned_text(contents: &Contents) -> String {
    let cut = |line: &str| match line.split_once("\tRRSIG\t") {
        Some((head, rdata)) => format!("{head}\tRRSIG\t{}\n", rdata.split(' ').next().unwrap_or("")),
        None => format!("{line}\n"),
    };
    text(contents).lines().map(cut).collect()
}

fn changes_text(changes: &ChangeSet) -> String {
    let mut out = Vec::new();
    changes.write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn config(cases: u32, seed: u64) -> ProptestConfig {
    ProptestConfig { cases, rng_seed: RngSeed::Fixed(seed), ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config(800, 21))]

    #[test]
    fn incremental_signing_gives_the_same_zone_as_signing(
        lines in prop::collection::vec(any_line(), 0..24),
        edits in any_edits(),
        more in prop::collection::vec(any_line(), 0..5),
        (first, second) in any_two_parameters(),
        days in 0_u32..8,
        octets in 1_u32..2000,
        verify_all in any::<bool>(),
    ) {
        let (before, after) = (zone_with(&lines, 7, 900), zone_with(&edited(&lines, &edits, &more), 9, second.minimum));
        let old = sign(&before, &first.keys(), &first.options(NOW)).unwrap().into_contents();
        let (keys, now, refresh) = (second.keys(), NOW + days * DAY, 3 * DAY);
        let mut options = second.options(now);
        options.drop_foreign_dnskeys = true;
        let whole = sign(&after, &keys, &options).unwrap();
        options.previous = Some(PreviousZone { contents: &old, refresh, verify: verify_all });

        let resigned = sign(&after, &keys, &options).unwrap();
        let report = verify(resigned.contents(), &VerifyOptions { now: Some(now), ..VerifyOptions::default() });
        prop_assert_eq!(report.faults, vec![]);
        prop_assert_eq!(resigned.statistics().serial, 9);
        prop_assert_eq!(unsigned_text(resigned.contents()), unsigned_text(whole.contents()));
        assert_minimal(&old, resigned.contents(), now, refresh, resigned.statistics().signatures);

        let changes = ChangeSet::between(&before, &after, is_data);
        let updated = resign_changes(&changes, &keys, &options).unwrap().unwrap();
        prop_assert_eq!(updated.statistics().records, resigned.contents().record_count());
        let mut image = Vec::new();
        compiled::write_splice(&updated.splice(), Verification::Nothing, &mut image).unwrap();
        let (read, _) = compiled::read(&image).unwrap();
        prop_assert_eq!(text(&read), text(resigned.contents()));
        let same_chain = (first.mechanism, first.minimum) == (second.mechanism, second.minimum)
            && (first.has_salt == second.has_salt || first.mechanism == Mechanism::Nsec);
        let apex_dname = before.node(0).has(Rtype::DNAME) != after.node(0).has(Rtype::DNAME);
        if same_chain && !apex_dname {
            prop_assert!(updated.names_planned().is_some());
            let (a, b) = (updated.statistics(), resigned.statistics());
            prop_assert_eq!(a, b);
        }
        // The same test with a compiled zone in chunks of a few names. No more chunks are loaded
        // than necessary.
        let mut image = Vec::new();
        compiled::write_in_chunks(&old, Verification::Nothing, octets, &mut image).unwrap();
        let zone = StoredZone::of_octets(image).unwrap();
        match resign_stored(&zone, &changes, &keys, &options).unwrap() {
            IncrementalResult::Signed(parts) => {
                prop_assert_eq!((parts.statistics(), parts.names_planned()), (updated.statistics(), updated.names_planned()));
                let mut image = Vec::new();
                compiled::write_splice(&parts.splice(), Verification::Nothing, &mut image).unwrap();
                prop_assert_eq!(text(&compiled::read(&image).unwrap().0), text(resigned.contents()));
                prop_assert_eq!(changes_text(&parts.changes()), changes_text(&updated.changes()));
            }
            outcome => prop_assert!(updated.names_planned().is_none(), "{:?}", outcome),
        }
        // The same test with the two zone files. The signed file is read only where the files
        // differ.
        let compared = compiled::compare_octets(text(&old).into_bytes(), &after).unwrap().unwrap();
        match resign_stored_with_contents(&compared.previous, &compared.changes, &after, &keys, &options).unwrap() {
            IncrementalResult::Signed(parts) => {
                prop_assert_eq!(parts.statistics(), updated.statistics());
                let mut out = Vec::new();
                write_splice(&parts.splice(), &mut out).unwrap();
                prop_assert_eq!(String::from_utf8(out).unwrap(), text(resigned.contents()));
                prop_assert_eq!(changes_text(&parts.changes()), changes_text(&updated.changes()));
            }
            outcome => prop_assert!(updated.names_planned().is_none(), "{:?}", outcome),
        }
        let replayed = updated.changes().apply(&old, SerialRule::Exact).unwrap();
        let updated = updated.into_signed().unwrap();
        prop_assert_eq!(text(updated.contents()), text(resigned.contents()));
        prop_assert_eq!(text(&replayed), text(updated.contents()));
    }
}
