//! Asks a resolver many questions, some of which take it long to answer.

use nonesuch_conformance::simulation::TreeQuestion;
use nonesuch_proto::message::{Message, Rcode, Section, flags, push_query};
use nonesuch_proto::{Name, Rtype};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

/// Maximum number of queries without a reply. A resolver gives up queries for others beyond some
/// number.
const OUTSTANDING: usize = 16;
/// Time limit of a reply.
const LIMIT: Duration = Duration::from_secs(12);
/// Time between two looks at the time limits.
const TICK: Duration = Duration::from_millis(500);

/// The compared parts of a reply.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Reply {
    /// SERVFAIL without a reply in time.
    pub(crate) rcode: Rcode,
    /// Owner, type and RDATA, in lower case.
    pub(crate) answer: BTreeSet<(Name, Rtype, Vec<u8>)>,
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let types: Vec<String> =
            self.answer.iter().map(|(owner, rtype, _)| format!("{owner} {rtype}")).collect();
        write!(f, "{} {}", self.rcode, types.join(", "))
    }
}

impl Reply {
    const NONE: Self = Self { rcode: Rcode::SERVFAIL, answer: BTreeSet::new() };

    fn new(message: &Message) -> Self {
        let record = |record: &nonesuch_proto::message::Record| {
            (record.owner.view().to_canonical(), record.rtype, record.rdata.to_ascii_lowercase())
        };
        Self { rcode: message.rcode(), answer: message.section(Section::Answer).map(record).collect() }
    }
}

/// The replies to the questions, in their order.
pub(crate) fn ask_all(server: SocketAddr, questions: &[TreeQuestion]) -> Vec<Reply> {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.connect(server).expect("connected");
    socket.set_read_timeout(Some(TICK)).expect("a limit");
    let mut replies = vec![Reply::NONE; questions.len()];
    let mut waiting: BTreeMap<usize, Instant> = BTreeMap::new();
    let (mut next, mut buffer) = (0, [0; 4096]);
    loop {
        while waiting.len() < OUTSTANDING && next < questions.len() {
            let TreeQuestion { name, rtype, .. } = &questions[next];
            let mut query = Vec::new();
            push_query(name, *rtype, u16::try_from(next).expect("few questions"), flags::RD, &mut query);
            socket.send(&query).expect("sent");
            waiting.insert(next, Instant::now());
            next += 1;
        }
        if waiting.is_empty() {
            return replies;
        }
        // A failed reception is the end of a tick.
        if let Ok(length) = socket.recv(&mut buffer) {
            let message = Message::parse(&buffer[..length]).expect("a message");
            if waiting.remove(&usize::from(message.header.id)).is_some() {
                replies[usize::from(message.header.id)] = Reply::new(&message);
            }
        }
        waiting.retain(|_, since| since.elapsed() < LIMIT);
    }
}
