//! TCP: a connection of a client is forwarded over a connection to the server, message by message and
//! in both directions, so that transfers and pipelined queries pass.

use super::fault::Fault;
use super::message::{change_query, change_response, is_response, question};
use super::udp::open;
use super::{Shared, TICK, count};
use nonesuch_net::Poll;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::fd::AsFd as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

/// Octets of the longest message.
const MESSAGE_MAX: usize = 65_535;

/// Accepts the connections of clients.
#[derive(Debug)]
pub(super) struct Acceptor {
    listener: TcpListener,
    shared: Arc<Shared>,
    open: Arc<AtomicUsize>,
}

impl Acceptor {
    pub(super) fn new(listener: TcpListener, shared: Arc<Shared>) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        Ok(Self { listener, shared, open: Arc::default() })
    }

    /// Accepts until the proxy stops.
    pub(super) fn run(self) {
        let mut poll = Poll::default();
        while !self.shared.is_stopped() {
            // A connection that cannot be accepted now is accepted later.
            let waited = poll.wait(std::iter::once((self.listener.as_fd(), false)), TICK);
            match self.listener.accept() {
                Ok((client, _)) => self.start(client),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && waited.is_ok() => {}
                Err(_) => thread::sleep(TICK),
            }
        }
    }

    /// Starts the thread of a connection, or closes the connection.
    fn start(&self, client: TcpStream) {
        let slot = Slot::take(&self.open);
        if slot.number > self.shared.connections {
            count(&self.shared.counters.refused);
            return;
        }
        count(&self.shared.counters.connections);
        let shared = Arc::clone(&self.shared);
        let serve = move || {
            let _slot = slot;
            // The end of a connection is its only error message.
            let _ = Connection::new(&shared).serve(&client);
        };
        // If the system does not start the thread, the connection is closed.
        let _ = thread::Builder::new().name("proxy connection".to_owned()).spawn(serve);
    }
}

/// A place among the open connections. It is free again on drop.
struct Slot {
    open: Arc<AtomicUsize>,
    number: usize,
}

impl Slot {
    fn take(open: &Arc<AtomicUsize>) -> Self {
        Self { open: Arc::clone(open), number: open.fetch_add(1, SeqCst) + 1 }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.open.fetch_sub(1, SeqCst);
    }
}

/// A connection of a client, and its connection to the server.
struct Connection<'s> {
    shared: &'s Shared,
    /// Time of the last message in either direction.
    active_at: Mutex<Instant>,
}

impl<'s> Connection<'s> {
    fn new(shared: &'s Shared) -> Self {
        Self { shared, active_at: Mutex::new(Instant::now()) }
    }

    fn serve(&self, client: &TcpStream) -> io::Result<()> {
        self.prepare(client)?;
        if self.shared.faults.has(Fault::TcpToUdp) {
            return self.serve_over_udp(client);
        }
        // The server is contacted when the client has sent a query.
        let mut query = Vec::new();
        if !self.read_message(client, &mut query)? {
            return Ok(());
        }
        let connected = TcpStream::connect_timeout(&self.shared.upstream, self.shared.timeout);
        if connected.is_err() && self.shared.faults.has(Fault::HoldTcp) {
            while self.read_message(client, &mut query)? {}
        }
        let server = connected?;
        self.prepare(&server)?;
        thread::scope(|scope| {
            let responses = scope.spawn(|| {
                let relayed = self.relay_responses(&server, client);
                close(&server, client);
                relayed
            });
            let relayed = self.relay_queries(query, client, &server);
            // At the end of the queries, the responses to them may still arrive.
            if relayed.is_err() {
                close(&server, client);
            } else {
                let _ = server.shutdown(Shutdown::Write);
            }
            let responded = responses.join().unwrap_or(Ok(()));
            relayed.and(responded)
        })
    }

