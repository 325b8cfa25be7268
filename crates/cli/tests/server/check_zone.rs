//! `check zone` on servers of a local tree, and `query --svg`.

use super::resolve::start_tree;
use crate::common::configured::Configured;
use crate::common::{Ended, Running, done, folder, nonesuch, run, serve_at, text};
use nonesuch_testing::record_skip;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// A tree with one server for each zone, which is started.
struct Tree {
    folder: tempfile::TempDir,
    servers: Vec<Running>,
}

const TREE: &str = "first-address = \"127.78.1.1\"\n[[zone]]\norigin = \".\"\n[[zone]]\norigin = \"example.\"\n\
    denial = \"nsec3\"\n[[zone]]\norigin = \"zone.example.\"\n";

impl Tree {
    fn start() -> Self {
        let folder = folder();
        let (description, out) = (folder.path().join("tree.toml"), folder.path().join("tree"));
        fs::write(&description, TREE).expect("written");
        done(["lab", "tree", text(&description), "--out", text(&out)]);
        let mut servers: Vec<Running> = Vec::new();
        for (index, zone) in ["@", "example", "zone.example"].into_iter().enumerate() {
            let port = servers.first().map_or(0, |first| first.address.port());
            let listen = format!("127.78.1.{}:{port}", index + 1);
            servers.push(serve_at(&out.join("zones").join(zone), &listen, &[]));
        }
        Self { folder, servers }
    }

    fn path(&self, file: &str) -> String {
        text(&self.folder.path().join(file)).to_owned()
    }

    /// Runs the check with these arguments, after those for the tree.
    fn check(&self, arguments: &[&str]) -> Ended {
        let (hints, anchor) = (self.path("tree/root.hints"), self.path("tree/anchor.ds"));
        let port = self.servers[0].address.port().to_string();
        let tree = ["check", "zone", "--hints", &hints, "--anchor", &anchor, "--port", &port];
        run(&mut nonesuch(tree.iter().chain(arguments)))
    }
}

#[test]
fn a_delegation_is_checked_and_its_chain_of_trust_drawn() {
    let tree = Tree::start();
    let [svg, html, junit] = ["chain.svg", "check.html", "check.xml"].map(|file| tree.path(file));
    let all = tree.check(&["zone.example", "--svg", &svg, "--html", &html, "--junit", &junit, "--json"]);
    // The zone has one nameserver.
    assert_eq!(all.status, 1, "{}", all.text());
    let report: serde_json::Value = serde_json::from_str(&all.stdout).expect("JSON");
    let items = report["items"].as_array().expect("items");
    let failed = items.iter().filter(|item| item["result"] == "fail");
    let failed: Vec<&str> = failed.filter_map(|item| item["id"].as_str()).collect();
    assert_eq!(failed, ["Z-010"], "{}", all.stdout);
    let drawing = fs::read_to_string(&svg).expect("a picture");
    for part in ["zone . – secure", "zone zone.example. – secure", "trust anchor", "zone.example. SOA"] {
        assert!(drawing.contains(part), "{part}: {drawing}");
    }
    let page = fs::read_to_string(&html).expect("a page");
    assert!(page.contains("<svg class=\"trust\"") && page.contains("Z-056"));
    assert!(fs::read_to_string(&junit).expect("a file").contains("Z-010"));

    let some = tree.check(&["zone.example", "--item", "Z-040", "--item", "Z-056", "--item", "Z-060"]);
    assert_eq!(some.status, 0, "{}", some.text());
    let explained = tree.check(&["zone.example", "--explain", "Z-002"]).expect_done("explained");
    assert!(explained.stdout.contains("RFC 1034 §4.3.5") && explained.stdout.contains("zone.example."));
    let missing = tree.check(&["missing.example", "--item", "Z-001", "--item", "Z-020"]);
    assert_eq!(missing.status, 1, "{}", missing.text());
    assert!(missing.stdout.contains("have no NS records for missing.example."), "{}", missing.stdout);
}

/// A shell command that runs its arguments after the first one in a mount namespace of their own, in which the
/// first one is the list of resolvers of the system.
const WITH_RESOLVERS: &str = r#"mount --bind "$0" /etc/resolv.conf && exec "$@""#;

