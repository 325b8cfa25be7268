//! Network namespaces with TUN devices (network_namespaces(7), the kernel's `tuntap.rst`), for
//! simulated networks in experiments and tests.
//!
//! A [`NetworkNamespace`] has its own interfaces, addresses, routes and ports. A [`Tun`] is an
//! interface in it whose packets this process receives and sends. Nothing outside the namespace
//! changes: only new namespaces are configured. A namespace and its interfaces exist as long as a
//! handle, a thread, a process or a socket in it, so they end with the processes that use them.
//!
//! A namespace requires the capabilities CAP_SYS_ADMIN and CAP_NET_ADMIN. Root has them, and so has
//! a program in a user namespace: [`in_user_namespace`], or `unshare --user --map-root-user`.

mod error;
mod netlink;

use std::ffi::CStr;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::panic::resume_unwind;
use std::process::Command;
use std::thread;

use crate::sys::namespace as sys;
pub use error::NamespaceError;
use netlink::Netlink;

/// Name of the TUN interface in each namespace.
const INTERFACE: &CStr = c"path0";
/// Index of the loopback interface in each namespace: it is the first interface.
const LOOPBACK: u32 = 1;
/// Number of packets that wait in a TUN device for this process. The kernel drops further packets.
const TUN_QUEUE: u32 = 10_000;

/// A network namespace.
#[derive(Debug)]
pub struct NetworkNamespace {
    file: File,
}

impl NetworkNamespace {
    /// Creates a namespace. Its only interface is the loopback interface, which is up.
    ///
    /// # Errors
    /// [`NamespaceError::Denied`] without the capability CAP_SYS_ADMIN, and
    /// [`NamespaceError::Create`] if the kernel cannot create a namespace.
    pub fn new() -> Result<Self, NamespaceError> {
        on_own_thread(|| {
            sys::unshare_network().map_err(NamespaceError::create)?;
            let file = File::open("/proc/thread-self/ns/net").map_err(NamespaceError::create)?;
            let configure = |source| NamespaceError::Configure { what: "the loopback interface", source };
            Netlink::open().and_then(|netlink| netlink.set_up(LOOPBACK)).map_err(configure)?;
            Ok(Self { file })
        })?
    }

    /// Runs `action` on a new thread in the namespace and waits for its end. Sockets and child
    /// processes that `action` creates stay in the namespace. A panic of `action` is passed on.
    ///
    /// # Errors
    /// [`NamespaceError::Denied`] or [`NamespaceError::Enter`] if the system does not permit the
    /// thread to enter the namespace, and [`NamespaceError::Thread`] if there is no thread.
    pub fn run<T: Send>(&self, action: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
        on_own_thread(|| {
            sys::enter_network(self.file.as_fd()).map_err(NamespaceError::enter)?;
            Ok(action())
        })?
    }

    /// Opens a TUN device in the namespace. Its interface `path0` is up, has no address, and
    /// accepts packets of at most `mtu` octets: at least 1280, or it cannot have an IPv6 address.
    ///
    /// # Errors
    /// [`NamespaceError::Device`] if /dev/net/tun cannot be opened,
    /// [`NamespaceError::Configure`] if the interface cannot be created or configured, for example
    /// because the kernel has no IPv6, and the errors of [`run`](Self::run).
    pub fn open_tun(&self, mtu: u16) -> Result<Tun, NamespaceError> {
        self.run(|| {
            let mut options = fs::OpenOptions::new();
            let options = options.read(true).write(true).custom_flags(libc::O_NONBLOCK);
            let file = options.open("/dev/net/tun").map_err(|source| NamespaceError::Device { source })?;
            let configure = |source| NamespaceError::Configure { what: "a TUN interface", source };
            let interface = create_interface(&file, mtu).map_err(configure)?;
            Ok(Tun { file, interface })
        })?
    }

    /// Gives the interface an address. The addresses in the network of `prefix` bits are reachable
    /// through the interface.
    ///
    /// # Errors
    /// [`NamespaceError::Configure`] if the system rejects the address, for example because the
    /// interface has it already, and the errors of [`run`](Self::run).
    pub fn add_address(
        &self,
        interface: Interface,
        address: IpAddr,
        prefix: u8,
    ) -> Result<(), NamespaceError> {
        let configure = |source| NamespaceError::Configure { what: "an address", source };
        self.run(|| Netlink::open()?.add_address(interface.0, address, prefix))?.map_err(configure)
    }

