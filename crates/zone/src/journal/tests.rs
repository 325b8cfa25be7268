//! Tests of journals: append, reopen, truncation, alteration, size limit.

use super::*;
use crate::read::read_text;
use crate::{Contents, NodesBuilder};
use proptest::prelude::*;
use std::collections::BTreeSet;
use tempfile::TempDir;

const LARGE_LIMIT: u64 = 1 << 20;

fn apex() -> Name {
    "Example.".parse().unwrap()
}

/// Returns a version of a zone with this serial. The bits of `names` select the names n0 to n63.
fn version(serial: u32, names: u64) -> Contents {
    let mut text = format!("$TTL 60\n@ SOA ns h {serial} 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n");
    for name in (0..64).filter(|name| names >> name & 1 == 1) {
        text.push_str(&format!("n{name} A 192.0.2.{name}\nn{name} 30 TXT \"of n{name}\"\n"));
    }
    read_text(text.as_bytes(), Path::new("zone"), Some(&apex())).unwrap().contents
}

fn change(old: &Contents, new: &Contents) -> ChangeSet {
    ChangeSet::between(old, new, |_| true)
}

/// Returns versions with the serials from 1 on, each with its own set of names.
fn versions(names: &[u64]) -> Vec<Contents> {
    names.iter().enumerate().map(|(at, names)| version(at as u32 + 1, *names)).collect()
}

/// Creates a journal with all changes from the first version on. Returns its path and the offset of
/// the end of each change.
fn journal_of(directory: &Path, versions: &[Contents]) -> (PathBuf, Vec<u64>) {
    let path = directory.join("example.journal");
    let (journal, opened) = Journal::open(&path, &apex(), LARGE_LIMIT).unwrap();
    assert_eq!(opened, OpenOutcome::New);
    let mut ends = vec![journal.octets()];
    for pair in versions.windows(2) {
        assert_eq!(journal.append(&change(&pair[0], &pair[1])).unwrap(), AppendOutcome::Appended);
        ends.push(journal.octets());
    }
    (path, ends)
}

impl Journal {
    fn len(&self) -> usize {
        self.state().entries.len()
    }

    fn octets(&self) -> u64 {
        self.state().end
    }
}

fn records(zone: &Contents) -> BTreeSet<RecordTuple> {
    records_of_side(zone, true).into_iter().collect()
}

/// Returns the records of `old` after the changes up to the serial `to`.
fn replay(journal: &Journal, old: &Contents, to: u32) -> BTreeSet<RecordTuple> {
    let changes = journal.between(old.soa().unwrap().serial, to).unwrap();
    let mut zone = records(old);
    for at in 0..changes.entries.len() {
        for (is_added, owner, rtype, ttl, rdata) in read_change(&changes, at).unwrap() {
            let record = (true, owner, rtype, ttl, rdata);
            assert!(if is_added { zone.insert(record) } else { zone.remove(&record) });
        }
    }
    zone
}

fn read_change(changes: &Changes, at: usize) -> Result<Vec<RecordTuple>, JournalError> {
    read_through(changes.open(at).unwrap()).0
}

/// Returns the records that a reader of `change` should return.
fn records_of(change: &ChangeSet) -> Vec<RecordTuple> {
    [records_of_side(change.removed(), false), records_of_side(change.added(), true)].concat()
}

