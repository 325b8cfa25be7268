//! The report of a fit: sections for each recording and for each of the four criteria.

use super::charts::{self, MAX_POINTS};
use super::{Fits, RecordingFit};
use crate::cost_model::model::{Estimate, FittedLine};
use crate::cost_model::residuals::TestResult;
use crate::cost_model::text::{interval, percent, probability, value, with_error};
use crate::record::RunRecord;
use crate::report::{Block, Column, Page, Section, Table, duration, figure, grouped};
use nonesuch_proto::timestamp::Rfc3339;

const LEAD: &str = "The model predicts the number of signatures that a resolver verifies (S_v) from the number of \
    queries that it sends to authoritative servers (Q). Each of the lines f1 to f4 is fitted by least squares \
    over windows of time; f is their composition. Rates are in events per second, and intervals are 95 % \
    confidence intervals. The model is that of R. van Rijswijk-Deij, K. Hageman, A. Sperotto and A. Pras, \
    IEEE/ACM Transactions on Networking 25(2), 2017.";

/// How intervals are computed, for the legend of tables.
const INTERVALS: &str = "Intervals by least squares where the residuals are independent and have equal variance, as far \
    as the tests of Ljung-Box and Breusch-Pagan show at 5 %; otherwise by HAC: the covariance of Newey and West, prewhitened, with \
    1.3 √n lags, and the critical values of Kiefer and Vogelsang for this number of lags. f: delta method, with the \
    covariances of all parameters.";

pub(super) fn page(fits: &Fits, record: &RunRecord) -> Page {
    let recordings = fits.fits.len() as i64;
    Page {
        title: "Resolver cost model: fit".to_owned(),
        lead: LEAD.to_owned(),
        facts: vec![("recordings".to_owned(), grouped(recordings)), ("date".to_owned(), record.date.clone())],
        run_facts: record.facts(),
        attachment: None,
        sections: sections(fits),
    }
}

pub(super) fn sections(fits: &Fits) -> Vec<Section> {
    let mut sections: Vec<Section> = fits.fits.iter().map(recording).collect();
    sections.extend([resolvers(fits), stability(fits), populations(fits), held_out(fits)]);
    sections
}

fn paragraph(text: impl Into<String>) -> Block {
    Block::Paragraph(text.into())
}

/// The fitted model of a recording.
fn recording(fit: &RecordingFit) -> Section {
    let mut blocks = vec![paragraph(description(fit))];
    let notes = notes(fit);
    if !notes.is_empty() {
        blocks.push(Block::Notes(notes));
    }
    blocks.extend([
        Block::Table(parameters(fit)),
        Block::Table(residual_tests(fit)),
        Block::LineCharts(charts::residuals(fit)),
        Block::LineCharts(charts::predictions(fit)),
    ]);
    Section { title: label(fit), blocks }
}

fn label(fit: &RecordingFit) -> String {
    super::label(fit.resolver.as_deref(), fit.population.as_deref(), &fit.name)
}

fn description(fit: &RecordingFit) -> String {
    let time = |microseconds: u64| Rfc3339(microseconds / 1_000_000).to_string();
    let windows = grouped(fit.model.windows as i64);
    let (start, end) = (time(fit.start), time(fit.last_start));
    format!("{windows} windows of {}, from {start} to {end}.", duration(fit.window_seconds))
}

fn notes(fit: &RecordingFit) -> Vec<String> {
    let mut notes = Vec::new();
    if fit.is_estimated {
        notes.push(
            "S_v is an estimate: our own cache and validator, applied to the recorded responses.".to_owned(),
        );
    }
    if fit.omitted_windows > 0 {
        let count = grouped(fit.omitted_windows as i64);
        notes.push(format!("Windows of another length, which are not used: {count}."));
    }
    if fit.gaps > 0 {
        let count = grouped(fit.gaps as i64);
        notes.push(format!(
            "The recording has gaps between windows: {count}. The windows around a gap count as adjacent."
        ));
    }
    if fit.model.windows > MAX_POINTS {
        notes.push(format!("Charts show at most {MAX_POINTS} windows, at equal distances."));
    }
    notes
}

fn parameters(fit: &RecordingFit) -> Table {
    let columns = vec![
        Column::text("line"),
        Column::text("parameter"),
        Column::figures("", "value"),
        Column::figures("", "95 % interval"),
        Column::figures("", "R²"),
        Column::text("intervals by"),
    ];
    let mut rows = Vec::new();
    for line in &fit.model.lines {
        let (slope, intercept) = line.line.parameters();
        let r_squared = format!("{:.4}", line.r_squared);
        let name = line.intervals.name();
        rows.push(row(
            &line.line.equation(),
            &format!("{slope}: {}", line.line.meaning()),
            &line.slope,
            &r_squared,
            &name,
        ));
        rows.push(row("", &format!("{intercept} (1/s)"), &line.intercept, "", ""));
    }
    let f = &fit.model.composed;
    let (r_squared, name) = (format!("{:.4}", f.r_squared), f.intervals.name());
    rows.push(row("f: S_v = a·Q + b", "a: verified signatures for each query", &f.slope, &r_squared, &name));
    rows.push(row("", "b (1/s)", &f.intercept, "", ""));
    let direct = format!(
        "A line fitted to S_v and Q directly has the slope {} and the intercept {}.",
        value(&Estimate { value: f.direct_slope, ..f.slope }),
        value(&Estimate { value: f.direct_intercept, ..f.intercept }),
    );
    Table { columns, rows, legend: vec![INTERVALS.to_owned(), direct] }
}

