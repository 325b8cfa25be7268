//! RRsets of the apex while they are prepared.

/// TTL and RDATA of an RRset.
pub(super) type Records = (u32, Vec<Vec<u8>>);
