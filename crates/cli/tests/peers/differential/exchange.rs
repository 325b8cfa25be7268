//! Sends many queries to a server: over UDP with several outstanding queries, over TCP if the
//! response is truncated.

use nonesuch_proto::edns::{self, push_opt};
use nonesuch_proto::message::{self, Message, Rcode, Section, flags};
use nonesuch_proto::{Name, Rtype};
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

/// Number of queries that are sent before responses are awaited, small enough for every socket
/// buffer.
const OUTSTANDING: usize = 64;
/// Time limit for outstanding responses; then the remaining queries are repeated.
const WAIT: Duration = Duration::from_millis(500);
/// Maximum number of attempts for one batch.
const ATTEMPTS: usize = 10;
/// Advertised UDP payload size.
const PAYLOAD: u16 = 4096;

/// A question.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Question {
    pub(crate) name: Name,
    pub(crate) rtype: Rtype,
    pub(crate) dnssec_ok: bool,
}

impl Question {
    fn query(&self, id: u16) -> Vec<u8> {
        let mut query = Vec::with_capacity(300);
        message::push_query(&self.name, self.rtype, id, 0, &mut query);
        query[11] = 1;
        push_opt(PAYLOAD, 0, if self.dnssec_ok { edns::DO } else { 0 }, &mut query);
        query
    }
}

/// A record in a section. The letter case of owners is preserved.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ObservedRecord {
    pub(crate) owner: Vec<u8>,
    pub(crate) rtype: Rtype,
    pub(crate) ttl: u32,
    pub(crate) rdata: Vec<u8>,
}

impl ObservedRecord {
    /// The owner, compared without regard to letter case.
    pub(crate) fn owner(&self) -> Name {
        nonesuch_proto::NameRef::from_wire_unchecked(&self.owner).to_canonical()
    }

    /// The record with all its names in lower case.
    pub(crate) fn to_lower(&self) -> Self {
        let mut rdata = self.rdata.clone();
        for name in nonesuch_proto::rdata::names(self.rtype, &self.rdata) {
            rdata[name.range].make_ascii_lowercase();
        }
        Self { owner: self.owner.to_ascii_lowercase(), rdata, ..*self }
    }

    /// For RRSIG, the type covered; otherwise, the type.
    pub(crate) fn covered(&self) -> Rtype {
        match self.rdata.as_slice() {
            [a, b, ..] if self.rtype == Rtype::RRSIG => Rtype(u16::from_be_bytes([*a, *b])),
            _ => self.rtype,
        }
    }
}

/// The compared parts of a response.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) rcode: Rcode,
    pub(crate) authoritative: bool,
    pub(crate) answer: BTreeSet<ObservedRecord>,
    pub(crate) authority: BTreeSet<ObservedRecord>,
    /// Whether a section contains a record twice (RFC 2181 §5).
    pub(crate) repeats: bool,
}

impl Reply {
    fn from_message(message: &Message, question: &Question) -> Self {
        let asked = message.questions.first().expect("the question is repeated");
        assert_eq!(asked.name.wire(), question.name.wire(), "the question is repeated as it was asked");
        assert_eq!(asked.rtype, question.rtype);
        let mut repeats = false;
        let mut read = |section| {
            let mut set = BTreeSet::new();
            for record in message.section(section) {
                let (owner, rdata) = (record.owner.wire().to_vec(), record.rdata.clone());
                repeats |= !set.insert(ObservedRecord { owner, rtype: record.rtype, ttl: record.ttl, rdata });
            }
            set
        };
        let (answer, authority) = (read(Section::Answer), read(Section::Authority));
        let authoritative = message.header.flags & flags::AA != 0;
        Self { rcode: message.rcode(), authoritative, answer, authority, repeats }
    }
}

fn connect(server: SocketAddr, wait: Duration) -> std::io::Result<UdpSocket> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(server)?;
    socket.set_read_timeout(Some(wait))?;
    Ok(socket)
}

/// The replies to `questions`, in their order.
pub(crate) fn ask_all(server: SocketAddr, questions: &[Question]) -> Vec<Reply> {
    let socket = connect(server, WAIT).expect("a socket");
    let mut replies = Vec::with_capacity(questions.len());
    for batch in questions.chunks(OUTSTANDING) {
        let over_udp = ask_batch(&socket, batch);
        for (question, message) in batch.iter().zip(over_udp) {
            let message =
                if message.header.flags & flags::TC != 0 { ask_over_tcp(server, question) } else { message };
            replies.push(Reply::from_message(&message, question));
        }
    }
    replies
}

fn ask_batch(socket: &UdpSocket, batch: &[Question]) -> Vec<Message> {
    let mut messages: Vec<Option<Message>> = vec![None; batch.len()];
    let mut buffer = [0; 65_535];
    for _ in 0..ATTEMPTS {
        let open: Vec<usize> = (0..batch.len()).filter(|&index| messages[index].is_none()).collect();
        for &index in &open {
            socket.send(&batch[index].query(index as u16)).expect("sent");
        }
        let mut missing = open.len();
        while missing > 0 {
            let length = match socket.recv(&mut buffer) {
                Ok(length) => length,
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => break,
                Err(error) => panic!("the server is gone: {error}"),
            };
            let message = Message::parse(&buffer[..length]).expect("a well-formed response");
            let index = usize::from(message.header.id);
            // A late response to a repeated query of an earlier batch has another question.
            let fits = message.questions.first().is_some_and(|question| {
                let is_same = |asked: &Question| asked.name == question.name && asked.rtype == question.rtype;
                batch.get(index).is_some_and(is_same)
            });
            if fits && messages[index].replace(message).is_none() {
                missing -= 1;
            }
        }
    }
    let answered = |(question, message): (&Question, Option<Message>)| {
        message.unwrap_or_else(|| panic!("no answer to {question:?}"))
    };
    batch.iter().zip(messages).map(answered).collect()
}

/// Uses a separate connection, because some servers close a connection after a number of queries,
/// or when it is idle.
fn ask_over_tcp(server: SocketAddr, question: &Question) -> Message {
    let mut stream = TcpStream::connect(server).expect("a connection");
    let query = question.query(0);
    let mut framed = (query.len() as u16).to_be_bytes().to_vec();
    framed.extend_from_slice(&query);
    stream.write_all(&framed).expect("sent");
    let mut length = [0; 2];
    stream.read_exact(&mut length).expect("a response");
    let mut response = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut response).expect("a whole response");
    Message::parse(&response).expect("a well-formed response")
}
