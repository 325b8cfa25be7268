//! The extended errors that an authoritative server sends (RFC 8914 §4).
//!
//! Most codes are for resolvers: validation failures and unreachable servers. This module has the
//! remaining codes. An error has a text if the code alone does not tell the client what to do.

/// An extended error: info code and text (RFC 8914).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtendedErrorRef<'t> {
    /// The code in the IANA registry.
    pub code: u16,
    /// Text for people; empty if the code is sufficient.
    pub text: &'t str,
}

/// An extended error with a constant text.
pub type ExtendedError = ExtendedErrorRef<'static>;

impl ExtendedError {
    /// The zone is loading, or waits for its first transfer (RFC 8914 §4.15).
    pub const NOT_READY: Self = Self::new(14, "");
    /// The client is not permitted (RFC 8914 §4.19).
    pub const PROHIBITED: Self = Self::new(18, "");
    /// The client may transfer the zone only over TLS.
    pub const NEEDS_TLS: Self = Self::new(18, "the zone is transferred only over TLS");
    /// The TLS connection does not meet the requirements for transfers (RFC 9103 §7.2).
    pub const WEAK_TLS: Self = Self::new(18, "transfers require TLS 1.3 with ALPN dot");
    /// The server serves no zone that contains the name (RFC 8914 §4.21).
    pub const NOT_AUTHORITATIVE: Self = Self::new(20, "");
    /// The server does not support the operation (RFC 8914 §4.22).
    pub const NOT_SUPPORTED: Self = Self::new(21, "");
    /// The server does not accept dynamic updates.
    pub const UPDATE_REFUSED: Self = Self::new(21, "dynamic update is not supported");
    /// The zone has expired, or its only version was rejected (RFC 8914 §4.25).
    pub const INVALID_DATA: Self = Self::new(24, "");
    /// The server does not answer queries for this type (RFC 9824 §3.5).
    pub const INVALID_QUERY_TYPE: Self = Self::new(30, "");
    /// Too many transfers are active. The registry has no code for this.
    pub const TOO_MANY_TRANSFERS: Self = Self::new(0, "too many transfers in progress, try again later");
    /// The client exceeds its part of the online share. The registry has no code for this.
    pub const OVER_BUDGET: Self = Self::new(0, "too much online signing, try again later");

    const fn new(code: u16, text: &'static str) -> Self {
        Self { code, text }
    }
}
