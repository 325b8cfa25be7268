use super::files::{DOMAINS, METADATA, WINDOWS_PER_PART};
use super::*;
use crate::cost_model::record::{DomainCounter, Gap, GapReason};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const LENGTH: u64 = 10_000_000;

fn setup() -> RecordingSetup {
    RecordingSetup {
        name: Some("Unbound, Monday".to_owned()),
        source: "dnstap socket /run/tap".to_owned(),
        verified_by: VerificationSource::Library,
        window: LENGTH,
    }
}

fn window(number: u64) -> Window {
    Window {
        start: 1_700_000_000_000_000 + number * LENGTH,
        length: LENGTH,
        queries: 100 + number,
        tcp_queries: 3,
        responses: 99 + number,
        truncated: 3,
        signed_responses: 40,
        signatures: 70,
        verified: 30,
        response_octets: number.is_multiple_of(2).then_some(12_345),
    }
}

fn domains() -> DomainCounter {
    let entry = |domain: &str, count, uncertainty, signed| {
        let domain = domain.parse().unwrap();
        crate::cost_model::CountedDomain { domain, count, uncertainty, signed }
    };
    DomainCounter::restored(vec![entry("b.example.", 9, 4, false), entry("example.", 7, 0, true)])
}

/// A recording of `count` windows.
fn recorded(count: u64) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = RecordingWriter::open(folder.path(), &setup()).unwrap();
    (0..count).for_each(|number| assert!(writer.push(window(number)).unwrap()));
    writer.flush(Some(&domains())).unwrap();
    folder
}

fn change(path: &Path, change: impl Fn(&str) -> String) {
    let text = fs::read_to_string(path).unwrap();
    fs::write(path, change(&text)).unwrap();
}

#[test]
fn a_recording_is_read_back() {
    let folder = recorded(3);
    let recording = Recording::read(folder.path()).unwrap();
    assert_eq!(
        (recording.name.as_str(), recording.verified_by),
        ("Unbound, Monday", VerificationSource::Library)
    );
    assert_eq!(recording.windows, [window(0), window(1), window(2)]);
    let found: Vec<_> =
        recording.domains.iter().map(|row| (row.domain.to_string(), row.queries, row.signed)).collect();
    assert_eq!(found, [("example.".to_owned(), 7, true), ("b.example.".to_owned(), 5, false)]);
    for name in ["windows-000001", DOMAINS] {
        let octets = fs::read(folder.path().join(format!("{name}.parquet"))).unwrap();
        assert!(octets.starts_with(b"PAR1") && octets.ends_with(b"PAR1"));
    }
}

#[test]
fn parts_are_of_bounded_size_and_a_recording_is_continued() {
    let count = WINDOWS_PER_PART as u64 + 5;
    let folder = recorded(count);
    let mut writer = RecordingWriter::open(folder.path(), &RecordingSetup { name: None, ..setup() }).unwrap();
    assert_eq!((writer.window_count() as u64, writer.domains().unwrap().len()), (count, 2));
    // The clock went back in between.
    assert!(!writer.push(window(3)).unwrap());
    assert!(writer.push(window(count + 7)).unwrap());
    writer.flush(None).unwrap();
    drop(writer);
    let windows = Recording::read(folder.path()).unwrap().windows;
    assert_eq!(windows.len() as u64, count + 1);
    assert_eq!(windows.last(), Some(&window(count + 7)));
    let names = ["windows-000001.csv", "windows-000002.csv", "windows-000003.csv"];
    assert!(names.iter().all(|name| folder.path().join(name).exists()));
    assert!(!folder.path().join("windows-000004.csv").exists());
}

#[test]
fn what_was_flushed_survives_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = RecordingWriter::open(folder.path(), &setup()).unwrap();
    writer.push(window(0)).unwrap();
    writer.flush(None).unwrap();
    writer.push(window(1)).unwrap();
    // Not flushed: as if the process were killed.
    drop(writer);
    assert_eq!(Recording::read(folder.path()).unwrap().windows, [window(0)]);
    // A part that was written before the description.
    let part = |number: u32| folder.path().join(format!("windows-{number:06}.csv"));
    fs::copy(part(1), part(2)).unwrap();
    change(&part(2), |text| text.replace("170000000", "170000001"));
    assert_eq!(Recording::read(folder.path()).unwrap().windows.len(), 2);
    let mut writer = RecordingWriter::open(folder.path(), &setup()).unwrap();
    writer.push(window(9)).unwrap();
    writer.flush(None).unwrap();
    assert!(part(3).exists());
}

#[test]
fn another_recording_is_not_continued() {
    let folder = recorded(1);
    let others = [
        RecordingSetup { name: Some("other".to_owned()), ..setup() },
        RecordingSetup { source: "pcap file x".to_owned(), ..setup() },
        RecordingSetup { verified_by: VerificationSource::Estimated, ..setup() },
        RecordingSetup { window: LENGTH / 2, ..setup() },
    ];
    for (other, wanted) in others.iter().zip(["name", "source", "counter of verified signatures", "window"]) {
        let error = RecordingWriter::open(folder.path(), other).unwrap_err();
        assert!(matches!(error, RecordingError::Differs { what, .. } if what == wanted), "{error}");
    }
    let _writer = RecordingWriter::open(folder.path(), &setup()).unwrap();
    let error = RecordingWriter::open(folder.path(), &setup()).unwrap_err();
    assert!(matches!(error, RecordingError::InUse { .. }), "{error}");
    let occupied = tempfile::tempdir().unwrap();
    fs::write(occupied.path().join("thesis.tex"), "x").unwrap();
    let error = RecordingWriter::open(occupied.path(), &setup()).unwrap_err();
    assert!(matches!(error, RecordingError::Occupied { .. }), "{error}");
}

