//! A picture of a chain of trust: a box for each zone, with its keys, DS records and RRsets, and arrows for
//! signatures, digests and delegations.
//!
//! Colour, line style and words state the same: no reader depends on the colour alone. All texts are plain
//! text, which the drawing escapes. Long texts are cut; the tooltip has more of them.

mod draw;
mod layout;

pub(super) use draw::STYLE;

/// The status of a part of a chain of trust (RFC 4033 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum PartStatus {
    /// Valid, and part of an unbroken chain.
    Secure,
    /// Proved to be outside the chain of trust.
    Insecure,
    /// Not validated.
    #[default]
    Unknown,
    /// It should be valid, and it is not.
    Bogus,
}

impl PartStatus {
    /// The word for the status.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Secure => "secure",
            Self::Insecure => "insecure",
            Self::Unknown => "not validated",
            Self::Bogus => "bogus",
        }
    }

    /// The class of the style sheet.
    const fn class(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            _ => self.name(),
        }
    }
}

/// A picture of a chain of trust.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Picture {
    /// What the picture shows.
    pub title: String,
    /// The zones, ancestors first.
    pub zones: Vec<ZoneBox>,
    /// The arrows.
    pub arrows: Vec<Arrow>,
    /// Sentences below the picture: the reasons of everything that is not secure.
    pub notes: Vec<String>,
}

/// A zone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ZoneBox {
    /// The apex.
    pub name: String,
    /// Index of the closest enclosing zone of the picture, which precedes the zone.
    pub parent: Option<usize>,
    /// The status of the zone.
    pub status: PartStatus,
    /// The text of the tooltip.
    pub tooltip: String,
    /// The parts of the zone.
    pub shapes: Vec<Shape>,
    /// Number of keys and RRsets that are not drawn.
    pub omitted: usize,
}

/// A part of a zone.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    /// What it is.
    pub form: Form,
    /// The row of the zone.
    pub row: Row,
    /// Its lines. The status follows them.
    pub lines: Vec<String>,
    /// Its status.
    pub status: PartStatus,
    /// The text of the tooltip.
    pub tooltip: String,
}

/// What a shape is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A trust anchor.
    Anchor,
    /// A DNSKEY record: an ellipse, with a double line if it has the SEP flag, dashed if it is revoked.
    Key {
        /// Whether it has the SEP flag.
        is_sep: bool,
        /// Whether it has the REVOKE flag.
        is_revoked: bool,
    },
    /// A DS RRset of a child zone.
    Ds,
    /// Another RRset.
    Rrset,
    /// Records that deny existence.
    Denial,
}

/// The rows of a zone, from top to bottom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Row {
    /// Trust anchors.
    Anchors,
    /// The keys that sign the key set, or that DS records name.
    EntryKeys,
    /// The other keys.
    Keys,
    /// Data.
    Data,
    /// DS records of child zones, or their denial.
    Delegations,
}

/// Where an arrow begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The box of a zone.
    Zone(usize),
    /// A shape: index of the zone and index of the shape.
    Shape(usize, usize),
}

/// An arrow.
#[derive(Clone, Debug, PartialEq)]
pub struct Arrow {
    /// The start.
    pub from: Place,
    /// The end.
    pub to: Place,
    /// Its status.
    pub status: PartStatus,
    /// The text of the tooltip, such as "signature by key 12345".
    pub tooltip: String,
}

impl Picture {
    /// Draws the picture as an SVG file, which needs no other file.
    ///
    /// # Errors
    /// The template fails: an error of this program.
    pub fn to_svg(&self) -> Result<String, PictureError> {
        Ok(super::html::render_picture(self)?)
    }
}

/// The reason why a picture cannot be drawn.
#[derive(Debug, thiserror::Error)]
#[error("cannot draw the picture of the chain of trust: {0}")]
pub struct PictureError(#[from] minijinja::Error);

#[cfg(test)]
mod tests;
