//! Zone files and lists as input.

use super::{done, folder, number, rejected, report, table, text};
use std::fs;
use std::path::Path;

const ZONE: &str = "$ORIGIN example.\n$TTL 3600\n@ SOA ns h 2020022901 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n\
    a NS ns1.one.test.\na DS 1 13 2 0123456789012345678901234567890123456789012345678901234567890123\n\
    a DS 2 8 1 0123456789012345678901234567890123456789\n\
    B NS ns.two.co.uk.\nb NS ns.a\nglue.b NS ns1.one.test.\nns.a A 192.0.2.2\nplain TXT x\n";

fn write(folder: &Path, name: &str, contents: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, contents).expect("written");
    text(&path).to_owned()
}

#[test]
fn the_delegations_of_a_zone_are_rows() {
    let folder = folder();
    let (snapshots, out) = (folder.path().join("snapshots"), folder.path().join("report"));
    let zone = write(folder.path(), "example.zone", ZONE);
    done(&["import", &zone, "--out", text(&snapshots)]);
    assert!(snapshots.join("example-2020-02-29.parquet").exists());
    report(&snapshots, &out);
    // A zone cut below a zone cut, and the name with a TXT record, are no delegations.
    let [status] = &table(&out, "status")[..] else { panic!() };
    assert_eq!((&status["source"][..], &status["date"][..]), ("example", "2020-02-29"));
    assert_eq!(["domains", "signed", "unsigned"].map(|column| number(status, column)), [2, 1, 1]);
    let algorithms = table(&out, "algorithms");
    let numbers: Vec<u64> = algorithms.iter().map(|row| number(row, "algorithm")).collect();
    assert_eq!(numbers, [8, 13]);
    let operators = table(&out, "operators");
    let names: Vec<&str> = operators.iter().map(|row| &row["operator"][..]).collect();
    // Only operators with signed domains have names.
    assert_eq!(names, ["(others)", "one.test"]);
}

#[test]
fn lists_and_csv_files_are_rows() {
    let folder = folder();
    let (snapshots, out) = (folder.path().join("snapshots"), folder.path().join("report"));
    let list = write(
        folder.path(),
        "com.txt",
        "# domain algorithms digests server\na.com 13 2 ns1.one.test\nb.com 8,13\nC.com. -\n",
    );
    let csv = write(
        folder.path(),
        "top.csv",
        "domain,dnskey_algorithms,ds_algorithms,denial,nsec3_iterations,nsec3_salt,nsec3_opt_out,rank\n\
         a.com,13,13,nsec3,0,-,false,1\nb.com,\"8,13\",-,nsec,,,,2000\nc.com,-,-,,,,,2000000\nd.com,,,,,,,\n",
    );
    done(&["import", &list, "--out", text(&snapshots), "--source", "com", "--date", "2020-01-01"]);
    done(&["import", &csv, "--out", text(&snapshots), "--source", "top", "--date", "2020-01-01"]);
    report(&snapshots, &out);
    let [com, top] = &table(&out, "status")[..] else { panic!() };
    let columns = ["domains", "signed", "dnskey_without_ds", "unsigned", "unknown"];
    assert_eq!(columns.map(|column| number(com, column)), [3, 2, 0, 1, 0]);
    assert_eq!(columns.map(|column| number(top, column)), [4, 1, 1, 1, 1]);
    assert_eq!(top["signed_share"].parse::<f64>().expect("a share"), 1.0 / 3.0);
    let ranks = table(&out, "ranks");
    let classes: Vec<u64> = ranks.iter().map(|row| number(row, "rank_up_to")).collect();
    assert_eq!(classes, [1000, 10_000, i32::MAX as u64]);
    let [nsec3] = &table(&out, "nsec3_summary")[..] else { panic!() };
    assert_eq!(["domains", "rfc9276", "opt_out"].map(|column| number(nsec3, column)), [1, 1, 0]);
}

#[test]
fn invalid_lists_are_rejected_with_the_line() {
    let folder = folder();
    let out = folder.path().join("snapshots");
    let cases = [
        ("a.txt", "a.com 13\nb.com thirteen\n", ":2: \"thirteen\" is not an algorithm"),
        ("b.txt", "a.com 13\na.com 8\n", "the domain a.com is on the lines 1 and 2"),
        ("c.txt", "a.com\n", ":1: has 1 words"),
        ("d.txt", "# nothing\n", "has no delegations"),
        ("e.csv", "domain,colour\na.com,red\n", "unknown column \"colour\""),
        ("f.csv", "domain,rank\na.com,0\n", ":2: rank is 0"),
        ("g.csv", "domain,denial\na.com\n", ":2: "),
        ("h.csv", "domain,denial\na.com,nsec6\n", ":2: denial is \"nsec6\""),
        ("i.zone", "example. SOA ns h\n", "i.zone:1:"),
    ];
    for (name, contents, message) in cases {
        let file = write(folder.path(), name, contents);
        let error =
            rejected(&["import", &file, "--out", text(&out), "--source", "com", "--date", "2020-01-01"]);
        assert!(error.contains(message) && error.contains(name), "{name}: {error}");
    }
    assert_eq!(fs::read_dir(&out).expect("a directory").count(), 0);
}

#[test]
fn what_the_input_does_not_tell_must_be_given() {
    let folder = folder();
    let out = folder.path().join("snapshots");
    let list = write(folder.path(), "com.txt", "a.com 13\n");
    let zone = write(folder.path(), "x.zone", &ZONE.replace("2020022901", "7"));
    let other = write(folder.path(), "x", "a.com 13\n");
    for (file, more, option) in [
        (&list, &["--source", "com"][..], "--date"),
        (&list, &["--date", "2020-01-01"], "--source"),
        (&zone, &[], "--date"),
        (&other, &["--date", "2020-01-01", "--source", "com"], "--format"),
        (&list, &["--date", "2020-01-01", "--source", "../com"], "../com"),
    ] {
        let error = rejected(&[&["import", file, "--out", text(&out)], more].concat());
        assert!(error.contains(option), "{option}: {error}");
    }
}
