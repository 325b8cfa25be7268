//! Status of the secondaries that a primary notifies.

use crate::common;
use crate::common::transferring;
use common::configured::{Configured, plain_zone, write_beside};
use common::{folder, snapshot};
use serde_json::Value;
use transferring::{free_port, start_at};

const ZONE: &str = "plain.example.";

/// The primary's status of a secondary of the zone.
fn secondary(primary: &Configured, place: usize) -> Value {
    primary.ctl_json(&["zone", "status", ZONE])[0]["secondaries"][place].clone()
}

/// A status line with `TIME` in place of times.
fn without_times(line: &str) -> String {
    let mut parts = line.split(" at 20");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| all + " at TIME" + part.find(',').map_or("", |end| &part[end..]))
}

#[test]
fn a_primary_shows_what_each_notified_secondary_acknowledged_and_transferred() {
    let (home, theirs) = (folder(), folder());
    let dir = theirs.path();
    let version = |serial| {
        let more: String = (0..100).map(|number| format!("name{number} 60 A 192.0.2.{number}\n")).collect();
        write_beside(&dir.join("plain"), &(plain_zone(ZONE, serial) + &more));
    };
    version(1);
    let (port, silent) = (free_port(), free_port());
    let primary = start_at(
        dir,
        free_port(),
        &format!(
            "[log]\nformat = \"json\"\n[zone.\"{ZONE}\"]\nfile = \"plain\"\ntransfer = [\"key:transfer.key.\"]\n\
             also-notify = [\"127.0.0.1:{port} key:transfer.key.\", \"127.0.0.9:{silent}\"]\n"
        ),
    );
    primary.wait_until("both secondaries", || !secondary(&primary, 1).is_null());
    let addresses = [0, 1].map(|place| secondary(&primary, place)["address"].clone());
    assert_eq!(addresses, [format!("127.0.0.1:{port}"), format!("127.0.0.9:{silent}")]);
    let server = start_at(
        home.path(),
        port,
        &format!(
            "[log]\nformat = \"json\"\n[zone.\"{ZONE}\"]\nprimaries = [\"{} key:transfer.key.\"]\n",
            primary.address
        ),
    );
    server.wait_for(ZONE, 1);
    primary.wait_until("a transfer", || secondary(&primary, 0)["transfer"]["serial"] == 1);
    version(2);
    primary.ctl(&["reload", ZONE]).expect_done("reload");
    server.wait_for(ZONE, 2);
    primary.wait_until("the second version", || {
        let shown = secondary(&primary, 0);
        shown["transfer"]["serial"] == 2 && shown["notify"]["result"] == "acknowledged"
    });
    let shown = secondary(&primary, 0);
    assert_eq!((&shown["notify"]["serial"], &shown["query"]["serial"]), (&2.into(), &1.into()), "{shown}");
    let other = secondary(&primary, 1);
    assert_eq!(other["notify"]["result"], "waiting", "{other}");
    assert!(other["transfer"].is_null() && other["query"].is_null(), "{other}");
    let status = primary.ctl(&["status", ZONE]).expect_done("status").stdout;
    let address = format!("127.0.0.1:{port}");
    let line = status.lines().find(|line| line.contains(&address)).unwrap_or_else(|| panic!("{status}"));
    snapshot::check("ctl", "status of a secondary that follows", &without_times(line));
    // The log lines of the transfer name the key on both sides.
    for (side, name, outcome) in
        [(&primary, "transfer-ended", Some("sent")), (&server, "zone-transferred", None)]
    {
        let log = side.logged();
        let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let is_event = |line: &Value| line["event"] == name && line["outcome"].as_str() == outcome;
        let keys: Vec<Value> = lines.filter(is_event).map(|line| line["key"].clone()).collect();
        assert!(!keys.is_empty() && keys.iter().all(|key| key == "transfer.key."), "{name}: {log}");
    }
}
