//! What is verified, and against what.

/// What the DNSKEY RRset is to be matched with.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Anchor {
    /// RDATA of a DS record.
    Ds(Vec<u8>),
    /// RDATA of a DNSKEY record.
    Dnskey(Vec<u8>),
}

/// How much is verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Mode {
    /// Everything.
    #[default]
    Full,
    /// Everything but the mathematics of signatures: that they are there and their fields fit, bit maps and chain.
    Structural,
}

/// What is verified, and against what.
#[derive(Clone, Debug, Default)]
pub struct VerifyOptions {
    /// The time that signatures must be valid at, in seconds since 1970 modulo 2^32; times are not checked where
    /// `None`.
    pub now: Option<u32>,
    /// Trust anchors or DS records of which one at least must match a key that signs the DNSKEY RRset; any key will
    /// do where there are none.
    pub anchors: Vec<Anchor>,
    /// How much is verified.
    pub mode: Mode,
}
