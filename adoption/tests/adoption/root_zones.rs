//! The two real root zones: the report has the counts of an independent reader, and those that awk finds.

use super::{CsvRow, adoption, done, folder, number, public_data, report, table, text};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// Counts of a root zone.
#[derive(Debug, PartialEq)]
struct Counts {
    delegations: usize,
    with_ds: usize,
    /// Delegations by algorithm and by digest type of their DS records.
    algorithms: BTreeMap<u8, usize>,
    digests: BTreeMap<u8, usize>,
}

/// Counts the records of a root zone, whose lines have owner, TTL, class, type and RDATA.
fn count_lines(path: &Path) -> Counts {
    let zone = fs::read_to_string(path).expect("a zone");
    let (mut delegations, mut algorithms, mut digests) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for line in zone.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [owner, _, "IN", kind, data @ ..] = &words[..] else { continue };
        let owner = owner.to_ascii_lowercase();
        if *kind == "NS" && owner != "." {
            delegations.insert(owner);
        } else if *kind == "DS" {
            algorithms.insert((data[1].parse().expect("an algorithm"), owner.clone()));
            digests.insert((data[2].parse().expect("a digest type"), owner));
        }
    }
    let count = |pairs: &BTreeSet<(u8, String)>| {
        let mut counts = BTreeMap::new();
        pairs.iter().for_each(|(number, _)| *counts.entry(*number).or_default() += 1);
        counts
    };
    Counts {
        delegations: delegations.len(),
        with_ds: algorithms.iter().map(|(_, owner)| owner).collect::<BTreeSet<_>>().len(),
        algorithms: count(&algorithms),
        digests: count(&digests),
    }
}

/// Returns the counts of a snapshot in the tables of a report.
fn counts_of(out: &Path, date: &str) -> Counts {
    let rows = |name: &str| -> Vec<CsvRow> {
        table(out, name).into_iter().filter(|row| row["date"] == date && row["source"] == ".").collect()
    };
    let by = |name: &str, column: &str| {
        let pairs = rows(name)
            .into_iter()
            .map(|row| (row[column].parse().expect("a number"), number(&row, "domains") as usize));
        pairs.collect()
    };
    let [status] = &rows("status")[..] else { panic!("no snapshot of {date}") };
    assert_eq!(number(status, "signed") + number(status, "unsigned"), number(status, "domains"));
    Counts {
        delegations: number(status, "domains") as usize,
        with_ds: number(status, "signed") as usize,
        algorithms: by("algorithms", "algorithm"),
        digests: by("digests", "digest"),
    }
}

#[test]
fn a_report_of_the_root_zones_has_the_counts_of_their_lines() {
    let zones = ["root-zone/2014/root.zone", "root-zone/2017-root.zone"].map(public_data);
    let [Some(zone_2014), Some(zone_2017)] = zones else { return };
    let folder = folder();
    let (snapshots, out) = (folder.path().join("snapshots"), folder.path().join("report"));
    done(&["import", text(&zone_2014), text(&zone_2017), "--out", text(&snapshots)]);
    let json = report(&snapshots, &out);
    assert_eq!(
        (&json["input"]["rows"], &json["input"]["gaps"]),
        (&(629 + 1547).into(), &serde_json::json!([]))
    );

    // awk 'tolower($4) == "ns" && $1 != "." { print tolower($1) }' FILE | sort -u | wc -l
    // awk '$4 == "DS" { print tolower($1), $6 }' FILE | sort -u | awk '{ n[$2]++ } END { for (a in n) print a, n[a] }'
    let counts_2014 = Counts {
        delegations: 629,
        with_ds: 434,
        algorithms: [(5, 24), (7, 56), (8, 339), (10, 15)].into(),
        digests: [(1, 129), (2, 427)].into(),
    };
    let counts_2017 = Counts {
        delegations: 1547,
        with_ds: 1399,
        algorithms: [(5, 34), (7, 251), (8, 1080), (10, 35)].into(),
        digests: [(1, 874), (2, 1389)].into(),
    };
    for (zone, date, expected) in
        [(zone_2014, "2014-06-25", counts_2014), (zone_2017, "2017-08-21", counts_2017)]
    {
        assert_eq!(count_lines(&zone), expected);
        assert_eq!(counts_of(&out, date), expected);
    }
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("RSASHA256") && page.contains("1,399"));
}

#[test]
fn a_root_zone_without_ds_for_an_operator_is_counted_by_its_name_servers() {
    let Some(zone) = public_data("root-zone/2017-root.zone") else { return };
    let folder = folder();
    let (snapshots, out) = (folder.path().join("snapshots"), folder.path().join("report"));
    done(&["import", text(&zone), "--out", text(&snapshots)]);
    report(&snapshots, &out);
    let operators = table(&out, "operators");
    let domains: u64 = operators.iter().map(|row| number(row, "domains")).sum();
    assert_eq!((operators.len(), domains), (11, 1547));
    // A second import must not replace the first one unasked.
    let ended = adoption(&["import", text(&zone), "--out", text(&snapshots)]);
    assert!(ended.status == 2 && ended.stderr.contains("--force"), "{}", ended.stderr);
    done(&["import", text(&zone), "--out", text(&snapshots), "--force"]);
}