    fn prepare(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_nonblocking(false)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(TICK))?;
        stream.set_write_timeout(Some(self.shared.timeout))
    }

    fn relay_queries(&self, first: Vec<u8>, client: &TcpStream, server: &TcpStream) -> io::Result<()> {
        let mut query = first;
        loop {
            if change_query(&mut query, self.shared.faults) {
                write_message(server, &query)?;
            }
            if !self.read_message(client, &mut query)? {
                return Ok(());
            }
        }
    }

    fn relay_responses(&self, server: &TcpStream, client: &TcpStream) -> io::Result<()> {
        let mut response = Vec::new();
        while self.read_message(server, &mut response)? {
            change_response(&mut response, self.shared.faults);
            write_message(client, &response)?;
        }
        Ok(())
    }

    /// Forwards each query over UDP, as [`Fault::TcpToUdp`] requires.
    fn serve_over_udp(&self, client: &TcpStream) -> io::Result<()> {
        let mut query = Vec::new();
        while self.read_message(client, &mut query)? {
            if change_query(&mut query, self.shared.faults) {
                write_message(client, &self.exchange_udp(&query)?)?;
            }
        }
        Ok(())
    }

    fn exchange_udp(&self, query: &[u8]) -> io::Result<Vec<u8>> {
        let socket = open(self.shared.upstream)?;
        socket.set_nonblocking(false)?;
        socket.set_read_timeout(Some(self.shared.timeout))?;
        socket.send(query)?;
        let deadline = Instant::now() + self.shared.timeout;
        let mut buffer = vec![0; MESSAGE_MAX];
        while Instant::now() < deadline {
            let length = socket.recv(&mut buffer)?;
            let is_answer = buffer[..length].first_chunk::<2>() == query.first_chunk::<2>()
                && is_response(&buffer[..length], question(query));
            if is_answer {
                buffer.truncate(length);
                return Ok(buffer);
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }

    /// Reads the next message without its length prefix. Returns `false` at the end of the stream before
    /// a message.
    ///
    /// # Errors
    /// Both directions are idle for too long, the message does not arrive in time or is incomplete, or
    /// the proxy stops.
    fn read_message(&self, stream: &TcpStream, message: &mut Vec<u8>) -> io::Result<bool> {
        let mut prefix = [0; 2];
        if !self.fill(stream, &mut prefix, true)? {
            return Ok(false);
        }
        message.clear();
        message.resize(usize::from(u16::from_be_bytes(prefix)), 0);
        self.fill(stream, message, false)?;
        *self.active_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        Ok(true)
    }

    /// Fills `buffer`. `is_start`: the stream may end or be idle before the first octet.
    fn fill(&self, mut stream: &TcpStream, buffer: &mut [u8], is_start: bool) -> io::Result<bool> {
        let mut filled = 0;
        let mut deadline = (!is_start).then(|| Instant::now() + self.shared.timeout);
        while filled < buffer.len() {
            match stream.read(&mut buffer[filled..]) {
                Ok(0) if is_start && filled == 0 => return Ok(false),
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(octets) => {
                    filled += octets;
                    deadline.get_or_insert_with(|| Instant::now() + self.shared.timeout);
                }
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error),
            }
            let now = Instant::now();
            let idle_end =
                *self.active_at.lock().unwrap_or_else(PoisonError::into_inner) + self.shared.idle_timeout;
            if filled < buffer.len() && now >= deadline.unwrap_or(idle_end) || self.shared.is_stopped() {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(true)
    }
}

fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted)
}

/// Ends both connections, so that the other thread does not wait.
fn close(server: &TcpStream, client: &TcpStream) {
    // The connections may have ended already.
    let _ = server.shutdown(Shutdown::Both);
    let _ = client.shutdown(Shutdown::Both);
}

/// Writes a message with its length prefix in one segment (RFC 7766 §8).
fn write_message(mut stream: &TcpStream, message: &[u8]) -> io::Result<()> {
    // A message that was read has at most 65,535 octets; no fault makes it longer than that.
    let length = u16::try_from(message.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidData))?;
    stream.write_all(&[&length.to_be_bytes(), message].concat())
}
