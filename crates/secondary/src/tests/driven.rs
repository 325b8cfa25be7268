//! Tests of the driver with the primaries of the test module, over loopback.

use super::primary::{Primary, TestStore, apex, version};
use crate::error::ExchangeError;
use crate::inbound::tests::assert_same;
use crate::notify::{NotifyReason, NotifyRole, ReceivedNotify, SoaRecord, handle};
use crate::{
    Phase, SecondaryZone, StoredState, TimeBounds, Timers, Timing, Transfers, TransfersOptions, ZoneStatus,
    ZoneStore,
};
use nonesuch_net::{ClientError, Transport};
use nonesuch_proto::{Name, Rtype};
use nonesuch_server::acl::Remote;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

const DAY: [u32; 3] = [86_400, 86_400, 864_000];

fn start(store: &Arc<TestStore>) -> Transfers {
    Transfers::start(TransfersOptions::default(), Arc::clone(store) as Arc<dyn ZoneStore>).unwrap()
}

fn zone(primary: &Primary) -> SecondaryZone {
    SecondaryZone::new(apex(), vec![Remote::plain(primary.address)])
}

fn notify(transfers: &Transfers, primary: &Primary, serial: Option<u32>) {
    assert!(transfers.queue_notify(ReceivedNotify { apex: apex(), serial, sender: primary.address.ip() }));
}

/// Waits until the status of the zone meets the condition.
#[track_caller]
fn wait_for(transfers: &Transfers, is_it: impl Fn(&ZoneStatus) -> bool) -> ZoneStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = transfers.zone_status(&apex()).filter(&is_it) {
            return status;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", transfers.zone_status(&apex()));
        std::thread::yield_now();
    }
}

#[test]
fn a_hundred_versions_by_steps_are_each_the_primarys() {
    let version_of = |serial: u32| {
        version(serial, DAY, &format!("a{}.x A 192.0.2.{serial}\nb TXT \"{}\"\n", serial % 7, serial / 10))
    };
    let primary = Primary::start(vec![version_of(1)]);
    let store = Arc::new(TestStore::default());
    let transfers = start(&store);
    transfers.set_zone(zone(&primary));
    assert_same(&store.wait_for(&apex(), 1, false), &version_of(1));
    for serial in 2..=101 {
        primary.change(|behaviour| behaviour.versions.push(version_of(serial)));
        notify(&transfers, &primary, Some(serial));
        assert_same(&store.wait_for(&apex(), serial, false), &version_of(serial));
    }
    let mut expected = vec![1; 101];
    expected[0] = 0;
    assert_eq!(store.published(&apex()), expected);
    // Ten versions at once arrive in ten steps.
    for serial in 102..=111 {
        primary.change(|behaviour| behaviour.versions.push(version_of(serial)));
    }
    notify(&transfers, &primary, None);
    assert_same(&store.wait_for(&apex(), 111, false), &version_of(111));
    assert_eq!(store.published(&apex()).last(), Some(&10));
    wait_for(&transfers, |status| status.serial == Some(111));
    let counts = transfers.counts();
    assert_eq!((counts.axfr, counts.ixfr, counts.failed, counts.refused), (1, 101, 0, 0));
    drop(transfers);
}

#[test]
fn what_cannot_be_had_by_steps_is_had_whole() {
    for rcode in [1, 4, 5] {
        let primary = Primary::start(vec![version(1, DAY, "")]);
        let store = Arc::new(TestStore::default());
        let transfers = start(&store);
        transfers.set_zone(zone(&primary));
        store.wait_for(&apex(), 1, false);
        primary.change(|behaviour| {
            behaviour.ixfr_rcode = Some(rcode);
            behaviour.versions.push(version(2, DAY, ""));
        });
        notify(&transfers, &primary, Some(2));
        assert_same(&store.wait_for(&apex(), 2, false), &version(2, DAY, ""));
        // FORMERR and NOTIMP may refer to EDNS (RFC 6891 §7). They are accepted as a response to
        // IXFR if the query had no EDNS.
        let ixfr = vec![Rtype::IXFR; if rcode == 5 { 1 } else { 2 }];
        assert_eq!(primary.asked(), [&[Rtype::AXFR, Rtype::SOA][..], &ixfr, &[Rtype::AXFR]].concat());
    }
}

