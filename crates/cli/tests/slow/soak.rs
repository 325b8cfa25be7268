//! A long run of a server under mixed load, while its zones are reloaded, transferred in and
//! transferred out every ten seconds. No response is lost, every version arrives, and memory, open
//! files and threads do not grow.
//!
//! `NONESUCH_SOAK_SECONDS` and `NONESUCH_SOAK_RATE` (queries per second over all transports) set
//! the duration and the rate (`just soak`).

use crate::common;
use crate::peers;
mod load;
mod scene;
mod watch;
mod zones;

use common::folder;
use load::{End, Totals};
use scene::Soak;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::{scope, sleep};
use std::time::{Duration, Instant};
use watch::{Held, Watch, watch_all};
use zones::{Question, Zone};

/// Growth of memory that is tolerated, in KiB.
const ROOM: u64 = 4096;

fn number(name: &str, default: u32) -> u32 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Ends the parallel threads, even if the test fails.
struct Ending<'e>(&'e End, &'e AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.now.store(true, Relaxed);
        self.1.store(true, Relaxed);
    }
}

/// A value that must not grow: its name, the function that reads it, and the growth that is
/// tolerated in addition to a twentieth.
type Measure = (&'static str, fn(&Held) -> u64, u64);

const MEASURES: [Measure; 4] = [
    ("KiB resident", |held| held.resident, ROOM),
    ("KiB proportional", |held| held.proportional, ROOM),
    ("files", |held| held.files, 16),
    ("threads", |held| held.threads, 4),
];

/// The results of one kind of load.
type Came = (&'static str, Totals);

#[test]
fn no_answer_is_lost_and_nothing_grows() {
    let (seconds, rate) = (number("NONESUCH_SOAK_SECONDS", 15), number("NONESUCH_SOAK_RATE", 1000));
    // A run of a minute or more has a change every ten seconds; a short run has six changes.
    let interval = Duration::from_millis(u64::from(seconds) * 1000 / 6).min(Duration::from_secs(10));
    let home = folder();
    let soak = Soak::start(home.path());
    let mut arrivals = vec![soak.change(2)];
    println!("{seconds} s, {rate} queries a second, a change each {interval:?}");
    let watches = [("server", &soak.server), ("primary", &soak.primary), ("secondary", &soak.secondary)]
        .map(|(name, server)| Watch::new(name, server.id()));
    let begun = Instant::now();
    let end = End { at: begun + Duration::from_secs(u64::from(seconds)), now: AtomicBool::new(false) };
    let stop = AtomicBool::new(false);
    let questions: Vec<Question> = soak.zones().flat_map(Zone::questions).collect();
    let loads = soak.loads(&questions, rate);
    let came = scope(|scope| {
        let ending = Ending(&end, &stop);
        scope.spawn(|| watch_all(&watches, &stop));
        let running = loads.each_ref().map(|(name, load)| (*name, scope.spawn(|| load.run(&end))));
        while Instant::now() + interval / 2 < end.at {
            let round = Instant::now();
            let serial = arrivals.len() as u32 + 2;
            arrivals.push(soak.change(serial));
            soak.ask_by_programs(serial);
            say(begun, serial, &arrivals, &watches);
            let left = end.at.saturating_duration_since(Instant::now());
            sleep(interval.saturating_sub(round.elapsed()).min(left));
        }
        let came = running.map(|(name, thread)| (name, thread.join().expect("no panic")));
        drop(ending);
        came
    });
    report(&soak, &came, &arrivals);
    let grown = growth(&watches);
    judge(&soak, &came, arrivals.len() as u32 + 1, seconds * rate);
    assert!(grown.is_empty(), "{grown:?}");
}

/// A line about the progress.
fn say(begun: Instant, serial: u32, arrivals: &[Duration], watches: &[Watch]) {
    let last = arrivals.last().copied().unwrap_or_default().as_secs_f64();
    let held: Vec<String> = watches
        .iter()
        .map(|watch| {
            let Held { resident, proportional, files, threads } = watch.last();
            format!(
                "{} {resident} KiB ({proportional} proportional), {files} files, {threads} threads",
                watch.name
            )
        })
        .collect();
    println!(
        "{:5.0} s: version {serial} everywhere after {last:.2} s; {}",
        begun.elapsed().as_secs_f64(),
        held.join("; ")
    );
}

fn report(soak: &Soak, came: &[Came], arrivals: &[Duration]) {
    for (name, totals) in came {
        let Totals { sent, received, lost, truncated, slowest_ms, connections, rcodes, .. } = totals;
        println!(
            "{name}: {sent} sent, {received} answered, {lost} lost, {truncated} truncated, {rcodes:?}, slowest {slowest_ms:.1} ms, \
             {connections} connections"
        );
    }
    let (by_steps, whole) = soak.transfers();
    let slowest = arrivals.iter().max().copied().unwrap_or_default().as_secs_f64();
    println!(
        "{} versions of each zone, the slowest everywhere after {slowest:.2} s; transfers in: {by_steps} IXFR, {whole} AXFR",
        arrivals.len() + 1
    );
    println!("dropped by the server: {:?}", soak.dropped());
    for (warning, count) in soak.look_at_logs() {
        println!("{count} times: {warning}");
    }
}

/// Asserts that no response was lost or wrong, and that all versions arrived as expected.
fn judge(soak: &Soak, came: &[Came], serial: u32, wanted: u32) {
    for (name, totals) in came {
        assert_eq!((totals.lost, totals.unexpected, totals.sent), (0, 0, totals.received), "{name}");
        assert!(totals.faults.is_empty() && totals.unwanted().is_empty(), "{name}: {:?}", totals.faults);
        assert!(totals.received > 0, "{name}: nothing was asked");
    }
    let received: u64 = came.iter().map(|(_, totals)| totals.received).sum();
    // A machine with much other work sends fewer queries.
    assert!(received >= u64::from(wanted) / 4, "{received} of {wanted}");
    let (by_steps, whole) = soak.transfers();
    let versions = serial as usize - 1;
    assert!(by_steps >= versions / 2 && whole >= versions, "{by_steps} IXFR and {whole} AXFR of {versions}");
    soak.assert_same(serial);
}

/// The values of memory, files and threads that are larger at the end than after the warm-up.
fn growth(watches: &[Watch]) -> Vec<String> {
    let mut grown = Vec::new();
    for watch in watches {
        for (what, of, room) in MEASURES {
            let (early, late) = watch.quarters(of);
            let name = watch.name;
            println!(
                "{name}: {what}: median of the second quarter {early}, of the last {late}, most {} ({} looks)",
                watch.most(of),
                watch.count()
            );
            if late > early + early / 20 + room {
                grown.push(format!("{name}: {what} from {early} to {late}"));
            }
        }
    }
    grown
}
