//! Line charts of a presentation.

use super::render::RenderResult;
use super::{Definition, Evaluator, Scope};
use crate::report::{Axis, LineChart, LineSeries, Point, Ranges, Reference};
use serde::{Deserialize, Serialize};

/// A line chart, or several with `each`. A chart without points is omitted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct LineChartForm {
    each: Vec<String>,
    title: String,
    /// Unit of the values, and whether their axis is logarithmic.
    unit: String,
    logarithmic: bool,
    /// Title and unit of the horizontal axis, and whether it is logarithmic.
    x_title: String,
    x_unit: String,
    x_logarithmic: bool,
    /// Whether all charts of this form in a block share their axes.
    pub(super) share_axis: bool,
    /// Steps that generate the series, and the expression for the name of a series.
    series: Vec<String>,
    name: String,
    /// Steps that generate the points of a series, in the order in which lines join them.
    points: Vec<String>,
    /// Position of a point on the horizontal axis, its value, and the ends of its spread.
    x: String,
    value: String,
    least: String,
    most: String,
    /// A vertical line at a value of the horizontal axis, if the value exists.
    reference: Option<Definition>,
    /// Name of the diagonal; empty: none.
    diagonal: String,
}

impl Evaluator {
    pub(super) fn line_charts(&self, forms: &[LineChartForm], scope: &Scope) -> RenderResult<Vec<LineChart>> {
        let mut charts = Vec::new();
        for form in forms {
            let mut alike = self.list(&form.each, scope, |scope| self.line_chart(form, scope))?;
            alike.retain(|chart| !chart.series.is_empty());
            if form.share_axis {
                share_axes(alike.iter_mut());
            }
            charts.extend(alike);
        }
        Ok(charts)
    }

    fn line_chart(&self, form: &LineChartForm, scope: &Scope) -> RenderResult<LineChart> {
        let mut series = self.list(&form.series, scope, |scope| self.line_series(form, scope))?;
        series.retain(|series| !series.points.is_empty());
        let axis = |logarithmic: bool| if logarithmic { Axis::Logarithmic } else { Axis::Linear };
        Ok(LineChart {
            title: self.trimmed(&form.title, scope)?,
            x_title: self.trimmed(&form.x_title, scope)?,
            x_unit: self.trimmed(&form.x_unit, scope)?,
            unit: self.trimmed(&form.unit, scope)?,
            x_axis: axis(form.x_logarithmic),
            axis: axis(form.logarithmic),
            series,
            is_scatter: false,
            reference: self.reference(form.reference.as_ref(), scope)?,
            diagonal: self.trimmed(&form.diagonal, scope)?,
            ranges: Ranges::default(),
        })
    }

    fn line_series(&self, form: &LineChartForm, scope: &Scope) -> RenderResult<LineSeries> {
        let points = self.list(&form.points, scope, |scope| self.point(form, scope))?;
        Ok(LineSeries { name: self.cell(&form.name, scope)?, points: points.into_iter().flatten().collect() })
    }

    /// Returns a point, or `None` if its position or value is missing.
    fn point(&self, form: &LineChartForm, scope: &Scope) -> RenderResult<Option<Point>> {
        let number = |text: &str| self.number(text, scope);
        let spread = number(&form.least)?.zip(number(&form.most)?);
        Ok(number(&form.x)?.zip(number(&form.value)?).map(|(x, value)| Point { x, value, spread }))
    }

    /// Returns the reference line, or `None` if its value is missing.
    pub(super) fn reference(
        &self,
        form: Option<&Definition>,
        scope: &Scope,
    ) -> RenderResult<Option<Reference>> {
        let Some(form) = form else { return Ok(None) };
        let Some(value) = self.number(&form.value, scope)? else { return Ok(None) };
        Ok(Some(Reference { name: self.trimmed(&form.name, scope)?, value }))
    }
}

/// Extends the axes of all charts, so that they contain the axes of the others.
pub(super) fn share_axes<'c>(charts: impl Iterator<Item = &'c mut LineChart>) {
    let charts: Vec<&mut LineChart> = charts.collect();
    let scales = charts.iter().map(|chart| (chart.x_scale(), chart.y_scale()));
    let (x, y): (Vec<_>, Vec<_>) = scales.map(|(x, y)| ([x.start(), x.end()], [y.start(), y.end()])).unzip();
    let ranges = Ranges { x: x.concat(), y: y.concat() };
    charts.into_iter().for_each(|chart| chart.ranges = ranges.clone());
}
