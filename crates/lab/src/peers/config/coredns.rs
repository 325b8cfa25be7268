//! CoreDNS with its plugins `file` and `dnssec`.

use super::{PeerLocation, program_command};
use crate::peers::error::PeerError;
use crate::peers::setup::{Serving, Setup};
use std::fmt::Write as _;
use std::process::Command;

pub(super) fn prepare(setup: &Setup, location: &PeerLocation) -> Result<Command, PeerError> {
    let config = location.write("Corefile", &configuration_text(setup, location))?;
    let mut command = program_command("coredns", setup);
    // CoreDNS has no option for the number of workers.
    command.env("GOMAXPROCS", setup.workers.to_string()).arg("-conf").arg(config);
    Ok(command)
}

/// A server block for each zone, all at the same address.
fn configuration_text(setup: &Setup, location: &PeerLocation) -> String {
    let (ip, port) = (location.address.ip(), location.address.port());
    let mut text = setup.complete_lines();
    for zone in &setup.zones {
        let (origin, file) = (&zone.origin, zone.file.display());
        let _ = write!(text, "{origin}:{port} {{\n  bind {ip}\n  file {file}\n");
        if let Serving::Online { keys, .. } = &zone.serving {
            let keys: Vec<String> = keys.iter().map(|key| key.display().to_string()).collect();
            let _ = write!(
                text,
                "  dnssec {{\n    key file {}\n    cache_capacity 10000\n  }}\n",
                keys.join(" ")
            );
        }
        let _ = writeln!(text, "{}}}", zone.complete_lines());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::PeerLocation;
    use super::*;
    use crate::peers::{OnlineDenial, PeerZone};
    use std::path::Path;

    #[test]
    fn each_zone_has_a_server_block() {
        let keys = ["/k/Kb.example.+013+00001", "/k/Kb.example.+013+00002"].map(Into::into).to_vec();
        let online = Serving::Online { denial: OnlineDenial::Compact, keys };
        let zones = vec![
            PeerZone::new("a.example.", Path::new("/z/a"), Serving::Presigned),
            PeerZone::new("b.example.", Path::new("/z/b"), online),
        ];
        let setup = Setup { zones, ..Setup::new(Path::new("/p")) };
        let location =
            PeerLocation { folder: "/p".into(), address: ([127, 0, 0, 1], 5300).into(), tls: None };
        let expected = "a.example.:5300 {\n  bind 127.0.0.1\n  file /z/a\n}\n\
                        b.example.:5300 {\n  bind 127.0.0.1\n  file /z/b\n  dnssec {\n    \
                        key file /k/Kb.example.+013+00001 /k/Kb.example.+013+00002\n    cache_capacity 10000\n  }\n}\n";
        assert_eq!(configuration_text(&setup, &location), expected);
    }
}
