//! Compact denial of existence (RFC 9824): the server generates one NSEC record, which states that
//! the name exists without the type. The type NXNAME in its bit map marks a name that does not
//! exist.

pub(in crate::denial) mod prove;
