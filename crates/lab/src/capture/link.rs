//! Finds the UDP datagram or TCP segment in a captured packet.

use super::skip::SkipReason;
use etherparse::err::packet::SliceError;
use etherparse::{EtherType, NetSlice, SlicedPacket, TransportSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

// Link types of the registry of tcpdump.org. NULL and LOOP are those of BSD loopback interfaces,
// SLL and SLL2 those of Linux cooked captures.
const LINKTYPE_NULL: i32 = 0;
const LINKTYPE_ETHERNET: i32 = 1;
const LINKTYPE_RAW: i32 = 101;
const LINKTYPE_LOOP: i32 = 108;
const LINKTYPE_LINUX_SLL: i32 = 113;
const LINKTYPE_IPV4: i32 = 228;
const LINKTYPE_IPV6: i32 = 229;
const LINKTYPE_LINUX_SLL2: i32 = 276;

/// Length of the header of Linux cooked captures, version 1, in octets.
const SLL_HEADER_SIZE: usize = 16;
/// Length of the header of version 2 in octets.
const SLL2_HEADER_SIZE: usize = 20;
/// Length of the header of loopback captures in octets. Its content depends on the system that
/// recorded it, so the version of the IP packet decides instead.
const LOOPBACK_HEADER_SIZE: usize = 4;

/// The content of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Payload<'a> {
    Datagram(&'a [u8]),
    Segment(Segment<'a>),
}

/// A TCP segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Segment<'a> {
    pub(super) sequence: u32,
    pub(super) syn: bool,
    pub(super) fin: bool,
    pub(super) rst: bool,
    pub(super) octets: &'a [u8],
}

/// The addresses of a packet, and its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DissectedPacket<'a> {
    pub(super) source: SocketAddr,
    pub(super) destination: SocketAddr,
    pub(super) payload: Payload<'a>,
}

/// Parses the headers of a packet of a link type. An error is the reason to skip the packet.
pub(super) fn dissect(link_type: i32, packet: &[u8]) -> Result<DissectedPacket<'_>, SkipReason> {
    let sliced = slice_headers(link_type, packet)?;
    let (source, destination) = addresses(&sliced).ok_or(SkipReason::OtherTraffic)?;
    if sliced.is_ip_payload_fragmented() {
        return Err(SkipReason::Fragment);
    }
    match &sliced.transport {
        Some(TransportSlice::Udp(udp)) => Ok(DissectedPacket {
            source: SocketAddr::new(source, udp.source_port()),
            destination: SocketAddr::new(destination, udp.destination_port()),
            payload: Payload::Datagram(udp.payload()),
        }),
        Some(TransportSlice::Tcp(tcp)) => Ok(DissectedPacket {
            source: SocketAddr::new(source, tcp.source_port()),
            destination: SocketAddr::new(destination, tcp.destination_port()),
            payload: Payload::Segment(Segment {
                sequence: tcp.sequence_number(),
                syn: tcp.syn(),
                fin: tcp.fin(),
                rst: tcp.rst(),
                octets: tcp.payload(),
            }),
        }),
        _ => Err(SkipReason::OtherTraffic),
    }
}

fn slice_headers(link_type: i32, packet: &[u8]) -> Result<SlicedPacket<'_>, SkipReason> {
    let without_header = |length: usize| packet.get(length..).ok_or(SkipReason::Truncated);
    let ether_type = |at: usize| {
        let octets = packet.get(at..).and_then(<[u8]>::first_chunk).ok_or(SkipReason::Truncated)?;
        Ok(EtherType(u16::from_be_bytes(*octets)))
    };
    let sliced = match link_type {
        LINKTYPE_ETHERNET => SlicedPacket::from_ethernet(packet),
        LINKTYPE_LINUX_SLL => {
            SlicedPacket::from_ether_type(ether_type(SLL_HEADER_SIZE - 2)?, without_header(SLL_HEADER_SIZE)?)
        }
        LINKTYPE_LINUX_SLL2 => {
            SlicedPacket::from_ether_type(ether_type(0)?, without_header(SLL2_HEADER_SIZE)?)
        }
        LINKTYPE_RAW | LINKTYPE_IPV4 | LINKTYPE_IPV6 => SlicedPacket::from_ip(packet),
        LINKTYPE_NULL | LINKTYPE_LOOP => SlicedPacket::from_ip(without_header(LOOPBACK_HEADER_SIZE)?),
        _ => return Err(SkipReason::LinkType),
    };
    sliced.map_err(|error| match error {
        SliceError::Len(_) => SkipReason::Truncated,
        _ => SkipReason::Malformed,
    })
}

fn addresses(sliced: &SlicedPacket<'_>) -> Option<(IpAddr, IpAddr)> {
    match sliced.net.as_ref()? {
        NetSlice::Ipv4(packet) => {
            let header = packet.header();
            Some((Ipv4Addr::from(header.source()).into(), Ipv4Addr::from(header.destination()).into()))
        }
        NetSlice::Ipv6(packet) => {
            let header = packet.header();
            Some((Ipv6Addr::from(header.source()).into(), Ipv6Addr::from(header.destination()).into()))
        }
        NetSlice::Arp(_) => None,
    }
}
