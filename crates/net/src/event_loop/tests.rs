//! A small machine, and what the tests of the loop share. The test is client and server itself.

use super::*;
use crate::bind::bind;
use crate::machine::{ClientQuery, ClientToken, Event, ExchangeId, Now, Output, SendFailure, Upstream};
use crate::testing::TIMEOUT;
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

mod clients;
mod tls;
mod turns;
mod upstream;
mod workers;

/// A machine with commands. A message has an ID in two octets, a command, and data:
///
/// - `e`: reply with the message.
/// - `u`, `t`: forward the message over UDP or TCP, and reply with the response.
/// - `c`: as `t`, and end the exchange at once, without a reply.
/// - `U`, `T`: as `u` and `t`, to the address in the data.
/// - `d`: no reply.
/// - `l`: reply after as many milliseconds as the octet in the data says.
/// - `h`: hold the message until the next wake. `w`: wake the worker in the data, and reply.
/// - `i`: reply with the number of the worker.
/// - `n`: reply with the name of the client's transport.
/// - `x`: reply with 65,536 octets.
/// - `p`: panic.
///
/// A failure of an exchange is the reply `F` and [`failure_code`].
struct Commander {
    worker: usize,
    server: SocketAddr,
    next_exchange: u64,
    forwarded: HashMap<ExchangeId, (ClientToken, u16)>,
    held: Vec<(ClientToken, Vec<u8>)>,
    delayed: Vec<(Instant, ClientToken, Vec<u8>)>,
    outputs: VecDeque<Output>,
}

const fn failure_code(failure: SendFailure) -> u8 {
    match failure {
        SendFailure::Refused => b'R',
        SendFailure::Unreachable => b'U',
        SendFailure::Local => b'L',
    }
}

/// The reply to a message whose exchange failed.
fn failed(id: u16, failure: SendFailure) -> Vec<u8> {
    message(id, b'F', &[failure_code(failure)])
}

fn message(id: u16, command: u8, data: &[u8]) -> Vec<u8> {
    [&id.to_be_bytes()[..], &[command], data].concat()
}

fn parse(address: &[u8]) -> SocketAddr {
    std::str::from_utf8(address).expect("text").parse().expect("an address")
}

impl Commander {
    fn new(worker: usize, server: SocketAddr) -> Self {
        Self {
            worker,
            server,
            next_exchange: 0,
            forwarded: HashMap::new(),
            held: Vec::new(),
            delayed: Vec::new(),
            outputs: VecDeque::new(),
        }
    }

    fn reply(&mut self, token: ClientToken, reply: &[u8]) {
        self.outputs.push_back(Output::Reply(token, reply.to_vec()));
    }

    fn forward(&mut self, query: ClientQuery<'_>, server: SocketAddr, transport: Transport) -> ExchangeId {
        let exchange = ExchangeId(self.next_exchange);
        self.next_exchange += 1;
        let id = u16::from_be_bytes([query.message[0], query.message[1]]);
        self.forwarded.insert(exchange, (query.token, id));
        let message = query.message.to_vec();
        self.outputs.push_back(Output::Send(Upstream { exchange, server, transport, message }));
        exchange
    }

    fn handle_query(&mut self, query: ClientQuery<'_>, now: Now) {
        let ClientQuery { token, message, .. } = query;
        let data = &message[3..];
        match message[2] {
            b'e' => self.reply(token, message),
            b'u' => _ = self.forward(query, self.server, Transport::Udp),
            b't' => _ = self.forward(query, self.server, Transport::Tcp),
            b'U' => _ = self.forward(query, parse(data), Transport::Udp),
            b'T' => _ = self.forward(query, parse(data), Transport::Tcp),
            b'c' => {
                let exchange = self.forward(query, self.server, Transport::Tcp);
                self.forwarded.remove(&exchange);
                self.outputs.extend([Output::Close(exchange), Output::Drop(token)]);
            }
            b'd' => self.outputs.push_back(Output::Drop(token)),
            b'l' => {
                let at = now.instant + Duration::from_millis(data[0].into());
                self.delayed.push((at, token, message.to_vec()));
            }
            b'h' => self.held.push((token, message.to_vec())),
            b'w' => {
                self.outputs.push_back(Output::Wake(vec![data[0].into(), 1000]));
                self.reply(token, message);
            }
            b'i' => self.reply(token, &[self.worker as u8]),
            b'n' => self.reply(token, query.transport.name().as_bytes()),
            b'x' => self.reply(token, &[0; 1 << 16]),
            b'p' => panic!("the panic that this test wants"),
            command => panic!("unknown command {command}"),
        }
    }
}

