//! Zone transfers (RFC 5936, RFC 1995).

pub mod inbound;
pub mod outbound;
