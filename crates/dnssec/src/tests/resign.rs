//! Signing a zone again: reused signatures, new signatures, and the serial.

use super::*;
use crate::sign::{
    IncrementalResult, PreviousZone, SerialPolicy, SignError, SignWarning, is_current, resign,
    resign_changes, resign_stored, resign_stored_with_contents,
};
use nonesuch_zone::change::is_data;
use nonesuch_zone::{ChangeSet, CompiledError, StoredZone, Verification, compiled};

const DAY: u32 = 86_400;
const PERIOD: u32 = EXPIRATION - INCEPTION;
const RECORDS: &str = "a A 192.0.2.1\nb NS ns.elsewhere.test.\nc A 192.0.2.3\nd NS ns.elsewhere.test.\nd DS 1 13 2 \
    0000000000000000000000000000000000000000000000000000000000000000\ne TXT \"e\"\n";

/// Options for signing `days` days after [`NOW`], with a previous zone.
fn options_after(mechanism: Mechanism, previous: &Contents, days: u32) -> SignOptions<'_> {
    let now = NOW + days * DAY;
    let mut options = SignOptions::new(mechanism, now - 3600, now + 14 * DAY);
    options.now = now;
    options.previous = Some(PreviousZone::new(previous, PERIOD));
    options
}

/// Asserts that the zone has neither faults nor warnings at `now`.
fn assert_sound_at(contents: &Contents, now: u32) {
    let report = verify(contents, &VerifyOptions { now: Some(now), ..VerifyOptions::default() });
    assert_eq!((report.faults, report.warnings), (vec![], vec![]), "{}", text(contents));
}

/// Each RRSIG record: owner, type covered, RDATA.
fn signatures(contents: &Contents) -> Vec<(Name, Rtype, Vec<u8>)> {
    let rrsets = contents.nodes().flat_map(|node| node.rrsets().map(move |rrset| (node, rrset)));
    let signatures = rrsets.filter(|(_, rrset)| rrset.rtype() == Rtype::RRSIG);
    signatures
        .flat_map(|(node, rrset)| {
            rrset.rdatas().map(move |rdata| (node.name().to_name(), rrset.covered(), rdata.to_vec()))
        })
        .collect()
}

/// Owner and type covered of the signatures of `new` that `old` does not have.
fn new_signatures(old: &Contents, new: &Contents) -> Vec<(String, Rtype)> {
    let before = signatures(old);
    let added = signatures(new).into_iter().filter(|signature| !before.contains(signature));
    added.map(|(owner, rtype, _)| (owner.to_string(), rtype)).collect()
}

#[test]
fn one_changed_rrset_takes_two_signatures() {
    for mechanism in NSEC_AND_NSEC3 {
        let keys = ksk_and_zsk_of("example.");
        let old = signed(&zone(RECORDS), mechanism);
        let new = zone(&RECORDS.replace("192.0.2.3", "192.0.2.4"));
        let options = options_after(mechanism, &old, 1);
        let resigned = resign(&new, &keys, &options).unwrap().unwrap();
        assert_sound_at(resigned.contents(), options.now);
        let expected = [("example.".to_owned(), Rtype::SOA), ("c.example.".to_owned(), Rtype::A)];
        assert_eq!(new_signatures(&old, resigned.contents()), expected);
        let statistics = resigned.statistics();
        assert_eq!(statistics.signatures, 2);
        assert_eq!(statistics.signatures_kept, signatures(&old).len() as u64 - 2);
        assert_eq!(statistics.serial, 8);
        let warning =
            SignWarning::SerialNotIncreased { policy: SerialPolicy::Keep, old: 7, wanted: 7, used: 8 };
        assert_eq!(resigned.warnings(), [warning]);
    }
}

