//! The server: binds sockets, and runs a [`Responder`] in each of their threads.

use crate::responder::{Responder, ServerContext};
use nonesuch_dnssec::online::{OnlineCounters, OnlineSigner, SignerCounters};
use nonesuch_net::Transport;
use nonesuch_net::tcp::{self, TcpCounters, TcpOptions, TcpServer};
use nonesuch_net::tls::IdentitySlot;
use nonesuch_net::udp::{self, UdpCounters, UdpOptions, UdpServer};
use nonesuch_net::{Listeners, NetError, bind, bind_tcp};
use nonesuch_server::listen::warn_of_missing_addresses;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

/// Default size of the caches of signatures and proofs, in bytes, for all threads together: 64 MiB.
pub const DEFAULT_SIGNATURE_CACHE_OCTETS: usize = 64 << 20;

/// Options of the sockets and threads of a server.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Addresses and ports for UDP and TCP. Port 0 selects a free port.
    pub listen: Vec<SocketAddr>,
    /// Addresses and ports for DNS over TLS. They are ignored without a `tls_identity`.
    pub listen_tls: Vec<SocketAddr>,
    /// The certificate and private key for [`ServerOptions::listen_tls`].
    pub tls_identity: Option<IdentitySlot>,
    /// UDP threads for each address; at least 1.
    pub workers: usize,
    /// CPUs to which the workers are bound in turn. If empty, workers are not bound.
    pub cpus: Vec<usize>,
    /// Limits and timeouts of connections.
    pub tcp: TcpOptions,
    /// Size of the caches of signatures and proofs, in bytes, for all threads together. The memory
    /// is used only for zones with online signatures or proofs.
    pub signature_cache_octets: usize,
    /// Seconds added to the clock for the times of online signatures, modulo 2^32. It is 0 except
    /// in experiments.
    pub clock_shift: u32,
}

/// Bound sockets that do not answer yet. Binding may need privileges; answering does not.
#[derive(Debug)]
pub struct BoundSockets {
    /// Sockets for UDP and TCP, for each address.
    udp_and_tcp: Vec<Listeners>,
    tls: Vec<TlsListener>,
    options: ServerOptions,
}

/// A socket for DNS over TLS.
#[derive(Debug)]
struct TlsListener {
    socket: TcpListener,
    local_addr: SocketAddr,
    identity: IdentitySlot,
}

impl BoundSockets {
    /// Binds the sockets.
    ///
    /// # Errors
    /// Returns an error that names the address to which no socket can be bound. An address that no
    /// interface has is not an error; it is logged.
    pub fn bind(options: &ServerOptions) -> Result<Self, NetError> {
        warn_of_missing_addresses(options.listen.iter().chain(&options.listen_tls));
        let udp_and_tcp = options.listen.iter().map(|address| bind(*address, options.workers));
        let udp_and_tcp = udp_and_tcp.collect::<Result<Vec<_>, _>>()?;
        let mut tls = Vec::new();
        if let Some(identity) = &options.tls_identity {
            for address in &options.listen_tls {
                let socket = bind_tcp(*address)?;
                let local_addr = socket.local_addr().unwrap_or(*address);
                tls.push(TlsListener { socket, local_addr, identity: identity.clone() });
            }
        }
        Ok(Self { udp_and_tcp, tls, options: options.clone() })
    }

