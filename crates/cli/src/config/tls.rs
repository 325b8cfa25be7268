//! The keys of DNS over TLS (RFC 7858), which `serve` and `resolve` have in common.

use super::keys::{Row, default, example, key};
use super::limits::UP_TO_HOUR;
use super::section::Section;
use super::server::warn_if_world_readable;
use super::sources::FileRole;
use super::values::{duration_text, file, list, number, seconds, socket_address};
use nonesuch_net::tcp::TcpOptions;
use nonesuch_server::acl::TLS_PORT;
use nonesuch_server::reply_options::ReplySettings;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Settings of DNS over TLS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tls {
    pub(crate) listen: Vec<SocketAddr>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
    /// Padding block of responses over TLS, in octets (RFC 8467); 0 for no padding.
    pub(crate) padding_block: u16,
}

/// Files of the identity for DNS over TLS.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TlsFiles<'p> {
    pub(crate) certificate: &'p Path,
    pub(crate) key: &'p Path,
}

/// Settings that have those of DNS over TLS.
pub(super) trait HasTls {
    fn tls(&mut self) -> &mut Tls;
}

/// The keys for addresses and files.
pub(super) fn listener_rows<S: HasTls + 'static>() -> [Row<S>; 6] {
    [
        Row::Text(
            "
# Listen addresses for DNS over TLS (RFC 7858) (restart). Default port: 853. With addresses,
# tls-certificate and tls-key are required.",
        ),
        key("listen-tls", list("addresses", socket_address(TLS_PORT)), default("[]"), |s: &mut S, v| {
            s.tls().listen = v;
        }),
        Row::Text("# Certificate of this server, followed by its intermediate certificates, in PEM."),
        key(
            "tls-certificate",
            file(FileRole::Tls),
            example("/etc/nonesuch/tls/certificate.pem"),
            |s: &mut S, v| {
                s.tls().certificate = Some(v);
            },
        ),
        Row::Text("# Private key of the certificate, in PEM. A reload reads certificate and key again."),
        key("tls-key", file(FileRole::Tls), example("/etc/nonesuch/tls/key.pem"), |s: &mut S, v| {
            s.tls().key = Some(v);
        }),
    ]
}

/// The key for padding.
pub(super) fn padding_rows<S: HasTls + 'static>() -> [Row<S>; 2] {
    [
        Row::Text(
            "
# Pad responses over TLS to a multiple of this number of octets (RFC 8467) if the query is padded: 0
# to 4096; 0 disables padding.",
        ),
        key(
            "padding-block",
            number(0..=4096),
            default(ReplySettings::default().padding_block),
            |s: &mut S, v| {
                s.tls().padding_block = v;
            },
        ),
    ]
}

/// The key in `[limits]`, with the time in seconds.
pub(super) fn handshake_row<S: 'static>(set: fn(&mut S, u64)) -> Row<S> {
    let time = TcpOptions::default().handshake_timeout;
    key("tls-handshake", seconds(UP_TO_HOUR), default(duration_text(time.as_secs())), set)
}

impl Tls {
    /// The certificate and the key, if both are set.
    pub(crate) fn files(&self) -> Option<TlsFiles<'_>> {
        let (certificate, key) = (self.certificate.as_deref()?, self.key.as_deref()?);
        Some(TlsFiles { certificate, key })
    }

    /// Reports contradictions between the keys. `plain` has the addresses of `listen`.
    pub(super) fn check(&self, plain: &[SocketAddr], root: &Section<'_>) {
        self.check_files(root);
        check_addresses(plain, &self.listen, root);
    }

    fn check_files(&self, root: &Section<'_>) {
        let (has_certificate, has_key) = (root.has("tls-certificate"), root.has("tls-key"));
        for (missing, other) in [("tls-key", "tls-certificate"), ("tls-certificate", "tls-key")] {
            if !root.has(missing) && root.has(other) {
                let message = format!("{missing} is missing: a certificate needs its key; set both");
                root.report_fault(other, message);
            }
        }
        if !self.listen.is_empty() && !has_certificate && !has_key {
            let message = "DNS over TLS needs tls-certificate and tls-key: set both, or leave listen-tls out";
            root.report_fault("listen-tls", message);
        }
        if let Some(TlsFiles { key, .. }) = self.files() {
            warn_if_world_readable(root, "tls-key", key);
        }
        if has_certificate && has_key && !root.has_items("listen-tls") {
            let message = "the server does not listen for TLS: add listen-tls, for example \
                [\"192.0.2.1:853\"], or leave certificate and key out";
            root.warn("tls-certificate", message);
        }
    }
}

/// Reports a missing address, and addresses that are listed twice.
fn check_addresses(listen: &[SocketAddr], listen_tls: &[SocketAddr], root: &Section<'_>) {
    // Faults of the given addresses have already been reported.
    let is_reported = root.has_items("listen") || root.has_items("listen-tls");
    if listen.is_empty() && listen_tls.is_empty() && !is_reported {
        root.report_fault("listen", "no address to listen on: name one, for example \"192.0.2.1:53\"");
    }
    for (key, addresses) in [("listen", listen), ("listen-tls", listen_tls)] {
        let mut sorted = addresses.to_vec();
        sorted.sort_unstable();
        if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1] && pair[0].port() != 0) {
            root.report_fault(key, format!("{} is listed twice: leave one out", twice[0]));
        }
    }
    let has_port = |address: &&SocketAddr| address.port() != 0;
    if let Some(both) = listen.iter().filter(has_port).find(|address| listen_tls.contains(address)) {
        let message = format!(
            "{both} is in listen too: DNS over TLS needs its own port, for \
                example 853"
        );
        root.report_fault("listen-tls", message);
    }
}
