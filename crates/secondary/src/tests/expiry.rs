//! Tests that a zone expires here when it expires at its primary (RFC 7314 §4).

use super::*;

/// EXPIRE of the zone, in milliseconds.
const EXPIRE: u64 = INITIAL_SOA.expire as u64 * 1000;

/// Queries the serial at `now`. The primary confirms the version and reports `expire` seconds.
fn refresh(machine: &mut Machine, expire: Option<u32>, now: u64) {
    assert_eq!(handle(machine, Event::Refresh, now), [probe(0)]);
    handle(machine, Event::Serial { serial: machine.local_soa().unwrap().serial, expire }, now);
}

/// Tests which of several times applies (RFC 7314 §4).
#[test]
fn what_is_left_at_a_primary_is_what_is_left_here() {
    let mut machine = machine(1, None, None);
    wake(&mut machine, NOW);
    // With a transfer, the option replaces the field of the SOA record.
    let published =
        Event::Transferred { outcome: InboundOutcome::Published(INITIAL_SOA), expire: Some(1000) };
    assert_eq!(handle(&mut machine, published, NOW), [Action::Store]);
    assert_eq!(machine.expires_at(), Some(NOW + 1_000_000));
    assert_eq!(machine.refreshed(), Some(LastRefresh { at: NOW, left: Some(1_000_000) }));
    // With an SOA query, the later of the two times applies.
    refresh(&mut machine, Some(10), NOW + 1000);
    assert_eq!(machine.expires_at(), Some(NOW + 1_000_000));
    refresh(&mut machine, Some(2000), NOW + 2000);
    assert_eq!(machine.expires_at(), Some(NOW + 2_002_000));
    // The time never exceeds the SOA record's field. A primary that reports no time counts as the
    // original primary.
    refresh(&mut machine, Some(u32::MAX), NOW + 3000);
    assert_eq!(machine.expires_at(), Some(NOW + 3000 + EXPIRE));
    refresh(&mut machine, Some(5), NOW + 4000);
    assert_eq!(machine.expires_at(), Some(NOW + 3000 + EXPIRE));
    refresh(&mut machine, None, NOW + 5000);
    assert_eq!(machine.refreshed(), Some(LastRefresh { at: NOW + 5000, left: None }));
    // A response to IXFR without a newer version counts as an SOA response.
    assert_eq!(handle(&mut machine, Event::Refresh, NOW + 6000), [probe(0)]);
    handle(&mut machine, has(11), NOW + 6000);
    let same = Event::Transferred {
        outcome: InboundOutcome::UpToDate { serial: 10 },
        expire: Some(EXPIRE as u32 / 1000 - 1),
    };
    handle(&mut machine, same, NOW + 6000);
    assert_eq!(machine.expires_at(), Some(NOW + 5000 + EXPIRE));
}

#[test]
fn bounds_of_soa_records_do_not_lengthen_what_is_left() {
    let timing = Timing { expire: TimeBounds { min: 3600, max: 7200 }, ..Timing::default() };
    let mut machine =
        Machine::new(timing, true, 1, Some(LocalSoa { expire: 60, ..INITIAL_SOA }), None, 1, NOW);
    wake(&mut machine, NOW);
    handle(&mut machine, Event::Serial { serial: 10, expire: Some(60) }, NOW);
    assert_eq!(machine.expires_at(), Some(NOW + HOUR));
    let published =
        |expire| Event::Transferred { outcome: InboundOutcome::Published(soa_with_serial(11)), expire };
    handle(&mut machine, Event::Refresh, NOW);
    handle(&mut machine, has(11), NOW);
    handle(&mut machine, published(Some(30)), NOW);
    assert_eq!(machine.expires_at(), Some(NOW + 30_000));
    handle(&mut machine, Event::Retransfer, NOW);
    handle(&mut machine, published(Some(1_000_000)), NOW);
    assert_eq!(machine.expires_at(), Some(NOW + 2 * HOUR));
}

#[test]
fn a_zone_of_which_little_is_left_is_asked_for_again_before_it_expires() {
    let mut machine = fresh(1);
    handle(&mut machine, Event::Refresh, NOW);
    handle(&mut machine, has(11), NOW);
    handle(
        &mut machine,
        Event::Transferred { outcome: InboundOutcome::Published(soa_with_serial(11)), expire: Some(100) },
        NOW,
    );
    assert_next(&machine, NOW, 50_000);
    // The zone's primary has refreshed from its own primary.
    let now = machine.next_round().unwrap();
    assert_eq!(wake(&mut machine, now), [probe(0)]);
    handle(&mut machine, Event::Serial { serial: 11, expire: Some(INITIAL_SOA.expire - 1) }, now);
    assert_eq!(machine.expires_at(), Some(now + EXPIRE - 1000));
    assert_next(&machine, now, 2 * HOUR);
    // The zone's primary has not. The zone expires here no later than there, and stays expired
    // while no time is left there.
    handle(&mut machine, Event::Refresh, now);
    handle(&mut machine, has(12), now);
    handle(
        &mut machine,
        Event::Transferred { outcome: InboundOutcome::Published(soa_with_serial(12)), expire: Some(5) },
        now,
    );
    assert_next(&machine, now, 10_000);
    assert_eq!(wake(&mut machine, now + 5000), [Action::Expire]);
    let later = machine.next_round().unwrap();
    assert_eq!(wake(&mut machine, later), [probe(0)]);
    assert_eq!(handle(&mut machine, Event::Serial { serial: 12, expire: Some(0) }, later), [Action::Store]);
    assert!(machine.is_expired());
    let later = machine.next_round().unwrap();
    assert_eq!(wake(&mut machine, later), [probe(0)]);
    let told = Event::Serial { serial: 12, expire: Some(1) };
    assert_eq!(handle(&mut machine, told, later), [Action::Restore, Action::Store]);
}

#[test]
fn a_version_of_a_primary_to_which_nothing_is_left_is_not_served() {
    let mut machine = machine(1, Some(INITIAL_SOA), Some(NOW - EXPIRE));
    assert_eq!(wake(&mut machine, NOW), [Action::Expire, probe(0)]);
    assert_eq!(handle(&mut machine, has(11), NOW), [steps(0)]);
    let published =
        Event::Transferred { outcome: InboundOutcome::Published(soa_with_serial(11)), expire: Some(0) };
    assert_eq!(handle(&mut machine, published, NOW), [Action::Store]);
    assert_eq!(machine.poll_timeout(), Some(NOW));
    assert_eq!(wake(&mut machine, NOW), [Action::Expire]);
    assert!(machine.is_expired());
}

#[test]
fn what_was_left_is_known_after_a_restart() {
    for (left, expires) in
        [(Some(1000), NOW - HOUR + 1000), (Some(u64::MAX), NOW - HOUR + EXPIRE), (None, NOW - HOUR + EXPIRE)]
    {
        let refreshed = LastRefresh { at: NOW - HOUR, left };
        let machine = Machine::new(Timing::default(), true, 1, Some(INITIAL_SOA), Some(refreshed), 1, NOW);
        assert_eq!(machine.expires_at(), Some(expires));
    }
}
