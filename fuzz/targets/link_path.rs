//! Packets on a simulated path: never panics, delivers only packets that fit the path MTU, counts
//! every packet once, and sends ICMP errors only for IP packets and never about one of them.
//!
//! The first octets select the options. The rest are packets, each after its length in two octets.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nonesuch_lab::link::{Path, PathOptions};
use std::time::Duration;

/// Minimum MTU of IPv6 in octets (RFC 8200 section 5).
const IPV6_MTU_MIN: u16 = 1280;

fuzz_target!(|data: &[u8]| {
    let Some(([choice, high, low], mut rest)) = data.split_first_chunk() else { return };
    let share = |bit: u8| if choice & bit == 0 { 0.0 } else { 0.3 };
    let options = PathOptions {
        delay: Duration::from_millis(u64::from(choice >> 6)),
        jitter: Duration::from_millis(u64::from(choice >> 6)),
        loss: share(1),
        duplication: share(2),
        reordering: share(4),
        rate: (choice & 8 != 0).then_some(1_000_000),
        queue: 10_000,
        mtu: (u16::from_be_bytes([*high, *low]) % 2000).max(68),
        icmp: choice & 16 != 0,
        drop_fragments: choice & 32 != 0,
        ..PathOptions::default()
    };
    let mut path = Path::new(options, 1, 0).expect("valid options");
    let mut now = Duration::ZERO;
    while let Some((length, octets)) = rest.split_first_chunk() {
        let length = usize::from(u16::from_be_bytes(*length)).min(octets.len());
        let (packet, others) = octets.split_at(length);
        if let Some(error) = path.send(now, packet) {
            assert!(options.icmp && packet.len() > usize::from(options.mtu));
            assert!(error.len() <= IPV6_MTU_MIN.into());
            // The error is forwarded like any other packet, and there is no error about it.
            assert_eq!(path.send(now, &error), None);
        }
        now += Duration::from_millis(1);
        rest = others;
    }
    while let Some(due) = path.next_due() {
        let packet = path.poll(due).expect("it has arrived");
        assert!(packet.len() <= options.mtu.max(IPV6_MTU_MIN).into());
    }
    let c = path.counters();
    let dropped = c.lost + c.overflowed + c.too_big + c.fragments_dropped + c.ignored;
    assert_eq!(c.sent + c.fragments + c.duplicated, c.fragmented + c.delivered + dropped);
});
