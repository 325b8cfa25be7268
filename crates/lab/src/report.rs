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
mod dates;
mod html;
mod line_chart;
mod number;
mod overview;
mod picture;
mod plot;
mod scale;
mod table;

pub use chart::{Bar, Chart, Series};
pub use dates::day_position;
pub use line_chart::{LineChart, LineSeries, Point, Ranges};
pub(crate) use number::ratio;
pub use number::{duration, figure, grouped};
pub(crate) use overview::{ClaimCount, ClaimPart, DocumentPart, ExperimentPart, Link, OverviewPage};
pub use picture::{Arrow, Form, PartStatus, Picture, PictureError, Place, Row, Shape, ZoneBox};
pub use plot::Reference;
pub use scale::Axis;
pub(crate) use scale::Scale;
pub(crate) use table::printable;
pub use table::{Align, Column, Table};

/// A page cannot be rendered.
#[derive(Debug, thiserror::Error)]
#[error("cannot generate the page: {0:#}; this is a bug in nonesuch, please report it")]
pub struct PageError(#[from] minijinja::Error);

/// A complete report.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Title.
    pub title: String,
    /// Introduction below the title.
    pub lead: String,
    /// Terms and values.
    pub facts: Vec<(String, String)>,
    /// Terms and values of the machine and the run, which the page shows on request.
    pub run_facts: Vec<(String, String)>,
    /// The data of the report.
    pub attachment: Option<Attachment>,
    /// Parts of the page, in order.
    pub sections: Vec<Section>,
}

/// A file that a page contains, for download. A file of more than 512 KiB is omitted.
#[derive(Clone, Debug)]
pub struct Attachment {
    /// Name of the downloaded file.
    pub name: String,
    /// Media type, such as `text/csv`.
    pub media_type: &'static str,
    /// Contents.
    pub octets: Vec<u8>,
}

/// A part of a page with a heading.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// Parts of the section, in order.
    pub blocks: Vec<Block>,
}

/// A part of a section.
#[derive(Clone, Debug)]
pub enum Block {
    /// Text. Words between backticks are code.
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
    /// A table, which the reader can sort and download as CSV.
    Table(Table),
    /// A table of sentences, whose cells wrap.
    TextTable(Table),
    /// Lines in a font of fixed width, for example a message.
    Listing(String),
}

impl Page {
    /// Renders the page as one HTML file.
    ///
    /// # Errors
    /// Fails if the page cannot be rendered; no input is known to cause this error.
    pub fn to_html(&self) -> Result<String, PageError> {
        Ok(html::render_page(self)?)
    }
}

#[cfg(test)]
mod browser_tests;
#[cfg(test)]
mod tests;
