//! NSD.

use super::{PeerLocation, program_command};
use crate::peers::error::PeerError;
use crate::peers::setup::{PeerZone, PrimaryTls, Serving, Setup, TlsIdentity};
use std::fmt::Write as _;
use std::process::Command;

pub(super) fn prepare(setup: &Setup, location: &PeerLocation) -> Result<Command, PeerError> {
    let config = location.write("nsd.conf", &configuration_text(setup, location))?;
    let mut command = program_command("nsd", setup);
    command.arg("-d").arg("-c").arg(config);
    Ok(command)
}

fn configuration_text(setup: &Setup, location: &PeerLocation) -> String {
    let (dir, address) = (location.folder.display(), location.address);
    let mut text = format!(
        "server:\n  ip-address: {}@{}\n  server-count: {}\n  username: \"\"\n  chroot: \"\"\n  zonesdir: \"{dir}\"\n  \
         database: \"\"\n  pidfile: \"{dir}/nsd.pid\"\n  xfrdfile: \"{dir}/xfrd.state\"\n  xfrdir: \"{dir}\"\n  \
         zonelistfile: \"{dir}/zone.list\"\n  xfrd-reload-timeout: 0\n  do-ip6: no\n  minimal-responses: yes\n  \
         ipv4-edns-size: {}\n  rrl-ratelimit: 0\n  rrl-whitelist-ratelimit: 0\n",
        address.ip(),
        address.port(),
        setup.workers,
        setup.udp_octets
    );
    if let (Some(TlsIdentity { certificate, key }), Some(tls)) = (&setup.tls, location.tls) {
        let (ip, port, certificate, key) = (tls.ip(), tls.port(), certificate.display(), key.display());
        let _ = write!(
            text,
            "  ip-address: {ip}@{port}\n  tls-port: {port}\n  tls-service-pem: \"{certificate}\"\n  \
             tls-service-key: \"{key}\"\n"
        );
    }
    if let Some(tls) = setup.zones.iter().find_map(primary_tls) {
        let _ = writeln!(text, "  tls-cert-bundle: \"{}\"", tls.authorities.display());
    }
    text += &setup.complete_lines();
    text += "remote-control:\n  control-enable: no\n";
    if let Some(key) = &setup.transfer_key {
        let (name, algorithm, secret) = (&key.name, &key.algorithm, &key.secret);
        let _ = write!(text, "key:\n  name: \"{name}\"\n  algorithm: {algorithm}\n  secret: \"{secret}\"\n");
    }
    text += &setup.complete_sections();
    let key = setup.transfer_key.as_ref().map_or("NOKEY", |key| &key.name);
    setup.zones.iter().fold(text, |text, zone| text + &zone_section(zone, key))
}

const fn primary_tls(zone: &PeerZone) -> Option<&PrimaryTls> {
    match &zone.serving {
        Serving::Secondary { tls, .. } => tls.as_ref(),
        _ => None,
    }
}

fn zone_section(zone: &PeerZone, key: &str) -> String {
    let (origin, file) = (&zone.origin, zone.file.display());
    let mut text = String::new();
    if let Some(tls) = primary_tls(zone) {
        let _ = write!(text, "tls-auth:\n  name: \"{origin}\"\n  auth-domain-name: \"{}\"\n", tls.name);
    }
    let _ = write!(
        text,
        "zone:\n  name: \"{origin}\"\n  zonefile: \"{file}\"\n  provide-xfr: 127.0.0.0/8 {key}\n"
    );
    if let Some(to) = zone.notify {
        let (ip, port) = (to.ip(), to.port());
        let _ = writeln!(text, "  create-ixfr: yes\n  store-ixfr: yes\n  notify: {ip}@{port} {key}");
    }
    if let Serving::Secondary { primary, tls } = &zone.serving {
        let (ip, port) = (primary.ip(), primary.port());
        let over = tls.as_ref().map_or_else(String::new, |_| format!(" \"{origin}\""));
        let _ = writeln!(text, "  allow-notify: 127.0.0.0/8 NOKEY\n  request-xfr: {ip}@{port} {key}{over}");
        if key != "NOKEY" {
            let _ = writeln!(text, "  allow-notify: 127.0.0.0/8 {key}");
        }
    }
    text + &zone.complete_lines()
}
