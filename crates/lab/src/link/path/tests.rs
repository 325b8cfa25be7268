use etherparse::{
    Icmpv4Slice, Icmpv4Type, Icmpv6Slice, Icmpv6Type, IpNumber, Ipv4Header, Ipv6Header, PacketBuilder,
    icmpv4::DestUnreachableHeader,
};
use proptest::prelude::*;

use super::*;

const MS: Duration = Duration::from_millis(1);

/// A UDP packet with `octets` octets of IP, the last of which are `number`.
fn v4(octets: usize, number: u32) -> Vec<u8> {
    let builder = PacketBuilder::ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64).udp(1024, 53);
    written(builder, octets - 28, number)
}

fn v6(octets: usize, number: u32) -> Vec<u8> {
    let address = |last| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last).octets();
    written(PacketBuilder::ipv6(address(1), address(2), 64).udp(1024, 53), octets - 48, number)
}

fn written(
    builder: etherparse::PacketBuilderStep<etherparse::UdpHeader>,
    payload: usize,
    number: u32,
) -> Vec<u8> {
    let mut octets: Vec<u8> = (0..payload).map(|index| index as u8).collect();
    octets[payload - 4..].copy_from_slice(&number.to_be_bytes());
    let mut packet = Vec::new();
    builder.write(&mut packet, &octets).expect("written");
    packet
}

/// Clears the flag DF, and sets the options of an IPv4 packet.
fn with_header(packet: &[u8], change: impl Fn(&mut Ipv4Header)) -> Vec<u8> {
    let (mut header, payload) = Ipv4Header::from_slice(packet).expect("a header");
    change(&mut header);
    header.set_payload_len(payload.len()).expect("short enough");
    header.header_checksum = header.calc_header_checksum();
    [&header.to_bytes(), payload].concat()
}

fn number(packet: &[u8]) -> u32 {
    u32::from_be_bytes(packet[packet.len() - 4..].try_into().expect("four octets"))
}

fn path(options: PathOptions) -> Path {
    Path::new(options, 1, 0).expect("valid options")
}

/// Sends `count` packets of `octets` octets, one each `interval`. Returns the arrivals.
fn traffic(path: &mut Path, count: u32, octets: usize, interval: Duration) -> Vec<(Duration, u32)> {
    for index in 0..count {
        assert_eq!(path.send(interval * index, &v4(octets, index)), None);
    }
    arrivals(path)
}

/// Advances the clock to each arrival.
fn arrivals(path: &mut Path) -> Vec<(Duration, u32)> {
    let mut arrived = Vec::new();
    while let Some(due) = path.next_due() {
        if let Some(before) = due.checked_sub(Duration::from_nanos(1)) {
            assert_eq!(path.poll(before), None, "too early");
        }
        let packet = path.poll(due).expect("due");
        arrived.push((due, number(&packet)));
    }
    arrived
}

/// The ones' complement sum of RFC 1071, computed independently of the library: 0 if a checksum
/// fits.
fn checksum(parts: &[&[u8]]) -> u16 {
    let octets = parts.concat();
    let words =
        octets.chunks(2).map(|word| u32::from(word[0]) << 8 | word.get(1).map_or(0, |&low| low.into()));
    let sum: u32 = words.sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    !((sum & 0xffff) + (sum >> 16)) as u16
}

fn assert_all_counted(path: &Path) {
    let c = path.counters();
    let gone =
        c.fragmented + c.delivered + c.lost + c.overflowed + c.too_big + c.fragments_dropped + c.ignored;
    assert_eq!(c.sent + c.fragments + c.duplicated, gone + path.packets.len() as u64, "{c:?}");
}

#[test]
fn a_perfect_path_delivers_at_once_and_in_order() {
    let mut path = path(PathOptions::default());
    let arrived = traffic(&mut path, 100, 100, MS);
    assert!(arrived.iter().copied().eq((0..100).map(|index| (MS * index, index))));
    assert_eq!(path.counters(), PathCounters { sent: 100, delivered: 100, ..PathCounters::default() });
}