#[test]
fn changes_lead_from_every_version_to_every_later_one() {
    let directory = TempDir::new().unwrap();
    let versions = versions(&[0, 0xff, 0xf0f0, u64::MAX, 1]);
    let (path, ends) = journal_of(directory.path(), &versions);
    let (journal, opened) = Journal::open(&path, &"eXample.".parse().unwrap(), LARGE_LIMIT).unwrap();
    assert_eq!((opened, journal.len(), journal.octets()), (OpenOutcome::Whole, 4, ends[4]));
    assert_eq!(journal.serials(), Some((1, 5)));
    for (from, old) in versions.iter().enumerate() {
        for (to, new) in versions.iter().enumerate().skip(from + 1) {
            assert_eq!(replay(&journal, old, to as u32 + 1), records(new));
        }
        let serial = from as u32 + 1;
        assert!(journal.between(serial, serial).is_none());
    }
    for (from, to) in [(0, 5), (1, 6), (3, 2)] {
        assert!(journal.between(from, to).is_none(), "{from} {to}");
    }
    let changes = journal.between(2, 5).unwrap();
    assert_eq!((changes.entries.len(), changes.octets()), (3, ends[4] - ends[1]));
    journal.clear().unwrap();
    assert!(journal.serials().is_none() && journal.between(1, 5).is_none());
    // A reader that was created earlier can continue.
    assert!(read_change(&changes, 2).is_ok());
}

#[test]
fn append_all_equals_single_appends() {
    let (one, all) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let versions = versions(&[0, 0xff, 0xf0f0, u64::MAX, 1]);
    let (path, ends) = journal_of(one.path(), &versions);
    let changes: Vec<ChangeSet> = versions.windows(2).map(|pair| change(&pair[0], &pair[1])).collect();
    let (journal, _) = Journal::open(&all.path().join("example.journal"), &apex(), LARGE_LIMIT).unwrap();
    for part in [&changes[..1], &[], &changes[1..]] {
        journal.append_all(part).unwrap();
    }
    assert_eq!(fs::read(&journal.path).unwrap(), fs::read(path).unwrap());
    // If there is no room for all changes, the newest remain.
    let max = ends[4] - 1;
    let (small, _) = Journal::open(&all.path().join("small"), &apex(), max).unwrap();
    small.append_all(&changes).unwrap();
    assert!(small.octets() <= max && small.serials().is_some_and(|(from, to)| from > 1 && to == 5));
    // Two changes that are not consecutive: the first is removed.
    small.append_all(&[changes[0].clone(), changes[2].clone()]).unwrap();
    assert_eq!(small.serials(), Some((3, 4)));
}

#[test]
fn serials_may_wrap_and_repeat() {
    let directory = TempDir::new().unwrap();
    let (journal, _) = Journal::open(&directory.path().join("j"), &apex(), LARGE_LIMIT).unwrap();
    let serials = [7, u32::MAX, 0, 7, 9];
    let zones: Vec<_> = serials.iter().enumerate().map(|(at, serial)| version(*serial, at as u64)).collect();
    for pair in zones.windows(2) {
        assert_eq!(journal.append(&change(&pair[0], &pair[1])).unwrap(), AppendOutcome::Appended);
    }
    // The changes start at the later version with serial 7.
    assert_eq!(journal.between(7, 9).unwrap().entries.len(), 1);
    assert_eq!(replay(&journal, &zones[1], 9), records(&zones[4]));
}

#[test]
fn a_change_that_does_not_follow_the_last_one_replaces_the_journal() {
    let directory = TempDir::new().unwrap();
    let versions = versions(&[0, 1, 2, 3, 4]);
    let (path, _) = journal_of(directory.path(), &versions[..3]);
    let (journal, _) = Journal::open(&path, &apex(), LARGE_LIMIT).unwrap();
    assert_eq!(journal.append(&change(&versions[3], &versions[4])).unwrap(), AppendOutcome::Restarted);
    assert_eq!((journal.serials(), journal.len()), (Some((4, 5)), 1));
    drop(journal);
    let (journal, opened) = Journal::open(&path, &apex(), LARGE_LIMIT).unwrap();
    assert_eq!((opened, journal.serials()), (OpenOutcome::Whole, Some((4, 5))));
}