impl Machine for Commander {
    fn handle_event(&mut self, event: Event<'_>, now: Now) {
        match event {
            Event::Query(query) => self.handle_query(query, now),
            Event::Response(exchange, response) => {
                if let Some((token, _)) = self.forwarded.remove(&exchange) {
                    self.outputs.push_back(Output::Close(exchange));
                    self.reply(token, response);
                }
            }
            Event::Failed(exchange, failure) => {
                if let Some((token, id)) = self.forwarded.remove(&exchange) {
                    self.reply(token, &failed(id, failure));
                }
            }
            Event::Wake => {
                for (token, message) in std::mem::take(&mut self.held) {
                    self.reply(token, &message);
                }
            }
        }
    }

    fn handle_timeout(&mut self, now: Now) {
        let due: Vec<_> = self.delayed.extract_if(.., |(at, ..)| *at <= now.instant).collect();
        assert!(!due.is_empty(), "called only when a timeout is due");
        for (_, token, message) in due {
            self.reply(token, &message);
        }
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        self.delayed.iter().map(|(at, ..)| *at).min()
    }
}

/// An address on which no process listens.
const NOWHERE: &str = "127.0.0.1:9";

/// Starts a server that forwards to `server`.
fn start_at(
    address: &str,
    server: SocketAddr,
    workers: usize,
    options: &EventLoopOptions,
) -> (EventLoopServer, SocketAddr) {
    let listeners = bind(address.parse().expect("an address"), workers).expect("bound");
    let address = listeners.local_addr;
    let server = serve(EventLoopSockets::without_tls(vec![listeners]), options, move |worker| {
        Commander::new(worker, server)
    });
    (server.expect("started"), address)
}

/// Starts a server with one worker that forwards to `server`.
fn start(server: SocketAddr, options: &EventLoopOptions) -> (EventLoopServer, SocketAddr) {
    start_at("127.0.0.1:0", server, 1, options)
}

fn nowhere() -> SocketAddr {
    NOWHERE.parse().expect("an address")
}

fn udp_client(server: SocketAddr) -> UdpSocket {
    let any = if server.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
    let socket = UdpSocket::bind(any).expect("bound");
    socket.set_read_timeout(Some(TIMEOUT)).expect("set");
    socket.connect(server).expect("connected");
    socket
}

fn receive_datagram(socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = vec![0; 1 << 16];
    let length = socket.recv(&mut buffer).expect("a datagram in time");
    buffer.truncate(length);
    buffer
}

fn ask_datagram(socket: &UdpSocket, query: &[u8]) -> Vec<u8> {
    socket.send(query).expect("sent");
    receive_datagram(socket)
}

/// A server over UDP, which the test plays.
struct UdpUpstream(UdpSocket);

impl UdpUpstream {
    fn new() -> (Self, SocketAddr) {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("bound");
        socket.set_read_timeout(Some(TIMEOUT)).expect("set");
        let address = socket.local_addr().expect("bound");
        (Self(socket), address)
    }

    /// Receives a query with its sender.
    fn receive(&self) -> (Vec<u8>, SocketAddr) {
        let mut buffer = vec![0; 4096];
        let (length, sender) = self.0.recv_from(&mut buffer).expect("a query in time");
        buffer.truncate(length);
        (buffer, sender)
    }
}