#[test]
fn the_delay_is_exact_and_counted() {
    let mut path = path(PathOptions { delay: 20 * MS, ..PathOptions::default() });
    let arrived = traffic(&mut path, 50, 100, MS);
    assert!(arrived.iter().copied().eq((0..50).map(|index| (MS * index + 20 * MS, index))));
    assert_eq!(path.counters().transit_ns, 50 * 20_000_000);
}

#[test]
fn jitter_spreads_over_its_range_and_keeps_the_order() {
    let mut slow = path(PathOptions { delay: 20 * MS, jitter: 10 * MS, ..PathOptions::default() });
    // Packets that are further apart than the jitter do not wait for each other.
    let delays: Vec<Duration> =
        traffic(&mut slow, 2000, 100, 10 * MS).iter().map(|&(due, index)| due - 10 * MS * index).collect();
    assert!(delays.iter().all(|delay| (20 * MS..30 * MS).contains(delay)));
    let mean = delays.iter().sum::<Duration>() / 2000;
    // The standard error of the mean is 10 ms / sqrt(12 * 2000), about 0.065 ms.
    assert!(mean.abs_diff(25 * MS) < MS / 3, "{mean:?}");

    let mut dense = path(PathOptions { jitter: 10 * MS, ..PathOptions::default() });
    let order: Vec<u32> = traffic(&mut dense, 2000, 100, MS / 10).iter().map(|&(_, index)| index).collect();
    assert!(order.iter().copied().eq(0..2000));
}

#[test]
fn a_rate_separates_packets_and_its_queue_has_a_limit() {
    // 1000 octets take 8 ms.
    let options = PathOptions { rate: Some(1_000_000), queue: 5000, ..PathOptions::default() };
    let mut path = path(options);
    let arrived = traffic(&mut path, 10, 1000, Duration::ZERO);
    assert!(arrived.iter().copied().eq((0..5).map(|index| (8 * MS * (index + 1), index))));
    assert_eq!((path.counters().delivered, path.counters().overflowed), (5, 5));
    // After a pause there is no debt.
    path.send(1000 * MS, &v4(1000, 7));
    assert_eq!(arrivals(&mut path), [(1008 * MS, 7)]);
    assert_all_counted(&path);
}

#[test]
fn a_queue_that_is_too_small_for_a_packet_still_accepts_one() {
    let mut path = path(PathOptions { rate: Some(1_000_000), queue: 0, ..PathOptions::default() });
    assert_eq!(traffic(&mut path, 3, 1000, Duration::ZERO), [(8 * MS, 0)]);
    assert_eq!(path.counters().overflowed, 2);
}

#[test]
fn held_packets_are_overtaken_and_no_others() {
    let mut path = path(PathOptions { reordering: 0.1, hold: 5 * MS, ..PathOptions::default() });
    let arrived = traffic(&mut path, 1000, 100, MS);
    let late: Vec<u32> = arrived.iter().filter(|(due, index)| *due > MS * *index).map(|&(_, i)| i).collect();
    assert!(late.iter().all(|&index| arrived.contains(&(MS * index + 5 * MS, index))));
    assert_eq!(late.len() as u64, path.counters().held);
    assert!((60..140).contains(&late.len()), "{}", late.len());
    let mut in_time = arrived.iter().filter(|(_, index)| !late.contains(index));
    assert!(in_time.by_ref().map(|&(_, index)| index).is_sorted());
}

#[test]
fn a_duplicate_arrives_after_its_original() {
    let mut path = path(PathOptions { duplication: 1.0, delay: MS, ..PathOptions::default() });
    assert_eq!(traffic(&mut path, 2, 100, MS), [(MS, 0), (MS, 0), (2 * MS, 1), (2 * MS, 1)]);
    assert_eq!((path.counters().duplicated, path.counters().delivered), (2, 4));
}

#[test]
fn memory_on_the_way_has_a_limit() {
    let mut path =
        path(PathOptions { delay: Duration::from_secs(3600), mtu: 65_535, ..PathOptions::default() });
    let packet = v4(60_000, 0);
    for _ in 0..2000 {
        path.send(Duration::ZERO, &packet);
    }
    let fitting = IN_TRANSIT_OCTETS_MAX / (60_000 + PACKET_OVERHEAD);
    assert_eq!((path.packets.len(), path.counters().overflowed), (fitting, (2000 - fitting) as u64));
    assert!(path.memory <= IN_TRANSIT_OCTETS_MAX);
    arrivals(&mut path);
    assert_eq!(path.memory, 0);
}

