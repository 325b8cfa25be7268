//! TCP connections that stay open: some are idle, some send one octet per second. A connection that
//! the server closes is opened again, so that the server always has the maximum number that it
//! permits.

use nonesuch_net::pin_current_thread;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};

/// Time limit for opening connections.
const PATIENCE: Duration = Duration::from_secs(60);
/// Pause before a closed connection is opened again, and between octets of a slow connection.
const PAUSE: Duration = Duration::from_secs(1);
/// First source address; each network has 16 connections.
const FIRST_SOURCE: u32 = 0x7f03_0000;
/// `example. SOA` with the length prefix.
const QUERY: &[u8] = b"\0\x19\0\x07\0\0\0\x01\0\0\0\0\0\0\x07example\0\0\x06\0\x01";

#[derive(Default)]
struct Counters {
    open: AtomicUsize,
    made: AtomicUsize,
    stop: AtomicBool,
}

/// The connections. They are closed on drop.
pub(crate) struct Holder {
    counters: Arc<Counters>,
    thread: Option<JoinHandle<()>>,
}

impl Holder {
    /// Starts to open `count` connections, from a thread on CPU 1.
    pub(crate) fn start(server: SocketAddr, count: usize) -> Self {
        crate::networks::raise_open_files(count as u64 + 500);
        let counters = Arc::new(Counters::default());
        let shared = Arc::clone(&counters);
        let body = move || {
            pin_current_thread(1).expect("a CPU");
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                for index in 0..count {
                    tokio::spawn(hold(server, index, Arc::clone(&shared)));
                    // The backlog of the server has room for a few hundred connections.
                    if index % 50 == 49 {
                        sleep(Duration::from_millis(10)).await;
                    }
                }
                while !shared.stop.load(Relaxed) {
                    sleep(Duration::from_millis(20)).await;
                }
            });
        };
        let thread = thread::Builder::new().name("holder".to_owned()).spawn(body).expect("a thread");
        Self { counters, thread: Some(thread) }
    }

    /// Waits until `count` connections are open; reports if they do not open.
    pub(crate) fn wait_until_open(&self, count: usize) {
        let begun = Instant::now();
        while self.open() < count {
            if begun.elapsed() > PATIENCE {
                println!("  only {} connections are open", self.open());
                return;
            }
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Number of open connections.
    pub(crate) fn open(&self) -> usize {
        self.counters.open.load(Relaxed)
    }

    /// Number of connections opened so far.
    pub(crate) fn made(&self) -> usize {
        self.counters.made.load(Relaxed)
    }
}

impl Drop for Holder {
    fn drop(&mut self) {
        self.counters.stop.store(true, Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(matches!(ended, Some(Ok(()))), "the thread that holds connections failed");
    }
}

/// Keeps one connection open forever.
async fn hold(server: SocketAddr, index: usize, counters: Arc<Counters>) {
    let source = SocketAddr::from((Ipv4Addr::from_bits(FIRST_SOURCE + (index as u32 / 16) * 256 + 1), 0));
    loop {
        if let Ok(stream) = connect(source, server).await {
            counters.made.fetch_add(1, Relaxed);
            counters.open.fetch_add(1, Relaxed);
            let _ = if index.is_multiple_of(2) { wait(stream).await } else { dribble(stream).await };
            counters.open.fetch_sub(1, Relaxed);
        }
        sleep(PAUSE).await;
    }
}

async fn connect(source: SocketAddr, server: SocketAddr) -> std::io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    socket.bind(source)?;
    timeout(Duration::from_secs(5), socket.connect(server)).await?
}

/// Sends nothing until the server closes the connection.
async fn wait(mut stream: TcpStream) -> std::io::Result<usize> {
    stream.read(&mut [0; 16]).await
}

/// Sends queries at one octet per second until the server closes the connection.
async fn dribble(mut stream: TcpStream) -> std::io::Result<usize> {
    let mut answer = [0; 2048];
    loop {
        for octet in QUERY {
            stream.write_all(&[*octet]).await?;
            if let Ok(read) = timeout(PAUSE, stream.read(&mut answer)).await
                && read? == 0
            {
                return Ok(0);
            }
        }
    }
}
