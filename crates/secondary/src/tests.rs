//! Tests of every transition of a zone's machine, in virtual time, and of the driver with the
//! primaries of this module.

mod driven;
mod expiry;
mod peers;
mod primary;
mod rejected;

use super::event::*;
use super::machine::*;
use super::timing::*;
use super::{SecondaryZone, Transfers, ZoneStatus};
use nonesuch_proto::Name;
use nonesuch_server::acl::Remote;
use proptest::prelude::*;

impl SecondaryZone {
    /// Returns a zone with default limits.
    fn new(apex: Name, primaries: Vec<Remote>) -> Self {
        let (timing, bounds) = Default::default();
        Self { apex, primaries, judged_by: None, timing, bounds, request_ixfr: true }
    }
}

impl Transfers {
    fn zone_status(&self, apex: &Name) -> Option<ZoneStatus> {
        self.status().into_iter().find(|status| status.apex == *apex)
    }
}

const NOW: u64 = 1_750_000_000_000;
const HOUR: u64 = 3_600_000;

const INITIAL_SOA: LocalSoa = LocalSoa { serial: 10, refresh: 7200, retry: 3600, expire: 1_209_600 };

fn soa_with_serial(serial: u32) -> LocalSoa {
    LocalSoa { serial, ..INITIAL_SOA }
}

fn machine(primaries: usize, local_soa: Option<LocalSoa>, refreshed: Option<u64>) -> Machine {
    let refreshed = refreshed.map(|at| LastRefresh { at, left: None });
    Machine::new(Timing::default(), true, primaries, local_soa, refreshed, 1, NOW)
}

fn actions(machine: &mut Machine) -> Vec<Action> {
    std::iter::from_fn(|| machine.poll_action()).collect()
}

/// Passes an event to the machine, and returns its actions.
fn handle(machine: &mut Machine, event: Event, now: u64) -> Vec<Action> {
    machine.handle_event(event, now);
    actions(machine)
}

fn wake(machine: &mut Machine, now: u64) -> Vec<Action> {
    machine.handle_timeout(now);
    actions(machine)
}

const fn probe(primary: usize) -> Action {
    Action::Probe { primary }
}

const fn steps(primary: usize) -> Action {
    Action::Transfer { primary, is_ixfr: true }
}

const fn whole(primary: usize) -> Action {
    Action::Transfer { primary, is_ixfr: false }
}

const fn notified(serial: Option<u32>) -> Event {
    Event::Notified { serial, primary: None }
}

const fn transferred(transferred: InboundOutcome) -> Event {
    Event::Transferred { outcome: transferred, expire: None }
}

/// The version was rejected until its serial changes.
const fn refused(serial: u32) -> Event {
    transferred(InboundOutcome::Rejected { serial, verdict: RejectionPeriod::Final })
}

/// The primary has the version with this serial.
const fn has(serial: u32) -> Event {
    Event::Serial { serial, expire: None }
}

fn refreshed(machine: &Machine) -> Option<u64> {
    machine.refreshed().map(|refreshed| refreshed.at)
}

/// Checks that the next round is between 90 and 100 percent of `wait` after `now`.
#[track_caller]
fn assert_next(machine: &Machine, now: u64, wait: u64) {
    let next = machine.next_round().expect("idle");
    assert!((now + wait - wait / 10..=now + wait).contains(&next), "{}", next - now);
}

/// Returns a machine whose version was confirmed at `NOW`.
fn fresh(primaries: usize) -> Machine {
    let mut machine = machine(primaries, Some(INITIAL_SOA), None);
    assert_eq!(wake(&mut machine, NOW), [probe(0)]);
    assert_eq!(handle(&mut machine, has(10), NOW), [Action::Store]);
    machine
}

