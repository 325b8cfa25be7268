//! The extended errors that an authoritative server gives (RFC 8914 §4).
//!
//! Most codes are a resolver's: what it could not validate, or not reach. These are left, with a text where the code alone
//! does not say what to do.

/// An extended error: code and text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtendedError {
    /// The code of the registry.
    pub code: u16,
    /// What is added for people; empty where the code says it all.
    pub text: &'static str,
}

impl ExtendedError {
    /// The zone is being loaded, or waits for its first transfer (RFC 8914 §4.15).
    pub const NOT_READY: Self = Self::new(14, "");
    /// The sender may not have this (RFC 8914 §4.19).
    pub const PROHIBITED: Self = Self::new(18, "");
    /// The sender may transfer the zone over TLS, and not like this.
    pub const NEEDS_TLS: Self = Self::new(18, "the zone is transferred over TLS alone");
    /// The zone is not transferred over this connection (RFC 9103 §7.2).
    pub const WEAK_TLS: Self = Self::new(18, "zones are transferred over TLS 1.3 with ALPN dot");
    /// No zone that is served here holds the name (RFC 8914 §4.21).
    pub const NOT_AUTHORITATIVE: Self = Self::new(20, "");
    /// The operation is not offered (RFC 8914 §4.22).
    pub const NOT_SUPPORTED: Self = Self::new(21, "");
    /// Zones are changed where they are made.
    pub const UPDATE_REFUSED: Self = Self::new(21, "dynamic update is not offered");
    /// The zone has expired, or its only version was rejected (RFC 8914 §4.25).
    pub const INVALID_DATA: Self = Self::new(24, "");
    /// Queries for this type have no answer (RFC 9824 §3.5).
    pub const INVALID_QUERY_TYPE: Self = Self::new(30, "");
    /// Too many transfers are under way. The registry has no code for that.
    pub const TOO_MANY_TRANSFERS: Self = Self::new(0, "too many transfers are under way, ask again later");
    /// More answers have to be made for this sender than it has a share for. No code of the registry says that.
    pub const OVER_BUDGET: Self = Self::new(0, "too many answers to be made, ask again later");

    const fn new(code: u16, text: &'static str) -> Self {
        Self { code, text }
    }
}
