//! Writes captures: pcap with raw IP packets and times in ns, and dnstap.

use super::{CapturedMessage, Transport};
use etherparse::PacketBuilder;
use nonesuch_proto::dnstap::{
    CONTENT_TYPE, Control, Dnstap, Message, family, protocol, push_control, push_data,
};
use prost::Message as _;
use std::collections::HashMap;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;

/// Magic number of a pcap file with times in ns.
const PCAP_MAGIC_NS: u32 = 0xa1b2_3c4d;
/// Maximum size of a captured packet in octets, which the header of the file states.
const SNAPLEN: u32 = 1 << 18;
/// Link type of packets that begin with the IP header.
const LINKTYPE_RAW: u32 = 101;
/// Maximum octets of data in a UDP datagram over IPv4 (RFC 768, RFC 791); used for IPv6 too.
const DATAGRAM_MAX: usize = 65_535 - 20 - 8;
/// Maximum octets of data in a TCP segment.
const SEGMENT_MAX: usize = 32 << 10;
/// Maximum number of TCP connections whose sequence numbers are stored. If there are more, all
/// connections are forgotten, and begin with a handshake again.
const CONNECTIONS_MAX: usize = 1 << 16;
const TTL: u8 = 64;
const TCP_WINDOW: u16 = u16::MAX;
const NS_PER_SECOND: u64 = 1_000_000_000;

/// A format in which captures are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CaptureFormat {
    /// pcap: packets of raw IP, times in ns. UDP messages become datagrams; others become segments
    /// of TCP connections, without encryption. The connections begin with a handshake and do not
    /// end.
    Pcap,
    /// dnstap: unidirectional Frame Streams.
    Dnstap,
}

impl CaptureFormat {
    /// Returns the format for the extension of a file: `pcap`, or `dnstap`, `tap` or `fstrm`.
    #[must_use]
    pub fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "pcap" => Some(Self::Pcap),
            "dnstap" | "tap" | "fstrm" => Some(Self::Dnstap),
            _ => None,
        }
    }
}

/// Next sequence numbers of client and server in a TCP connection.
#[derive(Clone, Copy)]
struct Sequences {
    client: u32,
    server: u32,
}

/// Writes messages as a capture.
pub struct CaptureWriter<W> {
    out: W,
    format: CaptureFormat,
    connections: HashMap<(SocketAddr, SocketAddr), Sequences>,
    /// Buffer in which each message is encoded before it is written.
    buffer: Vec<u8>,
}

impl<W: Write> CaptureWriter<W> {
    /// Writes the header of a file in this format to `out`.
    ///
    /// # Errors
    /// The error of `out`.
    pub fn new(mut out: W, format: CaptureFormat) -> io::Result<Self> {
        let mut buffer = Vec::new();
        match format {
            CaptureFormat::Pcap => {
                // Version 2.4; the time zone and the accuracy of times are 0.
                for word in [PCAP_MAGIC_NS, 4 << 16 | 2, 0, 0, SNAPLEN, LINKTYPE_RAW] {
                    buffer.extend_from_slice(&word.to_le_bytes());
                }
            }
            CaptureFormat::Dnstap => push_control(Control::Start, Some(CONTENT_TYPE), &mut buffer),
        }
        out.write_all(&buffer)?;
        Ok(Self { out, format, connections: HashMap::new(), buffer })
    }

    /// Writes a message. Returns false, and writes nothing, if the format cannot represent it: a
    /// message of more than 65,535 octets; in pcap also a message of more than 65,507 octets over
    /// UDP, and a time after 2106.
    ///
    /// # Errors
    /// The error of the output.
    pub fn write(&mut self, message: &CapturedMessage) -> io::Result<bool> {
        if message.octets.len() > usize::from(u16::MAX) {
            return Ok(false);
        }
        self.buffer.clear();
        let representable = match (self.format, message.transport) {
            (CaptureFormat::Dnstap, _) => {
                push_dnstap_frame(message, &mut self.buffer);
                Some(())
            }
            (CaptureFormat::Pcap, Transport::Udp) => push_datagram(message, &mut self.buffer),
            (CaptureFormat::Pcap, _) => self.push_segments(message),
        };
        if representable.is_some() {
            self.out.write_all(&self.buffer)?;
        }
        Ok(representable.is_some())
    }

    /// Writes the end of the file, and returns the output.
    ///
    /// # Errors
    /// The error of the output.
    pub fn finish(mut self) -> io::Result<W> {
        if self.format == CaptureFormat::Dnstap {
            self.buffer.clear();
            push_control(Control::Stop, None, &mut self.buffer);
            self.out.write_all(&self.buffer)?;
        }
        self.out.flush()?;
        Ok(self.out)
    }

