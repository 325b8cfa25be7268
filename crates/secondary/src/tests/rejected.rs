//! Tests of rejected versions: which primary sent them, and which primaries are queried for them
//! again.

use super::*;

/// Returns the actions after a version with this serial was rejected.
fn rejected(machine: &mut Machine, serial: u32, now: u64) -> Vec<Action> {
    handle(machine, refused(serial), now)
}

#[test]
fn a_version_that_was_rejected_from_one_primary_is_transferred_from_the_next() {
    for is_held in [false, true] {
        let mut machine = machine(3, is_held.then_some(INITIAL_SOA), None);
        wake(&mut machine, NOW);
        if is_held {
            assert_eq!(handle(&mut machine, has(11), NOW), [steps(0)]);
        }
        let next = rejected(&mut machine, 11, NOW);
        if is_held {
            assert_eq!(next, [probe(1)]);
            assert_eq!(handle(&mut machine, has(11), NOW), [whole(1)]);
        } else {
            assert_eq!(next, [whole(1)]);
        }
        assert_eq!(
            handle(&mut machine, transferred(InboundOutcome::Published(soa_with_serial(11))), NOW),
            [Action::Store]
        );
        assert_eq!((machine.rejected(), machine.local_soa()), (None, Some(soa_with_serial(11))));
    }
}

#[test]
fn each_primary_transfers_a_version_that_all_have_wrong_once() {
    let mut machine = fresh(3);
    machine.reconfigure(Timing::default(), false, 3, NOW);
    assert_eq!(actions(&mut machine), [probe(0)]);
    for primary in 0..3 {
        assert_eq!(handle(&mut machine, has(11), NOW), [whole(primary)]);
        let next = rejected(&mut machine, 11, NOW);
        assert_eq!(next, if primary < 2 { vec![probe(primary + 1)] } else { vec![] });
    }
    assert_eq!((machine.rejected(), machine.failed_rounds()), (Some(11), 1));
    assert_next(&machine, NOW, HOUR);
    for primary in [None, Some(0), Some(2)] {
        let event = Event::Notified { serial: Some(11), primary };
        assert_eq!(handle(&mut machine, event, NOW + 1), []);
    }
    let now = machine.next_round().unwrap();
    assert_eq!(wake(&mut machine, now).len(), 1);
    for _ in 0..3 {
        let next = handle(&mut machine, has(11), now);
        assert!(!next.iter().any(|action| matches!(action, Action::Transfer { .. })), "{next:?}");
    }
    assert!(machine.next_round().is_some_and(|at| at > now));
}

/// Two primaries have two versions, and both are rejected. Neither is transferred again because of
/// the other.
#[test]
fn the_rejected_version_of_each_primary_is_remembered() {
    let mut machine = fresh(2);
    machine.reconfigure(Timing::default(), false, 2, NOW);
    assert_eq!(actions(&mut machine), [probe(0)]);
    assert_eq!(handle(&mut machine, has(11), NOW), [whole(0)]);
    assert_eq!(rejected(&mut machine, 11, NOW), [probe(1)]);
    assert_eq!(handle(&mut machine, has(12), NOW), [whole(1)]);
    assert_eq!(rejected(&mut machine, 12, NOW), []);
    assert_eq!(machine.rejected(), Some(12));
    for _ in 0..4 {
        let now = machine.next_round().unwrap();
        let mut wanted = wake(&mut machine, now);
        while let Some(Action::Probe { primary }) = wanted.pop() {
            wanted = handle(&mut machine, has(11 + primary as u32), now);
        }
        assert_eq!(wanted, []);
    }
    // The first primary now has the newer version, and it is valid.
    let event = Event::Notified { serial: Some(12), primary: Some(0) };
    let now = NOW + HOUR * 6;
    assert_eq!(handle(&mut machine, event, now), [probe(0)]);
    assert_eq!(handle(&mut machine, has(12), now), [whole(0)]);
    assert_eq!(
        handle(&mut machine, transferred(InboundOutcome::Published(soa_with_serial(12))), now),
        [Action::Store]
    );
    assert_eq!(machine.rejected(), None);
}

#[test]
fn a_zone_stays_refreshed_where_one_primary_has_a_bad_version_and_another_has_the_held_one() {
    let mut machine = fresh(2);
    let now = machine.next_round().unwrap();
    wake(&mut machine, now);
    assert_eq!(handle(&mut machine, has(11), now), [steps(0)]);
    assert_eq!(rejected(&mut machine, 11, now), [probe(1)]);
    assert_eq!(handle(&mut machine, has(10), now), [Action::Store]);
    assert_eq!((machine.failed_rounds(), machine.rejected()), (0, Some(11)));
    assert_eq!(refreshed(&machine), Some(now));
}