fn row(line: &str, parameter: &str, estimate: &Estimate, r_squared: &str, method: &str) -> Vec<String> {
    let cells = [line, parameter, &value(estimate), &interval(estimate), r_squared, method];
    cells.map(str::to_owned).to_vec()
}

fn residual_tests(fit: &RecordingFit) -> Table {
    let mut columns = vec![Column::text("line")];
    columns.extend(["Durbin-Watson"].map(|title| Column::figures("", title)));
    for group in ["autocorrelation (Ljung-Box)", "variance (Breusch-Pagan)", "normality (Jarque-Bera)"] {
        columns.extend(["statistic", "p"].map(|title| Column::figures(group, title)));
    }
    let cells = |test: &TestResult| [figure(test.statistic), probability(test.p_value)];
    let row = |line: &FittedLine| {
        let tests = &line.tests;
        let name = format!("f{}", line.line as usize + 1);
        let mut row = vec![name, figure(tests.durbin_watson)];
        row.extend([tests.ljung_box, tests.breusch_pagan, tests.jarque_bera].iter().flat_map(cells));
        row
    };
    let legend = "A p below 0.05 rejects: no autocorrelation; equal variance; a normal distribution. Intervals of many \
        windows do not need the normal distribution.";
    Table { columns, rows: fit.model.lines.iter().map(row).collect(), legend: vec![legend.to_owned()] }
}

/// A table of the slopes of each recording.
fn slopes(fits: &Fits, first_column: &str, name: impl Fn(&RecordingFit) -> String) -> Table {
    let mut columns = vec![Column::text(first_column), Column::text("recording")];
    let names = fits.fits.iter().take(1).flat_map(|fit| fit.model.slopes());
    columns.extend(names.map(|(parameter, _)| Column::figures("", parameter)));
    columns.extend(["lowest R² of f1 to f4", "R² of f"].map(|title| Column::figures("", title)));
    let row = |fit: &RecordingFit| {
        let lowest = fit.model.lines.iter().map(|line| line.r_squared).fold(f64::INFINITY, f64::min);
        let mut row = vec![name(fit), fit.name.clone()];
        row.extend(fit.model.slopes().map(|(_, estimate)| with_error(&estimate)));
        row.extend([format!("{lowest:.4}"), format!("{:.4}", fit.model.composed.r_squared)]);
        row
    };
    let mut rows: Vec<Vec<String>> = fits.fits.iter().map(row).collect();
    if !fits.equality.is_empty() {
        let mut equal = vec!["p of equality".to_owned(), String::new()];
        equal.extend(fits.equality.iter().map(|equality| probability(equality.test.p_value)));
        rows.push(equal);
    }
    Table { columns, rows, legend: Vec::new() }
}

fn unknown(name: Option<&String>) -> String {
    name.cloned().unwrap_or_else(|| "–".to_owned())
}

fn distinct<'f>(names: impl Iterator<Item = &'f Option<String>>) -> usize {
    let mut names: Vec<&String> = names.flatten().collect();
    names.sort_unstable();
    names.dedup();
    names.len()
}

fn resolvers(fits: &Fits) -> Section {
    let count = distinct(fits.fits.iter().map(|fit| &fit.resolver));
    let text = match (fits.fits.len(), count) {
        (1, _) => "There is one recording, so this criterion is not examined: name recordings of several resolvers.".to_owned(),
        (_, 0) => "The recordings have no names of resolvers (RESOLVER/POPULATION=DIRECTORY), so the table compares all recordings.".to_owned(),
        (recordings, count) => format!("{recordings} recordings of {count} named resolver programs."),
    };
    let explanation = "The model holds for a resolver if its lines explain almost all of the variance (R² near 1). The \
        parameters of resolvers can differ: their caches and their queries for keys differ.";
    let table = slopes(fits, "resolver", |fit| unknown(fit.resolver.as_ref()));
    Section {
        title: "Criterion I: several resolvers".to_owned(),
        blocks: vec![paragraph(text), paragraph(explanation), Block::Table(table)],
    }
}

