//! From rows to a report, with small presentations.

use super::*;
use crate::report::{Axis, Block, Reference};

const FILE: &str = r#"
[rows]
columns = [
  { name = "run", kind = "integer", meaning = "run" },
  { name = "what", kind = "text", meaning = "what" },
  { name = "seconds", kind = "number", meaning = "seconds" },
]
computed = [{ name = "double", value = "seconds|times(2)" }]
only = "what != 'odd'"
[lines]
by = ["what"]
statistics = ["double"]
derived = [
  { name = "_base", value = "find(lines, what='a')" },
  { name = "times_a", value = "double.median|over(_base.double.median)" },
]
order = "what"
[report]
define = [{ name = "names", each = ["line in lines"], value = "line.what" }]
lead = "{{ names|join(' and ') }}{% if not lines %}nothing{% endif %}"
facts = [{ word = "Names", value = "{{ names|length }}" }, { word = "None", value = "" }]
[[report.sections]]
title = "Table"
text = "A table."
[[report.sections.blocks]]
[report.sections.blocks.table]
rows = ["line in lines", "times = line.times_a", "if line.what != 'c'"]
columns = [
  { text = "what", cell = "line.what" },
  { figures = "× a", cell = "times|fixed(1)" },
  { each = ["other in lines"], group = "over", figures = "{{ other.what }}", cell = "line.double.median|over(other.double.median)|ratio" },
]
[[report.sections]]
title = "Charts"
[[report.sections.blocks]]
[[report.sections.blocks.charts]]
each = ["half in [1, 2]"]
share-axis = true
title = "Half {{ half }}"
groups = ["line in lines"]
group = "line.what"
series = ["n in [1]"]
name = "'one'"
value = "line.double.median|over(half)"
[[report.sections]]
title = "Lines"
[[report.sections.blocks]]
[[report.sections.blocks.line-charts]]
each = ["half in [1, 2]"]
share-axis = true
title = "Half {{ half }}"
unit = "s"
x-title = "run"
x-logarithmic = true
series = ["line in lines"]
name = "line.what"
points = ["row in every(rows, what=line.what)"]
x = "row.run"
value = "row.double|over(half)"
least = "row.double|plus(-1)"
most = "row.double|plus(1) if row.double > 2"
reference = { name = "at {{ half }}", value = "half|times(10)" }
diagonal = "{{ 'equal' if half == 2 }}"
[[report.sections]]
title = "Empty"
text = "The blocks of this section are empty."
[[report.sections.blocks]]
notes = [{ each = ["line in lines", "if line.what == 'z'"], text = "{{ line.what }}" }]
[[report.terminal]]
notes = [{ text = "one\ntwo" }]
"#;

fn data(rows: &[(&str, Option<f64>)], presentation: &Presentation) -> DataTable {
    let mut data = DataTable::new(presentation.columns());
    for (run, (what, seconds)) in rows.iter().enumerate() {
        let row = serde_json::json!({ "run": run, "what": what, "seconds": seconds });
        data.push_row(&row).expect("a row");
    }
    data
}

fn report(file: &str, rows: &[(&str, Option<f64>)]) -> Result<Report, PresentationError> {
    let presentation: Presentation = toml::from_str(file).expect("sound");
    let mut scope = Scope::new();
    lines(&presentation, &data(rows, &presentation), &mut scope)?;
    presentation.report(scope)
}

const ROWS: &[(&str, Option<f64>)] =
    &[("b", Some(3.0)), ("a", Some(1.0)), ("b", Some(5.0)), ("odd", Some(9.0)), ("c", None)];

#[test]
fn rows_become_lines_tables_and_charts() {
    let report = report(FILE, ROWS).expect("a report");
    assert_eq!((report.lead.as_str(), report.text.as_str()), ("a and b and c", "one\ntwo\n"));
    assert_eq!(report.facts, [("Names".to_owned(), "3".to_owned())]);
    let titles: Vec<&str> = report.sections.iter().map(|section| section.title.as_str()).collect();
    assert_eq!(titles, ["Table", "Charts", "Lines"], "empty sections are omitted");
    let Block::Table(table) = &report.sections[0].blocks[1] else { panic!("no table") };
    assert_eq!(table.rows, [["a", "1.0", "1.00", "0.25", "–"], ["b", "4.0", "4.00", "1.00", "–"]]);
    let Block::Charts(charts) = &report.sections[1].blocks[0] else { panic!("no charts") };
    assert_eq!(
        charts.iter().map(|chart| chart.groups.len()).collect::<Vec<_>>(),
        [2, 2],
        "groups have a bar"
    );
    assert_eq!((charts[0].scale(), charts[1].title.as_str()), (charts[1].scale(), "Half 2"));
    let lines = report.summary["lines"].as_array().expect("lines");
    assert_eq!((&lines[1]["double"]["mean"], &lines[2]["double"]), (&8.0.into(), &serde_json::Value::Null));
    assert!(lines[0].get("_base").is_none(), "names with an underscore are only for the report");
}

