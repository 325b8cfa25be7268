//! The zone database: it finds the closest zone, independent of other zones.

use super::*;
use crate::zones::{ServedZone, ZonePolicy, ZoneState, Zones};

/// Returns the state of a served zone without DNSSEC.
pub(super) fn serving(apex: &str, serial: u32, policy: ZonePolicy) -> ZoneState {
    let text = format!("@ 60 SOA ns.test. h.test. {serial} 1 1 1 1\n@ 60 NS ns.test.\nwww 60 A 192.0.2.1\n");
    serving_text(apex, &text, policy)
}

/// Returns the state of a served zone with this text.
pub(super) fn serving_text(apex: &str, text: &str, policy: ZonePolicy) -> ZoneState {
    let contents = read::read_text(text.as_bytes(), Path::new("zone"), Some(&name(apex))).unwrap().contents;
    let image = Image::compile(&contents).unwrap();
    let zone = ServedZone::new(Published::from_parts(image, Denial::Image), Arc::new(policy));
    ZoneState::Serving(Arc::new(zone.with_contents(Arc::new(contents))))
}

fn closest_apex(zones: &Zones, text: &str) -> Option<String> {
    zones.database().find_enclosing(name(text).view()).map(|entry| entry.apex().to_string())
}

#[test]
fn the_closest_zone_is_found() {
    let zones = Zones::new();
    assert_eq!(closest_apex(&zones, "example."), None);
    for apex in ["example.", "sub.Example.", "a.b.c.test."] {
        zones.set(&name(apex), serving(apex, 1, ZonePolicy::default()));
    }
    for (qname, apex) in [
        ("example.", Some("example.")),
        ("www.example.", Some("example.")),
        ("asub.example.", Some("example.")),
        ("sub.example.", Some("sub.example.")),
        ("x.y.sub.example.", Some("sub.example.")),
        ("a.b.c.test.", Some("a.b.c.test.")),
        ("b.c.test.", None),
        ("test.", None),
        (".", None),
    ] {
        assert_eq!(closest_apex(&zones, qname).as_deref(), apex, "{qname}");
    }
    assert_eq!(zones.remove_all(&[name("sub.example.")]), 1);
    assert_eq!(zones.remove_all(&[name("sub.example.")]), 0);
    assert_eq!(closest_apex(&zones, "sub.example.").as_deref(), Some("example."));
    zones.set(&Name::root(), serving(".", 1, ZonePolicy::default()));
    assert_eq!(closest_apex(&zones, "test.").as_deref(), Some("."));
}

#[test]
fn a_zone_is_replaced_in_its_entry() {
    let zones = Zones::new();
    let apex = name("example.");
    zones.set(&apex, ZoneState::NotReady(Arc::default()));
    let database = zones.database();
    zones.set(&name("EXAMPLE."), serving("example.", 7, ZonePolicy::default()));
    assert!(Arc::ptr_eq(&database, &zones.database()));
    let state = zones.state(&apex).unwrap();
    assert_eq!(state.serving().map(|zone| zone.serial()), Some(7));
    let entry = Arc::clone(database.find_exact(apex.view()).unwrap());
    zones.set(&apex, ZoneState::Expired(Arc::default()));
    assert!(matches!(**entry.state(), ZoneState::Expired(_)));
}

#[test]
fn several_zones_are_added_and_removed_together() {
    let zones = Zones::new();
    let names = ["a.example.", "b.example.", "A.example.", "example."];
    zones.set_all(names.map(|apex| (name(apex), serving(apex, 1, ZonePolicy::default()))).to_vec());
    let before = zones.database();
    assert_eq!(zones.remove_all(&[name("B.example."), name("c.example."), name("b.example.")]), 1);
    assert_eq!(closest_apex(&zones, "x.b.example.").as_deref(), Some("example."));
    // Other zones with the same number of labels are still found. The previous database still
    // contains the removed zone.
    assert_eq!(closest_apex(&zones, "x.a.example.").as_deref(), Some("a.example."));
    assert_eq!(
        before.find_enclosing(name("b.example.").view()).map(|entry| entry.apex().to_string()).as_deref(),
        Some("b.example.")
    );
    assert_eq!(zones.remove_all(&[name("a.example."), name("example.")]), 2);
    assert_eq!(closest_apex(&zones, "a.example."), None);
}
