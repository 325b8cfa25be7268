//! Charts with grouped horizontal bars. Groups and bars are arranged from top to bottom, so that
//! long labels and many groups fit. The module documentation of `report` explains why this module
//! does not use a library.

use super::chart_table::{Figure, chart_table};
use super::plot::{CHART_WIDTH, COLOUR_COUNT, LABEL_GAP, LETTER_WIDTH, Plot, Reference, TOP_MARGIN};
use super::{Axis, Column, Scale, Table, figure};
use minijinja::context;
use minijinja::value::Value;

/// A chart of horizontal bars.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// Title above the chart.
    pub title: String,
    /// Unit of the values.
    pub unit: String,
    /// Labels of the groups, from top to bottom.
    pub groups: Vec<String>,
    /// Series; each has one bar in each group.
    pub series: Vec<Series>,
    /// A reference value, shown as a line across all bars.
    pub reference: Option<Reference>,
    /// Minimum value at the end of the axis. Charts with the same value here can be compared,
    /// because their axes end alike.
    pub axis_end_min: f64,
    /// Kind of the axis.
    pub axis: Axis,
}

/// Bars of one colour, one in each group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// A bar for each group, in the order of the groups; `None` if a value is missing.
    pub bars: Vec<Option<Bar>>,
}

/// A bar: a value, and the range of repeated measurements.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bar {
    /// The value, in the unit of the chart.
    pub value: f64,
    /// Minimum and maximum, if there are several measurements.
    pub spread: Option<(f64, f64)>,
}

/// Height of a bar.
const BAR_HEIGHT: f64 = 13.0;
/// Distance between the tops of adjacent bars.
const BAR_PITCH: f64 = 15.0;
/// Space between groups.
const GROUP_GAP: f64 = 12.0;
/// Space below the last group, for tick labels.
const BOTTOM_MARGIN: f64 = 24.0;
/// Space to the right of the axis' end, for the value of the longest bar.
const RIGHT_MARGIN: f64 = 58.0;

impl Chart {
    /// Returns the axis. It contains all values, the reference and the ends of spreads.
    pub(crate) fn scale(&self) -> Scale {
        let bars = self.series.iter().flat_map(|series| series.bars.iter().flatten());
        let ends = bars.flat_map(|bar| [bar.value, bar.spread.map_or(0.0, |(_, maximum)| maximum)]);
        let reference = self.reference.iter().map(|reference| reference.value);
        if self.axis == Axis::Logarithmic {
            return Scale::logarithmic(ends.chain(reference).chain([self.axis_end_min]));
        }
        let maximum =
            ends.chain(reference).filter(|value| value.is_finite()).fold(self.axis_end_min, f64::max);
        Scale::linear(maximum)
    }

    /// Returns the bars as a table.
    pub(super) fn data_table(&self) -> Table {
        let mut figures = Vec::new();
        for (place, group) in self.groups.iter().enumerate() {
            for series in &self.series {
                let Some(bar) = series.bars.get(place).copied().flatten() else { continue };
                let (label, series) = (group.clone(), series.name.as_str());
                figures.push(Figure { label, series, value: bar.value, spread: bar.spread });
            }
        }
        chart_table(Column::text("group"), 1, &self.unit, &figures)
    }

    /// Returns the chart as variables of the page template: texts and their positions.
    pub(super) fn template_variables(&self) -> Value {
        let longest_label = self.groups.iter().map(|group| group.chars().count()).max().unwrap_or(0);
        let left = (longest_label as f64 * LETTER_WIDTH + 10.0).min(CHART_WIDTH / 2.0);
        let plot = Plot { scale: self.scale(), left, width: CHART_WIDTH - left - RIGHT_MARGIN };
        let groups = self.groups.iter().enumerate().map(|(place, name)| {
            context! { name, middle => TOP_MARGIN + (place as f64 + 0.5) * self.group_height() }
        });
        let bottom = TOP_MARGIN + self.groups.len() as f64 * self.group_height();
        context! {
            title => &self.title,
            unit => &self.unit,
            width => CHART_WIDTH as u32,
            height => (bottom + BOTTOM_MARGIN) as u32,
            top => TOP_MARGIN as u32,
            bottom,
            left,
            ticks => plot.ticks(),
            groups => groups.collect::<Vec<_>>(),
            series => self.series.iter().map(|series| context! { name => &series.name }).collect::<Vec<_>>(),
            colours => COLOUR_COUNT,
            bars => self.bars(&plot),
            reference => self.reference.as_ref().map(|reference| plot.reference(reference)),
        }
    }

