//! Complete and incremental transfers of a zone from a server, as a secondary requests them.

use nonesuch_proto::Name;
use nonesuch_secondary::inbound::{
    InboundRequest, InboundTransfer, TransferBounds, TransferContent, push_transfer_query,
};
use nonesuch_zone::{Contents, write::write_zone};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Time limit for a message.
const LIMIT: Duration = Duration::from_secs(20);

/// The complete zone from a server that permits transfers to everyone.
#[track_caller]
pub fn transferred(server: SocketAddr, zone: &str) -> Contents {
    try_transferred(server, zone).unwrap_or_else(|error| panic!("{server} {zone}: {error}"))
}

/// Like [`transferred`], from a server that may not have the zone yet.
pub fn try_transferred(server: SocketAddr, zone: &str) -> io::Result<Contents> {
    match try_transfer(server, zone, InboundRequest::Axfr)? {
        TransferContent::Axfr { contents, .. } => Ok(contents),
        other => panic!("{other:?}"),
    }
}

/// The response of a server to a transfer request.
#[track_caller]
pub fn transfer(server: SocketAddr, zone: &str, asked: InboundRequest) -> TransferContent {
    try_transfer(server, zone, asked).unwrap_or_else(|error| panic!("{server} {zone}: {error}"))
}

fn try_transfer(server: SocketAddr, zone: &str, asked: InboundRequest) -> io::Result<TransferContent> {
    let apex: Name = zone.parse().expect("a name");
    let mut question = vec![0; 2];
    let soa = match asked {
        InboundRequest::Axfr => Vec::new(),
        // Two root names, and zeros for all numbers except the serial (RFC 1995 section 3).
        InboundRequest::Ixfr { serial } => [&[0, 0][..], &serial.to_be_bytes(), &[0; 16]].concat(),
    };
    push_transfer_query(&apex, asked, &soa, 7, &mut question);
    let length = (question.len() - 2) as u16;
    question[..2].copy_from_slice(&length.to_be_bytes());
    let mut stream = TcpStream::connect(server)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.write_all(&question)?;
    let mut inbound = InboundTransfer::new(apex, 7, asked, TransferBounds::default());
    loop {
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut message)?;
        if inbound.push(&message).map_err(io::Error::other)? {
            return inbound.finish().map_err(io::Error::other);
        }
    }
}

/// A zone as text in lower case, because Knot DNS does not preserve letter case.
pub fn zone_text(contents: &Contents) -> String {
    let mut octets = Vec::new();
    write_zone(contents, &mut octets).expect("a vector takes all");
    String::from_utf8(octets).expect("text").to_ascii_lowercase()
}
