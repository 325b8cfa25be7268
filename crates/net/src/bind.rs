//! Opens the sockets of one address: a group of UDP sockets, one for each worker, and a TCP
//! listener.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::AsFd;

use socket2::{Domain, Protocol, Socket, Type};

use crate::error::{NetError, Transport};
use crate::sys;

/// Size of the receive buffer and of the send buffer of a UDP socket in the kernel, in octets. The
/// system reduces it to its own limit.
const UDP_BUFFER_SIZE: usize = 4 << 20;
/// Maximum number of connections that wait in the kernel to be accepted.
const TCP_BACKLOG: i32 = 4096;
/// Maximum number of ports to try for port 0.
const PORT_ATTEMPTS: usize = 32;

/// The sockets of one address. They are bound, so queries that arrive before the server starts wait
/// in the kernel.
#[derive(Debug)]
pub struct Listeners {
    /// One socket for each worker. The kernel distributes the clients over these sockets.
    pub udp: Vec<UdpSocket>,
    /// The TCP listener on the same port.
    pub tcp: TcpListener,
    /// The address, with the chosen port.
    pub local_addr: SocketAddr,
}

/// Binds `workers` UDP sockets and one TCP listener to `address`. Port 0 selects a port that is
/// free for both.
///
/// `[::]` covers only IPv6; bind `0.0.0.0` in addition for IPv4. An address that no interface has
/// is bound too: queries arrive as soon as an interface has it ([`has_address`]).
///
/// # Errors
/// - [`NetError::NoWorkers`] if `workers` is 0.
/// - [`NetError::AddressInUse`] if another process uses the address, even if that process permits
///   sharing it (`SO_REUSEPORT`). Otherwise, a second server would silently receive half of the
///   queries.
/// - [`NetError::NoFreePort`] if no free port is found for port 0.
/// - Another [`NetError`] if the system cannot open a socket.
pub fn bind(address: SocketAddr, workers: usize) -> Result<Listeners, NetError> {
    if workers == 0 {
        return Err(NetError::NoWorkers);
    }
    if address.port() != 0 {
        return bind_port(address, workers);
    }
    for _ in 0..PORT_ATTEMPTS {
        match bind_port(address, workers) {
            Err(NetError::AddressInUse { .. }) => {}
            done => return done,
        }
    }
    Err(NetError::NoFreePort { address })
}

/// Binds only a TCP listener, for example for TLS. Port 0 selects a free port.
///
/// # Errors
/// As [`bind`], except [`NetError::NoWorkers`] and [`NetError::NoFreePort`].
pub fn bind_tcp(address: SocketAddr) -> Result<TcpListener, NetError> {
    open_tcp(address).map_err(|source| NetError::open(address, Transport::Tcp, source))
}

/// Prevents the fragmentation of the datagrams of a UDP socket with this address. Routers drop a datagram
/// that exceeds the path MTU (RFC 791 section 2.3). The kernel rejects a datagram that exceeds the MTU of
/// the interface.
///
/// # Errors
/// The system rejects the option.
pub fn forbid_fragments(socket: &impl AsFd, address: SocketAddr) -> io::Result<()> {
    match address {
        SocketAddr::V4(_) => {
            sys::set_option(socket, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)
        }
        SocketAddr::V6(_) => sys::set_option(socket, libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, 1),
    }
}

/// Whether an interface of this machine has the address.
#[must_use]
pub fn has_address(address: IpAddr) -> bool {
    let domain = Domain::for_address((address, 0).into());
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP));
    socket.is_ok_and(|socket| socket.bind(&SocketAddr::from((address, 0)).into()).is_ok())
}

/// Binds `socket`, even if no interface has the address yet: at the start of a machine, an
/// interface may get its address late, and some addresses move between machines.
fn bind_socket(socket: &Socket, address: SocketAddr) -> io::Result<()> {
    match socket.bind(&address.into()) {
        Err(error) if error.kind() == io::ErrorKind::AddrNotAvailable => {
            // This option also applies to IPv6 sockets (ip(7)).
            socket.set_freebind_v4(true)?;
            socket.bind(&address.into())
        }
        done => done,
    }
}

