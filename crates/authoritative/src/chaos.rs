//! What a server says of itself in class CH (RFC 4892): which of many it is, and which version runs.

use crate::answer::{Request, error_response};
use crate::response::Response;
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Class, Rtype};
use nonesuch_server::extended_errors::ExtendedError;

/// The question name, as the first record's owner (RFC 1035 §4.1.4).
const OWNER: [u8; 2] = [0xc0, 12];
/// Names that ask which server it is: the standard's, and the one that was there before it (RFC 4892 §2).
const IDENTITY: [&[u8]; 2] = [b"\x02id\x06server\0", b"\x08hostname\x04bind\0"];
/// Names that ask for the version.
const VERSION: [&[u8]; 2] = [b"\x07version\x06server\0", b"\x07version\x04bind\0"];

/// The answers; each is refused where it is not there. At most 255 octets each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chaos {
    /// Which server it is: `id.server.` and `hostname.bind.`
    pub identity: Option<Vec<u8>>,
    /// Which version runs: `version.server.` and `version.bind.`
    pub version: Option<Vec<u8>>,
}

impl Chaos {
    fn find(&self, name: &[u8]) -> Option<&[u8]> {
        let found = match name {
            _ if IDENTITY.contains(&name) => &self.identity,
            _ if VERSION.contains(&name) => &self.version,
            _ => &None,
        };
        found.as_deref().filter(|text| text.len() <= usize::from(u8::MAX))
    }

    /// Answers a query of class CH; `true` where there was something to say. All else is refused.
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
            out.extend_from_slice(&OWNER);
            out.extend_from_slice(&Rtype::TXT.0.to_be_bytes());
            out.extend_from_slice(&Class::CH.0.to_be_bytes());
            // RFC 4892 §2: no cache is to keep it, since the next query may reach another server.
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