#[test]
fn a_zone_that_is_not_here_is_transferred_at_once() {
    let mut machine = machine(2, None, None);
    assert_eq!(machine.poll_timeout(), Some(NOW));
    assert_eq!(wake(&mut machine, NOW), [whole(0)]);
    assert_eq!(
        handle(&mut machine, transferred(InboundOutcome::Published(soa_with_serial(3))), NOW + 5),
        [Action::Store]
    );
    assert_eq!((machine.local_soa(), refreshed(&machine)), (Some(soa_with_serial(3)), Some(NOW + 5)));
    assert_next(&machine, NOW + 5, 2 * HOUR);
}

#[test]
fn without_a_zone_waits_double_up_to_an_hour() {
    let mut machine = machine(1, None, None);
    let mut now = NOW;
    for wait in [5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 3600, 3600].map(|seconds| seconds * 1000) {
        assert_eq!(wake(&mut machine, now), [whole(0)]);
        assert_eq!(handle(&mut machine, transferred(InboundOutcome::Failed), now), []);
        assert_next(&machine, now, wait);
        now = machine.poll_timeout().unwrap();
    }
}

#[test]
fn a_zone_that_was_stored_waits_for_its_time() {
    let mut machine = machine(1, Some(INITIAL_SOA), Some(NOW - HOUR));
    let next = machine.next_round().unwrap();
    assert!((NOW - HOUR + 2 * HOUR * 9 / 10..=NOW + HOUR).contains(&next));
    assert_eq!(wake(&mut machine, next - 1), []);
    assert_eq!(wake(&mut machine, next), [probe(0)]);
}

#[test]
fn a_clock_that_was_ahead_does_no_harm() {
    let machine = machine(1, Some(INITIAL_SOA), Some(NOW + 1000 * HOUR));
    assert_next(&machine, NOW, 2 * HOUR);
    assert_eq!(refreshed(&machine), Some(NOW));
}

#[test]
fn a_zone_that_expired_while_the_server_was_down_is_not_served() {
    let mut machine = machine(1, Some(INITIAL_SOA), Some(NOW - 1_209_600_000));
    assert_eq!(wake(&mut machine, NOW), [Action::Expire, probe(0)]);
    assert!(machine.is_expired());
    assert_eq!(handle(&mut machine, has(10), NOW), [Action::Restore, Action::Store]);
    assert!(!machine.is_expired());
}

#[test]
fn newer_versions_are_transferred_by_steps_and_older_ones_are_not() {
    let mut machine = fresh(1);
    let mut now = machine.poll_timeout().unwrap();
    assert_eq!(wake(&mut machine, now), [probe(0)]);
    assert_eq!(handle(&mut machine, has(11), now), [steps(0)]);
    assert_eq!(
        handle(&mut machine, transferred(InboundOutcome::Published(soa_with_serial(11))), now),
        [Action::Store]
    );
    now = machine.poll_timeout().unwrap();
    assert_eq!(wake(&mut machine, now), [probe(0)]);
    // An outdated primary does not confirm the local version, so the wait is that after a failure.
    assert_eq!(handle(&mut machine, has(10), now), []);
    assert_next(&machine, now, HOUR);
    now = machine.poll_timeout().unwrap();
    wake(&mut machine, now);
    // Half of the number circle away (RFC 1982): neither newer nor older.
    assert_eq!(handle(&mut machine, has(11u32.wrapping_add(1 << 31)), now), []);
}

#[test]
fn steps_that_cannot_be_had_are_followed_by_the_whole_zone() {
    let mut machine = fresh(1);
    handle(&mut machine, notified(Some(11)), NOW);
    handle(&mut machine, has(11), NOW);
    assert_eq!(handle(&mut machine, transferred(InboundOutcome::IxfrFailed), NOW), [whole(0)]);
    // There is no endless loop.
    assert_eq!(handle(&mut machine, transferred(InboundOutcome::IxfrFailed), NOW), []);
    assert_next(&machine, NOW, HOUR);
    let mut plain = Machine::new(Timing::default(), false, 1, Some(INITIAL_SOA), None, 1, NOW);
    wake(&mut plain, NOW);
    assert_eq!(handle(&mut plain, has(11), NOW), [whole(0)]);
}

