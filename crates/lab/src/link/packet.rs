//! IP packets on a simulated path: fragments of IPv4 (RFC 791 section 3.2), and ICMP errors for
//! packets above the path MTU (RFC 1191 section 4, RFC 4443 section 3.2).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::{
    Icmpv4Header, Icmpv4Type, Icmpv6Header, Icmpv6Type, IpFragOffset, IpNumber, IpSlice, Ipv4Header,
    Ipv6Header, icmpv4::DestUnreachableHeader, ip_number,
};

/// Minimum MTU of IPv6 in octets (RFC 8200 section 5).
pub(super) const IPV6_MTU_MIN: usize = 1280;
/// Maximum size of an ICMPv4 error in octets, with its IP header (RFC 1812 section 4.3.2.3).
const ICMPV4_ERROR_MAX: usize = 576;
/// Hop limit of ICMP errors.
const HOP_LIMIT: u8 = 64;
/// Types of ICMPv4 errors: destination unreachable, source quench, redirect, time exceeded,
/// parameter problem (RFC 1122 section 3.2.2).
const ICMPV4_ERRORS: [u8; 5] = [3, 4, 5, 11, 12];
/// The lowest type of an ICMPv6 message that is not an error (RFC 4443 section 2.1).
const ICMPV6_INFORMATIONAL_MIN: u8 = 128;

/// Reads the headers of a packet. Returns `None` if they are malformed, or if no router forwards
/// the packet: multicast, broadcast and link-local destinations.
pub(super) fn parse(packet: &[u8]) -> Option<IpSlice<'_>> {
    let parsed = IpSlice::from_slice(packet).ok()?;
    let is_forwarded = match parsed.destination_addr() {
        IpAddr::V4(to) => !(to.is_multicast() || to.is_broadcast() || to.is_link_local()),
        IpAddr::V6(to) => !(to.is_multicast() || to.is_unicast_link_local()),
    };
    is_forwarded.then_some(parsed)
}

/// Returns the maximum size in octets of a packet like this one on a path with the MTU `mtu`. For
/// IPv6 it is at least 1280.
pub(super) fn size_limit(packet: &IpSlice<'_>, mtu: u16) -> usize {
    match packet {
        IpSlice::Ipv4(_) => mtu.into(),
        IpSlice::Ipv6(_) => usize::from(mtu).max(IPV6_MTU_MIN),
    }
}

/// Whether a router may fragment the packet: IPv4 without the flag DF.
pub(super) fn may_fragment(packet: &IpSlice<'_>) -> bool {
    packet.ipv4().is_some_and(|packet| !packet.header().dont_fragment())
}

/// Splits an IPv4 packet into fragments of at most `mtu` octets each. `mtu` is at least 68. Returns
/// `None` if the packet is malformed: it is not an IPv4 packet, or a fragment would have an offset
/// above the maximum.
pub(super) fn fragment(packet: &[u8], mtu: u16) -> Option<Vec<Vec<u8>>> {
    let (mut header, rest) = Ipv4Header::from_slice(packet).ok()?;
    let payload = rest.get(..header.payload_len().ok()?.into())?;
    // Every fragment but the last has a multiple of eight octets. A header has at most 60.
    let size = (usize::from(mtu).checked_sub(header.header_len())? / 8 * 8).max(8);
    let (first, more) = (header.fragment_offset.value(), header.more_fragments);
    let mut fragments = Vec::with_capacity(payload.len().div_ceil(size));
    for (index, part) in payload.chunks(size).enumerate() {
        let start = index * size;
        header.fragment_offset =
            IpFragOffset::try_new(u16::try_from(start / 8).ok()?.checked_add(first)?).ok()?;
        header.more_fragments = more || start + part.len() < payload.len();
        header.set_payload_len(part.len()).ok()?;
        header.header_checksum = header.calc_header_checksum();
        fragments.push([&header.to_bytes(), part].concat());
        // Later fragments have only the options with the flag "copied".
        blank_uncopied_options(header.options.as_mut_slice());
    }
    Some(fragments)
}

