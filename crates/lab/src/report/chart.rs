//! Grouped bar charts as SVG: groups and their bars from top to bottom, so that long labels and many groups fit.
//!
//! A library that embeds its script would make a page of several megabytes and bring dozens of crates. Bars with labels need
//! no script, print well, and follow the reader's choice of light or dark.

use super::html::escape;
use super::{Scale, figure};
use std::fmt::Write as _;

/// A chart of horizontal bars.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) unit: String,
    /// Labels of the groups, from the top.
    pub(crate) groups: Vec<String>,
    /// What the bars of a group are.
    pub(crate) series: Vec<Series>,
    /// A value to compare with, as a line across all bars.
    pub(crate) reference: Option<Reference>,
    /// The axis goes to this value at least: charts to be compared share it.
    pub(crate) at_least: f64,
    pub(crate) axis: Axis,
}

/// How values become lengths.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Axis {
    /// In proportion, from zero.
    #[default]
    Linear,
    /// By their logarithm, for values of several orders of magnitude.
    Logarithmic,
}

/// Bars of one colour, one in each group.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Series {
    pub(crate) name: String,
    /// A bar for each group, in the groups' order; nothing where there is no value.
    pub(crate) bars: Vec<Option<Bar>>,
}

/// A bar: a value, and how far repeated measurements went.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Bar {
    pub(crate) value: f64,
    /// Least and most measured, where it was measured more than once.
    pub(crate) spread: Option<(f64, f64)>,
}

/// A value to compare with.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Reference {
    pub(crate) name: String,
    pub(crate) value: f64,
}

/// Width of a chart, in its own units, which are pixels where the page has room.
const WIDTH: f64 = 560.0;
/// Height of a bar, and from one to the next.
const BAR: f64 = 13.0;
const PITCH: f64 = 15.0;
/// Between groups.
const GROUP_GAP: f64 = 12.0;
/// Above the first group: the reference's label.
const TOP: f64 = 22.0;
/// Below the last group: tick labels.
const BOTTOM: f64 = 24.0;
/// Right of the axis' end: the longest bar's value.
const RIGHT: f64 = 58.0;
/// Between the end of a bar, or a line, and a value.
const GAP: f64 = 4.0;
/// Width of a letter of the labels, generously.
const LETTER: f64 = 8.2;
/// Colours that the style sheet has for series.
const COLOURS: usize = 8;

impl Chart {
    /// The axis: it holds every value, the reference and the ends of spreads.
    pub(crate) fn scale(&self) -> Scale {
        let bars = self.series.iter().flat_map(|series| series.bars.iter().flatten());
        let ends = bars.flat_map(|bar| [bar.value, bar.spread.map_or(0.0, |(_, most)| most)]);
        let reference = self.reference.iter().map(|reference| reference.value);
        if self.axis == Axis::Logarithmic {
            return Scale::logarithmic(ends.chain(reference).chain([self.at_least]));
        }
        let most = ends.chain(reference).filter(|value| value.is_finite()).fold(self.at_least, f64::max);
        Scale::up_to(most)
    }

    /// The chart as an HTML figure with inline SVG.
    pub(super) fn push_html(&self, out: &mut String) {
        let _ = write!(
            out,
            "<figure class=\"chart\"><figcaption>{} <span class=\"unit\">{}</span></figcaption>",
            escape(&self.title),
            escape(&self.unit)
        );
        self.push_legend(out);
        self.push_svg(out);
        out.push_str("</figure>\n");
    }

    fn push_legend(&self, out: &mut String) {
        if self.series.len() < 2 && self.reference.is_none() {
            return;
        }
        out.push_str("<p class=\"legend\">");
        for (index, series) in self.series.iter().enumerate() {
            let colour = index % COLOURS;
            let _ = write!(out, "<span><i class=\"key s{colour}\"></i>{}</span> ", escape(&series.name));
        }
        if let Some(reference) = &self.reference {
            let _ = write!(out, "<span><i class=\"key dash\"></i>{}</span>", escape(&reference.name));
        }
        out.push_str("</p>");
    }

