//! A server that is killed at any moment: after a restart the version is served that was published last, or the one that
//! was being published.
//!
//! `NONESUCH_KILLS` is the number of moments (`just judge`: 200).

mod common;

use common::configured::{Configured, configure, plain_zone, write_beside};
use common::{folder, nonesuch, text};
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

const NAMES: [&str; 3] = ["a.example.", "b.example.", "c.example."];

/// Small numbers from a seed (xorshift), the same in each run.
struct Draws(u64);

impl Draws {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

fn write_zones(dir: &Path, serial: u32) {
    for name in NAMES {
        let mut text = plain_zone(name, serial);
        // Enough of them that writing takes its time.
        (0..500).for_each(|number| text.push_str(&format!("h{number} 60 A 192.0.2.{}\n", number % 256)));
        write_beside(&dir.join(name), &text);
    }
}

/// Asks for a reload and does not wait for it.
fn begin_reload(dir: &Path) -> std::process::Child {
    nonesuch(["ctl", "--socket", text(&dir.join("control")), "reload"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("nonesuch starts")
}

#[test]
fn what_was_published_is_served_after_a_kill_at_any_moment() {
    let kills = std::env::var("NONESUCH_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(12);
    let folder = folder();
    let dir = folder.path();
    write_zones(dir, 1);
    let zones: String = NAMES
        .iter()
        .map(|name| format!("[zone.\"{name}\"]\nfile = \"{name}\"\ntransfer = [\"127.0.0.1\"]\n"))
        .collect();
    let path = configure(dir, &zones);
    let mut server = Configured::start(&path);
    let mut draws = Draws(0x2545_f491_4f6c_dd1d);
    let mut seen = [1; NAMES.len()];
    for kill in 0..kills {
        let serial = kill + 2;
        write_zones(dir, serial);
        let mut reload = begin_reload(dir);
        std::thread::sleep(Duration::from_micros(draws.below(60_000)));
        // What clients have seen must be served again.
        for (seen, name) in seen.iter_mut().zip(NAMES) {
            *seen = server.serial(name).expect("served");
        }
        server.kill();
        let _ = reload.wait();
        // As an operator might leave it: the files of the next version are not sound, so that only what was kept counts.
        for name in NAMES {
            write_beside(&dir.join(name), "@ SOA this is no zone\n");
        }
        server = Configured::start(&path);
        for (seen, name) in seen.iter().zip(NAMES) {
            let found = server.serial(name);
            assert!(
                found.is_some_and(|found| found == *seen || found == serial),
                "{name}: {seen}, then {found:?}, kill {kill}"
            );
        }
        // Nothing half written is left, and no journal is broken.
        let left = fs::read_dir(dir.join("state/zones")).expect("a folder");
        let names: Vec<String> =
            left.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
        assert!(names.iter().all(|name| !name.starts_with(".part")), "{names:?}");
        assert!(!server.logged().contains("panicked"), "{}", server.logged());
        write_zones(dir, serial);
        server.ctl(&["reload"]).expect_done("reload");
        for name in NAMES {
            assert_eq!(server.serial(name), Some(serial));
        }
    }
    println!("{kills} kills, the last published versions served after each");
}

#[test]
fn a_kept_zone_that_was_altered_is_not_served() {
    let folder = folder();
    let dir = folder.path();
    write_zones(dir, 1);
    let path = configure(dir, "[zone.\"a.example.\"]\nfile = \"a.example.\"\n");
    Configured::start(&path).kill();
    let kept = dir.join("state/zones/a.example.zone");
    let whole = fs::read(&kept).expect("kept");
    write_beside(&dir.join("a.example."), "no zone\n");
    // The image of a zone so small ends before octet 1000.
    for at in [0, 40, 600, whole.len() - 1] {
        let mut altered = whole.clone();
        altered[at] ^= 1;
        fs::write(&kept, &altered).expect("written");
        let server = Configured::start(&path);
        let found = server.serial("a.example.");
        // What lies behind the image is not what answers are made from.
        assert!(found.is_none() || at > 1000, "octet {at} of {} altered: {found:?}", whole.len());
        server.kill();
    }
    fs::write(&kept, &whole[..whole.len() / 3]).expect("written");
    assert_eq!(Configured::start(&path).serial("a.example."), None, "cut off");
    fs::write(&kept, &whole).expect("written");
    assert_eq!(Configured::start(&path).serial("a.example."), Some(1));
}
