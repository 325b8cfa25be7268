//! The thread that forwards packets between two TUN devices as two [`Path`]s decide.

use std::io::{self, PipeReader};
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nonesuch_net::Poll;
use nonesuch_net::namespace::Tun;

use super::LinkCounters;
use super::path::Path;

/// Maximum size of an IP packet in octets.
const PACKET_MAX: usize = 65_535;
/// Maximum number of packets that are received from one device before the thread turns to the other
/// device.
const BATCH: usize = 64;
/// Maximum time to wait while no packet is on the way.
const IDLE_WAIT: Duration = Duration::from_secs(3600);

/// Counters that the thread shares with the owner of the link.
#[derive(Debug, Clone, Default)]
pub(super) struct SharedCounters(Arc<Mutex<LinkCounters>>);

impl SharedCounters {
    pub(super) fn get(&self) -> LinkCounters {
        // The counters are plain numbers, so they are complete even after a panic.
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, counters: LinkCounters) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = counters;
    }
}

/// The devices at both ends, and the paths of both directions. `paths[0]` starts at `ends[0]`,
/// `paths[1]` at `ends[1]`.
pub(super) struct Forwarder {
    pub(super) ends: [Tun; 2],
    pub(super) paths: [Path; 2],
    /// Becomes readable when the owner of the link drops the writing end.
    pub(super) stop: PipeReader,
    pub(super) counters: SharedCounters,
}

impl Forwarder {
    /// Forwards packets until the link is closed.
    pub(super) fn run(mut self) -> io::Result<()> {
        let start = Instant::now();
        let mut poll = Poll::default();
        let mut buffer = vec![0; PACKET_MAX];
        // Packets with the index of the end that receives them.
        let mut packets: Vec<(usize, Vec<u8>)> = Vec::new();
        let mut rejected = 0;
        loop {
            self.receive(start, &mut buffer, &mut packets)?;
            self.collect_arrived(start.elapsed(), &mut packets);
            // Counted before delivery, so that the counters include each packet that a program has
            // received.
            self.publish(rejected);
            for (end, packet) in packets.drain(..) {
                rejected += u64::from(self.ends[end].send(&packet).is_err());
            }
            self.publish(rejected);
            if self.wait(&mut poll, start.elapsed())? {
                return Ok(());
            }
        }
    }

    /// Passes waiting packets to the paths, and collects their ICMP errors.
    fn receive(
        &mut self,
        start: Instant,
        buffer: &mut [u8],
        packets: &mut Vec<(usize, Vec<u8>)>,
    ) -> io::Result<()> {
        for (end, (device, path)) in self.ends.iter().zip(&mut self.paths).enumerate() {
            for _ in 0..BATCH {
                let Some(length) = device.receive(buffer)? else { break };
                // The time is read after the program has sent the packet, so that the packet never
                // takes less than the delay.
                let now = start.elapsed();
                let error = path.send(now, buffer.get(..length).unwrap_or_default());
                packets.extend(error.map(|error| (end, error)));
            }
        }
        Ok(())
    }

    /// Collects the packets that have arrived.
    fn collect_arrived(&mut self, now: Duration, packets: &mut Vec<(usize, Vec<u8>)>) {
        for (end, path) in self.paths.iter_mut().enumerate() {
            while let Some(packet) = path.poll(now) {
                packets.push((1 - end, packet));
            }
        }
    }

    fn publish(&self, rejected: u64) {
        let [forward, backward] = self.paths.each_ref().map(Path::counters);
        self.counters.set(LinkCounters { forward, backward, rejected });
    }

    /// Waits for a packet to receive or to deliver. Returns whether the link is closed.
    fn wait(&self, poll: &mut Poll, now: Duration) -> io::Result<bool> {
        let due = self.paths.iter().filter_map(Path::next_due).min();
        let limit = due.map_or(IDLE_WAIT, |due| due.saturating_sub(now));
        let [client, server] = &self.ends;
        let devices = [self.stop.as_fd(), client.as_fd(), server.as_fd()];
        poll.wait(devices.into_iter().map(|device| (device, false)), limit)?;
        Ok(poll.ready().any(|index| index == 0))
    }
}
