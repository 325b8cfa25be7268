//! The model of one direction of a path: it decides which packets arrive, and when.
//!
//! The model reads no clock and opens no device. Times are durations since an arbitrary start, and
//! must not decrease from call to call. The n-th packet gets the n-th group of random numbers.
//! Therefore the random decisions about it depend on the seed and on n, but not on its time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use etherparse::ip_number;
use rand::Rng as _;
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;

use super::options::{OptionsError, PathOptions};
use super::packet;

/// Maximum number of octets on the way, including [`PACKET_OVERHEAD`] for each packet. It bounds
/// the memory of a path with a long delay.
const IN_TRANSIT_OCTETS_MAX: usize = 64 << 20;
/// Memory of a packet besides its octets, in bytes.
const PACKET_OVERHEAD: usize = 128;
/// The rate of one octet per nanosecond, in bits per second.
const BITS_PER_OCTET_PER_NS: u64 = 8_000_000_000;

/// IPv4 address from which ICMP errors come.
pub(super) const ROUTER_V4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 254);
/// IPv6 address from which ICMP errors come.
pub(super) const ROUTER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0xfe);

/// Numbers of packets of one direction.
///
/// Every packet is in one of these numbers: `sent` + `fragments` + `duplicated` = `fragmented` +
/// `delivered` + `lost` + `overflowed` + `too_big` + `fragments_dropped` + `udp_dropped` + `ignored` +
/// packets on the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct PathCounters {
    /// Packets that the sender sent.
    pub sent: u64,
    /// Packets that arrived: whole packets, fragments and copies.
    pub delivered: u64,
    /// Packets dropped at random.
    pub lost: u64,
    /// Packets dropped because the queue was full.
    pub overflowed: u64,
    /// Packets dropped because they exceeded the path MTU and must not be fragmented.
    pub too_big: u64,
    /// ICMP errors that the sender got for such packets.
    pub icmp_errors: u64,
    /// Packets that the path split into fragments.
    pub fragmented: u64,
    /// Fragments that the path made of them.
    pub fragments: u64,
    /// Fragments dropped by `drop_fragments`.
    pub fragments_dropped: u64,
    /// Datagrams and their fragments dropped by `drop_udp`.
    pub udp_dropped: u64,
    /// Additional copies of packets.
    pub duplicated: u64,
    /// Packets that were held back.
    pub held: u64,
    /// Malformed packets, and packets that no router forwards.
    pub ignored: u64,
    /// Total time that the delivered packets were on the way, by the clock of the model, in ns.
    pub transit_ns: u64,
}

/// A packet that was sent and has not arrived. The order is that of arrival.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PacketInTransit {
    /// Time of arrival.
    due: Duration,
    /// Distinguishes packets with the same time: the order of sending.
    number: u64,
    /// Time at which the sender sent the packet.
    entered: Duration,
    octets: Vec<u8>,
}

/// One direction of a path.
#[derive(Debug)]
pub struct Path {
    options: PathOptions,
    random: ChaCha8Rng,
    packets: BinaryHeap<Reverse<PacketInTransit>>,
    /// Memory of `packets`, in octets.
    memory: usize,
    /// Number of the next packet that is added to `packets`.
    next_number: u64,
    /// Time at which the last octet that waits because of the rate has been sent.
    busy_until: Duration,
    /// Time of arrival of the last packet that was not held back.
    last_due: Duration,
    counters: PathCounters,
}

/// Random decisions about one packet.
struct RandomDecisions {
    lost: bool,
    duplicated: bool,
    held: bool,
    jitter: Duration,
}

impl Path {
    /// Creates a path. Paths with the same seed and different values of `stream` are independent.
    ///
    /// # Errors
    /// [`OptionsError`] if an option is out of range.
    pub fn new(options: PathOptions, seed: u64, stream: u64) -> Result<Self, OptionsError> {
        options.check()?;
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        random.set_stream(stream);
        Ok(Self {
            options,
            random,
            packets: BinaryHeap::new(),
            memory: 0,
            next_number: 0,
            busy_until: Duration::ZERO,
            last_due: Duration::ZERO,
            counters: PathCounters::default(),
        })
    }