    fn push_svg(&self, out: &mut String) {
        let bottom = TOP + self.groups.len() as f64 * self.group_height();
        let letters = self.groups.iter().map(|group| group.chars().count()).max().unwrap_or(0);
        let left = (letters as f64 * LETTER + 10.0).min(WIDTH / 2.0);
        let plot = Plot { scale: self.scale(), left, width: WIDTH - left - RIGHT, bottom };
        let _ = write!(
            out,
            "<svg viewBox=\"0 0 {WIDTH} {:.0}\" role=\"img\" aria-label=\"{}, {}\">",
            bottom + BOTTOM,
            escape(&self.title),
            escape(&self.unit)
        );
        plot.push_axis(out);
        for (index, group) in self.groups.iter().enumerate() {
            let middle = TOP + (index as f64 + 0.5) * self.group_height();
            let _ = write!(
                out,
                "<text class=\"group\" x=\"{:.1}\" y=\"{middle:.1}\">{}</text>",
                left - 8.0,
                escape(group)
            );
        }
        for (bar, place) in self.bars() {
            let (group, name) = (&self.groups[place.group], &self.series[place.series].name);
            let about = format!("{group}, {name}: {}", tell(bar, &self.unit));
            plot.push_bar(bar, place.top, place.series % COLOURS, &about, out);
        }
        if let Some(reference) = &self.reference {
            plot.push_reference(reference, &self.unit, out);
        }
        let line = self.reference.as_ref().map(|reference| plot.x(reference.value));
        self.bars().for_each(|(bar, place)| plot.push_value(bar, place.top, line, out));
        out.push_str("</svg>");
    }

    /// From one group to the next.
    fn group_height(&self) -> f64 {
        self.series.len() as f64 * PITCH + GROUP_GAP
    }

    /// The bars that there are, by group, and where they are drawn.
    fn bars(&self) -> impl Iterator<Item = (Bar, BarPlace)> {
        let places = (0..self.groups.len())
            .flat_map(|group| (0..self.series.len()).map(move |series| (group, series)));
        places.filter_map(|(group, series)| {
            let bar = self.series[series].bars.get(group).copied().flatten()?;
            let top = TOP + group as f64 * self.group_height() + GROUP_GAP / 2.0 + series as f64 * PITCH;
            Some((bar, BarPlace { group, series, top }))
        })
    }
}

/// Which bar it is, and its upper edge.
struct BarPlace {
    group: usize,
    series: usize,
    top: f64,
}

/// The exact value and its spread, for the tooltip.
fn tell(bar: Bar, unit: &str) -> String {
    match bar.spread {
        Some((least, most)) => {
            format!("{} {unit} (from {} to {})", figure(bar.value), figure(least), figure(most))
        }
        None => format!("{} {unit}", figure(bar.value)),
    }
}

/// Where things are drawn.
struct Plot {
    scale: Scale,
    left: f64,
    width: f64,
    bottom: f64,
}

impl Plot {
    fn x(&self, value: f64) -> f64 {
        self.left + self.scale.position(value) * self.width
    }

    fn push_axis(&self, out: &mut String) {
        for (index, tick) in self.scale.ticks().enumerate() {
            let x = self.x(tick);
            let class = if index == 0 { "zero" } else { "grid" };
            let _ = write!(
                out,
                "<line class=\"{class}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{:.1}\"/>\
                 <text class=\"tick\" x=\"{x:.1}\" y=\"{:.1}\">{}</text>",
                self.bottom,
                self.bottom + 15.0,
                tick_label(tick)
            );
        }
    }

    fn push_bar(&self, bar: Bar, y: f64, colour: usize, about: &str, out: &mut String) {
        let (end, middle) = (self.x(bar.value), y + BAR / 2.0);
        let _ = write!(
            out,
            "<g><title>{}</title><rect class=\"s{colour}\" x=\"{:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{BAR}\"/>",
            escape(about),
            self.left,
            // A value next to nothing is still seen.
            (end - self.left).max(1.0)
        );
        if let Some((from, to)) = self.spread(bar) {
            let _ = write!(
                out,
                "<path class=\"spread\" d=\"M{from:.1} {middle:.1}H{to:.1}M{from:.1} {:.1}v6M{to:.1} {:.1}v6\"/>",
                middle - 3.0,
                middle - 3.0
            );
        }
        out.push_str("</g>");
    }

    /// The ends of a spread that is wide enough to be seen.
    fn spread(&self, bar: Bar) -> Option<(f64, f64)> {
        let ends = bar.spread.map(|(least, most)| (self.x(least), self.x(most)));
        ends.filter(|(from, to)| to - from >= 1.0)
    }

    /// The value behind the bar, or behind its spread; where `line` would cross it out, behind that.
    fn push_value(&self, bar: Bar, y: f64, line: Option<f64>, out: &mut String) {
        let value = figure(bar.value);
        let end = self.spread(bar).map_or(f64::MIN, |(_, to)| to).max(self.x(bar.value));
        let reach = end + 2.0 * GAP + value.chars().count() as f64 * LETTER;
        let start = line.filter(|line| (end..reach).contains(line)).unwrap_or(end) + GAP;
        let middle = y + BAR / 2.0;
        let _ = write!(out, "<text class=\"value\" x=\"{start:.1}\" y=\"{middle:.1}\">{value}</text>");
    }

