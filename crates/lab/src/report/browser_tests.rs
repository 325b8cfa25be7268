//! The page in a headless Chromium: a page with all parts is drawn, sorted and downloaded, and
//! loads nothing.

use super::*;
use nonesuch_testing::Browser;
use serde_json::{Value, json};
use std::fs;

/// Page with a bar chart, a line chart and a table.
fn page() -> Page {
    let names = ["one", "two", "three"];
    let bar = |value: f64| Some(Bar { value, spread: Some((value * 0.5, value * 1.5)) });
    let chart = Chart {
        title: "Bars".to_owned(),
        unit: "ms".to_owned(),
        groups: names.map(str::to_owned).to_vec(),
        series: vec![Series { name: "a".to_owned(), bars: [10.0, 2.0, 1500.0].map(bar).to_vec() }],
        ..Chart::default()
    };
    let points = [1.0, 10.0, 1000.0].map(|x| Point { x, value: x * 2.0, spread: Some((x, x * 3.0)) });
    let lines = LineChart {
        title: "Lines".to_owned(),
        x_axis: Axis::Logarithmic,
        series: vec![LineSeries { name: "a".to_owned(), points: points.to_vec() }],
        reference: Some(Reference { name: "half".to_owned(), value: 500.0 }),
        diagonal: "equal".to_owned(),
        ..LineChart::default()
    };
    let mut columns = vec![Column::text("name"), Column::figures("time", "µs"), Column::figures("time", "×")];
    // Many columns make the table wider than a phone.
    columns.extend((0..20).map(|place| Column::figures("more", &format!("column {place}"))));
    let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
    let rows = vec![
        row(["b, \"quoted\"", "1,234", "9.5 (9-10)"]),
        row(["a", "–", "-"]),
        row(["c", "99", "<0.10"]),
        row(["d", "100", "10.2 (8-12)"]),
    ];
    let blocks = vec![
        Block::Notes(vec!["A note with `code`.".to_owned()]),
        Block::Charts(vec![chart]),
        Block::LineCharts(vec![lines]),
        Block::Table(Table { columns, rows, legend: vec!["A legend.".to_owned()] }),
    ];
    Page {
        title: "A page".to_owned(),
        lead: "An introduction. ".repeat(20),
        facts: vec![("A long word".to_owned(), "x".repeat(300))],
        run_facts: vec![("CPU".to_owned(), "a CPU".to_owned())],
        attachment: Some(Attachment {
            name: "rows.csv".to_owned(),
            media_type: "text/csv;charset=utf-8",
            octets: "a,b\r\n1,µ\r\n".as_bytes().to_vec(),
        }),
        sections: vec![Section { title: "A section".to_owned(), blocks }],
    }
}

/// Returns the texts of the first column of the last table.
fn first_column(browser: &Browser) -> Value {
    browser.run(
        "const table = [...document.querySelectorAll('table')].at(-1); \
         return [...table.tBodies[0].rows].map(row => row.cells[0].textContent[0]).join('');",
    )
}

/// The titles of the columns of the last table are buttons.
fn assert_sorting(browser: &Browser) {
    let head = |place: usize| format!("section > .wide tr:last-child > th:nth-child({place}) > button");
    assert_eq!(first_column(browser), "bacd");
    for (column, orders) in
        [(1, ["abcd", "dcba", "bacd"]), (2, ["cdba", "bdca", "bacd"]), (3, ["cbda", "dbca", "bacd"])]
    {
        for order in orders {
            browser.click(&head(column));
            assert_eq!(first_column(browser), order, "column {column}");
        }
    }
    browser.click(&head(1));
    browser.click(&head(2));
    let sorted = browser.run("return document.querySelectorAll('[aria-sort]').length");
    assert_eq!((sorted, first_column(browser)), (json!(1), json!("cdba")));
}

/// Downloads contain the data of the page, and a table in its current order.
fn assert_downloads(browser: &Browser) {
    browser.click("a[download]");
    assert_eq!(browser.downloaded("rows.csv"), "a,b\r\n1,µ\r\n");
    browser.click("section > .tools > button");
    let csv = browser.downloaded("table-3.csv");
    let lines: Vec<&str> = csv.lines().collect();
    assert!(lines[0].starts_with("name,time µs,time ×,more column 0,"), "{csv}");
    let starts = ["c,99,<0.10,", "d,100,10.2 (8-12),", "\"b, \"\"quoted\"\"\",1234,9.5 (9-10),", "a,,,"];
    assert!(lines[1..].iter().zip(starts).all(|(line, start)| line.starts_with(start)), "{csv}");
    assert_eq!(lines.len(), 5);
}