#[test]
fn steps_that_do_not_fit_what_is_here_are_replaced_by_the_whole_zone() {
    let primary = Primary::start(vec![version(1, DAY, ""), version(2, DAY, "new A 192.0.2.1\n")]);
    let store = Arc::new(TestStore::default());
    // The same serial with other records.
    store.put(version(1, DAY, "new A 192.0.2.1\n"));
    let transfers = start(&store);
    transfers.set_zone(zone(&primary));
    assert_same(&store.wait_for(&apex(), 2, false), &version(2, DAY, "new A 192.0.2.1\n"));
    assert_eq!(primary.asked(), [Rtype::SOA, Rtype::IXFR, Rtype::AXFR]);
    let status = wait_for(&transfers, |status| status.serial == Some(2));
    assert_eq!((status.last_error, transfers.counts().failed), (None, 1));
}

/// RFC 7314 §4; the result is known after a restart.
#[test]
fn what_is_left_at_the_primary_is_heeded_told_and_kept() {
    let primary = Primary::start(vec![version(1, DAY, "")]);
    primary.change(|behaviour| behaviour.expire = Some(500));
    let store = Arc::new(TestStore::storing());
    let settings = zone(&primary);
    let transfers = start(&store);
    transfers.set_zone(settings.clone());
    let left = |transfers: &Transfers| {
        let status = wait_for(transfers, |status| status.serial == Some(1));
        status.expires.unwrap() - status.refreshed.unwrap()
    };
    assert_eq!(left(&transfers), 500);
    let told = store.expiries.lock().unwrap().last().copied().flatten().expect("an expiry");
    assert!(told.saturating_duration_since(Instant::now()).as_secs() <= 500);
    drop(transfers);
    assert_eq!(store.load_state(&apex()).timers.map(|timers| timers.left), Some(Some(500)));
    let transfers = start(&store);
    transfers.set_zone(settings);
    assert_eq!(left(&transfers), 500);
    // With an SOA query, the later time applies.
    primary.change(|behaviour| behaviour.expire = Some(100_000));
    transfers.refresh(&apex());
    wait_for(&transfers, |status| status.expires.unwrap() - status.refreshed.unwrap() == 100_000);
}

#[test]
fn a_primary_that_knows_no_edns_is_asked_without() {
    let primary = Primary::start(vec![version(1, DAY, "")]);
    primary.change(|behaviour| behaviour.rejects_edns = true);
    let store = Arc::new(TestStore::default());
    let transfers = start(&store);
    transfers.set_zone(zone(&primary));
    store.wait_for(&apex(), 1, false);
    primary.change(|behaviour| behaviour.versions.push(version(2, DAY, "new A 192.0.2.1\n")));
    notify(&transfers, &primary, Some(2));
    assert_same(&store.wait_for(&apex(), 2, false), &version(2, DAY, "new A 192.0.2.1\n"));
    let twice = [Rtype::AXFR, Rtype::SOA, Rtype::IXFR].map(|rtype| [rtype; 2]);
    assert_eq!(primary.asked(), twice.concat());
    assert_eq!(transfers.counts().failed, 0);
}

#[test]
fn a_refused_version_leaves_the_one_before_and_a_newer_one_is_taken() {
    let primary = Primary::start(vec![version(1, DAY, "")]);
    let store = Arc::new(TestStore::default());
    store.refused.lock().unwrap().push(2);
    let transfers = start(&store);
    transfers.set_zone(zone(&primary));
    store.wait_for(&apex(), 1, false);
    primary.change(|behaviour| behaviour.versions.push(version(2, DAY, "")));
    notify(&transfers, &primary, Some(2));
    let status = wait_for(&transfers, |status| status.failures == 1);
    assert!(status.last_error.unwrap().ends_with("a signature is missing"));
    assert_eq!((status.serial, transfers.counts().refused), (Some(1), 1));
    store.wait_for(&apex(), 1, false);
    primary.change(|behaviour| behaviour.versions.push(version(3, DAY, "")));
    notify(&transfers, &primary, Some(3));
    store.wait_for(&apex(), 3, false);
    // As a whole zone, because the steps may have been the cause.
    assert_eq!(store.published(&apex()), [0, 0]);
}

