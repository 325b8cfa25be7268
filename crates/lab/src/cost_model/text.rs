//! Sections of a report as text for a terminal, and the format of estimates.

use super::model::Estimate;
use crate::report::{Block, Section, printable};
use std::fmt::Write as _;

/// Maximum length of a line of a paragraph, in characters.
const LINE_LENGTH: usize = 100;
/// Maximum number of decimals of an estimate.
const MAX_DECIMALS: f64 = 9.0;

/// Returns titles, paragraphs, notes, terms and tables. Charts are omitted.
pub(super) fn to_text(sections: &[Section]) -> String {
    let mut text = String::new();
    for section in sections {
        let _ = writeln!(text, "{}\n", printable(&section.title).to_uppercase());
        for block in &section.blocks {
            push_block(block, &mut text);
        }
    }
    text.truncate(text.trim_end().len());
    text
}

fn push_block(block: &Block, text: &mut String) {
    match block {
        Block::Paragraph(paragraph) => push_wrapped(paragraph, "", text),
        Block::Notes(notes) => notes.iter().for_each(|note| push_wrapped(note, "- ", text)),
        Block::Terms(terms) => {
            terms.iter().for_each(|(term, meaning)| push_wrapped(&format!("{term}: {meaning}"), "- ", text));
        }
        Block::Table(table) | Block::TextTable(table) => text.push_str(&table.to_text()),
        Block::Listing(listing) => text.push_str(listing),
        Block::Charts(_) | Block::LineCharts(_) | Block::Picture(_) => return,
    }
    text.push('\n');
}

/// Appends a paragraph with lines of limited length. Words are not divided.
fn push_wrapped(paragraph: &str, start: &str, text: &mut String) {
    let paragraph = printable(&paragraph.replace('`', ""));
    let mut line = start.to_owned();
    let mut is_empty = true;
    for word in paragraph.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > LINE_LENGTH {
            let _ = writeln!(text, "{line}");
            line = " ".repeat(start.len());
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    let _ = writeln!(text, "{line}");
}

/// Formats an estimate with its interval. The interval has two significant digits of its half length.
pub(super) fn interval(estimate: &Estimate) -> String {
    let decimals = decimals(estimate);
    format!("{:.decimals$} to {:.decimals$}", estimate.low, estimate.high)
}

/// Formats the value of an estimate, with the decimals of its interval.
pub(super) fn value(estimate: &Estimate) -> String {
    format!("{:.*}", decimals(estimate), estimate.value)
}

/// Formats an estimate and half of the length of its interval: `0.523 ± 0.012`.
pub(super) fn with_error(estimate: &Estimate) -> String {
    let decimals = decimals(estimate);
    format!("{:.decimals$} ± {:.decimals$}", estimate.value, estimate.half())
}

fn decimals(estimate: &Estimate) -> usize {
    let half = estimate.half();
    let size = if half > 0.0 && half.is_finite() { half } else { estimate.value.abs() * 1e-4 };
    if size > 0.0 && size.is_finite() {
        (1.0 - size.log10().floor()).clamp(0.0, MAX_DECIMALS) as usize
    } else {
        3
    }
}

/// Formats the probability of a test.
pub(super) fn probability(p_value: f64) -> String {
    match p_value {
        _ if p_value.is_nan() => "–".to_owned(),
        _ if p_value < 0.0005 => "< 0.001".to_owned(),
        _ => format!("{p_value:.3}"),
    }
}

/// Formats a share as a percentage, with three significant digits.
pub(super) fn percent(share: f64) -> String {
    format!("{} %", crate::report::figure(share * 100.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Column, Table};

    #[test]
    fn estimates_have_the_digits_that_their_interval_justifies() {
        let estimate = Estimate { value: 0.523_456, low: 0.511_456, high: 0.535_456 };
        assert_eq!(with_error(&estimate), "0.523 ± 0.012");
        assert_eq!(interval(&estimate), "0.511 to 0.535");
        let large = Estimate { value: 5123.4, low: 4000.0, high: 6246.8 };
        assert_eq!((value(&large), interval(&large)), ("5123".to_owned(), "4000 to 6247".to_owned()));
        let exact = Estimate { value: 1.0, low: 1.0, high: 1.0 };
        assert_eq!(value(&exact), "1.00000");
        assert_eq!(value(&Estimate::default()), "0.000");
        assert_eq!([f64::NAN, 0.0001, 0.0123].map(probability), ["–", "< 0.001", "0.012"]);
    }

    #[test]
    fn paragraphs_are_wrapped_and_charts_omitted() {
        let word = "abcdefghi ".repeat(15);
        let table =
            Table { columns: vec![Column::text("a")], rows: vec![vec!["1".to_owned()]], legend: vec![] };
        let blocks = vec![
            Block::Paragraph(word.clone()),
            Block::LineCharts(Vec::new()),
            Block::Notes(vec![word]),
            Block::Table(table),
        ];
        let text = to_text(&[Section { title: "One".to_owned(), blocks }]);
        assert!(text.starts_with("ONE\n\nabcdefghi "), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= LINE_LENGTH), "{text}");
        assert!(text.contains("\n- abc") && text.contains("\n  abc") && text.ends_with("a\n─\n1"), "{text}");
    }
}
