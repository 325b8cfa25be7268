//! Other servers that a zone names: none of them is this one, and all can be reached at a port.

use super::model::Server;
use super::reader::Section;
use nonesuch_authoritative::acl::Remote;
use std::net::SocketAddr;

/// Addresses that the server itself answers at.
#[derive(Clone, Debug, Default)]
pub(super) struct Own {
    plain: Vec<SocketAddr>,
    tls: Vec<SocketAddr>,
}

impl Own {
    pub(super) fn of(server: &Server) -> Self {
        Self { plain: server.listen.clone(), tls: server.listen_tls.clone() }
    }

    /// Whether what is sent to `remote` comes to this server. Of addresses that stand for all of the host, only those of loopback
    /// are known to be among them.
    fn is_at(&self, remote: &Remote) -> bool {
        let listen = if remote.tls.is_some() { &self.tls } else { &self.plain };
        let (ip, port) = (remote.address.ip().to_canonical(), remote.address.port());
        listen.iter().any(|own| {
            let all = own.ip().is_unspecified() && own.is_ipv4() == ip.is_ipv4() && ip.is_loopback();
            own.port() == port && (own.ip() == ip || all)
        })
    }
}

/// Reports servers of the list `key` that cannot be asked or told.
pub(super) fn check(key: &str, remotes: &[Remote], section: &Section<'_, '_>) {
    let own = section.context().own();
    for remote in remotes {
        let address = remote.address;
        if address.port() == 0 {
            section.fault(key, format!("{address}: 0 is no port: write another, or none"));
        } else if own.is_at(remote) {
            let whom =
                if key == "primaries" { "the zone would come from itself" } else { "it need not be told" };
            section.fault(key, format!("{address} is this server, and {whom}: name another one"));
        }
    }
}
