//! Properties of a simulated network path.

use std::time::Duration;

/// Maximum of each time in [`PathOptions`].
const TIME_MAX: Duration = Duration::from_secs(3600);
/// Minimum path MTU, in octets: that of IPv4 (RFC 791 section 3.2).
const MTU_MIN: u16 = 68;

/// Properties of one direction of a simulated path. The default is an ideal path: it has the MTU of
/// Ethernet and no limit of the rate, and neither delays nor loses, duplicates or reorders packets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathOptions {
    /// Fixed delay of each packet; at most an hour.
    pub delay: Duration,
    /// Maximum of an additional delay, which is uniformly distributed from 0 to this value; at most
    /// an hour. It does not change the order of packets: a packet waits for those before it.
    pub jitter: Duration,
    /// Share of packets that are lost, from 0 to 1.
    pub loss: f64,
    /// Share of packets that arrive twice, from 0 to 1.
    pub duplication: f64,
    /// Share of packets that are held back by `hold`, so that later packets overtake them; from 0
    /// to 1.
    pub reordering: f64,
    /// Additional delay of a packet that is held back; at most an hour.
    pub hold: Duration,
    /// Maximum rate in bits per second, at least 1. All octets of an IP packet count, including its
    /// headers. `None` if the rate is not limited.
    pub rate: Option<u64>,
    /// Maximum number of octets that wait because of `rate`. Further packets are dropped. A packet
    /// is always accepted if no other packet waits.
    pub queue: usize,
    /// Path MTU in octets: the maximum size of an IP packet; at least 68. IPv6 packets of up to
    /// 1280 octets always pass (RFC 8200 section 5).
    pub mtu: u16,
    /// Whether the path sends ICMP errors. It drops a packet that is larger than the MTU and must
    /// not be fragmented. With `icmp`, the sender of the packet gets an ICMP error. Without, it
    /// gets no notice: the path is a black hole for such packets (RFC 2923 section 2.1).
    pub icmp: bool,
    /// Whether all fragments are dropped, as some firewalls do: those that the sender makes as well
    /// as those that the path makes.
    pub drop_fragments: bool,
    /// Whether all UDP datagrams are dropped, as by a firewall that permits DNS only over TCP.
    pub drop_udp: bool,
}

impl Default for PathOptions {
    fn default() -> Self {
        Self {
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            loss: 0.0,
            duplication: 0.0,
            reordering: 0.0,
            hold: Duration::from_millis(5),
            rate: None,
            queue: 256 << 10,
            mtu: 1500,
            icmp: true,
            drop_fragments: false,
            drop_udp: false,
        }
    }
}

impl PathOptions {
    /// Checks that each value is in the range that the documentation of its field states.
    ///
    /// # Errors
    /// [`OptionsError`] names the first value that is out of range.
    pub fn check(&self) -> Result<(), OptionsError> {
        let shares =
            [("loss", self.loss), ("duplication", self.duplication), ("reordering", self.reordering)];
        for (name, value) in shares {
            if !(0.0..=1.0).contains(&value) {
                return Err(OptionsError::Share { name, value });
            }
        }
        for (name, value) in [("delay", self.delay), ("jitter", self.jitter), ("hold", self.hold)] {
            if value > TIME_MAX {
                return Err(OptionsError::Time { name, value });
            }
        }
        if self.rate == Some(0) {
            return Err(OptionsError::Rate);
        }
        if self.mtu < MTU_MIN { Err(OptionsError::Mtu { value: self.mtu }) } else { Ok(()) }
    }
}

/// Why the properties of a path are rejected.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OptionsError {
    /// A share is out of range.
    #[error("{name} {value}: a share of packets must be between 0 and 1")]
    Share {
        /// The name of the option.
        name: &'static str,
        /// Its value.
        value: f64,
    },
    /// A time is out of range.
    #[error("{name} of {} s: the maximum is an hour", value.as_secs_f64())]
    Time {
        /// The name of the option.
        name: &'static str,
        /// Its value.
        value: Duration,
    },
    /// The rate is 0.
    #[error("rate 0: specify at least 1 bit per second; use a loss of 1 for a path that delivers nothing")]
    Rate,
    /// The MTU is too small.
    #[error("mtu {value}: the minimum is {MTU_MIN} octets")]
    Mtu {
        /// The value, in octets.
        value: u16,
    },
}
