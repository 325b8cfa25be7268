//! The state as text.

use super::super::refresh::Refresh;
use super::super::rrset::SignatureTimes;
use super::super::state_file::{StateError, StateFault};
use super::super::testing::*;
use super::super::*;
use nonesuch_crypto::Algorithm;
use proptest::prelude::*;

/// XF-074.
#[test]
fn the_hold_down_continues_after_a_restart() {
    let (old, new) = (ksk(1), ksk(2));
    let config = configured(&[old.ds()]);
    let mut anchor = ManagedAnchor::new(&config, START).unwrap();
    let both = [old.rdata(), new.rdata()];
    show(&mut anchor, &both, &[&old], START);
    let mut again = ManagedAnchor::parse(&anchor.to_text(), &config, START + 20 * DAY).unwrap();
    assert_eq!(again, anchor);
    assert_eq!(show(&mut again, &both, &[&old], START + 30 * DAY - 1), []);
    assert_eq!(show(&mut again, &both, &[&old], START + 30 * DAY), [new.change(KeyEvent::Trusted)]);
    // The trust in a learned key survives, also without the configuration.
    let last = ManagedAnchor::parse(&again.to_text(), &configured(&[]), START + 31 * DAY).unwrap();
    assert_eq!(last.anchors(), [old.dnskey(), new.dnskey()]);
}

#[test]
fn the_text_has_one_line_for_each_key() {
    let (old, new) = (ksk(1), ksk(2));
    let mut anchor = anchor(&[old.ds()]);
    show(&mut anchor, &[old.rdata(), new.rdata()], &[&old], START);
    let text = anchor.to_text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 7, "{text}");
    assert_eq!(lines[1..3], ["nonesuch-trust-anchors 1", "zone example."]);
    assert_eq!(lines[3], "query next=2026-10-02T00:00:00Z original-ttl=172800 expiration-interval=1209600");
    assert!(lines[4].starts_with("key valid since=2026-10-01T00:00:00Z DNSKEY 257 3 13 "), "{text}");
    let pending = format!(
        "key addpend since=2026-10-01T00:00:00Z until=2026-10-31T00:00:00Z signers={} DNSKEY 257 3 13 ",
        old.tag()
    );
    assert!(lines[5].starts_with(&pending) && lines[5].ends_with(&format!(" ; tag {}", new.tag())), "{text}");
    assert_eq!(lines[6], "end 2");
}

#[test]
fn a_key_that_is_configured_in_its_hold_down_time_is_trusted_at_once() {
    let (old, new) = (ksk(1), ksk(2));
    let mut anchor = anchor(&[old.ds()]);
    show(&mut anchor, &[old.rdata(), new.rdata()], &[&old], START);
    for record in [new.ds(), new.dnskey()] {
        let again = ManagedAnchor::parse(&anchor.to_text(), &configured(&[record]), START + DAY).unwrap();
        assert_eq!(again.anchors(), [old.dnskey(), new.dnskey()]);
    }
}

#[test]
fn configured_records_that_are_new_are_added() {
    let (old, new, other) = (ksk(1), ksk(2), ksk(3));
    let anchor = anchor(&[old.dnskey()]);
    let config = configured(&[new.dnskey(), other.ds()]);
    let again = ManagedAnchor::parse(&anchor.to_text(), &config, START + DAY).unwrap();
    assert_eq!(again.anchors(), [old.dnskey(), new.dnskey(), other.ds()]);
}