    /// Takes an IP packet from the sender at the time `now`. Returns the ICMP error that the sender
    /// gets at once: the router that sends it is at the sender's end of the path.
    pub fn send(&mut self, now: Duration, packet: &[u8]) -> Option<Vec<u8>> {
        self.counters.sent += 1;
        let Some(parsed) = packet::parse(packet) else {
            self.counters.ignored += 1;
            return None;
        };
        if self.options.drop_udp && parsed.payload_ip_number() == ip_number::UDP {
            self.counters.udp_dropped += 1;
            return None;
        }
        if packet.len() <= packet::size_limit(&parsed, self.options.mtu) {
            self.forward(now, packet, parsed.is_fragmenting_payload());
            return None;
        }
        if packet::may_fragment(&parsed) {
            self.fragment(now, packet);
            return None;
        }
        self.counters.too_big += 1;
        if !self.options.icmp {
            return None;
        }
        let error = packet::icmp_error(packet, &parsed, self.options.mtu, ROUTER_V4, ROUTER_V6);
        self.counters.icmp_errors += u64::from(error.is_some());
        error
    }

    fn fragment(&mut self, now: Duration, packet: &[u8]) {
        let Some(fragments) = packet::fragment(packet, self.options.mtu) else {
            self.counters.ignored += 1;
            return;
        };
        self.counters.fragmented += 1;
        self.counters.fragments += fragments.len() as u64;
        for fragment in fragments {
            self.forward(now, &fragment, true);
        }
    }

    /// Forwards a packet that fits the MTU.
    fn forward(&mut self, now: Duration, packet: &[u8], is_fragment: bool) {
        if is_fragment && self.options.drop_fragments {
            self.counters.fragments_dropped += 1;
            return;
        }
        let random = self.draw_decisions();
        if random.lost {
            self.counters.lost += 1;
            return;
        }
        let Some(sent) = self.transmit(now, packet.len()) else {
            self.counters.overflowed += 1;
            return;
        };
        let mut due = self.last_due.max(sent + self.options.delay + random.jitter);
        if random.held {
            self.counters.held += 1;
            due += self.options.hold;
        } else {
            self.last_due = due;
        }
        self.push(now, due, packet);
        if random.duplicated {
            self.counters.duplicated += 1;
            self.push(now, due, packet);
        }
    }

    /// Decides about the next packet. Draws the same amount of random numbers for each packet.
    fn draw_decisions(&mut self) -> RandomDecisions {
        let [loss, duplication, reordering, jitter]: [f64; 4] = self.random.random();
        RandomDecisions {
            lost: loss < self.options.loss,
            duplicated: duplication < self.options.duplication,
            held: reordering < self.options.reordering,
            jitter: self.options.jitter.mul_f64(jitter),
        }
    }

    /// Queues a packet of `octets` octets for sending at the rate of the path. Returns the time at
    /// which its last octet has been sent; `None` if the queue is full.
    fn transmit(&mut self, now: Duration, octets: usize) -> Option<Duration> {
        let Some(rate) = self.options.rate else { return Some(now) };
        let waiting = self.busy_until.saturating_sub(now);
        let waiting_octets = waiting.as_nanos() * u128::from(rate) / u128::from(BITS_PER_OCTET_PER_NS);
        if waiting_octets > 0 && waiting_octets + octets as u128 > self.options.queue as u128 {
            return None;
        }
        // A packet has at most 65575 octets, so that the product is less than 2^50.
        let time = Duration::from_nanos(octets as u64 * BITS_PER_OCTET_PER_NS / rate);
        self.busy_until = self.busy_until.max(now) + time;
        Some(self.busy_until)
    }

    /// Adds a packet to those on the way, unless they take too much memory.
    fn push(&mut self, entered: Duration, due: Duration, packet: &[u8]) {
        let memory = packet.len() + PACKET_OVERHEAD;
        if self.memory + memory > IN_TRANSIT_OCTETS_MAX {
            self.counters.overflowed += 1;
            return;
        }
        self.memory += memory;
        self.packets.push(Reverse(PacketInTransit {
            due,
            number: self.next_number,
            entered,
            octets: packet.to_vec(),
        }));
        self.next_number += 1;
    }

    /// Returns the next packet that has arrived by the time `now`. Call it until it returns `None`.
    pub fn poll(&mut self, now: Duration) -> Option<Vec<u8>> {
        if self.next_due()? > now {
            return None;
        }
        let Reverse(packet) = self.packets.pop()?;
        self.memory -= packet.octets.len() + PACKET_OVERHEAD;
        self.counters.delivered += 1;
        self.counters.transit_ns +=
            u64::try_from((packet.due - packet.entered).as_nanos()).unwrap_or(u64::MAX);
        Some(packet.octets)
    }

    /// Returns the time at which the next packet arrives; `None` if no packet is on the way.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        self.packets.peek().map(|Reverse(packet)| packet.due)
    }

    /// The numbers of packets so far.
    #[must_use]
    pub fn counters(&self) -> PathCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests;