/// If the version is rejected, the primary still sent it, so the primary does not count as failing.
#[test]
fn a_transfer_of_a_version_that_is_rejected_ends_an_outage() {
    let primary = Primary::start(vec![version(1, DAY, "")]);
    let store = Arc::new(TestStore::default());
    store.refused.lock().unwrap().push(2);
    let transfers = start(&store);
    transfers.set_zone(SecondaryZone { request_ixfr: false, ..zone(&primary) });
    wait_for(&transfers, |status| status.serial == Some(1));
    let failing = |transfers: &Transfers, serial: u32, count: usize| {
        primary.change(|behaviour| behaviour.versions.push(version(serial, DAY, "")));
        notify(transfers, &primary, Some(serial));
        wait_for(transfers, |status| status.failing.len() == count && status.phase == Phase::Idle)
    };
    primary.change(|behaviour| behaviour.closes_after_octets = Some(100));
    let closed = ClientError::Closed { server: primary.address, transport: Transport::Tcp };
    assert_eq!(failing(&transfers, 2, 1).failing[0].error, closed.to_string());
    primary.change(|behaviour| behaviour.closes_after_octets = None);
    notify(&transfers, &primary, Some(2));
    let status = wait_for(&transfers, |status| status.rejected == Some(2));
    assert_eq!(status.failing, []);
    // An SOA response also ends the outage if no transfer follows, because the primary no longer
    // has the failing version.
    primary.change(|behaviour| behaviour.closes_after_octets = Some(100));
    failing(&transfers, 3, 1);
    primary.change(|behaviour| behaviour.versions.truncate(2));
    notify(&transfers, &primary, Some(4));
    wait_for(&transfers, |status| status.failing.is_empty());
}

#[test]
fn broken_transfers_leave_the_zone_and_another_primary_helps() {
    let (broken, sound) =
        (Primary::start(vec![version(2, DAY, "")]), Primary::start(vec![version(2, DAY, "")]));
    broken.change(|behaviour| behaviour.closes_after_octets = Some(100));
    let store = Arc::new(TestStore::default());
    store.put(version(1, DAY, ""));
    let transfers = start(&store);
    let primaries = vec![Remote::plain(broken.address), Remote::plain(sound.address)];
    transfers.set_zone(SecondaryZone { request_ixfr: false, ..SecondaryZone::new(apex(), primaries) });
    assert_same(&store.wait_for(&apex(), 2, false), &version(2, DAY, ""));
    assert_eq!(broken.asked(), [Rtype::SOA, Rtype::AXFR]);
    assert_eq!(sound.asked(), [Rtype::SOA, Rtype::AXFR]);
}

#[test]
fn zones_expire_when_no_primary_answers_and_come_back() {
    let timing = Timing {
        refresh: TimeBounds { min: 1, max: 1 },
        retry: TimeBounds { min: 1, max: 1 },
        expire: TimeBounds { min: 1, max: 2 },
    };
    let primary = Primary::start(vec![version(1, [1, 1, 2], "")]);
    let store = Arc::new(TestStore::default());
    let transfers = start(&store);
    transfers.set_zone(SecondaryZone { timing, ..zone(&primary) });
    store.wait_for(&apex(), 1, false);
    // The primary has lost its zone and answers SERVFAIL, which is not authoritative.
    primary.change(|behaviour| behaviour.versions.clear());
    store.wait_for(&apex(), 1, true);
    let status = wait_for(&transfers, |status| status.is_expired && status.last_error.is_some());
    assert!(status.last_error.unwrap().contains("SERVFAIL"));
    primary.change(|behaviour| behaviour.versions.push(version(1, [1, 1, 2], "")));
    store.wait_for(&apex(), 1, false);
    assert_eq!((transfers.counts().expired, store.published(&apex())), (1, vec![0]));
}

/// Otherwise each restart would transfer the whole zone, and reject it again.
#[test]
fn a_rejected_version_is_not_transferred_again_after_a_restart() {
    let judged_by = |settings: &str| Some(settings.to_owned());
    let primary = Primary::start(vec![version(1, DAY, "")]);
    let store = Arc::new(TestStore::storing());
    store.refused.lock().unwrap().push(1);
    let settings = SecondaryZone { judged_by: judged_by("these settings"), ..zone(&primary) };
    let is_rejected = |status: &ZoneStatus| status.rejected == Some(1) && status.failures == 1;
    for asked in [&[Rtype::AXFR][..], &[Rtype::AXFR, Rtype::SOA], &[Rtype::AXFR, Rtype::SOA, Rtype::SOA]] {
        let transfers = start(&store);
        transfers.set_zone(settings.clone());
        wait_for(&transfers, is_rejected);
        drop(transfers);
        assert_eq!(primary.asked(), asked);
    }
    // With other settings, the version may be accepted.
    let transfers = start(&store);
    transfers.set_zone(SecondaryZone { judged_by: judged_by("other settings"), ..zone(&primary) });
    wait_for(&transfers, is_rejected);
    drop(transfers);
    assert_eq!(primary.asked().last(), Some(&Rtype::AXFR));
    // The operator's request is executed, and no rejection stays stored.
    let transfers = start(&store);
    transfers.set_zone(SecondaryZone { judged_by: judged_by("other settings"), ..zone(&primary) });
    wait_for(&transfers, is_rejected);
    store.refused.lock().unwrap().clear();
    transfers.refresh(&apex());
    store.wait_for(&apex(), 1, false);
    wait_for(&transfers, |status| status.serial == Some(1));
    drop(transfers);
    assert_eq!(store.load_state(&apex()).rejected, None);
}