#[test]
fn delegations_that_change_their_servers_take_no_signature() {
    for mechanism in NSEC_AND_NSEC3 {
        let old = signed(&zone(RECORDS), mechanism);
        let before = zone(RECORDS);
        let after = zone(&RECORDS.replace("b NS ns.elsewhere.test.", "b NS other.elsewhere.test."));
        let changes = ChangeSet::between(&before, &after, is_data);
        let options = options_after(mechanism, &old, 1);
        let resigned = resign_changes(&changes, &ksk_and_zsk_of("example."), &options).unwrap().unwrap();
        assert_eq!(resigned.statistics().signatures, 1, "the SOA record's");
        // The apex and the delegation; with NSEC3, also the record of each, if it exists.
        assert!(resigned.names_planned().unwrap() <= 4);
    }
}

#[test]
fn nothing_is_signed_if_nothing_changes_or_expires() {
    let keys = ksk_and_zsk_of("example.");
    for mechanism in NSEC_AND_NSEC3 {
        let old = signed(&zone(RECORDS), mechanism);
        for days in [1, 10] {
            let options = options_after(mechanism, &old, days);
            assert!(is_current(&zone(RECORDS), &keys, &options).unwrap());
            assert!(resign(&zone(RECORDS), &keys, &options).unwrap().is_none());
            let none = ChangeSet::between(&old, &old, is_data);
            assert!(resign_changes(&none, &keys, &options).unwrap().is_none());
        }
        // In the last quarter of the validity period, all signatures are replaced.
        let options = options_after(mechanism, &old, 11);
        let none = ChangeSet::between(&old, &old, is_data);
        let resigned = resign(&zone(RECORDS), &keys, &options).unwrap().unwrap();
        assert_eq!(resigned.statistics().signatures_kept, 0);
        assert_eq!(resigned.statistics().serial, 8);
        let updated = resign_changes(&none, &keys, &options).unwrap().unwrap();
        assert_eq!(text(updated.into_signed().unwrap().contents()), text(resigned.contents()));
        // A serial that has increased is published.
        let increased = text(&zone(RECORDS)).replace(" 7 3600", " 9 3600");
        let increased = read_zone(&increased, &name("example."));
        let options = options_after(mechanism, &old, 1);
        let resigned = resign(&increased, &keys, &options).unwrap().unwrap();
        assert_eq!((resigned.statistics().signatures, resigned.statistics().serial), (1, 9));
    }
}

#[test]
fn a_zone_for_other_options_is_not_current() {
    let keys = ksk_and_zsk_of("example.");
    let old = signed(&zone(RECORDS), Mechanism::Nsec3);
    let is_current_for = |options: &SignOptions<'_>| is_current(&zone(RECORDS), &keys, options).unwrap();
    let options = options_after(Mechanism::Nsec3, &old, 1);
    assert!(is_current_for(&options));
    assert!(!is_current_for(&SignOptions { mechanism: Mechanism::Nsec, ..options.clone() }));
    assert!(!is_current_for(&SignOptions { mechanism: Mechanism::Nsec3OptOut, ..options.clone() }));
    assert!(!is_current_for(&SignOptions { publish_cds: true, ..options.clone() }));
    assert!(!is_current_for(&SignOptions { dnskey_ttl: Some(1), ..options.clone() }));
    let nsec3 = Nsec3Params { salt: vec![1], iterations: 0 };
    assert!(!is_current_for(&SignOptions { nsec3, ..options.clone() }));
    assert!(!is_current_for(&SignOptions { previous: None, ..options.clone() }));
    assert!(!is_current(&zone(RECORDS), &csk_of("example."), &options).unwrap());
    for other in ["d", "c", "e A 192.0.2.9", "A A 192.0.2.1\n"] {
        let records = if other.contains(' ') { format!("{RECORDS}{other}\n") } else { without(other) };
        let is_same = other.starts_with("A A");
        assert_eq!(is_current(&zone(&records), &keys, &options).unwrap(), is_same, "{other}");
    }
}

/// The records without those of one owner.
fn without(owner: &str) -> String {
    let lines = RECORDS.lines().filter(|line| !line.starts_with(&format!("{owner} ")));
    lines.map(|line| format!("{line}\n")).collect()
}

