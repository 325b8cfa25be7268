//! Places for transfers to others: one network does not take all of them (`transfers-out-each`), and who is refused is told, logged and
//! counted.

mod common;

use common::configured::{Configured, configure, plain_zone};
use common::{Ended, folder, nonesuch, run};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::push_query;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const ZONE: &str = "large.example.";

/// A zone of many megabytes: its transfer goes on for as long as the client does not read.
fn large() -> String {
    let text = "x".repeat(250);
    let records = (0..40_000).map(|number| format!("name{number} 60 TXT \"{text}\"\n"));
    plain_zone(ZONE, 1) + &records.collect::<String>()
}

/// Begins a transfer and leaves it there.
fn begin_transfer(server: SocketAddr) -> TcpStream {
    let mut query = vec![0; 2];
    push_query(&ZONE.parse().expect("a name"), Rtype::AXFR, 7, 0, &mut query);
    let length = (query.len() - 2) as u16;
    query[..2].copy_from_slice(&length.to_be_bytes());
    let mut stream = TcpStream::connect(server).expect("connected");
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
    stream.write_all(&query).expect("sent");
    let mut front = [0; 6];
    stream.read_exact(&mut front).expect("an answer");
    assert_eq!(front[5] & 0x0f, 0, "it is no refusal");
    stream
}

/// Transfers the zone from an address of this machine.
fn transfer_from(source: &str, server: &Configured) -> Ended {
    let at = format!("@{}", server.address);
    run(&mut nonesuch(["query", ZONE, &at, "--axfr", "--json", "--source", source]))
}

/// The value of a metric.
fn metric(server: &Configured, sample: &str) -> Option<u64> {
    let log = server.logged();
    let line = log.lines().find(|line| line.contains("metrics are served"))?;
    let address: SocketAddr = line.split_once("address=")?.1.split_whitespace().next()?.parse().ok()?;
    let mut stream = TcpStream::connect(address).expect("connected");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    text.lines().find_map(|line| line.strip_prefix(sample)?.trim().parse().ok())
}

#[test]
fn one_network_does_not_take_all_places() {
    let home = folder();
    fs::write(home.path().join("zone"), large()).expect("written");
    let zones = format!(
        "metrics-listen = \"127.0.0.1:0\"\n[limits]\nexempt = []\ntransfers-out = 2\ntransfers-out-each = 1\ntcp-write = \"1m\"\n\
         [zone.\"{ZONE}\"]\nfile = \"zone\"\ntransfer = [\"127.0.0.0/8\"]\n"
    );
    let server = Configured::start(&configure(home.path(), &zones));
    server.wait_for(ZONE, 1);
    let held = begin_transfer(server.address);
    let refused = transfer_from("127.0.0.9", &server).text();
    assert!(refused.contains("SERVFAIL") && refused.contains("EDE 14"), "{refused}");
    let reason = "too many transfers to this network are under way: raise limits.transfers-out-each";
    server.wait_until("a line in the log", || server.logged().contains(reason));
    server.wait_until("the metrics", || {
        metric(&server, "nonesuch_transfers_refused_total{reason=\"too_many\"}") == Some(0)
    });
    assert_eq!(metric(&server, "nonesuch_transfers_refused_total{reason=\"too_many_of_client\"}"), Some(1));
    // There is room for another network.
    transfer_from("127.1.0.1", &server).expect_done("the other network's transfer");
    drop(held);
    server.wait_until("room", || transfer_from("127.0.0.9", &server).text().contains("\"kind\":\"AXFR\""));
}