    fn push_reference(&self, reference: &Reference, unit: &str, out: &mut String) {
        let x = self.x(reference.value);
        let value = figure(reference.value);
        // The label stays within the chart.
        let half = (value.chars().count() + reference.name.chars().count() + 1) as f64 * LETTER / 2.0;
        let at = x.clamp(half.min(WIDTH / 2.0), (WIDTH - half).max(WIDTH / 2.0));
        let name = escape(&reference.name);
        let _ = write!(
            out,
            "<g><title>{name}: {value} {}</title>\
             <line class=\"reference\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>\
             <text class=\"tick\" x=\"{at:.1}\" y=\"12\">{name} {value}</text></g>",
            escape(unit),
            TOP - 4.0,
            self.bottom
        );
    }
}

/// A tick is a round number: no zeros behind the point, none of the noise of binary fractions.
fn tick_label(tick: f64) -> String {
    if tick.abs() >= 1000.0 {
        return figure(tick);
    }
    let text = format!("{tick:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text.is_empty() { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn chart(values: &[f64]) -> Chart {
        let bars = values.iter().map(|&value| Some(Bar { value, spread: Some((value * 0.9, value * 1.1)) }));
        Chart {
            title: "Time".to_owned(),
            unit: "ms".to_owned(),
            groups: (0..values.len()).map(|index| format!("group {index}")).collect(),
            series: vec![Series { name: "a & b".to_owned(), bars: bars.collect() }],
            reference: Some(Reference { name: "without".to_owned(), value: 3.0 }),
            at_least: 0.0,
            axis: Axis::Linear,
        }
    }

    fn numbers(svg: &str, attribute: &str) -> Vec<f64> {
        let start = format!(" {attribute}=\"");
        let parts = svg.split(&start).skip(1);
        parts.map(|part| part.split('"').next().expect("an end").parse().expect("a number")).collect()
    }

    #[test]
    fn bars_are_as_long_as_their_values() {
        let mut svg = String::new();
        chart(&[10.0, 5.0, 0.0]).push_html(&mut svg);
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
        let mut svg = String::new();
        chart.push_html(&mut svg);
        let widths = numbers(&svg, "width");
        assert!((widths[2] - 2.0 * widths[1] + widths[0]).abs() < 0.2, "{widths:?}");
        assert_eq!(svg.matches("class=\"zero\"").count(), 1);
    }

    /// Figures stand behind their bars, and behind the line where it would cross them out.
    #[test]
    fn the_reference_crosses_bars_and_no_value() {
        let mut svg = String::new();
        let mut chart = chart(&[10.0, 5.0, 3.0, 2.9, 2.5, 0.1]);
        chart.series[0].bars.iter_mut().flatten().for_each(|bar| bar.spread = None);
        chart.push_html(&mut svg);
        let line = numbers(&svg[svg.find("class=\"reference\"").expect("a line")..], "x1")[0];
        let ends = svg.split("<rect").skip(1).map(|bar| numbers(bar, "x")[0] + numbers(bar, "width")[0]);
        let starts = svg.split("class=\"value\"").skip(1).map(|value| numbers(value, "x")[0]);
        for (place, (end, start)) in ends.zip(starts).enumerate() {
            let expected = if [2, 3, 4].contains(&place) { line } else { end };
            assert!((start - expected - GAP).abs() < 0.11, "{place}: {end} {start} {line}");
        }
        assert_eq!(svg.matches("class=\"value\"").count(), 6);
    }

    #[test]
    fn a_missing_value_has_no_bar() {
        let mut chart = chart(&[1.0, 2.0]);
        chart.series[0].bars = vec![None];
        let mut svg = String::new();
        chart.push_html(&mut svg);
        assert!(!svg.contains("<rect"));
    }

    #[test]
    fn charts_that_share_an_axis_end_alike() {
        let (small, large) = (chart(&[1.0]), chart(&[900.0]));
        let shared = Chart { at_least: 990.0, ..small };
        assert_eq!(shared.scale(), large.scale());
    }

    #[test]
    fn ticks_are_short() {
        assert_eq!(tick_label(0.0), "0");
        assert_eq!(tick_label(0.1 + 0.2), "0.3");
        assert_eq!(tick_label(2.5), "2.5");
        assert_eq!(tick_label(100.0), "100");
        assert_eq!(tick_label(150_000.0), "150,000");
    }

    proptest! {
        #[test]
        fn everything_lies_within_the_chart(
            values in proptest::collection::vec(prop_oneof![0.0f64..1e9, Just(f64::NAN), Just(f64::INFINITY)], 0..6),
        ) {
            let mut svg = String::new();
            chart(&values).push_html(&mut svg);
            for attribute in ["x", "x1", "x2", "width"] {
                for number in numbers(&svg, attribute) {
                    prop_assert!((0.0..=WIDTH).contains(&number), "{attribute} {number}");
                }
            }
            for number in numbers(&svg, "y") {
                prop_assert!(number.is_finite() && number >= 0.0);
            }
        }
    }
}