#[test]
fn every_step_of_a_rollover_reuses_all_suitable_signatures() {
    let zone_key = |seed| key("example.", 256, Algorithm::ED25519, seed);
    let entry_point = |algorithm, seed| key("example.", 257, algorithm, seed);
    let (old, new) = (Algorithm::ED25519, Algorithm::ECDSAP256SHA256);
    let steps = || -> Vec<Vec<KeyPair>> {
        vec![
            vec![entry_point(old, 1), zone_key(2)],
            vec![entry_point(old, 1), zone_key(2), zone_key(3)],
            vec![entry_point(old, 1), zone_key(3)],
            vec![entry_point(old, 4), entry_point(old, 1), zone_key(3)],
            vec![entry_point(old, 4), zone_key(3)],
            vec![entry_point(old, 4), zone_key(3), entry_point(new, 5)],
            vec![entry_point(new, 5)],
        ]
    };
    for mechanism in NSEC_AND_NSEC3 {
        let contents = zone(RECORDS);
        let mut previous: Option<Contents> = None;
        let mut outcomes = Vec::new();
        for keys in steps() {
            let keys = KeySet::new(&name("example."), keys).unwrap();
            let signed = match &previous {
                None => sign(&contents, &keys, &options(mechanism)).unwrap(),
                Some(previous) => {
                    resign(&contents, &keys, &options_after(mechanism, previous, 0)).unwrap().unwrap()
                }
            };
            assert_sound(signed.contents());
            let statistics = signed.statistics();
            outcomes.push((statistics.signatures, statistics.signatures_kept));
            previous = Some(signed.into_contents());
        }
        let data = outcomes[0].0 - 1;
        // The SOA and DNSKEY RRsets change in each step. With another ZSK or algorithm, all other
        // RRsets get new signatures.
        assert_eq!(outcomes[1], (1 + 2 + data - 1, data - 1));
        assert_eq!(outcomes[2], (2, data - 1));
        assert_eq!(outcomes[3], (3, data - 1));
        assert_eq!(outcomes[4], (2, data - 1));
        assert_eq!(outcomes[5], (2 + 2 + data - 1, data - 1));
        assert_eq!(outcomes[6], (2, data - 1));
    }
}

#[test]
fn signatures_by_a_key_that_the_previous_zone_did_not_publish_are_not_kept() {
    let keys = ksk_and_zsk_of("example.");
    let old = signed(&zone(RECORDS), Mechanism::Nsec);
    let tag = keys.keys().iter().find(|key| !key.is_sep()).unwrap().tag();
    // The result of a signature by another key with the same tag: the DNSKEY record differs.
    let foreign = rewrite(&old, |_, rtype, _, rdata| {
        if rtype == Rtype::DNSKEY && nonesuch_crypto::key_tag(rdata) == tag {
            rdata.swap(4, 6);
            rdata.swap(8, 10);
        }
    });
    let options =
        SignOptions { allow_unsafe_transition: true, ..options_after(Mechanism::Nsec, &foreign, 0) };
    let signed = resign(&zone(RECORDS), &keys, &options).unwrap().unwrap();
    assert_eq!(signed.statistics().signatures_kept, 0);
    assert_sound(signed.contents());
}

