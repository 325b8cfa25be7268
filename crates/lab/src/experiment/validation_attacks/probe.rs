//! CPU time of a resolver for single queries.

use crate::process::tree;
use nonesuch_proto::message::{HEADER, Header, Rcode, flags, push_query};
use nonesuch_proto::{Name, Rtype, edns};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};
use std::{fs, net::Ipv4Addr};

/// Time to wait for a response. Unbound drops a response after 1.9 s (`discard-timeout`), and
/// interrupts a validation for at most 5 s.
const PATIENCE: Duration = Duration::from_secs(8);
/// Time after which a series of queries ends.
const SERIES_LIMIT: Duration = Duration::from_secs(10);
/// Interval between two readings of the CPU time.
const READING_INTERVAL: Duration = Duration::from_micros(100);
/// Time to wait until a resolver is idle.
const IDLE_LIMIT: Duration = Duration::from_secs(2);

/// Responses to hostile queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(super) struct Responses {
    pub(super) noerror: u64,
    pub(super) nxdomain: u64,
    pub(super) servfail: u64,
    /// Responses with another code.
    pub(super) other: u64,
    /// Queries without a response.
    pub(super) unanswered: u64,
    /// Number of responses whose flags were read.
    pub(super) sampled: u64,
    /// Number of these with the flag AD.
    pub(super) authenticated: u64,
}

impl Responses {
    fn count(&mut self, response: Option<Header>) {
        let Some(header) = response else {
            self.unanswered += 1;
            return;
        };
        let place = match header.rcode() {
            Rcode::NOERROR => &mut self.noerror,
            Rcode::NXDOMAIN => &mut self.nxdomain,
            Rcode::SERVFAIL => &mut self.servfail,
            _ => &mut self.other,
        };
        *place += 1;
        self.count_flags(header);
    }

    /// Counts a response whose flags were read.
    pub(super) fn count_flags(&mut self, header: Header) {
        self.sampled += 1;
        self.authenticated += u64::from(header.flags & flags::AD != 0);
    }
}

/// The result of a series of queries.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Series {
    /// Number of queries.
    pub(super) queries: u64,
    /// Mean CPU time of a query, in µs; `None` if the resolver never became idle.
    pub(super) cpu_us: Option<f64>,
    /// Maximum CPU time of a query, in µs; `None` for queries at the same time.
    pub(super) cpu_max_us: Option<f64>,
    pub(super) responses: Responses,
}

/// A client that reads the CPU time of all threads of the resolver before and after queries.
pub(super) struct Probe {
    socket: UdpSocket,
    processes: Vec<u32>,
    id: u16,
}

