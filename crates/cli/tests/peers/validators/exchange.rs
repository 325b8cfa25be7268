//! Asks a validator many questions, over UDP, and over TCP after a truncated reply.

use super::cases::Case;
use nonesuch_proto::edns;
use nonesuch_proto::message::{HEADER, Header, Message, Rcode, flags, push_query};
use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// Maximum number of queries without a reply. A resolver gives up queries for others beyond some
/// number.
const OUTSTANDING: usize = 32;
/// Time limit of a reply: more than `nonesuch resolve` and the others take before they give up.
const LIMIT: Duration = Duration::from_secs(12);
/// Time between two looks at the time limits.
const TICK: Duration = Duration::from_millis(200);
/// Maximum size of replies, in octets.
const PAYLOAD: u16 = 4096;

/// A reply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    pub(crate) rcode: Rcode,
    /// The AD flag.
    pub(crate) is_authenticated: bool,
    /// The code of the extended error (RFC 8914).
    pub(crate) extended_error: Option<u16>,
}

fn query(case: &Case, id: u16) -> Vec<u8> {
    let mut query = Vec::new();
    push_query(&case.name, case.rtype, id, flags::RD, &mut query);
    edns::push_opt(PAYLOAD, 0, edns::DO, &mut query);
    query[HEADER - 1] = 1;
    query
}

fn read(message: &[u8]) -> Option<Reply> {
    let message = Message::parse(message).ok()?;
    let (rcode, flags) = (message.header.rcode(), message.header.flags);
    let extended_error = message.extended_error().map(|(code, _)| code);
    Some(Reply { rcode, is_authenticated: flags & flags::AD != 0, extended_error })
}

/// The reply over TCP.
fn ask_over_tcp(server: SocketAddr, query: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect_timeout(&server, LIMIT)?;
    stream.set_read_timeout(Some(LIMIT))?;
    let length = u16::try_from(query.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), query].concat())?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut message)?;
    Ok(message)
}

/// The replies to the questions of `order`, which are indexes in `cases`; in the order of `cases`. `None`
/// without a reply in time.
pub(crate) fn ask_all(server: SocketAddr, cases: &[Case], order: &[usize]) -> Vec<Option<Reply>> {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.connect(server).expect("connected");
    socket.set_read_timeout(Some(TICK)).expect("a limit");
    let mut replies = vec![None; cases.len()];
    let mut waiting: BTreeMap<usize, Instant> = BTreeMap::new();
    let (mut next, mut buffer) = (order.iter(), [0; PAYLOAD as usize]);
    loop {
        while waiting.len() < OUTSTANDING
            && let Some(index) = next.next()
        {
            let id = u16::try_from(*index).expect("few questions");
            socket.send(&query(&cases[*index], id)).expect("sent");
            waiting.insert(*index, Instant::now());
        }
        if waiting.is_empty() {
            return replies;
        }
        // A failed reception is the end of a tick.
        if let Ok(length) = socket.recv(&mut buffer) {
            let header = Header::read(&buffer[..length]).expect("a message");
            let index = usize::from(header.id);
            if waiting.remove(&index).is_some() {
                let is_truncated = header.flags & flags::TC != 0;
                replies[index] = if is_truncated {
                    ask_over_tcp(server, &query(&cases[index], header.id)).ok().and_then(|reply| read(&reply))
                } else {
                    read(&buffer[..length])
                };
            }
        }
        waiting.retain(|_, since| since.elapsed() < LIMIT);
    }
}
