//! BIND, as authoritative server and as resolver.

use super::{PeerLocation, hints_file_text, program_command, yes_or_no};
use crate::peers::error::PeerError;
use crate::peers::setup::{
    CLIENTS, PeerZone, PrimaryTls, ResolverSetup, RootServer, Serving, Setup, TlsIdentity, Upstream,
};
use std::fmt::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;

/// Port to which the resolver sends queries for names outside the stub zones. Nothing listens
/// there.
const CLOSED_PORT: u16 = 1;
/// File with the key of the control channel.
const CONTROL_KEY: &str = "control.key";

pub(super) fn prepare(setup: &Setup, location: &PeerLocation) -> Result<Command, PeerError> {
    start_command(setup, location, &authoritative_configuration(setup, location))
}

pub(super) fn prepare_resolver(setup: &Setup, location: &PeerLocation) -> Result<Command, PeerError> {
    let unreachable_root = [RootServer { name: "none.invalid.".to_owned(), address: Ipv4Addr::LOCALHOST }];
    let servers = match &setup.resolver.upstream {
        Upstream::Roots { servers, .. } => servers,
        Upstream::Stubs(_) => &unreachable_root[..],
    };
    let hints = location.write("root.hints", &hints_file_text(servers))?;
    let control = location.another_address(setup.ip)?;
    write_control_key(location, control)?;
    start_command(setup, location, &resolver_configuration(setup, location, &hints, control))
}

/// Writes the configuration and returns the command that starts BIND with it.
fn start_command(setup: &Setup, location: &PeerLocation, text: &str) -> Result<Command, PeerError> {
    let config = location.write("named.conf", text)?;
    let mut command = program_command("named", setup);
    command.args(["-g", "-n", &setup.workers.to_string(), "-c"]).arg(config);
    Ok(command)
}

/// Writes the key of the control channel, and the configuration of `rndc` with it.
fn write_control_key(location: &PeerLocation, control: SocketAddr) -> Result<(), PeerError> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret).map_err(|_| PeerError::Random)?;
    let secret = data_encoding::BASE64.encode(&secret);
    let key = format!("key \"control\" {{ algorithm hmac-sha256; secret \"{secret}\"; }};\n");
    location.write(CONTROL_KEY, &key)?;
    let (ip, port) = (control.ip(), control.port());
    let options =
        format!("options {{ default-key \"control\"; default-server {ip}; default-port {port}; }};\n");
    location.write("rndc.conf", &(key + &options)).map(drop)
}

fn authoritative_configuration(setup: &Setup, location: &PeerLocation) -> String {
    let mut text = String::new();
    let mut access = "127.0.0.0/8;".to_owned();
    if let Some(key) = &setup.transfer_key {
        let (name, algorithm, secret) = (&key.name, &key.algorithm, &key.secret);
        let _ = writeln!(text, "key \"{name}\" {{ algorithm {algorithm}; secret \"{secret}\"; }};");
        access = format!("key \"{name}\";");
    }
    text += &common_options(setup, location);
    let _ = write!(
        text,
        "  recursion no;\n  dnssec-validation no;\n  minimal-any no;\n  check-integrity no;\n  notify explicit;\n  \
         notify-delay 0;\n  notify-rate 1000;\n  startup-notify-rate 1000;\n  serial-query-rate 1000;\n  \
         allow-transfer {{ {access} }};\n{}}};\ncontrols {{ }};\n{}",
        setup.complete_lines(),
        setup.complete_sections()
    );
    setup.zones.iter().fold(text, |text, zone| text + &zone_section(zone, setup))
}

/// The section `options` with the options of both roles, without the closing brace, and the
/// sections before it.
fn common_options(setup: &Setup, location: &PeerLocation) -> String {
    let (ip, port, octets) = (location.address.ip(), location.address.port(), setup.udp_octets);
    let mut text = String::new();
    let mut listen = format!("  listen-on port {port} {{ {ip}; }};\n");
    if let (Some(TlsIdentity { certificate, key }), Some(tls)) = (&setup.tls, location.tls) {
        let (certificate, key) = (certificate.display(), key.display());
        let _ = writeln!(text, "tls identity {{ cert-file \"{certificate}\"; key-file \"{key}\"; }};");
        let _ = writeln!(listen, "  listen-on port {} tls identity {{ {}; }};", tls.port(), tls.ip());
    }
    text + &format!(
        "options {{\n  directory \"{}\";\n{listen}  listen-on-v6 {{ none; }};\n  pid-file none;\n  session-keyfile none;\n  \
         empty-zones-enable no;\n  minimal-responses yes;\n  edns-udp-size {octets};\n  \
         max-udp-size {octets};\n",
        location.folder.display()
    )
}

