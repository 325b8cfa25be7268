//! Measures the memory cost of waiting connections. `idle_connections tcp|tls [CONNECTIONS]` prints
//! the resident memory of the server for each connection, in every state in which a peer can leave
//! it. The clients run in another process.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nonesuch_net::client::{ConnectOptions, Connection};
use nonesuch_net::tcp::{self, ExemptClients, TcpCounters, TcpOptions, TcpServer};
use nonesuch_net::tls::{ClientTls, IdentitySlot, ServerIdentity};
use nonesuch_net::{bind_tcp, release_free_memory};

/// The states in which clients leave their connections.
const TCP_STATES: [&str; 4] = ["silent", "asked", "half a message", "not reading"];
const TLS_STATES: [&str; 4] = ["silent", "asked", "no handshake", "half a handshake"];
/// Length of a query that gets an answer of 60,000 octets. Other queries get 512 octets.
const LARGE_ANSWER_QUERY_SIZE: usize = 41;
/// Timeout that no connection of this example reaches.
const TIMEOUT: Duration = Duration::from_secs(600);

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["client", transport, server, state, count] => {
            let (server, count) = (server.parse().expect("an address"), count.parse().expect("a number"));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(open_and_hold(transport == &"tls", server, state, count));
        }
        [transport @ ("tcp" | "tls"), rest @ ..] => {
            let count = rest.first().map_or(5000, |count| count.parse().expect("a number"));
            println!(
                "{count} connections over {transport}: octets per connection: memory of the server, and memory of the sockets in the system"
            );
            // Not counted: memory that the first connections allocate once.
            measure(transport, "asked", 100);
            let states = if *transport == "tls" { TLS_STATES } else { TCP_STATES };
            states.iter().for_each(|state| {
                let (own, system) = measure(transport, state, count);
                println!("{state:16} {:8.0} {:8.0}", own / count as f64, system / count as f64);
            });
        }
        _ => eprintln!("usage: idle_connections tcp|tls [CONNECTIONS]"),
    }
}

/// Returns the octets that `count` connections in this state use, in the process and in the system.
fn measure(transport: &str, state: &str, count: usize) -> (f64, f64) {
    let (server, address) = start_server(transport == "tls", count);
    let before = (resident_memory(), socket_memory());
    let mut clients = start_clients(transport, address, state, count);
    let mut line = String::new();
    BufReader::new(clients.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    assert_eq!(line.trim(), "ready");
    // The server may still be processing the last data of the clients.
    let mut before_pause = TcpCounters::default();
    while std::mem::replace(&mut before_pause, server.statistics().total()) != server.statistics().total() {
        std::thread::sleep(Duration::from_millis(500));
    }
    assert_eq!(server.statistics().total().open, count as u64);
    release_free_memory();
    let after = (resident_memory(), socket_memory());
    drop(clients.stdin.take());
    clients.wait().expect("ended");
    server.stop().expect("stopped");
    (after.0 - before.0, after.1 - before.1)
}

fn start_server(tls: bool, count: usize) -> (TcpServer, SocketAddr) {
    let options = TcpOptions {
        connections_max: 2 * count,
        connections_per_client: 2 * count,
        exempt: ExemptClients::new(|_| false),
        idle_timeout: TIMEOUT,
        first_message_timeout: TIMEOUT,
        message_timeout: TIMEOUT,
        write_timeout: TIMEOUT,
        handshake_timeout: TIMEOUT,
        memory_max: 1 << 40,
        ..TcpOptions::default()
    };
    let listener = bind_tcp("127.0.0.1:0".parse().expect("an address")).expect("bound");
    let address = listener.local_addr().expect("bound");
    let handler = |message: &[u8], _: SocketAddr, response: &mut Vec<u8>| {
        response.resize(if message.len() == LARGE_ANSWER_QUERY_SIZE { 60_000 } else { 512 }, 1);
        true
    };
    let server = if tls {
        tcp::serve_tls(listener, &identity(), &options, move || handler)
    } else {
        tcp::serve(listener, &options, move || handler)
    };
    (server.expect("started"), address)
}

fn identity() -> IdentitySlot {
    let key = rcgen::KeyPair::generate().expect("a key");
    let parameters = rcgen::CertificateParams::new(vec!["ns.example".to_owned()]).expect("parameters");
    let certificate = parameters.self_signed(&key).expect("signed");
    let directory = tempfile::tempdir().expect("a directory");
    let (chain, secret) = (directory.path().join("chain"), directory.path().join("key"));
    std::fs::write(&chain, certificate.pem()).expect("written");
    std::fs::write(&secret, key.serialize_pem()).expect("written");
    IdentitySlot::new(ServerIdentity::load(&chain, &secret).expect("an identity"))
}

fn start_clients(transport: &str, server: SocketAddr, state: &str, count: usize) -> Child {
    Command::new(std::env::current_exe().expect("a path"))
        .args(["client", transport, &server.to_string(), state, &count.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started")
}

/// Opens connections, brings them into the state, and holds them until standard input ends.
async fn open_and_hold(tls: bool, server: SocketAddr, state: &str, count: usize) {
    let any_server = ClientTls::opportunistic(None).expect("a client");
    let options =
        ConnectOptions { connect_timeout: TIMEOUT, receive_timeout: TIMEOUT, ..ConnectOptions::default() };
    let (mut connections, mut streams) = (Vec::new(), Vec::new());
    for _ in 0..count {
        match state {
            "silent" | "asked" => {
                let mut connection = if tls {
                    Connection::open_tls(server, &options, &any_server).await.expect("opened")
                } else {
                    Connection::open(server, &options).await.expect("opened")
                };
                if state == "asked" {
                    connection.send(&[0; 40]).await.expect("sent");
                    connection.receive(&mut Vec::new()).await.expect("received");
                }
                connections.push(connection);
            }
            _ => {
                let mut stream = TcpStream::connect(server).expect("opened");
                let half_message = [&[16, 0][..], &[0; 600]].concat();
                let queries = [&[0, LARGE_ANSWER_QUERY_SIZE as u8][..], &[0; LARGE_ANSWER_QUERY_SIZE]]
                    .concat()
                    .repeat(100);
                let octets = match state {
                    "not reading" => queries,
                    "no handshake" => Vec::new(),
                    "half a handshake" => half_client_hello(),
                    _ => half_message,
                };
                stream.write_all(&octets).expect("sent");
                streams.push(stream);
            }
        }
    }
    println!("ready");
    std::io::stdout().flush().expect("written");
    let _ = std::io::stdin().read(&mut [0; 1]);
}

/// A ClientHello of 60,000 octets without its end.
fn half_client_hello() -> Vec<u8> {
    let message = [&[1, 0, 0xea, 0x60][..], &[0; 59_000]].concat();
    let record = |part: &[u8]| [&[22, 3, 1][..], &(part.len() as u16).to_be_bytes(), part].concat();
    message.chunks(16_000).flat_map(record).collect()
}

/// Resident memory of this process in octets.
fn resident_memory() -> f64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("read");
    text.split(' ').nth(1).and_then(|pages| pages.parse::<f64>().ok()).expect("pages") * 4096.0
}

/// Octets in the buffers of all TCP sockets. The sockets themselves, about 2 to 3 KiB each, are not
/// included.
fn socket_memory() -> f64 {
    let text = std::fs::read_to_string("/proc/net/sockstat").expect("read");
    let line = text.lines().find(|line| line.starts_with("TCP:")).expect("a line");
    line.rsplit(' ').next().and_then(|pages| pages.parse::<f64>().ok()).expect("pages") * 4096.0
}
