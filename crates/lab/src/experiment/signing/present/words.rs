//! The words around the figures.

use super::super::rows::Job;
use super::super::summary::View;
use super::super::{LevelFacts, Parameters, ZoneFacts};
use super::tables::dash;
use super::{marked, title};
use crate::experiment::published;
use crate::report::{Block, Column, Table, duration, figure, grouped, ratio};

/// What the figure of signing shows.
pub(super) fn signing(view: &View<'_>) -> String {
    let levels = match &*view.levels() {
        ["x86-64-v2", "x86-64-v3"] => "Left x86-64-v2, right x86-64-v3, as in the study's figure.".to_owned(),
        [only] => format!("Measured at level {only}; the study has x86-64-v2 and x86-64-v3."),
        several => format!("From the left: {}.", several.join(", ")),
    };
    format!(
        "CPU time of signing the whole zone, from zone file to zone file, in times of what ECDSA P-256 takes with the same \
         zone, mechanism and instruction level; 1 is ECDSA P-256. {levels} Bars are medians of the runs; whiskers go from \
         the least to the most. * marks what is experimental, PQC what is made to withstand quantum computers."
    )
}

pub(super) const VALIDATION: &str = "CPU time of verifying the whole signed zone: all signatures, bitmaps and the chain, from the \
    zone file, in times of ECDSA P-256.";

pub(super) const SIZES: &str = "Octets of the zone file as text. Each step of the axis is ten times the one before; the dashed \
    line is the unsigned zone. Keys count twice in a zone, signatures hundreds of thousands of times.";

pub(super) const PUBLISHED: &str = "Ratios compare, absolute figures do not: another machine, other programs, other code for each \
    algorithm. A dash is what there was no time for, or what was not published.";

pub(super) const SERVING: &str = "Memory of `nonesuch serve` once it is ready (proportional set size), and what a transfer of the \
    zone comes to. The transfer is computed, not sent: messages of up to 16,384 octets with compressed names (RFC 5936), as \
    NSD fills them; Knot DNS, which compresses fewer names, sends some 10 % more.";

pub(super) const FIGURES: &str = "Each job is a process: CPU time is that of all its threads, user and system, memory the most that \
    was resident (at least some 10 MiB: what the program that starts the jobs has itself). × P-256: in times of ECDSA P-256 with the same zone, mechanism and level.";

pub(super) const LEFT_OUT_SHORT: &str = "Not all was measured within the limit of time: the report says what was left out; --full or --set minutes=0 lift the limit.";

/// What signing again means.
pub(super) fn again(view: &View<'_>) -> String {
    let changed = view.about.zones.iter().find_map(|zone| zone.changes.map(|changes| (zone, changes)));
    let Some((zone, changes)) = changed else { return String::new() };
    let touched = changes.removed_records + changes.added_records;
    format!(
        "Registries do not sign all of a zone every half hour, but what has changed. Here {} of {} records differ ({:.1} %): {} \
         delegations are gone, {} are new, {} have other DS records or name servers. `nonesuch zone sign --previous` keeps the \
         signatures that still hold: it starts from the changed zone file and the signed one, or from the compiled signed zone \
         and the set of changes, and leaves a zone file or a compiled zone. Making the compiled zone and the set is not in \
         the figures.",
        grouped(touched as i64),
        grouped(zone.records as i64),
        100.0 * touched as f64 / zone.records.max(1) as f64,
        grouped(changes.removed_delegations as i64),
        grouped(changes.added_delegations as i64),
        grouped(changes.altered_delegations as i64),
    )
}

/// What the numbers mean, in a few sentences.
pub(super) fn lead(view: &View<'_>) -> String {
    let Some((zone, (denial, denial_title))) = lead_place(view) else {
        return "Whole zones were signed and verified, each job by a process of its own.".to_owned();
    };
    let sentence = |scheme: &str| lead_sentence(view, zone, &denial, scheme);
    let sentences: Vec<String> = ["Falcon-512", "MAYO-2"].into_iter().filter_map(sentence).collect();
    format!("Against ECDSA P-256, on the zone {} with {denial_title}. {}", title(zone), sentences.join(" "))
}