#[test]
fn a_whole_zone_that_an_operator_wants_is_asked_of_the_next_primary() {
    let mut machine = fresh(2);
    assert_eq!(handle(&mut machine, Event::Retransfer, NOW), [whole(0)]);
    assert_eq!(rejected(&mut machine, 10, NOW), [whole(1)]);
    assert_eq!(
        handle(&mut machine, transferred(InboundOutcome::Published(soa_with_serial(10))), NOW),
        [Action::Store]
    );
}

/// Whether the round at `now` transfers the version with this serial from the first primary.
fn is_transferred(machine: &mut Machine, serial: u32, now: u64) -> bool {
    assert_eq!(wake(machine, now), [probe(0)]);
    match handle(machine, has(serial), now)[..] {
        [Action::Transfer { .. }] => true,
        ref others => {
            assert_eq!(others, []);
            false
        }
    }
}

/// Signatures that are not valid yet become valid later. Expired signatures are valid if the clock
/// was ahead.
#[test]
fn a_version_that_was_rejected_because_of_the_time_is_transferred_again_later() {
    for (seconds, expected) in [(0, HOUR), (25, HOUR), (4000, HOUR), (u32::MAX, HOUR)] {
        let mut machine = fresh(1);
        assert_eq!(handle(&mut machine, notified(Some(11)), NOW), [probe(0)]);
        assert_eq!(handle(&mut machine, has(11), NOW), [steps(0)]);
        let verdict = RejectionPeriod::For { seconds };
        assert_eq!(
            handle(&mut machine, transferred(InboundOutcome::Rejected { serial: 11, verdict }), NOW),
            []
        );
        assert_eq!(machine.rejected_whole_zones().count(), 0, "nothing for the disk");
        assert_eq!(handle(&mut machine, notified(Some(11)), NOW + 1000), [], "{seconds}");
        assert!(is_transferred(&mut machine, 11, NOW + expected), "{seconds}");
        // This repeats as often as needed.
        assert_eq!(
            handle(&mut machine, transferred(InboundOutcome::Rejected { serial: 11, verdict }), NOW + HOUR),
            []
        );
        assert!(is_transferred(&mut machine, 11, NOW + 2 * HOUR), "{seconds}");
    }
    // Without a local version, the rounds are more frequent, and the machine waits until the
    // signatures become valid.
    let mut machine = machine(1, None, None);
    assert_eq!(wake(&mut machine, NOW), [whole(0)]);
    let verdict = RejectionPeriod::For { seconds: 25 };
    assert_eq!(handle(&mut machine, transferred(InboundOutcome::Rejected { serial: 11, verdict }), NOW), []);
    let rounds: Vec<bool> = (0..3)
        .map(|_| {
            let now = machine.next_round().unwrap();
            (now >= NOW + 25_000, is_transferred(&mut machine, 11, now))
        })
        .map(|(is_valid, is_transferred)| {
            assert_eq!(is_valid, is_transferred);
            is_valid
        })
        .collect();
    assert_eq!(rounds, [false, false, true]);
}

/// A missing key or a conflicting file on this server is not a fault of the version.
#[test]
fn a_version_that_this_server_could_not_publish_is_tried_again_and_not_remembered_on_the_disk() {
    let mut machine = fresh(2);
    assert_eq!(handle(&mut machine, notified(Some(11)), NOW), [probe(0)]);
    assert_eq!(handle(&mut machine, has(11), NOW), [steps(0)]);
    // The other primary has the same version, and is not queried for it.
    assert_eq!(handle(&mut machine, transferred(InboundOutcome::PublishFailed { serial: 11 }), NOW), []);
    assert_eq!((machine.rejected_whole_zones().count(), machine.failed_rounds()), (0, 1));
    assert_next(&machine, NOW, HOUR);
    for primary in [None, Some(0), Some(1)] {
        let event = Event::Notified { serial: Some(11), primary };
        assert_eq!(handle(&mut machine, event, NOW + 1), []);
    }
    let mut reloaded = fresh(1);
    handle(&mut reloaded, notified(Some(11)), NOW);
    handle(&mut reloaded, has(11), NOW);
    handle(&mut reloaded, transferred(InboundOutcome::PublishFailed { serial: 11 }), NOW);
    assert_eq!(handle(&mut reloaded, Event::Reconsider, NOW + 1), [probe(0)]);
    assert_eq!(handle(&mut reloaded, has(11), NOW + 1), [steps(0)]);
    assert!(is_transferred(&mut machine, 11, NOW + HOUR));
}
