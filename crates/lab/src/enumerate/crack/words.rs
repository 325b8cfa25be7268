//! Word lists: one word on each line.

use crate::files::read_bounded;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum size of a word list, in octets. The whole list is in memory, with four octets for each word.
const LIST_MAX: u64 = 1 << 30;

/// The labels that are tested without a word list: hosts and services that many zones have.
const COMMON: &str = include_str!("common-labels.txt");

/// A list of words. Clones share it.
#[derive(Clone, Debug)]
pub struct Words(Arc<List>);

#[derive(Debug)]
struct List {
    text: Vec<u8>,
    /// Offset of each word that is not empty.
    starts: Vec<u32>,
    digest: [u8; 32],
}

/// The list cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot be read as a word list: {source}: name a text file of at most 1 GiB", path.display())]
pub struct WordsError {
    path: PathBuf,
    source: io::Error,
}

impl Words {
    /// The labels that many zones have.
    #[must_use]
    pub fn common() -> Self {
        Self::new(COMMON.as_bytes().to_vec())
    }

    /// Reads a list.
    ///
    /// # Errors
    /// The file cannot be read, is not a regular file, or is too large.
    pub fn read(path: &Path) -> Result<Self, WordsError> {
        let text = read_bounded(path, LIST_MAX);
        text.map(Self::new).map_err(|source| WordsError { path: path.to_path_buf(), source })
    }

    /// A list with these lines. Spaces around words and empty lines are ignored.
    pub(crate) fn new(text: Vec<u8>) -> Self {
        let mut starts = Vec::new();
        let mut at = 0;
        for line in text.split(|octet| *octet == b'\n') {
            if !line.trim_ascii().is_empty() {
                // A list has at most 2^30 octets.
                starts.push(at as u32);
            }
            at += line.len() + 1;
        }
        let digest = *blake3::hash(&text).as_bytes();
        Self(Arc::new(List { text, starts, digest }))
    }

    /// Number of words.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.0.starts.len() as u64
    }

    /// Whether there are no words.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.starts.is_empty()
    }

    pub(super) fn digest(&self) -> &[u8] {
        &self.0.digest
    }

    pub(super) fn word(&self, index: u64) -> Option<&[u8]> {
        let start = *self.0.starts.get(usize::try_from(index).ok()?)?;
        let line = self.0.text.get(start as usize..)?.split(|octet| *octet == b'\n').next()?;
        Some(line.trim_ascii())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len()).filter_map(|index| self.word(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_words() {
        let words = Words::new(b"www\n\n mail \r\nns1\n  \nend".to_vec());
        let found: Vec<&[u8]> = words.iter().collect();
        assert_eq!(found, [&b"www"[..], b"mail", b"ns1", b"end"]);
        assert_eq!(words.word(4), None);
        assert!(Words::new(Vec::new()).is_empty());
        assert!(Words::common().len() > 100);
    }
}
