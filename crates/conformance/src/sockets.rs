//! Servers of a simulated network on real sockets.

use crate::simulator::{Delivery, Reaction, ServerQuery};
use nonesuch_net::Transport;
use nonesuch_net::machine::ExchangeId;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Time after which an idle connection is closed.
const IDLE: Duration = Duration::from_secs(10);
/// Stack of a thread, in octets.
const STACK: usize = 256 << 10;

/// Returns what a server does with a query.
pub type React = Arc<dyn Fn(&ServerQuery<'_>) -> Reaction + Send + Sync>;

/// Serves at an address over these transports, in threads of their own, until the process ends.
///
/// # Errors
/// A socket cannot be bound, or a thread cannot be started.
pub fn serve(address: SocketAddr, transports: &[Transport], react: &React) -> io::Result<()> {
    for transport in transports {
        let react = Arc::clone(react);
        match transport {
            Transport::Udp => {
                let socket = Arc::new(UdpSocket::bind(address)?);
                start(move || serve_udp(&socket, address, &react))?;
            }
            _ => {
                let listener = TcpListener::bind(address)?;
                start(move || accept(&listener, address, &react))?;
            }
        }
    }
    Ok(())
}

fn start(body: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name("server".to_owned()).stack_size(STACK).spawn(body).map(drop)
}

/// The messages that the server sends. Over sockets, it cannot forge the address of another server.
fn deliveries(
    message: &[u8],
    server: SocketAddr,
    transport: Transport,
    react: &React,
) -> impl Iterator<Item = Delivery> + use<> {
    let query = ServerQuery { worker: 0, exchange: ExchangeId(0), server, transport, message };
    let messages = match react(&query) {
        Reaction::Messages(messages) => messages,
        Reaction::Failure(_) => Vec::new(),
    };
    messages.into_iter().filter(move |delivery| delivery.from == server)
}

fn serve_udp(socket: &Arc<UdpSocket>, address: SocketAddr, react: &React) {
    let mut buffer = [0; 4096];
    loop {
        // A failed reception reports an ICMP message about an earlier response.
        let Ok((length, client)) = socket.recv_from(&mut buffer) else { continue };
        for Delivery { delay, message, .. } in deliveries(&buffer[..length], address, Transport::Udp, react) {
            if delay.is_zero() {
                // The client may have ended.
                let _ = socket.send_to(&message, client);
                continue;
            }
            let socket = Arc::clone(socket);
            let body = move || {
                thread::sleep(delay);
                let _ = socket.send_to(&message, client);
            };
            // Without a thread, the message is lost, as on a network.
            let _ = start(body);
        }
    }
}

fn accept(listener: &TcpListener, address: SocketAddr, react: &React) {
    for stream in listener.incoming().flatten() {
        let react = Arc::clone(react);
        // An error means that the client has ended.
        let _ = start(move || drop(serve_tcp(stream, address, &react)));
    }
}

fn serve_tcp(mut stream: TcpStream, address: SocketAddr, react: &React) -> io::Result<()> {
    stream.set_read_timeout(Some(IDLE))?;
    loop {
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut query)?;
        for Delivery { delay, message, .. } in deliveries(&query, address, Transport::Tcp, react) {
            thread::sleep(delay);
            let length = u16::try_from(message.len()).unwrap_or(u16::MAX).to_be_bytes();
            stream.write_all(&[&length, message.as_slice()].concat())?;
        }
    }
}
