//! Unattended runs: relative times, the quiet mode, and a repeated command with a previous output
//! that does not exist yet.

use crate::common;
use common::{Ended, KEYS_ORIGIN, nonesuch, prepared, run, snapshot};
use std::fs;
use std::path::Path;

/// 2026-11-22T19:00:00Z.
const NOW: u32 = 1_795_374_000;
const DAY: u32 = 86_400;

/// The command line for a daily run in docs/incremental-signing.md.
const DAILY: &str = "-q zone sign zone -o keys.example. --keys keys --previous zone.signed -f zone.signed --serial unixtime \
                     --expiration now+30d --jitter 3d";

fn nonesuch_in(dir: &Path, command: &str) -> Ended {
    run(nonesuch(command.split_whitespace()).current_dir(dir))
}

/// A directory with a zone and a key, and one more key for each other algorithm.
fn with_key() -> tempfile::TempDir {
    let folder = prepared();
    let command = format!("key generate {KEYS_ORIGIN} --algorithm ed25519 --csk --dir keys --now {NOW}");
    nonesuch_in(folder.path(), &command).expect_done("key");
    folder
}

/// First inception, first and last expiration of the signatures of a zone.
fn validity(dir: &Path, file: &str) -> [u32; 3] {
    let shown = nonesuch_in(dir, &format!("zone stat {file} --json")).expect_done("stat");
    let value: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    ["first_inception", "first_expiration", "last_expiration"]
        .map(|key| value["validity"][key].as_u64().unwrap() as u32)
}

#[test]
fn relative_times_count_as_bind_counts_them() {
    let folder = with_key();
    let dir = folder.path();
    for (times, inception, expiration) in [
        ("", NOW - 3600, NOW + 14 * DAY),
        ("--expiration 30d", NOW - 3600, NOW - 3600 + 30 * DAY),
        ("--expiration +2592000", NOW - 3600, NOW - 3600 + 30 * DAY),
        ("--expiration now+30d", NOW - 3600, NOW + 30 * DAY),
        ("--inception +60 --expiration +1d", NOW + 60, NOW + 60 + DAY),
        ("--inception -1d --expiration 20261231000000", NOW - DAY, 1_798_675_200),
        ("--inception now-2h --expiration 2026-12-31T00:00:00Z", NOW - 7200, 1_798_675_200),
        ("--inception 1795370000 --expiration 1798675200", 1_795_370_000, 1_798_675_200),
    ] {
        let command = format!("zone sign zone -o {KEYS_ORIGIN} --keys keys --now {NOW} -f out {times}");
        nonesuch_in(dir, &command).expect_done(times);
        assert_eq!(validity(dir, "out"), [inception, expiration, expiration], "{times}");
    }
    let command = format!(
        "zone sign zone -o {KEYS_ORIGIN} --keys keys --now {NOW} -f out --jitter 3d --expiration now+30d"
    );
    nonesuch_in(dir, &command).expect_done("jitter");
    let [_, first, last] = validity(dir, "out");
    let window = NOW + 27 * DAY..=NOW + 30 * DAY;
    assert!(first < last && window.contains(&first) && window.contains(&last), "{first} {last}");
}

#[test]
fn the_daily_command_works_on_the_first_day_and_prints_nothing() {
    let folder = with_key();
    let dir = folder.path();
    let page = include_str!("../../../../docs/incremental-signing.md");
    let documented: String = page.replace("\\\n", " ").split_whitespace().collect::<Vec<_>>().join(" ");
    let daily: String = DAILY.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(documented.contains(&format!("nonesuch {daily}")), "the page has another command");
    for now in [NOW, NOW + DAY] {
        let ended = nonesuch_in(dir, &format!("{DAILY} --now {now}")).expect_done("daily");
        assert_eq!(ended.text(), "");
        nonesuch_in(dir, &format!("zone verify zone.signed --now {now}")).expect_done("verify");
    }
    // If a previous zone other than the output does not exist, this is a mistake.
    let command = format!("zone sign zone -o {KEYS_ORIGIN} --keys keys --previous mistyped -f zone.signed");
    let ended = nonesuch_in(dir, &command);
    assert_eq!(ended.status, 2);
    assert!(ended.stderr.contains("mistyped: "), "{}", ended.stderr);
    snapshot::check("zone sign", "missing previous zone that is not the output", &ended.stderr);
    // A change set cannot be applied without a previous zone.
    fs::write(dir.join("changes"), "").unwrap();
    let command = "zone sign --changes changes --previous new.signed -f new.signed --keys keys";
    assert_eq!(nonesuch_in(dir, command).status, 2);
    assert!(!dir.join("new.signed").exists());
}

#[test]
fn quiet_commands_print_faults_and_data_alone() {
    let folder = with_key();
    let dir = folder.path();
    nonesuch_in(dir, &format!("{DAILY} --now {NOW}")).expect_done("sign");
    let verify = |now: u32| nonesuch_in(dir, &format!("-q zone verify zone.signed --now {now}"));
    assert_eq!(verify(NOW).expect_done("verify").text(), "");
    let expired = verify(NOW + 60 * DAY);
    assert_eq!(expired.status, 1);
    let fault = expired.stdout.lines().find(|line| line.starts_with("fault: ")).expect("a fault");
    assert!(fault.contains(" 2026-12-"), "{}", expired.stdout);
    snapshot::check("zone verify", "expired signature, quiet", fault);
    let ds = nonesuch_in(dir, &format!("-q key ds {KEYS_ORIGIN} --dir keys")).expect_done("ds");
    assert!(ds.stdout.contains(" DS "), "{}", ds.stdout);
    assert_eq!(nonesuch_in(dir, "-q -v key list --dir keys").status, 2);
}
