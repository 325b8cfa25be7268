//! Charts with points, which lines can join, over a numeric horizontal axis.

use super::chart_table::{Figure, chart_table};
use super::plot::{CHART_WIDTH, COLOUR_COUNT, LABEL_GAP, LETTER_WIDTH, Plot, Reference, TOP_MARGIN};
use super::{Axis, Column, Scale, Table, figure};
use minijinja::context;
use minijinja::value::Value;

/// A chart of lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineChart {
    /// Title above the chart.
    pub title: String,
    /// Quantity of the horizontal axis.
    pub x_title: String,
    /// Unit of the horizontal axis; can be empty.
    pub x_unit: String,
    /// Unit of the values, which the vertical axis shows.
    pub unit: String,
    /// Kind of the horizontal axis.
    pub x_axis: Axis,
    /// Kind of the vertical axis.
    pub axis: Axis,
    /// Lines, or groups of points.
    pub series: Vec<LineSeries>,
    /// Whether the chart shows points without lines between them.
    pub is_scatter: bool,
    /// A value of the horizontal axis, shown as a vertical line.
    pub reference: Option<Reference>,
    /// Name of the diagonal, the line of the values that are equal to their position on the
    /// horizontal axis; empty: no diagonal.
    pub diagonal: String,
    /// Further positions and values that the axes contain. Charts with the same ranges can be
    /// compared, because their axes are alike.
    pub ranges: Ranges,
}

/// Start and end of the axes: horizontal and vertical.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranges {
    /// Positions on the horizontal axis.
    pub x: Vec<f64>,
    /// Values on the vertical axis.
    pub y: Vec<f64>,
}

/// Points of one colour, joined by lines in their order. A point whose value is NaN is not shown and
/// interrupts the line.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LineSeries {
    /// Name in the legend.
    pub name: String,
    /// Points, in the order of the line.
    pub points: Vec<Point>,
}

/// A point: its position on the horizontal axis, its value, and the range of repeated measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Point {
    /// Position on the horizontal axis.
    pub x: f64,
    /// Value on the vertical axis.
    pub value: f64,
    /// Minimum and maximum, if there are several measurements.
    pub spread: Option<(f64, f64)>,
}

/// Height of the plot area.
const PLOT_HEIGHT: f64 = 230.0;
/// Space below the plot area, for tick labels and the title of the axis.
const BOTTOM_MARGIN: f64 = 42.0;
/// Space to the right of the axis' end, for half of its tick label.
const RIGHT_MARGIN: f64 = 34.0;
/// Number of intervals of the diagonal, which is a curve if only one axis is logarithmic.
const DIAGONAL_INTERVALS: u32 = 32;
/// Minimum length of a visible spread.
const SPREAD_MIN: f64 = 1.0;
/// Number of points of a line above which its markers are small.
const DENSE_POINTS: usize = 40;
/// Outlines of the markers around their point: circle, square, diamond, triangle. Series differ in
/// colour and marker.
const MARKERS: [&str; 4] = [
    "M-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0z",
    "M-2.9-2.9h5.8v5.8h-5.8z",
    "M0-4.1l4.1 4.1l-4.1 4.1l-4.1-4.1z",
    "M0-3.8l3.9 6.8h-7.8z",
];

/// Returns the marker of the series with this index. Series of the same colour have other markers.
fn marker(place: usize) -> &'static str {
    MARKERS[(place + place / COLOUR_COUNT) % MARKERS.len()]
}

impl LineChart {
    /// Returns the horizontal axis. It contains all points and the reference.
    pub(crate) fn x_scale(&self) -> Scale {
        let points = self.series.iter().flat_map(|series| &series.points).map(|point| point.x);
        let reference = self.reference.iter().map(|reference| reference.value);
        Scale::of_points(self.x_axis, points.chain(reference).chain(self.ranges.x.iter().copied()))
    }

    /// Returns the vertical axis. It contains all values and the ends of spreads.
    pub(crate) fn y_scale(&self) -> Scale {
        let points = self.series.iter().flat_map(|series| &series.points);
        let values = points.flat_map(|point| {
            let (minimum, maximum) = point.spread.unwrap_or((point.value, point.value));
            [minimum, point.value, maximum]
        });
        Scale::of_points(self.axis, values.chain(self.ranges.y.iter().copied()))
    }

    /// Returns the points as a table.
    pub(super) fn data_table(&self) -> Table {
        let x_scale = self.x_scale();
        let x_scale = &x_scale;
        let figures = self.series.iter().flat_map(|series| {
            series.points.iter().map(move |point| Figure {
                label: x_scale.position_label(point.x),
                series: &series.name,
                value: point.value,
                spread: point.spread,
            })
        });
        let label =
            Column::figures(&self.x_title, if self.x_unit.is_empty() { "position" } else { &self.x_unit });
        chart_table(label, 0, &self.unit, &figures.collect::<Vec<_>>())
    }

