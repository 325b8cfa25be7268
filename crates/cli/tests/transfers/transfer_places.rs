//! Limits of outgoing transfers: one network cannot use all of them (`transfers-out-each`), and a
//! rejected client is informed, logged and counted. A client may read slowly (`transfer-out-idle`),
//! but not forever (`transfer-out-time`).

use crate::common;
use common::configured::{Configured, configure, plain_zone, write_beside};
use common::{Ended, folder, nonesuch, run, snapshot};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::push_query;
use socket2::{Domain, Socket, Type};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const ZONE: &str = "large.example.";

/// A zone of many megabytes, so that its transfer does not end while the client does not read.
fn large() -> String {
    zone_of(40_000, 1)
}

/// A zone with `records` TXT records of 250 octets.
fn zone_of(records: usize, serial: u32) -> String {
    let text = "x".repeat(250);
    let records = (0..records).map(|number| format!("name{number} 60 TXT \"{text}\"\n"));
    plain_zone(ZONE, serial) + &records.collect::<String>()
}

/// A connection with a receive buffer of 8 KiB, so that the system buffers little data for the
/// client.
fn connect_small(server: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
    socket.set_recv_buffer_size(1 << 13).expect("set");
    socket.connect(&server.into()).expect("connected");
    socket.into()
}

/// Starts a transfer and does not read it.
fn begin_transfer(server: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(server).expect("connected");
    request_transfer(&mut stream);
    let mut front = [0; 6];
    stream.read_exact(&mut front).expect("an answer");
    assert_eq!(front[5] & 0x0f, 0, "it is no refusal");
    stream
}

fn request_transfer(stream: &mut TcpStream) {
    let mut query = vec![0; 2];
    push_query(&ZONE.parse().expect("a name"), Rtype::AXFR, 7, 0, &mut query);
    let length = (query.len() - 2) as u16;
    query[..2].copy_from_slice(&length.to_be_bytes());
    stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a limit");
    stream.write_all(&query).expect("sent");
}

/// Appends received data at 25 KB per second, until `is_done` is set.
fn read_slowly(stream: &mut TcpStream, is_done: &AtomicBool, out: &mut Vec<u8>) {
    // Nothing arrives at this socket; its timeout sets the speed of the reader.
    let silent = UdpSocket::bind("127.0.0.1:0").expect("bound");
    silent.set_read_timeout(Some(Duration::from_millis(40))).expect("set");
    while !is_done.load(Ordering::Relaxed) {
        let mut piece = [0; 1000];
        stream.read_exact(&mut piece).expect("the transfer goes on");
        out.extend_from_slice(&piece);
        assert!(silent.recv(&mut [0; 1]).is_err());
    }
}

/// Reads messages until they contain `records` answer records, after those that are already in
/// `octets`.
fn read_records(stream: &mut TcpStream, octets: &mut Vec<u8>, records: usize) {
    let (mut at, mut found) = (0, 0);
    loop {
        while let Some(&[a, b]) = octets.get(at..at + 2)
            && octets.len() >= at + 2 + usize::from(u16::from_be_bytes([a, b]))
        {
            found += usize::from(u16::from_be_bytes([octets[at + 8], octets[at + 9]]));
            at += 2 + usize::from(u16::from_be_bytes([a, b]));
        }
        if found >= records {
            break;
        }
        let mut piece = [0; 1 << 14];
        let read = stream.read(&mut piece).expect("the rest");
        assert!(read > 0, "the transfer ended after {found} records");
        octets.extend_from_slice(&piece[..read]);
    }
    assert_eq!(found, records);
}

/// Transfers the zone from an address of this machine.
fn transfer_from(source: &str, server: &Configured) -> Ended {
    let at = format!("@{}", server.address);
    run(&mut nonesuch(["query", ZONE, &at, "--axfr", "--json", "--source", source]))
}