fn zone_section(zone: &PeerZone, setup: &Setup) -> String {
    let (origin, file, lines) = (&zone.origin, zone.file.display(), zone.complete_lines());
    let key = setup.transfer_key.as_ref().map_or_else(String::new, |key| format!(" key \"{}\"", key.name));
    let notify = zone.notify.map_or_else(String::new, |to| {
        format!("  also-notify {{ {} port {}{key}; }};\n", to.ip(), to.port())
    });
    let mut before = String::new();
    let kind = match &zone.serving {
        Serving::Secondary { primary, tls } => {
            let (ip, port, mut over) = (primary.ip(), primary.port(), String::new());
            if let Some(PrimaryTls { authorities, name }) = tls {
                over = format!(" tls \"{origin}\"");
                let file = authorities.display();
                before = format!("tls \"{origin}\" {{ ca-file \"{file}\"; remote-hostname \"{name}\"; }};\n");
            }
            format!(
                "type secondary;\n  masterfile-format text;\n  allow-notify {{ 127.0.0.0/8; }};\n  \
                 primaries {{ {ip} port {port}{key}{over}; }};"
            )
        }
        _ => "type primary;\n  check-names ignore;\n  ixfr-from-differences yes;".to_owned(),
    };
    format!("{before}zone \"{origin}\" {{\n  {kind}\n  file \"{file}\";\n{notify}{lines}}};\n")
}

fn resolver_configuration(
    setup: &Setup,
    location: &PeerLocation,
    hints: &Path,
    control: SocketAddr,
) -> String {
    let ResolverSetup { upstream, anchors, negative_anchors, cache_mib, aggressive, source } =
        &setup.resolver;
    let negative: String = negative_anchors.iter().map(|zone| format!(" \"{zone}\";")).collect();
    let clients = CLIENTS.join("; ");
    let validation = yes_or_no(!anchors.is_empty());
    // The option `port` is the port of all servers that an NS record or a hint names.
    let port = match upstream {
        Upstream::Roots { port, .. } => *port,
        Upstream::Stubs(_) => CLOSED_PORT,
    };
    let mut text = common_options(setup, location);
    let _ = write!(
        text,
        "  port {port};\n  query-source address {source};\n  recursion yes;\n  allow-recursion {{ {clients}; }};\n  \
         allow-query {{ {clients}; }};\n  dnssec-validation {validation};\n  trust-anchor-telemetry no;\n  \
         synth-from-dnssec {};\n  max-cache-size {cache_mib}M;\n  validate-except {{{negative} }};\n{}}};\ninclude \"{CONTROL_KEY}\";\n\
         controls {{ inet {} port {} allow {{ {}; }} keys {{ \"control\"; }}; }};\n\
         zone \".\" {{ type hint; file \"{}\"; }};\n",
        yes_or_no(*aggressive),
        setup.complete_lines(),
        control.ip(),
        control.port(),
        control.ip(),
        hints.display()
    );
    if let Upstream::Stubs(zones) = upstream {
        for stub in zones {
            let (zone, ip, port) = (&stub.zone, stub.server.ip(), stub.server.port());
            let _ = writeln!(
                text,
                "zone \"{zone}\" {{ type forward; forward only; forwarders {{ {ip} port {port}; }}; }};"
            );
        }
    }
    for anchor in anchors {
        let (head, digest) = anchor.ds.rsplit_once(' ').unwrap_or((&anchor.ds, ""));
        let _ = writeln!(text, "trust-anchors {{ \"{}\" static-ds {head} \"{digest}\"; }};", anchor.zone);
    }
    text
}