#[test]
fn a_change_without_two_serials_of_the_zone_is_rejected() {
    let directory = TempDir::new().unwrap();
    let (journal, _) = Journal::open(&directory.path().join("j"), &apex(), LARGE_LIMIT).unwrap();
    let (old, new) = (version(1, 0), version(2, 1));
    let cases = [
        change(&old, &old),
        ChangeSet::between(&old, &new, |rrset| rrset.rtype() != nonesuch_proto::Rtype::SOA),
        change(&version(1, 0), &version(1, 1)),
    ];
    for case in &cases {
        assert!(matches!(journal.append(case), Err(JournalError::NoSerials(_))));
    }
    let text = "$TTL 60\n@ SOA ns h 1 9 3 4 5\n@ NS ns\nns A 192.0.2.1\n";
    let other_refresh = read_text(text.as_bytes(), Path::new("zone"), Some(&apex())).unwrap().contents;
    let error = journal.append(&change(&old, &other_refresh)).unwrap_err();
    assert!(matches!(error, JournalError::SameSerial { serial: 1, .. }), "{error:?}");
    let other: Name = "other.".parse().unwrap();
    let foreign = ChangeSet::from_sides(&other, NodesBuilder::default(), NodesBuilder::default());
    let error = journal.append(&foreign).unwrap_err();
    assert!(matches!(error, JournalError::OtherZoneChange { .. }), "{error:?}");
    assert!(journal.serials().is_none());
}

#[test]
fn a_journal_at_its_maximum_size_has_the_newest_changes() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("j");
    let max = 4096;
    let (journal, _) = Journal::open(&path, &apex(), max).unwrap();
    let mut rewritten = 0;
    let mut before = journal.octets();
    for serial in 1..=60 {
        let (old, new) = (version(serial, 0xf << serial), version(serial + 1, 0xf << (serial + 1)));
        assert_eq!(journal.append(&change(&old, &new)).unwrap(), AppendOutcome::Appended);
        assert!(journal.octets() <= max && journal.octets() == fs::metadata(&path).unwrap().len());
        assert_eq!(journal.serials().unwrap().1, serial + 1);
        rewritten += u32::from(journal.octets() < before);
        before = journal.octets();
        let first = journal.serials().unwrap().0;
        assert_eq!(replay(&journal, &version(first, 0xf << first), serial + 1), records(&new));
    }
    assert!(journal.len() > 3 && rewritten > 3, "{} {rewritten}", journal.len());
    // Not every change rewrites the journal.
    assert!(rewritten < 30, "{rewritten}");
    let (again, opened) = Journal::open(&path, &apex(), max).unwrap();
    assert_eq!((opened, again.serials()), (OpenOutcome::Whole, journal.serials()));
    let large = change(&version(61, 0), &version(62, u64::MAX));
    assert_eq!(again.append(&large).unwrap(), AppendOutcome::TooLarge);
    assert!(again.serials().is_none());
    assert_eq!(again.append(&change(&version(62, 0), &version(63, 1))).unwrap(), AppendOutcome::Appended);
}

#[test]
fn files_that_are_no_journal_of_the_zone_are_rejected_and_can_be_replaced() {
    let directory = TempDir::new().unwrap();
    let (path, _) = journal_of(directory.path(), &versions(&[0, 1]));
    let whole = fs::read(&path).unwrap();
    let altered = |offset: usize| {
        let mut octets = whole.clone();
        octets[offset] ^= 1;
        octets
    };
    let cases = [Vec::new(), whole[..HEADER_OCTETS - 1].to_vec(), vec![b'x'; 5000], altered(8), altered(20)];
    let mut flaws = Vec::new();
    for octets in cases {
        fs::write(&path, octets).unwrap();
        let error = Journal::open(&path, &apex(), LARGE_LIMIT).unwrap_err();
        let JournalError::Broken { path: at, flaw } = &error else { panic!("{error:?}") };
        assert_eq!(*at, path);
        flaws.push(*flaw);
        let journal = Journal::replace(&path, &apex(), LARGE_LIMIT).unwrap();
        assert_eq!(journal.octets(), HEADER_OCTETS as u64);
        assert_eq!(Journal::open(&path, &apex(), LARGE_LIMIT).unwrap().1, OpenOutcome::Whole);
    }
    // Both truncated headers have the same flaw, and every other file has its own.
    assert_eq!(flaws[0], flaws[1]);
    assert_eq!(flaws.iter().collect::<BTreeSet<_>>().len(), 4, "{flaws:?}");
    let error = Journal::open(&path, &"other.".parse().unwrap(), LARGE_LIMIT).unwrap_err();
    assert!(matches!(error, JournalError::OtherZone { .. }), "{error}");
    let error = Journal::open(&directory.path().join("none/j"), &apex(), LARGE_LIMIT).unwrap_err();
    assert!(matches!(error, JournalError::Io { action: "write", .. }), "{error:?}");
}