/// Replaces the IPv4 options without the flag "copied", which only the first fragment has, by No
/// Operation.
fn blank_uncopied_options(mut options: &mut [u8]) {
    const END: u8 = 0;
    const NO_OPERATION: u8 = 1;
    const COPIED: u8 = 0x80;
    while let [kind, rest @ ..] = options {
        if *kind == END {
            return;
        }
        let kind = *kind;
        // The length counts type and length. A malformed option ends the list.
        let length = if kind == NO_OPERATION { 1 } else { rest.first().map_or(0, |&length| length.into()) };
        if length == 0 || length > options.len() {
            return;
        }
        let (option, others) = options.split_at_mut(length);
        if kind & COPIED == 0 {
            option.fill(NO_OPERATION);
        }
        options = others;
    }
}

/// Returns the ICMP error for a packet above the path MTU `mtu` (octets), from the router with the
/// address `router_v4` or `router_v6`. Returns `None` if no error may be sent for this packet (RFC
/// 1122 section 3.2.2, RFC 4443 section 2.4).
pub(super) fn icmp_error(
    packet: &[u8],
    parsed: &IpSlice<'_>,
    mtu: u16,
    router_v4: Ipv4Addr,
    router_v6: Ipv6Addr,
) -> Option<Vec<u8>> {
    if is_icmp_error(parsed) {
        return None;
    }
    match (parsed, parsed.source_addr()) {
        (IpSlice::Ipv4(parsed), IpAddr::V4(sender)) => {
            let is_first_fragment = parsed.header().fragments_offset().value() == 0;
            let is_host = !(sender.is_unspecified() || sender.is_multicast() || sender.is_broadcast());
            if is_first_fragment && is_host {
                fragmentation_needed(packet, mtu, router_v4, sender)
            } else {
                None
            }
        }
        (IpSlice::Ipv6(_), IpAddr::V6(sender)) => {
            let is_host = !(sender.is_unspecified() || sender.is_multicast());
            if is_host { icmpv6_packet_too_big(packet, mtu, router_v6, sender) } else { None }
        }
        _ => None,
    }
}

fn is_icmp_error(parsed: &IpSlice<'_>) -> bool {
    let Some(&kind) = parsed.payload().payload.first() else { return false };
    match parsed.payload_ip_number() {
        // The payload of a later fragment does not begin with a type.
        _ if parsed.is_fragmenting_payload() => false,
        ip_number::ICMP => ICMPV4_ERRORS.contains(&kind),
        ip_number::IPV6_ICMP => kind < ICMPV6_INFORMATIONAL_MIN,
        _ => false,
    }
}

/// Builds the ICMPv4 error "fragmentation needed and DF set", which quotes the start of the packet.
fn fragmentation_needed(packet: &[u8], mtu: u16, from: Ipv4Addr, to: Ipv4Addr) -> Option<Vec<u8>> {
    let quote_max = ICMPV4_ERROR_MAX - Ipv4Header::MIN_LEN - Icmpv4Header::MIN_LEN;
    let quoted = packet.get(..quote_max).unwrap_or(packet);
    let error = DestUnreachableHeader::FragmentationNeeded { next_hop_mtu: mtu };
    let error = Icmpv4Header::with_checksum(Icmpv4Type::DestinationUnreachable(error), quoted).to_bytes();
    let length = u16::try_from(error.len() + quoted.len()).ok()?;
    let mut header = Ipv4Header::new(length, HOP_LIMIT, IpNumber::ICMP, from.octets(), to.octets()).ok()?;
    header.header_checksum = header.calc_header_checksum();
    Some([&header.to_bytes()[..], &error, quoted].concat())
}

/// Builds the ICMPv6 error "packet too big", which quotes the start of the packet.
fn icmpv6_packet_too_big(packet: &[u8], mtu: u16, from: Ipv6Addr, to: Ipv6Addr) -> Option<Vec<u8>> {
    let quote_max = IPV6_MTU_MIN - Ipv6Header::LEN - Icmpv6Header::MIN_LEN;
    let quoted = packet.get(..quote_max).unwrap_or(packet);
    let error = Icmpv6Type::PacketTooBig { mtu: u32::from(mtu).max(IPV6_MTU_MIN as u32) };
    let error = Icmpv6Header::with_checksum(error, from.octets(), to.octets(), quoted).ok()?.to_bytes();
    let header = Ipv6Header {
        payload_length: u16::try_from(error.len() + quoted.len()).ok()?,
        next_header: IpNumber::IPV6_ICMP,
        hop_limit: HOP_LIMIT,
        source: from.octets(),
        destination: to.octets(),
        ..Ipv6Header::default()
    };
    Some([&header.to_bytes()[..], &error, quoted].concat())
}