/// The largest zone in which an algorithm of which the study speaks was measured, and the last of its mechanisms in which
/// it was.
fn lead_place<'v>(view: &View<'v>) -> Option<(&'v ZoneFacts, (String, String))> {
    let has = |zone: &ZoneFacts, denial: &str| {
        ["Falcon-512", "MAYO-2"].into_iter().any(|scheme| lead_sentence(view, zone, denial, scheme).is_some())
    };
    view.zones().into_iter().find_map(|zone| {
        let denial = view.denials().into_iter().rfind(|(denial, _)| has(zone, denial))?;
        Some((zone, denial))
    })
}

fn lead_sentence(view: &View<'_>, zone: &ZoneFacts, denial: &str, scheme: &str) -> Option<String> {
    let facts = view.algorithms().into_iter().find(|facts| facts.scheme == scheme)?;
    let each = view.levels().into_iter().filter_map(|level| {
        let times = view.find(Job::Sign, &zone.zone, level, &facts.algorithm, denial)?.cpu_times?;
        let theirs =
            published_time(scheme, level).map_or_else(String::new, |time| format!(" (published: {time})"));
        Some(format!("{} times with {level}{theirs}", ratio(times)))
    });
    let each: Vec<String> = each.collect();
    if each.is_empty() {
        return None;
    }
    let of = |algorithm: &str| view.find_any(Job::Sign, &zone.zone, algorithm, denial)?.octets;
    let size = of(&facts.algorithm).zip(of(&view.base)).map(|(own, base)| own as f64 / base as f64);
    let size =
        size.map_or_else(String::new, |size| format!("; the zone file has {size:.1} times the octets"));
    Some(format!("{}: the CPU time of signing is {}{size}.", marked(facts), each.join(", ")))
}

fn published_time(scheme: &str, level: &str) -> Option<String> {
    let table = published::table("pqc-signing-times")?;
    let place = table.columns.iter().position(|column| column == level)?;
    let row = table.rows.iter().find(|row| row.first().is_some_and(|cell| cell.print() == scheme))?;
    row.get(place).map(published::Cell::print)
}

pub(super) fn facts(view: &View<'_>) -> Vec<(String, String)> {
    let about = view.about;
    let mut facts = vec![("Took".to_owned(), duration(about.seconds))];
    facts.push((
        "Kept on".to_owned(),
        about.cpu.map_or_else(|| "no CPU of its own: all were used".to_owned(), |cpu| format!("CPU {cpu}")),
    ));
    facts.extend(
        about.levels.iter().map(|facts| (format!("Program, {}", facts.level), facts.version.clone())),
    );
    facts
}

/// Which cells were measured how often, and which were not.
pub(super) fn run(view: &View<'_>, parameters: &Parameters) -> Vec<Block> {
    let limit = parameters.minutes.limit().map_or_else(
        || "There was no limit of time.".to_owned(),
        |limit| {
            format!(
                "Nothing was begun that was expected to end later than {} after the start. Where that leaves something \
                 out, the study's algorithms come before the additions, and the largest zone is signed with the last \
                 mechanism alone.",
                duration(limit.as_secs_f64())
            )
        },
    );
    let asked = format!(
        "Asked for: {} runs of {} algorithms, {} mechanisms, {} levels and {} zones. {limit} The table has the runs of signing \
         at {}.",
        parameters.runs.value(),
        view.about.algorithms.len(),
        parameters.denial.len(),
        view.about.levels.len(),
        view.about.zones.len(),
        view.levels().join(" / "),
    );
    let mut blocks = vec![Block::Paragraph(asked), Block::Table(runs(view))];
    if !view.about.left_out.is_empty() {
        let text = "Left out for lack of time; --full, or --set minutes=0, measures it:";
        blocks.push(Block::Paragraph(text.to_owned()));
        blocks.push(Block::Notes(view.about.left_out.clone()));
    }
    blocks
}

