//! RRsets of the apex during its preparation.

/// TTL in seconds and RDATA of an RRset.
pub(super) type TtlAndRdatas = (u32, Vec<Vec<u8>>);