#[test]
fn an_ipv4_packet_above_the_mtu_causes_an_icmp_error() {
    let mut path = path(PathOptions { mtu: 1280, ..PathOptions::default() });
    let packet = with_header(&v4(1400, 0), |header| header.dont_fragment = true);
    let error = path.send(Duration::ZERO, &packet).expect("an error");
    assert_eq!(error.len(), 576);
    assert_eq!(checksum(&[&error[..20]]), 0);
    assert_eq!(checksum(&[&error[20..]]), 0);
    let (header, rest) = Ipv4Header::from_slice(&error).expect("a header");
    assert_eq!((header.source, header.destination), ([192, 0, 2, 254], [192, 0, 2, 1]));
    assert_eq!((header.protocol, usize::from(header.total_len)), (IpNumber::ICMP, error.len()));
    let icmp = Icmpv4Slice::from_slice(rest).expect("a message");
    let expected = DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: 1280 };
    assert_eq!(icmp.icmp_type(), Icmpv4Type::DestinationUnreachable(expected));
    assert_eq!(icmp.payload(), &packet[..548]);
    // Type 3, code 4, and the MTU in the last two octets of the header (RFC 1191 section 4).
    assert_eq!((&rest[..2], &rest[4..8]), (&[3, 4][..], &[0, 0, 5, 0][..]));
    assert_eq!((path.counters().too_big, path.counters().icmp_errors, path.next_due()), (1, 1, None));
    // There is no error about an error (RFC 1122 section 3.2.2).
    let about = with_header(&[&error[..], &[0; 1000]].concat(), |header| header.dont_fragment = true);
    assert_eq!(path.send(Duration::ZERO, &about), None);
    assert_eq!((path.counters().too_big, path.counters().icmp_errors), (2, 1));
}

#[test]
fn an_ipv6_packet_above_the_mtu_causes_an_icmp_error() {
    let mut path = path(PathOptions { mtu: 1300, ..PathOptions::default() });
    let packet = v6(1400, 0);
    let error = path.send(Duration::ZERO, &packet).expect("an error");
    assert_eq!(error.len(), 1280);
    let (header, rest) = Ipv6Header::from_slice(&error).expect("a header");
    assert_eq!((header.source, &header.destination[..]), (ROUTER_V6.octets(), &packet[8..24]));
    assert_eq!((header.next_header, usize::from(header.payload_length)), (IpNumber::IPV6_ICMP, rest.len()));
    // The pseudo-header: addresses, length, next header (RFC 8200 section 8.1).
    let length = (rest.len() as u32).to_be_bytes();
    assert_eq!(checksum(&[&error[8..40], &length, &[0, 0, 0, 58], rest]), 0);
    let icmp = Icmpv6Slice::from_slice(rest).expect("a message");
    assert_eq!(icmp.icmp_type(), Icmpv6Type::PacketTooBig { mtu: 1300 });
    assert_eq!(icmp.payload(), &packet[..1232]);
    assert_eq!((&rest[..2], &rest[4..8]), (&[2, 0][..], &[0, 0, 5, 20][..]));
}

#[test]
fn ipv6_packets_of_1280_octets_always_pass() {
    let mut path = path(PathOptions { mtu: 600, ..PathOptions::default() });
    assert_eq!(path.send(Duration::ZERO, &v6(1280, 3)), None);
    assert_eq!(arrivals(&mut path), [(Duration::ZERO, 3)]);
    let error = path.send(Duration::ZERO, &v6(1281, 3)).expect("an error");
    assert_eq!(
        Icmpv6Slice::from_slice(&error[40..]).expect("a message").icmp_type(),
        Icmpv6Type::PacketTooBig { mtu: 1280 }
    );
}

#[test]
fn a_black_hole_sends_no_icmp_error() {
    let mut path = path(PathOptions { mtu: 1280, icmp: false, ..PathOptions::default() });
    assert_eq!(path.send(Duration::ZERO, &v6(1400, 0)), None);
    let counters = path.counters();
    assert_eq!((counters.too_big, counters.icmp_errors, counters.delivered), (1, 0, 0));
}

