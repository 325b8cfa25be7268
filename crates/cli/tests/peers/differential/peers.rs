//! Other name servers, each a separate process with its own configuration and directory.

use super::common::{Running, run, start_peer, text};
use super::exchange::{Question, ask_once};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Time limit for a peer to load the zone.
const LOAD: Duration = Duration::from_secs(15);

/// Starts NSD with the zone `origin` from `file`, with all its files in `folder`.
pub(crate) fn start_nsd(folder: &Path, file: &Path, origin: &str) -> Running {
    start(folder, origin, |address| {
        let (at, port, file) = (folder.display(), address.port(), file.display());
        // With the maximum payload size of 4096, a peer truncates as few responses as possible.
        let text = format!(
            "server:\n ip-address: 127.0.0.1@{port}\n username: \"\"\n chroot: \"\"\n zonesdir: \"{at}\"\n \
             database: \"\"\n pidfile: \"{at}/pid\"\n xfrdfile: \"{at}/xfrd\"\n zonelistfile: \"{at}/list\"\n \
             xfrdir: \"{at}\"\n logfile: \"{at}/log\"\n server-count: 1\n rrl-ratelimit: 0\n \
             rrl-whitelist-ratelimit: 0\n ipv4-edns-size: 4096\nremote-control:\n control-enable: no\n\
             zone:\n name: {origin}\n zonefile: \"{file}\"\n"
        );
        let configuration = folder.join("nsd.conf");
        fs::write(&configuration, text).expect("written");
        let mut command = Command::new("nsd");
        command.arg("-d").arg("-c").arg(configuration);
        command
    })
}

/// Starts Knot DNS in the same way.
pub(crate) fn start_knot(folder: &Path, file: &Path, origin: &str) -> Running {
    start(folder, origin, |address| {
        let (at, port, file) = (folder.display(), address.port(), file.display());
        let text = format!(
            "server:\n  listen: 127.0.0.1@{port}\n  rundir: \"{at}\"\n  udp-workers: 1\n  tcp-workers: 1\n  \
             background-workers: 1\n  udp-max-payload: 4096\ndatabase:\n  storage: \"{at}\"\n\
             log:\n  - target: stderr\n    any: error\ntemplate:\n  - id: default\n    storage: \"{at}\"\n    \
             semantic-checks: off\n    zonefile-sync: -1\n    zonefile-load: whole\n    journal-content: none\n\
             zone:\n  - domain: {origin}\n    file: \"{file}\"\n"
        );
        let configuration = folder.join("knot.conf");
        fs::write(&configuration, text).expect("written");
        let mut command = Command::new("knotd");
        command.arg("-c").arg(configuration);
        command
    })
}

/// Starts BIND in the same way.
pub(crate) fn start_bind(folder: &Path, file: &Path, origin: &str) -> Running {
    start(folder, origin, |address| {
        let (at, port, file) = (folder.display(), address.port(), file.display());
        let text = format!(
            "options {{\n directory \"{at}\";\n listen-on port {port} {{ 127.0.0.1; }};\n listen-on-v6 {{ none; }};\n \
             pid-file none;\n session-keyfile none;\n recursion no;\n notify no;\n dnssec-validation no;\n \
             minimal-responses yes;\n minimal-any no;\n edns-udp-size 4096;\n max-udp-size 4096;\n answer-cookie no;\n \
             empty-zones-enable no;\n}};\ncontrols {{ }};\n\
             zone \"{origin}\" {{\n type primary;\n file \"{file}\";\n check-names ignore;\n check-integrity no;\n}};\n"
        );
        let configuration = folder.join("named.conf");
        fs::write(&configuration, text).expect("written");
        let mut command = Command::new("named");
        command.args(["-g", "-n", "1", "-c"]).arg(configuration);
        command
    })
}

/// Starts PowerDNS with the unsigned zone `origin` from `file`. It signs with the keys in `keys`
/// (paths of files `K….private`, and whether the key is a KSK), and denies with NSEC3 records that
/// are generated online ("narrow").
pub(crate) fn start_powerdns(folder: &Path, file: &Path, origin: &str, keys: &[(&Path, bool)]) -> Running {
    fs::create_dir_all(folder).expect("a directory");
    let zone = origin.trim_end_matches('.');
    let database = folder.join("dnssec.sqlite");
    let domains = format!("zone \"{zone}\" {{ type native; file \"{}\"; }};\n", file.display());
    fs::write(folder.join("named.conf"), domains).expect("written");
    let configure = |port: u16| {
        let at = folder.display();
        let text = format!(
            "launch=bind\nbind-config={at}/named.conf\nbind-dnssec-db={at}/dnssec.sqlite\nlocal-address=127.0.0.1\n\
             local-port={port}\nsocket-dir={at}\nsetuid=\nsetgid=\ndname-processing=yes\n8bit-dns=yes\nreceiver-threads=1\n\
             distributor-threads=1\nudp-truncation-threshold=4096\ncache-ttl=0\nquery-cache-ttl=0\n\
             negquery-cache-ttl=0\n"
        );
        fs::write(folder.join("pdns.conf"), text).expect("written");
    };
    configure(0);
    let option = format!("--config-dir={}", folder.display());
    let utility = |arguments: &[&str]| {
        let mut command = Command::new("pdnsutil");
        run(command.arg(&option).args(arguments)).expect_done("pdnsutil");
    };
    utility(&["create-bind-db", text(&database)]);
    for (key, is_ksk) in keys {
        utility(&["import-zone-key", zone, text(key), "active", if *is_ksk { "ksk" } else { "zsk" }]);
    }
    utility(&["set-nsec3", zone, "1 0 0 -", "narrow"]);
    start(folder, origin, |address| {
        configure(address.port());
        let mut command = Command::new("pdns_server");
        command.arg(&option).args(["--daemon=no", "--guardian=no", "--disable-syslog", "--write-pid=no"]);
        command
    })
}

/// Starts CoreDNS with the unsigned zone `origin` from `file`. It signs with the key files `K…`,
/// and denies with NSEC records at the query name ("black lies").
pub(crate) fn start_coredns(folder: &Path, file: &Path, origin: &str, keys: &[&Path]) -> Running {
    let keys: Vec<&str> = keys.iter().map(|key| text(key)).collect();
    start(folder, origin, |address| {
        let text = format!(
            "{origin}:{} {{\n bind 127.0.0.1\n file {}\n dnssec {{\n  key file {}\n }}\n}}\n",
            address.port(),
            file.display(),
            keys.join(" ")
        );
        let configuration = folder.join("Corefile");
        fs::write(&configuration, text).expect("written");
        let mut command = Command::new("coredns");
        command.arg("-conf").arg(configuration);
        command
    })
}

fn start(folder: &Path, origin: &str, command: impl Fn(SocketAddr) -> Command) -> Running {
    fs::create_dir_all(folder).expect("a directory");
    let output = folder.join("output");
    let running = start_peer(&output, command);
    let question = Question::apex_soa(origin);
    let end = Instant::now() + LOAD;
    while !ask_once(running.address, &question, Duration::from_millis(100)) {
        let said = || [&output, &folder.join("log")].map(|file| fs::read_to_string(file).unwrap_or_default());
        assert!(Instant::now() < end, "the peer does not load the zone: {:?}", said());
    }
    running
}
