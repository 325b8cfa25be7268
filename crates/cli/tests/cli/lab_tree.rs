//! `nonesuch lab tree`: output and rejected descriptions. `peers/trees.rs` serves a tree.

use crate::common;
use common::{done, folder, nonesuch, run, snapshot, text};
use std::fs;

const DESCRIPTION: &str = "[[zone]]\norigin = \".\"\n[[zone]]\norigin = \"example.\"\nalgorithm = \"ed25519\"\n\
    [[zone]]\norigin = \"z#.example.\"\ncount = 2\nsigned = false\nserver = \"127.53.9.9\"\n\
    faults = [{ fault = \"cname-loop\" }]\n";

#[test]
fn a_summary_lists_zones_servers_and_faults() {
    let folder = folder();
    fs::write(folder.path().join("tree.toml"), DESCRIPTION).expect("written");
    let ended = run(nonesuch(["lab", "tree", "tree.toml", "--out", "tree"]).current_dir(folder.path()));
    let shown = ended.expect_done("lab tree").stdout;
    snapshot::check("lab tree", "summary", &shown);
    assert!(folder.path().join("tree/zones/z1.example").is_file());
}

#[test]
fn equal_seeds_and_times_give_equal_zones() {
    let folder = folder();
    let file = folder.path().join("tree.toml");
    fs::write(&file, DESCRIPTION.replace("origin = \".\"", "origin = \".\"\nalgorithm = \"ed448\""))
        .expect("written");
    let zone = |out: &str, seed: &str| {
        let out = folder.path().join(out);
        let time = "2026-03-01T12:00:00Z";
        done(["lab", "tree", text(&file), "--out", text(&out), "--seed", seed, "--now", time]);
        fs::read_to_string(out.join("zones/@")).expect("a zone")
    };
    let first = zone("a", "1");
    assert_eq!(first, zone("b", "1"));
    assert_ne!(first, zone("c", "2"));
}

#[test]
fn descriptions_with_faults_are_rejected_with_one_line() {
    let folder = folder();
    let cases = [
        ("unknown algorithm", "ed25519", "rot13"),
        ("unknown fault", "cname-loop", "loop"),
        ("no root", "origin = \".\"", "origin = \"net.\""),
        ("zone described twice", "z#.", ""),
        ("address that is not loopback", "127.53.9.9", "192.0.2.1"),
        ("fault of an unsigned zone", "cname-loop", "missing-denial"),
    ];
    for (case, old, new) in cases {
        fs::write(folder.path().join("tree.toml"), DESCRIPTION.replace(old, new)).expect("written");
        let ended = run(nonesuch(["lab", "tree", "tree.toml", "--out", "tree"]).current_dir(folder.path()));
        assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{case}: {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{case}");
        snapshot::check("lab tree", case, &ended.stderr);
        assert!(!folder.path().join("tree").exists(), "{case}");
    }
}
