//! The figures of a chart as a table, with a row for each bar or point.

use super::{Column, Table, figure};

/// A bar or point of a chart.
pub(super) struct Figure<'c> {
    /// Group of a bar, or position of a point on the horizontal axis.
    pub(super) label: String,
    pub(super) series: &'c str,
    pub(super) value: f64,
    pub(super) spread: Option<(f64, f64)>,
}

/// Returns the table. It has a column for the series at `series_place` (0 or 1) if there are several,
/// and columns for the spread if a figure has one.
pub(super) fn chart_table(label: Column, series_place: usize, unit: &str, figures: &[Figure<'_>]) -> Table {
    let has_series = figures.iter().any(|figure| figure.series != figures[0].series);
    let has_spread = figures.iter().any(|figure| figure.spread.is_some());
    let mut columns = vec![label, Column::figures(unit, "value")];
    if has_series {
        columns.insert(series_place, Column::text("series"));
    }
    if has_spread {
        columns.extend(["minimum", "maximum"].map(|title| Column::figures(unit, title)));
    }
    let row = |item: &Figure<'_>| {
        let mut cells = vec![item.label.clone(), figure(item.value)];
        if has_series {
            cells.insert(series_place, item.series.to_owned());
        }
        let spread = item.spread.map(|(minimum, maximum)| [figure(minimum), figure(maximum)]);
        cells.extend(spread.into_iter().flatten());
        cells
    };
    Table { columns, rows: figures.iter().map(row).collect(), legend: Vec::new() }
}
