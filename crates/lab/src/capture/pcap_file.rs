//! Packets in pcap and pcapng files. The library `pcap-parser` parses the blocks; this module finds
//! their ends, so that a block is parsed once and completely.

use super::error::CaptureError;
use super::input::Input;
use pcap_parser::nom::IResult;
use pcap_parser::pcapng::{Block, InterfaceDescriptionBlock, parse_block_be, parse_block_le};
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{
    BOM_MAGIC, IDB_MAGIC, LegacyPcapBlock, PcapError, PcapHeader, SHB_MAGIC, parse_pcap_frame,
    parse_pcap_frame_be, parse_pcap_frame_modified, parse_pcap_header,
};

/// Maximum number of interfaces in a section of a pcapng file.
const INTERFACES_MAX: usize = 4096;
/// Length of the header of a pcap file in octets.
const FILE_HEADER_SIZE: usize = 24;
const NS_PER_SECOND: u32 = 1_000_000_000;

/// Time and link type of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PacketInfo {
    /// Time in ns since 1970, `None` if the file does not have it.
    pub(super) time_ns: Option<u64>,
    pub(super) link_type: i32,
}

/// The next item of a file.
pub(super) enum FileItem {
    /// A packet, whose octets are in the buffer of the caller.
    Packet(PacketInfo),
    /// A block without a packet.
    Other,
    /// The file ends at the end of a block.
    End,
    /// The file ends inside a block.
    CutShort,
}

/// Reads the packets of a file.
pub(super) enum PacketFile {
    Pcap(PcapFile),
    Pcapng(PcapngFile),
}

impl PacketFile {
    /// Reads the header of a file. Returns `None` if the file is neither pcap nor pcapng.
    pub(super) fn open(input: &mut Input) -> Result<Option<Self>, CaptureError> {
        if input.fill_to(4)? && input.available().starts_with(&SHB_MAGIC.to_be_bytes()) {
            return Ok(Some(Self::Pcapng(PcapngFile::default())));
        }
        if !input.fill_to(FILE_HEADER_SIZE)? {
            return Ok(None);
        }
        let Ok((_, header)) = parse_pcap_header(&input.available()[..FILE_HEADER_SIZE]) else {
            return Ok(None);
        };
        input.consume(FILE_HEADER_SIZE);
        Ok(Some(Self::Pcap(PcapFile { header })))
    }

    /// Reads the next block. The octets of a packet replace the contents of `packet`.
    pub(super) fn read_block(
        &mut self,
        input: &mut Input,
        packet: &mut Vec<u8>,
    ) -> Result<FileItem, CaptureError> {
        match self {
            Self::Pcap(file) => file.read_block(input, packet),
            Self::Pcapng(file) => file.read_block(input, packet),
        }
    }
}

/// Returns how the file ends. It has fewer octets left than the header of a block.
fn end_of_file(input: &Input) -> FileItem {
    if input.available().is_empty() { FileItem::End } else { FileItem::CutShort }
}

/// Returns the number at offset `at`; 0 if the octets end before.
fn u32_at(octets: &[u8], at: usize, big_endian: bool) -> u32 {
    let octets = octets.get(at..).and_then(<[u8]>::first_chunk).copied().unwrap_or_default();
    if big_endian { u32::from_be_bytes(octets) } else { u32::from_le_bytes(octets) }
}

/// A pcap file.
pub(super) struct PcapFile {
    header: PcapHeader,
}

type ParseFrame = fn(&[u8]) -> IResult<&[u8], LegacyPcapBlock<'_>, PcapError<&[u8]>>;

impl PcapFile {
    fn read_block(&self, input: &mut Input, packet: &mut Vec<u8>) -> Result<FileItem, CaptureError> {
        let (parse, header_size): (ParseFrame, usize) = if self.header.is_modified_format() {
            (parse_pcap_frame_modified, 24)
        } else if self.header.is_bigendian() {
            (parse_pcap_frame_be, 16)
        } else {
            (parse_pcap_frame, 16)
        };
        if !input.fill_to(header_size)? {
            return Ok(end_of_file(input));
        }
        let length =
            header_size.saturating_add(u32_at(input.available(), 8, self.header.is_bigendian()) as usize);
        if !input.fill_to(length)? {
            return Ok(FileItem::CutShort);
        }
        let (_, block) = parse(&input.available()[..length]).map_err(|_| input.malformed("packet"))?;
        packet.clear();
        packet.extend_from_slice(block.data);
        let scale = if self.header.is_nanosecond_precision() { 1 } else { 1000 };
        let fraction = u64::from(block.ts_usec) * scale;
        let time_ns = u64::from(block.ts_sec) * u64::from(NS_PER_SECOND) + fraction;
        input.consume(length);
        Ok(FileItem::Packet(PacketInfo { time_ns: Some(time_ns), link_type: self.header.network.0 }))
    }
}