/// Runs of each zone and mechanism by algorithm.
fn runs(view: &View<'_>) -> Table {
    let mut columns = ["zone", "denial"].map(Column::text).to_vec();
    columns.extend(view.algorithms().into_iter().map(|facts| Column::figures("", &marked(facts))));
    let mut rows = Vec::new();
    for zone in view.zones() {
        for (denial, denial_title) in view.denials() {
            let count = |algorithm: &str, level: &str| {
                let line = view.find(Job::Sign, &zone.zone, level, algorithm, &denial);
                line.and_then(|line| line.cpu).map_or_else(dash, |cpu| cpu.count.to_string())
            };
            let cell = |algorithm: &str| {
                let counts: Vec<String> =
                    view.levels().into_iter().map(|level| count(algorithm, level)).collect();
                counts.join(" / ")
            };
            let mut cells = vec![title(zone), denial_title];
            cells.extend(view.algorithms().into_iter().map(|facts| cell(&facts.algorithm)));
            rows.push(cells);
        }
    }
    Table { columns, rows, legend: Vec::new() }
}

/// How it was measured, and what differs from the study.
pub(super) fn method(view: &View<'_>, parameters: &Parameters) -> Vec<Block> {
    let jobs = format!(
        "Every job is a process of the program that operators run: `nonesuch zone sign` reads a zone file, signs it with a KSK and a \
         ZSK of one algorithm and writes the signed zone file; `nonesuch zone verify` reads that and verifies everything. \
         Reading, sorting, hashing and writing are in the times, as in the study. The keys are the same at every level. A \
         round goes over all algorithms and levels of one zone and mechanism, with ECDSA P-256 in each; rounds follow each \
         other {} times, as far as there is time. Programs have all CPUs of the machine{}.",
        parameters.runs.value(),
        view.about
            .cpu
            .map_or_else(String::new, |cpu| format!(" in principle; here all were kept on CPU {cpu}")),
    );
    let levels = "A level is kept to by a program that was built for it, with what lies above it masked from the libraries that \
        choose code when they start. AES, SHA, ADX and RDRAND instructions, which no level has, are masked in both.";
    let study = "What differs from the study: it signed the real .nl (more than 10 million signed RRsets), .se and .nu on a Xeon \
        Gold 5115 with 16 runs, by other programs with other code for each algorithm. Here generated zones imitate the shares of \
        delegations, DS and glue of those zones (docs/generated-zones.md), unless a zone file was given; they are smaller unless \
        --full was asked for. Ratios depend on the base: code that signs faster with ECDSA P-256 makes all others look slower. \
        NSEC3 has no salt and no iterations (RFC 9276). The ratios in charts are of CPU time, which does not depend on how \
        well a job spreads over CPUs; the study does not say which time it took.";
    let mut blocks = [&*jobs, levels, study].map(|text| Block::Paragraph(text.to_owned())).to_vec();
    blocks.push(Block::Table(zones(view)));
    blocks.push(Block::Table(algorithms(view)));
    let programs = view.about.levels.iter().map(|facts| (facts.level.clone(), program(facts)));
    blocks.push(Block::Terms(programs.collect()));
    blocks
}

fn zones(view: &View<'_>) -> Table {
    let mut columns = ["zone", "apex", "from"].map(Column::text).to_vec();
    columns.extend(
        ["records", "names", "delegations", "with DS", "MB"].map(|title| Column::figures("unsigned", title)),
    );
    let row = |zone: &ZoneFacts| {
        let counts = [zone.records, zone.names, zone.delegations, zone.signed_delegations];
        let mut cells = vec![title(zone), zone.origin.clone(), zone.source.clone()];
        cells.extend(counts.map(|count| grouped(count as i64)));
        cells.push(figure(zone.octets as f64 / 1e6));
        cells
    };
    Table { columns, rows: view.about.zones.iter().map(row).collect(), legend: Vec::new() }
}

fn algorithms(view: &View<'_>) -> Table {
    let columns = vec![
        Column::text("algorithm"),
        Column::text("scheme"),
        Column::text("implementation"),
        Column::text("in the study"),
        Column::figures("", "octets of a signature"),
    ];
    let row = |facts: &super::AlgorithmFacts| {
        vec![
            facts.algorithm.clone(),
            marked(facts),
            facts.library.clone(),
            if facts.addition { "no" } else { "yes" }.to_owned(),
            grouped(facts.signature_octets as i64),
        ]
    };
    Table { columns, rows: view.algorithms().into_iter().map(row).collect(), legend: Vec::new() }
}

fn program(facts: &LevelFacts) -> String {
    let mut text = facts.version.clone();
    for (name, value) in &facts.environment {
        text.push_str(&format!("; {name}={value}"));
    }
    text
}
