//! Pages of paragraphs, charts and tables, as HTML; tables also for a terminal.
//!
//! A page is one file that needs no network: no scripts, fonts or images from other places. Charts
//! are inline SVG from this module, with the exact figure as a tooltip, and a table of the figures
//! below. A short script sorts the tables and offers them as CSV; all else works without it. A charting library that
//! embeds its script would result in pages of at least 4.6 MB and about fifty more crates. Bars
//! with labels need no such library. The charts are suitable for printing, and a style sheet adapts
//! them to light and dark colour schemes.
//!
//! This module does not depend on the reported data. All text is plain text and is escaped in the
//! HTML.

mod chart;
mod chart_table;
mod html;
mod line_chart;
mod number;
mod overview;
mod picture;
mod plot;
mod scale;
mod table;

pub(crate) use chart::{Bar, Chart, Series};
pub(crate) use line_chart::{LineChart, LineSeries, Point, Ranges};
pub(crate) use number::{duration, figure, grouped, ratio};
pub(crate) use overview::{ClaimCount, ClaimPart, DocumentPart, ExperimentPart, Link, OverviewPage};
pub use picture::{Arrow, Form, PartStatus, Picture, PictureError, Place, Row, Shape, ZoneBox};
pub(crate) use plot::Reference;
pub(crate) use scale::{Axis, Scale};
pub(crate) use table::Align;
pub(crate) use table::printable;
pub use table::{Column, Table};

/// A complete report.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    pub(crate) title: String,
    /// Introduction below the title.
    pub(crate) lead: String,
    /// Terms and values.
    pub(crate) facts: Vec<(String, String)>,
    /// Terms and values of the machine and the run, which the page shows on request.
    pub(crate) run_facts: Vec<(String, String)>,
    /// The data of the report.
    pub(crate) attachment: Option<Attachment>,
    pub(crate) sections: Vec<Section>,
}

/// A file that a page contains, for download. A file of more than 512 KiB is omitted.
#[derive(Clone, Debug)]
pub(crate) struct Attachment {
    pub(crate) name: String,
    pub(crate) media_type: &'static str,
    pub(crate) octets: Vec<u8>,
}

/// A part of a page with a heading.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) blocks: Vec<Block>,
}

/// A part of a section.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    Paragraph(String),
    /// Warnings about conditions that affect how far the figures can be trusted.
    Notes(Vec<String>),
    /// Terms and their meaning.
    Terms(Vec<(String, String)>),
    /// Bar charts side by side, as many as fit the width of the page.
    Charts(Vec<Chart>),
    /// Line charts side by side.
    LineCharts(Vec<LineChart>),
    /// A chain of trust.
    Picture(Picture),
    Table(Table),
    /// A table of sentences, whose cells wrap.
    TextTable(Table),
    /// Lines in a font of fixed width, for example a message.
    Listing(String),
}

impl Page {
    /// Renders the page as one HTML file.
    pub(crate) fn to_html(&self) -> Result<String, minijinja::Error> {
        html::render_page(self)
    }
}

#[cfg(test)]
mod browser_tests;
#[cfg(test)]
mod tests;
