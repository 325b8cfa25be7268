//! Geometry that bar charts and line charts share: the plot area with its horizontal axis, and the
//! label of a reference line.

use super::{Scale, figure};
use minijinja::context;
use minijinja::value::Value;

/// Width of a chart in SVG units; one unit is a pixel if the page is wide enough.
pub(super) const CHART_WIDTH: f64 = 560.0;
/// Space above the plot area, for the label of the reference line.
pub(super) const TOP_MARGIN: f64 = 22.0;
/// Space between the end of a bar or line and a value.
pub(super) const LABEL_GAP: f64 = 4.0;
/// Upper estimate of the width of a character in labels.
pub(super) const LETTER_WIDTH: f64 = 8.2;
/// Number of colours for series in the style sheet.
pub(super) const COLOUR_COUNT: usize = 8;

/// A reference value with its name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reference {
    /// Name next to the line.
    pub name: String,
    /// Position of the line on the horizontal axis.
    pub value: f64,
}

/// The plot area with its horizontal axis.
pub(super) struct Plot {
    pub(super) scale: Scale,
    /// Distance between the left edge of the chart and the start of the axis.
    pub(super) left: f64,
    pub(super) width: f64,
}

impl Plot {
    /// Returns the horizontal position of a value.
    pub(super) fn x(&self, value: f64) -> f64 {
        self.left + self.scale.position(value) * self.width
    }

    /// Returns the ticks of the horizontal axis.
    pub(super) fn ticks(&self) -> Vec<Value> {
        self.scale
            .ticks()
            .map(|tick| context! { x => self.x(tick), label => self.scale.tick_label(tick) })
            .collect()
    }

    /// Returns a vertical reference line with its label, which stays within the chart.
    pub(super) fn reference(&self, reference: &Reference) -> Value {
        let (name, value, x) = (&reference.name, figure(reference.value), self.x(reference.value));
        let half = (value.chars().count() + name.chars().count() + 1) as f64 * LETTER_WIDTH / 2.0;
        let middle = CHART_WIDTH / 2.0;
        context! { name, value, x, label => x.clamp(half.min(middle), (CHART_WIDTH - half).max(middle)) }
    }
}
