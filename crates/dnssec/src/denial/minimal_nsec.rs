//! Minimally covering NSEC (RFC 4470): the server generates records that deny a name and as few
//! other names as possible, so they do not enumerate the zone. RFC 4471 defines the predecessor and
//! the successor of a name.

pub(in crate::denial) mod prove;
