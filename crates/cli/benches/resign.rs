//! Signs a zone like that of a TLD again after 1 % of its delegations changed, with P-256: `just
//! bench-resign`.
//!
//! Three ways produce the same zone, alternately: from scratch; from the new zone file and the
//! previous signed zone file; from the previous compiled signed zone and a change set, to a
//! compiled zone. CPU and wall seconds are those of the whole process. Ratios are computed for each
//! round.

#[allow(dead_code)] // this benchmark measures no peers
mod common;

use common::{MODES, Mode, ORIGIN, OURS, argument, prepare, ratio, run, spread};
use nonesuch_proto::{Rtype, rdata, text};
use nonesuch_zone::change::SerialRule;
use nonesuch_zone::write::write_zone;
use nonesuch_zone::{ChangeSet, Contents, Node, Rrset, read};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// One of this number of delegations changes.
const EVERY: usize = 100;
/// Runs per measurement of a short command, because CPU time has a resolution of 10 ms.
const REPEATS: u32 = 10;

/// One way of signing.
struct Way {
    name: &'static str,
    command: Box<dyn Fn() -> Command>,
    repeats: u32,
    cpu: Vec<f64>,
    wall: Vec<f64>,
}

fn main() {
    let (names, runs) = (argument("--names", 100_000), argument("--runs", 5));
    let dir = tempfile::tempdir().expect("a temporary directory");
    let dir = dir.path();
    let (zone, _) = prepare(dir, names);
    println!("{}; {names} delegations, ECDSAP256SHA256, KSK and ZSK, {runs} rounds", common::machine());
    println!("{}", change(&zone, dir));
    println!("share: CPU and wall of signing from scratch, median (least-greatest) of the rounds\n");
    for mode in MODES {
        sign(mode, dir, &["-f", "old.signed", "zone"]);
        sign(mode, dir, &["--compiled", "-f", "old.image", "zone"]);
        let mut ways = ways(mode, dir);
        for _ in 0..runs {
            ways.iter_mut().for_each(measure);
        }
        verify(dir);
        print(mode, &ways);
    }
}

fn command(mode: Mode, dir: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(OURS);
    command.current_dir(dir).args(["zone", "sign", "-o", ORIGIN, "--denial", mode.name(), "--keys", "."]);
    command.args(arguments);
    command
}

fn sign(mode: Mode, dir: &Path, arguments: &[&str]) {
    run(&mut command(mode, dir, arguments));
}

fn ways(mode: Mode, dir: &Path) -> [Way; 3] {
    let way = |name, repeats, arguments: &'static [&'static str]| {
        let dir = dir.to_path_buf();
        let command = Box::new(move || command(mode, &dir, arguments));
        Way { name, command, repeats, cpu: Vec::new(), wall: Vec::new() }
    };
    [
        way("from scratch", 1, &["-f", "scratch.signed", "zone.new"]),
        way("two zone files", 1, &["--previous", "old.signed", "-f", "files.signed", "zone.new"]),
        way(
            "compiled zone and changes",
            REPEATS,
            &["--previous", "old.image", "--changes", "changes", "--compiled", "-f", "new.image"],
        ),
    ]
}

/// Checks that the results verify, and that both ways produce the same zone.
fn verify(dir: &Path) {
    for made in ["files.signed", "new.image"] {
        run(Command::new(OURS).current_dir(dir).args(["zone", "verify", "-o", ORIGIN, made]));
    }
}

fn measure(way: &mut Way) {
    let (begun, before) = (Instant::now(), children_cpu());
    for _ in 0..way.repeats {
        run(&mut (way.command)());
    }
    let repeats = f64::from(way.repeats);
    way.cpu.push((children_cpu() - before) / repeats);
    way.wall.push(begun.elapsed().as_secs_f64() / repeats);
}

/// CPU seconds of all children that have ended: fields cutime and cstime of proc(5), in ticks of 10
/// ms.
fn children_cpu() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
    let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<f64>().ok()).unwrap_or(0.0);
    (ticks(13) + ticks(14)) / 100.0
}