#[test]
fn primaries_are_asked_in_turn_and_those_that_fail_come_last() {
    let mut machine = machine(3, Some(INITIAL_SOA), None);
    assert_eq!(wake(&mut machine, NOW), [probe(0)]);
    assert_eq!(handle(&mut machine, Event::ProbeFailed, NOW), [probe(1)]);
    assert_eq!(handle(&mut machine, has(11), NOW), [steps(1)]);
    assert_eq!(handle(&mut machine, transferred(InboundOutcome::Failed), NOW), [probe(2)]);
    assert_eq!(handle(&mut machine, Event::ProbeFailed, NOW), []);
    assert_eq!(machine.failed_rounds(), 1);
    // All primaries failed recently, so the one that answered last is first.
    assert_eq!(handle(&mut machine, Event::Refresh, NOW + 1), [probe(1)]);
    assert_eq!(handle(&mut machine, Event::ProbeFailed, NOW + 1), [probe(0)]);
    assert_eq!(handle(&mut machine, has(10), NOW + 1), [Action::Store]);
    let now = machine.poll_timeout().unwrap();
    assert_eq!(wake(&mut machine, now), [probe(0)]);
    assert_eq!(machine.failed_rounds(), 0);
}

#[test]
fn failures_are_repeated_at_the_retry_interval_until_the_zone_expires() {
    let mut machine = fresh(1);
    let expiry = machine.expires_at().unwrap();
    assert_eq!(expiry, NOW + 1_209_600_000);
    let mut rounds = 0;
    loop {
        let now = machine.poll_timeout().unwrap();
        assert!(now <= expiry);
        let wanted = wake(&mut machine, now);
        if wanted.contains(&Action::Expire) {
            assert_eq!(now, expiry);
            break;
        }
        assert_eq!(wanted, [probe(0)]);
        rounds += 1;
        handle(&mut machine, Event::ProbeFailed, now);
        assert_next(&machine, now, HOUR);
    }
    // One round after the refresh interval, the others after the retry interval.
    assert!((336..=375).contains(&rounds), "{rounds}");
    // The machine continues to try.
    let now = machine.poll_timeout().unwrap();
    assert!(now > expiry);
    assert_eq!(wake(&mut machine, now), [probe(0)]);
    assert_eq!(handle(&mut machine, has(11), now), [steps(0)]);
    let done = handle(&mut machine, transferred(InboundOutcome::Published(soa_with_serial(11))), now);
    assert_eq!(done, [Action::Restore, Action::Store]);
}

#[test]
fn a_zone_may_expire_during_a_transfer() {
    let mut machine = fresh(1);
    handle(&mut machine, notified(Some(11)), NOW);
    handle(&mut machine, has(11), NOW);
    let expiry = machine.poll_timeout().unwrap();
    assert_eq!(wake(&mut machine, expiry), [Action::Expire]);
    assert_eq!(machine.poll_timeout(), None);
    let done = handle(&mut machine, transferred(InboundOutcome::Published(soa_with_serial(11))), expiry + 1);
    assert_eq!(done, [Action::Restore, Action::Store]);
}

#[test]
fn notifies_begin_a_round_where_they_tell_anything_new() {
    let mut machine = fresh(2);
    for serial in [9, 10] {
        assert_eq!(handle(&mut machine, notified(Some(serial)), NOW + 1000), []);
        assert!(machine.next_round().unwrap() > NOW + HOUR);
    }
    let event = Event::Notified { serial: Some(11), primary: Some(1) };
    assert_eq!(handle(&mut machine, event, NOW + 1000), [probe(1)]);
    assert_eq!(handle(&mut machine, has(11), NOW + 1000), [steps(1)]);
}

