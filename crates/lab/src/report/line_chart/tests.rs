//! Points are at their values, axes hold all points, and the data table has them all.

use super::*;
use crate::report::{Block, Page, Section};
use proptest::prelude::*;

fn series(name: &str, points: &[(f64, f64)]) -> LineSeries {
    let point = |&(x, value): &(f64, f64)| Point { x, value, spread: Some((value * 0.9, value * 1.1)) };
    LineSeries { name: name.to_owned(), points: points.iter().map(point).collect() }
}

fn chart(points: &[(f64, f64)]) -> LineChart {
    LineChart {
        title: "Answers".to_owned(),
        x_title: "offered".to_owned(),
        x_unit: "q/s".to_owned(),
        unit: "a/s".to_owned(),
        series: vec![series("a & b", points)],
        ..LineChart::default()
    }
}

/// Renders a page with only this chart.
fn drawn(chart: LineChart) -> String {
    let section = Section { title: String::new(), blocks: vec![Block::LineCharts(vec![chart])] };
    Page { sections: vec![section], ..Page::default() }.to_html().expect("a page")
}

/// Returns the positions of the markers.
fn markers(html: &str) -> Vec<(f64, f64)> {
    let places = html.split("translate(").skip(1).map(|part| part.split(')').next().expect("an end"));
    places.map(position).collect()
}

fn position(text: &str) -> (f64, f64) {
    let (x, y) = text.split_once(' ').expect("a pair");
    (x.parse().expect("a number"), y.parse().expect("a number"))
}

/// Returns the positions of the first path of the class.
fn path_of(html: &str, class: &str) -> Vec<(f64, f64)> {
    let start = format!("class=\"{class}\" d=\"M");
    let path = html.split(&start).nth(1).and_then(|rest| rest.split('"').next()).expect("a path");
    path.split('L').map(position).collect()
}

#[test]
fn points_are_at_their_values_and_lines_join_them() {
    let html = drawn(chart(&[(0.0, 0.0), (50.0, 40.0), (100.0, 20.0)]));
    let points = markers(&html);
    assert_eq!(points, path_of(&html, "line"));
    let [start, middle, end] = points[..] else { panic!("{points:?}") };
    assert!((middle.0 - start.0 - (end.0 - middle.0)).abs() < 0.11, "{points:?}");
    assert!((start.1 - middle.1 - 2.0 * (start.1 - end.1)).abs() < 0.21, "{points:?}");
    assert!(html.contains("<title>a &amp; b, offered 50 q/s: 40.0 a/s (from 36.0 to 44.0)</title>"));
    // The spread of zero is not visible.
    assert_eq!(html.matches("class=\"spread\"").count(), 2);
    assert!(!html.contains("class=\"legend\""));
}

#[test]
fn logarithmic_axes_give_each_decade_the_same_length() {
    let points = [(1000.0, 10.0), (10_000.0, 100.0), (100_000.0, 1000.0)];
    let html = drawn(LineChart { x_axis: Axis::Logarithmic, axis: Axis::Logarithmic, ..chart(&points) });
    let [start, middle, end] = markers(&html)[..] else { panic!("{html}") };
    assert!((end.0 - 2.0 * middle.0 + start.0).abs() < 0.21);
    assert!((end.1 - 2.0 * middle.1 + start.1).abs() < 0.21);
}

#[test]
fn points_without_a_place_on_a_logarithmic_axis_are_only_in_the_table() {
    let points = [(0.0, 5.0), (10.0, 0.0), (10.0, 5.0)];
    let chart = LineChart { x_axis: Axis::Logarithmic, axis: Axis::Logarithmic, ..chart(&points) };
    assert_eq!(chart.data_table().rows.len(), 3);
    assert_eq!(markers(&drawn(chart)).len(), 1);
}

#[test]
fn a_scatter_chart_has_points_without_lines_and_shows_negative_values() {
    let series = LineSeries {
        name: "a".to_owned(),
        points: [(1.0, -4.0), (2.0, 0.0), (3.0, 4.0)]
            .map(|(x, value)| Point { x, value, spread: None })
            .to_vec(),
    };
    let chart =
        LineChart { series: vec![series], is_scatter: true, axis: Axis::Signed, ..LineChart::default() };
    let html = drawn(chart);
    let [low, middle, high] = markers(&html)[..] else { panic!("{html}") };
    assert!((low.1 - 2.0 * middle.1 + high.1).abs() < 0.21 && low.1 > high.1 + 50.0);
    assert!(!html.contains("class=\"line\""));
}

