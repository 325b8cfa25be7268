//! Generates the report of a presentation (sentences, tables, charts) from the variables in a
//! scope.

use super::line_charts::share_axes;
use super::{
    BlockForm, CellForm, ChartForm, Evaluator, NoteForm, PresentationError, Report, ReportForm, Scope,
    SectionForm, TableForm, TermForm,
};
use crate::report::{Align, Axis, Bar, Block, Chart, Column, Section, Series, Table, printable};
use minijinja::value::Value;

pub(super) type RenderResult<T> = Result<T, PresentationError>;

/// Returns `scope` with the definitions of the report.
pub(super) fn defined(form: &ReportForm, evaluator: &Evaluator, mut scope: Scope) -> RenderResult<Scope> {
    for definition in &form.define {
        let value = evaluator.define(definition, &scope)?;
        scope.insert(definition.name.clone(), value);
    }
    Ok(scope)
}

pub(super) fn report(form: &ReportForm, evaluator: &Evaluator, scope: Scope) -> RenderResult<Report> {
    let scope = defined(form, evaluator, scope)?;
    let mut sections = Vec::new();
    for section in &form.sections {
        sections.extend(evaluator.sections(section, &scope)?);
    }
    Ok(Report {
        title: evaluator.text(&form.title, &scope)?,
        lead: evaluator.trimmed(&form.lead, &scope)?,
        facts: evaluator.terms(&form.facts, &scope)?,
        sections,
        text: evaluator.terminal(&form.terminal, &scope)?,
        summary: summary(form, evaluator, &scope)?,
    })
}

/// Returns the lines and the definitions of `summary` as JSON. Names in lines that begin with an
/// underscore are omitted: they are only for the report.
fn summary(form: &ReportForm, evaluator: &Evaluator, scope: &Scope) -> RenderResult<serde_json::Value> {
    let mut summary = serde_json::Map::new();
    let plain = |value: &Value| serde_json::to_value(value).unwrap_or_default();
    if let Some(lines) = scope.get("lines") {
        let mut lines = plain(lines);
        for line in lines.as_array_mut().into_iter().flatten().filter_map(serde_json::Value::as_object_mut) {
            line.retain(|name, _| !name.starts_with('_'));
        }
        summary.insert("lines".to_owned(), lines);
    }
    for definition in &form.summary {
        summary.insert(definition.name.clone(), plain(&evaluator.define(definition, scope)?));
    }
    Ok(summary.into())
}

impl Evaluator {
    pub(super) fn trimmed(&self, text: &str, scope: &Scope) -> RenderResult<String> {
        Ok(self.text(text, scope)?.trim().to_owned())
    }

    fn sections(&self, form: &SectionForm, scope: &Scope) -> RenderResult<Vec<Section>> {
        let all = self.list(&form.each, scope, |scope| self.section(form, scope))?;
        Ok(all.into_iter().flatten().collect())
    }

    fn section(&self, form: &SectionForm, scope: &Scope) -> RenderResult<Option<Section>> {
        let mut blocks = Vec::new();
        for block in &form.blocks {
            blocks.extend(self.blocks(block, scope)?);
        }
        let text = self.trimmed(&form.text, scope)?;
        let is_missing = blocks.is_empty() && (text.is_empty() || !form.blocks.is_empty());
        if !is_missing && !text.is_empty() {
            blocks.insert(0, Block::Paragraph(text));
        }
        Ok((!is_missing).then_some(Section { title: self.trimmed(&form.title, scope)?, blocks }))
    }

    fn blocks(&self, form: &BlockForm, scope: &Scope) -> RenderResult<Vec<Block>> {
        let found = self.list(&form.each, scope, |scope| self.block(form, scope))?;
        let mut blocks: Vec<Block> = found.into_iter().flatten().collect();
        if form.share_axis {
            share_axis(blocks.iter_mut().flat_map(|block| match block {
                Block::Charts(charts) => charts.as_mut_slice(),
                _ => &mut [],
            }));
            share_axes(blocks.iter_mut().flat_map(|block| match block {
                Block::LineCharts(charts) => charts.as_mut_slice(),
                _ => &mut [],
            }));
        }
        Ok(blocks)
    }

    fn block(&self, form: &BlockForm, scope: &Scope) -> RenderResult<Vec<Block>> {
        let text = self.trimmed(&form.text, scope)?;
        let notes = self.notes(&form.notes, scope)?;
        let terms = self.terms(&form.terms, scope)?;
        let charts = self.charts(&form.charts, scope)?;
        let line_charts = self.line_charts(&form.line_charts, scope)?;
        let table = form.table.as_ref().map(|table| self.table(table, scope)).transpose()?;
        let blocks = [
            (!text.is_empty()).then_some(Block::Paragraph(text)),
            (!notes.is_empty()).then_some(Block::Notes(notes)),
            (!terms.is_empty()).then_some(Block::Terms(terms)),
            (!charts.is_empty()).then_some(Block::Charts(charts)),
            (!line_charts.is_empty()).then_some(Block::LineCharts(line_charts)),
            table.filter(|table| !table.rows.is_empty()).map(Block::Table),
        ];
        Ok(blocks.into_iter().flatten().collect())
    }