/// Side, owner, type, TTL and RDATA of a record.
type RecordTuple = (bool, Vec<u8>, u16, u32, Vec<u8>);

/// Returns the records of a side of a change in transfer order.
fn records_of_side(side: &Contents, is_added: bool) -> Vec<RecordTuple> {
    let all = side.nodes().flat_map(|node| {
        node.rrsets().flat_map(move |rrset| {
            let head = (node.name().wire().to_vec(), rrset.rtype().0, rrset.ttl());
            rrset.rdatas().map(move |rdata| (is_added, head.0.clone(), head.1, head.2, rdata.to_vec()))
        })
    });
    let (soa, others): (Vec<RecordTuple>, Vec<RecordTuple>) =
        all.partition(|record| record.2 == nonesuch_proto::Rtype::SOA.0);
    soa.into_iter().chain(others).collect()
}

/// Returns the records of a reader until its end or its error, and the maximum memory that it uses.
fn read_through(
    reader: Result<ChangeReader, JournalError>,
) -> (Result<Vec<RecordTuple>, JournalError>, usize) {
    let mut max = 0;
    let read = || {
        let (mut reader, mut records, mut owner) = (reader?, Vec::new(), None);
        while reader.advance()? {
            max = max.max(reader.buffer_octets());
            let ChangeRecord { owner: name, rtype, ttl, rdata, is_added, begins_owner } = reader.record();
            let key = Some((is_added, rtype == nonesuch_proto::Rtype::SOA, name.wire().to_vec()));
            assert_eq!(begins_owner, owner != key);
            owner = key;
            records.push((is_added, name.wire().to_vec(), rtype.0, ttl, rdata.to_vec()));
        }
        assert!(!reader.advance()?);
        Ok(records)
    };
    (read(), max)
}

#[test]
fn a_change_is_read_record_by_record() {
    let directory = TempDir::new().unwrap();
    let versions = versions(&[0, 0xff, 0xf0f0, u64::MAX, 1]);
    let (path, _) = journal_of(directory.path(), &versions);
    let (journal, _) = Journal::open(&path, &apex(), LARGE_LIMIT).unwrap();
    let changes = journal.between(1, 5).unwrap();
    for (at, pair) in versions.windows(2).enumerate() {
        assert_eq!(read_change(&changes, at).unwrap(), records_of(&change(&pair[0], &pair[1])));
    }
    assert!(changes.open(4).is_none());
}

/// A change of many megabytes, with records of every length, is read in bounded memory.
#[test]
fn a_large_change_is_read_in_bounded_memory() {
    let zone = |serial: u32, letter: char| {
        let mut text = format!("$TTL 60\n@ SOA ns h {serial} 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n");
        for name in 0..40_000 {
            let word = letter.to_string().repeat(name % 200);
            text.push_str(&format!(
                "n{name} TXT \"{word}\"\nn{name} A 192.0.2.{}\n",
                u32::from(letter) % 200
            ));
        }
        for longest in 0..4 {
            let strings = format!(" \"{}\"", letter.to_string().repeat(250)).repeat(250 + longest);
            text.push_str(&format!("z{longest} TXT{strings}\n"));
        }
        read_text(text.as_bytes(), Path::new("zone"), Some(&apex())).unwrap().contents
    };
    let directory = TempDir::new().unwrap();
    let (journal, _) = Journal::open(&directory.path().join("j"), &apex(), 64 << 20).unwrap();
    let change = change(&zone(1, 'a'), &zone(2, 'b'));
    journal.append(&change).unwrap();
    let changes = journal.between(1, 2).unwrap();
    assert!(changes.octets() > 10 << 20, "{}", changes.octets());
    let (records, max) = read_through(changes.open(0).unwrap());
    assert!(records.unwrap() == records_of(&change));
    assert!(max <= 1 << 20, "{max}");
}