#[test]
fn the_reference_and_the_diagonal_are_lines_of_the_chart() {
    let reference = Some(Reference { name: "A-root".to_owned(), value: 6113.0 });
    let chart = LineChart {
        reference,
        diagonal: "all answered".to_owned(),
        ..chart(&[(1000.0, 1000.0), (5000.0, 3000.0)])
    };
    let html = drawn(chart.clone());
    assert!(html.contains("<title>A-root: 6,113 q/s</title>") && html.contains("all answered"));
    assert!(chart.x_scale().end() >= 6113.0);
    // A point on the diagonal is at the part of the axes that it is on.
    let (point, diagonal) = (markers(&html)[0], path_of(&html, "diagonal"));
    let (from, to) = (diagonal[0], diagonal[diagonal.len() - 1]);
    let part = (point.0 - from.0) / (to.0 - from.0);
    assert!((point.1 - from.1 - part * (to.1 - from.1)).abs() < 0.5, "{point:?} {from:?} {to:?}");
}

#[test]
fn axes_without_common_values_have_no_diagonal() {
    let chart = LineChart {
        x_axis: Axis::Logarithmic,
        axis: Axis::Logarithmic,
        diagonal: "x".to_owned(),
        ..chart(&[(1000.0, 1.0), (2000.0, 2.0)])
    };
    assert!(drawn(chart).contains("class=\"diagonal\" d=\"\""));
}

#[test]
fn a_value_that_is_not_a_number_interrupts_the_line() {
    let html = drawn(chart(&[(1.0, 1.0), (2.0, 2.0), (3.0, f64::NAN), (4.0, 1.0), (5.0, 2.0)]));
    assert_eq!(markers(&html).len(), 4);
    let line = html.split("class=\"line\" d=\"").nth(1).and_then(|rest| rest.split('"').next());
    assert_eq!(line.expect("a line").matches('M').count(), 2);
}

#[test]
fn many_points_have_small_markers() {
    let points = |count: u32| (0..count).map(|at| (f64::from(at), 1.0)).collect::<Vec<_>>();
    assert!(!drawn(chart(&points(40))).contains("scale("));
    assert_eq!(drawn(chart(&points(41))).matches("scale(").count(), 41);
}

#[test]
fn dates_are_labels_of_ticks_and_points() {
    let day = |day| crate::report::day_position(day);
    let chart = LineChart { x_axis: Axis::Dates, ..chart(&[(day(18_262), 1.0), (day(19_000), 2.0)]) };
    assert_eq!(chart.data_table().rows[1][0], "2022-01-08");
    let html = drawn(chart);
    assert!(html.contains(">2021</text>") && html.contains("offered 2020-01-01 q/s: 1.00 a/s"), "{html}");
}

#[test]
fn series_differ_in_colour_and_marker() {
    let all: Vec<(usize, &str)> = (0..16).map(|place| (place % COLOUR_COUNT, marker(place))).collect();
    assert!((1..16).all(|place| !all[..place].contains(&all[place])), "{all:?}");
    let chart = LineChart {
        series: vec![series("one", &[(1.0, 1.0)]), series("two", &[(1.0, 2.0)])],
        ..LineChart::default()
    };
    let html = drawn(chart);
    assert!(html.contains("class=\"legend\"") && html.contains(MARKERS[1]));
}

#[test]
fn the_data_table_has_a_row_for_each_point() {
    let mut chart = chart(&[(1.0, 2.0), (3.0, 4000.0)]);
    let table = chart.data_table();
    assert_eq!(table.rows, [["1", "2.00", "1.80", "2.20"], ["3", "4,000", "3,600", "4,400"]]);
    chart
        .series
        .push(LineSeries { name: "c".to_owned(), points: vec![Point { x: 0.5, ..Point::default() }] });
    assert_eq!(chart.data_table().rows[2], ["c", "0.5", "0"]);
    chart.series.iter_mut().flat_map(|series| &mut series.points).for_each(|point| point.spread = None);
    assert_eq!(chart.data_table().columns.len(), 3);
}

proptest! {
    #[test]
    fn everything_lies_within_the_chart(
        values in proptest::collection::vec(
            prop_oneof![0.0f64..1e9, -1e9..0.0, Just(f64::NAN), Just(f64::INFINITY)], 0..12),
        axes in any::<(bool, bool)>(),
    ) {
        let axis = |logarithmic: bool| if logarithmic { Axis::Logarithmic } else { Axis::Linear };
        let points: Vec<(f64, f64)> = values.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        let html = drawn(LineChart {
            x_axis: axis(axes.0),
            axis: axis(axes.1),
            diagonal: "d".to_owned(),
            reference: Some(Reference { name: "r".to_owned(), value: 10.0 }),
            ..chart(&points)
        });
        for (x, y) in markers(&html) {
            prop_assert!((0.0..=CHART_WIDTH).contains(&x) && (TOP_MARGIN..=TOP_MARGIN + PLOT_HEIGHT).contains(&y));
        }
    }
}
