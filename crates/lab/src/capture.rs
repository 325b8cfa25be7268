//! Captures of DNS traffic: reads pcap, pcapng and dnstap files as one sequence of messages, writes
//! pcap and dnstap, and anonymises addresses and names.
//!
//! - Packets: link types Ethernet (with VLAN tags), Linux cooked (1 and 2), raw IP and BSD
//!   loopback; IPv4 and IPv6; UDP, and TCP with the length prefix of RFC 1035 §4.2.2. Fragments are
//!   skipped.
//! - dnstap: unidirectional Frame Streams. Messages over TLS, HTTPS and QUIC are included.
//!
//! A packet or frame that is not a DNS message is skipped and counted by its reason. Only a file
//! that cannot be read further is an error. All buffers have a bound.

mod anonymize;
mod convert;
mod cryptopan;
mod dnstap_socket;
mod error;
mod frames;
mod input;
mod key;
mod layout;
mod link;
mod names;
mod options;
mod packets;
mod pcap_file;
mod question;
mod reader;
mod skip;
mod streams;
mod writer;

pub use anonymize::{AnonymizeOptions, Anonymizer};
pub use convert::{CaptureOutput, CopyCounts, CopyError, copy_messages};
pub use cryptopan::CryptoPan;
pub use dnstap_socket::DnstapConnection;
pub use error::{CaptureError, KeyError};
pub use key::AnonymisationKey;
pub use nonesuch_proto::dnstap::MessageKind;
pub use question::question_line;
pub use reader::{CaptureOptions, CaptureReader};
pub use skip::{SkipCounts, SkipReason};
pub use writer::{CaptureFormat, CaptureWriter};

use std::net::SocketAddr;

/// The transport of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Transport {
    /// UDP.
    Udp,
    /// TCP.
    Tcp,
    /// DNS over TLS (RFC 7858), recorded by one of its ends.
    Tls,
    /// DNS over HTTPS (RFC 8484), recorded by one of its ends.
    Https,
    /// DNS over QUIC (RFC 9250), recorded by one of its ends.
    Quic,
}

/// A captured message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedMessage {
    /// Time of the message, in ns since 1970. For TCP: time of the segment that completes it.
    pub time_ns: u64,
    /// The end that sends queries. Unspecified address and port 0 if a dnstap file omits it.
    pub client: SocketAddr,
    /// The end that sends responses. Unspecified address and port 53 if a dnstap file omits it.
    pub server: SocketAddr,
    /// The transport.
    pub transport: Transport,
    /// Whether the message is a response. In packets, the QR flag decides (RFC 1035 §4.1.1).
    pub is_response: bool,
    /// The dnstap message type. For packets: [`MessageKind::Auth`].
    pub kind: MessageKind,
    /// The message in wire form, without a length prefix; at least the 12 octets of the header.
    pub octets: Vec<u8>,
}

#[cfg(test)]
mod tests;