/// The value of a metric.
fn metric(server: &Configured, sample: &str) -> Option<u64> {
    let line = server.events("metrics-listening", &[]).into_iter().next()?;
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
        "metrics-listen = \"127.0.0.1:0\"\n[limits]\nexempt = []\ntransfers-out = 2\ntransfers-out-each = 1\ntransfer-out-idle = \"1m\"\n\
         [zone.\"{ZONE}\"]\nfile = \"zone\"\ntransfer = [\"127.0.0.0/8\"]\n"
    );
    let server = Configured::start(&configure(home.path(), &zones));
    server.wait_for(ZONE, 1);
    let held = begin_transfer(server.address);
    let refused = transfer_from("127.0.0.9", &server).text();
    assert!(refused.contains("SERVFAIL") && refused.contains("EDE 0"), "{refused}");
    let fields = ["zone=large.example.", "reason=too_many_of_client"];
    let line = server.wait_for_event("transfer-refused", &fields);
    let peer = line.split(" peer=").nth(1).and_then(|rest| rest.split(' ').next()).expect("a peer");
    assert!(peer.starts_with("127.0.0.9:"), "{line}");
    snapshot::check("serve", "too many transfers to a network", &line.replace(peer, "PEER"));
    server.wait_until("the metrics", || {
        metric(&server, "nonesuch_transfers_refused_total{reason=\"too_many\"}") == Some(0)
    });
    assert_eq!(metric(&server, "nonesuch_transfers_refused_total{reason=\"too_many_of_client\"}"), Some(1));
    // Another network can still transfer.
    transfer_from("127.1.0.1", &server).expect_done("the other network's transfer");
    drop(held);
    server.wait_until("room", || transfer_from("127.0.0.9", &server).text().contains("\"kind\":\"AXFR\""));
}

/// A transfer continues while its client reads 16 KiB within each idle time, and it delivers the
/// version with which it started. The kernel takes 128 KiB at once from the server, and this client
/// needs 5 seconds for them.
#[test]
fn a_client_may_read_slowly_but_not_stop() {
    const RECORDS: usize = 4000;
    let home = folder();
    let path = home.path().join("zone");
    fs::write(&path, zone_of(RECORDS, 1)).expect("written");
    let zones = format!(
        "[limits]\ntcp-write = \"1s\"\ntransfer-out-idle = \"2s\"\n\
         [zone.\"{ZONE}\"]\nfile = \"zone\"\ntransfer = [\"any\"]\n"
    );
    let server = Configured::start(&configure(home.path(), &zones));
    server.wait_for(ZONE, 1);
    let under_way = || server.ctl_json(&["status"])["transfers_out"].as_array().map_or(0, Vec::len);
    let mut stream = connect_small(server.address);
    let begun = Instant::now();
    request_transfer(&mut stream);
    let mut octets = Vec::new();
    let is_done = AtomicBool::new(false);
    // The client reads while the server reloads, however long that takes.
    let open = std::thread::scope(|scope| {
        scope.spawn(|| read_slowly(&mut stream, &is_done, &mut octets));
        write_beside(&path, &zone_of(1, 2));
        assert_eq!(server.ctl(&["reload"]).status, 0, "{}", server.logged());
        server.wait_for(ZONE, 2);
        server.wait_until("3 seconds of the transfer", || begun.elapsed() > Duration::from_secs(3));
        let open = under_way();
        is_done.store(true, Ordering::Relaxed);
        open
    });
    assert_eq!(open, 1);
    // Each version contains SOA (first and last), NS, A and one TXT record.
    read_records(&mut stream, &mut octets, RECORDS + 5);
    server.wait_until("the end of the transfer", || under_way() == 0);
    // A transfer to a client that stops reading is ended.
    write_beside(&path, &zone_of(RECORDS, 3));
    assert_eq!(server.ctl(&["reload"]).status, 0, "{}", server.logged());
    server.wait_for(ZONE, 3);
    let stopped = begin_transfer(server.address);
    server.wait_for_event("transfer-ended", &["outcome=aborted"]);
    assert_eq!(under_way(), 0);
    drop(stopped);
}
