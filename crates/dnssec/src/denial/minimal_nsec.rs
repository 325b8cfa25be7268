//! Minimally covering NSEC (RFC 4470): records made when asked, which deny a name and as little else as can be, so that
//! nobody walks the zone by them. The names beside a name are derived by RFC 4471.

pub(in crate::denial) mod prove;
