//! The words around the figures: what they mean and how they were come by.

use super::super::ROUNDS;
use super::super::figures::{Comparison, Row};
use crate::machine::Machine;
use crate::report::{Block, Section, figure, grouped};

pub(super) const WORK: &str = "Time on the wall that all CPUs together took, in memory: no reading and writing of files. \
    Whiskers go from the fastest run to the slowest. Shorter is better.";
pub(super) const SIZE: &str = "The zone file holds one record on a line with absolute names. Resident memory is the server's \
    after it has answered all queries. Shorter is better.";
pub(super) const RESPONSES: &str = "Mean size of a DNS message over UDP, asked for with the DO bit and room for 1232 octets. \
    Both charts have the same axis. Shorter is better; no bar: responses were truncated, because they do not fit.";
pub(super) const SERVER: &str = "CPU time, in the program and in the kernel, that the server spent on a query, and queries \
    that it answered in a second. Whiskers go from the least round to the most. CPU time: shorter is better; queries a \
    second: longer is better.";
pub(super) const ZONE_LEGEND: &str = "wall: time on the wall, the median of the runs; from–to: the fastest and the slowest run. \
    CPU: time of all threads, the mean of the runs.";
pub(super) const LOAD_LEGEND: &str = "ready: from the server's start until it listened. octets: the mean size of a response. \
    from–to: the least and the most of the rounds. TC: truncated responses. lost: queries without a response within a second.";

/// Below the table on the terminal, at most four lines.
pub(super) fn terminal_legend(reference: Option<&Row>, has_notes: bool) -> Vec<String> {
    let mut legend = Vec::with_capacity(4);
    let work = "CPU s: processor time of all cores, in memory.";
    legend.push(match reference {
        Some(row) => format!("×: against {}. {work}", row.label()),
        None => work.to_owned(),
    });
    legend.push(
        "exist., denied: queries for names that exist, and that do not (UDP, DO). Octets are means; TC: so many truncated.".to_owned(),
    );
    legend.push(
        "server MiB: its resident memory after the load. µs/query: its CPU time. q/s: answers a second."
            .to_owned(),
    );
    if has_notes {
        legend.push("!: see the notes below.".to_owned());
    }
    legend
}

/// `text` in lines of at most `width` columns, the later ones indented, broken between words.
pub(super) fn fold(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            Some(_) => lines.push(format!("  {word}")),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// What the page is about.
pub(super) fn lead(comparison: &Comparison) -> String {
    let signed = comparison.rows.iter().filter(|row| row.algorithm.is_some()).count();
    format!(
        "The zone {} was signed in {signed} ways, each an algorithm with a mechanism to deny that names exist. Each signed \
         zone was verified, served and asked, and so was the unsigned one, beside which the cost of the others shows.",
        comparison.zone.origin
    )
}

/// Zone, machine and make.
pub(super) fn facts(comparison: &Comparison) -> Vec<(String, String)> {
    let (zone, machine) = (&comparison.zone, &comparison.machine);
    let count = |value: u64| grouped(value as i64);
    let facts = [
        ("Zone", format!("{}, {}", zone.origin, zone.source)),
        ("Records", format!("{} at {} names", count(zone.records), count(zone.names))),
        (
            "Delegations",
            format!("{}, {} of them signed", count(zone.delegations), count(zone.signed_delegations)),
        ),
        ("Unsigned zone file", format!("{} MB", figure(zone.octets as f64 / super::MEGA))),
        ("CPU", format!("{}, {} usable", machine.cpu, machine.cpus)),
        ("Memory", format!("{} GiB", figure(machine.memory_kib as f64 / (1024.0 * 1024.0)))),
        ("System", machine.system.clone()),
        ("Made by", format!("Nonesuch {} ({})", machine.nonesuch, compiler(machine))),
        ("Made at", comparison.date.clone()),
        ("Command", comparison.command.clone()),
    ];
    facts.map(|(word, value)| (word.to_owned(), value)).to_vec()
}

fn compiler(machine: &Machine) -> &str {
    if machine.rustc.is_empty() { "compiler unknown" } else { &machine.rustc }
}

/// How it was measured.
pub(super) fn method(comparison: &Comparison) -> Section {
    let machine = &comparison.machine;
    let places = match (machine.server_cpu, machine.load_cpu) {
        (Some(server), Some(load)) => format!(
            "The server was kept on CPU {server} and the load generator on CPU {load}: queries a second are those of one CPU."
        ),
        _ => "The server and the load generator were not kept on CPUs of their own.".to_owned(),
    };
    let work = "For each way a KSK and a ZSK of the same strength were made. Signing takes the unsigned zone in memory to \
                the signed zone in memory; verifying checks every signature, every type bit map and the whole chain of \
                that zone against the KSK. Both use all CPUs. Quick work was repeated up to five times: the time on the \
                wall is the median, CPU time the mean.";
    let load = format!(
        "The signed zone was written to a file, and a server, a process of its own, was started on it. One thread kept 256 \
         queries outstanding, over UDP on the loopback address, with EDNS, DO set and a payload size of 1232 octets. After \
         a short warm-up there were {} rounds of {} s for existing names and as many for denied ones, in turn. CPU time is \
         what the system counted for the server's process, in the program and in the kernel, in steps of 10 ms. {places}",
        if comparison.rounds == 0 { ROUNDS } else { comparison.rounds },
        comparison.seconds_per_load
    );
    let bounds = "What does not show here: the network between servers and resolvers, TCP after truncated responses, and \
                  the work of resolvers. Figures of one machine compare with each other; those of another machine, or of \
                  the same one under other load, differ.";
    let blocks = [work, &load, bounds].map(|text| Block::Paragraph(text.to_owned()));
    Section { title: "How it was measured".to_owned(), blocks: blocks.to_vec() }
}

/// What the words mean.
pub(super) fn terms() -> Section {
    let terms = [
        (
            "Algorithm",
            "The DNSSEC signature algorithm of both keys; for RSA with the length of the keys in bits. A * marks what \
             the notes at the top name as no settled standard.",
        ),
        ("NSEC", "Denial by the neighbours of a name in the order of the zone, in clear text (RFC 4034)."),
        (
            "NSEC3",
            "Denial by the neighbours of a name's hash, here without salt and additional iterations (RFC 5155, 9276).",
        ),
        (
            "NSEC3 opt-out",
            "NSEC3 without records for delegations to unsigned zones (RFC 5155 §6): such a delegation could be added or taken away unnoticed.",
        ),
        ("Existing names", "Queries for names of the zone, mostly referrals where it mostly delegates."),
        ("Denied names", "Queries for names that the zone has not: the response proves that (NXDOMAIN)."),
        ("Unsigned", "The same zone without DNSSEC, served by the same server and asked the same queries."),
        ("Resident memory", "Pages of the server's process that are in memory, shared ones counted in full."),
        ("MB, MiB", "1,000,000 octets; 1,048,576 octets."),
    ];
    let terms = terms.map(|(word, meaning)| (word.to_owned(), meaning.to_owned())).to_vec();
    Section { title: "What the words mean".to_owned(), blocks: vec![Block::Terms(terms)] }
}
