//! RRsets of the apex while they are prepared.

/// TTL and RDATA of an RRset.
pub(super) type TtlAndRdatas = (u32, Vec<Vec<u8>>);
