//! Answers about the server in class CH: its identity and its version (RFC 4892).

use crate::answer::{Request, error_response};
use crate::response::Response;
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Class, Rtype};
use nonesuch_server::extended_errors::ExtendedError;

pub use nonesuch_server::chaos::Chaos;

/// A pointer to the query name, as owner of the first record (RFC 1035 §4.1.4).
const QUERY_NAME_POINTER: [u8; 2] = [0xc0, 12];

/// Answers a query of class CH. Returns `false` if the answer is REFUSED, because the type is
/// neither TXT nor ANY or the value is not set.
#[cold]
pub(crate) fn answer(chaos: &Chaos, request: &Request<'_>, out: &mut Vec<u8>) -> bool {
    let Some(text) = chaos.find(request.name, request.query.qtype) else {
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

#[cfg(test)]
mod tests;