#[test]
fn a_notify_of_a_version_that_one_primary_lacks_has_the_others_asked() {
    let mut machine = fresh(2);
    assert_eq!(handle(&mut machine, notified(Some(11)), NOW), [probe(0)]);
    assert_eq!(handle(&mut machine, has(10), NOW), [probe(1)]);
    assert_eq!(handle(&mut machine, has(10), NOW), [Action::Store]);
    assert_next(&machine, NOW, 2 * HOUR);
}

#[test]
fn notifies_without_a_serial_cannot_have_us_ask_for_ever() {
    let mut machine = fresh(1);
    let mut rounds = 0;
    for now in NOW..NOW + 1000 {
        let mut wanted = wake(&mut machine, now);
        wanted.extend(handle(&mut machine, notified(None), now));
        if wanted == [probe(0)] {
            rounds += 1;
            handle(&mut machine, has(10), now);
        }
    }
    assert!((4..=6).contains(&rounds), "{rounds}");
}

#[test]
fn notifies_that_tell_what_is_not_so_cannot_have_us_ask_for_ever() {
    let mut machine = fresh(2);
    let mut rounds = 0;
    for (now, serial) in (NOW..NOW + 1000).zip(11..) {
        let mut wanted = wake(&mut machine, now);
        wanted.extend(handle(&mut machine, notified(Some(serial)), now));
        // Each round queries both primaries, first the one that answered last.
        if let [Action::Probe { primary }] = wanted[..] {
            rounds += 1;
            assert_eq!(handle(&mut machine, has(10), now), [probe(1 - primary)]);
            assert_eq!(handle(&mut machine, has(10), now), [Action::Store]);
        }
    }
    assert!((4..=6).contains(&rounds), "{rounds}");
    // After a true NOTIFY, the next one begins a round immediately too.
    let mut machine = fresh(1);
    for serial in 11..20 {
        assert_eq!(handle(&mut machine, notified(Some(serial)), NOW), [probe(0)]);
        assert_eq!(handle(&mut machine, has(serial), NOW), [steps(0)]);
        assert_eq!(
            handle(&mut machine, transferred(InboundOutcome::Published(soa_with_serial(serial))), NOW),
            [Action::Store]
        );
    }
}

#[test]
fn a_first_version_that_is_refused_is_not_had_again_because_of_a_notify_of_it() {
    let mut machine = machine(1, None, None);
    assert_eq!(wake(&mut machine, NOW), [whole(0)]);
    assert_eq!(handle(&mut machine, notified(Some(7)), NOW), []);
    assert_eq!(handle(&mut machine, refused(7), NOW), []);
    assert!(machine.next_round().is_some_and(|at| at > NOW));
    // The serial is checked first in any case, because the zone may be large.
    assert_eq!(handle(&mut machine, notified(Some(8)), NOW), [probe(0)]);
    assert_eq!(handle(&mut machine, has(8), NOW), [whole(0)]);
}

