//! DNS messages in packets.

use super::error::CaptureError;
use super::input::Input;
use super::link::{DissectedPacket, Payload, dissect};
use super::pcap_file::{FileItem, PacketFile, PacketInfo};
use super::skip::{SkipCounts, SkipReason};
use super::streams::Streams;
use super::{CapturedMessage, MessageKind, Transport};
use nonesuch_proto::message::{Header, flags};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// The messages of a pcap or pcapng file.
pub(super) struct PacketSource {
    file: PacketFile,
    /// Octets of the current packet.
    packet: Vec<u8>,
    streams: Streams,
    /// Ports of servers. Packets to and from other ports are skipped.
    ports: Vec<u16>,
}

impl PacketSource {
    pub(super) fn new(file: PacketFile, ports: Vec<u16>) -> Self {
        Self { file, packet: Vec::new(), streams: Streams::default(), ports }
    }

    /// Reads the next block and appends its messages to `ready`. Returns false at the end.
    pub(super) fn read_block(
        &mut self,
        input: &mut Input,
        ready: &mut VecDeque<CapturedMessage>,
        skipped: &mut SkipCounts,
    ) -> Result<bool, CaptureError> {
        match self.file.read_block(input, &mut self.packet)? {
            FileItem::Packet(info) => {
                if let Err(reason) = self.take_packet(info, ready, skipped) {
                    skipped.count(reason);
                }
            }
            FileItem::Other => {}
            FileItem::End => return Ok(false),
            FileItem::CutShort => {
                skipped.count(SkipReason::EndOfFile);
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn take_packet(
        &mut self,
        info: PacketInfo,
        ready: &mut VecDeque<CapturedMessage>,
        skipped: &mut SkipCounts,
    ) -> Result<(), SkipReason> {
        let DissectedPacket { source, destination, payload } = dissect(info.link_type, &self.packet)?;
        let ends = (source, destination);
        if ![source.port(), destination.port()].iter().any(|port| self.ports.contains(port)) {
            return Err(SkipReason::OtherTraffic);
        }
        let time_ns = info.time_ns.ok_or(SkipReason::NoTime)?;
        match payload {
            Payload::Datagram(octets) => {
                ready.push_back(message(&self.ports, ends, Transport::Udp, time_ns, octets)?);
            }
            Payload::Segment(segment) => {
                let mut reasons = Vec::new();
                self.streams.add_segment(ends, segment, skipped, |octets| {
                    match message(&self.ports, ends, Transport::Tcp, time_ns, octets) {
                        Ok(message) => ready.push_back(message),
                        Err(reason) => reasons.push(reason),
                    }
                });
                reasons.into_iter().for_each(|reason| skipped.count(reason));
            }
        }
        Ok(())
    }
}

/// Creates the message that was sent from the first end to the second. A query goes to the port of
/// a server, and a response comes from one.
fn message(
    ports: &[u16],
    (source, destination): (SocketAddr, SocketAddr),
    transport: Transport,
    time_ns: u64,
    octets: &[u8],
) -> Result<CapturedMessage, SkipReason> {
    let is_response = Header::read(octets).ok_or(SkipReason::NotMessage)?.flags & flags::QR != 0;
    let (client, server) = if is_response { (destination, source) } else { (source, destination) };
    if !ports.contains(&server.port()) {
        return Err(SkipReason::OtherTraffic);
    }
    let (kind, octets) = (MessageKind::Auth, octets.to_vec());
    Ok(CapturedMessage { time_ns, client, server, transport, is_response, kind, octets })
}
