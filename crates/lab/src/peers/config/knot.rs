//! Knot DNS. Zones are signed online by its module `onlinesign`.

use super::{PeerLocation, program_command};
use crate::peers::error::PeerError;
use crate::peers::setup::{PeerZone, Serving, Setup};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(super) fn prepare(setup: &Setup, location: &PeerLocation) -> Result<Command, PeerError> {
    let config = location.write("knot.conf", &configuration_text(setup, location))?;
    for zone in &setup.zones {
        if let Serving::Online { keys, .. } = &zone.serving {
            for key in keys {
                let mut command = program_command("keymgr", setup);
                command.arg("-c").arg(&config).args([&zone.origin, "import-bind"]);
                location.run_preparation(command.arg(private_file(key)))?;
            }
        }
    }
    let mut command = program_command("knotd", setup);
    command.arg("-c").arg(config);
    Ok(command)
}

fn private_file(key: &Path) -> PathBuf {
    format!("{}.private", key.display()).into()
}

fn configuration_text(setup: &Setup, location: &PeerLocation) -> String {
    let (dir, workers, octets) = (location.folder.display(), setup.workers, setup.udp_octets);
    let mut text = format!(
        "server:\n  rundir: \"{dir}\"\n  listen: {}@{}\n  udp-workers: {workers}\n  tcp-workers: {workers}\n  \
         background-workers: 1\n  udp-max-payload: {octets}\n  \
         tcp-remote-io-timeout: 60000\n{}database:\n  storage: \"{dir}\"\nlog:\n  - target: stderr\n    \
         any: info\n",
        location.address.ip(),
        location.address.port(),
        setup.complete_lines()
    );
    if let Some(key) = &setup.transfer_key {
        let (name, algorithm, secret) = (&key.name, &key.algorithm, &key.secret);
        let _ = write!(text, "key:\n  - id: {name}\n    algorithm: {algorithm}\n    secret: {secret}\n");
    }
    text += &remotes(setup);
    text += &online_signing(setup);
    text += &setup.complete_sections();
    text += "template:\n  - id: default\n    semantic-checks: off\n    zonefile-sync: -1\n    acl: [keyed, notify]\nzone:\n";
    setup.zones.iter().enumerate().fold(text, |text, (number, zone)| text + &zone_section(number, zone))
}

/// The primaries, the receivers of NOTIFY, and access for transfers.
fn remotes(setup: &Setup) -> String {
    let key = setup.transfer_key.as_ref().map_or_else(String::new, |key| format!("    key: {}\n", key.name));
    let mut text = String::new();
    for (number, zone) in setup.zones.iter().enumerate() {
        let primary = match &zone.serving {
            Serving::Secondary { primary, .. } => Some(*primary),
            _ => None,
        };
        for (kind, address) in [("primary", primary), ("notified", zone.notify)] {
            if let Some(to) = address {
                let (ip, port) = (to.ip(), to.port());
                let _ = write!(text, "  - id: {kind}-{number}\n    address: {ip}@{port}\n{key}");
            }
        }
    }
    if !text.is_empty() {
        text.insert_str(0, "remote:\n");
    }
    // A rule without a key does not match messages with TSIG, so both rules are necessary.
    text + &format!(
        "acl:\n  - id: keyed\n    address: 127.0.0.0/8\n{key}    action: [transfer, notify]\n  - id: notify\n    \
         address: 127.0.0.0/8\n    action: notify\n"
    )
}

/// The policies of online signing: with generated keys, and with imported keys.
fn online_signing(setup: &Setup) -> String {
    if !setup.zones.iter().any(|zone| matches!(zone.serving, Serving::Online { .. })) {
        return String::new();
    }
    "policy:\n  - id: generated\n    algorithm: ecdsap256sha256\n    single-type-signing: off\n  - id: imported\n    manual: on\n\
     mod-onlinesign:\n  - id: generated\n    policy: generated\n  - id: imported\n    policy: imported\n"
        .to_owned()
}

fn zone_section(number: usize, zone: &PeerZone) -> String {
    let (origin, file, lines) = (&zone.origin, zone.file.display(), zone.complete_lines());
    let mut text = format!("  - domain: {origin}\n    file: \"{file}\"\n");
    if zone.notify.is_some() {
        let _ = writeln!(text, "    notify: notified-{number}");
    }
    text += &match &zone.serving {
        Serving::Secondary { .. } => {
            format!("    master: primary-{number}\n    zonefile-load: none\n    journal-content: all\n")
        }
        Serving::Online { keys, .. } => {
            let policy = if keys.is_empty() { "generated" } else { "imported" };
            format!(
                "    zonefile-load: whole\n    journal-content: none\n    module: mod-onlinesign/{policy}\n"
            )
        }
        // A primary keeps the differences between versions for IXFR.
        _ if zone.notify.is_some() => {
            "    zonefile-load: difference\n    journal-content: changes\n".to_owned()
        }
        _ => "    zonefile-load: whole\n    journal-content: none\n".to_owned(),
    };
    text + &lines
}