/// The version is transferred once. After that, only the SOA record is queried.
#[test]
fn a_version_that_is_rejected_is_not_transferred_again_before_its_serial_changes() {
    for is_here in [false, true] {
        let mut machine = machine(1, is_here.then_some(INITIAL_SOA), None);
        wake(&mut machine, NOW);
        if is_here {
            // Transfer the whole zone: an incremental transfer must not be a possible cause of the
            // rejection.
            machine.reconfigure(Timing::default(), false, 1, NOW);
            assert_eq!(handle(&mut machine, has(11), NOW), [whole(0)]);
        }
        handle(&mut machine, refused(11), NOW);
        if is_here {
            // The new settings arrived during the round, and caused another round.
            assert_eq!(handle(&mut machine, has(11), NOW), []);
        }
        assert_eq!(machine.rejected(), Some(11));
        for _ in 0..50 {
            let now = machine.next_round().unwrap();
            let wanted = wake(&mut machine, now);
            assert_eq!(wanted.last(), Some(&probe(0)));
            assert_eq!(handle(&mut machine, has(11), now), []);
            assert_eq!(
                handle(&mut machine, notified(Some(11)), now),
                if machine.is_expired() { vec![probe(0)] } else { vec![] }
            );
            if machine.is_expired() {
                handle(&mut machine, has(11), now);
            }
        }
        let now = machine.next_round().unwrap();
        // The operator can request the transfer.
        for (event, is_probed) in
            [(Event::Retransfer, false), (Event::Refresh, true), (Event::Reconsider, true)]
        {
            let mut wanted = handle(&mut machine, event, now);
            // Without a local version, any version of the primary is transferred.
            if is_probed && is_here {
                assert_eq!(wanted.last(), Some(&probe(0)), "{event:?}");
                wanted = handle(&mut machine, has(11), now);
            }
            assert_eq!(wanted.last(), Some(&whole(0)), "{event:?}");
            handle(&mut machine, refused(11), now);
        }
        let now = machine.next_round().unwrap();
        wake(&mut machine, now);
        assert_eq!(handle(&mut machine, has(12), now), [whole(0)]);
        handle(&mut machine, transferred(InboundOutcome::Published(soa_with_serial(12))), now);
        assert_eq!((machine.rejected(), machine.local_soa()), (None, Some(soa_with_serial(12))));
        assert_eq!(handle(&mut machine, Event::Reconsider, now), []);
    }
}

#[test]
fn a_notify_during_a_round_is_followed_by_one_more_round() {
    let mut machine = fresh(1);
    handle(&mut machine, notified(Some(11)), NOW);
    handle(&mut machine, has(11), NOW);
    for serial in [12, 11, 13, 12] {
        assert_eq!(handle(&mut machine, notified(Some(serial)), NOW), []);
    }
    let done = handle(&mut machine, transferred(InboundOutcome::Published(soa_with_serial(12))), NOW);
    assert_eq!(done, [Action::Store, probe(0)]);
    // Rejected versions that precede the local one are forgotten.
    handle(&mut machine, notified(Some(13)), NOW);
    handle(&mut machine, has(13), NOW);
    assert_eq!(
        handle(&mut machine, transferred(InboundOutcome::Published(soa_with_serial(13))), NOW),
        [Action::Store]
    );
    assert_next(&machine, NOW, 2 * HOUR);
}

#[test]
fn a_version_that_steps_led_to_is_had_once_more_as_a_whole_after_the_retry_interval() {
    let mut machine = fresh(2);
    handle(&mut machine, notified(Some(11)), NOW);
    assert_eq!(handle(&mut machine, has(11), NOW), [steps(0)]);
    assert_eq!(handle(&mut machine, refused(11), NOW), [probe(1)]);
    assert_eq!(handle(&mut machine, Event::ProbeFailed, NOW), []);
    assert_eq!(machine.local_soa(), Some(INITIAL_SOA));
    assert_next(&machine, NOW, HOUR);
    // Another NOTIFY of this primary for the same version has no effect; one for a newer version
    // begins a round.
    let event = Event::Notified { serial: Some(11), primary: Some(0) };
    assert_eq!(handle(&mut machine, event, NOW + 1), []);
    let mut other = fresh(1);
    handle(&mut other, notified(Some(11)), NOW);
    handle(&mut other, has(11), NOW);
    handle(&mut other, refused(11), NOW);
    assert_eq!(handle(&mut other, notified(Some(12)), NOW + 1), [probe(0)]);
    assert_eq!(handle(&mut other, has(12), NOW + 1), [whole(0)]);
    assert_eq!(wake(&mut machine, NOW + HOUR), [probe(0)]);
    assert_eq!(handle(&mut machine, has(11), NOW + HOUR), [whole(0)]);
    let mut faulty = fresh(1);
    handle(&mut faulty, notified(Some(11)), NOW);
    handle(&mut faulty, has(11), NOW);
    handle(&mut faulty, refused(11), NOW);
    wake(&mut faulty, NOW + HOUR);
    assert_eq!(handle(&mut faulty, has(11), NOW + HOUR), [whole(0)]);
    handle(&mut faulty, refused(11), NOW + HOUR);
    wake(&mut faulty, NOW + 2 * HOUR);
    assert_eq!(handle(&mut faulty, has(11), NOW + 2 * HOUR), [], "once");
    assert_eq!(
        handle(&mut machine, transferred(InboundOutcome::Published(soa_with_serial(11))), NOW + HOUR),
        [Action::Store]
    );
    handle(&mut machine, notified(Some(12)), NOW + HOUR);
    assert_eq!(handle(&mut machine, has(12), NOW + HOUR), [steps(0)]);
}