#[test]
fn a_previous_zone_with_bad_signatures_is_refused() {
    let keys = ksk_and_zsk_of("example.");
    let old = signed(&zone(RECORDS), Mechanism::Nsec);
    let damage = |owner: Option<&'static str>| {
        rewrite(&old, move |node, rtype, _, rdata| {
            if rtype == Rtype::RRSIG && owner.is_none_or(|owner| node.name() == name(owner).view()) {
                let last = rdata.len() - 1;
                rdata[last] ^= 1;
            }
        })
    };
    let none = ChangeSet::between(&old, &old, is_data);
    let both = |options: &SignOptions<'_>| {
        [sign(&zone(RECORDS), &keys, options).map(|_| ()), resign_changes(&none, &keys, options).map(|_| ())]
    };
    let bad = damage(None);
    for outcome in both(&options_after(Mechanism::Nsec, &bad, 1)) {
        assert!(matches!(outcome, Err(SignError::BadPrevious { .. })), "{outcome:?}");
    }
    let bad = damage(Some("e.example."));
    let mut options = options_after(Mechanism::Nsec, &bad, 1);
    options.previous.as_mut().unwrap().verify = true;
    for outcome in both(&options) {
        let Err(SignError::BadPrevious { owner, .. }) = outcome else { panic!("{outcome:?}") };
        assert_eq!(owner, name("e.example."));
    }
}

#[test]
fn options_that_exclude_each_other_are_errors() {
    let keys = ksk_and_zsk_of("example.");
    let old = signed(&zone(RECORDS), Mechanism::Nsec);
    let mut options = options_after(Mechanism::Nsec, &old, 1);
    options.previous.as_mut().unwrap().refresh = 14 * DAY;
    let outcome = sign(&zone(RECORDS), &keys, &options);
    assert_eq!(outcome.err(), Some(SignError::Refresh { refresh: 14 * DAY, min_validity: 14 * DAY }));
    let mut options = options_after(Mechanism::Nsec, &old, 1);
    options.jitter = 12 * DAY;
    assert!(matches!(sign(&zone(RECORDS), &keys, &options).err(), Some(SignError::Refresh { .. })));
    let other = read_zone("$TTL 1\nother. SOA a b 1 2 3 4 5\nother. NS a.\n", &name("other."));
    let outcome = sign(&other, &ksk_and_zsk_of("other."), &options_after(Mechanism::Nsec, &old, 1));
    assert!(matches!(outcome.err(), Some(SignError::PreviousOfOtherZone { .. })));
    let none = ChangeSet::between(&old, &old, is_data);
    let outcome = resign_changes(&none, &keys, &super::options(Mechanism::Nsec));
    assert_eq!(outcome.err(), Some(SignError::NoPrevious));
}

#[test]
fn changes_that_do_not_fit_are_errors_that_name_the_line() {
    let keys = ksk_and_zsk_of("example.");
    let old = signed(&zone(RECORDS), Mechanism::Nsec);
    for (changes, line) in [
        ("; comment\n- a.example. 3600 IN A 192.0.2.2\n", 2),
        ("+ a.example. 3600 IN A 192.0.2.1\n", 1),
        ("+ f.example. 3600 IN A 192.0.2.1\n- g.example. 3600 IN A 192.0.2.1\n", 2),
        ("- a.example. 3600 IN NSEC c.example. A RRSIG NSEC\n", 1),
        ("+ example. 3600 IN TXT \"a\"\n+ a.test. 3600 IN A 192.0.2.1\n+ a. 3600 IN A 192.0.2.1\n", 3),
    ] {
        let changes = ChangeSet::parse(changes.as_bytes(), &name("example.")).unwrap();
        let outcome = resign_changes(&changes, &keys, &options_after(Mechanism::Nsec, &old, 1));
        let Err(SignError::Change(error)) = outcome else { panic!("{outcome:?}") };
        assert_eq!(error.line, line);
    }
}

/// The zone, compiled in short chunks.
fn compile(contents: &Contents) -> Vec<u8> {
    let mut octets = Vec::new();
    compiled::write_in_chunks(contents, Verification::Nothing, 300, &mut octets).unwrap();
    octets
}

