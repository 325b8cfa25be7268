//! NSEC (RFC 4034 §4, RFC 4035 §2.3): each record contains the next name in canonical order.

pub(crate) mod chain;
pub(crate) mod check;
pub(in crate::denial) mod prove;
pub(crate) mod validate;
