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
        run_facts: vec![(text(), text())],
        attachment: Some(Attachment { name: text(), media_type: "text/csv", octets: vec![0; 10] }),
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

/// An overview whose texts and addresses are all `text`.
pub(super) fn overview(text: &str) -> OverviewPage {
    let own = || text.to_owned();
    let link = || Link { name: own(), address: own() };
    let claim = |verdict| ClaimPart {
        name: own(),
        text: own(),
        place: own(),
        published: own(),
        rule: own(),
        measured: own(),
        verdict,
        reason: own(),
        report: Some(link()),
    };
    let verdicts = ["differs", "differs", "differs", "differs", "agrees", "not-measured"];
    let document = DocumentPart {
        id: own(),
        title: own(),
        source: own(),
        url: own(),
        question: own(),
        claims: verdicts.map(claim).to_vec(),
        count: ClaimCount { all: 6, agree: 1, differ: 4, not_measured: 1 },
        reports: vec![link()],
    };
    let experiment = ExperimentPart {
        report: link(),
        title: own(),
        question: own(),
        answer: own(),
        problem: own(),
        date: own(),
        duration: own(),
        notes: vec![own(), own(), own()],
    };
    OverviewPage {
        title: own(),
        lead: own(),
        explanation: own(),
        notes: vec![own()],
        documents: vec![document],
        experiments: vec![experiment],
        run_facts: vec![(own(), own())],
    }
}

/// Returns the tags of a page with their attributes, without the text of the script.
fn tags(html: &str) -> Vec<&str> {
    let (before, script, after) = match html.split_once("<script>") {
        Some((before, rest)) => {
            (before, &["script>", "/script>"][..], rest.split_once("</script>").expect("an end").1)
        }
        None => (html, &[][..], ""),
    };
    let parts = before.split('<').skip(1).chain(script.iter().copied()).chain(after.split('<').skip(1));
    parts.map(|part| part.split('>').next().expect("a part")).collect()
}

/// Each attribute is in quotes, and each element is closed.
fn assert_well_formed(html: &str) {
    let tags = tags(html);
    for tag in tags.iter().filter(|tag| !tag.contains("Content-Security-Policy")) {
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        assert!(!tag.contains('\''), "{tag}",);
    }
    let mut open = Vec::new();
    for tag in tags.into_iter().filter(|tag| !tag.starts_with('!') && !tag.ends_with('/')) {
        let name = tag.split_ascii_whitespace().next().expect("a name");
        match name.strip_prefix('/') {
            Some(closed) => assert_eq!(open.pop(), Some(closed)),
            None if ["meta", "br"].contains(&name) => {}
            None => open.push(name),
        }
    }
    assert_eq!(open, [""; 0]);
}

/// Returns the text of the only element with this name.
fn content<'h>(html: &'h str, name: &str) -> &'h str {
    let (_, rest) = html.split_once(&format!("<{name}>")).expect("a start");
    rest.split_once(&format!("</{name}>")).expect("an end").0
}

#[test]
fn hostile_text_stays_text() {
    let html = hostile().to_html().expect("a page");
    assert!(!html.contains('\u{1b}'));
    assert_eq!((html.matches("<script").count(), html.matches("</style>").count()), (1, 1));
    // The page contains the escaped text in all places.
    assert!(
        html.matches("&lt;/style&gt;&lt;script src=&quot;http://x&quot;&gt;alert(&#39;1&#39;)").count() >= 40
    );
}

#[test]
fn pages_are_well_formed() {
    assert_well_formed(&hostile().to_html().expect("a page"));
    assert_well_formed(&overview(HOSTILE).to_html().expect("a page"));
    assert_well_formed(&OverviewPage::default().to_html().expect("a page"));
}

#[test]
fn hostile_text_stays_text_in_the_overview() {
    let html = overview(HOSTILE).to_html().expect("a page");
    assert!(!html.contains('\u{1b}') && !html.contains("<script"));
    assert_eq!(html.matches("</style>").count(), 1);
    assert!(html.matches("&lt;/style&gt;&lt;script src=&quot;http://x&quot;&gt;").count() >= 60);
    let policy = html.split("Content-Security-Policy\" content=\"").nth(1).expect("a policy");
    assert!(policy.split('"').next().expect("an end").ends_with("script-src 'none'"));
}

#[test]
fn a_page_refers_to_nothing_outside_itself() {
    let html = hostile().to_html().expect("a page");
    for tag in tags(&html) {
        for attribute in
            [" src=\"", " href=\"", " data=\"", " srcset=\"", " xlink:href=\"", " action=\"", " style=\""]
        {
            let is_attachment = tag.starts_with("a download=") && attribute == " href=\"";
            assert!(!tag.replace(" href=\"data:text/csv;base64,", "").contains(attribute), "{tag}");
            assert!(!tag.contains(attribute) || is_attachment, "{tag}");
        }
    }
    let style = content(&html, "style");
    for loading in ["url(", "@import", "http:", "https:", "//"] {
        assert!(!style.contains(loading), "{loading}");
    }
    let script = content(&html, "script");
    for loading in ["fetch", "XMLHttpRequest", "import", "http:", "https:", "innerHTML", "eval"] {
        assert!(!script.contains(loading), "{loading}");
    }
}

#[test]
fn the_policy_permits_only_the_style_and_the_script_of_the_page() {
    let html = hostile().to_html().expect("a page");
    let policy = html.split("Content-Security-Policy\" content=\"").nth(1).expect("a policy");
    let policy = policy.split('"').next().expect("an end");
    assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
    for name in ["style", "script"] {
        let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, content(&html, name).as_bytes());
        let source = format!("{name}-src 'sha256-{}'", data_encoding::BASE64.encode(hash.as_ref()));
        assert!(policy.contains(&source), "{policy}");
    }
}

#[test]
fn words_between_backticks_are_code() {
    let lead = "Run `a <b>` and `c`, not a ` alone.".to_owned();
    let html = Page { lead, ..Page::default() }.to_html().expect("a page");
    assert!(html.contains("Run <code>a &lt;b&gt;</code> and <code>c</code>, not a ` alone."), "{html}");
}

#[test]
fn a_large_attachment_is_omitted() {
    let page = |length| Page {
        attachment: Some(Attachment {
            name: "x.csv".to_owned(),
            media_type: "text/csv",
            octets: vec![b'a'; length],
        }),
        ..Page::default()
    };
    assert!(page(9).to_html().expect("a page").contains("href=\"data:text/csv;base64,YWFhYWFhYWFh\""));
    assert!(!page(600_000).to_html().expect("a page").contains("x.csv"));
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
