//! Unbound.

use super::{PeerLocation, anchor_records, program_command, yes_or_no};
use crate::peers::error::PeerError;
use crate::peers::setup::{CLIENTS, ResolverSetup, Setup, StubZone, TlsIdentity, Upstream};
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;

/// The control socket, in the directory of the peer.
const CONTROL_SOCKET: &str = "control";
/// Maximum length of the path of a socket (unix(7)), without the final octet 0.
const SOCKET_PATH_MAX: usize = 107;
/// Server for all names without a stub zone. Nothing listens there.
const CLOSED_ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 1);

pub(super) fn prepare(setup: &Setup, location: &PeerLocation) -> Result<Command, PeerError> {
    let ResolverSetup { upstream, anchors, .. } = &setup.resolver;
    location.write("anchors", &anchor_records(anchors))?;
    if let Upstream::Roots { servers, .. } = upstream {
        location.write_hints(servers)?;
    }
    let config = location.write("unbound.conf", &configuration_text(setup, location))?;
    let mut command = program_command("unbound", setup);
    command.arg("-d").arg("-c").arg(config);
    Ok(command)
}

fn configuration_text(setup: &Setup, location: &PeerLocation) -> String {
    let ResolverSetup { upstream, anchors, negative_anchors, cache_mib, aggressive, source } =
        &setup.resolver;
    let (dir, address, octets) = (location.folder.display(), location.address, setup.udp_octets);
    // Unbound recommends an RRset cache of twice the size of the message cache.
    let message_cache = cache_mib / 3;
    let clients = CLIENTS.map(|network| format!("  access-control: {network} allow\n")).concat();
    let mut text = format!(
        "server:\n  interface: {}@{}\n  num-threads: {}\n  do-daemonize: no\n  use-syslog: no\n  logfile: \"\"\n  \
         username: \"\"\n  chroot: \"\"\n  directory: \"{dir}\"\n  pidfile: \"{dir}/unbound.pid\"\n  do-ip6: no\n  \
         do-not-query-localhost: no\n{clients}  outgoing-interface: {source}\n  \
         edns-buffer-size: {octets}\n  max-udp-size: {octets}\n  msg-cache-size: {message_cache}m\n  rrset-cache-size: {}m\n  \
         trust-anchor-signaling: no\n  aggressive-nsec: {}\n",
        address.ip(),
        address.port(),
        setup.workers,
        cache_mib - message_cache,
        yes_or_no(*aggressive)
    );
    text += if anchors.is_empty() {
        "  module-config: \"iterator\"\n"
    } else {
        "  module-config: \"validator iterator\"\n  trust-anchor-file: \"anchors\"\n"
    };
    for zone in negative_anchors {
        let _ = writeln!(text, "  domain-insecure: \"{zone}\"");
    }
    if let (Some(TlsIdentity { certificate, key }), Some(tls)) = (&setup.tls, location.tls) {
        let (ip, port, certificate, key) = (tls.ip(), tls.port(), certificate.display(), key.display());
        let _ = write!(
            text,
            "  interface: {ip}@{port}\n  tls-port: {port}\n  tls-service-pem: \"{certificate}\"\n  \
             tls-service-key: \"{key}\"\n"
        );
    }
    if matches!(upstream, Upstream::Roots { .. }) {
        text += "  root-hints: \"root.hints\"\n";
    }
    text += &setup.complete_lines();
    text += &control_section(&location.folder.join(CONTROL_SOCKET));
    text + &stub_sections(upstream)
}

/// The section of the control socket. Only users with access to the directory of the peer can connect.
fn control_section(socket: &Path) -> String {
    if socket.as_os_str().len() > SOCKET_PATH_MAX {
        return "remote-control:\n  control-enable: no\n".to_owned();
    }
    format!("remote-control:\n  control-enable: yes\n  control-interface: \"{}\"\n", socket.display())
}

/// The sections of the stub zones.
fn stub_sections(upstream: &Upstream) -> String {
    let Upstream::Stubs(zones) = upstream else { return String::new() };
    let root = StubZone { zone: ".".to_owned(), server: CLOSED_ADDRESS };
    let has_root = zones.iter().any(|stub| stub.zone == ".");
    let all = zones.iter().chain((!has_root).then_some(&root));
    all.fold(String::new(), |mut text, StubZone { zone, server }| {
        let (ip, port) = (server.ip(), server.port());
        let _ = write!(text, "stub-zone:\n  name: {zone}\n  stub-addr: {ip}@{port}\n  stub-prime: no\n");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::super::PeerLocation;
    use super::*;

    #[test]
    fn additional_lines_do_not_need_a_final_line_feed() {
        let address = ([127, 0, 0, 1], 5300).into();
        let location = PeerLocation { folder: "/p".into(), address, tls: None };
        for lines in ["  verbosity: 1", "  verbosity: 1\n"] {
            let setup = Setup { lines: lines.to_owned(), ..Setup::new(Path::new("/p")) };
            let text = configuration_text(&setup, &location);
            assert!(text.contains("\n  verbosity: 1\nremote-control:\n"), "{text}");
        }
    }
}