#[test]
fn only_the_chunks_of_a_compiled_zone_that_the_changes_affect_are_read() {
    let keys = ksk_and_zsk_of("example.");
    // More names than the sample has whose signatures are verified.
    let records: String = (0..150).map(|number| format!("n{number} A 192.0.2.1\n")).collect();
    let changes = ChangeSet::parse(b"+ n7.example. 3600 IN A 192.0.2.77\n", &name("example.")).unwrap();
    for mechanism in NSEC_AND_NSEC3 {
        let old = signed(&zone(&records), mechanism);
        let sound = compile(&old);
        let options = options_after(mechanism, &old, 1);
        let expected = resign_changes(&changes, &keys, &options).unwrap().unwrap();
        let expected = text(expected.into_signed().unwrap().contents());
        let (mut updated, mut rejected) = (0, 0);
        for damaged in (320..sound.len() - 64).step_by(307) {
            let mut octets = sound.clone();
            octets[damaged] ^= 1;
            // A damaged directory and a damaged first chunk are always detected.
            let Ok(zone) = StoredZone::of_octets(octets) else { continue };
            let Ok(outcome) = resign_stored(&zone, &changes, &keys, &options) else {
                rejected += 1;
                continue;
            };
            let IncrementalResult::Signed(resigned) = outcome else { panic!("{outcome:?}") };
            let mut out = Vec::new();
            // A damaged chunk that a short chunk is joined to is also detected. The reader of the
            // output finds damage in chunks that are copied.
            if compiled::write_splice(&resigned.splice(), Verification::Nothing, &mut out).is_ok() {
                let error = compiled::read(&out).unwrap_err();
                assert!(matches!(error, CompiledError::Altered), "{error:?}");
                updated += 1;
            }
        }
        assert!(updated > 0 && rejected > 0, "{mechanism}: {updated}, {rejected}");
        let zone = StoredZone::of_octets(sound).unwrap();
        let Ok(IncrementalResult::Signed(resigned)) = resign_stored(&zone, &changes, &keys, &options) else {
            panic!()
        };
        assert_eq!(text(resigned.into_signed().unwrap().contents()), expected);
    }
}

#[test]
fn a_current_compiled_zone_remains_unchanged() {
    let keys = ksk_and_zsk_of("example.");
    for mechanism in NSEC_AND_NSEC3 {
        let old = signed(&zone(RECORDS), mechanism);
        let (octets, none) = (compile(&old), ChangeSet::between(&old, &old, is_data));
        let zone = StoredZone::of_octets(octets).unwrap();
        for (days, stays) in [(1, true), (10, true), (11, false)] {
            let outcome = resign_stored(&zone, &none, &keys, &options_after(mechanism, &old, days)).unwrap();
            assert_eq!(matches!(outcome, IncrementalResult::Unchanged), stays, "{days}");
        }
        let info = crate::inspect::denial_by_directory(&zone).unwrap();
        assert_eq!(Some(info), crate::inspect::denial(&old));
        // Another mechanism or another key requires signing the whole zone.
        for other in NSEC_AND_NSEC3.into_iter().filter(|other| *other != mechanism) {
            let outcome = resign_stored(&zone, &none, &keys, &options_after(other, &old, 1)).unwrap();
            assert!(matches!(outcome, IncrementalResult::Impossible), "{other}");
        }
    }
}

/// Parts of a signed zone file are copied only if their form equals the output of this program.
#[test]
fn zone_files_in_another_form_are_not_compared() {
    let after = zone(RECORDS);
    for mechanism in NSEC_AND_NSEC3 {
        let sound = text(&signed(&after, mechanism));
        let compared = |text: String| compiled::compare_octets(text.into_bytes(), &after).unwrap();
        assert!(compared(sound.clone()).is_some());
        let lines: Vec<&str> = sound.lines().collect();
        let with = |at: usize, line: &str| {
            let mut lines = lines.clone();
            lines[at] = line;
            lines.join("\n") + "\n"
        };
        let signature = lines.iter().rposition(|line| line.contains("\tRRSIG\tNSEC")).unwrap();
        let chain_record = lines.iter().rposition(|line| line.contains("\tIN\tNSEC")).unwrap();
        let swapped = lines.iter().rev().copied().collect::<Vec<_>>().join("\n") + "\n";
        let replace = |line: &str, from: &str, to: &str| line.replace(from, to);
        let cases = [
            sound.trim_end().to_owned(),
            with(signature, ""),
            with(signature, "; nothing"),
            with(signature, "$TTL 3600"),
            with(signature, &replace(lines[signature], "\tIN\t", "\tin\t")),
            with(signature, &replace(lines[signature], "\tRRSIG\tNSEC", "\tRRSIG\tTXT")),
            with(signature, &replace(lines[signature], " example. ", " example.test. ")),
            with(signature, &replace(lines[signature], " example. ", " example. (")),
            with(signature, lines[signature].trim_end_matches('=')),
            with(signature, lines[chain_record]),
            with(chain_record, lines[signature]),
            swapped,
            String::new(),
        ];
        for (number, case) in cases.into_iter().enumerate() {
            assert!(compared(case).is_none(), "{mechanism}: {number}");
        }
    }
}

