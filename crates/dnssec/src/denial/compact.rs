//! Compact denial of existence (RFC 9824): one NSEC record made when asked, which says that the name exists without the
//! type. A name that does not exist is told by the type NXNAME.

pub(in crate::denial) mod prove;