/// An interface of a pcapng file.
struct Interface {
    link_type: i32,
    /// Number of time units per second.
    units_per_second: u64,
    /// Seconds to add to a time.
    offset_seconds: i64,
}

impl Interface {
    /// Reads an interface. Returns `None` if its unit of time is too small: the number of units per
    /// second does not fit 64 bits.
    ///
    /// The functions of the library for this purpose have faults: they reject units that are powers
    /// of 2, and read the offset as little-endian in all files.
    fn new(block: &InterfaceDescriptionBlock<'_>) -> Option<Self> {
        let exponent = u32::from(block.if_tsresol & 0x7f);
        let base: u64 = if block.if_tsresol & 0x80 == 0 { 10 } else { 2 };
        let is_big_endian = block.block_type != IDB_MAGIC;
        Some(Self {
            link_type: block.linktype.0,
            units_per_second: base.checked_pow(exponent)?,
            offset_seconds: if is_big_endian { block.if_tsoffset.swap_bytes() } else { block.if_tsoffset },
        })
    }

    /// Converts a time to ns since 1970. A time before 1970 becomes 0.
    fn time_ns(&self, high: u32, low: u32) -> u64 {
        let units = i128::from(u64::from(high) << 32 | u64::from(low));
        let ns_per_second = i128::from(NS_PER_SECOND);
        let time = units * ns_per_second / i128::from(self.units_per_second)
            + i128::from(self.offset_seconds) * ns_per_second;
        time.clamp(0, i128::from(u64::MAX)) as u64
    }
}

/// A pcapng file.
#[derive(Default)]
pub(super) struct PcapngFile {
    big_endian: bool,
    /// Interfaces of the current section.
    interfaces: Vec<Interface>,
}

impl PcapngFile {
    fn read_block(&mut self, input: &mut Input, packet: &mut Vec<u8>) -> Result<FileItem, CaptureError> {
        if !input.fill_to(12)? {
            return Ok(end_of_file(input));
        }
        if input.available().starts_with(&SHB_MAGIC.to_be_bytes()) {
            self.big_endian = u32_at(input.available(), 8, true) == BOM_MAGIC;
            self.interfaces.clear();
        }
        let length = u32_at(input.available(), 4, self.big_endian) as usize;
        if length < 12 || !length.is_multiple_of(4) {
            return Err(input.malformed("block length"));
        }
        if !input.fill_to(length)? {
            return Ok(FileItem::CutShort);
        }
        let parse = if self.big_endian { parse_block_be } else { parse_block_le };
        let parsed = parse(&input.available()[..length]).ok();
        let item = parsed.and_then(|(_, block)| handle_block(&mut self.interfaces, &block, packet));
        let item = item.ok_or_else(|| input.malformed("block"))?;
        input.consume(length);
        Ok(item)
    }
}

/// Handles a parsed block. Returns `None` if it is malformed: it has an unknown interface, or there
/// are too many interfaces.
fn handle_block(
    interfaces: &mut Vec<Interface>,
    block: &Block<'_>,
    packet: &mut Vec<u8>,
) -> Option<FileItem> {
    match block {
        Block::InterfaceDescription(block) => {
            if interfaces.len() >= INTERFACES_MAX {
                return None;
            }
            interfaces.push(Interface::new(block)?);
            Some(FileItem::Other)
        }
        Block::EnhancedPacket(block) => {
            let interface = interfaces.get(block.if_id as usize)?;
            packet.clear();
            packet.extend_from_slice(block.packet_data());
            let time_ns = Some(interface.time_ns(block.ts_high, block.ts_low));
            Some(FileItem::Packet(PacketInfo { time_ns, link_type: interface.link_type }))
        }
        // A simple packet has no time and belongs to the first interface.
        Block::SimplePacket(block) => {
            packet.clear();
            packet.extend_from_slice(block.packet_data());
            Some(FileItem::Packet(PacketInfo { time_ns: None, link_type: interfaces.first()?.link_type }))
        }
        _ => Some(FileItem::Other),
    }
}
