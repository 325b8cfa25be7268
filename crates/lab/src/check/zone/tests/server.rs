//! Servers of a local tree on loopback addresses, whose responses a test can change.

use crate::tree::{Description, Tree, ZoneDescription};
use nonesuch_proto::message::{Header, Message, Rcode, Record, Section, flags};
use nonesuch_proto::{Class, Name, Rtype, edns};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::sync::Arc;
use std::thread;

pub(super) const NOW: u32 = 1_767_225_600;

/// Last octets of the addresses of the servers.
pub(super) const ROOT: u8 = 1;
pub(super) const PARENT: [u8; 2] = [2, 5];
pub(super) const CHILD: [u8; 2] = [3, 4];

/// A response before it is sent.
pub(super) struct Reply {
    /// Last octet of the server's address.
    pub(super) server: u8,
    pub(super) is_tcp: bool,
    pub(super) name: Name,
    pub(super) rtype: Rtype,
    /// EDNS version of the query; `None` without an OPT record.
    pub(super) version: Option<u8>,
    /// Octets that are sent instead of the response.
    pub(super) raw: Option<Vec<u8>>,
    /// Maximum number of octets over UDP.
    pub(super) limit: usize,
    /// The response; `None`: the server is silent.
    pub(super) message: Option<Message>,
}

impl Reply {
    /// Changes the records of the response.
    pub(super) fn edit(&mut self, change: impl FnMut(&mut Record)) {
        self.message.iter_mut().flat_map(|message| &mut message.records).for_each(change);
    }

    /// Replaces the response by one without records.
    pub(super) fn set_rcode(&mut self, rcode: Rcode) {
        if let Some(message) = &mut self.message {
            message.records.retain(|record| record.rtype == Rtype::OPT);
            message.header.flags = (message.header.flags & !0x000f & !flags::AA) | rcode.0;
        }
    }
}

/// A change of responses.
pub(super) type Change = fn(&mut Reply);

/// The running servers. Their threads end with the process.
pub(super) struct Servers {
    pub(super) prefix: [u8; 3],
    pub(super) port: u16,
}

/// Sockets at all addresses with one port.
pub(super) struct Sockets {
    prefix: [u8; 3],
    port: u16,
    sockets: Vec<(u8, UdpSocket, TcpListener)>,
}

impl Sockets {
    /// Binds all addresses. The system chooses the port.
    pub(super) fn bind() -> Self {
        (0..50).find_map(|_| Self::try_bind().ok()).expect("a port that is free at all addresses")
    }

    fn try_bind() -> io::Result<Self> {
        let prefix = [127, 77, 1];
        let address = |last| Ipv4Addr::new(prefix[0], prefix[1], prefix[2], last);
        let first = UdpSocket::bind((address(ROOT), 0))?;
        let port = first.local_addr()?.port();
        let mut sockets = vec![(ROOT, first, TcpListener::bind((address(ROOT), port))?)];
        for last in PARENT.into_iter().chain(CHILD) {
            let socket = UdpSocket::bind((address(last), port))?;
            sockets.push((last, socket, TcpListener::bind((address(last), port))?));
        }
        Ok(Self { prefix, port, sockets })
    }

    /// The tree of the tests: `zone.example.` with two servers, and its parent with two servers. `change`
    /// changes the description.
    pub(super) fn tree(&self, change: impl Fn(&mut Description)) -> Tree {
        let [a, b, c] = self.prefix;
        let at = |last: u8| Some(Ipv4Addr::new(a, b, c, last));
        let text = |last: u8| format!("{a}.{b}.{c}.{last}");
        let zone = |origin: &str, server: u8, records: String| ZoneDescription {
            server: at(server),
            records,
            ..ZoneDescription::new(origin)
        };
        let (second, other) = (text(PARENT[1]), text(CHILD[1]));
        let zones = vec![
            zone(".", ROOT, format!("example NS ns2.example.\nns2.example. A {second}\n")),
            zone(
                "example.",
                PARENT[0],
                format!("@ NS ns2\nns2 A {second}\nzone NS ns2.zone\nns2.zone A {other}\n"),
            ),
            zone("zone.example.", CHILD[0], format!("@ NS ns2\nns2 A {other}\n")),
        ];
        let mut description = Description { zones, port: self.port, ..Description::default() };
        change(&mut description);
        Tree::build(&description, 1, NOW).expect("a tree")
    }