/// An alteration of any octet of an entry is reported, at the latest instead of the end.
#[test]
fn an_altered_entry_is_never_read_to_its_end() {
    let directory = TempDir::new().unwrap();
    let (path, ends) = journal_of(directory.path(), &versions(&[0b111, 0b1010]));
    let (journal, _) = Journal::open(&path, &apex(), LARGE_LIMIT).unwrap();
    let changes = journal.between(1, 2).unwrap();
    assert!(read_through(changes.open(0).unwrap()).0.is_ok());
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    for offset in ends[0]..ends[1] {
        let mut octet = [0];
        file.read_exact_at(&mut octet, offset).unwrap();
        for changed in [octet[0] ^ 1, octet[0] ^ 0x80, 0xff - octet[0]] {
            file.write_all_at(&[changed], offset).unwrap();
            // Four octets of the head are zero; the digest covers them too.
            let outcome = read_through(changes.open(0).unwrap()).0;
            assert!(matches!(outcome, Err(JournalError::Altered { from: 1, .. })), "{offset}");
        }
        file.write_all_at(&octet, offset).unwrap();
    }
    assert!(read_through(changes.open(0).unwrap()).0.is_ok());
    file.set_len(ends[1] - 1).unwrap();
    assert!(matches!(read_through(changes.open(0).unwrap()).0, Err(JournalError::Io { .. })));
}

#[test]
fn an_entry_that_is_altered_after_opening_is_rejected() {
    let directory = TempDir::new().unwrap();
    let (path, ends) = journal_of(directory.path(), &versions(&[0, 1, 2]));
    let (journal, _) = Journal::open(&path, &apex(), LARGE_LIMIT).unwrap();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(&[0xff], ends[1] + 100).unwrap();
    let changes = journal.between(1, 3).unwrap();
    assert!(read_change(&changes, 0).is_ok());
    assert!(matches!(read_change(&changes, 1), Err(JournalError::Altered { from: 2, .. })));
}

/// Returns the number of open file descriptors of this process for `path`.
fn open_files(path: &Path) -> usize {
    let files = fs::read_dir("/proc/self/fd").expect("a directory").flatten();
    files.filter(|file| fs::read_link(file.path()).is_ok_and(|target| target == path)).count()
}

#[test]
fn the_file_is_open_only_while_it_is_used() {
    let directory = tempfile::tempdir().expect("a directory");
    let versions = versions(&[1, 2, 3]);
    let (path, _) = journal_of(directory.path(), &versions[..2]);
    let path = path.canonicalize().expect("a path");
    let (journal, _) = Journal::open(&path, &apex(), 1 << 20).expect("a journal");
    journal.append(&change(&versions[1], &versions[2])).expect("a change");
    assert_eq!(open_files(&path), 0);
    let [one, other] = [(1, 3), (2, 3)].map(|(from, to)| journal.between(from, to).expect("changes"));
    assert_eq!(open_files(&path), 1);
    drop(one);
    assert!(read_change(&other, 0).is_ok());
    drop(other);
    assert_eq!(open_files(&path), 0);
}

#[test]
fn a_file_that_replaced_the_journal_is_not_written_to() {
    let directory = tempfile::tempdir().expect("a directory");
    let versions = versions(&[1, 2, 3]);
    let (path, _) = journal_of(directory.path(), &versions[..2]);
    let (journal, _) = Journal::open(&path, &apex(), 1 << 20).expect("a journal");
    let copy = directory.path().join("copy");
    fs::copy(&path, &copy).expect("a copy");
    fs::rename(&copy, &path).expect("another file");
    let before = fs::read(&path).expect("a file");
    assert!(journal.between(1, 2).is_none());
    let error = journal.append(&change(&versions[1], &versions[2])).expect_err("another file");
    assert!(matches!(&error, JournalError::Replaced { path: at } if *at == path), "{error:?}");
    assert_eq!(fs::read(&path).expect("a file"), before);
    journal.clear().expect("an empty journal");
    journal.append(&change(&versions[1], &versions[2])).expect("a change");
    assert!(journal.between(2, 3).is_some());
}

