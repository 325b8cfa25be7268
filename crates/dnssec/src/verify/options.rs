//! Options of a verification.

/// A trust anchor or DS record; the DNSKEY RRset must have a key that matches it (RFC 4035 §5.2).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Anchor {
    /// The RDATA of a DS record.
    Ds(Vec<u8>),
    /// The RDATA of a DNSKEY record.
    Dnskey(Vec<u8>),
}

/// Extent of a verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Mode {
    /// All checks.
    #[default]
    Full,
    /// All checks except the mathematics of signatures and VRF proofs: the presence and fields of
    /// the signatures, the bit maps and the chain.
    Structural,
}

/// Options of a verification: extent, time and trust anchors.
#[derive(Clone, Debug, Default)]
pub struct VerifyOptions {
    /// Time at which signatures must be valid, in seconds since 1970 modulo 2^32. With `None`,
    /// inception and expiration are not compared with a time.
    pub now: Option<u32>,
    /// Trust anchors or DS records. At least one of them must match a key that signs the DNSKEY
    /// RRset. Without anchors, any key is accepted.
    pub anchors: Vec<Anchor>,
    /// Extent of the verification.
    pub mode: Mode,
}
