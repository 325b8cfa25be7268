//! The file of the counting library: time-stamped totals of verified signatures.

use super::gap::GapReason;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Maximum time between two lines, in microseconds: the library writes a line each second.
const DISTANCE_MAX: u64 = 3_000_000;
/// Maximum time by which a line may be older than the line above it, of another process.
const DISORDER_MAX: u64 = 500_000;
/// Maximum octets of a line.
const LINE_MAX: usize = 100;
/// Maximum points that are stored: those of a day.
const POINTS_MAX: usize = 100_000;
/// Maximum processes whose totals are stored.
const PROCESSES_MAX: usize = 4096;

/// Why the file cannot be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum TotalsError {
    #[error(
        "{}: cannot be read: {source}: start the resolver with the counting library first \
        (tools/count-verifications/README.md)",
        path.display()
    )]
    Read { path: PathBuf, source: io::Error },
    #[error(
        "{}: line {line}: expected a time in microseconds, a total and a process ID: name the file in \
        NONESUCH_VERIFICATIONS",
        path.display()
    )]
    Malformed { path: PathBuf, line: u64 },
}

/// The verified signatures in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verified {
    /// Their number.
    Count(u64),
    /// The file does not have the end of the window yet.
    Pending,
    /// The file has no totals for the window, for this reason.
    Unknown(GapReason),
}

/// The sum of the totals of all processes at a time.
#[derive(Clone, Copy, Debug)]
struct Point {
    time: u64,
    sum: u64,
    /// Points with the same number have no gap between them.
    stretch: u32,
    /// Why the gap before this stretch exists.
    reason: GapReason,
}

/// Reads the totals, as far as they are needed.
#[derive(Debug)]
pub struct VerificationTotals {
    path: PathBuf,
    /// `None` while the file does not exist.
    input: Option<BufReader<File>>,
    /// The start of a line that is not complete yet.
    line: Vec<u8>,
    line_number: u64,
    processes: HashMap<u32, u64>,
    points: VecDeque<Point>,
}

impl VerificationTotals {
    /// Opens the file.
    ///
    /// # Errors
    /// [`TotalsError::Read`] if it cannot be opened.
    pub fn open(path: &Path) -> Result<Self, TotalsError> {
        let mut totals = Self::expect(path);
        let file = File::open(path).map_err(|source| totals.failed(source))?;
        totals.input = Some(BufReader::new(file));
        Ok(totals)
    }