    /// Returns the addresses for UDP and TCP.
    #[must_use]
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.udp_and_tcp.iter().map(|listeners| listeners.local_addr).collect()
    }

    /// Returns the addresses for TLS.
    #[must_use]
    pub fn tls_addresses(&self) -> Vec<SocketAddr> {
        self.tls.iter().map(|listener| listener.local_addr).collect()
    }

    /// Starts the threads that answer queries.
    ///
    /// # Errors
    /// Returns an error if a thread cannot be started.
    pub fn start(self, context: &ServerContext) -> Result<Server, NetError> {
        let (addresses, tls_addresses) = (self.addresses(), self.tls_addresses());
        let workers = self.options.workers;
        // Each UDP worker and each TCP or TLS listener has an online signer.
        let signer_count = self.udp_and_tcp.len() * (workers + 1) + self.tls.len();
        let counters: Vec<Arc<SignerCounters>> = (0..signer_count).map(|_| Arc::default()).collect();
        let mut factory = ResponderFactory {
            context: context.clone(),
            cache_octets: self.options.signature_cache_octets / signer_count.max(1),
            clock_shift: self.options.clock_shift,
            counters: counters.clone(),
        };
        let udp_options =
            UdpOptions { cpus: self.options.cpus.clone(), heartbeats: context.heartbeats.clone() };
        let tcp_options = TcpOptions { heartbeats: context.heartbeats.clone(), ..self.options.tcp.clone() };
        let mut server =
            Server { addresses, tls_addresses, counters, udp: Vec::new(), tcp: Vec::new(), tls: Vec::new() };
        for listeners in self.udp_and_tcp {
            let local = listeners.local_addr;
            let (for_udp, for_tcp) = (factory.split_off(workers), factory.split_off(1));
            let create = move |worker| for_udp.create_responder(Transport::Udp, local, worker);
            server.udp.push(udp::serve(listeners.udp, &udp_options, create)?);
            let create = move || for_tcp.create_responder(Transport::Tcp, local, 0);
            server.tcp.push(tcp::serve(listeners.tcp, &tcp_options, create)?);
        }
        for TlsListener { socket, local_addr, identity } in self.tls {
            let for_tls = factory.split_off(1);
            let create = move || for_tls.create_responder(Transport::Tls, local_addr, 0);
            server.tls.push(tcp::serve_tls(socket, &identity, &tcp_options, create)?);
        }
        Ok(server)
    }
}

/// A running server. It stops when it is dropped.
#[derive(Debug)]
pub struct Server {
    addresses: Vec<SocketAddr>,
    tls_addresses: Vec<SocketAddr>,
    counters: Vec<Arc<SignerCounters>>,
    udp: Vec<UdpServer>,
    tcp: Vec<TcpServer>,
    tls: Vec<TcpServer>,
}

impl Server {
    /// Returns the addresses for UDP and TCP.
    #[must_use]
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Returns the addresses for TLS.
    #[must_use]
    pub fn tls_addresses(&self) -> &[SocketAddr] {
        &self.tls_addresses
    }

    /// Returns the counters of datagrams and system calls, summed over all workers.
    #[must_use]
    pub fn udp_counters(&self) -> UdpCounters {
        self.udp.iter().map(|udp| udp.statistics().total()).sum()
    }

    /// Returns the counters of TCP connections.
    #[must_use]
    pub fn tcp_counters(&self) -> TcpCounters {
        self.tcp.iter().map(|tcp| tcp.statistics().total()).sum()
    }

    /// Returns the counters of TLS connections; `None` if the server does not listen for TLS.
    #[must_use]
    pub fn tls_counters(&self) -> Option<TcpCounters> {
        (!self.tls.is_empty()).then(|| self.tls.iter().map(|tls| tls.statistics().total()).sum())
    }

    /// Returns the counters of online signatures and proofs, summed over all threads.
    #[must_use]
    pub fn online_counters(&self) -> OnlineCounters {
        SignerCounters::sum(&self.counters)
    }

    /// Stops answering and waits until all threads end.
    ///
    /// # Errors
    /// Returns an error if a thread panicked.
    pub fn stop(self) -> Result<(), NetError> {
        let mut result = Ok(());
        // Begins to stop all of them first, because each may wait for a client that is slow to read
        // its last response.
        self.tcp.iter().chain(&self.tls).for_each(TcpServer::begin_stop);
        let stopped = self.udp.into_iter().map(UdpServer::stop);
        let stopped = stopped.chain(self.tcp.into_iter().chain(self.tls).map(TcpServer::stop));
        for stopped in stopped {
            result = result.and(stopped);
        }
        result
    }
}

/// Creates the responders of all threads.
#[derive(Clone)]
struct ResponderFactory {
    context: ServerContext,
    /// Size of each cache, in bytes.
    cache_octets: usize,
    clock_shift: u32,
    /// Counters that no responder uses yet, one for each responder.
    counters: Vec<Arc<SignerCounters>>,
}

impl ResponderFactory {
    /// Returns a factory for `responder_count` responders, with the next counters.
    fn split_off(&mut self, responder_count: usize) -> Self {
        let rest = self.counters.split_off(responder_count.min(self.counters.len()));
        let counters = std::mem::replace(&mut self.counters, rest);
        Self { counters, ..self.clone() }
    }

    fn create_responder(&self, transport: Transport, local: SocketAddr, index: usize) -> Responder {
        let signer = OnlineSigner::new(self.cache_octets, Arc::clone(&self.counters[index]));
        Responder::new(&self.context, transport, local, signer, self.clock_shift)
    }
}
