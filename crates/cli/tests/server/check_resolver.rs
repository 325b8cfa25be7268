//! `nonesuch check resolver` and `check proxy`: a correct resolver passes every item that applies, and resolvers with
//! faults fail the right ones. The servers of each check use port 53 of loopback addresses.

use crate::common;
use common::configured::{Configured, write_beside};
use common::{Ended, done, folder, nonesuch, run, text};
use nonesuch_net::namespace::NetworkNamespace;
use nonesuch_testing::record_skip;
use std::collections::BTreeMap;
use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Results by item: "pass", "fail" or "not testable", and the text.
type Results = BTreeMap<String, (String, String)>;

/// The address of the root of a check, in a network of its own for each test; `None` if port 53 is not
/// permitted.
fn root_address(network: u8) -> Option<String> {
    if UdpSocket::bind(format!("127.{network}.0.9:53")).is_err() {
        record_skip("only root can listen on port 53");
        return None;
    }
    Some(format!("127.{network}.0.1"))
}

/// Writes the configuration of `nonesuch resolve` for the check, on a free port, with these changes.
fn configuration(folder: &Path, root: &str, changes: &[(&str, &str)]) -> PathBuf {
    let directory = folder.join("configuration");
    done([
        "check",
        "resolver",
        "--write-configuration",
        text(&directory),
        "--for",
        "nonesuch",
        "--tree-address",
        root,
    ]);
    let file = directory.join("nonesuch-check.toml");
    let mut settings =
        fs::read_to_string(&file).expect("a configuration").replace("127.0.0.1:5300", "127.0.0.1:0");
    for (from, to) in changes {
        assert!(settings.contains(from), "{settings}");
        settings = settings.replace(from, to);
    }
    write_beside(&file, &settings);
    file
}

fn start(file: &Path) -> Configured {
    Configured::start_command("resolve", &["--config", text(file)], file, Stdio::null())
}

/// Runs the check with these items, or all. Returns the exit status and the results.
fn check(server: &str, root: &str, items: &[&str]) -> (i32, Results) {
    let mut arguments = vec![server, "--tree-address", root];
    items.iter().for_each(|item| arguments.extend(["--item", *item]));
    check_with(&arguments)
}

/// Runs the check with these arguments. Returns the exit status and the results.
fn check_with(arguments: &[&str]) -> (i32, Results) {
    let ended = run(&mut nonesuch([&["check", "resolver", "--json"], arguments].concat()));
    (ended.status, results(&ended))
}

/// The results in the output of a check.
fn results(ended: &Ended) -> Results {
    let json: serde_json::Value =
        serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.text()));
    let field = |item: &serde_json::Value, name: &str| item[name].as_str().expect("text").to_owned();
    let items = json["items"].as_array().expect("items").iter();
    items.map(|item| (field(item, "id"), (field(item, "result"), field(item, "text")))).collect()
}

/// Items that need a resolver whose clock can be moved, and those that no client can test.
const NEVER_TESTABLE: [&str; 9] =
    ["F-196", "F-201", "F-202", "XF-024", "XF-070", "XF-071", "XF-072", "XF-073", "XF-074"];

/// The items with this result.
fn items_with<'r>(results: &'r Results, result: &str) -> Vec<&'r str> {
    let found = results.iter().filter(|(_, (found, _))| found == result);
    found.map(|(id, _)| id.as_str()).collect()
}

/// Asserts that all items pass except these, which are not testable.
#[track_caller]
fn assert_passes((status, results): &(i32, Results), not_testable: &[&str]) {
    let failed = items_with(results, "fail");
    assert!(failed.is_empty() && *status == 0, "{failed:?}: {results:#?}");
    assert_eq!(items_with(results, "not testable"), not_testable, "{results:#?}");
}

#[test]
fn our_resolver_passes_every_item_that_applies() {
    let Some(root) = root_address(160) else { return };
    let folder = folder();
    let changes = [("experimental-algorithms = false", "experimental-algorithms = true")];
    let resolver = start(&configuration(folder.path(), &root, &changes));
    assert_passes(&check(&resolver.address.to_string(), &root, &[]), &NEVER_TESTABLE);
}

#[test]
fn zones_with_rsa_and_sha1_are_secure_if_the_resolver_validates_them() {
    let Some(root) = root_address(166) else { return };
    let folder = folder();
    for (setting, expected) in [("insecure", "insecure: 5, 7"), ("validate", "algorithm 5: secure (AD=1)")] {
        let folder = common::made(folder.path(), setting);
        let setting = format!("sha1 = \"{setting}\"");
        let changes = [("experimental-algorithms = false", setting.as_str())];
        let resolver = start(&configuration(&folder, &root, &changes));
        let (status, results) = check(&resolver.address.to_string(), &root, &["XF-030"]);
        let (result, text) = &results["XF-030"];
        assert!(status == 0 && result == "pass" && text.contains(expected), "{text}");
    }
}