    /// Starts the servers. `trees` has the tree of each server.
    pub(super) fn serve(self, trees: impl Fn(u8) -> Arc<Tree>, change: Change) -> Servers {
        let Self { prefix, port, sockets } = self;
        for (last, udp, tcp) in sockets {
            // The second server of a zone has the data of the first one.
            let source = if last == PARENT[1] {
                PARENT[0]
            } else if last == CHILD[1] {
                CHILD[0]
            } else {
                last
            };
            let address = Ipv4Addr::new(prefix[0], prefix[1], prefix[2], source);
            let tree = trees(last);
            let server = Arc::new(Server { tree, address, last, change });
            let other = Arc::clone(&server);
            thread::spawn(move || server.serve_udp(&udp));
            thread::spawn(move || other.serve_tcp(&tcp));
        }
        Servers { prefix, port }
    }
}

struct Server {
    tree: Arc<Tree>,
    address: Ipv4Addr,
    last: u8,
    change: Change,
}

impl Server {
    fn serve_udp(&self, socket: &UdpSocket) {
        let mut buffer = vec![0; 4096];
        while let Ok((length, client)) = socket.recv_from(&mut buffer) {
            if let Some(response) = self.respond(&buffer[..length], false) {
                let _ = socket.send_to(&response, client);
            }
        }
    }

    fn serve_tcp(&self, listener: &TcpListener) {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            let mut length = [0; 2];
            if stream.read_exact(&mut length).is_err() {
                continue;
            }
            let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
            if stream.read_exact(&mut query).is_err() {
                continue;
            }
            // Without a response, the connection is closed.
            if let Some(response) = self.respond(&query, true) {
                let _ = stream.write_all(&[&(response.len() as u16).to_be_bytes()[..], &response].concat());
            }
        }
    }

    fn respond(&self, octets: &[u8], is_tcp: bool) -> Option<Vec<u8>> {
        let query = Message::parse(octets).ok()?;
        let question = query.questions.first()?.clone();
        let opt = query.opt();
        let is_signed = opt.is_some_and(|opt| opt.ttl as u16 & edns::DO != 0);
        let mut message = self.answer(&question.name, question.rtype).unwrap_or_else(|| Message {
            header: Header { id: 0, flags: flags::QR | Rcode::REFUSED.0, counts: [0; 4] },
            questions: vec![question.clone()],
            records: Vec::new(),
        });
        message.header.id = query.header.id;
        if !is_signed {
            let is_added = |rtype| matches!(rtype, Rtype::RRSIG | Rtype::NSEC | Rtype::NSEC3 | Rtype::DS);
            message.records.retain(|record| !is_added(record.rtype) || record.rtype == question.rtype);
        }
        let version = opt.map(|opt| (opt.ttl >> 16) as u8);
        if let Some(opt) = opt {
            let is_known = version == Some(0);
            if !is_known {
                message.records.clear();
            }
            // The upper octet of the response code BADVERS is 1.
            let ttl = if is_known { opt.ttl & 0x8000 } else { 1 << 24 };
            message.records.push(Record {
                section: Section::Additional,
                owner: Name::root(),
                rtype: Rtype::OPT,
                class: Class(1232),
                ttl,
                rdata: Vec::new(),
            });
        }
        let (name, rtype) = (question.name, question.rtype);
        let limit = opt.map_or(512, |opt| usize::from(opt.class.0.max(512)));
        let message = Some(message);
        let (server, raw) = (self.last, None);
        let mut reply = Reply { server, is_tcp, name, rtype, version, raw, limit, message };
        (self.change)(&mut reply);
        if let Some(mut raw) = reply.raw {
            // The ID of the query.
            raw.iter_mut().zip(octets).take(2).for_each(|(octet, id)| *octet = *id);
            return Some(raw);
        }
        let message = reply.message?;
        let octets = message.to_octets();
        if is_tcp || octets.len() <= reply.limit {
            return Some(octets);
        }
        let header = Header { flags: message.header.flags | flags::TC, ..message.header };
        let records = message.records.into_iter().filter(|record| record.rtype == Rtype::OPT).collect();
        Some(Message { header, records, ..message }.to_octets())
    }

    fn answer(&self, name: &Name, rtype: Rtype) -> Option<Message> {
        if rtype == Rtype::AXFR {
            return None;
        }
        self.tree.respond(self.address, name.view(), rtype)
    }
}
