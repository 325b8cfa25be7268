//! CPU time of a resolver for one query.

use crate::resolvers::Running;
use nonesuch_lab::process::tree;
use nonesuch_proto::message::{HEADER, Message, flags, push_query};
use nonesuch_proto::{Name, Rtype, edns};
use std::collections::BTreeMap;
use std::fs;
use std::net::{Ipv4Addr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

/// Time to wait for a response. Unbound drops a response after 1.9 s (`discard-timeout`), and interrupts a
/// validation for at most 5 s.
const PATIENCE: Duration = Duration::from_secs(8);
/// Interval between two readings of the CPU time.
const STEP: Duration = Duration::from_micros(100);
/// Maximum number of readings after a response: a second.
const READINGS: u32 = 10_000;

/// A client that asks one query at a time, and reads the CPU time of all threads of the resolver before and
/// after it.
pub(crate) struct Probe {
    socket: UdpSocket,
    processes: Vec<u32>,
    id: u16,
    /// When the last query was sent.
    sent: Instant,
    /// Number of responses with each response code.
    pub(crate) rcodes: BTreeMap<String, u64>,
}

impl Probe {
    pub(crate) fn new(running: &Running) -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        socket.connect(running.address()).expect("the resolver");
        socket.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        Self { socket, processes: tree(running.pid()), id: 0, sent: Instant::now(), rcodes: BTreeMap::new() }
    }

    /// CPU time of the resolver for a query in µs, until all its threads wait.
    pub(crate) fn ask(&mut self, name: &str) -> f64 {
        self.ask_at_once(&[name])
    }

    /// CPU time for each of several queries that are outstanding at the same time.
    pub(crate) fn ask_at_once(&mut self, names: &[impl AsRef<str>]) -> f64 {
        let before = self.cpu_when_idle();
        names.iter().for_each(|name| self.send(name.as_ref()));
        for _ in names {
            let rcode = self.receive();
            *self.rcodes.entry(rcode).or_default() += 1;
        }
        (self.cpu_when_idle() - before) / names.len() as f64
    }

    fn send(&mut self, name: &str) {
        self.id = self.id.wrapping_add(1);
        let name: Name = name.parse().expect("a name");
        let mut query = Vec::with_capacity(512);
        push_query(&name, Rtype::A, self.id, flags::RD, &mut query);
        edns::push_opt(1232, 0, edns::DO, &mut query);
        query[HEADER - 1] = 1;
        self.socket.send(&query).expect("a sent query");
        self.sent = Instant::now();
    }

    /// The response code of the next response, or `none` without a response.
    fn receive(&self) -> String {
        if self.sent.elapsed() >= PATIENCE {
            return "none".to_owned();
        }
        let mut octets = [0; 4096];
        let response =
            self.socket.recv(&mut octets).ok().and_then(|length| Message::parse(&octets[..length]).ok());
        response.map_or_else(|| "none".to_owned(), |response| response.rcode().to_string())
    }

    /// CPU time of all threads in µs, once no thread runs and the time no longer grows: the kernel counts the
    /// nanoseconds of a thread when it begins to wait.
    fn cpu_when_idle(&self) -> f64 {
        let mut last = None;
        for _ in 0..READINGS {
            let now = self.cpu();
            if now.is_some() && now == last {
                break;
            }
            last = now;
            thread::sleep(STEP);
        }
        last.expect("a resolver that becomes idle") as f64 / 1_000.0
    }

    /// Sum of the CPU times of all threads in ns; `None` if a thread runs.
    fn cpu(&self) -> Option<u64> {
        let tasks = |pid: &u32| fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let mut sum = 0;
        for task in self.processes.iter().flat_map(tasks) {
            let read = |file| fs::read_to_string(task.path().join(file)).unwrap_or_default();
            let stat = read("stat");
            if stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('R')) {
                return None;
            }
            let time = read("schedstat").split_ascii_whitespace().next().and_then(|time| time.parse().ok());
            sum += time.unwrap_or(0_u64);
        }
        Some(sum)
    }
}
