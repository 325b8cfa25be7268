//! This project's server with the zone and its VRF key.

use super::answers::{Case, answer};
use super::common::{Running, nonesuch, run, serve, text};
use super::zone::Zone;
use nonesuch_proto::edns::{self, push_opt};
use nonesuch_proto::message::{Message, push_query};
use nonesuch_proto::{Name, Rtype};
use std::cell::RefCell;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// A server and a connection to it.
pub(crate) struct Server {
    stream: RefCell<TcpStream>,
    _running: Running,
}

impl Server {
    /// Serves the zone, if `nonesuch serve` supports NSEC5.
    pub(crate) fn start(zone: &Zone) -> Option<Self> {
        if !run(&mut nonesuch(["serve", "--help"])).stdout.contains("--nsec5-keys") {
            nonesuch_testing::record_skip(
                "nonesuch serve does not answer with NSEC5: answers are made by the test",
            );
            return None;
        }
        let running = serve(&zone.file, &["--nsec5-keys", text(&zone.secrets)]);
        let stream = TcpStream::connect(running.address).expect("connected");
        stream.set_nodelay(true).expect("an option");
        Some(Self { stream: RefCell::new(stream), _running: running })
    }

    /// Sends a query over TCP, so that the response is not truncated.
    pub(crate) fn ask(&self, name: &Name, rtype: Rtype) -> Message {
        let mut query = vec![0, 0];
        push_query(name, rtype, 0x4567, 0, &mut query);
        query[2 + 11] = 1;
        push_opt(1232, 0, edns::DO, &mut query);
        let octets = u16::try_from(query.len() - 2).expect("a short query").to_be_bytes();
        query[..2].copy_from_slice(&octets);
        let mut stream = self.stream.borrow_mut();
        stream.write_all(&query).expect("sent");
        let mut octets = [0; 2];
        stream.read_exact(&mut octets).expect("a response");
        let mut response = vec![0; usize::from(u16::from_be_bytes(octets))];
        stream.read_exact(&mut response).expect("a whole response");
        Message::parse(&response).expect("a message")
    }
}

/// The response of the server or, without a server, of the test.
pub(crate) fn answer_of(zone: &Zone, server: Option<&Server>, name: &Name, rtype: Rtype) -> Case {
    let mut case = answer(zone, name, rtype);
    if let Some(server) = server {
        case.take(&server.ask(name, rtype));
    }
    case
}
