//! One thread of the load generator, with one or more sockets or connections.
//!
//! Without a rate, the loop is closed: the thread sends a query for each query that is answered or
//! lost. With a rate, the loop is open: the thread sends each query when it is due, and receives
//! responses in between.

use std::time::Instant;

use nonesuch_net::{NetError, Transport, pin_current_thread};

use super::connections::Connections;
use super::encoder::QueryEncoder;
use super::pacer::Pacer;
use super::progress::IntervalReporter;
use super::tally::Tally;
use super::udp::UdpSockets;
use super::{LoadError, LoadOptions};
use crate::process;

/// The sockets of a thread.
#[expect(clippy::large_enum_variant, reason = "there is one value for each thread")]
enum TransportSockets {
    Udp(UdpSockets),
    Stream(Connections),
}

/// One thread: its sockets, its share of the outstanding queries, and its counters.
pub(super) struct Worker<'a> {
    /// CPU to which the thread is bound; `None` if it is not bound.
    cpu: Option<usize>,
    pacer: Pacer<'a>,
    encoder: QueryEncoder,
    sockets: TransportSockets,
    /// Reports the counts of each interval; `None` without intervals.
    pub(super) reporter: Option<IntervalReporter>,
}

impl<'a> Worker<'a> {
    /// Creates the worker of thread `thread`, and opens its UDP sockets. `origin` is the start of
    /// the run.
    pub(super) fn new(
        options: &'a LoadOptions,
        order: Option<&'a [u32]>,
        thread: usize,
        origin: Instant,
    ) -> Result<Self, NetError> {
        let encoder = QueryEncoder::new(options, thread);
        let sockets = match options.transport {
            Transport::Udp => {
                TransportSockets::Udp(UdpSockets::new(options, thread, encoder.max_query_size())?)
            }
            Transport::Tcp | Transport::Tls => TransportSockets::Stream(Connections::new(options, thread)),
        };
        let cpus = options.cpus.as_ref().filter(|cpus| !cpus.is_empty());
        Ok(Self {
            cpu: cpus.map(|cpus| cpus[thread % cpus.len()]),
            pacer: Pacer::new(options, order, thread, origin),
            encoder,
            sockets,
            reporter: None,
        })
    }

    /// Sends and receives until the load ends, and returns the counters.
    pub(super) fn run(mut self) -> Result<Tally, LoadError> {
        if let Some(cpu) = self.cpu {
            pin_current_thread(cpu).map_err(|source| NetError::Pin { cpu, source })?;
        }
        let before = process::own_thread_cpu_time();
        let mut now = self.pacer.start();
        loop {
            let is_over = self.pacer.is_over(now);
            if is_over && self.pacer.outstanding == 0 {
                break;
            }
            if !is_over {
                self.send_due(now)?;
            }
            now = self.receive_and_expire(now)?;
            if let Some(reporter) = &mut self.reporter {
                reporter.report(self.pacer.elapsed(now), &self.pacer.tally);
            }
        }
        self.pacer.count_unsent();
        let spent =
            before.zip(process::own_thread_cpu_time()).map(|(before, after)| after.saturating_sub(before));
        self.pacer.tally.thread_cpu = spent.unwrap_or_default();
        self.pacer.tally.inspection =
            self.pacer.inspector.take().map(|inspector| inspector.results).unwrap_or_default();
        Ok(self.pacer.tally)
    }

    /// Sends the queries that are due, at most one batch on each socket or connection.
    fn send_due(&mut self, now: u64) -> Result<(), LoadError> {
        match &mut self.sockets {
            TransportSockets::Udp(sockets) => sockets.send_due(&mut self.pacer, &mut self.encoder, now),
            TransportSockets::Stream(connections) => {
                connections.send_due(&mut self.pacer, &mut self.encoder, now)
            }
        }
    }

    /// Receives the available responses, and counts queries as lost after the timeout. Returns the
    /// current time.
    fn receive_and_expire(&mut self, before: u64) -> Result<u64, LoadError> {
        let pacer = &mut self.pacer;
        pacer.is_drained = true;
        let now = match &mut self.sockets {
            TransportSockets::Udp(sockets) => sockets.receive(pacer, &mut self.encoder, before)?,
            TransportSockets::Stream(connections) => connections.receive(pacer, &mut self.encoder, before)?,
        };
        // If the thread was suspended, more responses may be queued than one receive step takes,
        // and they may have arrived in time. Therefore queries only count as lost after a step that
        // empties the sockets. The timeout is then compared with the start of this step.
        if pacer.is_drained && pacer.start_expiry_if_due(before) {
            match &mut self.sockets {
                TransportSockets::Udp(sockets) => sockets.expire(pacer, before),
                TransportSockets::Stream(connections) => connections.expire(pacer, before),
            }
        }
        Ok(now)
    }
}

#[cfg(test)]
mod tests {
    use super::super::QueryList;
    use super::*;
    use nonesuch_net::BATCH;
    use std::net::UdpSocket;
    use std::path::Path;
    use std::sync::Arc;
    use std::thread;
    use std::time::Duration;

    /// Answers `count` queries.
    fn answer(server: &UdpSocket, count: usize) {
        let mut octets = [0; 512];
        for _ in 0..count {
            let (length, peer) = server.recv_from(&mut octets).expect("a query");
            octets[2] |= 0x80;
            server.send_to(&octets[..length], peer).expect("sent");
        }
    }

    #[test]
    fn answers_that_came_while_the_thread_stood_still_are_not_lost() {
        let server = UdpSocket::bind("127.0.0.1:0").expect("bound");
        server.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
        let queries = QueryList::parse(Path::new("list"), b"a.example A\n").expect("a query");
        let address = server.local_addr().expect("an address");
        for sockets in [1, 2] {
            // All queries are outstanding at the same time. They are more than one receive step
            // takes.
            let all = 2 * BATCH + BATCH / 2;
            let timeout = Duration::from_millis(50);
            let options = LoadOptions {
                sockets,
                timeout,
                outstanding: all,
                limit: Some(all as u64 + 1),
                ..LoadOptions::new(address, Arc::new(queries.clone()))
            };
            let mut worker = Worker::new(&options, None, 0, Instant::now()).expect("a worker");
            let mut now = worker.pacer.clock();
            worker.pacer.stop_sending_at = u64::MAX;
            worker.pacer.tally = Tally::new(now);
            (0..3).for_each(|_| worker.send_due(now).expect("sent"));
            assert_eq!(worker.pacer.outstanding, all);
            answer(&server, all);
            thread::sleep(2 * timeout);
            for _ in 0..4 {
                now = worker.receive_and_expire(now).expect("received");
            }
            assert_eq!((worker.pacer.outstanding, worker.pacer.tally.lost), (0, 0), "{sockets} sockets");
            // A query without a response counts as lost.
            worker.send_due(now).expect("sent");
            assert_eq!(worker.pacer.outstanding, 1);
            let end = Instant::now() + Duration::from_secs(20);
            while worker.pacer.outstanding > 0 {
                assert!(Instant::now() < end, "it is waited for");
                now = worker.receive_and_expire(now).expect("received");
            }
            assert_eq!(worker.pacer.tally.lost, 1);
            server.recv_from(&mut [0; 512]).expect("the query");
        }
    }
}
