//! A zone of a running server, sent over the control socket as the text of a zone file: lines with the member `text`, made and sent
//! piece by piece, so that a zone of any size takes bounded memory.

use super::write_line;
use crate::control_protocol::{Line, ZoneExported};
use nonesuch_proto::Name;
use nonesuch_zone::write::{write_stored, write_zone};
use nonesuch_zone::{Contents, StoredZone};
use std::io::{self, Write};
use std::sync::Arc;

/// Octets of text in one line.
const PIECE: usize = 64 << 10;

/// Records of a zone: in memory, or in the state folder.
pub(crate) enum ExportSource {
    InMemory(Arc<Contents>),
    Stored(Box<StoredZone>),
}

impl ExportSource {
    /// Sends the zone as text, and then what it was.
    pub(crate) fn send(&self, apex: &Name, to: impl Write) -> io::Result<()> {
        let mut pieces = Pieces { to, text: Vec::with_capacity(PIECE) };
        match self {
            Self::InMemory(contents) => write_zone(contents, &mut pieces)?,
            Self::Stored(zone) => write_stored(zone, &mut pieces)?,
        }
        pieces.flush()?;
        write_line(&mut pieces.to, &Line::done(&self.facts(apex)))?;
        pieces.to.flush()
    }

    fn facts(&self, apex: &Name) -> ZoneExported {
        let (soa, records) = match self {
            Self::InMemory(contents) => (contents.soa(), contents.record_count()),
            Self::Stored(zone) => (zone.head().soa(), zone.record_count()),
        };
        ZoneExported { zone: apex.to_string(), serial: soa.map(|soa| soa.serial), records }
    }
}

/// Puts text into lines of JSON.
struct Pieces<W> {
    to: W,
    text: Vec<u8>,
}

impl<W: Write> Write for Pieces<W> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let taken = octets.len().min(PIECE - self.text.len());
        self.text.extend_from_slice(&octets[..taken]);
        if self.text.len() == PIECE {
            self.flush()?;
        }
        Ok(taken)
    }

    /// What stands in a zone file is ASCII, so that no letter is cut in two.
    fn flush(&mut self) -> io::Result<()> {
        if !self.text.is_empty() {
            write_line(&mut self.to, &Line::Text(String::from_utf8_lossy(&self.text).into_owned()))?;
            self.text.clear();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    #[test]
    fn text_comes_in_bounded_lines_and_is_whole() {
        let text: Vec<u8> = (0..3 * PIECE + 7).map(|at| b' ' + (at % 95) as u8).collect();
        let mut pieces = Pieces { to: Vec::new(), text: Vec::new() };
        text.chunks(1000).for_each(|part| pieces.write_all(part).unwrap());
        pieces.flush().unwrap();
        let lines = String::from_utf8(pieces.to).unwrap();
        let values: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let parts: Vec<&str> = values.iter().map(|value| value["text"].as_str().unwrap()).collect();
        assert_eq!(parts.len(), 4);
        assert!(parts.iter().all(|part| part.len() <= PIECE));
        assert_eq!(parts.concat().as_bytes(), text);
    }
}