    /// Makes the network of `prefix` bits around `address` reachable through the interface.
    ///
    /// # Errors
    /// [`NamespaceError::Configure`] if the system rejects the route, for example because it
    /// exists, and the errors of [`run`](Self::run).
    pub fn add_route(&self, interface: Interface, address: IpAddr, prefix: u8) -> Result<(), NamespaceError> {
        let configure = |source| NamespaceError::Configure { what: "a route", source };
        self.run(|| Netlink::open()?.add_route(interface.0, address, prefix))?.map_err(configure)
    }

    /// Returns the number of packets that the kernel has dropped because the TUN device of this
    /// namespace was not read in time.
    ///
    /// # Errors
    /// [`NamespaceError::Configure`] if the namespace has no TUN device, and the errors of
    /// [`run`](Self::run).
    pub fn dropped_packets(&self) -> Result<u64, NamespaceError> {
        let dropped = || {
            let table = fs::read_to_string("/proc/thread-self/net/dev")?;
            dropped_in(&table).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
        };
        let error = |source| NamespaceError::Configure { what: "a TUN interface", source };
        self.run(dropped)?.map_err(error)
    }
}

/// Reads the number of dropped packets from `/proc/net/dev` (proc_pid_net(5)): the fourth of the
/// eight numbers for sending, which follow eight numbers for receiving.
fn dropped_in(table: &str) -> Option<u64> {
    let mut lines = table.lines().filter_map(|line| line.split_once(':'));
    let (_, numbers) = lines.find(|(name, _)| Ok(name.trim()) == INTERFACE.to_str())?;
    numbers.split_ascii_whitespace().nth(8 + 3)?.parse().ok()
}

/// Creates the interface of a TUN device in the namespace of the calling thread.
fn create_interface(device: &File, mtu: u16) -> io::Result<Interface> {
    sys::attach_tun(device, INTERFACE)?;
    let index = sys::interface_index(INTERFACE)?;
    let netlink = Netlink::open()?;
    netlink.configure_link(index, mtu.into(), TUN_QUEUE)?;
    netlink.set_up(index)?;
    Ok(Interface(index))
}

/// An interface of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interface(u32);

impl Interface {
    /// The loopback interface. A program in the namespace can use all addresses in the network of
    /// each of its addresses.
    pub const LOOPBACK: Self = Self(LOOPBACK);
}

/// A TUN device: an interface whose packets this process receives and sends. They are IPv4 or IPv6
/// packets without a link header.
#[derive(Debug)]
pub struct Tun {
    file: File,
    interface: Interface,
}

impl Tun {
    /// The interface in the namespace.
    #[must_use]
    pub fn interface(&self) -> Interface {
        self.interface
    }

    /// Receives a packet that a program in the namespace sends, without waiting. Returns its number
    /// of octets; `None` if no packet waits. A longer packet than `buffer` is truncated.
    ///
    /// # Errors
    /// Errors of read(2), for example if the interface is down.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        loop {
            match (&self.file).read(buffer) {
                Ok(octets) => return Ok(Some(octets)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a packet to the programs in the namespace.
    ///
    /// # Errors
    /// Errors of write(2), for example if `packet` is no IP packet or the interface is down.
    pub fn send(&self, packet: &[u8]) -> io::Result<()> {
        (&self.file).write(packet).map(|_| ())
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Makes `command` start its program in a new user namespace. There the program appears to run as
/// root and may create network namespaces, but it has no more rights than this process on files and
/// on everything that exists. Starting the program fails if the system does not permit user
/// namespaces to unprivileged users.
pub fn in_user_namespace(command: &mut Command) {
    sys::enter_user_namespace(command);
}

/// Runs `action` on a thread with the name of the calling thread, which ends with `action`, so that
/// no other code runs in the namespace that it enters.
fn on_own_thread<T: Send>(action: impl FnOnce() -> T + Send) -> Result<T, NamespaceError> {
    let name = thread::current().name().unwrap_or("namespace").to_owned();
    thread::scope(|scope| {
        let thread = thread::Builder::new().name(name).spawn_scoped(scope, action);
        let thread = thread.map_err(|source| NamespaceError::Thread { source })?;
        thread.join().map_err(|panic| resume_unwind(panic))
    })
}

#[cfg(test)]
mod tests;
