//! The server: sockets in front of [`answer()`](crate::answer()), and the zone that it answers from.

use crate::{Outcome, Published, Transport, answer, answer_published, fail};
use arc_swap::{ArcSwap, Cache};
use nonesuch_dnssec::online::{Counters, OnlineCounters, Workshop};
use nonesuch_net::tcp::{self, TcpOptions, TcpServer};
use nonesuch_net::udp::{self, UdpCounters, UdpOptions, UdpServer};
use nonesuch_net::{Answer, Handler, NetError, bind};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Octets that the caches of signatures and proofs take by default, all threads together: 64 MiB.
pub const DEFAULT_SIGNATURE_CACHE: usize = 64 << 20;

/// How to serve.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Address and port; port 0 takes a free one.
    pub listen: SocketAddr,
    /// UDP threads, at least 1.
    pub workers: usize,
    /// CPUs that the workers are bound to in turn; none by default.
    pub cpus: Vec<usize>,
    /// Octets that the caches of signatures and proofs take, all threads together. Nothing of it is used where nothing is
    /// made when asked.
    pub signature_cache: usize,
    /// Seconds that signatures are made ahead of the clock, modulo 2^32; 0 but in experiments.
    pub clock_shift: u32,
}

impl ServerOptions {
    /// One worker on any CPU, with the default cache, by the clock.
    #[must_use]
    pub const fn new(listen: SocketAddr) -> Self {
        Self {
            listen,
            workers: 1,
            cpus: Vec::new(),
            signature_cache: DEFAULT_SIGNATURE_CACHE,
            clock_shift: 0,
        }
    }
}

/// A running server; it stops when dropped.
#[derive(Debug)]
pub struct Server {
    zone: Arc<ArcSwap<Published>>,
    counters: Vec<Arc<Counters>>,
    address: SocketAddr,
    udp: UdpServer,
    tcp: TcpServer,
}

impl Server {
    /// Binds the sockets and starts answering from `zone`.
    pub fn start(zone: Published, options: &ServerOptions) -> Result<Self, NetError> {
        let listeners = bind(options.listen, options.workers)?;
        let zone = Arc::new(ArcSwap::from_pointee(zone));
        let udp_options = UdpOptions::new().pin_to(options.cpus.iter().copied());
        // One workshop for each UDP worker, and one for TCP.
        let workshops = options.workers + 1;
        let counters: Vec<Arc<Counters>> = (0..workshops).map(|_| Arc::default()).collect();
        let room = options.signature_cache / workshops;
        let maker = HandlerMaker { zone: Arc::clone(&zone), room, clock_shift: options.clock_shift };
        let (for_udp, udp_counters) = (maker.clone(), counters.clone());
        let udp = udp::serve(listeners.udp, &udp_options, move |worker| {
            for_udp.make(Transport::Udp, Arc::clone(&udp_counters[worker]))
        })?;
        let tcp_counters = Arc::clone(&counters[options.workers]);
        let make_tcp = move || maker.make(Transport::Tcp, tcp_counters);
        let tcp = tcp::serve(listeners.tcp, &TcpOptions::new(), make_tcp)?;
        Ok(Self { zone, counters, address: listeners.local_addr, udp, tcp })
    }

    /// The address that is listened on.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers from `zone` from now on; queries being answered end with the old one.
    pub fn publish(&self, zone: Published) {
        self.zone.store(Arc::new(zone));
    }

    /// Datagrams and system calls so far, all workers together.
    #[must_use]
    pub fn udp_counters(&self) -> UdpCounters {
        self.udp.statistics().total()
    }

    /// Signatures and proofs so far, all threads together.
    #[must_use]
    pub fn online_counters(&self) -> OnlineCounters {
        Counters::sum(&self.counters)
    }

    /// Stops answering and waits for the threads.
    pub fn stop(self) -> Result<(), NetError> {
        self.udp.stop()?;
        self.tcp.stop()
    }
}

/// What the answerers of all threads are made of.
#[derive(Clone)]
struct HandlerMaker {
    zone: Arc<ArcSwap<Published>>,
    /// Octets for each cache.
    room: usize,
    clock_shift: u32,
}

impl HandlerMaker {
    fn make(&self, transport: Transport, counters: Arc<Counters>) -> ZoneHandler {
        let mut zone = Cache::new(Arc::clone(&self.zone));
        let current = Arc::clone(zone.load());
        let workshop = Workshop::new(self.room, counters);
        ZoneHandler { zone, current, transport, workshop, clock_shift: self.clock_shift, now: 0 }
    }
}

/// One thread's answerer.
struct ZoneHandler {
    /// Tells with one load whether there is a newer zone than the current one.
    zone: Cache<Arc<ArcSwap<Published>>, Arc<Published>>,
    /// The zone that the current batch is answered from, to its end.
    current: Arc<Published>,
    transport: Transport,
    workshop: Workshop,
    clock_shift: u32,
    /// The time of the batch; read where signatures are made.
    now: u32,
}

impl ZoneHandler {
    fn answer_online(&mut self, message: &[u8], out: &mut Vec<u8>) -> Outcome {
        answer_published(&self.current, &mut self.workshop, self.now, message, self.transport, out)
    }
}

impl Handler for ZoneHandler {
    fn begin(&mut self) {
        let newest = self.zone.load();
        // A clone for each batch would have the threads contend for the count of references.
        if !Arc::ptr_eq(newest, &self.current) {
            self.current = Arc::clone(newest);
        }
        if self.current.is_online() {
            self.workshop.begin();
            // A clock before 1970 makes signatures that nobody takes.
            let clock =
                SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs() as u32);
            self.now = clock.wrapping_add(self.clock_shift);
        }
    }

    fn answer(&mut self, message: &[u8], _sender: SocketAddr, out: &mut Vec<u8>) -> Answer {
        if !self.current.is_online() {
            let ready = answer(self.current.image(), message, self.transport, out);
            return if ready { Answer::Ready } else { Answer::Nothing };
        }
        match self.answer_online(message, out) {
            Outcome::Ready => Answer::Ready,
            Outcome::Nothing => Answer::Nothing,
            Outcome::Wanting => Answer::Later,
        }
    }

    fn make(&mut self) {
        self.current.make(&mut self.workshop, self.now);
    }

    /// All that was wanted is there now, but where the batch was full or the library failed: then the answer is SERVFAIL, so
    /// that a batch takes bounded time. Over TCP another connection's batch may have come between, and it is made again.
    fn answer_again(&mut self, message: &[u8], _sender: SocketAddr, out: &mut Vec<u8>) -> bool {
        let mut outcome = self.answer_online(message, out);
        if outcome == Outcome::Wanting && self.transport == Transport::Tcp {
            self.make();
            outcome = self.answer_online(message, out);
        }
        match outcome {
            Outcome::Ready => true,
            Outcome::Nothing => false,
            Outcome::Wanting => fail(message, self.transport, out),
        }
    }
}