    /// Appends the segments of a message, and before the first message of a connection its
    /// handshake (RFC 9293 §3.5). `None`: the format cannot represent the message.
    fn push_segments(&mut self, message: &CapturedMessage) -> Option<()> {
        let ends = (message.client, message.server);
        if !self.connections.contains_key(&ends) {
            if self.connections.len() >= CONNECTIONS_MAX {
                self.connections.clear();
            }
            let syn = TcpFields { sequence: 0, acknowledged: None, syn: true };
            let syn_ack = TcpFields { acknowledged: Some(1), ..syn };
            let ack = TcpFields { sequence: 1, syn: false, ..syn_ack };
            push_segment(message, false, syn, &[], &mut self.buffer)?;
            push_segment(message, true, syn_ack, &[], &mut self.buffer)?;
            push_segment(message, false, ack, &[], &mut self.buffer)?;
        }
        let sequences = self.connections.entry(ends).or_insert(Sequences { client: 1, server: 1 });
        let (own_sequence, peer_sequence) = match message.is_response {
            false => (&mut sequences.client, sequences.server),
            true => (&mut sequences.server, sequences.client),
        };
        let prefixed = [&(message.octets.len() as u16).to_be_bytes()[..], &message.octets].concat();
        for piece in prefixed.chunks(SEGMENT_MAX) {
            let fields = TcpFields { sequence: *own_sequence, acknowledged: Some(peer_sequence), syn: false };
            push_segment(message, message.is_response, fields, piece, &mut self.buffer)?;
            *own_sequence = own_sequence.wrapping_add(piece.len() as u32);
        }
        Some(())
    }
}

/// The variable fields of a TCP header.
#[derive(Clone, Copy)]
struct TcpFields {
    sequence: u32,
    acknowledged: Option<u32>,
    syn: bool,
}

/// Builder of a packet whose IP header is complete.
type IpPacketBuilder = etherparse::PacketBuilderStep<etherparse::IpHeaders>;

/// Begins a packet from the client to the server or, with `from_server`, from the server to the
/// client. Returns source port, destination port and the builder with the IP header.
fn begin_packet(message: &CapturedMessage, from_server: bool) -> (u16, u16, IpPacketBuilder) {
    let (from, to) =
        if from_server { (message.server, message.client) } else { (message.client, message.server) };
    let builder = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => PacketBuilder::ipv4(from.octets(), to.octets(), TTL),
        (from, to) => PacketBuilder::ipv6(as_ipv6(from), as_ipv6(to), TTL),
    };
    (from.port(), to.port(), builder)
}

const fn as_ipv6(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

/// Appends the packet of a message over UDP. `None`: the format cannot represent the message.
fn push_datagram(message: &CapturedMessage, out: &mut Vec<u8>) -> Option<()> {
    if message.octets.len() > DATAGRAM_MAX {
        return None;
    }
    let (from, to, builder) = begin_packet(message, message.is_response);
    push_packet(message.time_ns, out, |out| builder.udp(from, to).write_to_vec(out, &message.octets).ok())
}

/// Appends the packet of a TCP segment. `None`: the format cannot represent the message.
fn push_segment(
    message: &CapturedMessage,
    from_server: bool,
    fields: TcpFields,
    octets: &[u8],
    out: &mut Vec<u8>,
) -> Option<()> {
    let (from, to, builder) = begin_packet(message, from_server);
    let mut builder = builder.tcp(from, to, fields.sequence, TCP_WINDOW);
    if fields.syn {
        builder = builder.syn();
    }
    if !octets.is_empty() {
        builder = builder.psh();
    }
    if let Some(acknowledged) = fields.acknowledged {
        builder = builder.ack(acknowledged);
    }
    push_packet(message.time_ns, out, |out| builder.write_to_vec(out, octets).ok())
}

/// Appends the header of a packet, and the packet that `write` appends. `None`: the format cannot
/// represent the message.
fn push_packet(
    time_ns: u64,
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> Option<()>,
) -> Option<()> {
    let seconds = u32::try_from(time_ns / NS_PER_SECOND).ok()?;
    let start = out.len();
    for word in [seconds, (time_ns % NS_PER_SECOND) as u32, 0, 0] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    write(out)?;
    let length = (out.len() - start - 16) as u32;
    for at in [8, 12] {
        out[start + at..start + at + 4].copy_from_slice(&length.to_le_bytes());
    }
    Some(())
}

fn push_dnstap_frame(message: &CapturedMessage, out: &mut Vec<u8>) {
    let octets_of = |address: IpAddr| match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    };
    let is_ipv4 = message.client.ip().is_ipv4();
    let (seconds, nanoseconds) = (message.time_ns / NS_PER_SECOND, (message.time_ns % NS_PER_SECOND) as u32);
    let mut dnstap_message = Message {
        kind: message.kind.number(message.is_response),
        socket_family: Some(if is_ipv4 { family::INET } else { family::INET6 }),
        socket_protocol: Some(match message.transport {
            Transport::Udp => protocol::UDP,
            Transport::Tcp => protocol::TCP,
            Transport::Tls => protocol::TLS,
            Transport::Https => protocol::HTTPS,
            Transport::Quic => protocol::QUIC,
        }),
        query_address: Some(octets_of(message.client.ip())),
        query_port: Some(message.client.port().into()),
        response_address: Some(octets_of(message.server.ip())),
        response_port: Some(message.server.port().into()),
        ..Message::default()
    };
    let octets = Some(message.octets.clone());
    if message.is_response {
        (dnstap_message.response_time_sec, dnstap_message.response_time_nsec) =
            (Some(seconds), Some(nanoseconds));
        dnstap_message.response_message = octets;
    } else {
        (dnstap_message.query_time_sec, dnstap_message.query_time_nsec) = (Some(seconds), Some(nanoseconds));
        dnstap_message.query_message = octets;
    }
    let frame = Dnstap { message: Some(dnstap_message), ..Dnstap::new(&[], &[]) };
    // Encoding fails only if the output is full, and a vector grows.
    push_data(frame.encoded_len(), out, |out| _ = frame.encode(out));
}
