//! The frame of every report: a page of paragraphs, charts and tables, as HTML; tables also for a terminal.
//!
//! A page is one file that opens without a network: no script, no font, no picture from elsewhere. Charts are inline
//! SVG that this module draws, with the exact figure as a tooltip. A charting library that embeds its script makes
//! pages of 4.6 MB and more and brings some fifty crates; bars with labels need neither, print well, and follow the
//! reader's choice of light or dark by style sheet alone.
//!
//! Nothing here knows what is reported. All text is plain and is escaped on its way into HTML.

mod chart;
mod html;
mod number;
mod scale;
mod table;

pub use chart::{Axis, Bar, Chart, Reference, Series};
pub use number::{duration, figure, grouped, ratio};
pub use scale::Scale;
pub(crate) use table::printable;
pub use table::{Align, Column, Table};

/// A whole report.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Title of the page.
    pub title: String,
    /// What is reported, in a paragraph below the title.
    pub lead: String,
    /// Facts beside it: word and value.
    pub facts: Vec<(String, String)>,
    /// The parts.
    pub sections: Vec<Section>,
}

/// A part of a page below a heading.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// The heading.
    pub title: String,
    /// What stands below it.
    pub blocks: Vec<Block>,
}

/// One piece of a section.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Block {
    /// Running text.
    Paragraph(String),
    /// Warnings: what a reader must know before believing the figures.
    Notes(Vec<String>),
    /// Words and what they mean.
    Terms(Vec<(String, String)>),
    /// Charts side by side, as many as the page has room for.
    Charts(Vec<Chart>),
    /// A table.
    Table(Table),
}

impl Page {
    /// The page as one HTML file.
    #[must_use]
    pub fn to_html(&self) -> String {
        html::page(self)
    }
}

#[cfg(test)]
mod tests;