/// A root and `example.`, which delegates the domain of a check with these records.
fn start_parents(folder: &Path, root: &str, delegation: &str) -> Vec<Configured> {
    let (description, out) = (folder.join("tree.toml"), folder.join("tree"));
    let tree = format!(
        "first-address = \"{root}\"\n[[zone]]\norigin = \".\"\n[[zone]]\norigin = \"example.\"\nrecords = '''\n{delegation}'''\n"
    );
    fs::write(&description, tree).expect("written");
    done(["lab", "tree", text(&description), "--out", text(&out)]);
    let files = fs::read_dir(out.join("servers")).expect("a directory").flatten();
    files.map(|file| Configured::start(&file.path())).collect()
}

#[test]
fn our_resolver_passes_the_items_of_a_delegated_domain() {
    let Some(root) = root_address(164) else { return };
    let folder = folder();
    // Each part of the servers has an address of its own.
    let listen: Vec<String> = (1..=8).map(|last| format!("127.164.1.{last}")).collect();
    let mut delegated = vec!["--delegated", "check.example"];
    listen.iter().for_each(|address| delegated.extend(["--tree-listen", address]));
    let records = done([&["check", "resolver", "--print-delegation"], &delegated[..]].concat()).stdout;
    let _parents = start_parents(folder.path(), &root, &records);
    let file = folder.path().join("resolver.toml");
    let settings = "version = 1\nlisten = [\"127.0.0.1:0\"]\nhints = \"tree/root.hints\"\ntrust-anchors = \"tree/anchor.ds\"\n\
        experimental-algorithms = true\n[negative-anchor.\"nta.check.example.\"]\nuntil = \"2099-01-01T00:00:00Z\"\n";
    fs::write(&file, settings).expect("written");
    let resolver = start(&file);
    let server = resolver.address.to_string();
    let found = check_with(&[&[server.as_str()], &delegated[..]].concat());
    // The check does not know the trust anchors of the resolver.
    let mut not_testable = NEVER_TESTABLE.to_vec();
    not_testable.push("XF-075");
    assert_passes(&found, &not_testable);
    // With one address, a server without EDNS cannot be told from the others.
    let few = [&[server.as_str()], &delegated[..4], &["--item", "XF-003", "--item", "XF-006"]].concat();
    let (status, results) = check_with(&few);
    assert_eq!(status, 0, "{results:#?}");
    assert_eq!(items_with(&results, "not testable"), ["XF-006"], "{results:#?}");
}

#[test]
fn a_resolver_that_does_not_validate_fails() {
    let Some(root) = root_address(161) else { return };
    let folder = folder();
    let changes = [
        ("trust-anchors = \"anchor.ds\"", "validation = false"),
        ("[negative-anchor.\"nta.check.\"]", ""),
        ("until = \"2099-01-01T00:00:00Z\"", ""),
    ];
    let resolver = start(&configuration(folder.path(), &root, &changes));
    let failing = [
        "XF-010", "XF-012", "XF-020", "XF-021", "XF-022", "XF-023", "XF-025", "XF-026", "XF-027", "XF-030",
        "XF-031", "XF-032", "XF-033", "XF-034", "XF-035", "XF-036", "XF-037", "XF-038", "XF-039", "XF-041",
        "XF-042", "XF-043", "XF-050", "XF-051", "XF-052", "XF-053", "XF-054", "XF-056", "XF-057", "XF-058",
        "XF-059", "XF-061", "XF-062", "XF-063", "XF-067", "XF-081", "XF-086", "F-194", "F-229",
    ];
    let passing = ["F-85", "F-86", "F-87", "XF-001", "XF-002", "XF-008", "XF-009", "XF-028", "XF-090"];
    let (status, results) = check(&resolver.address.to_string(), &root, &[&failing[..], &passing].concat());
    assert_eq!(status, 1);
    let wrong = |ids: &[&str], wanted: &str| -> Vec<String> {
        ids.iter()
            .filter(|id| results[**id].0 != wanted)
            .map(|id| format!("{id}: {:?}", results[*id]))
            .collect()
    };
    assert_eq!(wrong(&failing, "fail"), Vec::<String>::new());
    assert_eq!(wrong(&passing, "pass"), Vec::<String>::new());
}

