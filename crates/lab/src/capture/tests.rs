//! Tests of reading, writing and anonymisation as a whole.

mod anonymize;
mod formats;
mod round_trip;

use super::*;
use std::io::Cursor;
use std::path::Path;

/// A query for www.example. A with an OPT record.
pub(super) const QUERY: &[u8] =
    b"\x12\x34\x01\0\0\x01\0\0\0\0\0\x01\x03www\x07example\0\0\x01\0\x01\0\0\x29\x04\xd0\0\0\x80\0\0\0";

/// A time with ns: 2023-11-14 22:13:20.123456789.
pub(super) const TIME: u64 = 1_700_000_000_123_456_789;

pub(super) fn socket_addr(text: &str) -> SocketAddr {
    text.parse().expect("an address and a port")
}

pub(super) fn query() -> CapturedMessage {
    CapturedMessage {
        time_ns: TIME,
        client: socket_addr("192.0.2.1:4711"),
        server: socket_addr("198.51.100.1:53"),
        transport: Transport::Udp,
        is_response: false,
        kind: MessageKind::Auth,
        octets: QUERY.to_vec(),
    }
}

/// The response to a query, one microsecond later.
pub(super) fn response_to(query: &CapturedMessage) -> CapturedMessage {
    let mut response = CapturedMessage { time_ns: query.time_ns + 1000, is_response: true, ..query.clone() };
    response.octets[2] |= 0x80;
    response
}

pub(super) fn write(messages: &[CapturedMessage], format: CaptureFormat) -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new(), format).expect("written");
    for message in messages {
        assert!(writer.write(message).expect("written"), "{message:?}");
    }
    writer.finish().expect("written")
}

pub(super) fn open(octets: &[u8]) -> Result<CaptureReader, CaptureError> {
    let input = Box::new(Cursor::new(octets.to_vec()));
    CaptureReader::new(Path::new("capture"), input, &CaptureOptions { ports: vec![53, 853] })
}

/// Reads a capture without errors.
pub(super) fn read(octets: &[u8]) -> (Vec<CapturedMessage>, SkipCounts) {
    let mut reader = open(octets).expect("a capture");
    let messages = reader.by_ref().map(|message| message.expect("a message")).collect();
    (messages, *reader.skipped())
}
