//! The numbers from which predictions follow, and where they come from.

use serde::Serialize;

/// Where a number comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provenance {
    /// Document 000 publishes it.
    Document,
    /// A recording has it, or a fit to a recording.
    Recording,
    /// The user gave it.
    Given,
    /// Neither: it is assumed.
    Assumed,
}

/// A number from which predictions follow.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Input {
    /// Quantity, with its unit.
    pub name: &'static str,
    /// Value.
    pub value: f64,
    /// Origin.
    pub provenance: Provenance,
}

impl Provenance {
    /// Returns the name for tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Document => "document 000",
            Self::Recording => "recording",
            Self::Given => "given",
            Self::Assumed => "assumed",
        }
    }
}

impl Input {
    pub(super) const fn new(name: &'static str, value: f64, provenance: Provenance) -> Self {
        Self { name, value, provenance }
    }

    /// A number that the user gave, or an assumed one.
    pub(super) fn given_or_assumed(name: &'static str, given: Option<f64>, assumed: f64) -> Self {
        match given {
            Some(value) => Self::new(name, value, Provenance::Given),
            None => Self::new(name, assumed, Provenance::Assumed),
        }
    }
}