#[test]
fn faults_before_a_resolver_are_found() {
    let Some(root) = root_address(162) else { return };
    let folder = folder();
    let resolver = start(&configuration(folder.path(), &root, &[]));
    let rows: [(&str, &[&str]); 6] = [
        ("drop-opt", &["F-85", "XF-005", "XF-010", "F-229"]),
        ("cut-at-512", &["F-85", "F-86"]),
        ("no-tcp", &["F-85", "F-86", "F-87", "XF-002", "XF-009"]),
        ("clear-flags", &["XF-010", "XF-011", "XF-012"]),
        ("limit-payload", &["F-86", "XF-009"]),
        ("cache-regardless", &["XF-012"]),
    ];
    for (fault, items) in rows {
        let upstream = resolver.address.to_string();
        let arguments =
            ["proxy", "--listen", "127.0.0.1:0", "--upstream", &upstream, "--timeout", "8", "--fault", fault];
        let proxy =
            common::Running::when_ready(nonesuch(arguments).stdout(Stdio::piped()).spawn().expect("a proxy"));
        let (status, results) = check(&proxy.address.to_string(), &root, items);
        let passed: Vec<_> = results.iter().filter(|(_, (result, _))| result != "fail").collect();
        assert!(status == 1 && passed.is_empty(), "{fault}: {passed:#?}");
    }
}

#[test]
fn a_check_that_cannot_start_states_the_remedy() {
    let Some(root) = root_address(163) else { return };
    let folder = folder();
    let silent = UdpSocket::bind("127.0.0.1:0").expect("bound");
    let silent = silent.local_addr().expect("an address").to_string();
    let refused = |server: &str, words: &str| {
        let arguments = ["check", "resolver", server, "--tree-address", &root, "--timeout", "0.1"];
        let ended = run(&mut nonesuch(arguments));
        assert!(ended.status == 2 && ended.stderr.contains(words), "{}", ended.text());
    };
    refused(&silent, "no response");
    // The resolver has other root servers.
    let resolver = start(&configuration(folder.path(), "127.163.9.1", &[]));
    refused(&resolver.address.to_string(), "--write-configuration");
}

#[test]
fn a_delegated_domain_has_records_for_its_parent() {
    let arguments = [
        "check",
        "resolver",
        "--delegated",
        "Check.example.",
        "--tree-listen",
        "192.0.2.1",
        "--print-delegation",
    ];
    let records = done(arguments).stdout;
    let lines: Vec<&str> = records.lines().collect();
    assert_eq!(
        lines[..2],
        ["check.example. 3600 IN NS ns1.check.example.", "ns1.check.example. 3600 IN A 192.0.2.1"]
    );
    assert!(lines[2].starts_with("check.example. 3600 IN DS ") && lines.len() == 3, "{records}");
    assert_eq!(records, done(arguments).stdout);
}

/// Checks a proxy that the check starts. Returns the exit status and the results.
fn check_proxy(arguments: &[&str]) -> (i32, Results) {
    let ended = run(&mut nonesuch([&["check", "proxy", "--json"], arguments].concat()));
    (ended.status, results(&ended))
}

#[test]
fn the_proxy_of_this_program_passes_and_its_faults_fail() {
    let started = ["--start-proxy", "--upstream-listen", "127.0.0.1:0"];
    let (status, results) = check_proxy(&started);
    let has_paths = NetworkNamespace::new().is_ok_and(|namespace| namespace.open_tun(1500).is_ok());
    if !has_paths {
        record_skip("network namespaces or TUN devices cannot be used");
    }
    let without_paths = ["XP-009", "XP-011", "XP-012", "XP-013", "XP-015", "XP-016"];
    for (id, (result, text)) in &results {
        // The side of the provider has no address.
        let is_testable = id != "XP-008" && (has_paths || !without_paths.contains(&id.as_str()));
        assert_eq!(result, if is_testable { "pass" } else { "not testable" }, "{id}: {text}");
    }
    assert_eq!(status, 0);
    let (status, results) =
        check_proxy(&[&started[..], &["--fault", "drop-opt", "--profile", "jprs"]].concat());
    assert!(status == 1 && results["P-1"].0 == "fail", "{results:#?}");
}

#[test]
fn a_program_is_checked_in_namespaces() {
    if !NetworkNamespace::new().is_ok_and(|namespace| namespace.open_tun(1500).is_ok()) {
        return record_skip("network namespaces or TUN devices cannot be used");
    }
    let program = env!("CARGO_BIN_EXE_nonesuch");
    let items = ["--item", "P-1", "--item", "XP-009", "--item", "XP-014"];
    let proxy =
        ["--program", program, "--", "proxy", "--listen", "{listen}:53", "--upstream", "{upstream}:53"];
    let (status, results) = check_proxy(&[&items[..], &proxy].concat());
    assert!(status == 0 && results.values().all(|(result, _)| result == "pass"), "{results:#?}");
    let (status, results) =
        check_proxy(&[&items[..], &["--timeout", "0.5"], &proxy, &["--fault", "forbid-fragments"]].concat());
    assert!(status == 1 && results["XP-009"].0 == "fail" && results["P-1"].0 == "pass", "{results:#?}");
    let ended =
        run(&mut nonesuch(["check", "proxy", "--program", program, "--", "proxy", "--fault", "none"]));
    assert!(ended.status == 2 && ended.stderr.contains("cut-at-512"), "{}", ended.text());
}