#[test]
fn timers_survive_a_restart() {
    let primary = Primary::start(vec![version(1, DAY, "")]);
    let store = Arc::new(TestStore::storing());
    let settings = zone(&primary);
    let transfers = start(&store);
    transfers.set_zone(settings.clone());
    store.wait_for(&apex(), 1, false);
    wait_for(&transfers, |status| status.serial == Some(1));
    // The thread ends after its writes are finished.
    drop(transfers);
    let stored = store.load_state(&apex()).timers.unwrap();
    assert_eq!(stored.serial, 1);
    let transfers = start(&store);
    transfers.set_zone(settings.clone());
    let status = wait_for(&transfers, |status| status.serial == Some(1));
    assert_eq!(status.refreshed, Some(stored.refreshed));
    assert!(status.next.unwrap() > stored.refreshed + 70_000);
    // No primary was queried, because no refresh was due.
    assert_eq!(primary.asked(), [Rtype::AXFR]);
    // A retired zone keeps its timers; a removed zone does not.
    transfers.retire_zone(&apex());
    drop(transfers);
    assert!(store.load_state(&apex()).timers.is_some());
    let transfers = start(&store);
    transfers.set_zone(settings);
    transfers.remove_zone(&apex());
    drop(transfers);
    assert_eq!(store.load_state(&apex()), StoredState::default());
}

#[test]
fn a_zone_that_is_transferred_again_is_had_whole() {
    let primary = Primary::start(vec![version(1, DAY, "")]);
    let store = Arc::new(TestStore::default());
    let transfers = start(&store);
    transfers.set_zone(zone(&primary));
    wait_for(&transfers, |status| status.serial == Some(1));
    transfers.retransfer(&apex());
    wait_until(|| store.published(&apex()).len() == 2);
    assert_eq!(primary.asked(), [Rtype::AXFR; 2]);
}

#[test]
fn secondaries_are_told_and_told_again() {
    let secondary = UdpSocket::bind("127.0.0.1:0").unwrap();
    secondary.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let store = Arc::new(TestStore::default());
    let transfers = start(&store);
    let contents = version(7, DAY, "");
    let soa = contents.apex_rrset(Rtype::SOA).unwrap();
    let soa = SoaRecord { ttl: soa.ttl(), rdata: soa.rdatas().next().unwrap().to_vec() };
    let to = vec![Remote::plain(secondary.local_addr().unwrap())];
    transfers.send_notify(&apex(), soa, to, NotifyReason::Change);
    let mut buffer = [0; 512];
    // The first NOTIFY is lost.
    secondary.recv_from(&mut buffer).unwrap();
    let (length, primary) = secondary.recv_from(&mut buffer).unwrap();
    let mut out = Vec::new();
    let notified = handle(
        &buffer[..length],
        primary.ip(),
        |_| NotifyRole::Secondary { is_sender_permitted: true },
        &mut out,
    );
    assert_eq!(notified.map(|notified| notified.serial), Some(Some(7)));
    secondary.send_to(&out, primary).unwrap();
    let began = Instant::now();
    while transfers.counts().acknowledged == 0 {
        assert!(began.elapsed() < Duration::from_secs(30));
        std::thread::yield_now();
    }
}

fn wait_until(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(30));
        std::thread::yield_now();
    }
}

/// Returns a driver with a limit of one transfer.
fn start_narrow(store: &Arc<TestStore>) -> Transfers {
    let options = TransfersOptions { transfers: 1, transfers_per_primary: 1, ..TransfersOptions::default() };
    Transfers::start(options, Arc::clone(store) as Arc<dyn ZoneStore>).unwrap()
}

