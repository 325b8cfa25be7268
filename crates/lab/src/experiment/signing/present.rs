//! The report: the study's three figures, what was published beside ours, signing again, serving, and all figures.

mod charts;
mod tables;
mod words;

use super::summary::View;
use super::{About, AlgorithmFacts, Parameters, ZoneFacts};
use crate::experiment::method::Report;
use crate::experiment::results::{Results, UnreadableColumn};
use crate::report::{Block, Section, Table, grouped};

/// The report of `results`, whose record has `about` and `parameters`.
pub(in crate::experiment) fn report(
    about: &About,
    parameters: &Parameters,
    results: &Results,
) -> Result<Report, UnreadableColumn> {
    let view = View::new(about, &results.data)?;
    let published = &results.record.experiment.published;
    let mut sections = vec![
        section("Experimental algorithms", "", warnings(about)),
        section("Figure 1: time of signing", &words::signing(&view), charts::signing(&view)),
        section("Figure 2: time of validation", words::VALIDATION, charts::validation(&view)),
        section("Figure 3: size of the zone", words::SIZES, charts::sizes(&view)),
        section("Beside what was published", words::PUBLISHED, tables::published(&view, published)),
        section("Signing again half an hour later", &words::again(&view), tables::again(&view)),
        section("Serving and transferring", words::SERVING, tables::serving(&view)),
        section("All figures", words::FIGURES, tables::all(&view)),
        section("What was run", "", words::run(&view, parameters)),
        section("How it was measured", "", words::method(&view, parameters)),
    ];
    sections.retain(|section| !section.blocks.is_empty());
    Ok(Report {
        lead: words::lead(&view),
        facts: words::facts(&view),
        sections,
        text: text(&view, &results.record.notes),
        summary: serde_json::json!({ "lines": view.lines }),
    })
}

/// A section with a paragraph before its blocks, where it has any.
fn section(title: &str, text: &str, mut blocks: Vec<Block>) -> Section {
    if !text.is_empty() && !blocks.is_empty() {
        blocks.insert(0, Block::Paragraph(text.to_owned()));
    }
    Section { title: title.to_owned(), blocks }
}

/// The experimental schemes, with the reasons.
fn warnings(about: &About) -> Vec<Block> {
    let reason = |facts: &AlgorithmFacts| {
        facts.experimental.as_ref().map(|reason| format!("{}* is experimental: {reason}.", facts.scheme))
    };
    let notes: Vec<String> = about.algorithms.iter().filter_map(reason).collect();
    if notes.is_empty() { Vec::new() } else { vec![Block::Notes(notes)] }
}

/// A scheme, marked where it is experimental.
fn marked(facts: &AlgorithmFacts) -> String {
    let mark = if facts.experimental.is_some() { "*" } else { "" };
    format!("{}{mark}", facts.scheme)
}

/// What a zone is called: its kind and size, or its file.
fn title(zone: &ZoneFacts) -> String {
    match zone.zone.split_once(':') {
        Some((kind, _)) if zone.source.starts_with("generated") => {
            format!("like {kind}, {} delegations", grouped(zone.delegations as i64))
        }
        _ => zone.zone.clone(),
    }
}

/// For a terminal: the largest zone, and what must be known.
fn text(view: &View<'_>, notes: &[String]) -> String {
    let mut text = String::new();
    for zone in view.zones().into_iter().take(1) {
        text.push_str(&tables::short(view, zone).to_text());
    }
    let mut notes: Vec<String> = notes.iter().map(|note| format!("! {note}")).collect();
    if !view.about.left_out.is_empty() {
        notes.push(format!("! {}", words::LEFT_OUT_SHORT));
    }
    // A table without columns and rows is its legend below an empty head.
    text.push_str(Table { legend: notes, ..Table::default() }.to_text().trim_start_matches('\n'));
    text
}
