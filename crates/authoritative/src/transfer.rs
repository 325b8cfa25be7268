//! Zone transfers to secondaries (RFC 5936, RFC 1995).

pub mod outbound;
