//! Errors of network namespaces.

use std::io;

/// Why a network namespace or a TUN device cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NamespaceError {
    /// The process lacks a capability.
    #[error(
        "no permission to use a network namespace: CAP_SYS_ADMIN and CAP_NET_ADMIN are missing; run the program as root, \
         or in a user namespace: unshare --user --map-root-user COMMAND"
    )]
    Denied,
    /// The kernel cannot create a network namespace.
    #[error(
        "cannot create a network namespace: {source}; the kernel needs CONFIG_NET_NS, and /proc must be mounted and \
         /proc/sys/user/max_net_namespaces large enough"
    )]
    Create {
        /// The error of the system.
        source: io::Error,
    },
    /// A thread cannot enter a network namespace.
    #[error("cannot enter a network namespace: {source}")]
    Enter {
        /// The error of the system.
        source: io::Error,
    },
    /// The TUN driver is missing, or this user may not use it.
    #[error(
        "/dev/net/tun: cannot be opened: {source}; load the kernel module (modprobe tun), and permit this user to read \
         and write the device"
    )]
    Device {
        /// The error of the system.
        source: io::Error,
    },
    /// The system rejected a setting.
    #[error("cannot configure {what} in a network namespace: {source}; the kernel must have IPv4 and IPv6")]
    Configure {
        /// The object that was configured.
        what: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// There is no thread for the namespace.
    #[error("cannot start a thread in a network namespace: {source}; raise the limit on threads")]
    Thread {
        /// The error of the system.
        source: io::Error,
    },
}

impl NamespaceError {
    /// Returns the error for a namespace that cannot be created.
    pub(super) fn create(source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::Denied,
            _ => Self::Create { source },
        }
    }

    /// Returns the error for a namespace that cannot be entered.
    pub(super) fn enter(source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::PermissionDenied => Self::Denied,
            _ => Self::Enter { source },
        }
    }

    /// Whether this system or this user has no network namespaces or TUN devices at all, so that a
    /// test that needs them has to be skipped.
    #[must_use]
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Denied | Self::Create { .. } | Self::Device { .. })
    }
}
