//! DNS over TLS of a resolver: its listeners, and its identity, which a reload replaces.

use crate::certificate;
use crate::config::Tls;
use nonesuch_net::tls::{IdentitySlot, ServerIdentity};
use nonesuch_net::{NetError, bind_tcp};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Mutex, PoisonError};

/// DNS over TLS of a running resolver.
pub(super) struct TlsService {
    /// The addresses that it listens on.
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) identity: IdentitySlot,
    /// The current settings.
    settings: Mutex<Tls>,
}

impl TlsService {
    /// Binds the listeners.
    pub(super) fn bind(tls: &Tls, identity: ServerIdentity) -> Result<(Self, Vec<TcpListener>), NetError> {
        let (mut addresses, mut listeners) = (Vec::new(), Vec::new());
        for address in &tls.listen {
            let listener = bind_tcp(*address)?;
            addresses.push(listener.local_addr().unwrap_or(*address));
            listeners.push(listener);
        }
        let (identity, settings) = (IdentitySlot::new(identity), Mutex::new(tls.clone()));
        Ok((Self { addresses, identity, settings }, listeners))
    }

    /// Replaces the identity for new connections, unless the settings name none.
    pub(super) fn replace(&self, new: &Tls, identity: Option<ServerIdentity>) {
        *self.settings.lock().unwrap_or_else(PoisonError::into_inner) = new.clone();
        if let Some(identity) = identity {
            self.identity.replace(identity);
        }
    }

    /// Warns of a certificate that has expired or expires soon.
    pub(super) fn warn_of_certificate(&self) {
        let settings = self.settings.lock().unwrap_or_else(PoisonError::into_inner).clone();
        certificate::warn_of_expiry(&settings);
    }
}
