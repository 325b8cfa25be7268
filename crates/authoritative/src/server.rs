//! The server: sockets in front of [`answer()`](crate::answer()), and the zone that it answers from.

use crate::{Published, Transport, answer};
use arc_swap::{ArcSwap, Cache};
use nonesuch_net::tcp::{self, TcpOptions, TcpServer};
use nonesuch_net::udp::{self, UdpCounters, UdpOptions, UdpServer};
use nonesuch_net::{NetError, bind};
use std::net::SocketAddr;
use std::sync::Arc;

/// How to serve.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Address and port; port 0 takes a free one.
    pub listen: SocketAddr,
    /// UDP threads, at least 1.
    pub workers: usize,
    /// CPUs that the workers are bound to in turn; none by default.
    pub cpus: Vec<usize>,
}

/// A running server; it stops when dropped.
#[derive(Debug)]
pub struct Server {
    zone: Arc<ArcSwap<Published>>,
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
        let for_udp = Arc::clone(&zone);
        let udp = udp::serve(listeners.udp, &udp_options, move |_worker| handler(&for_udp, Transport::Udp))?;
        let for_tcp = Arc::clone(&zone);
        let tcp = tcp::serve(listeners.tcp, &TcpOptions::new(), move || handler(&for_tcp, Transport::Tcp))?;
        Ok(Self { zone, address: listeners.local_addr, udp, tcp })
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

    /// Stops answering and waits for the threads.
    pub fn stop(self) -> Result<(), NetError> {
        self.udp.stop()?;
        self.tcp.stop()
    }
}

/// One thread's answerer: it holds the published zone and looks with one load whether there is a newer one.
fn handler(
    zone: &Arc<ArcSwap<Published>>,
    transport: Transport,
) -> impl FnMut(&[u8], SocketAddr, &mut Vec<u8>) -> bool + use<> {
    let mut zone = Cache::new(Arc::clone(zone));
    move |message, _sender, out| answer(zone.load().image(), message, transport, out)
}
