//! A primary of one zone in this process. It answers SOA queries and transfers with TSIG, over UDP
//! and TCP.

use super::peers::KEY;
use nonesuch_authoritative::transfer::outbound::{
    OutboundRequest, OutgoingTransfers, TransferAnswer, TransferStatus, ZoneToSend, begin,
};
use nonesuch_proto::message::{Header, flags};
use nonesuch_proto::{Rtype, edns};
use nonesuch_server::acl::AccessList;
use nonesuch_server::tsig::{self, TsigKey, TsigKeys};
use nonesuch_server::{query::Query, query::QueryFault};
use nonesuch_zone::{ChangeSet, Contents, Journal};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock behind 1970").as_secs()
}

/// A running primary. Its threads end with the process.
pub struct Primary {
    pub address: SocketAddr,
    inner: Arc<Inner>,
}

struct Inner {
    contents: Mutex<Arc<Contents>>,
    journal: Journal,
    keys: TsigKeys,
    access: AccessList,
    outgoing: Arc<OutgoingTransfers>,
    /// Transfers that ended, and TSIG errors.
    ended: Arc<Mutex<Vec<TransferStatus>>>,
    refused: Mutex<Vec<tsig::TsigError>>,
    is_stopped: AtomicBool,
}

impl Primary {
    /// Serves `contents` to clients that sign with the key of this algorithm and secret.
    pub fn start(contents: Contents, directory: &Path, algorithm: &str, secret: &str) -> Self {
        let (journal, _) =
            Journal::open(&directory.join("ours.journal"), contents.apex(), 64 << 20).expect("a journal");
        let key = TsigKey::from_argument(&format!("{algorithm}:{KEY}:{secret}")).expect("a key");
        let ended: Arc<Mutex<Vec<TransferStatus>>> = Arc::default();
        let list = Arc::clone(&ended);
        let observe = move |status: &TransferStatus| list.lock().expect("whole").push(status.clone());
        let inner = Arc::new(Inner {
            contents: Mutex::new(Arc::new(contents)),
            journal,
            keys: TsigKeys::new([key]).expect("one key"),
            access: AccessList::new(vec![format!("127.0.0.1 key:{KEY}").parse().expect("an entry")]),
            outgoing: Arc::new(OutgoingTransfers::new(10, now).with_observer(observe)),
            ended,
            refused: Mutex::default(),
            is_stopped: AtomicBool::new(false),
        });
        // A port that is free for UDP may be in use for TCP.
        let (datagrams, listener) = (0..20)
            .find_map(|_| {
                let datagrams = UdpSocket::bind("127.0.0.1:0").ok()?;
                let listener = TcpListener::bind(datagrams.local_addr().ok()?).ok()?;
                Some((datagrams, listener))
            })
            .expect("a free port");
        let address = datagrams.local_addr().expect("bound");
        let (for_udp, for_tcp) = (Arc::clone(&inner), Arc::clone(&inner));
        thread::spawn(move || for_udp.serve_datagrams(&datagrams));
        thread::spawn(move || for_tcp.serve_connections(&listener));
        Self { address, inner }
    }

    /// Replaces the zone with `contents`, and adds the change to the journal.
    pub fn publish(&self, contents: Contents) {
        let mut current = self.inner.contents.lock().expect("whole");
        self.inner.journal.append(&ChangeSet::between(&current, &contents, |_| true)).expect("appended");
        *current = Arc::new(contents);
    }

    pub fn contents(&self) -> Arc<Contents> {
        Arc::clone(&self.inner.contents.lock().expect("whole"))
    }

    pub fn ended(&self) -> Vec<TransferStatus> {
        self.inner.ended.lock().expect("whole").clone()
    }

    pub fn refused(&self) -> Vec<tsig::TsigError> {
        self.inner.refused.lock().expect("whole").clone()
    }
}

impl Drop for Primary {
    fn drop(&mut self) {
        self.inner.is_stopped.store(true, Relaxed);
    }
}

impl Inner {
    fn serve_datagrams(&self, socket: &UdpSocket) {
        socket.set_read_timeout(Some(Duration::from_millis(200))).expect("set");
        let mut buffer = vec![0; 65_535];
        while !self.is_stopped.load(Relaxed) {
            if let Ok((length, client)) = socket.recv_from(&mut buffer) {
                self.answer(&buffer[..length], true, client, &mut |answer| {
                    let _ = socket.send_to(answer, client);
                });
            }
        }
    }