    /// Opens the file as soon as it exists: when the resolver starts.
    #[must_use]
    pub fn expect(path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
            input: None,
            line: Vec::new(),
            line_number: 0,
            processes: HashMap::new(),
            points: VecDeque::new(),
        }
    }

    fn failed(&self, source: io::Error) -> TotalsError {
        TotalsError::Read { path: self.path.clone(), source }
    }

    /// Opens the file at the path if no file is open, or if it has replaced the open one. Returns
    /// whether it is a new one.
    fn open_new(&mut self) -> Result<bool, TotalsError> {
        let found = match File::open(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            found => found.map_err(|source| self.failed(source))?,
        };
        let place = |file: &File| file.metadata().map(|metadata| (metadata.dev(), metadata.ino()));
        if let Some(input) = &self.input {
            let is_same = place(input.get_ref()).and_then(|open| Ok(open == place(&found)?));
            if is_same.map_err(|source| self.failed(source))? {
                return Ok(false);
            }
        }
        (self.input, self.line, self.line_number) = (Some(BufReader::new(found)), Vec::new(), 0);
        Ok(true)
    }

    /// Returns the number of signatures that were verified from `from` until `until`, in microseconds
    /// since 1970. Between two lines it is interpolated. Times may only increase from call to call:
    /// earlier lines are forgotten.
    ///
    /// # Errors
    /// Fails if the file cannot be read, or is not one of the library.
    pub fn between(&mut self, from: u64, until: u64) -> Result<Verified, TotalsError> {
        self.read_until(until)?;
        if self.points.back().is_none_or(|last| last.time < until) {
            return Ok(Verified::Pending);
        }
        let verified = match (self.at(from), self.at(until)) {
            (Ok((before, first)), Ok((after, last))) if first == last => {
                Verified::Count(after.saturating_sub(before))
            }
            (Ok(_), Ok(_)) => Verified::Unknown(self.reason_at(until)),
            (Err(reason), _) | (_, Err(reason)) => Verified::Unknown(reason),
        };
        // The last point before `until`, and all at this time, are needed for the next window.
        while self.points.get(1).is_some_and(|second| second.time < until) {
            self.points.pop_front();
        }
        Ok(verified)
    }

    /// Returns the sum at a time, and its stretch.
    fn at(&self, time: u64) -> Result<(u64, u32), GapReason> {
        let next = self.points.partition_point(|point| point.time < time);
        let after = self.points.get(next).ok_or(GapReason::NoTotals)?;
        if after.time == time {
            return Ok((after.sum, after.stretch));
        }
        let before =
            next.checked_sub(1).and_then(|before| self.points.get(before)).ok_or(GapReason::NoTotals)?;
        if before.stretch != after.stretch {
            return Err(after.reason);
        }
        let share = (time - before.time) as f64 / (after.time - before.time) as f64;
        Ok((before.sum + ((after.sum - before.sum) as f64 * share).round() as u64, after.stretch))
    }

    /// Why the last gap before a time exists.
    fn reason_at(&self, time: u64) -> GapReason {
        let next = self.points.partition_point(|point| point.time < time);
        self.points.get(next).map_or(GapReason::NoTotals, |point| point.reason)
    }

    /// Reads lines until one has this time or a later one, or the file ends.
    fn read_until(&mut self, time: u64) -> Result<(), TotalsError> {
        while self.points.back().is_none_or(|last| last.time < time) {
            let Some((time, total, process)) = self.read_line()? else { return Ok(()) };
            self.add(time, total, process);
        }
        Ok(())
    }

    /// Returns the numbers of the next complete line.
    fn read_line(&mut self) -> Result<Option<(u64, u64, u32)>, TotalsError> {
        loop {
            if !self.fill_line()? && !self.open_new()? {
                return Ok(None);
            }
            let is_too_long = self.line.len() > LINE_MAX;
            if !self.line.ends_with(b"\n") && !is_too_long {
                continue;
            }
            self.line_number += 1;
            let line = std::mem::take(&mut self.line);
            match numbers(&line) {
                Some(numbers) => return Ok(Some(numbers)),
                // A line of which a full disk has cut the end.
                None if !is_too_long && self.line_number > 1 => {}
                None => {
                    return Err(TotalsError::Malformed { path: self.path.clone(), line: self.line_number });
                }
            }
        }
    }

    /// Reads up to the end of the line. Returns false at the end of the file.
    fn fill_line(&mut self) -> Result<bool, TotalsError> {
        let Some(input) = &mut self.input else { return Ok(false) };
        let available = match input.fill_buf() {
            Ok(available) => available,
            Err(source) => return Err(self.failed(source)),
        };
        let end = available.iter().position(|octet| *octet == b'\n');
        let taken = end.map_or(available.len(), |end| end + 1);
        self.line.extend_from_slice(&available[..taken]);
        input.consume(taken);
        Ok(taken > 0)
    }

    fn add(&mut self, time: u64, total: u64, process: u32) {
        let last = self.points.back().copied();
        let known = self.processes.get(&process).copied();
        // The first line of a process has the total 0. Without it, the verifications of a process
        // before its first line are unknown.
        let added = match known {
            Some(before) => total.checked_sub(before),
            None if total == 0 || last.is_none() => Some(0),
            None => None,
        };
        if self.processes.len() >= PROCESSES_MAX {
            self.processes.clear();
        }
        self.processes.insert(process, total);
        let Some(last) = last else {
            return self.push(Point { time, sum: 0, stretch: 0, reason: GapReason::NoTotals });
        };
        let jumps_back = time.saturating_add(DISORDER_MAX) < last.time;
        let reason = match added {
            _ if jumps_back => Some(GapReason::ClockJump),
            None => Some(GapReason::CounterReset),
            // Nothing was verified between two equal totals of a process, however far they are apart.
            Some(0) if known.is_some() => None,
            Some(_) if time > last.time.saturating_add(DISTANCE_MAX) => Some(GapReason::NoTotals),
            Some(_) => None,
        };
        if jumps_back {
            // Times after the jump are those of earlier points.
            self.points.clear();
        }
        let stretch = last.stretch.wrapping_add(reason.is_some().into());
        let time = if jumps_back { time } else { time.max(last.time) };
        let sum = last.sum.saturating_add(added.unwrap_or(0));
        self.push(Point { time, sum, stretch, reason: reason.unwrap_or(last.reason) });
    }

    fn push(&mut self, point: Point) {
        if self.points.len() == POINTS_MAX {
            self.points.pop_front();
        }
        self.points.push_back(point);
    }
}