#[test]
fn a_signed_zone_file_that_lacks_records_is_not_updated() {
    let keys = ksk_and_zsk_of("example.");
    let after = zone(&RECORDS.replace("a A 192.0.2.1", "a A 192.0.2.9"));
    for mechanism in NSEC_AND_NSEC3 {
        let old = signed(&zone(RECORDS), mechanism);
        let sound = text(&old);
        let sign_again = |text: String| {
            let compared = compiled::compare_octets(text.into_bytes(), &after).unwrap().unwrap();
            let options = options_after(mechanism, &old, 1);
            let outcome =
                resign_stored_with_contents(&compared.previous, &compared.changes, &after, &keys, &options)
                    .unwrap();
            matches!(outcome, IncrementalResult::Signed(_))
        };
        assert!(sign_again(sound.clone()));
        // The last chain record with its signature; the signature over the DS RRset.
        let link = if mechanism == Mechanism::Nsec { "NSEC" } else { "NSEC3" };
        let (record, of_link) = (format!("\t{link}\t"), format!("\tRRSIG\t{link} "));
        let last = sound.lines().rfind(|line| line.contains(&record)).unwrap();
        let owner = last.split('\t').next().unwrap();
        let without = |gone: &dyn Fn(&str) -> bool| -> String {
            sound.lines().filter(|line| !gone(line)).map(|line| format!("{line}\n")).collect()
        };
        let is_link = |line: &str| line.contains(&record) || line.contains(&of_link);
        assert!(!sign_again(without(&|line| line.starts_with(owner) && is_link(line))), "{mechanism}");
        assert!(!sign_again(without(&|line| line.contains("\tRRSIG\tDS "))), "{mechanism}");
    }
}

#[test]
fn with_jitter_refreshes_remain_distributed_over_the_days() {
    let records: String = (0..400).map(|at| format!("n{at} A 192.0.2.1\n")).collect();
    let contents = zone(&records);
    let keys = csk_of("example.");
    let mut first = options(Mechanism::Nsec);
    first.jitter = 9 * DAY;
    let mut previous = sign(&contents, &keys, &first).unwrap().into_contents();
    let total = signatures(&previous).len() as u64;
    let mut generated = Vec::new();
    for day in 1..=40 {
        let mut options = options_after(Mechanism::Nsec, &previous, day);
        options.jitter = 9 * DAY;
        let Some(signed) = resign(&contents, &keys, &options).unwrap() else {
            generated.push(0);
            continue;
        };
        assert_sound_at(signed.contents(), options.now);
        generated.push(signed.statistics().signatures);
        previous = signed.into_contents();
    }
    // A signature is valid for 5 to 14 days, and the refresh window is 3.5 days. So on average, the
    // run of a day replaces about a sixth of the signatures.
    let (max, sum) = (*generated.iter().max().unwrap(), generated.iter().sum::<u64>());
    assert!(max < total / 3, "{max} of {total}: {generated:?}");
    assert!(sum > 4 * total && sum < 10 * total, "{sum} of {total}");
    assert!(generated[10..].iter().all(|generated| *generated > total / 30), "{generated:?}");
}
