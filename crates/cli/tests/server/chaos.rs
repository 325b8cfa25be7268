//! Queries in class CH (RFC 4892) with dig and kdig.

use crate::common;
use common::configured::{Configured, configure, plain_zone, write_beside};
use common::{folder, nonesuch, run, text};
use nonesuch_testing::require_peer;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

const NAMES: [&str; 4] = ["id.server.", "hostname.bind.", "version.server.", "version.bind."];

fn start(dir: &Path, top: &str) -> Configured {
    fs::write(dir.join("zone"), plain_zone("example.", 1)).expect("written");
    Configured::start(&configure(dir, &format!("{top}[zone.\"example.\"]\nfile = \"zone\"\n")))
}

/// The texts that dig gets from a server, one for each name, or the response code.
fn ask(server: SocketAddr, name: &str, rtype: &str) -> String {
    let port = server.port().to_string();
    // dig binds with `SO_REUSEPORT`. From the server's address it could get the server's port, send
    // to itself and print its own query.
    let source = ["-b", "127.0.0.2"];
    let fixed = ["@127.0.0.1", "-p", &port, "+tries=1", "+time=10", "+noall", "+comments", "+answer"];
    let said = run(Command::new("dig").args(source).args(fixed).args(["-c", "CH", "-t", rtype, name])).stdout;
    let answer = said.lines().find(|line| line.to_ascii_lowercase().starts_with(name));
    let answer = answer.map(|line| line.split_whitespace().skip(1).collect::<Vec<_>>().join(" "));
    let rcode = said.split("status: ").nth(1).and_then(|rest| rest.split(',').next());
    answer.or_else(|| rcode.map(str::to_owned)).unwrap_or(said)
}

#[test]
fn a_server_says_what_is_configured_and_refuses_all_else() {
    require_peer!("dig");
    let (bare, named, full) = (folder(), folder(), folder());
    let cases = [
        (start(bare.path(), ""), ["REFUSED"; 4]),
        (
            start(named.path(), "nsid = \"ns1\"\n"),
            ["0 CH TXT \"ns1\"", "0 CH TXT \"ns1\"", "REFUSED", "REFUSED"],
        ),
        (
            start(full.path(), "nsid = \"0xff00\"\nidentity = \"two\"\nserver-version = \"a \\\"b\\\"\"\n"),
            ["0 CH TXT \"two\"", "0 CH TXT \"two\"", "0 CH TXT \"a \\\"b\\\"\"", "0 CH TXT \"a \\\"b\\\"\""],
        ),
    ];
    for (server, expected) in &cases {
        for (name, expected) in NAMES.iter().zip(expected) {
            assert_eq!(ask(server.address, name, "TXT"), *expected, "{name}");
        }
        for (name, rtype) in
            [("authors.bind.", "TXT"), ("id.server.", "A"), ("example.", "SOA"), ("server.", "ANY")]
        {
            assert_eq!(ask(server.address, name, rtype), "REFUSED", "{name} {rtype}");
        }
    }
    // A reload changes the texts.
    let (server, _) = &cases[1];
    let text = fs::read_to_string(&server.configuration).expect("a file").replace("ns1", "ns9");
    write_beside(&server.configuration, &text);
    server.ctl(&["reload"]).expect_done("reload");
    assert_eq!(ask(server.address, "id.server.", "TXT"), "0 CH TXT \"ns9\"");
}

#[test]
fn kdig_asks_in_its_own_words() {
    require_peer!("kdig");
    let folder = folder();
    let server = start(folder.path(), "identity = \"ns1\"\n");
    let port = server.address.port().to_string();
    let ask = |words: &[&str]| run(Command::new("kdig").args(["@127.0.0.1", "-p", &port]).args(words)).stdout;
    assert_eq!(ask(&["+short", "CH", "TXT", "id.server."]).trim(), "\"ns1\"");
    assert!(ask(&["CH", "TXT", "version.bind."]).contains("status: REFUSED"));
}

#[test]
fn what_is_too_long_is_refused() {
    let folder = folder();
    for key in ["identity", "server-version"] {
        let path = configure(folder.path(), &format!("{key} = \"{}\"\n", "x".repeat(256)));
        let ended = run(&mut nonesuch(["serve", "--config", text(&path), "--check"]));
        assert_eq!(ended.status, 2);
        assert!(ended.stderr.contains(&format!("{key}: ")), "{}", ended.text());
    }
}