    fn serve_connections(self: &Arc<Self>, listener: &TcpListener) {
        for stream in listener.incoming() {
            if self.is_stopped.load(Relaxed) {
                return;
            }
            let Ok(stream) = stream else { continue };
            let inner = Arc::clone(self);
            thread::spawn(move || inner.serve_connection(stream));
        }
    }

    fn serve_connection(&self, mut stream: TcpStream) {
        let Ok(client) = stream.peer_addr() else { return };
        let mut length = [0; 2];
        while stream.read_exact(&mut length).is_ok() {
            let mut message = vec![0; usize::from(u16::from_be_bytes(length))];
            if stream.read_exact(&mut message).is_err() {
                return;
            }
            self.answer(&message, false, client, &mut |answer| {
                let whole = [&(answer.len() as u16).to_be_bytes(), answer].concat();
                let _ = stream.write_all(&whole);
            });
        }
    }

    /// Answers a message with one or several messages.
    fn answer(&self, message: &[u8], is_datagram: bool, client: SocketAddr, send: &mut dyn FnMut(&[u8])) {
        let mut out = Vec::new();
        let query = match Query::parse(message) {
            Ok(query) => query,
            Err(QueryFault::Ignore) => return,
            Err(QueryFault::Opcode(header) | QueryFault::Malformed(header)) => {
                send(&Header { flags: header.flags | flags::QR | 4, counts: [0; 4], ..header }.to_octets());
                return;
            }
        };
        let mut opt = Vec::new();
        if query.opt.is_some() {
            edns::push_opt(1232, 0, 0, &mut opt);
        }
        let verified = match self.keys.verify(message, now()) {
            Ok(verified) => verified,
            Err(refused) => {
                self.refused.lock().expect("whole").push(refused.error());
                refused.answer(message, &opt, now(), &mut out);
                return send(&out);
            }
        };
        let contents = Arc::clone(&self.contents.lock().expect("whole"));
        if matches!(query.qtype, Rtype::AXFR | Rtype::IXFR) {
            let tsig = verified.as_ref();
            let request = OutboundRequest {
                message,
                query: &query,
                is_datagram,
                tls: None,
                client,
                tsig,
                opt: &opt,
                max_datagram_octets: 1232,
            };
            let zone = ZoneToSend {
                contents: Some(&contents),
                journal: Some(&self.journal),
                transfer_access: &self.access,
                is_signed_online: false,
            };
            match begin(&request, Some(&zone), &self.outgoing, &mut out) {
                TransferAnswer::Single => return send(&out),
                TransferAnswer::Stream(mut sending) => {
                    while sending.next(&mut out).expect("a whole transfer") {
                        send(&out);
                    }
                    return;
                }
                TransferAnswer::Truncate => panic!("an SOA record that fits no datagram"),
                TransferAnswer::Refuse(refusal) => {
                    push_answer(&query, &[], refusal.rcode().0, &opt, &mut out)
                }
            }
        } else {
            let soa = if query.qtype == Rtype::SOA { soa_record(&contents) } else { Vec::new() };
            push_answer(&query, &soa, 0, &opt, &mut out);
        }
        if let Some(verified) = verified {
            verified.signer().sign(&mut out, now());
        }
        send(&out);
    }
}

/// Returns the SOA record; its owner is a pointer to the question.
fn soa_record(contents: &Contents) -> Vec<u8> {
    let rrset = contents.apex_rrset(Rtype::SOA).expect("an SOA record");
    let rdata = rrset.rdatas().next().expect("a record");
    let mut record = vec![0xc0, 12, 0, 6, 0, 1];
    record.extend_from_slice(&rrset.ttl().to_be_bytes());
    record.extend_from_slice(&(rdata.len() as u16).to_be_bytes());
    record.extend_from_slice(rdata);
    record
}

fn push_answer(query: &Query<'_>, record: &[u8], rcode: u16, opt: &[u8], out: &mut Vec<u8>) {
    let counts = [1, u16::from(!record.is_empty()), 0, u16::from(!opt.is_empty())];
    let word = flags::QR | flags::AA | rcode;
    out.extend_from_slice(&Header { id: query.header.id, flags: word, counts }.to_octets());
    [query.question, record, opt].iter().for_each(|part| out.extend_from_slice(part));
}
