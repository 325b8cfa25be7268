//! Check that prevents a server from running as root unintentionally.

use nix::unistd::Uid;
use std::net::SocketAddr;

/// The server would run as root on an address that the network can reach, and the configuration
/// does not permit this.
#[derive(Debug, thiserror::Error)]
#[error(
    "this command runs as root and would listen on {address}, which is reachable from the network: name \
        a user in the configuration (--config FILE, user = \"nonesuch\"), or set user = \"root\" to \
        run as root"
)]
pub(crate) struct RootError {
    address: SocketAddr,
}

/// Fails if the server would listen as root on an address other than loopback and the configuration
/// sets no `user`.
pub(crate) fn check_root(
    user: Option<&str>,
    addresses: impl IntoIterator<Item = SocketAddr>,
) -> Result<(), RootError> {
    let exposed = addresses.into_iter().find(|address| !address.ip().is_loopback());
    match exposed {
        Some(address) if user.is_none() && Uid::effective().is_root() => Err(RootError { address }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_serves_the_network_only_if_the_configuration_permits_it() {
        let (public, loopback) = ("192.0.2.1:53".parse().unwrap(), "127.0.0.1:53".parse().unwrap());
        assert!(check_root(None, [loopback]).is_ok());
        assert!(check_root(Some("nonesuch"), [public]).is_ok());
        assert_eq!(check_root(None, [loopback, public]).is_err(), Uid::effective().is_root());
    }
}
