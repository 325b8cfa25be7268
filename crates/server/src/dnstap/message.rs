//! dnstap messages as protocol buffers: the fields of `dnstap.proto` that an authoritative server
//! sets, with their numbers.

use crate::statistics::TransportKind;

/// The content type in the control frames of Frame Streams.
pub(super) const CONTENT_TYPE: &[u8] = b"protobuf:dnstap.Dnstap";

/// `Dnstap.Type.MESSAGE`.
const MESSAGE: u32 = 1;
/// `Message.Type.AUTH_QUERY`.
pub(super) const AUTH_QUERY: u32 = 1;
/// `Message.Type.AUTH_RESPONSE`.
pub(super) const AUTH_RESPONSE: u32 = 2;
/// `SocketFamily.INET`.
pub(super) const INET: u32 = 1;
/// `SocketFamily.INET6`.
pub(super) const INET6: u32 = 2;

/// `Dnstap`: one frame. Enumerations are declared as numbers, because their encoding is the same.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Dnstap {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub(super) identity: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub(super) version: Option<Vec<u8>>,
    #[prost(message, optional, tag = "14")]
    pub(super) message: Option<Message>,
    #[prost(uint32, required, tag = "15")]
    pub(super) kind: u32,
}

/// `Message`: a query or a response with its addresses, ports and times.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Message {
    #[prost(uint32, required, tag = "1")]
    pub(super) kind: u32,
    #[prost(uint32, optional, tag = "2")]
    pub(super) socket_family: Option<u32>,
    #[prost(uint32, optional, tag = "3")]
    pub(super) socket_protocol: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "4")]
    pub(super) query_address: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "5")]
    pub(super) response_address: Option<Vec<u8>>,
    #[prost(uint32, optional, tag = "6")]
    pub(super) query_port: Option<u32>,
    #[prost(uint32, optional, tag = "7")]
    pub(super) response_port: Option<u32>,
    #[prost(uint64, optional, tag = "8")]
    pub(super) query_time_sec: Option<u64>,
    #[prost(fixed32, optional, tag = "9")]
    pub(super) query_time_nsec: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "10")]
    pub(super) query_message: Option<Vec<u8>>,
    #[prost(uint64, optional, tag = "12")]
    pub(super) response_time_sec: Option<u64>,
    #[prost(fixed32, optional, tag = "13")]
    pub(super) response_time_nsec: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "14")]
    pub(super) response_message: Option<Vec<u8>>,
}

impl Dnstap {
    /// Returns a frame without a message.
    pub(super) fn new(identity: &[u8], version: &[u8]) -> Self {
        let given = |octets: &[u8]| (!octets.is_empty()).then(|| octets.to_vec());
        Self { identity: given(identity), version: given(version), message: None, kind: MESSAGE }
    }
}

/// `SocketProtocol`.
pub(super) const fn protocol(transport: TransportKind) -> u32 {
    match transport {
        TransportKind::Udp => 1,
        TransportKind::Tcp => 2,
        TransportKind::Tls => 3,
    }
}