impl Probe {
    /// Creates a client of the resolver with this process ID.
    ///
    /// # Errors
    /// Errors of the socket.
    pub(super) fn new(resolver: SocketAddr, pid: u32) -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.connect(resolver)?;
        Ok(Self { socket, processes: tree(pid), id: 0 })
    }

    /// Sends one query at a time: each starts when the resolver is idle, so that signatures of two
    /// queries never share a batch. Ends after the last name, or after [`SERIES_LIMIT`].
    ///
    /// # Errors
    /// Errors of the socket.
    pub(super) fn in_turn(&mut self, names: &[Name]) -> io::Result<Series> {
        let (mut series, mut total, mut known) = (Series::default(), 0.0, 0_u32);
        let started = Instant::now();
        for name in names {
            let before = self.cpu_when_idle();
            let id = self.send(name)?;
            series.responses.count(self.receive(Instant::now() + PATIENCE, |header| header.id == id)?);
            series.queries += 1;
            if let Some((before, after)) = before.zip(self.cpu_when_idle()) {
                let used = (after - before) as f64 / 1000.0;
                (total, known) = (total + used, known + 1);
                series.cpu_max_us = Some(series.cpu_max_us.map_or(used, |most: f64| most.max(used)));
            }
            if started.elapsed() > SERIES_LIMIT {
                break;
            }
        }
        series.cpu_us = (known > 0).then(|| total / f64::from(known));
        Ok(series)
    }

    /// Sends all queries at once.
    ///
    /// # Errors
    /// Errors of the socket.
    pub(super) fn at_once(&mut self, names: &[Name]) -> io::Result<Series> {
        let before = self.cpu_when_idle();
        let first = self.id;
        for name in names {
            self.send(name)?;
        }
        let count = names.len() as u16;
        let mut responses = Responses::default();
        let end = Instant::now() + PATIENCE;
        for _ in names {
            responses
                .count(self.receive(end, |header| header.id.wrapping_sub(first).wrapping_sub(1) < count)?);
        }
        let used = before.zip(self.cpu_when_idle());
        let cpu_us = used.map(|(before, after)| (after - before) as f64 / 1000.0 / names.len().max(1) as f64);
        Ok(Series { queries: names.len() as u64, cpu_us, cpu_max_us: None, responses })
    }

    /// Sends a query and returns its identifier.
    fn send(&mut self, name: &Name) -> io::Result<u16> {
        self.id = self.id.wrapping_add(1);
        let mut query = Vec::with_capacity(512);
        push_query(name, Rtype::A, self.id, flags::RD, &mut query);
        edns::push_opt(1232, 0, edns::DO, &mut query);
        // ARCOUNT: the OPT record.
        query[HEADER - 1] = 1;
        self.socket.send(&query)?;
        Ok(self.id)
    }

    /// The header of the next expected response; `None` if there is none until `end`.
    fn receive(&self, end: Instant, is_expected: impl Fn(&Header) -> bool) -> io::Result<Option<Header>> {
        let mut octets = [0; 4096];
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            self.socket.set_read_timeout(Some(left))?;
            match self.socket.recv(&mut octets) {
                Ok(length) => {
                    if let Some(header) = Header::read(&octets[..length]).filter(&is_expected) {
                        return Ok(Some(header));
                    }
                }
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// CPU time of all threads in ns, once no thread runs and the time no longer grows: the kernel
    /// counts the nanoseconds of a thread when it begins to wait. `None` if a thread always runs.
    fn cpu_when_idle(&self) -> Option<u64> {
        let end = Instant::now() + IDLE_LIMIT;
        let mut last = None;
        while Instant::now() < end {
            let now = self.cpu();
            if now.is_some() && now == last {
                return now;
            }
            last = now;
            thread::sleep(READING_INTERVAL);
        }
        None
    }

    /// Sum of the CPU times of all threads in ns; `None` if a thread runs.
    fn cpu(&self) -> Option<u64> {
        let tasks = |pid: &u32| fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
        let mut sum = 0;
        for task in self.processes.iter().flat_map(tasks) {
            let read = |file| fs::read_to_string(task.path().join(file)).unwrap_or_default();
            // The state follows the name of the program, which ends with the last parenthesis.
            if read("stat").rsplit(") ").next().is_some_and(|rest| rest.starts_with('R')) {
                return None;
            }
            let time = read("schedstat").split_ascii_whitespace().next().and_then(|time| time.parse().ok());
            sum += time.unwrap_or(0_u64);
        }
        Some(sum)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers each query `copies` times, the first time with a wrong identifier.
    fn answer(server: &UdpSocket, count: usize, rcode: u16) {
        for _ in 0..count {
            let mut octets = [0; 512];
            let (length, client) = server.recv_from(&mut octets).expect("a query");
            let header = Header::read(&octets[..length]).expect("a header");
            for id in [header.id.wrapping_add(1000), header.id] {
                let response =
                    Header { id, flags: flags::QR | flags::AD | rcode, counts: header.counts }.to_octets();
                server.send_to(&response, client).expect("sent");
            }
        }
    }

    #[test]
    fn responses_with_another_identifier_do_not_count() {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let address = server.local_addr().expect("an address");
        let names = ["a.example.", "b.example."].map(|name| name.parse().expect("a name"));
        let server = thread::spawn(move || {
            answer(&server, 2, 2);
            answer(&server, 2, 3);
        });
        // A process that is never idle while it asks: only the responses count.
        let mut probe = Probe::new(address, u32::MAX).expect("a client");
        let series = probe.in_turn(&names).expect("a series");
        let expected = Responses { servfail: 2, sampled: 2, authenticated: 2, ..Responses::default() };
        assert_eq!((series.queries, series.responses), (2, expected));
        let series = probe.at_once(&names).expect("a series");
        let expected = Responses { nxdomain: 2, sampled: 2, authenticated: 2, ..Responses::default() };
        assert_eq!((series.queries, series.responses), (2, expected));
        assert_eq!(series.cpu_max_us, None);
        server.join().expect("ended");
    }
}
