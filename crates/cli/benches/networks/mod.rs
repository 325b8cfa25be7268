//! A flood of random names from many networks at the same time, with little CPU time of the
//! generator.
//!
//! Each network has its own socket. The sockets take turns: a socket is read when it sends its next
//! query, long after the response has arrived. Therefore no code waits for sockets; polling all of
//! them would take time proportional to their number.

use nonesuch_net::pin_current_thread;
use nonesuch_proto::message::{HEADER, flags, push_query};
use nonesuch_proto::{Name, Rtype, edns};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

/// Interval between checks for due queries.
const TICK: Duration = Duration::from_millis(1);
/// Time to wait for responses at the end.
const PATIENCE: Duration = Duration::from_millis(500);

/// The results of a flood after the warm-up.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flood {
    pub(crate) sent: u64,
    pub(crate) received: u64,
    pub(crate) truncated: u64,
}

/// Sockets in `networks` /24 networks of 127.16.0.0/12.
pub(crate) struct Networks {
    sockets: Vec<UdpSocket>,
    next: usize,
    /// Number of names queried so far.
    number: u64,
}

impl Networks {
    pub(crate) fn open(server: SocketAddr, networks: usize) -> Self {
        raise_open_files(networks as u64 + 200);
        let open = |network: usize| {
            let address = Ipv4Addr::from_bits(0x7f10_0001 + ((network as u32 % 4096) << 8));
            let socket = UdpSocket::bind(SocketAddr::new(IpAddr::V4(address), 0)).expect("a socket");
            socket.connect(server).and_then(|()| socket.set_nonblocking(true)).expect("the server");
            socket
        };
        Self { sockets: (0..networks).map(open).collect(), next: 0, number: 0 }
    }

    /// Sends `rate` queries per second from CPU 1 for names below `zone`. Queries within `warm_up`
    /// are not counted.
    pub(crate) fn flood(&mut self, zone: &str, rate: f64, warm_up: Duration, seconds: f64) -> Flood {
        pin_current_thread(1).expect("a CPU");
        let (begun, mut counted, mut due, mut is_warm) = (Instant::now(), Flood::default(), 0.0, false);
        let end = warm_up + Duration::from_secs_f64(seconds);
        while begun.elapsed() < end {
            let elapsed = begun.elapsed();
            if elapsed >= warm_up && !is_warm {
                self.take_all(&mut counted);
                (counted, is_warm) = (Flood::default(), true);
            }
            while due < elapsed.as_secs_f64() * rate {
                due += 1.0;
                self.turn(zone, &mut counted);
            }
            thread::sleep(TICK);
        }
        thread::sleep(PATIENCE);
        self.take_all(&mut counted);
        counted
    }

    fn take_all(&self, counted: &mut Flood) {
        self.sockets.iter().for_each(|socket| take(socket, counted));
    }

    /// Reads the responses of the next socket, and sends a query from it.
    fn turn(&mut self, zone: &str, counted: &mut Flood) {
        let socket = &self.sockets[self.next];
        self.next = (self.next + 1) % self.sockets.len();
        self.number += 1;
        let query = query(zone, self.number);
        take(socket, counted);
        // If the buffer is full, the query is not sent.
        counted.sent += u64::from(socket.send(&query).is_ok());
    }
}

/// A query for a name that differs for each `number`.
fn query(zone: &str, number: u64) -> Vec<u8> {
    // Multiplication by an odd factor gives numbers that differ and are not consecutive.
    let label = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let name: Name = format!("f{label:016x}.{zone}").parse().expect("a name");
    let mut octets = Vec::with_capacity(64);
    push_query(&name, Rtype::A, number as u16, 0, &mut octets);
    edns::push_opt(1232, 0, edns::DO, &mut octets);
    octets[HEADER - 1] = 1;
    octets
}

/// Reads all responses of a socket.
fn take(socket: &UdpSocket, counted: &mut Flood) {
    let mut head = [0; HEADER];
    while let Ok(octets) = socket.recv(&mut head) {
        let is_truncated = octets == HEADER && u16::from_be_bytes([head[2], head[3]]) & flags::TC != 0;
        counted.received += 1;
        counted.truncated += u64::from(is_truncated);
    }
}

/// Raises the limit on open files to `wanted`, if the system permits it.
pub(crate) fn raise_open_files(wanted: u64) {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("a limit");
    setrlimit(Resource::RLIMIT_NOFILE, wanted.min(hard).max(soft), hard).expect("more open files");
}