#[test]
fn fragments_can_be_dropped() {
    let mut path = path(PathOptions { mtu: 1280, drop_fragments: true, ..PathOptions::default() });
    path.send(Duration::ZERO, &with_header(&v4(1400, 0), |header| header.dont_fragment = false));
    assert_eq!((path.counters().fragments, path.counters().fragments_dropped), (2, 2));
    // A fragment of the sender.
    path.send(Duration::ZERO, &with_header(&v4(100, 0), |header| header.more_fragments = true));
    assert_eq!((path.counters().fragments_dropped, path.next_due()), (3, None));
    assert_all_counted(&path);
}

#[test]
fn later_fragments_lack_the_options_that_are_not_copied() {
    let mut path = path(PathOptions { mtu: 576, ..PathOptions::default() });
    // Record route (7), not copied; router alert (148), copied (RFC 2113); end of list.
    let options = [7, 3, 4, 1, 148, 4, 0, 0, 0, 7, 7, 7];
    let packet = with_header(&v4(1000, 0), |header| {
        header.dont_fragment = false;
        header.options = options.into();
    });
    path.send(Duration::ZERO, &packet);
    let found: Vec<Vec<u8>> =
        std::iter::from_fn(|| path.poll(Duration::ZERO)).map(|f| f[20..32].to_vec()).collect();
    assert_eq!(found, [options, [1, 1, 1, 1, 148, 4, 0, 0, 0, 7, 7, 7]]);
}

#[test]
fn packets_that_no_router_forwards_are_ignored() {
    let mut path = path(PathOptions::default());
    let change = |to| with_header(&v4(100, 0), |header| header.destination = to);
    for packet in [
        vec![],
        vec![0x45],
        vec![0x60; 39],
        change([224, 0, 0, 1]),
        change([255; 4]),
        change([169, 254, 1, 1]),
    ] {
        path.send(Duration::ZERO, &packet);
    }
    assert_eq!((path.counters().ignored, path.next_due()), (6, None));
}

#[test]
fn options_out_of_range_are_rejected() {
    let default = PathOptions::default();
    for loss in [-0.1, 1.1, f64::NAN] {
        let error = Path::new(PathOptions { loss, ..default }, 1, 0).expect_err("rejected");
        assert!(matches!(error, OptionsError::Share { name: "loss", .. }));
    }
    let checks = [
        (PathOptions { mtu: 67, ..default }, OptionsError::Mtu { value: 67 }),
        (PathOptions { rate: Some(0), ..default }, OptionsError::Rate),
        (
            PathOptions { hold: Duration::MAX, ..default },
            OptionsError::Time { name: "hold", value: Duration::MAX },
        ),
    ];
    for (options, expected) in checks {
        assert_eq!(options.check(), Err(expected));
    }
}

/// Joins fragments, which must be complete and of at most `mtu` octets.
fn joined(fragments: &[Vec<u8>], mtu: u16) -> Vec<u8> {
    let mut payload = Vec::new();
    for (index, fragment) in fragments.iter().enumerate() {
        assert!(fragment.len() <= mtu.into());
        let (header, part) = Ipv4Header::from_slice(fragment).expect("a header");
        assert_eq!(checksum(&[&fragment[..header.header_len()]]), 0);
        assert_eq!(usize::from(header.total_len), fragment.len());
        assert_eq!(usize::from(header.fragment_offset.byte_offset()), payload.len());
        assert_eq!(header.more_fragments, index + 1 < fragments.len());
        payload.extend_from_slice(part);
    }
    payload
}

