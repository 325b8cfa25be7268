//! System calls for network namespaces, user namespaces and TUN devices.

use std::ffi::CStr;
use std::fs::{self, File};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd as _, BorrowedFd};
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use libc::{c_int, c_short};

/// Returns the error of the last system call if `result` is negative.
fn check(result: c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Moves the calling thread to a new network namespace (unshare(2)).
pub(crate) fn unshare_network() -> io::Result<()> {
    // SAFETY: no memory is passed. Open descriptors keep their namespace; only sockets that this
    // thread opens later are in the new one.
    check(unsafe { libc::unshare(libc::CLONE_NEWNET) })
}

/// Moves the calling thread to a network namespace (setns(2)).
pub(crate) fn enter_network(namespace: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no memory is passed, and `namespace` is open during the call. The kernel rejects a
    // descriptor of another kind.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) })
}

/// Makes `device`, which is a new descriptor of /dev/net/tun, the TUN interface `name` in the
/// namespace of the calling thread. Packets have no additional header.
pub(crate) fn attach_tun(device: &File, name: &CStr) -> io::Result<()> {
    // SAFETY: ifreq consists of integers and pointers, for which all zeroes is a valid value.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    let octets = name.to_bytes();
    // The array stays terminated by a zero.
    if octets.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (place, &octet) in request.ifr_name.iter_mut().zip(octets) {
        *place = octet as _;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as c_short;
    // SAFETY: TUNSETIFF reads and writes an ifreq, to which the pointer points during the call.
    check(unsafe { libc::ioctl(device.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })
}

/// Returns the index of an interface in the namespace of the calling thread.
pub(crate) fn interface_index(name: &CStr) -> io::Result<u32> {
    // SAFETY: `name` is a terminated string that is valid for the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index),
    }
}

/// Makes `command` start its program in a new user namespace, in which the user and group of this
/// process are 0 and the program has all capabilities (user_namespaces(7)).
pub(crate) fn enter_user_namespace(command: &mut Command) {
    // SAFETY: these calls always succeed and pass no memory.
    let (user, group) = unsafe { (libc::geteuid(), libc::getegid()) };
    let (user_map, group_map) = (format!("0 {user} 1"), format!("0 {group} 1"));
    let enter = move || {
        // SAFETY: no memory is passed. After fork(2), the process has only this thread, which the
        // call requires.
        check(unsafe { libc::unshare(libc::CLONE_NEWUSER) })?;
        // Without this, the kernel does not accept the map of groups from an unprivileged process.
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", &user_map)?;
        fs::write("/proc/self/gid_map", &group_map)
    };
    // SAFETY: between fork(2) and execve(2), `enter` only calls unshare, open, write and close. The
    // paths are short enough for the buffer on the stack that the standard library uses for them,
    // the maps were formatted before, and an error of the system needs no memory.
    unsafe { command.pre_exec(enter) };
}