/// Returns the time, the total and the process ID of a line.
fn numbers(line: &[u8]) -> Option<(u64, u64, u32)> {
    let text = std::str::from_utf8(line.strip_suffix(b"\n")?).ok()?;
    let mut fields = text.split(' ');
    let numbers = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
    fields.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    const SECOND: u64 = 1_000_000;

    /// A file with lines: seconds, total, process.
    fn totals(lines: &[(u64, u64, u32)]) -> (VerificationTotals, File) {
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut out = file.reopen().unwrap();
        lines.iter().for_each(|line| add(&mut out, *line));
        (VerificationTotals::open(file.path()).unwrap(), out)
    }

    fn add(out: &mut File, (seconds, total, process): (u64, u64, u32)) {
        writeln!(out, "{} {total} {process}", seconds * SECOND).unwrap();
    }

    fn between(totals: &mut VerificationTotals, from: u64, until: u64) -> Verified {
        totals.between(from * SECOND, until * SECOND).unwrap()
    }

    #[test]
    fn windows_have_the_difference_of_totals() {
        let (mut totals, mut out) = totals(&[(100, 0, 7), (101, 4, 7), (102, 10, 7), (103, 10, 7)]);
        assert_eq!(totals.between(100 * SECOND, 101 * SECOND + SECOND / 2).unwrap(), Verified::Count(7));
        assert_eq!(totals.between(101 * SECOND + SECOND / 2, 103 * SECOND).unwrap(), Verified::Count(3));
        assert_eq!(between(&mut totals, 103, 104), Verified::Pending);
        write!(out, "104000000 1").unwrap();
        assert_eq!(between(&mut totals, 103, 104), Verified::Pending);
        writeln!(out, "2 7").unwrap();
        assert_eq!(between(&mut totals, 103, 104), Verified::Count(2));
    }

    #[test]
    fn times_without_lines_are_unknown() {
        let (mut totals, _) = totals(&[(100, 5, 7), (101, 6, 7), (105, 9, 7), (106, 9, 7)]);
        assert_eq!(between(&mut totals, 99, 101), Verified::Unknown(GapReason::NoTotals));
        assert_eq!(between(&mut totals, 100, 103), Verified::Unknown(GapReason::NoTotals));
        assert_eq!(between(&mut totals, 101, 106), Verified::Unknown(GapReason::NoTotals));
        assert_eq!(between(&mut totals, 105, 106), Verified::Count(0));
    }

    #[test]
    fn equal_totals_of_a_process_have_no_gap_between_them() {
        let (mut totals, _) = totals(&[(100, 0, 7), (200, 0, 7), (201, 3, 7), (300, 3, 7), (400, 0, 8)]);
        assert_eq!(between(&mut totals, 150, 201), Verified::Count(3));
        assert_eq!(between(&mut totals, 201, 260), Verified::Count(0));
        assert_eq!(between(&mut totals, 260, 350), Verified::Unknown(GapReason::NoTotals));
    }

    #[test]
    fn processes_are_added_and_may_be_replaced() {
        let lines =
            [(100, 50, 7), (101, 60, 7), (101, 0, 8), (102, 5, 8), (102, 61, 7), (103, 7, 8), (104, 7, 8)];
        let (mut totals, _) = totals(&lines);
        assert_eq!(between(&mut totals, 100, 104), Verified::Count(11 + 7));
    }

    #[test]
    fn a_reset_and_a_clock_jump_are_named() {
        let (mut reset, _) = totals(&[(100, 5, 7), (101, 6, 7), (102, 1, 7), (103, 4, 7)]);
        assert_eq!(between(&mut reset, 100, 101), Verified::Count(1));
        assert_eq!(between(&mut reset, 101, 102), Verified::Unknown(GapReason::CounterReset));
        assert_eq!(between(&mut reset, 102, 103), Verified::Count(3));
        let (mut unknown, _) = totals(&[(100, 5, 7), (101, 9, 8), (102, 9, 8)]);
        assert_eq!(between(&mut unknown, 100, 102), Verified::Unknown(GapReason::CounterReset));
        let (mut jump, _) = totals(&[(100, 5, 7), (101, 6, 7), (90, 7, 7), (91, 8, 7), (92, 8, 7)]);
        assert_eq!(between(&mut jump, 100, 101), Verified::Count(1));
        assert_eq!(between(&mut jump, 101, 102), Verified::Pending);
        assert_eq!(between(&mut jump, 91, 92), Verified::Count(0));
    }

    #[test]
    fn a_file_may_be_created_and_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("totals");
        let mut totals = VerificationTotals::expect(&path);
        assert_eq!(between(&mut totals, 100, 101), Verified::Pending);
        std::fs::write(&path, "99000000 0 7\n101000000 5 7\n").unwrap();
        assert_eq!(between(&mut totals, 100, 101), Verified::Count(2));
        std::fs::rename(&path, folder.path().join("old")).unwrap();
        std::fs::write(&path, "102000000 0 8\n103000000 4 8\n").unwrap();
        assert_eq!(between(&mut totals, 101, 103), Verified::Count(4));
    }

    #[test]
    fn other_files_are_refused() {
        for (text, line) in
            [("x\n", 1), ("1 2\n", 1), ("100 1 1\n", 0), (&"9".repeat(200), 1), ("1 1 1\ncut\n", 0)]
        {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(text.as_bytes()).unwrap();
            let read = VerificationTotals::open(file.path()).unwrap().between(0, u64::MAX);
            match read {
                Err(TotalsError::Malformed { line: found, .. }) => assert_eq!(found, line, "{text}"),
                other => assert!(line == 0 && matches!(other, Ok(Verified::Pending)), "{text}: {other:?}"),
            }
        }
        assert!(VerificationTotals::open(Path::new("/nonexistent")).is_err());
    }
}