    fn charts(&self, forms: &[ChartForm], scope: &Scope) -> RenderResult<Vec<Chart>> {
        let mut charts = Vec::new();
        for form in forms {
            let mut alike = self.list(&form.each, scope, |scope| self.chart(form, scope))?;
            if form.share_axis {
                share_axis(alike.iter_mut());
            }
            charts.extend(alike);
        }
        charts.retain(|chart| !chart.groups.is_empty());
        Ok(charts)
    }

    fn notes(&self, forms: &[NoteForm], scope: &Scope) -> RenderResult<Vec<String>> {
        let mut notes: Vec<String> = Vec::new();
        for form in forms {
            for note in self.list(&form.each, scope, |scope| self.trimmed(&form.text, scope))? {
                if !note.is_empty() && !notes.contains(&note) {
                    notes.push(note);
                }
            }
        }
        Ok(notes)
    }

    fn terms(&self, forms: &[TermForm], scope: &Scope) -> RenderResult<Vec<(String, String)>> {
        let mut terms = Vec::new();
        for form in forms {
            let term =
                |scope: &Scope| Ok((self.trimmed(&form.word, scope)?, self.trimmed(&form.value, scope)?));
            terms.extend(self.list(&form.each, scope, term)?);
        }
        terms.retain(|(_, value)| !value.is_empty());
        Ok(terms)
    }

    fn table(&self, form: &TableForm, scope: &Scope) -> RenderResult<Table> {
        let mut columns = Vec::new();
        for column in &form.columns {
            columns.extend(self.list(&column.each, scope, |scope| self.column(column, scope))?);
        }
        let row = |scope: &Scope| -> RenderResult<Vec<String>> {
            let mut cells = Vec::with_capacity(columns.len());
            for column in &form.columns {
                cells.extend(self.list(&column.each, scope, |scope| self.cell(&column.cell, scope))?);
            }
            Ok(cells)
        };
        let rows = self.list(&form.rows, scope, row)?;
        let mut legend = Vec::new();
        for line in &form.legend {
            legend.extend(self.trimmed(line, scope)?.lines().map(str::to_owned));
        }
        Ok(Table { columns, rows, legend })
    }

    fn column(&self, form: &CellForm, scope: &Scope) -> RenderResult<Column> {
        let group = self.trimmed(&form.group, scope)?;
        let figures = self.trimmed(form.figures.as_ref().unwrap_or(&form.group), scope)?;
        Ok(match &form.text {
            Some(title) if form.figures.is_none() || figures.is_empty() => {
                Column { group, title: self.trimmed(title, scope)?, align: Align::Left }
            }
            _ => Column { group, title: figures, align: Align::Right },
        })
    }

    fn chart(&self, form: &ChartForm, scope: &Scope) -> RenderResult<Chart> {
        let groups = self.list(&form.groups, scope, |scope| Ok(scope.clone()))?;
        let series = self.list(&form.series, scope, |scope| Ok(scope.clone()))?;
        let mut chart = Chart {
            title: self.trimmed(&form.title, scope)?,
            unit: self.trimmed(&form.unit, scope)?,
            axis: if form.logarithmic { Axis::Logarithmic } else { Axis::Linear },
            reference: self.reference(form.reference.as_ref(), scope)?,
            ..Chart::default()
        };
        for one in &series {
            chart.series.push(Series { name: self.cell(&form.name, one)?, bars: Vec::new() });
        }
        for group in &groups {
            let mut bars = Vec::with_capacity(series.len());
            for one in &series {
                let mut scope = group.clone();
                scope.extend(one.iter().filter(|(name, _)| !group.contains_key(*name)).map(clone_pair));
                bars.push(
                    self.list(&form.bar, &scope, |scope| self.bar(form, scope))?.into_iter().flatten().next(),
                );
            }
            if form.empty_groups || bars.iter().any(Option::is_some) {
                chart.groups.push(self.cell(&form.group, group)?);
                chart.series.iter_mut().zip(bars).for_each(|(series, bar)| series.bars.push(bar));
            }
        }
        Ok(chart)
    }

    fn bar(&self, form: &ChartForm, scope: &Scope) -> RenderResult<Option<Bar>> {
        let number = |text: &str| self.number(text, scope);
        let spread = number(&form.least)?.zip(number(&form.most)?);
        Ok(number(&form.value)?.map(|value| Bar { value, spread }))
    }

    /// Returns tables, separated by empty lines, and lines of text.
    fn terminal(&self, forms: &[BlockForm], scope: &Scope) -> RenderResult<String> {
        let mut text = String::new();
        for form in forms {
            for block in self.blocks(form, scope)? {
                match block {
                    Block::Table(table) => {
                        text.push_str(if text.is_empty() { "" } else { "\n" });
                        text.push_str(&table.to_text());
                    }
                    Block::Notes(notes) => {
                        notes
                            .iter()
                            .flat_map(|note| note.lines())
                            .for_each(|line| text.push_str(&(printable(line) + "\n")));
                    }
                    _ => {}
                }
            }
        }
        Ok(text)
    }
}

fn clone_pair((name, value): (&String, &Value)) -> (String, Value) {
    (name.clone(), value.clone())
}

/// Extends the axes of all charts to the largest of them.
fn share_axis<'c>(charts: impl Iterator<Item = &'c mut Chart>) {
    let charts: Vec<&mut Chart> = charts.collect();
    let end = charts.iter().map(|chart| chart.scale().end()).fold(0.0, f64::max);
    charts.into_iter().for_each(|chart| chart.axis_end_min = end);
}
