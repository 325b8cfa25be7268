//! `nonesuch resolve` on a local tree, whose servers use port 53 of loopback addresses.

use super::metrics::{OPEN, listening_address, scrape, value};
use crate::common;
use crate::common::watched::wait_until;
use common::configured::{Configured, ask, write_beside};
use common::{done, nonesuch, run, snapshot, text};
use nonesuch_net::bind;
use nonesuch_proto::message::{Rcode, Section};
use nonesuch_proto::{Name, Rtype};
use nonesuch_testing::record_skip;
use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Writes a tree and starts its servers on addresses in 127.53.`network`.0/24. Returns them and the
/// hints; `None` if port 53 is not permitted.
pub(crate) fn start_tree(folder: &Path, network: u8) -> Option<(Vec<Configured>, PathBuf)> {
    start_tree_with(folder, network, "")
}

/// As [`start_tree`], with more zones.
fn start_tree_with(folder: &Path, network: u8, more: &str) -> Option<(Vec<Configured>, PathBuf)> {
    if UdpSocket::bind(format!("127.53.{network}.9:53")).is_err() {
        record_skip("only root can listen on port 53");
        return None;
    }
    let tree = format!(
        "first-address = \"127.53.{network}.1\"\n[[zone]]\norigin = \".\"\n[[zone]]\norigin = \"example.\"\n\
        [[zone]]\norigin = \"z#.example.\"\ncount = 3\nnames = 5\nserver = \"127.53.{network}.5\"\n{more}"
    );
    let (file, out) = (folder.join("tree.toml"), folder.join("tree"));
    fs::write(&file, tree).expect("written");
    done(["lab", "tree", text(&file), "--out", text(&out)]);
    let files: Vec<_> = fs::read_dir(out.join("servers")).expect("a directory").flatten().collect();
    let servers = files.iter().map(|file| Configured::start(&file.path())).collect();
    Some((servers, out.join("root.hints")))
}

fn start_resolver(folder: &Path, hints: &Path, workers: &str) -> Configured {
    let arguments = ["--listen", "127.0.0.1:0", "--workers", workers, "--hints", text(hints)];
    Configured::start_command("resolve", &arguments, &folder.join("resolver"), Stdio::null())
}

#[test]
fn names_are_resolved_from_the_root() {
    let folder = common::folder();
    let Some((servers, hints)) = start_tree(folder.path(), 40) else { return };
    let resolver = start_resolver(folder.path(), &hints, "2");
    let query = |name: &str, rtype| ask(resolver.address, name, rtype);
    for zone in 0..3 {
        let name = format!("host3.z{zone}.example.");
        let response = query(&name, Rtype::A);
        let answer: Vec<_> = response.section(Section::Answer).filter(|r| r.rtype == Rtype::A).collect();
        assert_eq!((response.rcode(), answer.len()), (Rcode::NOERROR, 1), "{response:?}");
        assert_eq!(answer[0].owner, name.parse::<Name>().expect("a name"));
    }
    assert_eq!(query("none.z1.example.", Rtype::A).rcode(), Rcode::NXDOMAIN);
    assert_eq!(query("host3.z1.example.", Rtype::TXT).rcode(), Rcode::NOERROR);
    // The cache answers after the servers have ended, over TCP too.
    servers.into_iter().for_each(Configured::kill);
    let server = format!("@{}", resolver.address);
    let shown = done(["query", "host3.z1.example.", "A", &server, "--tcp"]).stdout;
    assert!(shown.contains("host3.z1.example.\t") && shown.contains("over TCP"), "{shown}");
    let failed = query("host4.z1.example.", Rtype::A);
    assert_eq!(failed.rcode(), Rcode::SERVFAIL);
    // SIGHUP must not end it.
    resolver.signal("-HUP");
    resolver.wait_for_event("reload-without-configuration", &[]);
    let stopped = resolver.stop();
    assert!(stopped["datagrams_in"].as_u64() >= Some(6), "{stopped}");
}

/// Starts a resolver that validates from the trust anchor of the tree of `hints`.
fn start_validating(folder: &Path, hints: &Path, more: &[&str]) -> Configured {
    let anchor = hints.with_file_name("anchor.ds");
    let arguments =
        ["--listen", "127.0.0.1:0", "--workers", "2", "--hints", text(hints), "--anchor", text(&anchor)];
    let arguments = [&arguments, more].concat();
    Configured::start_command("resolve", &arguments, &folder.join("validating"), Stdio::null())
}