/// Binds both transports. The TCP listener comes first, because it cannot be shared: of two servers
/// that start at the same time, one fails here.
fn bind_port(address: SocketAddr, workers: usize) -> Result<Listeners, NetError> {
    let tcp = open_tcp(address).map_err(|source| NetError::open(address, Transport::Tcp, source))?;
    let local_addr = tcp.local_addr().map_err(|source| NetError::open(address, Transport::Tcp, source))?;
    let udp_error = |source| NetError::open(local_addr, Transport::Udp, source);
    probe_udp(local_addr).map_err(udp_error)?;
    let udp = (0..workers).map(|_| open_udp(local_addr)).collect::<io::Result<_>>().map_err(udp_error)?;
    Ok(Listeners { udp, tcp, local_addr })
}

/// Binds without `SO_REUSEPORT` and closes the socket again. Fails if any other socket uses the
/// port.
fn probe_udp(address: SocketAddr) -> io::Result<()> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    bind_socket(&socket, address)
}

fn open_udp(address: SocketAddr) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_port(true)?;
    socket.set_recv_buffer_size(UDP_BUFFER_SIZE)?;
    socket.set_send_buffer_size(UDP_BUFFER_SIZE)?;
    sys::ignore_path_mtu(&socket, address)?;
    if address.ip().is_unspecified() {
        sys::receive_local_address(&socket, address)?;
    }
    bind_socket(&socket, address)?;
    Ok(socket.into())
}

fn open_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // Connections of an earlier process in TIME_WAIT do not prevent a new listener, but an active
    // listener still does.
    socket.set_reuse_address(true)?;
    bind_socket(&socket, address)?;
    socket.listen(TCP_BACKLOG)?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn loopbacks() -> [SocketAddr; 2] {
        ["127.0.0.1:0", "[::1]:0"].map(|text| text.parse().expect("an address"))
    }

    #[test]
    fn port_zero_gives_one_port_for_both_transports() {
        for address in loopbacks() {
            let listeners = bind(address, 3).expect("bound");
            assert_ne!(listeners.local_addr.port(), 0);
            assert_eq!(listeners.tcp.local_addr().expect("bound"), listeners.local_addr);
            assert_eq!(listeners.udp.len(), 3);
            for socket in &listeners.udp {
                assert_eq!(socket.local_addr().expect("bound"), listeners.local_addr);
            }
        }
    }

    #[test]
    fn a_second_server_is_refused() {
        for address in loopbacks() {
            let first = bind(address, 2).expect("bound");
            let error = bind(first.local_addr, 2).expect_err("the address is taken");
            assert!(matches!(error, NetError::AddressInUse { address, .. } if address == first.local_addr));
        }
    }

    #[test]
    fn a_shared_udp_group_alone_is_refused() {
        let Listeners { udp, tcp, local_addr } = bind(loopbacks()[0], 2).expect("bound");
        drop(tcp);
        let error = bind(local_addr, 1).expect_err("the group still holds the port");
        assert!(matches!(error, NetError::AddressInUse { transport: Transport::Udp, .. }), "{error}");
        drop(udp);
    }

    #[test]
    fn an_address_of_no_interface_is_bound_before_it_comes() {
        // Addresses for documentation (RFC 5737, RFC 3849), which no interface has.
        for text in ["192.0.2.1:0", "[2001:db8::1]:0"] {
            let address: SocketAddr = text.parse().expect("an address");
            assert!(!has_address(address.ip()), "{text}");
            let listeners = bind(address, 2).expect("bound");
            assert_eq!((listeners.local_addr.ip(), listeners.udp.len()), (address.ip(), 2));
            assert!(matches!(bind(listeners.local_addr, 1), Err(NetError::AddressInUse { .. })), "{text}");
        }
        assert!(loopbacks().iter().all(|address| has_address(address.ip())));
    }

    #[test]
    fn no_workers_is_an_error() {
        assert!(matches!(bind(loopbacks()[0], 0), Err(NetError::NoWorkers)));
    }
}
