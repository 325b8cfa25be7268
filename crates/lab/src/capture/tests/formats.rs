//! Files and packets of other programs, composed octet by octet.

use super::*;
use etherparse::PacketBuilder;
use nonesuch_proto::dnstap::{CONTENT_TYPE, Control, Dnstap, Message, push_control, push_data};
use prost::Message as _;

const ETHERNET: u32 = 1;
const RAW: u32 = 101;

/// The packet of [`query`] without a link header.
fn ip_packet() -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv4([192, 0, 2, 1], [198, 51, 100, 1], 64).udp(4711, 53);
    builder.write_to_vec(&mut packet, QUERY).expect("written");
    packet
}

fn ethernet(ether_type: u16, packet: &[u8]) -> Vec<u8> {
    [&[2; 12][..], &ether_type.to_be_bytes(), packet].concat()
}

/// Byte order and unit of time of a pcap file.
#[derive(Clone, Copy)]
struct FileFormat {
    big_endian: bool,
    nanoseconds: bool,
}

const LITTLE_ENDIAN: FileFormat = FileFormat { big_endian: false, nanoseconds: true };

fn encode_u32s(format: FileFormat, words: &[u32]) -> Vec<u8> {
    let octets = |word: &u32| if format.big_endian { word.to_be_bytes() } else { word.to_le_bytes() };
    words.iter().flat_map(octets).collect()
}