/// Other primaries are configured during a transfer, which then is not needed any more. The machine
/// queries them immediately, even for the same version.
#[test]
fn a_version_that_is_not_wanted_any_more_is_nobodys_fault() {
    for is_reconfigured in [true, false] {
        let mut machine = fresh(1);
        handle(&mut machine, notified(Some(11)), NOW);
        assert_eq!(handle(&mut machine, has(11), NOW), [steps(0)]);
        if is_reconfigured {
            machine.reconfigure(Timing::default(), true, 1, NOW);
            assert_eq!(handle(&mut machine, transferred(InboundOutcome::NoLongerWanted), NOW), [probe(0)]);
        } else {
            assert_eq!(handle(&mut machine, transferred(InboundOutcome::NoLongerWanted), NOW), []);
            assert_eq!(wake(&mut machine, NOW + HOUR), [probe(0)]);
        }
        assert_eq!(machine.failed_rounds(), 0);
        assert_eq!(handle(&mut machine, has(11), NOW), [steps(0)]);
    }
}

#[test]
fn a_whole_zone_that_was_asked_for_is_had_from_other_primaries() {
    let mut machine = fresh(1);
    assert_eq!(handle(&mut machine, Event::Retransfer, NOW), [whole(0)]);
    machine.reconfigure(Timing::default(), true, 1, NOW);
    assert_eq!(handle(&mut machine, transferred(InboundOutcome::NoLongerWanted), NOW), [whole(0)]);
}

#[test]
fn whoever_asks_for_a_refresh_or_the_whole_zone_gets_it() {
    let mut machine = fresh(1);
    assert_eq!(handle(&mut machine, Event::Refresh, NOW + 1), [probe(0)]);
    assert_eq!(handle(&mut machine, Event::Retransfer, NOW + 2), []);
    assert_eq!(handle(&mut machine, has(10), NOW + 3), [Action::Store, whole(0)]);
    assert_eq!(
        handle(&mut machine, transferred(InboundOutcome::Published(soa_with_serial(10))), NOW + 4),
        [Action::Store]
    );
    assert_next(&machine, NOW + 4, 2 * HOUR);
}

#[test]
fn what_soa_records_ask_for_is_bounded() {
    let timing = Timing {
        refresh: TimeBounds { min: 100, max: 200 },
        retry: TimeBounds { min: 10, max: 20 },
        expire: TimeBounds { min: 1000, max: 2000 },
    };
    for (seconds, refresh, retry, expire) in [(0, 100, 10, 1000), (u32::MAX, 200, 20, 2000)] {
        let held = LocalSoa { serial: 1, refresh: seconds, retry: seconds, expire: seconds };
        let mut machine = Machine::new(timing, true, 1, Some(held), None, 1, NOW);
        wake(&mut machine, NOW);
        handle(&mut machine, has(1), NOW);
        assert_next(&machine, NOW, refresh * 1000);
        assert_eq!(machine.expires_at(), Some(NOW + expire * 1000));
        handle(&mut machine, Event::Refresh, NOW);
        handle(&mut machine, Event::ProbeFailed, NOW);
        assert_next(&machine, NOW, retry * 1000);
    }
}