proptest! {
    #[test]
    fn fragments_can_be_joined(octets in 100..9000_usize, mtu in 68..1500_u16, options in 0..=10_usize) {
        let packet = with_header(&v4(octets, 9), |header| {
            header.dont_fragment = false;
            header.options = vec![1; options * 4].as_slice().try_into().expect("short enough");
        });
        let mut path = path(PathOptions { mtu, ..PathOptions::default() });
        prop_assert_eq!(path.send(Duration::ZERO, &packet), None);
        let fragments: Vec<Vec<u8>> = std::iter::from_fn(|| path.poll(Duration::ZERO)).collect();
        let whole = packet.len() <= mtu.into();
        prop_assert_eq!(path.counters().fragments, if whole { 0 } else { fragments.len() as u64 });
        prop_assert_eq!(joined(&fragments, mtu), &packet[20 + options * 4..]);
        assert_all_counted(&path);
    }

    #[test]
    fn shares_of_lost_and_duplicated_packets_are_near_their_options(
        loss in 0.0..=1.0, duplication in 0.0..=1.0, seed in any::<u64>(),
    ) {
        let options = PathOptions { loss, duplication, ..PathOptions::default() };
        let mut path = Path::new(options, seed, 0).expect("valid options");
        traffic(&mut path, 4000, 40, MS);
        let counters = path.counters();
        // Six standard deviations, which are at most 1 / (2 sqrt(4000)).
        let near = |count: u64, of: u64, share: f64| (count as f64 - of as f64 * share).abs() <= 6.0 * (of as f64).sqrt() / 2.0;
        prop_assert!(near(counters.lost, 4000, loss));
        prop_assert!(near(counters.duplicated, 4000 - counters.lost, duplication));
        assert_all_counted(&path);
    }

    #[test]
    fn the_same_seed_gives_the_same_result(seed in any::<u64>(), intervals in prop::collection::vec(0..5_u32, 200)) {
        let options = PathOptions {
            delay: 3 * MS, jitter: 2 * MS, loss: 0.2, duplication: 0.1, reordering: 0.1, ..PathOptions::default()
        };
        let run = |seed, stream| {
            let mut path = Path::new(options, seed, stream).expect("valid options");
            let mut now = Duration::ZERO;
            for (index, interval) in intervals.iter().enumerate() {
                now += MS * *interval;
                path.send(now, &v4(100, index as u32));
            }
            arrivals(&mut path)
        };
        prop_assert_eq!(run(seed, 0), run(seed, 0));
        prop_assert_ne!(run(seed, 0), run(seed, 1));
        // The fate of a packet does not depend on the time.
        let numbers = |arrived: Vec<(Duration, u32)>| {
            let mut numbers: Vec<u32> = arrived.into_iter().map(|(_, number)| number).collect();
            numbers.sort_unstable();
            numbers
        };
        let mut even = Path::new(options, seed, 0).expect("valid options");
        prop_assert_eq!(numbers(traffic(&mut even, 200, 100, MS)), numbers(run(seed, 0)));
    }

    #[test]
    fn the_rate_is_not_exceeded(
        rate in 10_000..1_000_000_000_u64, sizes in prop::collection::vec(40..1500_usize, 1..100),
    ) {
        let mut path = path(PathOptions { rate: Some(rate), queue: usize::MAX, ..PathOptions::default() });
        for (index, &octets) in sizes.iter().enumerate() {
            path.send(Duration::ZERO, &v4(octets, index as u32));
        }
        let arrived = arrivals(&mut path);
        let mut total = 0;
        for ((due, index), octets) in arrived.iter().zip(&sizes).map(|(arrival, octets)| (*arrival, octets)) {
            total += *octets as u64 * 8;
            // Each time is rounded down to a nanosecond.
            let exact = total as f64 / rate as f64;
            prop_assert!((due.as_secs_f64() - exact).abs() < 1e-9 * (f64::from(index) + 2.0), "{due:?} {exact}");
        }
        prop_assert_eq!(arrived.len(), sizes.len());
    }

    #[test]
    fn no_octets_cause_a_panic(
        start in prop::sample::select(vec![v4(60, 0), v6(80, 0)]),
        changes in prop::collection::vec((0..60_usize, any::<u8>()), 0..10),
        length in 0..80_usize, mtu in 68..1500_u16, drop_fragments in any::<bool>(),
    ) {
        let mut path = path(PathOptions { mtu, drop_fragments, ..PathOptions::default() });
        let mut packet = start;
        for (place, octet) in changes {
            packet[place] = octet;
        }
        packet.truncate(length);
        // A packet above the MTU, too: a kernel pads no packet, but another sender may.
        for packet in [packet.clone(), [packet, vec![0; 1500]].concat()] {
            path.send(Duration::ZERO, &packet);
            assert_all_counted(&path);
        }
    }
}
