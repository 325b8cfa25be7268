//! One query to a server, over UDP or TCP, until a deadline.
//!
//! Each query over UDP has its own socket, whose port the system chooses at random (RFC 5452 §9.2). The
//! kernel drops datagrams from other addresses; datagrams that do not answer the query are ignored.

use nonesuch_proto::Name;
use nonesuch_proto::message::{HEADER, Header, MessageError, flags};
use std::io::{self, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

/// Octets of the longest message.
const MESSAGE_MAX: usize = 65_535;

/// Why a query has no response.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryFault {
    /// The server did not respond in time.
    #[error("no response within {:.3} s", .0.as_secs_f64())]
    TimedOut(Duration),
    /// The server sent only datagrams that do not answer the query, this many.
    #[error("no response within {:.3} s, only {} datagrams that do not answer the query", .0.as_secs_f64(), .1)]
    OnlyOthers(Duration, u64),
    /// The system reports an error, for example that no process listens.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The server closed the connection before the end of a response.
    #[error("the server closed the connection after {0} octets")]
    Closed(usize),
    /// The response cannot be parsed.
    #[error("malformed response: {0}")]
    Malformed(#[from] MessageError),
    /// A message over TCP does not answer the query.
    #[error("the response over TCP has another ID or question")]
    OtherQuestion,
    /// The query is longer than a message can be.
    #[error("the query has more than 65,535 octets")]
    TooLong,
    /// The system has no random octets.
    #[error("no random octets: {0}")]
    Random(getrandom::Error),
}

impl QueryFault {
    /// Whether the server was silent up to the time limit.
    #[must_use]
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::TimedOut(_) | Self::OnlyOthers(..) => true,
            Self::Io(error) => is_timeout(error),
            _ => false,
        }
    }
}

/// A random message ID (RFC 5452 §9.2).
pub(crate) fn random_id() -> Result<u16, QueryFault> {
    let mut id = [0; 2];
    getrandom::fill(&mut id).map_err(QueryFault::Random)?;
    Ok(u16::from_be_bytes(id))
}

/// Sends a query over UDP and waits for its response, at most until `deadline`.
pub(crate) fn over_udp(server: SocketAddr, query: &[u8], deadline: Instant) -> Result<Vec<u8>, QueryFault> {
    let started_at = Instant::now();
    let any: IpAddr =
        if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(server)?;
    socket.send(query)?;
    let mut buffer = vec![0; MESSAGE_MAX];
    let mut others = 0;
    loop {
        let left = match until(deadline, started_at) {
            Err(QueryFault::TimedOut(limit)) if others > 0 => {
                return Err(QueryFault::OnlyOthers(limit, others));
            }
            left => left?,
        };
        socket.set_read_timeout(Some(left))?;
        match socket.recv(&mut buffer) {
            Ok(length) if is_response(query, &buffer[..length]) => {
                buffer.truncate(length);
                return Ok(buffer);
            }
            Ok(_) => others += 1,
            Err(error) if is_timeout(&error) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// Sends a query over a new TCP connection and waits for its response, at most until `deadline`.
pub(crate) fn over_tcp(server: SocketAddr, query: &[u8], deadline: Instant) -> Result<Vec<u8>, QueryFault> {
    let message = TcpClient::connect(server, deadline).and_then(|mut client| {
        client.send(query, deadline)?;
        client.receive(deadline)
    })?;
    if is_response(query, &message) { Ok(message) } else { Err(QueryFault::OtherQuestion) }
}

/// A TCP connection for several messages.
#[derive(Debug)]
pub(crate) struct TcpClient {
    stream: TcpStream,
    started_at: Instant,
}

impl TcpClient {
    /// Connects, at most until `deadline`.
    pub(crate) fn connect(server: SocketAddr, deadline: Instant) -> Result<Self, QueryFault> {
        let started_at = Instant::now();
        let stream = TcpStream::connect_timeout(&server, until(deadline, started_at)?)?;
        Ok(Self { stream, started_at })
    }

    /// Sends a message with its length (RFC 1035 §4.2.2) in one segment (RFC 7766 §8).
    pub(crate) fn send(&mut self, message: &[u8], deadline: Instant) -> Result<(), QueryFault> {
        let length = u16::try_from(message.len()).map_err(|_| QueryFault::TooLong)?;
        self.stream.set_write_timeout(Some(until(deadline, self.started_at)?))?;
        self.stream.write_all(&[&length.to_be_bytes()[..], message].concat())?;
        Ok(())
    }

    /// Waits for a message.
    pub(crate) fn receive(&mut self, deadline: Instant) -> Result<Vec<u8>, QueryFault> {
        let mut length = [0; 2];
        self.read_exact(&mut length, deadline)?;
        let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
        self.read_exact(&mut message, deadline)?;
        Ok(message)
    }

    /// Fills `buffer`. A server that sends single octets does not extend the deadline.
    fn read_exact(&mut self, buffer: &mut [u8], deadline: Instant) -> Result<(), QueryFault> {
        let mut filled = 0;
        while filled < buffer.len() {
            self.stream.set_read_timeout(Some(until(deadline, self.started_at)?))?;
            match self.stream.read(&mut buffer[filled..]) {
                Ok(0) => return Err(QueryFault::Closed(filled)),
                Ok(count) => filled += count,
                Err(error) if is_timeout(&error) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// The time until the deadline, above zero. An error states the time since `started_at`.
fn until(deadline: Instant, started_at: Instant) -> Result<Duration, QueryFault> {
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        let waited = deadline.saturating_duration_since(started_at);
        return Err(QueryFault::TimedOut(waited));
    }
    Ok(left)
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Whether `message` answers `query`: it is a response with the same ID, opcode and question. A
/// response with an error may omit the question.
pub(crate) fn is_response(query: &[u8], message: &[u8]) -> bool {
    let (Some(sent), Some(received)) = (Header::read(query), Header::read(message)) else { return false };
    if received.id != sent.id || received.flags & flags::QR == 0 || received.opcode() != sent.opcode() {
        return false;
    }
    match received.counts[0] {
        0 => received.rcode().0 != 0 || sent.counts[0] == 0,
        1 => question(query).is_some_and(|sent| question(message).is_some_and(|received| received == sent)),
        _ => false,
    }
}

fn question(message: &[u8]) -> Option<(Name, [u8; 4])> {
    let (name, end) = Name::from_message(message, HEADER).ok()?;
    Some((name, message.get(end..end + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_proto::Rtype;
    use nonesuch_proto::message::push_query;

    #[test]
    fn a_response_has_the_id_and_the_question_of_its_query() {
        let mut query = Vec::new();
        push_query(&"a.example".parse().expect("a name"), Rtype::A, 0x1234, 0, &mut query);
        let answer = |change: &dyn Fn(&mut Vec<u8>)| {
            let mut octets = query.clone();
            octets[2] |= 0x80;
            change(&mut octets);
            is_response(&query, &octets)
        };
        assert!(answer(&|_| {}));
        assert!(answer(&|octets| octets[13] = b'A'));
        assert!(!answer(&|octets| octets[0] ^= 1));
        assert!(!answer(&|octets| octets[13] = b'b'));
        assert!(!answer(&|octets| octets[2] &= 0x7f));
        assert!(!answer(&|octets| octets[5] = 0));
        assert!(!answer(&|octets| octets.truncate(11)));
    }
}
