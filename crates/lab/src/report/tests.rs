//! A page is complete, escapes all text, and loads nothing.

use super::*;

/// Hostile text that a zone name or command line could contain.
const HOSTILE: &str = "</style><script src=\"http://x\">alert('1')</script>&\u{1b}";

fn hostile() -> Page {
    let text = || HOSTILE.to_owned();
    let bar = Some(Bar { value: 1.0, spread: None });
    let chart = Chart {
        title: text(),
        unit: text(),
        groups: vec![text()],
        series: vec![Series { name: text(), bars: vec![bar] }, Series { name: text(), bars: vec![bar] }],
        reference: Some(Reference { name: text(), value: 1.0 }),
        axis_end_min: 0.0,
        axis: Axis::Logarithmic,
    };
    let points = vec![Point { x: 1.0, value: 1.0, spread: Some((0.5, 2.0)) }];
    let lines = LineChart {
        title: text(),
        x_title: text(),
        x_unit: text(),
        unit: text(),
        series: vec![
            LineSeries { name: text(), points: points.clone() },
            LineSeries { name: text(), points },
        ],
        reference: Some(Reference { name: text(), value: 1.0 }),
        diagonal: text(),
        ..LineChart::default()
    };
    let table = Table {
        columns: vec![Column::text(HOSTILE), Column::figures(HOSTILE, HOSTILE)],
        rows: vec![vec![text(), text()]],
        legend: vec![text()],
    };
    Page {
        title: text(),
        lead: text(),
        facts: vec![(text(), text())],
        sections: vec![Section {
            title: text(),
            blocks: vec![
                Block::Paragraph(text()),
                Block::Notes(vec![text()]),
                Block::Terms(vec![(text(), text())]),
                Block::Charts(vec![chart]),
                Block::LineCharts(vec![lines]),
                Block::Table(table),
            ],
        }],
    }
}

/// Returns the tags of a page with their attributes.
fn tags(html: &str) -> Vec<&str> {
    html.split('<').skip(1).map(|part| part.split('>').next().expect("a part")).collect()
}

#[test]
fn hostile_text_stays_text() {
    let html = hostile().to_html().expect("a page");
    assert!(!html.contains("<script") && !html.contains('\u{1b}'));
    assert_eq!(html.matches("</style>").count(), 1);
    // The page contains the escaped text in all places.
    assert!(
        html.matches("&lt;/style&gt;&lt;script src=&quot;http://x&quot;&gt;alert(&#39;1&#39;)").count() >= 20
    );
    for tag in tags(&html).into_iter().filter(|tag| !tag.contains("Content-Security-Policy")) {
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        assert!(!tag.contains('\''), "{tag}",);
    }
}

#[test]
fn every_tag_is_closed() {
    let html = hostile().to_html().expect("a page");
    let mut open = Vec::new();
    for tag in tags(&html).into_iter().filter(|tag| !tag.starts_with('!') && !tag.ends_with('/')) {
        let name = tag.split_ascii_whitespace().next().expect("a name");
        match name.strip_prefix('/') {
            Some(closed) => assert_eq!(open.pop(), Some(closed)),
            None if name == "meta" => {}
            None => open.push(name),
        }
    }
    assert_eq!(open, [""; 0]);
}

#[test]
fn a_page_refers_to_nothing_outside_itself() {
    let html = hostile().to_html().expect("a page");
    for tag in tags(&html) {
        for attribute in
            [" src=\"", " href=\"", " data=\"", " srcset=\"", " xlink:href=\"", " action=\"", " style=\""]
        {
            assert!(!tag.contains(attribute), "{tag}");
        }
    }
    let style = html.split("<style>").nth(1).and_then(|rest| rest.split("</style>").next()).expect("a style");
    for loading in ["url(", "@import", "http:", "https:", "//"] {
        assert!(!style.contains(loading), "{loading}");
    }
}

#[test]
fn empty_parts_leave_nothing_behind() {
    let page = Page {
        title: "t".to_owned(),
        sections: vec![Section {
            title: "s".to_owned(),
            blocks: vec![Block::Notes(vec![]), Block::Terms(vec![])],
        }],
        ..Page::default()
    };
    let html = page.to_html().expect("a page");
    assert!(!html.contains("<ul") && !html.contains("<dl"));
}
