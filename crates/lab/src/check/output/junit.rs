//! Results as JUnit XML, which continuous integration systems read: a test suite with a test case for each
//! item.

use super::super::{CheckReport, ItemResult, Outcome};
use std::fmt::Write as _;

impl CheckReport {
    /// The report as JUnit XML. An item that is not testable is a skipped test case.
    #[must_use]
    pub fn to_junit(&self) -> String {
        let summary = self.summary();
        let seconds: f64 = self.results.iter().map(|result| result.elapsed.as_secs_f64()).sum();
        let mut xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" \
             errors=\"0\" skipped=\"{}\" time=\"{seconds:.3}\" timestamp=\"{}\">\n<properties>\n",
            escape(&format!("nonesuch check {}", self.title())),
            self.results.len(),
            summary.failed,
            summary.not_testable,
            escape(self.started_at_text().trim_end_matches('Z')),
        );
        for (term, value) in &self.facts {
            // Writing to a string does not fail.
            let _ = writeln!(xml, "<property name=\"{}\" value=\"{}\"/>", escape(term), escape(value));
        }
        xml.push_str("</properties>\n");
        self.results.iter().for_each(|result| push_case(self.kind, result, &mut xml));
        xml.push_str("</testsuite>\n");
        xml
    }
}

fn push_case(kind: &str, result: &ItemResult, xml: &mut String) {
    let name = format!("{} {}", result.item.id, result.item.subject);
    let _ = write!(
        xml,
        "<testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\">",
        escape(&kind.replace(' ', ".")),
        escape(&name),
        result.elapsed.as_secs_f64()
    );
    let reason = escape(&result.reason());
    let _ = match &result.outcome {
        Outcome::Pass(note) if note.is_empty() => Ok(()),
        Outcome::Pass(_) => write!(xml, "<system-out>{reason}</system-out>"),
        Outcome::Fail(_) => {
            write!(xml, "<failure message=\"{reason}\">{}</failure>", escape(&result.explain()))
        }
        Outcome::NotTestable(_) => write!(xml, "<skipped message=\"{reason}\"/>"),
    };
    xml.push_str("</testcase>\n");
}

/// Escapes text for contents and quoted attributes. U+FFFD replaces characters that XML 1.0 (section 2.2)
/// forbids.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&apos;"),
            // An XML reader replaces them with spaces in attributes.
            '\t' => out.push_str("&#9;"),
            '\n' => out.push_str("&#10;"),
            '\r' => out.push_str("&#13;"),
            '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            letter => out.push(letter),
        }
    }
    out
}
