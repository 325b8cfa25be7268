//! The report.

use super::rows::{ECHO, SERVER};
use super::summary::{Line, lines};
use super::{About, Parameters};
use crate::experiment::method::Report;
use crate::experiment::results::{Results, UnreadableColumn};
use crate::experiment::statistics::Statistics;
use crate::report::{Bar, Block, Chart, Column, Section, Series, Table, figure, grouped};
use nonesuch_dnssec::Mechanism;

const CHART: &str = "CPU time of the server for each query, user and system together, all threads. Below each bar of \
    `nonesuch serve` stands the echo server whose answers have the same size: what receiving and sending alone cost. Bars \
    are medians of the rounds; whiskers go from the least to the most.";

const FIGURES: &str = "Medians of the rounds; × floor is taken round by round, with the least and the most. Busy: share of the time \
    that a worker had something to do. Octets are those of DNS messages.";

const METHOD: &str = "`nonesuch serve` answers from a signed zone that `nonesuch zone generate` made, with the queries that it made \
    for it. An echo server sends back each query with QR set, cut or filled up to a fixed size, and receives and sends with the \
    same code (`recvmmsg`, `sendmmsg`, 64 datagrams a call). A closed loop of queries with DO set keeps each server busy in \
    turn: a round loads every server once, all others wait. CPU time is what the system counts for the server's process \
    between the end of the warm-up and the last answer. The load generator lets answers gather, so that it need not be woken \
    for each; who measures with another one will see another floor.";

/// The report of `results`, whose record has `about` and `parameters`.
pub(in crate::experiment) fn report(
    about: &About,
    parameters: &Parameters,
    results: &Results,
) -> Result<Report, UnreadableColumn> {
    let lines = lines(&results.data)?;
    let mut sections = vec![
        section("CPU time of a query", CHART, chart(&lines).map(|chart| Block::Charts(vec![chart]))),
        section("All figures", FIGURES, Some(Block::Table(table(&lines, true)))),
        section("Method", METHOD, None),
    ];
    sections.retain(|section| !section.blocks.is_empty());
    let mut text = table(&lines, false);
    text.legend.extend(results.record.notes.iter().map(|note| format!("! {note}")));
    Ok(Report {
        lead: lead(&lines),
        facts: facts(about, parameters),
        sections,
        text: text.to_text(),
        summary: serde_json::json!({ "lines": lines }),
    })
}

fn section(title: &str, text: &str, block: Option<Block>) -> Section {
    let blocks = std::iter::once(Block::Paragraph(text.to_owned())).chain(block).collect();
    Section { title: title.to_owned(), blocks }
}

/// What all comes to, in two sentences.
fn lead(lines: &[Line]) -> String {
    let ours = lines.iter().filter(|line| line.server == SERVER && line.workers == 1);
    let times: Vec<f64> =
        ours.filter_map(|line| line.times_floor.as_ref()).map(|times| times.median).collect();
    let Some(times) = Statistics::of(&times) else {
        return "A server was measured that does nothing but receive and send.".to_owned();
    };
    format!(
        "A query costs `nonesuch serve` {:.2} to {:.2} times what it costs a server that does nothing but receive and send \
         datagrams of the same size. What is above 1 is finding and writing the answer.",
        times.least, times.most
    )
}

fn facts(about: &About, parameters: &Parameters) -> Vec<(String, String)> {
    let cpu = |cpu: Option<u64>| cpu.map_or_else(|| "any CPU".to_owned(), |cpu| format!("CPU {cpu}"));
    let facts = [
        ("Server", about.version.clone()),
        ("Zone", format!("{} delegations, {}", grouped(about.names as i64), about.algorithm)),
        (
            "Places",
            format!("servers of one worker on {}, load on {}", cpu(about.server_cpu), cpu(about.load_cpu)),
        ),
        (
            "Load",
            format!(
                "{} rounds of {} s, {} queries outstanding on {} sockets",
                parameters.rounds.value(),
                figure(parameters.seconds.value()),
                parameters.outstanding.value(),
                parameters.sockets.value()
            ),
        ),
    ];
    facts.map(|(word, value)| (word.to_owned(), value)).to_vec()
}

