//! Exports a zone over the control socket: the text of the zone file, cut into JSON lines
//! `{"text": …}`.
//!
//! The text is generated and sent piece by piece, so the memory use does not depend on the size of
//! the zone.

use super::write_line;
use crate::control_protocol::{Line, ZoneExported};
use nonesuch_proto::Name;
use nonesuch_zone::write::{write_stored, write_zone};
use nonesuch_zone::{Contents, StoredZone};
use std::io::{self, Write};
use std::sync::Arc;

/// Maximum length of the text in one line, in octets.
const MAX_LINE_TEXT: usize = 64 << 10;

/// The records of a zone, in memory or in the state directory.
pub(crate) enum ExportSource {
    InMemory(Arc<Contents>),
    Stored(Box<StoredZone>),
}

impl ExportSource {
    /// Sends the zone as text, and then a summary of the zone.
    pub(crate) fn send(&self, apex: &Name, output: impl Write) -> io::Result<()> {
        let mut writer = JsonLineWriter { output, text: Vec::with_capacity(MAX_LINE_TEXT) };
        match self {
            Self::InMemory(contents) => write_zone(contents, &mut writer)?,
            Self::Stored(zone) => write_stored(zone, &mut writer)?,
        }
        writer.flush()?;
        write_line(&mut writer.output, &Line::done(&self.summary(apex)))?;
        writer.output.flush()
    }

    /// The final line of the response.
    fn summary(&self, apex: &Name) -> ZoneExported {
        let (soa, records) = match self {
            Self::InMemory(contents) => (contents.soa(), contents.record_count()),
            Self::Stored(zone) => (zone.first_chunk().soa(), zone.record_count()),
        };
        ZoneExported { zone: apex.to_string(), serial: soa.map(|soa| soa.serial), records }
    }
}

/// Writer that cuts text into JSON lines `{"text": …}` of the control protocol ([`Line::Text`]).
struct JsonLineWriter<W> {
    output: W,
    text: Vec<u8>,
}

impl<W: Write> Write for JsonLineWriter<W> {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let accepted = octets.len().min(MAX_LINE_TEXT - self.text.len());
        self.text.extend_from_slice(&octets[..accepted]);
        if self.text.len() == MAX_LINE_TEXT {
            self.flush()?;
        }
        Ok(accepted)
    }

    /// Sends the collected text as a line. It does not flush `output`: that would cost a system
    /// call for each line. The text of a zone file is ASCII, so a split never divides a character.
    fn flush(&mut self) -> io::Result<()> {
        if !self.text.is_empty() {
            write_line(&mut self.output, &Line::Text(String::from_utf8_lossy(&self.text).into_owned()))?;
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
    fn text_is_split_into_lines_of_limited_length_without_loss() {
        let text: Vec<u8> = (0..3 * MAX_LINE_TEXT + 7).map(|at| b' ' + (at % 95) as u8).collect();
        let mut writer = JsonLineWriter { output: Vec::new(), text: Vec::new() };
        text.chunks(1000).for_each(|part| writer.write_all(part).unwrap());
        writer.flush().unwrap();
        let lines = String::from_utf8(writer.output).unwrap();
        let values: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let parts: Vec<&str> = values.iter().map(|value| value["text"].as_str().unwrap()).collect();
        assert_eq!(parts.len(), 4);
        assert!(parts.iter().all(|part| part.len() <= MAX_LINE_TEXT));
        assert_eq!(parts.concat().as_bytes(), text);
    }
}
