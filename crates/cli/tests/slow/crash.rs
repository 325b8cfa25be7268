//! A server that is killed at any time during reloads and incoming transfers. After a restart, it
//! serves the last published version or the one that was being published, whether or not its
//! primary is reachable.
//!
//! `NONESUCH_KILLS` is the number of kills (`just crash`: 200).

use crate::common;
mod operations;

use common::configured::{Configured, configure, write_beside};
use common::folder;
use common::transfer::{transfer, transferred, zone_text};
use nonesuch_proto::Name;
use nonesuch_secondary::inbound::{InboundRequest, TransferContent, apply_steps};
use nonesuch_zone::{Journal, load};
use operations::{Kind, Operation, Scene, large};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum size of a journal, in octets. No journal here reaches it.
const JOURNAL: u64 = 64 << 20;

/// Small pseudo-random numbers from a seed (xorshift), the same in each run.
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit.max(1)
    }
}

/// Counts of the phases of the kills, and of the versions served afterwards.
#[derive(Default)]
struct Counts {
    /// By kind and phase.
    within: BTreeMap<(String, String), u32>,
    before: u32,
    after: u32,
    /// Only kills within the operation, by kind: the previous version was served, or the new one.
    old: BTreeMap<String, u32>,
    new: BTreeMap<String, u32>,
}

impl Counts {
    fn all_within(&self) -> u32 {
        self.within.values().sum()
    }

    fn print(&self, kills: u32, operations: &[Operation]) {
        let spans: Vec<String> = operations
            .iter()
            .map(|operation| format!("{:?} {:.0?}", operation.kind, operation.span))
            .collect();
        println!("uninterrupted: {}", spans.join(", "));
        println!(
            "{kills} kills: {} within an operation, {} before it began, {} after it ended",
            self.all_within(),
            self.before,
            self.after
        );
        for ((kind, phase), count) in &self.within {
            println!("  {kind}, {phase}: {count}");
        }
        println!("served after a restart: the version of before {:?}, the new one {:?}", self.old, self.new);
    }
}

#[test]
fn what_was_published_is_served_after_a_kill_at_any_moment() {
    let kills = std::env::var("NONESUCH_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(9);
    let folder = folder();
    let scene = Scene::new(folder.path());
    let mut server = Configured::start(&scene.configure(true));
    let mut operations = [Kind::Reload, Kind::Ixfr, Kind::Axfr].map(|kind| Operation {
        kind,
        serial: 1,
        span: Duration::ZERO,
    });
    for operation in &mut operations {
        operation.kind.zones().iter().for_each(|zone| server.wait_for(zone, 1));
        scene.measure(&server, operation);
    }
    let (mut draws, mut counts) = (Draws(0x2545_f491_4f6c_dd1d), Counts::default());
    for kill in 0..kills {
        let place = kill as usize % operations.len();
        scene.make_next(&mut operations[place]);
        let (seen, phase) = kill_within(&scene, server, &operations[place], &mut draws);
        assert_state_is_whole(&scene.state(), kill);
        scene.spoil_files();
        server = Configured::start(&scene.configure(false));
        let found = assert_serves(&scene, &server, &operations, place, &seen);
        note(&mut counts, &operations[place], phase, &seen, &found);
        assert_nothing_is_left(&scene.state(), &server);
        catch_up(&scene, &server, &operations, place);
    }
    counts.print(kills, &operations);
    assert!(counts.all_within() > 0, "no kill hit an operation");
}

/// Starts an operation and kills the server during it. Returns the serials that clients saw last,
/// and the operations in progress.
fn kill_within(
    scene: &Scene,
    server: Configured,
    operation: &Operation,
    draws: &mut Draws,
) -> (Vec<u32>, Option<String>) {
    let asked = scene.begin(operation.kind);
    std::thread::sleep(Duration::from_micros(draws.below(operation.span.as_micros() as u64)));
    // Versions that clients have seen must be served again.
    let seen = operation.kind.zones().iter().map(|zone| server.serial(zone).expect("served")).collect();
    let phases = scene.under_way();
    server.kill();
    drop(asked);
    (seen, phases.into_iter().next())
}

fn note(counts: &mut Counts, operation: &Operation, phase: Option<String>, seen: &[u32], found: &[u32]) {
    let kind = format!("{:?}", operation.kind);
    match phase {
        Some(phase) => {
            *counts.within.entry((kind.clone(), phase)).or_default() += 1;
            let is_new = found.iter().all(|serial| *serial == operation.serial);
            *if is_new { &mut counts.new } else { &mut counts.old }.entry(kind).or_default() += 1;
        }
        None if seen.iter().all(|serial| *serial == operation.serial) => counts.after += 1,
        None => counts.before += 1,
    }
}

/// Each stored file can be read.
#[track_caller]
fn assert_state_is_whole(state: &Path, kill: u32) {
    let mut seen = BTreeSet::new();
    for entry in fs::read_dir(state).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let Some((zone, suffix)) = name.rsplit_once('.').filter(|_| !name.starts_with('.')) else { continue };
        seen.insert(suffix.to_owned());
        match suffix {
            "kept" => {
                let loaded = load(&path, None);
                assert!(loaded.is_ok(), "kill {kill}: {name}: {:?}", loaded.err());
            }
            "journal" => {
                // Opening a journal truncates an incomplete entry. The test opens a copy, so that
                // the server finds the original.
                let copy = path.with_extension("copied");
                fs::copy(&path, &copy).expect("copied");
                let apex: Name = format!("{zone}.").parse().expect("a name");
                let opened = Journal::open(&copy, &apex, JOURNAL);
                assert!(opened.is_ok(), "kill {kill}: {name}: {:?}", opened.err());
                fs::remove_file(&copy).expect("removed");
            }
            "state" => {
                let text = fs::read_to_string(&path).expect("a state file");
                let facts: serde_json::Value = serde_json::from_str(&text).expect("JSON");
                assert_eq!(facts["nonesuch-state"], 1, "kill {kill}: {name}: {text}");
            }
            _ => {}
        }
    }
    assert!(["kept", "journal"].iter().all(|suffix| seen.contains(*suffix)), "kill {kill}: {seen:?}");
}