#[test]
fn the_temporary_file_of_a_crash_is_harmless() {
    let directory = TempDir::new().unwrap();
    let versions = versions(&[0, 1, 2, 3]);
    let (path, _) = journal_of(directory.path(), &versions[..3]);
    let mut temporary = path.clone().into_os_string();
    temporary.push(".new");
    fs::write(&temporary, b"half of a journal").unwrap();
    let (journal, opened) = Journal::open(&path, &apex(), LARGE_LIMIT).unwrap();
    assert_eq!((opened, journal.len()), (OpenOutcome::Whole, 2));
    journal.clear().unwrap();
    assert!(!Path::new(&temporary).exists());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// If the file is truncated at any position or its end is altered, the first changes remain
    /// when it is opened.
    #[test]
    fn after_damage_to_the_end_the_first_changes_remain(
        names in proptest::collection::vec(any::<u64>(), 2..6),
        offset: u64,
        garbage in proptest::collection::vec(any::<u8>(), 0..200),
        is_cut: bool,
    ) {
        let directory = TempDir::new().unwrap();
        let versions = versions(&names);
        let (path, ends) = journal_of(directory.path(), &versions);
        let end = *ends.last().unwrap();
        let offset = HEADER_OCTETS as u64 + offset % (end - HEADER_OCTETS as u64 + 1);
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        if is_cut {
            file.set_len(offset).unwrap();
        }
        file.write_all_at(&garbage, offset).unwrap();
        let whole = ends.iter().rposition(|end| *end <= offset).unwrap();
        let (journal, opened) = Journal::open(&path, &apex(), LARGE_LIMIT).unwrap();
        // The garbage may be equal to the original octets.
        prop_assert!(journal.len() == whole || garbage.len() < 3 && journal.len() >= whole);
        prop_assert_eq!(journal.octets(), ends[journal.len()]);
        prop_assert_eq!(fs::metadata(&path).unwrap().len(), ends[journal.len()]);
        let is_whole = is_cut && garbage.is_empty() && ends.contains(&offset);
        prop_assert!(!is_whole || opened == OpenOutcome::Whole);
        for at in 0..journal.len() {
            prop_assert_eq!(replay(&journal, &versions[at], at as u32 + 2), records(&versions[at + 1]));
        }
        // The journal accepts the next change.
        let last = journal.len() as u32 + 1;
        let next = change(&versions[journal.len()], &version(last + 1, 5));
        prop_assert_eq!(journal.append(&next).unwrap(), AppendOutcome::Appended);
        prop_assert_eq!(Journal::open(&path, &apex(), LARGE_LIMIT).unwrap().0.serials(), Some((1, last + 1)));
    }

    /// An entry with arbitrary octets and a matching digest is rejected or read to its end.
    #[test]
    fn arbitrary_entries_never_panic(offset in 0usize..400, octet: u8, tail in proptest::collection::vec(any::<u8>(), 0..40)) {
        let versions = versions(&[0x0f, 0xf1]);
        let mut octets = entry::encode(&change(&versions[0], &versions[1]), 1, 2);
        let at = entry::HEAD_OCTETS + offset % (octets.len() - entry::HEAD_OCTETS);
        octets[at] = octet;
        octets.extend_from_slice(&tail);
        entry::finish_entry(&mut octets);
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("j");
        fs::write(&path, [&header_of(&apex())[..], &octets].concat()).unwrap();
        let (journal, _) = Journal::open(&path, &apex(), LARGE_LIMIT).unwrap();
        let _ = journal.between(1, 2).map(|changes| read_change(&changes, 0));
    }
}