#[test]
fn gaps_are_in_the_description() {
    let folder = tempfile::tempdir().unwrap();
    let mut writer = RecordingWriter::open(folder.path(), &setup()).unwrap();
    for number in 0..200 {
        writer.note_gap(Gap { from: number, until: number + 1, reason: GapReason::Silence });
    }
    writer.note_gap(Gap { from: 300, until: 301, reason: GapReason::CounterReset });
    (0..2).for_each(|_| writer.note("remark"));
    writer.flush(None).unwrap();
    assert_eq!(writer.gaps().values().sum::<u64>(), 201);
    let text = fs::read_to_string(folder.path().join(METADATA)).unwrap();
    assert_eq!((text.matches("\"silence\"").count(), text.matches("remark").count()), (1 + 99, 1));
    let error = Recording::read(folder.path()).unwrap_err();
    assert!(matches!(error, RecordingError::Empty { .. }), "{error}");
}

#[test]
fn windows_that_cannot_be_are_refused_with_their_line() {
    use WindowFault::{Contradiction, Length, Missing, Negative, Order};
    // The second window, and a change of it.
    let row = |cells: [&str; 10]| cells.join(",");
    let good = ["1700000010000000", "10000000", "101", "3", "100", "3", "40", "70", "30", ""];
    let with = |place: usize, cell| {
        let mut cells = good;
        cells[place] = cell;
        row(cells)
    };
    for (changed, wanted) in [
        (with(1, "0"), Length),
        (with(1, "9223372036854775807").replace("1700000010000000", "9223372036854775807"), Order),
        (with(0, "1700000009999999"), Order),
        (with(2, ""), Missing { column: "queries" }),
        (with(8, "-1"), Negative { column: "verified" }),
        (with(9, "-1"), Negative { column: "response_octets" }),
        (with(3, "102"), Contradiction { part: "tcp_queries", whole: "queries" }),
        (with(6, "101"), Contradiction { part: "signed_responses", whole: "responses" }),
        (with(7, "39"), Contradiction { part: "signed_responses", whole: "signatures" }),
    ] {
        let folder = recorded(3);
        change(&folder.path().join("windows-000001.csv"), |text| text.replace(&row(good), &changed));
        let error = Recording::read(folder.path()).unwrap_err();
        let RecordingError::Window { line, fault, .. } = error else { panic!("{changed}: {error}") };
        // A late window makes the next one wrong.
        let is_late = changed.starts_with('9');
        assert_eq!((line, fault), (if is_late { 4 } else { 3 }, wanted), "{changed}");
    }
}

#[test]
fn damaged_files_are_refused() {
    let fault = |damage: &dyn Fn(&Path)| {
        let folder = recorded(WINDOWS_PER_PART as u64 + 1);
        damage(folder.path());
        let error = Recording::read(folder.path()).unwrap_err();
        // A recording that cannot be read is not continued either, except one that has no window.
        assert!(
            RecordingWriter::open(folder.path(), &setup()).is_err() || !folder.path().join(METADATA).exists()
        );
        error
    };
    let part = "windows-000001.csv";
    let error = fault(&|dir| change(&dir.join(part), |text| text.replacen("verified", "valid", 1)));
    assert!(matches!(error, RecordingError::Csv { .. }), "{error}");
    let error = fault(&|dir| change(&dir.join(part), |text| text[..text.len() - 30].to_owned()));
    assert!(matches!(error, RecordingError::Csv { .. } | RecordingError::Window { .. }), "{error}");
    let error = fault(&|dir| fs::remove_file(dir.join(part)).unwrap());
    assert!(matches!(error, RecordingError::MissingPart { parts: 2, .. }), "{error}");
    let error =
        fault(&|dir| change(&dir.join(METADATA), |text| text.replacen("\"format\": 1", "\"format\": 2", 1)));
    assert!(matches!(error, RecordingError::Format { found: 2, .. }), "{error}");
    let error = fault(&|dir| change(&dir.join(METADATA), |text| text[..40].to_owned()));
    assert!(matches!(error, RecordingError::Metadata { .. }), "{error}");
    let folder = recorded(1);
    change(&folder.path().join("domains.csv"), |text| text.replace("example.,7", "exa..mple.,7"));
    let error = Recording::read(folder.path()).unwrap_err();
    assert!(matches!(error, RecordingError::Domain { .. }), "{error}");
    let error = Recording::read(&folder.path().join("none")).unwrap_err();
    assert!(matches!(error, RecordingError::NotARecording { .. }), "{error}");
}

#[test]
fn an_unfinished_parquet_file_is_not_read() {
    let folder = recorded(2);
    fs::write(folder.path().join("windows-000001.parquet"), b"PAR1").unwrap();
    assert_eq!(Recording::read(folder.path()).unwrap().windows.len(), 2);
}
