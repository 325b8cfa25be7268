//! Queries for the whole run: datagrams by `nonesuch load`, and streams of queries over TCP and
//! TLS.

use super::common::{nonesuch, text};
use super::zones::Question;
use nonesuch_net::ClientError;
use nonesuch_net::client::{ConnectOptions, Connection};
use nonesuch_net::tls::ClientTls;
use nonesuch_proto::edns;
use nonesuch_proto::message::{HEADER, Header, push_query};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Duration of one run of `nonesuch load`, in seconds; losses are visible after each run.
const RUN: f64 = 60.0;
/// Timeout of a response, in seconds. It is long because the whole machine may stall, and a lost
/// response never arrives.
const TIMEOUT: u64 = 60;
/// Time between two bursts of a stream.
const BURST: Duration = Duration::from_millis(50);
/// Bursts of a connection, before another connection is opened.
const BURSTS: u32 = 100;

/// The end of the load.
pub(crate) struct End {
    pub(crate) at: Instant,
    /// Set if the test ends earlier.
    pub(crate) now: AtomicBool,
}

impl End {
    fn has_come(&self) -> bool {
        self.now.load(Relaxed) || Instant::now() >= self.at
    }
}

/// The results of the queries.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) lost: u64,
    /// Datagrams that answer no outstanding query.
    pub(crate) unexpected: u64,
    pub(crate) truncated: u64,
    pub(crate) rcodes: BTreeMap<String, u64>,
    pub(crate) slowest_ms: f64,
    pub(crate) connections: u64,
    /// Errors with their times.
    pub(crate) faults: Vec<String>,
}

impl Totals {
    fn fault(&mut self, what: String) {
        println!("FAULT {what}");
        if self.faults.len() < 20 {
            self.faults.push(what);
        }
    }

    /// Adds the report of a run of `nonesuch load`.
    fn add(&mut self, report: &Value) {
        let number = |key: &str| report[key].as_u64().unwrap_or(0);
        self.sent += number("sent");
        self.received += number("received");
        self.lost += number("lost");
        self.unexpected += number("unexpected");
        self.truncated += number("truncated");
        for (rcode, count) in report["rcodes"].as_object().into_iter().flatten() {
            *self.rcodes.entry(rcode.clone()).or_default() += count.as_u64().unwrap_or(0);
        }
        self.slowest_ms = self.slowest_ms.max(report["latency_us"]["max"].as_f64().unwrap_or(0.0) / 1000.0);
        if number("lost") + number("unexpected") > 0 {
            self.fault(format!("{} lost and {} unexpected datagrams", number("lost"), number("unexpected")));
        }
    }

    /// Unexpected results; empty if there are only expected responses.
    pub(crate) fn unwanted(&self) -> Vec<&String> {
        self.rcodes.keys().filter(|rcode| *rcode != "NOERROR" && *rcode != "NXDOMAIN").collect()
    }
}

/// Queries of one kind.
pub(crate) enum Load<'s> {
    Datagrams { server: SocketAddr, queries: PathBuf, rate: u32, more: &'static [&'static str] },
    Stream(Stream<'s>),
}

impl Load<'_> {
    /// Sends queries until the end.
    pub(crate) fn run(&self, end: &End) -> Totals {
        match self {
            Self::Datagrams { server, queries, rate, more } => datagrams(*server, queries, *rate, more, end),
            Self::Stream(stream) => stream.run(end),
        }
    }
}