    /// Returns the distance between the tops of adjacent groups.
    fn group_height(&self) -> f64 {
        self.series.len() as f64 * BAR_PITCH + GROUP_GAP
    }

    /// Returns the existing bars, by group.
    fn bars(&self, plot: &Plot) -> Vec<Value> {
        let line = self.reference.as_ref().map(|reference| plot.x(reference.value));
        let mut bars = Vec::new();
        for (group, label) in self.groups.iter().enumerate() {
            for (place, series) in self.series.iter().enumerate() {
                let Some(bar) = series.bars.get(group).copied().flatten() else { continue };
                let top = TOP_MARGIN
                    + group as f64 * self.group_height()
                    + GROUP_GAP / 2.0
                    + place as f64 * BAR_PITCH;
                bars.push(context! {
                    group => label,
                    series => &series.name,
                    place,
                    top,
                    middle => top + BAR_HEIGHT / 2.0,
                    ..plot.bar(bar, line)
                });
            }
        }
        bars
    }
}

impl Plot {
    /// Returns a bar. Its value is to the right of the bar and of its spread or, if the reference
    /// line at `line` would cross the value there, to the right of this line.
    fn bar(&self, bar: Bar, line: Option<f64>) -> Value {
        let (value, end) = (figure(bar.value), self.x(bar.value));
        // Show the spread only if it is wide enough to be visible.
        let spread = bar.spread.map(|(minimum, maximum)| (self.x(minimum), self.x(maximum)));
        let spread = spread.filter(|(from, to)| to - from >= 1.0);
        let right_end = spread.map_or(f64::MIN, |(_, to)| to).max(end);
        let label_end = right_end + 2.0 * LABEL_GAP + value.chars().count() as f64 * LETTER_WIDTH;
        context! {
            // The minimum width keeps very small values visible.
            width => (end - self.left).max(1.0),
            height => BAR_HEIGHT as u32,
            spread,
            range => bar.spread.map(|(minimum, maximum)| (figure(minimum), figure(maximum))),
            value_at => line.filter(|line| (right_end..label_end).contains(line)).unwrap_or(right_end) + LABEL_GAP,
            value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Block, Page, Section};
    use proptest::prelude::*;

    fn chart(values: &[f64]) -> Chart {
        let bars = values.iter().map(|&value| Some(Bar { value, spread: Some((value * 0.9, value * 1.1)) }));
        Chart {
            title: "Time".to_owned(),
            unit: "ms".to_owned(),
            groups: (0..values.len()).map(|index| format!("group {index}")).collect(),
            series: vec![Series { name: "a & b".to_owned(), bars: bars.collect() }],
            reference: Some(Reference { name: "without".to_owned(), value: 3.0 }),
            axis_end_min: 0.0,
            axis: Axis::Linear,
        }
    }

    /// Renders a page with only this chart.
    fn drawn(chart: Chart) -> String {
        let section = Section { title: String::new(), blocks: vec![Block::Charts(vec![chart])] };
        Page { sections: vec![section], ..Page::default() }.to_html().expect("a page")
    }

    fn numbers(svg: &str, attribute: &str) -> Vec<f64> {
        let start = format!(" {attribute}=\"");
        let parts = svg.split(&start).skip(1);
        parts.map(|part| part.split('"').next().expect("an end").parse().expect("a number")).collect()
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        let svg = drawn(chart(&[10.0, 5.0, 0.0]));
        let widths = numbers(&svg, "width");
        assert_eq!(widths.len(), 3);
        assert!((widths[0] / widths[1] - 2.0).abs() < 0.01, "{widths:?}");
        assert!((widths[2] - 1.0).abs() < f64::EPSILON);
        assert!(svg.contains("<title>group 0, a &amp; b: 10.0 ms (from 9.00 to 11.0)</title>"));
        assert!(svg.contains("without 3.00"));
    }

    #[test]
    fn a_logarithmic_axis_gives_each_decade_the_same_length() {
        let mut chart = Chart { axis: Axis::Logarithmic, ..chart(&[20.0, 200.0, 2000.0]) };
        chart.reference = None;
        let svg = drawn(chart);
        let widths = numbers(&svg, "width");
        assert!((widths[2] - 2.0 * widths[1] + widths[0]).abs() < 0.2, "{widths:?}");
        assert_eq!(svg.matches("class=\"zero\"").count(), 1);
    }

    /// Values are to the right of their bars, or to the right of the line if it would cross them.
    #[test]
    fn the_reference_crosses_bars_and_no_value() {
        let mut chart = chart(&[10.0, 5.0, 3.0, 2.9, 2.5, 0.1]);
        chart.series[0].bars.iter_mut().flatten().for_each(|bar| bar.spread = None);
        let svg = drawn(chart);
        let line = numbers(&svg[svg.find("class=\"reference\"").expect("a line")..], "x1")[0];
        let ends = svg.split("<rect").skip(1).map(|bar| numbers(bar, "x")[0] + numbers(bar, "width")[0]);
        let starts = svg.split("class=\"value\"").skip(1).map(|value| numbers(value, "x")[0]);
        for (place, (end, start)) in ends.zip(starts).enumerate() {
            let expected = if [2, 3, 4].contains(&place) { line } else { end };
            assert!((start - expected - LABEL_GAP).abs() < 0.11, "{place}: {end} {start} {line}");
        }
        assert_eq!(svg.matches("class=\"value\"").count(), 6);
    }

    #[test]
    fn a_missing_value_has_no_bar() {
        let mut chart = chart(&[1.0, 2.0]);
        chart.series[0].bars = vec![None];
        let svg = drawn(chart);
        assert!(!svg.contains("<rect"));
    }

    #[test]
    fn the_data_table_has_a_row_for_each_bar() {
        let mut chart = chart(&[10.0, 5.0]);
        assert_eq!(
            chart.data_table().rows,
            [["group 0", "10.0", "9.00", "11.0"], ["group 1", "5.00", "4.50", "5.50"]]
        );
        chart
            .series
            .push(Series { name: "c".to_owned(), bars: vec![Some(Bar { value: 1.0, spread: None })] });
        let rows = chart.data_table().rows;
        assert_eq!((rows.len(), &rows[1][..]), (3, &["group 0", "c", "1.00"].map(str::to_owned)[..]));
    }

    #[test]
    fn charts_that_share_an_axis_end_alike() {
        let (small, large) = (chart(&[1.0]), chart(&[900.0]));
        let shared = Chart { axis_end_min: 990.0, ..small };
        assert_eq!(shared.scale(), large.scale());
    }

    proptest! {
        #[test]
        fn everything_lies_within_the_chart(
            values in proptest::collection::vec(prop_oneof![0.0f64..1e9, Just(f64::NAN), Just(f64::INFINITY)], 0..6),
        ) {
            let svg = drawn(chart(&values));
            for attribute in ["x", "x1", "x2", "width"] {
                for number in numbers(&svg, attribute) {
                    prop_assert!((0.0..=CHART_WIDTH).contains(&number), "{attribute} {number}");
                }
            }
            for number in numbers(&svg, "y") {
                prop_assert!(number.is_finite() && number >= 0.0);
            }
        }
    }
}