#[test]
fn a_notify_that_comes_before_the_zone_is_followed_up_when_it_is_loaded() {
    let now = nonesuch_server::clock::seconds_now();
    let primary = Primary::start(vec![version(1, DAY, ""), version(2, DAY, "")]);
    let store = Arc::new(TestStore::storing());
    store.note(&apex(), |stored| stored.timers = Some(Timers { serial: 1, refreshed: now, left: None }));
    store.put(version(1, DAY, ""));
    let transfers = start(&store);
    notify(&transfers, &primary, Some(2));
    // The NOTIFY is processed by the time that the query for another zone has failed.
    let other: Name = "other.".parse().unwrap();
    transfers.set_zone(SecondaryZone::new(other.clone(), vec![Remote::plain(primary.address)]));
    wait_until(|| transfers.zone_status(&other).is_some_and(|status| status.last_error.is_some()));
    transfers.set_zone(zone(&primary));
    assert_same(&store.wait_for(&apex(), 2, false), &version(2, DAY, ""));
}

#[test]
fn room_is_given_back_whatever_the_primaries_are_meanwhile() {
    // Accepts connections and never answers.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = Remote::plain(silent.local_addr().unwrap());
    let primary = Primary::start(vec![version(1, DAY, "")]);
    let store = Arc::new(TestStore::default());
    let transfers = start_narrow(&store);
    let other: Name = "other.".parse().unwrap();
    for _ in 0..2 {
        transfers.set_zone(SecondaryZone::new(other.clone(), vec![silent.clone()]));
        wait_until(|| {
            transfers.zone_status(&other).is_some_and(|status| status.phase == Phase::Transferring)
        });
        transfers.set_zone(SecondaryZone::new(other.clone(), vec![Remote::plain(primary.address)]));
        transfers.remove_zone(&other);
        wait_until(|| transfers.zone_status(&other).is_none());
    }
    transfers.set_zone(zone(&primary));
    store.wait_for(&apex(), 1, false);
}

#[test]
fn a_transfer_that_breaks_off_is_told_and_gives_its_room_back() {
    let primary = Primary::start(vec![version(1, DAY, "")]);
    let store = Arc::new(TestStore::default());
    store.panics.store(1, std::sync::atomic::Ordering::SeqCst);
    let transfers = start_narrow(&store);
    transfers.set_zone(zone(&primary));
    let status = wait_for(&transfers, |status| status.last_error.is_some());
    assert!(status.last_error.unwrap().ends_with(&ExchangeError::Panicked.to_string()));
    transfers.refresh(&apex());
    store.wait_for(&apex(), 1, false);
}

#[test]
fn a_zone_never_goes_back_unasked() {
    let primary = Primary::start(vec![version(9, DAY, ""), version(11, DAY, "")]);
    primary.change(|behaviour| behaviour.serves_oldest = true);
    let store = Arc::new(TestStore::default());
    store.put(version(10, DAY, ""));
    let transfers = start(&store);
    transfers.set_zone(SecondaryZone { request_ixfr: false, ..zone(&primary) });
    wait_until(|| transfers.counts().up_to_date == 1);
    assert_eq!(primary.asked(), [Rtype::SOA, Rtype::AXFR]);
    assert!(store.published(&apex()).is_empty());
    // The operator's request is executed.
    transfers.retransfer(&apex());
    store.wait_for(&apex(), 9, false);
}

#[test]
fn a_primary_that_gives_its_serial_alone_is_asked_for_the_whole_zone() {
    let primary = Primary::start(vec![version(1, DAY, ""), version(2, DAY, "")]);
    primary.change(|behaviour| behaviour.gives_only_soa = true);
    let store = Arc::new(TestStore::default());
    store.put(version(1, DAY, ""));
    let transfers = start(&store);
    transfers.set_zone(zone(&primary));
    assert_same(&store.wait_for(&apex(), 2, false), &version(2, DAY, ""));
    assert_eq!(primary.asked(), [Rtype::SOA, Rtype::IXFR, Rtype::AXFR]);
}

#[test]
fn many_zones_share_the_room_for_transfers() {
    let names: Vec<Name> = (0..40).map(|number| format!("z{number}.").parse().unwrap()).collect();
    let primary = Primary::start(Vec::new());
    let store = Arc::new(TestStore::default());
    let transfers = start(&store);
    for name in &names {
        transfers.set_zone(SecondaryZone::new(name.clone(), vec![Remote::plain(primary.address)]));
    }
    let began = Instant::now();
    // Each zone is queried once and fails; then all zones wait.
    while transfers.counts().failed < 40 {
        assert!(began.elapsed() < Duration::from_secs(30), "{:?}", transfers.counts());
        std::thread::yield_now();
    }
    let status = transfers.status();
    assert_eq!(status.len(), 40);
    assert!(
        status.iter().all(|zone| zone.last_error.as_ref().is_some_and(|error| error.contains("SERVFAIL")))
    );
}