#[test]
fn secure_answers_have_ad_and_bogus_ones_fail() {
    let folder = common::folder();
    let zones = "[[zone]]\norigin = \"bad.example.\"\nnames = 3\nfaults = [{ fault = \"expired-signature\", at = \"host1\", type = \"A\" }]\n\
        [[zone]]\norigin = \"plain.example.\"\nnames = 3\nsigned = false\n";
    let Some((_servers, hints)) = start_tree_with(folder.path(), 43, zones) else { return };
    let resolver = start_validating(folder.path(), &hints, &[]);
    let server = format!("@{}", resolver.address);
    let query = |words: &[&str]| {
        let shown = run(&mut nonesuch([&["query", &server, "--json"], words].concat())).stdout;
        let json: serde_json::Value = serde_json::from_str(&shown).unwrap_or_else(|_| panic!("{shown}"));
        let flags = json["flags"].to_string();
        (json["rcode"].as_str().expect("an RCODE").to_owned(), flags.contains("\"ad\""), shown)
    };
    for _ in ["cold", "cached"] {
        for words in [["host1.z1.example.", "A"], ["none.z1.example.", "A"], ["host1.z1.example.", "TXT"]] {
            let (rcode, is_secure, shown) = query(&words);
            assert!(is_secure && rcode != "SERVFAIL", "{shown}");
        }
        let (rcode, is_secure, shown) = query(&["host1.plain.example.", "A"]);
        assert!(!is_secure && rcode == "NOERROR", "{shown}");
        let (rcode, _, shown) = query(&["host1.bad.example.", "A"]);
        assert!(rcode == "SERVFAIL" && shown.contains("bad.example."), "{shown}");
        let (rcode, is_secure, shown) = query(&["host1.bad.example.", "A", "--cd"]);
        assert!(!is_secure && rcode == "NOERROR", "{shown}");
    }
}