/// What a line is of, in words.
fn title(line: &Line) -> String {
    let workers = if line.workers == 1 { String::new() } else { format!(", {} workers", line.workers) };
    if line.denial.is_empty() {
        return format!("{} octets{workers}", line.response_octets.round());
    }
    let mechanism: Result<Mechanism, _> = line.denial.parse();
    let mechanism = mechanism.map_or(line.denial.as_str(), |mechanism| mechanism.entry().title);
    format!("{mechanism}, {}{workers}", line.queries)
}

/// A group for each mechanism, kind of queries and number of workers, and for each size beside.
fn chart(lines: &[Line]) -> Option<Chart> {
    let mut groups: Vec<String> = Vec::new();
    for line in lines {
        let title = title(line);
        if !groups.contains(&title) {
            groups.push(title);
        }
    }
    let bar = |server: &str, group: &String| {
        let line = lines.iter().find(|line| line.server == server && title(line) == *group)?;
        let cpu = line.cpu_us?;
        Some(Bar { value: cpu.median, spread: (cpu.count > 1).then_some((cpu.least, cpu.most)) })
    };
    let series = [(SERVER, "nonesuch serve"), (ECHO, "echo of the same size")].map(|(server, name)| Series {
        name: name.to_owned(),
        bars: groups.iter().map(|group| bar(server, group)).collect(),
    });
    (!groups.is_empty()).then(|| Chart {
        title: "CPU time of a query".to_owned(),
        unit: "µs".to_owned(),
        series: series.to_vec(),
        groups,
        ..Chart::default()
    })
}

/// A row for each line; `all` for the page, which has room.
fn table(lines: &[Line], all: bool) -> Table {
    let several = lines.iter().any(|line| line.times_one_worker.is_some());
    let mut columns = vec![Column::text("answers"), Column::text("server")];
    columns.extend(["in", "out"].map(|name| Column::figures("octets", name)));
    columns.extend(["all", "user", "system"].map(|name| Column::figures("µs a query", name)));
    columns.push(Column::figures("", "× floor"));
    if several {
        columns.push(Column::figures("", "× one worker"));
    }
    columns.extend([Column::figures("", "queries/s"), Column::figures("", "busy")]);
    if all {
        columns.extend(["least", "most"].map(|name| Column::figures("µs a query", name)));
    }
    let legend = if all {
        Vec::new()
    } else {
        vec!["Medians; × floor: CPU time in times of the echo of the same size.".to_owned()]
    };
    Table { columns, rows: lines.iter().map(|line| cells(line, several, all)).collect(), legend }
}

fn cells(line: &Line, several: bool, all: bool) -> Vec<String> {
    let median = |part: &Option<Statistics>, digits: usize| {
        part.map_or_else(|| "–".to_owned(), |part| format!("{:.digits$}", part.median))
    };
    let times = |part: &Option<Statistics>| {
        part.map_or_else(String::new, |part| {
            format!("{:.2} ({:.2}-{:.2})", part.median, part.least, part.most)
        })
    };
    let mut cells = vec![title(line), line.server.clone()];
    cells.extend([line.query_octets, line.response_octets].map(|octets| format!("{octets:.0}")));
    cells.extend([&line.cpu_us, &line.user_us, &line.system_us].map(|part| median(part, 2)));
    cells.push(times(&line.times_floor));
    if several {
        cells.push(times(&line.times_one_worker));
    }
    let per_second = line.per_second.map_or(0, |per_second| per_second.median.round() as i64);
    cells.extend([grouped(per_second), median(&line.busy, 2)]);
    if all {
        let ends = line.cpu_us.map(|cpu| [cpu.least, cpu.most]);
        cells.extend(ends.map_or_else(Default::default, |ends| ends.map(|end| format!("{end:.2}"))));
    }
    cells
}
