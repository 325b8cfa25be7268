//! Query lists in the file format of dnsperf: `name type` on each line; `;` at the start of a line
//! begins a comment.
//!
//! All names are absolute, with or without a final dot. The list stores the names in wire form.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use nonesuch_proto::{Class, Name, NameError, NameRef, Rtype, push_name_from_text};
use nonesuch_zone::read::read_remedy;

/// Maximum number of skipped lines that the list stores for messages.
const SKIPPED_KEPT: usize = 10;

/// A list of questions in wire form (RFC 1035 §4.1.2).
#[derive(Debug, Clone, Default)]
pub struct QueryList {
    octets: Vec<u8>,
    /// End offset of each question.
    ends: Vec<usize>,
    skipped: Vec<SkippedLine>,
}

/// A line that is not a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {reason}")]
pub struct SkippedLine {
    /// Number of the line, starting at 1.
    pub line: u64,
    /// Fault of the line.
    pub reason: SkipReason,
}

/// Faults of a line in a query list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum SkipReason {
    #[error("expected a name and a type with blanks between them")]
    Fields,
    #[error("malformed name: {0}")]
    Name(NameError),
    #[error("unknown type: write a mnemonic such as AAAA, or a number such as TYPE28")]
    Type,
}

/// Reasons why a query list cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum QueryListError {
    #[error(
        "{}: the query list cannot be read: {source}{}; `nonesuch zone generate --queries FILE` generates a query list",
        path.display(), read_remedy(source)
    )]
    Read { path: PathBuf, source: io::Error },
    #[error("the query list {} has no query: write one query per line, for example \"example.com A\"", path.display())]
    Empty { path: PathBuf },
    #[error("the query list {} has no valid query: {first}", path.display())]
    AllSkipped { path: PathBuf, first: SkippedLine },
}

impl QueryList {
    /// Reads a query list from a file.
    ///
    /// # Errors
    /// Fails if the file cannot be read or no line is a query. If at least one line is a query,
    /// invalid lines are skipped, as dnsperf does; [`skipped`](Self::skipped) returns them.
    pub fn from_file(path: &Path) -> Result<Self, QueryListError> {
        let text = fs::read(path).map_err(|source| QueryListError::Read { path: path.to_owned(), source })?;
        Self::parse(path, &text)
    }