#[test]
fn a_query_from_the_root_shows_each_step() {
    let folder = common::folder();
    let Some((servers, hints)) = start_tree(folder.path(), 41) else { return };
    let resolve = |words: &[&str]| {
        run(&mut nonesuch([&["query", "--from-root", "--hints", text(&hints)], words].concat()))
    };
    let shown = resolve(&["host3.z1.example.", "A"]);
    let steps: Vec<_> = shown.stdout.lines().take_while(|line| !line.is_empty()).collect();
    let steps = steps.iter().map(|line| line.split_once(" ms: ").expect("the time").1);
    let expected = [
        ". NS: answer NS a.root-server.",
        "example. A: referral to example., servers ns1.example. (127.53.41.2)",
        "z1.example. A: referral to z1.example., servers ns1.z1.example. (127.53.41.5)",
        "host3.z1.example. A: answer A 198.51.100.4",
    ];
    assert_eq!(steps.collect::<Vec<_>>(), expected, "{}", shown.stdout);
    assert!(shown.stdout.contains(";; queries to servers: 4; time: "), "{}", shown.stdout);
    let json = resolve(&["none.z2.example.", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!((&json["rcode"], &json["steps"][3]["result"]), (&"NXDOMAIN".into(), &"NXDOMAIN".into()));
    assert_eq!(resolve(&["host3.z1.example.", "@127.0.0.1"]).status, 2);
    servers.into_iter().for_each(Configured::kill);
    let failed = resolve(&["host3.z1.example."]);
    assert!(failed.stdout.contains(":53 over UDP in ") && failed.stdout.contains("connection refused"));
    assert_eq!(failed.status, 1, "{}", failed.text());
}

#[test]
fn a_query_shows_the_chain_of_trust() {
    let folder = common::folder();
    let Some((_servers, hints)) = start_tree(folder.path(), 48) else { return };
    let anchor = hints.with_file_name("anchor.ds");
    let resolve = |words: &[&str]| {
        let fixed = ["query", "--from-root", "--hints", text(&hints), "--anchor", text(&anchor)];
        run(&mut nonesuch([&fixed, words].concat()))
    };
    let shown = resolve(&["host3.z1.example.", "A"]).stdout;
    let chain = shown.split_once(";; CHAIN OF TRUST\n").expect("the chain").1;
    let chain: Vec<&str> = chain.lines().take_while(|line| !line.is_empty()).collect();
    let has =
        |begin: &str, end: &str| chain.iter().any(|line| line.starts_with(begin) && line.ends_with(end));
    assert!(has(";; . DNSKEY: secure", ", answer"), "{shown}");
    assert!(
        has(";;   . DNSKEY: signed by key ", " of ., which its DS RRset or trust anchor names"),
        "{shown}"
    );
    assert!(has(";;   z1.example. DS: signed by key ", " of example."), "{shown}");
    assert!(has(";;   host3.z1.example. A: signed by key ", " of z1.example."), "{shown}");
    let denied = resolve(&["none.z2.example.", "--json"]).stdout;
    let denied: serde_json::Value = serde_json::from_str(&denied).expect("JSON");
    let last = denied["chain"].as_array().and_then(|steps| steps.last()).expect("a step");
    assert_eq!((&last["status"], &last["zone"]), (&"secure".into(), &"z2.example.".into()));
    assert_eq!(last["proved"], "the name does not exist");

    let unused =
        run(&mut nonesuch(["query", "host3.z1.example.", "@127.0.0.1:9", "--anchor", text(&anchor)]));
    assert_eq!(unused.status, 2, "{}", unused.text());

    // A trust anchor that the root zone does not have: the failing step has reason and rule.
    let other = folder.path().join("other.ds");
    fs::write(&other, format!(". 60 IN DS 4711 13 2 {}\n", "ab".repeat(32))).expect("written");
    let words =
        ["--from-root", "--hints", text(&hints), "--anchor", text(&other), "--json", "host3.z1.example."];
    let bogus = run(&mut nonesuch([&["query"], &words[..]].concat()));
    assert_eq!(bogus.status, 1, "{}", bogus.text());
    let bogus: serde_json::Value = serde_json::from_str(&bogus.stdout).expect("JSON");
    let step = &bogus["chain"][0];
    assert_eq!(
        (&step["status"], &step["name"], &step["type"]),
        (&"bogus".into(), &".".into(), &"DNSKEY".into())
    );
    assert_eq!((&step["info_code"], &step["rule"]), (&9.into(), &"RFC 4035 §5.2".into()), "{bogus}");
}

#[test]
fn local_names_need_no_server() {
    let folder = common::folder();
    let hints = folder.path().join("hints");
    // Nothing listens there, and the names below are not looked up.
    fs::write(&hints, ". 60 NS a.root.\na.root. 60 A 127.53.42.1\n").expect("written");
    let resolver = start_resolver(folder.path(), &hints, "1");
    let localhost = ask(resolver.address, "localhost.", Rtype::A);
    let address = localhost.section(Section::Answer).next().map(|record| record.rdata.clone());
    assert_eq!(address, Some(vec![127, 0, 0, 1]));
    assert_eq!(ask(resolver.address, "name.invalid.", Rtype::A).rcode(), Rcode::NXDOMAIN);
    assert_eq!(ask(resolver.address, "1.0.168.192.in-addr.arpa.", Rtype::PTR).rcode(), Rcode::NXDOMAIN);
    resolver.stop();
}

#[test]
fn a_resolver_that_cannot_start_says_why() {
    let folder = common::folder();
    let hints = folder.path().join("hints");
    let fails = |case: &str, arguments: &[&str], status: i32| {
        let ended = run(&mut nonesuch([&["resolve"], arguments].concat()));
        assert_eq!(ended.status, status, "{}", ended.text());
        snapshot::check("resolve", case, &ended.stderr.replace(text(folder.path()), "DIR"));
    };
    let named = ["--listen", "127.0.0.1:0", "--hints", text(&hints)];
    fails("missing hints", &named, 2);
    for (case, content) in [
        ("hints that are no records", "nonsense\n"),
        ("hints without servers", "a.root. 60 A 127.0.0.1\n"),
        ("a server without an address", ". 60 NS a.root.\n"),
    ] {
        fs::write(&hints, content).expect("written");
        fails(case, &named, 2);
    }
    // A port that is free for UDP and for TCP.
    let taken = bind("127.0.0.1:0".parse().expect("an address"), 1).expect("sockets");
    fails("address in use", &["--listen", &taken.local_addr.to_string()], 3);
    let exposed = folder.path().join("exposed.toml");
    fs::write(&exposed, "version = 1\nlisten = [\"0.0.0.0:5399\"]\nuser = \"nobody-of-this-name\"\n")
        .expect("written");
    for (case, check) in [("unknown user", None), ("unknown user, --check", Some("--check"))] {
        let arguments: Vec<&str> = ["--config", text(&exposed)].into_iter().chain(check).collect();
        fails(case, &arguments, 2);
    }
    let control = folder.path().join("control.toml");
    for (case, path, group, status) in [
        ("unknown group, --check", "control", "group-of-no-name", 2),
        ("no directory of the control socket, --check", "missing/control", "root", 3),
    ] {
        let content = format!("version = 1\ncontrol-socket = {path:?}\ncontrol-group = {group:?}\n");
        fs::write(&control, content).expect("written");
        fails(case, &["--config", text(&control), "--check"], status);
    }
    fails("--listen with a name", &["--listen", "localhost"], 2);
    fails("--workers 0", &["--workers", "0"], 2);
}

#[test]
fn a_configuration_has_all_settings() {
    let folder = common::folder();
    let Some((_servers, hints)) = start_tree(folder.path(), 42) else { return };
    let file = folder.path().join("resolver.toml");
    let write = |more: &str| {
        let content =
            format!("version = 1\nlisten = [\"127.0.0.1:0\"]\nworkers = 1\nhints = {hints:?}\n{more}");
        fs::write(&file, content).expect("written");
    };
    let start = |name: &str| {
        Configured::start_command(
            "resolve",
            &["--config", text(&file)],
            &folder.path().join(name),
            Stdio::null(),
        )
    };
    write("allow-query = [\"127.0.0.1\"]\nidentity = \"r1\"\n[log]\nlevel = \"debug\"\n");
    let checked = done(["resolve", "--config", text(&file), "--check"]);
    assert!(checked.stdout.ends_with("resolver.toml: valid\n"), "{}", checked.stdout);
    let first = start("first");
    assert_eq!(ask(first.address, "host1.z1.example.", Rtype::A).rcode(), Rcode::NOERROR);
    let server = format!("@{}", first.address);
    let shown = done(["query", "id.server.", "TXT", "--class", "CH", &server, "--short"]).stdout;
    assert_eq!(shown, "\"r1\"\n");
    // Another resolver forwards all queries to it, except those for a stub zone.
    write(&format!(
        "[forward.\".\"]\nservers = [\"{}\"]\n[stub.\"z2.example.\"]\nservers = [\"127.53.42.5\"]\n",
        first.address
    ));
    let second = start("second");
    for name in ["host1.z1.example.", "host1.z2.example."] {
        assert_eq!(ask(second.address, name, Rtype::A).rcode(), Rcode::NOERROR, "{name}");
    }
    second.stop();
    // The first one gets a query for the name in the forward zone, and none for the stub zone.
    let stopped = first.stop();
    assert_eq!(stopped["datagrams_in"].as_u64(), Some(3), "{stopped}");
    // Names are resolved from the root after the forwarder has ended.
    write(&format!("[forward.\".\"]\nservers = [\"{}\"]\nfall-back = true\n", &server[1..]));
    let third = start("third");
    assert_eq!(ask(third.address, "host2.z1.example.", Rtype::A).rcode(), Rcode::NOERROR);
    third.stop();
    write("allow-query = [\"192.0.2.0/24\"]\n");
    let closed = start("closed");
    assert_eq!(ask(closed.address, "host1.z1.example.", Rtype::A).rcode(), Rcode::REFUSED);
    closed.stop();
    write("memory = 7\nlissten = []\n[limits]\nquery-time = \"2m\"\n");
    let rejected = run(&mut nonesuch(["resolve", "--config", text(&file)]));
    assert_eq!(rejected.status, 2);
    snapshot::check(
        "resolve",
        "configuration with faults",
        &rejected.stderr.replace(text(folder.path()), "DIR"),
    );
}

#[test]
fn a_running_resolver_is_measured_and_controlled() {
    let folder = common::folder();
    let Some((mut servers, hints)) = start_tree(folder.path(), 44) else { return };
    let file = folder.path().join("resolver.toml");
    let write = |more: &str| {
        let content = format!(
            "version = 1\nlisten = [\"127.0.0.1:0\"]\nworkers = 2\nhints = {hints:?}\n\
            control-socket = \"control\"\nmetrics-listen = \"127.0.0.1:0\"\n{more}\n[log]\nlevel = \"info\"\n"
        );
        write_beside(&file, &content);
    };
    write("");
    let resolver = Configured::start_command(
        "resolve",
        &["--config", text(&file)],
        &folder.path().join("resolver"),
        Stdio::null(),
    );
    let ctl = |words: &[&str]| run(&mut nonesuch([&["ctl", "--config", text(&file)], words].concat()));
    let rcode = |name: &str| ask(resolver.address, name, Rtype::A).rcode();
    assert_eq!(rcode("host1.z1.example."), Rcode::NOERROR);
    assert_eq!(rcode("host1.z1.example."), Rcode::NOERROR);
    assert_eq!(rcode("none.z1.example."), Rcode::NXDOMAIN);
    let metrics = listening_address(&resolver.wait_for_event("metrics-listening", &[])).expect("an address");
    let measured = scrape(metrics, OPEN);
    for (sample, expected) in [
        ("nonesuch_queries_total{transport=\"udp\",type=\"A\"}", 3.0),
        ("nonesuch_responses_total{transport=\"udp\",rcode=\"NXDOMAIN\"}", 1.0),
        // The response from the cache has no duration.
        ("nonesuch_response_duration_seconds_count{transport=\"udp\"}", 2.0),
        ("nonesuch_reloads_total{result=\"done\"}", 0.0),
    ] {
        assert_eq!(value(&measured, sample), Some(expected), "{sample}\n{measured}");
    }
    let upstream = value(&measured, "nonesuch_upstream_queries_total{transport=\"udp\"}");
    assert!(upstream >= Some(4.0), "{measured}");
    let status = done(["ctl", "--config", text(&file), "status", "--json"]).stdout;
    let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
    assert_eq!((&status["datagrams_in"], &status["listen"][0]), (&3.into(), &resolver.ready["address"]));
    assert_eq!(status["upstream"]["queries"].as_f64(), upstream, "{status}");
    let shown = ctl(&["status"]).stdout;
    assert!(shown.contains("resolver\ncache: ") && shown.contains("clients: 3 in, 3 out"), "{shown}");
    // A rejected configuration changes nothing.
    write("qname-minimisation = 7\nallow-query = []");
    let rejected = ctl(&["reload"]);
    assert!(rejected.status == 1 && rejected.stderr.contains("qname-minimisation"), "{}", rejected.text());
    assert!(ctl(&["status"]).stdout.contains("rejected, keeping the previous configuration"));
    assert_eq!(rcode("host1.z1.example."), Rcode::NOERROR);
    // A new forward zone is in use at once, also for a name that was in the cache.
    write("edns-payload = 1400\n[forward.\"z1.example.\"]\nservers = [\"127.53.44.9:53\"]");
    let reloaded = ctl(&["reload"]);
    let needs = "reload: done\nconfiguration: restart the server to apply the changes of edns-payload\n";
    assert_eq!((reloaded.status, &*reloaded.stdout), (0, needs), "{}", reloaded.text());
    assert_eq!(rcode("host1.z1.example."), Rcode::SERVFAIL);
    assert_eq!(rcode("host1.z2.example."), Rcode::NOERROR);
    // A signal does the same. Without the zones of the tree, the cache answers for z2 only.
    write("allow-query = [\"192.0.2.0/24\"]");
    resolver.signal("-HUP");
    resolver.wait_for_event("configuration-reloaded", &[]);
    wait_until("the new access list", || (rcode("host1.z2.example.") == Rcode::REFUSED).then_some(()));
    assert!(!ctl(&["status"]).stdout.contains("rejected"));
    let refused = ctl(&["zone", "status"]);
    assert!(refused.status == 1 && refused.stderr.contains("a resolver has no zones"), "{}", refused.text());
    assert_eq!(ctl(&["stop"]).status, 0);
    wait_until("the end of the socket", || (!folder.path().join("control").exists()).then_some(()));
    servers.drain(..).for_each(Configured::kill);
}

/// Anonymous resident memory in KiB: without the pages of the program.
fn resident(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("a line");
    line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("a number")
}

#[test]
fn memory_stays_within_its_bound() {
    let folder = common::folder();
    let Some((_servers, hints)) = start_tree(folder.path(), 48) else { return };
    let file = folder.path().join("resolver.toml");
    let content = format!(
        "version = 1\nlisten = [\"127.0.0.1:0\"]\nworkers = 2\nmemory = \"8MiB\"\nhints = {hints:?}\n"
    );
    fs::write(&file, content).expect("written");
    let folder_of_resolver = folder.path().join("resolver");
    let resolver =
        Configured::start_command("resolve", &["--config", text(&file)], &folder_of_resolver, Stdio::null());
    // The denials of so many names take several times the memory of the cache.
    let queries = folder.path().join("queries");
    let names: String =
        (0..20_000).map(|number| format!("none{number}.z{}.example. A\n", number % 3)).collect();
    fs::write(&queries, names).expect("written");
    let server = resolver.address.to_string();
    let load = [
        "load",
        "--server",
        &server,
        "--queries",
        text(&queries),
        "--limit",
        "20000",
        "--seconds",
        "60",
        "--do",
        "--json",
    ];
    let loaded = done(load);
    let report: serde_json::Value = serde_json::from_str(&loaded.stdout).expect("JSON");
    assert!(report["received"].as_u64() >= Some(19_000), "{report}");
    let resident = resident(resolver.id());
    // 1.05 times the memory, and 8 MiB for what is outside of it. The pages of the program do not count.
    let bound = (8 << 10) * 105 / 100 + (8 << 10);
    assert!(resident <= bound, "{resident} KiB, more than {bound} KiB");
    resolver.stop();
}

/// Starts a resolver whose trust anchor is updated automatically.
fn start_managed(folder: &Path, hints: &Path, state: &Path) -> Configured {
    start_validating(folder, hints, &["--anchor-state", text(state)])
}

/// Whether the state file is complete and has a key in state `valid`.
fn is_learned(file: &Path) -> bool {
    let text = fs::read_to_string(file).expect("a state file");
    let lines: Vec<&str> = text.lines().collect();
    let keys = lines.iter().filter(|line| line.starts_with("key ")).count();
    assert!(lines[1] == "nonesuch-trust-anchors 1" && lines[2] == "zone .", "{text}");
    assert_eq!(lines.last(), Some(&format!("end {keys}").as_str()), "{text}");
    lines.iter().any(|line| line.starts_with("key valid "))
}

/// XF-074.
#[test]
fn the_state_of_trust_anchors_survives_kill_at_any_moment() {
    let folder = common::folder();
    let Some((servers, hints)) = start_tree(folder.path(), 46) else { return };
    let state = folder.path().join("anchors");
    fs::create_dir(&state).expect("a directory");
    let file = state.join("root.anchor");
    let anchor = hints.with_file_name("anchor.ds");
    let arguments =
        ["resolve", "--listen", "127.0.0.1:0", "--hints", text(&hints), "--anchor", text(&anchor)];
    let arguments = [&arguments[..], &["--anchor-state", text(&state)]].concat();
    // As soon as the directory has a file, temporary or complete.
    for _ in 0..8 {
        let _ = fs::remove_file(&file);
        let files = || fs::read_dir(&state).expect("a directory").count();
        let before = files();
        let mut command = nonesuch(&arguments);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("starts");
        while files() == before && !file.exists() {
            std::hint::spin_loop();
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
        assert!(!file.exists() || !is_learned(&file));
    }
    // The first kills come before, during and after the first write that follows from a response.
    for round in 0..12_u32 {
        let resolver = start_managed(folder.path(), &hints, &state);
        // The start wrote the file.
        is_learned(&file);
        (0..round * 3).for_each(|_| {
            ask(resolver.address, "host1.z1.example.", Rtype::A);
        });
        resolver.kill();
        is_learned(&file);
    }
    let resolver = start_managed(folder.path(), &hints, &state);
    wait_until("the key in the state file", || is_learned(&file).then_some(()));
    resolver.kill();
    // The state is used without any server.
    servers.into_iter().for_each(Configured::kill);
    let learned = fs::read_to_string(&file).expect("a state file");
    start_managed(folder.path(), &hints, &state).stop();
    let keys = |text: &str| {
        text.lines().filter(|line| line.starts_with("key ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(keys(&fs::read_to_string(&file).expect("a state file")), keys(&learned));
    let names: Vec<_> =
        fs::read_dir(&state).expect("a directory").flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(names, ["root.anchor"], "temporary files are left");
    // A malformed file prevents the start.
    fs::write(&file, learned.replace("key valid", "key walid")).expect("written");
    let failed = run(&mut nonesuch(&arguments));
    assert_eq!(failed.status, 2, "{}", failed.text());
    snapshot::check(
        "resolve",
        "a malformed state of trust anchors",
        &failed.stderr.replace(text(folder.path()), "DIR"),
    );
    let missing = folder.path().join("missing");
    let failed = run(&mut nonesuch([&arguments[..arguments.len() - 1], &[text(&missing)]].concat()));
    snapshot::check(
        "resolve",
        "no directory for the states of trust anchors",
        &failed.stderr.replace(text(folder.path()), "DIR"),
    );
}

#[test]
fn changes_of_trust_anchors_are_logged_and_shown() {
    let folder = common::folder();
    let Some((_servers, hints)) = start_tree(folder.path(), 47) else { return };
    let (file, state) = (folder.path().join("resolver.toml"), folder.path().join("anchors"));
    fs::create_dir(&state).expect("a directory");
    let unused = state.join("old.example.anchor");
    fs::write(&unused, "not read").expect("written");
    let anchor = hints.with_file_name("anchor.ds");
    let configuration = format!(
        "version = 1\nlisten = [\"127.0.0.1:0\"]\nhints = {hints:?}\ntrust-anchors = {anchor:?}\n\
        anchor-state = {state:?}\ncontrol-socket = \"control\"\n[log]\nlevel = \"info\"\n"
    );
    write_beside(&file, &configuration);
    let arguments = ["--config", text(&file)];
    let resolver =
        Configured::start_command("resolve", &arguments, &folder.path().join("resolver"), Stdio::null());
    resolver.wait_for_event("anchor-state-unused", &[&format!("files={}", text(&unused))]);
    resolver.wait_for_event("trust-anchor-changed", &["zone=.", "change=trusted"]);
    wait_until("the key in the state file", || is_learned(&state.join("root.anchor")).then_some(()));
    let keys = || {
        let status = done(["ctl", "--config", text(&file), "status", "--json"]).stdout;
        let status: serde_json::Value = serde_json::from_str(&status).expect("JSON");
        status["validation"]["keys"].clone()
    };
    let known = keys();
    assert_eq!((&known[0]["zone"], &known[0]["state"]), (&".".into(), &"valid".into()), "{known}");
    let shown = done(["ctl", "--config", text(&file), "status"]).stdout;
    let line = format!(
        "trust anchor: . key {}, algorithm {}: valid since 20",
        known[0]["tag"], known[0]["algorithm"]
    );
    assert!(shown.contains(&line), "{shown}");
    // The state survives a reload.
    assert_eq!(run(&mut nonesuch(["ctl", "--config", text(&file), "reload"])).status, 0);
    assert_eq!(keys(), known);
    resolver.stop();
}

/// Starts a validating resolver with a control socket and `more` lines in its configuration. Returns the
/// configuration too.
fn start_controlled(folder: &Path, hints: &Path, more: &str) -> (PathBuf, Configured) {
    let file = folder.join("resolver.toml");
    let configuration = format!(
        "version = 1\nlisten = [\"127.0.0.1:0\"]\nworkers = 2\nhints = {hints:?}\ntrust-anchors = {:?}\n\
        control-socket = \"control\"\n{more}",
        hints.with_file_name("anchor.ds")
    );
    write_beside(&file, &configuration);
    let arguments = ["--config", text(&file)];
    let resolver = Configured::start_command("resolve", &arguments, &folder.join("resolver"), Stdio::null());
    (file, resolver)
}

#[test]
fn cached_data_are_removed_below_a_name() {
    let folder = common::folder();
    let Some((_servers, hints)) = start_tree(folder.path(), 53) else { return };
    let (file, resolver) = start_controlled(folder.path(), &hints, "[log]\nlevel = \"info\"\n");
    let ctl = |words: &[&str]| run(&mut nonesuch([&["ctl", "--config", text(&file)], words].concat()));
    let queries = || {
        let status: serde_json::Value =
            serde_json::from_str(&ctl(&["--json", "status"]).stdout).expect("JSON");
        status["upstream"]["queries"].as_u64().expect("a number")
    };
    // Queries to servers for the names of both zones.
    let cost = || {
        ["host1.z0.example.", "host1.z1.example."].map(|name| {
            let before = queries();
            assert_eq!(ask(resolver.address, name, Rtype::A).rcode(), Rcode::NOERROR);
            queries() - before
        })
    };
    assert!(cost().iter().all(|count| *count > 0));
    assert_eq!(cost(), [0, 0]);
    let flushed = ctl(&["cache", "flush", "z0.example"]);
    assert!(
        flushed.stdout.starts_with("cache: removed entries at and below z0.example.: "),
        "{}",
        flushed.text()
    );
    let [first, second] = cost();
    assert!(first > 0 && second == 0, "{first} {second}");
    resolver.wait_for_event("cache-flushed", &["name=z0.example."]);
    assert_eq!(
        ctl(&["cache", "flush", "none.example"]).stdout,
        "cache: removed entries at and below none.example.: 0\n"
    );
    assert_eq!(ctl(&["cache", "flush"]).status, 0);
    assert!(cost().iter().all(|count| *count > 0));
    resolver.stop();
}

/// RFC 7646.
#[test]
fn negative_trust_anchors_are_added_and_removed() {
    let folder = common::folder();
    let zones = "[[zone]]\norigin = \"bad.example.\"\nnames = 3\nfaults = [{ fault = \"expired-signature\", at = \"host1\", type = \"A\" }]\n";
    let Some((_servers, hints)) = start_tree_with(folder.path(), 49, zones) else { return };
    let more = "metrics-listen = \"127.0.0.1:0\"\n[log]\nlevel = \"info\"\n\
        [negative-anchor.\"z1.example.\"]\nuntil = \"2100-01-01T00:00:00Z\"\nrecheck = false\n";
    let (file, resolver) = start_controlled(folder.path(), &hints, more);
    let ctl = |words: &[&str]| run(&mut nonesuch([&["ctl", "--config", text(&file)], words].concat()));
    let rcode = || ask(resolver.address, "host1.bad.example.", Rtype::A).rcode();
    let waits_for = |expected| wait_until("the RCODE", || (rcode() == expected).then_some(()));
    let configured = "negative trust anchor: z1.example. until 2100-01-01T00:00:00Z, from the configuration, not rechecked\n";
    assert_eq!((rcode(), ctl(&["negative-anchor", "list"]).stdout.as_str()), (Rcode::SERVFAIL, configured));
    // Only the data of a host are broken, so the checks would end the negative trust anchor.
    let added = ctl(&["negative-anchor", "add", "bad.example", "--lifetime", "4h", "--no-recheck"]);
    assert!(added.stdout.starts_with("negative trust anchor: bad.example. until 20"), "{}", added.text());
    waits_for(Rcode::NOERROR);
    let shown = ctl(&["status"]).stdout;
    assert!(
        shown.contains("\nnegative trust anchor: bad.example. until ") && shown.contains(configured),
        "{shown}"
    );
    let metrics = listening_address(&resolver.wait_for_event("metrics-listening", &[])).expect("an address");
    assert_eq!(value(&scrape(metrics, OPEN), "nonesuch_negative_trust_anchors"), Some(2.0));
    resolver.wait_for_event("negative-anchor-added", &["zone=bad.example."]);
    assert_eq!(ctl(&["negative-anchor", "remove", "bad.example"]).status, 0);
    waits_for(Rcode::SERVFAIL);
    resolver.wait_for_event("negative-anchor-ended", &["zone=bad.example.", "reason=removed"]);
    for (case, words, status) in [
        ("negative-anchor remove without one", &["remove", "bad.example"][..], 1),
        ("negative-anchor add for more than a week", &["add", "bad.example", "--lifetime", "8d"], 2),
    ] {
        let failed = ctl(&[&["negative-anchor"], words].concat());
        assert_eq!(failed.status, status, "{}", failed.text());
        snapshot::check("resolve", case, &failed.stderr);
    }
    resolver.stop();
}
