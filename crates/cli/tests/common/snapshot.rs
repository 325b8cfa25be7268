//! Snapshots: the messages of each command, in one file that a reviewer reads.
//!
//! Tests check the exit status, names and values; the sentences are only here. After a change of
//! sentences, `UPDATE_SNAPSHOTS=1 cargo test -p nonesuch-cli` writes the sections of all tests that
//! run. Then review the difference.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// The tests of one program run in several threads.
static FILES: Mutex<()> = Mutex::new(());
/// The start of the line with the name of a section.
const HEADING: &str = "=== ";

/// Compares `text` with the section `case` in the snapshot of `command`, for example `zone sign`.
///
/// Temporary directories, ports of loopback, times, durations and key tags are replaced. The caller
/// replaces other values that differ between runs.
#[track_caller]
pub fn check(command: &str, case: &str, text: &str) {
    let name = command.replace(' ', "-");
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(format!("{name}.txt"));
    let text = stable(text);
    let _guard = FILES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut sections = read(&fs::read_to_string(&path).unwrap_or_default());
    if sections.get(case) == Some(&text) {
        return;
    }
    assert!(
        std::env::var_os("UPDATE_SNAPSHOTS").is_some(),
        "{}: {case}: the section differs; to update: UPDATE_SNAPSHOTS=1\n--- snapshot\n{}--- output\n{text}",
        path.display(),
        sections.get(case).map_or("(no such section)\n", String::as_str),
    );
    sections.insert(case.to_owned(), text);
    let sections = sections.iter().map(|(case, text)| format!("{HEADING}{case}\n{text}"));
    fs::write(&path, sections.collect::<Vec<_>>().join("\n")).expect("a snapshot");
}

/// The sections of a snapshot. An empty line precedes each heading but the first.
fn read(snapshot: &str) -> BTreeMap<String, String> {
    let (snapshot, heading) = (format!("\n{snapshot}"), format!("\n{HEADING}"));
    snapshot
        .split(&heading)
        .skip(1)
        .map(|section| section.split_once('\n').unwrap_or((section, "")))
        .map(|(case, text)| (case.to_owned(), text.to_owned()))
        .collect()
}

/// The text without values that differ between runs. Temporary directories are `DIR`, ports are
/// `PORT`, times of the log are `TIME`, names of unfinished files end with `RANDOM`; the others are
/// those of [`without_values`].
fn stable(text: &str) -> String {
    let directory = std::env::temp_dir().join(".tmp").display().to_string();
    let text = replace(text.trim_end(), &directory, "", |rest| word(rest, 6), "DIR");
    let text = replace(&text, "127.0.0.1:", "127.0.0.1:", digits, "PORT");
    let text = replace(&text, ".part-", ".part-", |rest| word(rest, 6), "RANDOM");
    let line = |line: &str| format!("{}\n", without_values(&without_time(line)));
    text.lines().map(line).collect()
}

/// Replaces `start` and the octets after it, of which `length` returns the number, by `kept` and
/// `name`.
fn replace(text: &str, start: &str, kept: &str, length: impl Fn(&str) -> usize, name: &str) -> String {
    let mut parts = text.split(start);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| match length(part) {
        0 => all + start + part,
        octets => all + kept + name + &part[octets..],
    })
}

/// `octets` if the text starts with a word of this length.
fn word(text: &str, octets: usize) -> usize {
    let found = text.bytes().take_while(u8::is_ascii_alphanumeric).count();
    if found == octets { octets } else { 0 }
}

fn digits(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// A line of the log without its time.
fn without_time(line: &str) -> String {
    match line.split_once("Z ") {
        Some((time, rest)) if time.parse::<jiff::civil::DateTime>().is_ok() => format!("TIME {rest}"),
        _ => line.to_owned(),
    }
}

/// A line with `N` in place of the number of durations such as `0.01 s`, `TAG` in place of key tags,
/// and `DATE` in place of times such as `2026-11-21T21:47:04Z`.
fn without_values(line: &str) -> String {
    let words: Vec<&str> = line.split(' ').collect();
    let mut is_tag_next = false;
    let replaced = words.iter().enumerate().map(|(at, word)| {
        let value = word.trim_end_matches([',', ';', ':', '.', ')']);
        let end = &word[value.len()..];
        let is_tag = is_tag_next && value.parse::<u16>().is_ok();
        is_tag_next = value.ends_with("key") || value.ends_with("keys") || is_tag && end == ",";
        let unit = words.get(at + 1).map(|unit| unit.trim_end_matches([',', ';', ':', '.', ')']));
        if is_tag {
            format!("TAG{end}")
        } else if unit == Some("s") && word.contains('.') && word.parse::<f64>().is_ok() {
            "N".to_owned()
        } else if value.parse::<jiff::Timestamp>().is_ok() {
            format!("DATE{end}")
        } else {
            without_tag(word)
        }
    });
    replaced.collect::<Vec<_>>().join(" ")
}

/// A word with `TAG` in place of the tag in the name of a key file, as in `Kexample.+013+12345.key`.
fn without_tag(word: &str) -> String {
    let Some((before, after)) = word.rsplit_once('+') else { return word.to_owned() };
    match digits(after) {
        5 => format!("{before}+TAG{}", &after[5..]),
        _ => word.to_owned(),
    }
}
