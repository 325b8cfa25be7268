//! NSD and Knot DNS, each a process of its own with a configuration and a folder of its own.

use super::common::{Running, start_peer};
use super::exchange::{Question, ask_once};
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Longest wait for a peer to have loaded the zone.
const LOAD: Duration = Duration::from_secs(15);

/// Starts NSD with `file` as `origin`, all of it in `folder`.
pub(crate) fn start_nsd(folder: &Path, file: &Path, origin: &str) -> Running {
    start(folder, origin, |address| {
        let (at, port, file) = (folder.display(), address.port(), file.display());
        // Asked with a payload size of 4096, a peer is to truncate as little as it can.
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

/// Starts Knot DNS likewise.
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

fn start(folder: &Path, origin: &str, command: impl Fn(SocketAddr) -> Command) -> Running {
    fs::create_dir_all(folder).expect("a folder");
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
