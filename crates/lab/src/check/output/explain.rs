//! Everything about one result: the method, the rules, and every message as text and as octets.

use super::super::{CheckReport, Exchange, ItemResult};
use crate::message_text;
use crate::report::printable;
use data_encoding::HEXLOWER;
use std::fmt::Write as _;

/// Octets of a message in one line.
const LINE_OCTETS: usize = 32;

impl CheckReport {
    /// The explanation of the item with this number, if it was checked.
    #[must_use]
    pub fn explain(&self, id: &str) -> Option<String> {
        self.results.iter().find(|result| result.item.id.eq_ignore_ascii_case(id)).map(ItemResult::explain)
    }
}

impl ItemResult {
    /// The result, the method, the rules, and every message that was sent and received: as a zone file with
    /// comments, and its octets in hexadecimal.
    #[must_use]
    pub fn explain(&self) -> String {
        let mut text = format!("{}\n", self.line());
        // Writing to a string does not fail.
        let _ = writeln!(text, "  method: {}\n  rules: {}", self.item.method, self.item.rules.join(", "));
        for note in &self.evidence.notes {
            let _ = writeln!(text, "  note: {}", printable(note));
        }
        for (index, exchange) in self.evidence.exchanges.iter().enumerate() {
            push_exchange(index + 1, exchange, &mut text);
        }
        if self.evidence.omitted > 0 {
            let _ = writeln!(text, "  {} further exchanges are omitted", self.evidence.omitted);
        }
        text
    }
}

fn push_exchange(number: usize, exchange: &Exchange, text: &mut String) {
    let Exchange { sender, server, transport, query, reply, elapsed } = exchange;
    let milliseconds = elapsed.as_secs_f64() * 1e3;
    let _ = writeln!(
        text,
        "\n  exchange {number}: {sender} to {server} over {}, {milliseconds:.3} ms",
        transport.name()
    );
    push_message("query", query, text);
    match reply {
        Ok(octets) => push_message("response", octets, text),
        Err(fault) => {
            let _ = writeln!(text, "  no response: {}", printable(fault));
        }
    }
}

fn push_message(title: &str, octets: &[u8], text: &mut String) {
    let _ = writeln!(text, "  {title}, {} octets:", octets.len());
    for line in message_text::to_text(octets).lines().filter(|line| !line.is_empty()) {
        // The fields of a record are separated by tabulators.
        let _ = writeln!(text, "    {}", printable(&line.replace('\t', " ")));
    }
    for (index, chunk) in octets.chunks(LINE_OCTETS).enumerate() {
        let _ = writeln!(text, "    {:04x}  {}", index * LINE_OCTETS, HEXLOWER.encode(chunk));
    }
}
