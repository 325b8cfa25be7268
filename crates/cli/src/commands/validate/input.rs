//! Reads the lines of the input, with bounds.

use super::Failure;
use super::line::{Invalid, LineFault, Response, parse};
use crate::files::{FileError, input_name, is_standard_stream};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _};
use std::path::Path;

/// Maximum length of a line, in octets. The longest message has 131,070 hexadecimal digits.
pub(super) const MAX_LINE_OCTETS: usize = 1 << 20;
/// Maximum length of the input, in octets. All responses are kept, because a later one may have the keys.
pub(super) const MAX_INPUT_OCTETS: usize = 256 << 20;

/// Why the input is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum InputError {
    #[error("longer than {} MiB, the maximum of the input: split it, and repeat the responses of the chain of trust \
             in each part", MAX_INPUT_OCTETS >> 20)]
    TooLong,
}

/// A line that is neither empty nor a comment.
#[derive(Debug)]
pub(super) struct Line {
    /// Number of the line, from 1.
    pub(super) number: usize,
    pub(super) content: Result<Box<Response>, Invalid>,
}

/// Reads all lines of a file; `-` is standard input.
pub(super) fn read_lines(path: &Path) -> Result<Vec<Line>, Failure> {
    let failed = |source| FileError::Read { path: input_name(path).to_path_buf(), source };
    let read = if is_standard_stream(path) {
        read_from(io::stdin().lock())
    } else {
        read_from(BufReader::new(File::open(path).map_err(failed)?))
    };
    let too_long = |source| Failure::Input { path: input_name(path).to_path_buf(), source };
    read.map_err(failed)?.map_err(too_long)
}

fn read_from(mut input: impl BufRead) -> io::Result<Result<Vec<Line>, InputError>> {
    let (mut lines, mut octets, mut number) = (Vec::new(), 0, 0);
    let mut line = Vec::new();
    loop {
        line.clear();
        let count = input.by_ref().take(MAX_LINE_OCTETS as u64 + 1).read_until(b'\n', &mut line)?;
        octets += count;
        number += 1;
        if count == 0 {
            return Ok(Ok(lines));
        }
        if octets > MAX_INPUT_OCTETS {
            return Ok(Err(InputError::TooLong));
        }
        if line.len() > MAX_LINE_OCTETS && !line.ends_with(b"\n") {
            octets += skip_line(&mut input, MAX_INPUT_OCTETS)?;
            lines.push(Line { number, content: Err(Invalid::new(LineFault::TooLong)) });
            continue;
        }
        let content = line.trim_ascii();
        if !content.is_empty() && !content.starts_with(b"#") && !content.starts_with(b";") {
            lines.push(Line { number, content: parse(content).map(Box::new) });
        }
    }
}

/// Skips the rest of a line. Returns the number of skipped octets, which exceeds `max` by at most the size
/// of the buffer.
fn skip_line(input: &mut impl BufRead, max: usize) -> io::Result<usize> {
    let mut skipped = 0;
    while skipped <= max {
        let buffer = input.fill_buf()?;
        let end = buffer.iter().position(|octet| *octet == b'\n');
        let (count, is_end) = (end.map_or(buffer.len(), |at| at + 1), end.is_some() || buffer.is_empty());
        input.consume(count);
        skipped += count;
        if is_end {
            break;
        }
    }
    Ok(skipped)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(text: &[u8]) -> Vec<(usize, Option<String>)> {
        let lines = read_from(text).expect("read").expect("not too long");
        lines.into_iter().map(|line| (line.number, line.content.err().map(|e| e.fault.to_string()))).collect()
    }

    #[test]
    fn lines_are_numbered_and_long_ones_are_skipped() {
        let long = vec![b'a'; MAX_LINE_OCTETS + 5];
        let text = [b"# comment\n\n  ; other\n", long.as_slice(), b"\nzz\r\n\xff\n00"].concat();
        let found = numbers(&text);
        assert_eq!(found.iter().map(|line| line.0).collect::<Vec<_>>(), [4, 5, 6, 7]);
        assert!(found.iter().all(|line| line.1.is_some()), "{found:?}");
        assert_eq!(found[0].1, Some(LineFault::TooLong.to_string()));
        // The longest line is read, with and without a line end.
        for end in ["", "\n"] {
            let found = numbers(&[&long[..MAX_LINE_OCTETS], end.as_bytes()].concat());
            assert!(found.len() == 1 && found[0].1 != Some(LineFault::TooLong.to_string()), "{found:?}");
        }
    }

    #[test]
    fn the_input_is_bounded() {
        let endless = BufReader::new(io::repeat(b'a'));
        assert!(matches!(read_from(endless).expect("read"), Err(InputError::TooLong)));
    }
}