#[test]
fn rows_become_line_charts() {
    let report = report(FILE, ROWS).expect("a report");
    let Block::LineCharts(charts) = &report.sections[2].blocks[0] else { panic!("no line charts") };
    let [first, second] = &charts[..] else { panic!("{charts:?}") };
    let names: Vec<&str> = first.series.iter().map(|series| series.name.as_str()).collect();
    assert_eq!(names, ["a", "b"], "a series without values is omitted");
    let points: Vec<_> = first.series[1].points.iter().map(|point| (point.x, point.value)).collect();
    assert_eq!(points, [(0.0, 6.0), (2.0, 10.0)]);
    let spreads = [0, 1].map(|place| first.series[place].points[0].spread);
    assert_eq!(spreads, [None, Some((5.0, 7.0))], "a spread needs both ends");
    assert_eq!((first.x_axis, first.axis), (Axis::Logarithmic, Axis::Linear));
    assert_eq!(first.reference, Some(Reference { name: "at 1".to_owned(), value: 10.0 }));
    assert_eq!((first.diagonal.as_str(), second.diagonal.as_str()), ("", "equal"));
    assert_eq!((first.x_scale(), first.y_scale()), (second.x_scale(), second.y_scale()));
}

#[test]
fn no_rows_are_a_report_too() {
    assert_eq!(report(FILE, &[]).expect("a report").lead, "nothing");
}

#[test]
fn faults_are_named_by_their_text() {
    let fault = |old: &str, new: &str| report(&FILE.replace(old, new), ROWS).expect_err(new);
    for (old, new) in [
        ("line.double.median|over(half)", "line.|over"),
        ("times|fixed(1)", "times|fixd(1)"),
        ("{{ half }}", "{% half %}"),
    ] {
        let error = fault(old, new);
        assert!(
            matches!(&error, PresentationError::Expression { text, .. } if text.contains(new)),
            "{error}"
        );
    }
    let error = fault("n in [1]", "n of [1]");
    assert!(matches!(&error, PresentationError::Step(text) if text == "n of [1]"), "{error}");
}

#[test]
fn a_presentation_without_end_is_refused() {
    let nested = "{% for a in range(90000) %}{% for b in range(90000) %}{% endfor %}{% endfor %}";
    let error = report(&FILE.replace("{{ names|length }}", nested), ROWS).expect_err("refused");
    let PresentationError::Expression { source, .. } = &error else { panic!("{error}") };
    assert_eq!(source.kind(), minijinja::ErrorKind::OutOfFuel);
    let steps = |steps: &[&str]| {
        let old = "\"n in [1]\"";
        assert!(FILE.contains(old));
        report(&FILE.replace(old, format!("{steps:?}").trim_matches(['[', ']'])), ROWS).expect_err("refused")
    };
    for endless in [&["n in range(9000)"; 3][..], &["if true"; 100_000]] {
        let error = steps(endless);
        assert!(matches!(error, PresentationError::TooManySteps), "{error}");
    }
}

#[test]
fn a_figure_has_a_limited_number_of_decimals() {
    let decimals = FILE.replace("times|fixed(1)", "times|fixed(100000)");
    assert!(report(&decimals, ROWS).is_ok());
}

#[test]
fn data_without_a_column_are_refused() {
    let presentation: Presentation = toml::from_str(FILE).expect("sound");
    let short = DataTable::new(presentation.columns()[1..].to_vec());
    let error = lines(&presentation, &short, &mut Scope::new()).expect_err("refused");
    assert!(matches!(&error, PresentationError::Column(name) if name == "run"), "{error}");
}
