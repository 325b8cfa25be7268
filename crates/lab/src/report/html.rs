//! A page as one HTML file.

use super::table::{Align, Table};
use super::{Block, Page, Section};
use std::fmt::Write as _;

const STYLE: &str = include_str!("style.css");

/// Text made safe for HTML, between tags and in quoted attributes alike.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(letter),
            letter if letter.is_control() => out.push(char::REPLACEMENT_CHARACTER),
            letter => out.push(letter),
        }
    }
    out
}

/// The whole page. The policy in its head lets a browser load nothing at all, so that a fault here could not either.
pub(super) fn page(page: &Page) -> String {
    let mut out = String::with_capacity(64 * 1024);
    let title = escape(&page.title);
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<header>\n<h1>{title}</h1>\n"
    );
    if !page.lead.is_empty() {
        let _ = writeln!(out, "<p class=\"lead\">{}</p>", escape(&page.lead));
    }
    push_terms("facts", &page.facts, &mut out);
    out.push_str("</header>\n<main>\n");
    for section in &page.sections {
        push_section(section, &mut out);
    }
    out.push_str("</main>\n</body>\n</html>\n");
    out
}

fn push_section(section: &Section, out: &mut String) {
    let _ = writeln!(out, "<section>\n<h2>{}</h2>", escape(&section.title));
    for block in &section.blocks {
        push_block(block, out);
    }
    out.push_str("</section>\n");
}

fn push_block(block: &Block, out: &mut String) {
    match block {
        Block::Paragraph(text) => _ = writeln!(out, "<p>{}</p>", escape(text)),
        Block::Notes(notes) => push_notes(notes, out),
        Block::Terms(terms) => push_terms("terms", terms, out),
        Block::Charts(charts) => {
            out.push_str("<div class=\"charts\">\n");
            charts.iter().for_each(|chart| chart.push_html(out));
            out.push_str("</div>\n");
        }
        Block::Table(table) => push_table(table, out),
    }
}

fn push_notes(notes: &[String], out: &mut String) {
    if notes.is_empty() {
        return;
    }
    out.push_str("<ul class=\"notes\">\n");
    for note in notes {
        let _ = writeln!(out, "<li>{}</li>", escape(note));
    }
    out.push_str("</ul>\n");
}

fn push_terms(class: &str, terms: &[(String, String)], out: &mut String) {
    if terms.is_empty() {
        return;
    }
    let _ = writeln!(out, "<dl class=\"{class}\">");
    for (word, meaning) in terms {
        let _ = writeln!(out, "<div><dt>{}</dt><dd>{}</dd></div>", escape(word), escape(meaning));
    }
    out.push_str("</dl>\n");
}

fn push_table(table: &Table, out: &mut String) {
    out.push_str("<div class=\"wide\"><table>\n<thead>\n");
    if table.columns.iter().any(|column| !column.group.is_empty()) {
        out.push_str("<tr>");
        for (group, count) in table.groups() {
            let class = if group.is_empty() { "" } else { " class=\"over\"" };
            let _ = write!(out, "<th colspan=\"{count}\"{class}>{}</th>", escape(group));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("<tr>");
    for column in &table.columns {
        let _ = write!(out, "<th scope=\"col\"{}>{}</th>", class(column.align), escape(&column.title));
    }
    out.push_str("</tr>\n</thead>\n<tbody>\n");
    for row in &table.rows {
        out.push_str("<tr>");
        for (index, column) in table.columns.iter().enumerate() {
            let _ = write!(out, "<td{}>{}</td>", class(column.align), escape(Table::cell(row, index)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
    for line in &table.legend {
        let _ = writeln!(out, "<p class=\"below\">{}</p>", escape(line));
    }
}

const fn class(align: Align) -> &'static str {
    match align {
        Align::Left => "",
        Align::Right => " class=\"figure\"",
    }
}