#[test]
fn events_of_what_is_not_under_way_are_passed_over() {
    let mut machine = fresh(1);
    for event in [
        has(99),
        Event::ProbeFailed,
        transferred(InboundOutcome::Published(soa_with_serial(99))),
        transferred(InboundOutcome::Failed),
    ] {
        assert_eq!(handle(&mut machine, event, NOW), []);
    }
    assert_eq!(machine.local_soa(), Some(INITIAL_SOA));
}

#[test]
fn other_settings_take_effect_at_once() {
    let mut machine = fresh(1);
    let timing = Timing { refresh: TimeBounds { min: 5, max: 5 }, ..Timing::default() };
    machine.reconfigure(timing, false, 2, NOW);
    assert_eq!(actions(&mut machine), [probe(0)]);
    assert_eq!(handle(&mut machine, Event::ProbeFailed, NOW), [probe(1)]);
    assert_eq!(handle(&mut machine, has(10), NOW), [Action::Store]);
    assert_next(&machine, NOW, 5000);
}

/// Any event for a machine; the machine does not expect most of them.
fn any_event() -> impl Strategy<Value = Event> {
    let serial = 8u32..14;
    prop_oneof![
        (proptest::option::of(serial.clone()), proptest::option::of(0usize..4))
            .prop_map(|(serial, primary)| Event::Notified { serial, primary }),
        Just(Event::Refresh),
        Just(Event::Retransfer),
        Just(Event::Reconsider),
        serial.clone().prop_map(has),
        Just(Event::ProbeFailed),
        serial.clone().prop_map(|serial| transferred(InboundOutcome::UpToDate { serial })),
        serial.clone().prop_map(|serial| transferred(InboundOutcome::Published(soa_with_serial(serial)))),
        Just(transferred(InboundOutcome::IxfrFailed)),
        Just(transferred(InboundOutcome::Failed)),
        serial.clone().prop_map(refused),
        (serial.clone(), 0u32..20_000).prop_map(|(serial, seconds)| {
            transferred(InboundOutcome::Rejected { serial, verdict: RejectionPeriod::For { seconds } })
        }),
        serial.prop_map(|serial| transferred(InboundOutcome::PublishFailed { serial })),
    ]
}

proptest! {
    #[test]
    fn whatever_happens_there_is_always_something_to_wait_for(
        events in proptest::collection::vec((any_event(), 0u64..10_000_000), 1..80),
        is_here: bool,
        primaries in 1usize..4,
    ) {
        let mut now = NOW;
        let mut machine = machine(primaries, is_here.then_some(INITIAL_SOA), None);
        // The current activity: `Some` for an SOA query or a transfer.
        let mut under_way: Option<bool> = None;
        for (event, wait) in events {
            now += wait;
            for is_event in [false, true] {
                if is_event {
                    machine.handle_event(event, now);
                    under_way = match (event, under_way) {
                        (Event::Serial { .. } | Event::ProbeFailed, Some(true)) | (Event::Transferred { .. }, Some(false)) => None,
                        (_, under_way) => under_way,
                    };
                } else {
                    machine.handle_timeout(now);
                }
                for action in actions(&mut machine) {
                    if let Action::Probe { primary } | Action::Transfer { primary, .. } = action {
                        prop_assert!(primary < primaries);
                        prop_assert_eq!(under_way, None);
                        under_way = Some(matches!(action, Action::Probe { .. }));
                    }
                }
                // An idle machine waits for a time; a busy machine waits for the result of its
                // action.
                prop_assert_eq!(under_way.is_none(), machine.next_round().is_some());
                prop_assert_eq!(machine.local_soa().is_some(), machine.refreshed().is_some());
                prop_assert!(!machine.is_expired() || machine.local_soa().is_some());
            }
        }
    }
}