fn print(mode: Mode, ways: &[Way]) {
    println!("{:28} {:>8} {:>8}   {:20} share of wall", mode.name(), "CPU s", "wall s", "share of CPU");
    let Some(scratch) = ways.first() else { return };
    for way in ways {
        let (cpu, wall) = (spread(&way.cpu).0, spread(&way.wall).0);
        let (of_cpu, of_wall) = (ratio(&way.cpu, &scratch.cpu), ratio(&way.wall, &scratch.wall));
        println!("  {:26} {cpu:8.3} {wall:8.3}   {of_cpu:20} {of_wall}", way.name);
    }
    println!();
}

/// Writes the files `changes` and `zone.new`; returns a description of the changes.
fn change(zone: &Path, dir: &Path) -> String {
    let origin = ORIGIN.parse().expect("a name");
    let old = read::read_file(zone, Some(&origin)).expect("the generated zone").contents;
    let text = changes(&old);
    let set = ChangeSet::parse(&text, &origin).expect("a change set");
    let new = set.apply(&old, SerialRule::Exact).expect("changes that fit");
    let mut out = Vec::new();
    write_zone(&new, &mut out).expect("memory");
    fs::write(dir.join("zone.new"), out).expect("a file");
    fs::write(dir.join("changes"), &text).expect("a file");
    let (lines, records) = (text.iter().filter(|octet| **octet == b'\n').count(), old.record_count());
    let share = lines as f64 / records as f64 * 100.0;
    format!("one in {EVERY} delegations changes: {lines} records removed or added, {share:.2} % of {records}")
}

/// Of every hundredth delegation, the name servers change, or it is removed, or another one is
/// added, or its DS RRset changes.
fn changes(zone: &Contents) -> Vec<u8> {
    let mut out = Vec::new();
    // A label has at most 63 octets, and some labels are extended.
    let fits = |node: &Node<'_>| node.name().labels().next().is_some_and(|label| label.len() < 50);
    let delegations = zone.nodes().filter(|node| node.index() > 0 && node.has(Rtype::NS) && fits(node));
    for (turn, node) in delegations.step_by(EVERY).enumerate() {
        let owner = name_text(node);
        let ttl = node.rrset(Rtype::NS).map_or(0, Rrset::ttl);
        match turn % 4 {
            0 => {
                node.rrset(Rtype::NS).into_iter().for_each(|rrset| push(&mut out, '-', node, rrset));
                let line =
                    format!("+ {owner} {ttl} IN NS ns1.other.test.\n+ {owner} {ttl} IN NS ns2.other.test.\n");
                out.extend_from_slice(line.as_bytes());
            }
            1 => {
                let below = std::iter::successors(node.next(), |node| node.next());
                let subtree = below.take_while(|below| below.name().is_below(node.name()));
                for gone in std::iter::once(node).chain(subtree) {
                    gone.rrsets().for_each(|rrset| push(&mut out, '-', gone, rrset));
                }
            }
            2 => {
                let line = format!("+ beside-{owner} {ttl} IN NS ns1.other.test.\n");
                out.extend_from_slice(line.as_bytes());
                let ds = format!("+ beside-{owner} {ttl} IN DS 1 13 2 {}\n", "0a".repeat(32));
                out.extend_from_slice(ds.as_bytes());
            }
            _ => {
                node.rrset(Rtype::DS).into_iter().for_each(|rrset| push(&mut out, '-', node, rrset));
                let line = format!("+ {owner} {ttl} IN DS 2 13 2 {}\n", "0b".repeat(32));
                out.extend_from_slice(line.as_bytes());
            }
        }
    }
    out
}

fn name_text(node: Node<'_>) -> String {
    let mut out = Vec::new();
    text::push_name(node.name(), &mut out);
    String::from_utf8(out).expect("ASCII")
}

fn push(out: &mut Vec<u8>, sign: char, node: Node<'_>, rrset: Rrset<'_>) {
    for octets in rrset.rdatas() {
        let line = format!("{sign} {} {} IN {} ", name_text(node), rrset.ttl(), rrset.rtype());
        out.extend_from_slice(line.as_bytes());
        rdata::push_text(rrset.rtype(), octets, out);
        out.push(b'\n');
    }
}
