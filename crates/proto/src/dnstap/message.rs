//! dnstap messages as protocol buffers: the fields of `dnstap.proto`, with their numbers.

/// `Dnstap.Type.MESSAGE`.
const MESSAGE: u32 = 1;

/// `SocketFamily`.
pub mod family {
    /// IPv4.
    pub const INET: u32 = 1;
    /// IPv6.
    pub const INET6: u32 = 2;
}

/// `SocketProtocol`.
pub mod protocol {
    /// UDP (RFC 1035).
    pub const UDP: u32 = 1;
    /// TCP (RFC 1035).
    pub const TCP: u32 = 2;
    /// DNS over TLS (RFC 7858).
    pub const TLS: u32 = 3;
    /// DNS over HTTPS (RFC 8484).
    pub const HTTPS: u32 = 4;
    /// DNS over QUIC (RFC 9250).
    pub const QUIC: u32 = 7;
}

/// `Message.Type`: the program that recorded a message, and its peer. Each kind has two numbers: an
/// odd one for queries, and the next one for responses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u32)]
pub enum MessageKind {
    /// An authoritative server, and its clients.
    #[default]
    Auth = 1,
    /// A resolver, and authoritative servers.
    Resolver = 3,
    /// A resolver, and its clients.
    Client = 5,
    /// A forwarder, and a resolver.
    Forwarder = 7,
    /// A stub resolver, and a resolver.
    Stub = 9,
    /// A DNS tool, and a server.
    Tool = 11,
    /// A client of dynamic updates, and a primary server.
    Update = 13,
}

impl MessageKind {
    const ALL: [Self; 7] =
        [Self::Auth, Self::Resolver, Self::Client, Self::Forwarder, Self::Stub, Self::Tool, Self::Update];

    /// Returns the kind of this number, and whether it is a response. `None`: the number is unknown.
    #[must_use]
    pub fn from_number(number: u32) -> Option<(Self, bool)> {
        let is_response = number.is_multiple_of(2);
        let kind = Self::ALL.into_iter().find(|kind| kind.number(is_response) == number)?;
        Some((kind, is_response))
    }

    /// Returns the number for queries or responses of this kind.
    #[must_use]
    pub const fn number(self, is_response: bool) -> u32 {
        self as u32 + is_response as u32
    }
}

/// `Dnstap`: one frame. Enumerations are declared as numbers, because their encoding is the same.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Dnstap {
    /// Identity of the server.
    #[prost(bytes = "vec", optional, tag = "1")]
    pub identity: Option<Vec<u8>>,
    /// Name and version of the program.
    #[prost(bytes = "vec", optional, tag = "2")]
    pub version: Option<Vec<u8>>,
    /// The message.
    #[prost(message, optional, tag = "14")]
    pub message: Option<Message>,
    /// `Dnstap.Type`: 1 for a message.
    #[prost(uint32, required, tag = "15")]
    pub kind: u32,
}

/// `Message`: a query or a response with its addresses, ports and times. The query address is that
/// of the client.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Message {
    /// `Message.Type`: a number of [`MessageKind`].
    #[prost(uint32, required, tag = "1")]
    pub kind: u32,
    /// A number of [`family`].
    #[prost(uint32, optional, tag = "2")]
    pub socket_family: Option<u32>,
    /// A number of [`protocol`].
    #[prost(uint32, optional, tag = "3")]
    pub socket_protocol: Option<u32>,
    /// Address of the client, 4 or 16 octets.
    #[prost(bytes = "vec", optional, tag = "4")]
    pub query_address: Option<Vec<u8>>,
    /// Address of the server, 4 or 16 octets.
    #[prost(bytes = "vec", optional, tag = "5")]
    pub response_address: Option<Vec<u8>>,
    /// Port of the client.
    #[prost(uint32, optional, tag = "6")]
    pub query_port: Option<u32>,
    /// Port of the server.
    #[prost(uint32, optional, tag = "7")]
    pub response_port: Option<u32>,
    /// Time of the query, in seconds since 1970.
    #[prost(uint64, optional, tag = "8")]
    pub query_time_sec: Option<u64>,
    /// Nanoseconds of this time.
    #[prost(fixed32, optional, tag = "9")]
    pub query_time_nsec: Option<u32>,
    /// The query in wire form.
    #[prost(bytes = "vec", optional, tag = "10")]
    pub query_message: Option<Vec<u8>>,
    /// Time of the response, in seconds since 1970.
    #[prost(uint64, optional, tag = "12")]
    pub response_time_sec: Option<u64>,
    /// Nanoseconds of this time.
    #[prost(fixed32, optional, tag = "13")]
    pub response_time_nsec: Option<u32>,
    /// The response in wire form.
    #[prost(bytes = "vec", optional, tag = "14")]
    pub response_message: Option<Vec<u8>>,
}

impl Dnstap {
    /// Creates a frame without a message. Empty values are omitted.
    #[must_use]
    pub fn new(identity: &[u8], version: &[u8]) -> Self {
        let given = |octets: &[u8]| (!octets.is_empty()).then(|| octets.to_vec());
        Self { identity: given(identity), version: given(version), message: None, kind: MESSAGE }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_messages_are_read_back() {
        let known: Vec<u32> = (0..100).filter(|number| MessageKind::from_number(*number).is_some()).collect();
        assert_eq!(known, (1..=14).collect::<Vec<_>>());
        for number in known {
            let (kind, is_response) = MessageKind::from_number(number).expect("known");
            assert_eq!((kind.number(is_response), is_response), (number, number % 2 == 0));
        }
    }
}