/// Sends `rate` queries per second over UDP, from a file.
fn datagrams(server: SocketAddr, queries: &Path, rate: u32, more: &[&str], end: &End) -> Totals {
    let mut totals = Totals::default();
    let out = queries.with_extension("json");
    loop {
        let seconds = end.at.saturating_duration_since(Instant::now()).as_secs_f64().min(RUN);
        if seconds < 0.2 || end.has_come() {
            return totals;
        }
        // Not more outstanding queries than the smallest usual socket buffer has room for, so that
        // a machine that stalls delays queries but drops none.
        let mut child =
            nonesuch(["load", "--server", &server.to_string(), "--queries", text(queries), "--json"])
                .args([
                    "--sleep",
                    "--do",
                    "--sockets",
                    "2",
                    "--outstanding",
                    "128",
                    "--rate",
                    &rate.to_string(),
                ])
                .args(["--seconds", &seconds.to_string(), "--timeout", &TIMEOUT.to_string()])
                .args(more)
                .stdout(Stdio::from(fs::File::create(&out).expect("a file")))
                .spawn()
                .expect("nonesuch starts");
        while child.try_wait().expect("a child").is_none() {
            if end.now.load(Relaxed) {
                let _ = child.kill();
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        let report = fs::read_to_string(&out).unwrap_or_default();
        match serde_json::from_str(&report) {
            Ok(report) => totals.add(&report),
            Err(_) if end.now.load(Relaxed) => {}
            Err(error) => totals.fault(format!("nonesuch load: {error}: {report}")),
        }
    }
}

/// A stream of queries: many outstanding queries, on connections that are closed and opened again.
pub(crate) struct Stream<'s> {
    pub(crate) server: SocketAddr,
    /// For TLS, the settings of the client.
    pub(crate) tls: Option<ClientTls>,
    pub(crate) questions: &'s [Question],
    /// Queries per second.
    pub(crate) rate: u32,
}

impl Stream<'_> {
    fn run(&self, end: &End) -> Totals {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let mut totals = Totals::default();
        let mut place = 0;
        while !end.has_come() {
            let connection = runtime.block_on(self.run_connection(&mut place, &mut totals, end));
            if let Err(error) = connection {
                totals.fault(error.to_string());
                std::thread::sleep(BURST);
            }
        }
        totals
    }

    async fn run_connection(
        &self,
        place: &mut usize,
        totals: &mut Totals,
        end: &End,
    ) -> Result<(), ClientError> {
        let patience = Duration::from_secs(TIMEOUT);
        let options = ConnectOptions {
            connect_timeout: patience,
            send_timeout: patience,
            receive_timeout: patience,
            ..ConnectOptions::default()
        };
        let mut connection = match &self.tls {
            None => Connection::open(self.server, &options).await,
            Some(tls) => Connection::open_tls(self.server, &options, tls).await,
        }?;
        totals.connections += 1;
        let each = self.rate * BURST.as_millis() as u32 / 1000;
        for _ in 0..BURSTS {
            if end.has_come() {
                break;
            }
            let begun = tokio::time::Instant::now();
            let mut outstanding = BTreeSet::new();
            let mut octets = Vec::new();
            for id in 0..each.max(1) as u16 {
                write_query(&self.questions[*place % self.questions.len()], id, &mut octets);
                *place += 1;
                outstanding.insert(id);
                totals.sent += 1;
                if let Err(error) = connection.send(&octets).await {
                    totals.lost += outstanding.len() as u64;
                    return Err(error);
                }
            }
            while !outstanding.is_empty() {
                if let Err(error) = connection.receive(&mut octets).await {
                    totals.lost += outstanding.len() as u64;
                    return Err(error);
                }
                take_answer(&octets, &mut outstanding, totals);
            }
            totals.slowest_ms = totals.slowest_ms.max(begun.elapsed().as_secs_f64() * 1000.0);
            tokio::time::sleep_until(begun + BURST).await;
        }
        Ok(())
    }
}

fn write_query(question: &Question, id: u16, octets: &mut Vec<u8>) {
    octets.clear();
    push_query(&question.name.parse().expect("a name"), question.rtype, id, 0, octets);
    edns::push_opt(1232, 0, edns::DO, octets);
    octets[HEADER - 1] = 1;
}

fn take_answer(octets: &[u8], outstanding: &mut BTreeSet<u16>, totals: &mut Totals) {
    let header = Header::read(octets).filter(|header| outstanding.remove(&header.id));
    let Some(header) = header else {
        totals.unexpected += 1;
        return totals.fault("an answer to nothing that was asked".to_owned());
    };
    totals.received += 1;
    *totals.rcodes.entry(header.rcode().to_string()).or_default() += 1;
}
