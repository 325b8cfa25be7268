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

pub(crate) use chart::{Axis, Bar, Chart, Reference, Series};
pub(crate) use number::{duration, figure, grouped, ratio};
pub(crate) use scale::Scale;
pub(crate) use table::Align;
pub(crate) use table::printable;
pub use table::{Column, Table};

/// A whole report.
#[derive(Clone, Debug, Default)]
pub(crate) struct Page {
    pub(crate) title: String,
    /// What is reported, in a paragraph below the title.
    pub(crate) lead: String,
    /// Words and values.
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) sections: Vec<Section>,
}

/// A part of a page below a heading.
#[derive(Clone, Debug, Default)]
pub(crate) struct Section {
    pub(crate) title: String,
    pub(crate) blocks: Vec<Block>,
}

/// One piece of a section.
#[derive(Clone, Debug)]
pub(crate) enum Block {
    Paragraph(String),
    /// Warnings: what a reader must know before believing the figures.
    Notes(Vec<String>),
    /// Words and what they mean.
    Terms(Vec<(String, String)>),
    /// Charts side by side, as many as the page has room for.
    Charts(Vec<Chart>),
    Table(Table),
}

impl Page {
    /// The page as one HTML file.
    pub(crate) fn to_html(&self) -> Result<String, minijinja::Error> {
        html::page(self)
    }
}

#[cfg(test)]
mod tests;