    /// Returns the chart as variables of the page template: texts and their positions.
    pub(super) fn template_variables(&self) -> Value {
        let area = self.area();
        let bottom = TOP_MARGIN + PLOT_HEIGHT;
        let series = self.series.iter().enumerate();
        let keys =
            series.clone().map(|(place, series)| context! { name => &series.name, marker => marker(place) });
        let lines = series.map(|(place, series)| self.line(&area, place, series));
        let y_ticks = area
            .y_scale
            .ticks()
            .map(|tick| context! { y => area.y(tick), label => area.y_scale.tick_label(tick), is_zero => tick == 0.0 });
        context! {
            title => &self.title,
            unit => &self.unit,
            x_title => &self.x_title,
            x_unit => &self.x_unit,
            width => CHART_WIDTH as u32,
            height => (bottom + BOTTOM_MARGIN) as u32,
            top => TOP_MARGIN as u32,
            bottom,
            left => area.plot.left,
            right => area.plot.left + area.plot.width,
            ticks => area.plot.ticks(),
            y_ticks => y_ticks.collect::<Vec<_>>(),
            series => keys.collect::<Vec<_>>(),
            colours => COLOUR_COUNT,
            lines => lines.collect::<Vec<_>>(),
            reference => self.reference.as_ref().map(|reference| area.plot.reference(reference)),
            diagonal => (!self.diagonal.is_empty()).then(|| context! { name => &self.diagonal, path => area.diagonal() }),
        }
    }

    fn area(&self) -> Area {
        let y_scale = self.y_scale();
        let longest_label =
            y_scale.ticks().map(|tick| y_scale.tick_label(tick).chars().count()).max().unwrap_or(0);
        let left = longest_label as f64 * LETTER_WIDTH + 2.0 * LABEL_GAP;
        let plot = Plot { scale: self.x_scale(), left, width: CHART_WIDTH - left - RIGHT_MARGIN };
        Area { plot, y_scale }
    }

    /// Returns a series: its path, and its points with their texts. A logarithmic axis has no place
    /// for zero and negative numbers: such points are only in the data table.
    fn line(&self, area: &Area, place: usize, series: &LineSeries) -> Value {
        let fits = |axis: Axis, value: f64| value.is_finite() && (axis != Axis::Logarithmic || value > 0.0);
        let is_shown = |point: &&Point| fits(self.x_axis, point.x) && fits(self.axis, point.value);
        let points: Vec<&Point> = series.points.iter().filter(is_shown).collect();
        let parts = series.points.split(|point| point.value.is_nan()).filter(|_| !self.is_scatter);
        let parts = parts.map(|part| {
            path(part.iter().filter(is_shown).map(|point| (area.plot.x(point.x), area.y(point.value))))
        });
        context! {
            name => &series.name,
            place,
            marker => marker(place),
            is_dense => points.len() > DENSE_POINTS,
            path => parts.collect::<String>(),
            points => points.iter().map(|point| area.point(point)).collect::<Vec<_>>(),
        }
    }
}

/// The plot area with both axes.
struct Area {
    plot: Plot,
    y_scale: Scale,
}

impl Area {
    /// Returns the vertical position of a value.
    fn y(&self, value: f64) -> f64 {
        TOP_MARGIN + (1.0 - self.y_scale.position(value)) * PLOT_HEIGHT
    }

    fn point(&self, point: &Point) -> Value {
        let spread = point.spread.map(|(minimum, maximum)| (self.y(minimum), self.y(maximum)));
        context! {
            x => self.plot.x(point.x),
            y => self.y(point.value),
            position => self.plot.scale.position_label(point.x),
            value => figure(point.value),
            spread => spread.filter(|(from, to)| from - to >= SPREAD_MIN),
            range => point.spread.map(|(minimum, maximum)| (figure(minimum), figure(maximum))),
        }
    }

    /// Returns the path of the values that are equal to their position, within both axes.
    fn diagonal(&self) -> String {
        let from = self.plot.scale.start().max(self.y_scale.start());
        let to = self.plot.scale.end().min(self.y_scale.end());
        if from >= to {
            return String::new();
        }
        let value = |step: u32| from + (to - from) * f64::from(step) / f64::from(DIAGONAL_INTERVALS);
        path((0..=DIAGONAL_INTERVALS).map(value).map(|value| (self.plot.x(value), self.y(value))))
    }
}

/// Returns the SVG path through these positions.
fn path(positions: impl Iterator<Item = (f64, f64)>) -> String {
    let steps = positions
        .enumerate()
        .map(|(place, (x, y))| format!("{}{x:.1} {y:.1}", if place == 0 { 'M' } else { 'L' }));
    steps.collect()
}

#[cfg(test)]
mod tests;