fn stability(fits: &Fits) -> Section {
    let mut blocks = vec![paragraph(
        "The model is fitted to slices of the time. All parameters should be stable, except α_s, which grows with \
         the number of signed zones. Cochran's Q tests whether all slices have the same value.",
    )];
    for fit in &fits.fits {
        if fit.stability.slices.is_empty() {
            blocks.push(paragraph(format!(
                "{}: the windows are too few for two slices, or a slice has no variation.",
                label(fit)
            )));
            continue;
        }
        blocks.push(Block::Table(drifts(fit)));
        blocks.push(Block::LineCharts(charts::slices(fit)));
    }
    Section { title: "Criterion II: stable over time".to_owned(), blocks }
}

fn drifts(fit: &RecordingFit) -> Table {
    let mut columns = vec![Column::text("parameter")];
    let count = fit.stability.slices.len();
    columns.extend((1..=count).map(|number| Column::figures(&label(fit), &format!("slice {number}"))));
    columns.extend(["drift", "Q", "p"].map(|title| Column::figures("", title)));
    columns.push(Column::text("stable"));
    let row = |(place, drift): (usize, &super::Drift)| {
        let mut row = vec![drift.parameter.to_owned()];
        row.extend(fit.stability.slices.iter().map(|slice| with_error(&slice.parameters[place])));
        row.extend([percent(drift.relative), figure(drift.test.statistic), probability(drift.test.p_value)]);
        row.push(if drift.test.rejects() { "no" } else { "yes" }.to_owned());
        row
    };
    let rows = fit.stability.drifts.iter().enumerate().map(row).collect();
    let legend = "Drift: difference of maximum and minimum, as a share of the mean. Stable: the test does not reject at \
        5 %. With many windows, it finds drifts that are too small to matter.";
    Table { columns, rows, legend: vec![legend.to_owned()] }
}

fn populations(fits: &Fits) -> Section {
    let count = distinct(fits.fits.iter().map(|fit| &fit.population));
    let text = match (fits.fits.len(), count) {
        (1, _) => "There is one recording, so this criterion is not examined: name recordings of several client populations.".to_owned(),
        (_, 0) => "The recordings have no names of client populations (RESOLVER/POPULATION=DIRECTORY), so the table compares all recordings.".to_owned(),
        (recordings, count) => format!("{recordings} recordings of {count} named client populations."),
    };
    let worst = &fits.fits[fits.worst_case];
    let a = &worst.model.composed.slope;
    let worst_case = format!(
        "The worst case is {}: it verifies {} signatures for each query, with 95 % confidence at most {}.",
        label(worst),
        value(a),
        value(&Estimate { value: a.high, ..*a }),
    );
    let table = slopes(fits, "population", |fit| unknown(fit.population.as_ref()));
    Section {
        title: "Criterion III: several client populations".to_owned(),
        blocks: vec![paragraph(text), paragraph(worst_case), Block::Table(table)],
    }
}

fn held_out(fits: &Fits) -> Section {
    let columns = vec![
        Column::text("recording"),
        Column::figures("windows", "fitted"),
        Column::figures("windows", "predicted"),
        Column::figures("mean S_v, 1/s", "predicted"),
        Column::figures("mean S_v, 1/s", "observed"),
        Column::figures("", "bias"),
        Column::figures("", "mean error"),
        Column::figures("", "R²"),
        Column::figures("test of bias", "t"),
        Column::figures("test of bias", "critical"),
        Column::figures("Kolmogorov-Smirnov", "D"),
        Column::figures("Kolmogorov-Smirnov", "p"),
    ];
    let row = |fit: &RecordingFit| {
        let found = &fit.held_out;
        vec![
            fit.name.clone(),
            grouped(found.fitted_windows as i64),
            grouped(found.predicted_windows as i64),
            figure(found.predicted_mean),
            figure(found.observed_mean),
            percent(found.relative_bias),
            percent(found.relative_error),
            format!("{:.4}", found.r_squared),
            figure(found.bias_test.statistic),
            figure(found.bias_test.critical),
            figure(found.distribution_test.statistic),
            probability(found.distribution_test.p_value),
        ]
    };
    let verdicts = fits.fits.iter().map(|fit| format!("{}: {}", fit.name, fit.held_out.verdict()));
    let text = "The model is fitted to the first two thirds of the windows and predicts S_v of the last third from Q. \
        Two tests compare predictions with observations. Test of bias (paired): the mean error is 0; its variance is \
        that of Newey and West plus that of the parameters. Kolmogorov-Smirnov (two samples): the errors of the \
        predicted windows, divided by the square root of the prediction, have the distribution of those of the fitted \
        windows; the number of windows is reduced for autocorrelation.";
    Section {
        title: "Criterion IV: predictions of held-out windows".to_owned(),
        blocks: vec![
            paragraph(text),
            Block::Table(Table { columns, rows: fits.fits.iter().map(row).collect(), legend: Vec::new() }),
            Block::Notes(verdicts.collect()),
        ],
    }
}