    /// Reads a query list from `text`. Errors contain `path`.
    ///
    /// # Errors
    /// Fails if no line is a query.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Self, QueryListError> {
        let mut list = Self::default();
        let root = Name::root();
        for (line, text) in (1..).zip(text.split(|&octet| octet == b'\n')) {
            if let Err(reason) = list.push_line(text.trim_ascii(), root.view())
                && list.skipped.len() < SKIPPED_KEPT
            {
                list.skipped.push(SkippedLine { line, reason });
            }
        }
        match list.skipped.first() {
            _ if !list.is_empty() => Ok(list),
            Some(&first) => Err(QueryListError::AllSkipped { path: path.to_owned(), first }),
            None => Err(QueryListError::Empty { path: path.to_owned() }),
        }
    }

    fn push_line(&mut self, line: &[u8], root: NameRef<'_>) -> Result<(), SkipReason> {
        if matches!(line.first(), None | Some(b';')) {
            return Ok(());
        }
        let mut fields = line.split(u8::is_ascii_whitespace).filter(|field| !field.is_empty());
        let (Some(name), Some(rtype), None) = (fields.next(), fields.next(), fields.next()) else {
            return Err(SkipReason::Fields);
        };
        let rtype = Rtype::from_mnemonic(rtype).ok_or(SkipReason::Type)?;
        let start = self.octets.len();
        if let Err(error) = push_name_from_text(name, Some(root), &mut self.octets) {
            self.octets.truncate(start);
            return Err(SkipReason::Name(error));
        }
        self.end_question(rtype);
        Ok(())
    }

    fn end_question(&mut self, rtype: Rtype) {
        self.octets.extend_from_slice(&rtype.0.to_be_bytes());
        self.octets.extend_from_slice(&Class::IN.0.to_be_bytes());
        self.ends.push(self.octets.len());
    }

    /// Number of queries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether the list has no queries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Octets of the longest name in wire form.
    pub(super) fn longest_name(&self) -> usize {
        let lengths =
            (0..self.len()).filter_map(|index| self.question(index)).map(|question| question.len() - 4);
        lengths.max().unwrap_or(0)
    }

    /// Returns the first ten skipped lines.
    #[must_use]
    pub fn skipped(&self) -> &[SkippedLine] {
        &self.skipped
    }

    /// Returns question `index`: name, type and class in wire form. Returns `None` if `index` is
    /// too large.
    #[must_use]
    pub fn question(&self, index: usize) -> Option<&[u8]> {
        let start = match index.checked_sub(1) {
            Some(before) => *self.ends.get(before)?,
            None => 0,
        };
        self.octets.get(start..*self.ends.get(index)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &[u8]) -> Result<QueryList, QueryListError> {
        QueryList::parse(Path::new("list"), text)
    }

    fn questions(text: &[u8]) -> Vec<Vec<u8>> {
        let list = parse(text).expect("has queries");
        (0..list.len()).map(|index| list.question(index).expect("in the list").to_vec()).collect()
    }

    #[test]
    fn lines_become_questions() {
        let text = b"; comment\n; another\n\nexample.com A\r\n  a.\tTYPE28 \n. ns\n\\.x\\065.y AAAA";
        let expected: [&[u8]; 4] = [
            b"\x07example\x03com\0\0\x01\0\x01",
            b"\x01a\0\0\x1c\0\x01",
            b"\0\0\x02\0\x01",
            b"\x03.xA\x01y\0\0\x1c\0\x01",
        ];
        assert_eq!(questions(text), expected);
    }

    #[test]
    fn bad_lines_are_skipped_and_told() {
        let long = [b"good A\nnotype\n", &b"x".repeat(64)[..], b". A\nx. NOSUCH\na..b A\nx. A IN\n"].concat();
        let list = parse(&long).expect("one is good");
        assert_eq!((list.len(), list.skipped().len()), (1, 5));
        let lines: Vec<u64> = list.skipped().iter().map(|skipped| skipped.line).collect();
        assert_eq!(lines, [2, 3, 4, 5, 6]);
        assert_eq!(list.skipped()[0].reason, SkipReason::Fields);
        assert_eq!(list.skipped()[2].reason, SkipReason::Type);
        assert!(matches!(list.skipped()[1], SkippedLine { line: 3, reason: SkipReason::Name(_) }));
    }

    #[test]
    fn no_query_at_all_is_an_error() {
        assert!(matches!(parse(b"; nothing\n\n"), Err(QueryListError::Empty { .. })));
        let error = parse(b";\nwhat\n").expect_err("no query");
        let QueryListError::AllSkipped { path, first } = &error else { panic!("{error}") };
        assert_eq!(path, Path::new("list"));
        assert_eq!(*first, SkippedLine { line: 2, reason: SkipReason::Fields });
        assert!(matches!(QueryList::from_file(Path::new("/nonexistent")), Err(QueryListError::Read { .. })));
    }

    #[test]
    fn only_ten_skipped_lines_are_kept() {
        let list = parse(&[&b"bad\n".repeat(50)[..], b"good A"].concat()).expect("one is good");
        assert_eq!((list.skipped().len(), list.len()), (10, 1));
    }

    #[test]
    fn the_root_server_sample_is_read_whole() {
        let Some(path) = nonesuch_testing::public_data("root-queries/root-server-sample.txt") else { return };
        let list = QueryList::from_file(&path).expect("has queries");
        // A line that begins with # is a query, as in dnsperf.
        assert_eq!((list.len(), list.skipped()), (49_739, &[][..]));
        assert_eq!(list.question(0), Some(&b"\x02uk\x0anedstatpro\x03net\0\0\x01\0\x01"[..]));
    }

    proptest! {
        #[test]
        fn every_name_survives_being_written_and_read(
            labels in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 1..64), 0..4),
            rtype: u16,
        ) {
            let mut wire = Vec::new();
            let mut text = Vec::new();
            for label in labels.iter().take_while(|label| !label.is_empty()) {
                wire.push(label.len() as u8);
                wire.extend_from_slice(label);
                label.iter().for_each(|octet| text.extend_from_slice(format!("\\{octet:03}").as_bytes()));
                text.push(b'.');
            }
            prop_assume!(wire.len() < 255);
            wire.push(0);
            if text.is_empty() {
                text.push(b'.');
            }
            text.extend_from_slice(format!(" TYPE{rtype}").as_bytes());
            wire.extend_from_slice(&rtype.to_be_bytes());
            wire.extend_from_slice(&[0, 1]);
            prop_assert_eq!(questions(&text), vec![wire]);
        }

        #[test]
        fn arbitrary_octets_give_whole_questions_or_errors(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(list) = parse(&text) {
                for index in 0..list.len() {
                    let question = list.question(index).expect("in the list");
                    prop_assert!((5..=259).contains(&question.len()));
                }
                prop_assert_eq!(list.question(list.len()), None);
            }
        }
    }
}