fn pcap(format: FileFormat, link_type: u32, packets: &[Vec<u8>]) -> Vec<u8> {
    let magic = if format.nanoseconds { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
    let version = if format.big_endian { 2 << 16 | 4 } else { 4 << 16 | 2 };
    let mut file = encode_u32s(format, &[magic, version, 0, 0, 65_535, link_type]);
    let fraction = if format.nanoseconds { 123_456_789 } else { 123_456 };
    for packet in packets {
        let length = packet.len() as u32;
        file.extend(encode_u32s(format, &[1_700_000_000, fraction, length, length]));
        file.extend_from_slice(packet);
    }
    file
}

/// A block of a pcapng file.
fn pcapng_block(format: FileFormat, number: u32, body: &[u8]) -> Vec<u8> {
    let padded = [body, &vec![0; body.len().next_multiple_of(4) - body.len()]].concat();
    let length = 12 + padded.len() as u32;
    [encode_u32s(format, &[number, length]), padded, encode_u32s(format, &[length])].concat()
}

fn pcapng(format: FileFormat, resolution: u8, offset: i64, time: u64) -> Vec<u8> {
    let short = |word: u16| if format.big_endian { word.to_be_bytes() } else { word.to_le_bytes() };
    let version: Vec<u8> = [short(1), short(0)].concat();
    let section = [encode_u32s(format, &[0x1a2b_3c4d]), version, vec![0xff; 8]].concat();
    let offset = if format.big_endian { offset.to_be_bytes() } else { offset.to_le_bytes() };
    let mut interface = [short(ETHERNET as u16), short(0)].concat();
    interface.extend(encode_u32s(format, &[65_535]));
    interface.extend([&short(9)[..], &short(1), &[resolution, 0, 0, 0]].concat());
    interface.extend([&short(14)[..], &short(8), &offset, &[0; 4]].concat());
    let packet = ethernet(0x0800, &ip_packet());
    let length = packet.len() as u32;
    let mut enhanced = encode_u32s(format, &[0, (time >> 32) as u32, time as u32, length, length]);
    enhanced.extend_from_slice(&packet);
    let simple = [encode_u32s(format, &[length]), packet].concat();
    let unknown = pcapng_block(format, 0x0bad, b"anything");
    [
        pcapng_block(format, 0x0a0d_0d0a, &section),
        pcapng_block(format, 1, &interface),
        unknown,
        pcapng_block(format, 6, &enhanced),
        pcapng_block(format, 3, &simple),
    ]
    .concat()
}

#[test]
fn both_byte_orders_and_units_of_time_are_read() {
    for big_endian in [false, true] {
        for nanoseconds in [false, true] {
            let file = pcap(FileFormat { big_endian, nanoseconds }, RAW, &[ip_packet(), ip_packet()]);
            let time_ns = if nanoseconds { TIME } else { TIME - 789 };
            let expected = CapturedMessage { time_ns, ..query() };
            assert_eq!(read(&file), (vec![expected.clone(), expected], SkipCounts::default()));
        }
    }
}

#[test]
fn pcapng_is_read_in_both_byte_orders_and_all_units_of_time() {
    for big_endian in [false, true] {
        let format = FileFormat { big_endian, nanoseconds: true };
        // Powers of 10, powers of 2, and an offset in seconds.
        for (resolution, offset, time, time_ns) in [
            (9, 0, TIME, TIME),
            (6, 0, TIME / 1000, TIME - 789),
            (9, 1_700_000_000, 123_456_789, TIME),
            (0x80 | 1, -1, 3_400_000_003, 1_700_000_000_500_000_000),
            (9, -5, 0, 0),
        ] {
            let (messages, skipped) = read(&pcapng(format, resolution, offset, time));
            assert_eq!(messages, [CapturedMessage { time_ns, ..query() }]);
            // The simple packet.
            assert_eq!((skipped.get(SkipReason::NoTime), skipped.total()), (1, 1));
        }
    }
}

#[test]
fn all_link_types_are_read() {
    let packet = ip_packet();
    let vlan = |tags: &[u16]| {
        let tags: Vec<u8> = tags.iter().flat_map(|tag| [[0, 7], tag.to_be_bytes()].concat()).collect();
        [&tags[..], &packet].concat()
    };
    let sll = [&[0, 0, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0, 0x08, 0x00][..], &packet].concat();
    let sll2 = [&[0x08, 0x00, 0, 0, 0, 0, 0, 1, 0, 1, 0, 6, 2, 2, 2, 2, 2, 2, 0, 0][..], &packet].concat();
    for (link_type, packet) in [
        (ETHERNET, ethernet(0x0800, &packet)),
        // An Ethernet frame has at least 60 octets; the padding is not part of the datagram.
        (ETHERNET, [ethernet(0x0800, &packet), vec![9; 20]].concat()),
        (ETHERNET, ethernet(0x8100, &vlan(&[0x0800]))),
        (ETHERNET, ethernet(0x88a8, &vlan(&[0x8100, 0x0800]))),
        (113, sll),
        (276, sll2),
        (RAW, packet.clone()),
        (228, packet.clone()),
        (0, [&[2, 0, 0, 0][..], &packet].concat()),
        (108, [&[0, 0, 0, 2][..], &packet].concat()),
    ] {
        let (messages, skipped) = read(&pcap(LITTLE_ENDIAN, link_type, &[packet]));
        assert_eq!((messages, skipped.total()), (vec![query()], 0), "link type {link_type}");
    }
}

#[test]
fn other_packets_are_counted_by_their_reason() {
    let packet = ip_packet();
    let with = |change: fn(&mut Vec<u8>)| {
        let mut packet = packet.clone();
        change(&mut packet);
        packet
    };
    for (reason, link_type, packet) in [
        (SkipReason::LinkType, 147, packet.clone()),
        (SkipReason::OtherTraffic, ETHERNET, ethernet(0x0806, &[0; 28])),
        (SkipReason::OtherTraffic, RAW, with(|packet| packet[9] = 47)),
        // The port of the server.
        (SkipReason::OtherTraffic, RAW, with(|packet| packet[23] = 54)),
        // A response to port 53, from another port.
        (SkipReason::OtherTraffic, RAW, with(|packet| packet[30] |= 0x80)),
        (SkipReason::Fragment, RAW, with(|packet| packet[6] |= 0x20)),
        (SkipReason::Fragment, RAW, with(|packet| packet[7] = 1)),
        (SkipReason::Truncated, RAW, with(|packet| packet.truncate(40))),
        (SkipReason::Truncated, 113, vec![0; 5]),
        (SkipReason::Malformed, RAW, with(|packet| packet[0] = 0x35)),
        (SkipReason::NotMessage, RAW, {
            let mut packet = Vec::new();
            let builder = PacketBuilder::ipv4([192, 0, 2, 1], [192, 0, 2, 2], 64).udp(1, 53);
            builder.write_to_vec(&mut packet, b"eleven long").expect("written");
            packet
        }),
    ] {
        let (messages, skipped) = read(&pcap(LITTLE_ENDIAN, link_type, &[packet, ip_packet()]));
        // The second packet has no link header.
        let good = u64::from(link_type == RAW);
        assert_eq!((messages.len() as u64, skipped.total()), (good, 2 - good), "{reason:?}");
        assert!(skipped.get(reason) > 0, "{reason:?}: {skipped:?}");
    }
}

#[test]
fn an_incomplete_file_ends_with_the_last_complete_message() {
    for format in [CaptureFormat::Pcap, CaptureFormat::Dnstap] {
        let octets = write(&[query(), query()], format);
        let (messages, skipped) = read(&octets[..octets.len() - 20]);
        assert_eq!(messages, [query()], "{format:?}");
        assert_eq!((skipped.get(SkipReason::EndOfFile), skipped.total()), (1, 1));
    }
}

#[test]
fn errors_name_the_octet() {
    let mut file = pcapng(LITTLE_ENDIAN, 9, 0, TIME);
    let good = file.len() as u64;
    file.extend(encode_u32s(LITTLE_ENDIAN, &[6, 13, 0]));
    let error = open(&file).expect("a capture").find_map(Result::err).expect("damaged");
    assert!(matches!(error, CaptureError::Malformed { offset, .. } if offset == good), "{error}");

    let mut file = pcap(LITTLE_ENDIAN, RAW, &[ip_packet()]);
    let good = file.len() as u64;
    file.extend(encode_u32s(LITTLE_ENDIAN, &[0, 0, 1 << 30, 1 << 30]));
    let error = open(&file).expect("a capture").find_map(Result::err).expect("damaged");
    assert!(matches!(error, CaptureError::TooLarge { offset, .. } if offset == good), "{error}");

    let stop = write(&[query()], CaptureFormat::Dnstap);
    let mut file = stop[..stop.len() - 12].to_vec();
    let good = file.len() as u64;
    file.extend([0xff; 8]);
    let error = open(&file).expect("a capture").find_map(Result::err).expect("damaged");
    assert!(matches!(error, CaptureError::Malformed { offset, .. } if offset == good), "{error}");
}

#[test]
fn other_files_are_no_captures() {
    for file in [&b""[..], b"\0\0\0\0", b"PK\x03\x04 something longer than a header", &[0x1f, 0x8b]] {
        let error = open(file).err().expect("no capture");
        assert!(matches!(error, CaptureError::Format { .. }), "{error}");
    }
    let mut other = Vec::new();
    push_control(Control::Start, Some(b"protobuf:other"), &mut other);
    let error = open(&other).err().expect("no dnstap");
    assert!(matches!(error, CaptureError::ContentType { .. }), "{error}");
    let error = CaptureReader::open(Path::new("/nonexistent"), &CaptureOptions::default()).err();
    assert!(matches!(error, Some(CaptureError::Open { .. })));
}

fn frame(kind: u32, message: Message) -> Vec<u8> {
    let frame = Dnstap { message: Some(Message { kind, ..message }), ..Dnstap::new(b"ns1", b"") };
    let mut out = Vec::new();
    push_data(frame.encoded_len(), &mut out, |out| frame.encode(out).expect("room"));
    out
}

fn dnstap_file(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    push_control(Control::Start, Some(CONTENT_TYPE), &mut file);
    file.extend(frames.concat());
    file
}

#[test]
fn a_query_in_the_frame_of_its_response_counts_if_queries_have_no_frames() {
    let both = Message {
        query_time_sec: Some(5),
        query_message: Some(QUERY.to_vec()),
        response_time_sec: Some(6),
        response_message: Some(response_to(&query()).octets),
        ..Message::default()
    };
    let (messages, skipped) = read(&dnstap_file(&[frame(2, both.clone())]));
    let found: Vec<(bool, u64)> =
        messages.iter().map(|message| (message.is_response, message.time_ns)).collect();
    assert_eq!((found, skipped.total()), (vec![(false, 5_000_000_000), (true, 6_000_000_000)], 0));
    // Without addresses.
    assert_eq!(
        (messages[0].client, messages[0].server),
        (socket_addr("0.0.0.0:0"), socket_addr("0.0.0.0:53"))
    );
    let (messages, _) = read(&dnstap_file(&[frame(1, both.clone()), frame(2, both)]));
    assert_eq!(messages.iter().map(|message| message.is_response).collect::<Vec<_>>(), [false, true]);
}

#[test]
fn frames_that_are_no_messages_are_counted() {
    let good = Message { query_time_sec: Some(5), query_message: Some(QUERY.to_vec()), ..Message::default() };
    let short = Some(b"short".to_vec());
    for (reason, frame) in [
        (SkipReason::OtherTraffic, frame(15, good.clone())),
        (SkipReason::OtherTraffic, frame(1, Message { socket_protocol: Some(5), ..good.clone() })),
        (SkipReason::NotMessage, frame(2, Message { query_message: None, ..good.clone() })),
        (SkipReason::NotMessage, frame(1, Message { query_message: short.clone(), ..good.clone() })),
        (SkipReason::NoTime, frame(1, Message { query_time_sec: None, ..good.clone() })),
        (SkipReason::NoTime, frame(1, Message { query_time_sec: Some(u64::MAX), ..good.clone() })),
        (SkipReason::Malformed, frame(1, Message { query_address: short, ..good.clone() })),
        (SkipReason::Malformed, frame(1, Message { query_port: Some(65_536), ..good })),
        (SkipReason::Malformed, vec![0, 0, 0, 2, 0xff, 0xff]),
    ] {
        let (messages, skipped) = read(&dnstap_file(&[frame]));
        assert_eq!((messages.len(), skipped.get(reason), skipped.total()), (0, 1, 1), "{reason:?}");
    }
}