#[test]
fn the_servers_are_found_through_the_resolvers_of_the_system() {
    let folder = folder();
    let Some((_servers, hints)) = start_tree(folder.path(), 55) else { return };
    let list = folder.path().join("resolv.conf");
    fs::write(&list, "# of the test\nnameserver 127.53.55.100\n").expect("written");
    let in_namespace = |command: &Command| {
        let mut inside = Command::new("unshare");
        inside.args(["--mount", "sh", "-c", WITH_RESOLVERS, text(&list)]);
        inside.arg(command.get_program()).args(command.get_args());
        run(&mut inside)
    };
    // Without the mount, the check would query other resolvers.
    let mut compare = Command::new("cmp");
    compare.args([text(&list), "/etc/resolv.conf"]);
    if in_namespace(&compare).status != 0 {
        return record_skip("mount namespaces cannot be used");
    }
    let anchor = hints.with_file_name("anchor.ds");
    let resolver = ["--listen", "127.53.55.100:53", "--hints", text(&hints), "--anchor", text(&anchor)];
    let resolver =
        Configured::start_command("resolve", &resolver, &folder.path().join("resolver"), Stdio::null());
    let checked =
        in_namespace(&nonesuch(["check", "zone", "z1.example", "--anchor", text(&anchor), "--json"]));
    let report: serde_json::Value =
        serde_json::from_str(&checked.stdout).unwrap_or_else(|_| panic!("{}", checked.text()));
    let items = report["items"].as_array().expect("items");
    let result = |id: &str| items.iter().find(|item| item["id"] == id).expect("an item")["result"].clone();
    // The zone has one nameserver.
    let failed = items.iter().filter(|item| item["result"] == "fail");
    assert_eq!(failed.filter_map(|item| item["id"].as_str()).collect::<Vec<_>>(), ["Z-010"], "{report:#}");
    for id in ["Z-001", "Z-003", "Z-020", "Z-040", "Z-056"] {
        assert_eq!(result(id), "pass", "{report:#}");
    }
    let stopped = resolver.stop();
    assert!(stopped["datagrams_in"].as_u64() > Some(0), "{stopped}");
}

#[test]
fn a_planned_delegation_is_checked() {
    let tree = Tree::start();
    let server = "ns1.zone.example/127.78.1.3";
    let key = fs::read_dir(tree.path("tree/keys/zone.example")).expect("keys");
    assert!(key.count() > 0);
    let ds = done(["key", "ds", "zone.example.", "--dir", &tree.path("tree/keys/zone.example")]).stdout;
    let ds = ds.split_once(" DS ").or_else(|| ds.split_once("\tDS\t")).expect("a DS record").1;
    let ds = ds.lines().next().expect("a line").split(';').next().expect("RDATA").trim().to_owned();
    let checked = [
        "zone.example",
        "--ns",
        server,
        "--ds",
        &ds,
        "--item",
        "Z-040",
        "--item",
        "Z-041",
        "--item",
        "Z-056",
    ];
    let sound = tree.check(&checked);
    assert_eq!(sound.status, 0, "{}", sound.text());
    let wrong = "1 13 2 0000000000000000000000000000000000000000000000000000000000000000";
    let faulty = tree.check(&["zone.example", "--ns", server, "--ds", wrong, "--item", "Z-040"]);
    assert_eq!(faulty.status, 1, "{}", faulty.text());
    assert!(faulty.stdout.contains("no DNSKEY record has the key tag 1"), "{}", faulty.stdout);
}

#[test]
fn arguments_that_cannot_be_used_are_rejected() {
    let error = |arguments: &[&str]| {
        let ended = run(&mut nonesuch(arguments));
        assert_eq!(ended.status, 2, "{arguments:?} {}", ended.text());
        ended.text()
    };
    let check = |more: &[&str]| error(&[&["check", "zone", "zone.example"][..], more].concat());
    assert!(check(&["--ns", "ns1.zone.example"]).contains("give its address"));
    assert!(check(&["--ns", "ns/192.0.2.1", "--ds", "1 13 2"]).contains("not a DS record"));
    assert!(
        check(&["--ns", "ns/192.0.2.1", "--ds", "1 13 2 00\nzone.example. NS a."])
            .contains("not a DS record")
    );
    assert!(check(&["--hints", "/nonexistent/hints"]).contains("/nonexistent/hints"));
    assert!(check(&["--item", "Z-999", "--from-root"]).contains("Z-999"));
    assert!(check(&["--from-root", "--svg", "/nonexistent/chain.svg"]).contains("/nonexistent"));
    assert!(error(&["check", "zone"]).contains("ZONE"));
    assert!(error(&["query", "a.", "@127.0.0.1", "--svg", "/tmp"]).contains("/tmp"));
    let directory = folder();
    let file = text(&directory.path().join("chain.svg")).to_owned();
    assert!(error(&["query", "a.", "@127.0.0.1", "--svg", &file]).contains("--from-root"));
    assert!(!Path::new(&file).exists());
}
