//! Files of trust anchors, and files of their state (RFC 5011). Anchors that are read are ordered,
//! found, and can be written and read as a state. A state that is read is unchanged after writing and
//! reading, with and without configured anchors, and has no revoked key among its anchors.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nonesuch_proto::NameRef;
use nonesuch_resolver::trust_anchors::managed::{ManagedAnchor, Observation};
use nonesuch_resolver::trust_anchors::{AnchorRecord, TrustAnchors, ZoneAnchor};
use std::sync::LazyLock;

/// 2026-10-11.
const NOW: u64 = 1_791_676_800;
/// The DNSKEY flag REVOKE (RFC 5011 §2.1).
const REVOKE: u8 = 0x80;

/// The configured anchors of the root zone, and none.
static CONFIGURED: LazyLock<[ZoneAnchor; 2]> = LazyLock::new(|| {
    let iana = TrustAnchors::iana();
    let Some(root) = iana.closest(NameRef::ROOT) else { panic!("the root zone has anchors") };
    [root.clone(), ZoneAnchor { apex: root.apex.clone(), records: Vec::new() }]
});

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match TrustAnchors::read(text) {
        Ok(anchors) => check_anchors(&anchors),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
    if let Ok(valid) = TrustAnchors::read_at(text, NOW) {
        let Ok(all) = TrustAnchors::read(text) else { panic!("valid anchors are anchors") };
        for zone in valid.iter() {
            let records = all.closest(zone.apex.view()).map(|zone| &zone.records);
            assert!(records.is_some_and(|all| zone.records.iter().all(|record| all.contains(record))));
        }
    }
    for configured in &*CONFIGURED {
        match ManagedAnchor::parse(text, configured, NOW) {
            Ok(state) => check_state(state, configured),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});

fn check_anchors(anchors: &TrustAnchors) {
    assert!(!anchors.is_empty());
    assert!(anchors.iter().is_sorted_by(|a, b| a.apex < b.apex));
    let mut again = anchors.clone();
    for zone in anchors.iter() {
        assert_eq!(anchors.closest(zone.apex.view()), Some(zone));
        zone.records.iter().for_each(|record| again.insert(zone.apex.view(), record.clone()));
        // Too many records cannot be managed.
        if let Ok(state) = ManagedAnchor::new(zone, NOW) {
            check_state(state, zone);
        }
    }
    assert_eq!(again, *anchors);
}

fn check_state(mut state: ManagedAnchor, configured: &ZoneAnchor) {
    let is_revoked = |record: &AnchorRecord| match record {
        AnchorRecord::Dnskey(rdata) => rdata.get(1).is_some_and(|flags| flags & REVOKE != 0),
        AnchorRecord::Ds(_) => false,
    };
    assert!(!state.anchors().iter().any(is_revoked));
    assert_unchanged(&state, configured);
    // An RRset without signatures changes only the schedule.
    let keys = state.keys().to_vec();
    let dnskeys: Vec<&[u8]> = keys.iter().map(|key| key.rdata()).collect();
    let outcome = state.observe(Observation { dnskeys: &dnskeys, signatures: &[] }, NOW);
    assert!(outcome.changes.is_empty() && outcome.fault.is_some());
    assert_eq!(state.keys(), keys);
    assert_unchanged(&state, configured);
}

/// Checks that a state is unchanged after writing and reading.
fn assert_unchanged(state: &ManagedAnchor, configured: &ZoneAnchor) {
    match ManagedAnchor::parse(&state.to_text(), configured, NOW) {
        Ok(read) => assert_eq!(read, *state),
        Err(error) => panic!("{error}\n{}", state.to_text()),
    }
}
