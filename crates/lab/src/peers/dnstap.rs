//! Configuration lines with which a resolver sends its exchanges with servers to a dnstap socket.

use super::info::Peer;
use std::path::Path;

impl Peer {
    /// Lines for [`Setup::lines`](super::Setup::lines) with which a resolver sends its queries to servers and
    /// their responses to the Unix socket `socket`, on which the recorder listens. `None` if the peer cannot.
    #[must_use]
    pub fn dnstap_lines(self, socket: &Path) -> Option<String> {
        let socket = socket.display();
        match self {
            Self::Unbound => Some(format!(
                "dnstap:\n  dnstap-enable: yes\n  dnstap-socket-path: \"{socket}\"\n  \
                 dnstap-log-resolver-query-messages: yes\n  dnstap-log-resolver-response-messages: yes\n"
            )),
            Self::BindResolver => {
                Some(format!("  dnstap {{ resolver; }};\n  dnstap-output unix \"{socket}\";\n"))
            }
            Self::Bind
            | Self::Knot
            | Self::Nsd
            | Self::PowerDns
            | Self::CoreDns
            | Self::KnotResolver
            | Self::PowerDnsRecursor => None,
        }
    }
}