#[test]
fn faults_have_their_line() {
    let (old, new) = (ksk(1), ksk(2));
    let config = configured(&[old.ds()]);
    let mut anchor = ManagedAnchor::new(&config, START).unwrap();
    show(&mut anchor, &[old.rdata(), new.rdata()], &[&old], START);
    let text = anchor.to_text();
    let parse = |text: &str| ManagedAnchor::parse(text, &config, START);
    for (from, to, line, fault) in [
        ("nonesuch-trust-anchors", "; autotrust", 3, StateFault::NoStateFile),
        ("anchors 1", "anchors 2", 2, StateFault::Version),
        ("zone example.", "zone a..b", 3, StateFault::Field("zone")),
        ("zone example.", "zone a. b.", 3, StateFault::Field("zone")),
        ("zone", "Zone", 3, StateFault::Expected("zone")),
        ("next=2026", "next=26", 4, StateFault::Field("next")),
        ("original-ttl=", "original-ttl=-", 4, StateFault::Field("original-ttl")),
        ("key valid", "key believed", 5, StateFault::State),
        ("since=2026-10", "since=2026-13", 5, StateFault::Field("since")),
        ("signers=", "signers=x", 6, StateFault::Field("signers")),
        (" until=", " til=", 6, StateFault::Field("until")),
        ("end 2", "end 3", 7, StateFault::Count(2)),
        ("end 2\n", "", 7, StateFault::Expected("key' or 'end")),
        ("end 2", "end 2\nend 2", 8, StateFault::Trailing),
    ] {
        assert!(text.contains(from), "{from}");
        let changed = text.replacen(from, to, 1);
        assert_eq!(parse(&changed), Err(StateError::Line { line, fault }), "{to}");
    }
    let revoked = text.replacen("DNSKEY 257", "DNSKEY 385", 1);
    let Err(StateError::Line { line: 5, fault: StateFault::Key(RecordFault::Revoked { .. }) }) =
        parse(&revoked)
    else {
        panic!("a key with the REVOKE flag")
    };
    let line = text.lines().nth(4).unwrap();
    let twice = text.replacen(line, &format!("{line}\n{line}"), 1);
    assert_eq!(parse(&twice), Err(StateError::Line { line: 6, fault: StateFault::SecondKey }));
    let other = parse(&text.replacen("zone example.", "zone test.", 1));
    assert!(matches!(other, Err(StateError::OtherZone { .. })));
    for length in 0..text.len() - 1 {
        assert!(parse(&text[..length]).is_err(), "{length} octets are not the whole file");
    }
}

fn times() -> impl Strategy<Value = u64> {
    0..=Rfc3339::MAX.0
}

fn key() -> impl Strategy<Value = ManagedKey> {
    let state = prop_oneof![
        (times(), prop::collection::vec(any::<u16>(), 1..5))
            .prop_map(|(until, signers)| KeyState::AddPend { until, signers }),
        Just(KeyState::Valid),
        Just(KeyState::Missing),
        times().prop_map(|until| KeyState::Revoked { until }),
        Just(KeyState::Removed),
    ];
    // Algorithms from 200 are unknown, except those of this crate's experiments.
    let public = prop::collection::vec(any::<u8>(), 1..80);
    let algorithm =
        (200..=247u8).prop_filter("a known algorithm", |number| Algorithm(*number).entry().is_none());
    (public, algorithm, state, times()).prop_map(|(public, algorithm, state, since)| {
        ManagedKey::new([vec![1, 1, 3, algorithm], public].concat(), state, since)
    })
}

fn managed() -> impl Strategy<Value = ManagedAnchor> {
    let schedule = (times(), prop::option::of((any::<u32>(), any::<u32>())));
    let labels = prop::collection::vec(prop::collection::vec(any::<u8>(), 1..8), 0..4);
    (labels, prop::collection::vec(key(), 0..20), schedule).prop_map(|(labels, mut keys, (next, times))| {
        let apex =
            labels.iter().fold(Name::root(), |parent, label| Name::prepend(label, parent.view()).unwrap());
        keys.sort_by(|a, b| a.rdata().cmp(b.rdata()));
        keys.dedup_by(|a, b| a.rdata() == b.rdata());
        let times = times
            .map(|(original_ttl, expiration_interval)| SignatureTimes { original_ttl, expiration_interval });
        let refresh = Refresh { next, times };
        ManagedAnchor { apex: apex.view().to_canonical(), configured: Vec::new(), keys, refresh }
    })
}

proptest! {
    #[test]
    fn a_state_is_read_unchanged(anchor in managed()) {
        let config = ZoneAnchor { apex: anchor.apex().to_name(), records: Vec::new() };
        prop_assert_eq!(ManagedAnchor::parse(&anchor.to_text(), &config, START), Ok(anchor));
    }

    #[test]
    fn any_text_is_read_or_rejected(text in any::<String>()) {
        let _ = ManagedAnchor::parse(&text, &configured(&[]), START);
        let with_header = format!("nonesuch-trust-anchors 1\nzone example.\nquery next=2026-10-02T00:00:00Z\n{text}");
        let _ = ManagedAnchor::parse(&with_header, &configured(&[]), START);
    }

    #[test]
    fn a_changed_state_is_read_or_rejected(anchor in managed(), at: prop::sample::Index, octet in "[ -~\n]") {
        let mut text = anchor.to_text();
        let at = at.index(text.len());
        text.replace_range(at..=at, &octet);
        let config = ZoneAnchor { apex: anchor.apex().to_name(), records: Vec::new() };
        if let Ok(read) = ManagedAnchor::parse(&text, &config, START) {
            prop_assert_eq!(ManagedAnchor::parse(&read.to_text(), &config, START), Ok(read));
        }
    }
}