/// Clients get the version that they saw or the one that was being published, octet for octet, and
/// the incremental changes that lead to it.
#[track_caller]
fn assert_serves(
    scene: &Scene,
    server: &Configured,
    operations: &[Operation],
    place: usize,
    seen: &[u32],
) -> Vec<u32> {
    for (_, other) in operations.iter().enumerate().filter(|(at, _)| *at != place) {
        other
            .kind
            .zones()
            .iter()
            .for_each(|zone| assert_eq!(server.serial(zone), Some(other.serial), "{zone}"));
    }
    let Operation { kind, serial, .. } = operations[place];
    let check = |(zone, seen): (&&str, &u32)| {
        let found = server.serial(zone).unwrap_or_default();
        assert!(found == *seen || found == serial, "{zone}: {seen}, then {found}: {}", server.logged());
        let expected = zone_text(&scene.version(zone, found));
        assert!(zone_text(&transferred(server.address, zone)) == expected, "{zone}: {found} is another one");
        assert_steps_fit(scene, server, zone, (serial - 1, found));
        found
    };
    kind.zones().iter().zip(seen).map(check).collect()
}

/// A client with the previous version gets the served version, by an incremental or a complete
/// transfer.
#[track_caller]
fn assert_steps_fit(scene: &Scene, server: &Configured, zone: &str, (from, to): (u32, u32)) {
    let contents = match transfer(server.address, zone, InboundRequest::Ixfr { serial: from }) {
        TransferContent::UpToDate { serial } => {
            assert_eq!((serial, to), (from, from), "{zone}");
            return;
        }
        TransferContent::Axfr { contents, .. } => contents,
        TransferContent::Ixfr(steps) => {
            apply_steps(&scene.version(zone, from), &steps).expect("steps that fit").0
        }
        other @ TransferContent::Newer => panic!("{zone}: {other:?}"),
    };
    assert!(zone_text(&contents) == zone_text(&scene.version(zone, to)), "{zone}: steps from {from} to {to}");
}

/// No temporary file is left.
#[track_caller]
fn assert_nothing_is_left(state: &Path, server: &Configured) {
    let parts = || -> Vec<String> {
        let names = fs::read_dir(state).expect("a directory").flatten();
        let names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.starts_with('.') || name.ends_with(".new")).collect()
    };
    // A file that is being written at this time does not stay.
    let end = Instant::now() + Duration::from_secs(10);
    while !parts().is_empty() && Instant::now() < end {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(parts(), [""; 0]);
    assert!(server.events("panic", &[]).is_empty(), "{}", server.logged());
}

/// The primary is reachable again and the files are valid: the newest version is loaded.
#[track_caller]
fn catch_up(scene: &Scene, server: &Configured, operations: &[Operation], place: usize) {
    operations.iter().filter(|operation| operation.kind == Kind::Reload).for_each(|files| scene.put(files));
    scene.configure(true);
    server.ctl(&["reload"]).expect_done("reload");
    let Operation { kind, serial, .. } = operations[place];
    let _asked = scene.begin(kind);
    kind.zones().iter().for_each(|zone| server.wait_for(zone, serial));
}

#[test]
fn a_kept_zone_that_was_altered_is_not_served() {
    let folder = folder();
    let dir = folder.path();
    write_beside(&dir.join("a.example."), &large("a.example.", 1, 500));
    let path = configure(dir, "[zone.\"a.example.\"]\nfile = \"a.example.\"\n");
    Configured::start(&path).kill();
    let kept = dir.join("state/zones/a.example.kept");
    let whole = fs::read(&kept).expect("kept");
    write_beside(&dir.join("a.example."), "no zone\n");
    // The image of such a small zone ends before octet 1000.
    for at in [0, 40, 600, whole.len() - 1] {
        let mut altered = whole.clone();
        altered[at] ^= 1;
        fs::write(&kept, &altered).expect("written");
        let server = Configured::start(&path);
        let found = server.serial("a.example.");
        // The server does not answer from the data after the image.
        assert!(found.is_none() || at > 1000, "octet {at} of {} altered: {found:?}", whole.len());
        server.kill();
    }
    fs::write(&kept, &whole[..whole.len() / 3]).expect("written");
    assert_eq!(Configured::start(&path).serial("a.example."), None, "cut off");
    fs::write(&kept, &whole).expect("written");
    assert_eq!(Configured::start(&path).serial("a.example."), Some(1));
}
