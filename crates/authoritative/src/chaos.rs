//! Answers about the server in class CH: its identity and its version (RFC 4892).

use crate::answer::{Request, error_response};
use crate::response::Response;
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Class, Rtype};
use nonesuch_server::extended_errors::ExtendedError;

/// A pointer to the query name, as owner of the first record (RFC 1035 §4.1.4).
const QUERY_NAME_POINTER: [u8; 2] = [0xc0, 12];
/// Names that query the identity: the standard name, and the older name (RFC 4892 §2).
const IDENTITY_NAMES: [&[u8]; 2] = [b"\x02id\x06server\0", b"\x08hostname\x04bind\0"];
/// Names that query the version.
const VERSION_NAMES: [&[u8]; 2] = [b"\x07version\x06server\0", b"\x07version\x04bind\0"];

/// Identity and version of the server, at most 255 octets each. If a value is not set, the server
/// refuses queries for it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chaos {
    /// Identity of the server: `id.server.` and `hostname.bind.`
    pub identity: Option<Vec<u8>>,
    /// Version of the server: `version.server.` and `version.bind.`
    pub version: Option<Vec<u8>>,
}

impl Chaos {
    /// Returns the text for a query name; `None` for another name, or if the value is not set.
    fn find(&self, name: &[u8]) -> Option<&[u8]> {
        let found = match name {
            _ if IDENTITY_NAMES.contains(&name) => &self.identity,
            _ if VERSION_NAMES.contains(&name) => &self.version,
            _ => &None,
        };
        found.as_deref().filter(|text| text.len() <= usize::from(u8::MAX))
    }

    /// Answers a query of class CH. Returns `false` if the answer is REFUSED, because the type is
    /// neither TXT nor ANY or the value is not set.
    #[cold]
    pub(crate) fn answer(&self, request: &Request<'_>, out: &mut Vec<u8>) -> bool {
        let is_text = matches!(request.query.qtype, Rtype::TXT | Rtype::ANY);
        let Some(text) = self.find(request.name.wire()).filter(|_| is_text) else {
            error_response(request, Rcode::REFUSED, Some(ExtendedError::NOT_AUTHORITATIVE), false, out);
            return false;
        };
        let mut response = Response::begin(request.query, request.transport, request.trailer, out);
        response.authoritative = true;
        response.add_record(|out| {
            out.extend_from_slice(&QUERY_NAME_POINTER);
            out.extend_from_slice(&Rtype::TXT.0.to_be_bytes());
            out.extend_from_slice(&Class::CH.0.to_be_bytes());
            // RFC 4892 §2: TTL 0, because the next query of a resolver may reach another server.
            out.extend_from_slice(&0u32.to_be_bytes());
            out.extend_from_slice(&(text.len() as u16 + 1).to_be_bytes());
            out.push(text.len() as u8);
            out.extend_from_slice(text);
        });
        response.finish(request.query, false);
        true
    }
}

#[cfg(test)]
mod tests;