/// Each chart and its marks have a size, a tooltip and a table below that opens.
fn assert_drawn(browser: &Browser) {
    let sizes = browser.run(
        "const box = element => element.getBoundingClientRect(); \
         return [...document.querySelectorAll('.chart .wide > svg, rect, .marker, .line')].map(element => \
         Math.min(box(element).width, box(element).height));",
    );
    let sizes: Vec<f64> = sizes.as_array().into_iter().flatten().filter_map(Value::as_f64).collect();
    // Two charts, three bars, three points and a line.
    assert_eq!(sizes.len(), 9);
    assert!(sizes.iter().all(|size| *size > 0.5), "{sizes:?}");
    let titles = browser.run(
        "return [...document.querySelectorAll('rect, .marker')].map(mark => \
        mark.parentElement.querySelector('title').textContent)",
    );
    assert_eq!(titles[0], "one, a: 10.0 ms (from 5.00 to 15.0)");
    assert_eq!(titles[5], "a, 1,000: 2,000 (from 1,000 to 3,000)");
    let rows = "return [...document.querySelectorAll('.chart tbody tr')].filter(row => row.checkVisibility()).length";
    assert_eq!(browser.run(rows), 0);
    browser.click(".chart summary");
    assert_eq!(browser.run(rows), 3);
}

/// Returns how far the page extends beyond the right edge of the window, in pixels.
fn overflow(browser: &Browser) -> Value {
    browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
}

/// At the width of a phone, only wide parts scroll, and not the page.
fn assert_fits_a_phone(browser: &Browser) {
    let metrics = json!({ "width": 360, "height": 740, "deviceScaleFactor": 2, "mobile": true });
    browser.devtools("Emulation.setDeviceMetricsOverride", &metrics);
    assert_eq!((browser.run("return window.innerWidth"), overflow(browser)), (json!(360), json!(0)));
    browser.devtools("Emulation.clearDeviceMetricsOverride", &json!({}));
}

/// Dark colours are dark, and a printed page is light and shows the tables of the charts.
fn assert_media(browser: &Browser) {
    let paper = "return getComputedStyle(document.body).backgroundColor";
    let emulate = |media: &str, scheme: &str| {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        browser.devtools("Emulation.setEmulatedMedia", &json!({ "media": media, "features": features }));
        browser.run(paper)
    };
    assert_eq!(emulate("", "light"), "rgb(255, 255, 255)");
    assert_eq!(emulate("", "dark"), "rgb(20, 23, 27)");
    assert_eq!(emulate("print", "dark"), "rgb(255, 255, 255)");
    let shown = "return [...document.querySelectorAll('.chart details table')].every(table => table.checkVisibility())";
    assert_eq!(browser.run(shown), true);
    assert_eq!(browser.run("return getComputedStyle(document.querySelector('.tools')).display"), "none");
}

#[test]
fn the_page_works_in_a_browser_and_loads_nothing() {
    let Some(browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("report.html");
    fs::write(&file, page().to_html().expect("a page")).expect("written");
    browser.open(&file);
    assert_drawn(&browser);
    assert_sorting(&browser);
    assert_downloads(&browser);
    assert_eq!(overflow(&browser), 0);
    assert_fits_a_phone(&browser);
    assert_media(&browser);
    assert_eq!(browser.console(), [""; 0]);
    let address = format!("file://{}", file.display());
    let foreign: Vec<String> = browser
        .requests()
        .into_iter()
        .filter(|request| {
            *request != address && !request.starts_with("data:") && !request.starts_with("blob:")
        })
        .collect();
    assert_eq!(foreign, [""; 0]);
}

/// The overview has links and wide tables, and no script.
#[test]
fn the_overview_works_in_a_browser_and_loads_nothing() {
    let Some(browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("index.html");
    fs::write(&file, tests::overview(&"word ".repeat(20)).to_html().expect("a page")).expect("written");
    browser.open(&file);
    assert_eq!(overflow(&browser), 0);
    assert_fits_a_phone(&browser);
    let colours =
        "return [...document.querySelectorAll('section .verdict')].map(mark => getComputedStyle(mark).color)";
    let colours: std::collections::BTreeSet<String> =
        serde_json::from_value(browser.run(colours)).expect("texts");
    assert_eq!(colours.len(), 3, "{colours:?}");
    let notes =
        "return [...document.querySelectorAll('details p')].filter(note => note.checkVisibility()).length";
    assert_eq!(browser.run(notes), 0);
    browser.click("details summary");
    assert_eq!(browser.run(notes), 3);
    assert_eq!(browser.console(), [""; 0]);
    assert_eq!(browser.requests(), [format!("file://{}", file.display())]);
}

/// The policy stops a script that is not that of the page, even if it gets into the page.
#[test]
fn the_policy_stops_other_scripts_and_requests() {
    let Some(browser) = Browser::start() else { return };
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("report.html");
    let foreign = "<script>document.title = 'changed'</script><img src=\"http://127.0.0.1:9/x.png\">";
    let html = page().to_html().expect("a page").replace("<main>", &format!("<main>{foreign}"));
    fs::write(&file, html).expect("written");
    browser.open(&file);
    assert_eq!(browser.run("return document.title"), "A page");
    let console = browser.console().join("\n");
    assert!(console.contains("script-src") && console.contains("x.png"), "{console}");
}
