//! Writes a tree into a directory.

use super::{AnchorForm, Fault, FaultScope, Tree, TreeError, TreeZone};
use crate::measure::key_files::{
    PUBLIC, create_directory, write_new_file, write_nsec5_files, write_signing_keys,
};
use nonesuch_dnssec::keys::KeyTimes;
use nonesuch_proto::Name;
use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

/// End of the names of files that belong to the version with NSEC5 of a zone in a conservative
/// transition.
pub(crate) const SUCCESSOR_SUFFIX: &str = ".nsec5";

/// The name of a zone as the name of a file: `@` for the root, other octets than letters, digits,
/// `-`, `_` and `.` as `%XX`.
fn file_name(zone: &Name) -> String {
    let text = zone.to_string().to_ascii_lowercase();
    let text = text.strip_suffix('.').filter(|text| !text.is_empty()).unwrap_or("@");
    let mut name = String::new();
    for octet in text.bytes() {
        match octet {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'@' => name.push(char::from(octet)),
            // Writing to a `String` cannot fail.
            _ => drop(write!(name, "%{octet:02X}")),
        }
    }
    name
}

impl Tree {
    /// Writes the tree into the directory `out`, which must not exist or be empty:
    ///
    /// | file | content |
    /// | --- | --- |
    /// | `zones/ZONE` | the zone file (`@` for the root) |
    /// | `keys/ZONE/` | the keys of a signed zone with a supported algorithm, as BIND writes them |
    /// | `nsec5/ZONE/` | the VRF key and the proofs of a zone with NSEC5 |
    /// | `servers/ADDRESS.toml` | the configuration of `nonesuch serve` at this address |
    /// | `zones/ZONE.nsec5`, `nsec5/ZONE.nsec5/`, `servers/ADDRESS.nsec5.toml` | for a zone with `also-nsec5`, those of its version with NSEC5 |
    /// | `root.hints` | the root hints |
    /// | `anchor.*` | the trust anchor in each form of [`AnchorForm`] |
    /// | `expected.csv` | the questions with the expected results |
    ///
    /// # Errors
    /// [`TreeError::Exists`] if the directory has files, [`TreeError::Write`] if a file or
    /// directory cannot be written.
    pub fn write(&self, out: &Path) -> Result<(), TreeError> {
        if fs::read_dir(out).is_ok_and(|mut entries| entries.next().is_some()) {
            return Err(TreeError::Exists { path: out.to_owned() });
        }
        for directory in ["zones", "keys", "nsec5", "servers"] {
            create_directory(&out.join(directory))?;
        }
        for zone in &self.zones {
            zone.write(&zone.file_name(), out)?;
            if let Some(successor) = &zone.successor {
                successor.write(&zone.successor_name(), out)?;
            }
        }
        for (address, zones) in self.servers() {
            let write = |suffix: &str, versions: &[(&TreeZone, String)]| {
                let path = out.join("servers").join(format!("{address}{suffix}.toml"));
                write_new_file(&path, PUBLIC, self.configuration(address, versions).as_bytes())
            };
            write("", &zones.iter().map(|zone| (*zone, zone.file_name())).collect::<Vec<_>>())?;
            if zones.iter().any(|zone| zone.successor.is_some()) {
                write(SUCCESSOR_SUFFIX, &zones.iter().map(|zone| zone.newest_version()).collect::<Vec<_>>())?;
            }
        }
        write_new_file(&out.join("root.hints"), PUBLIC, self.root_hints().as_bytes())?;
        for (form, file) in AnchorForm::FILES {
            write_new_file(&out.join(file), PUBLIC, self.anchors(form).as_bytes())?;
        }
        Ok(write_new_file(&out.join("expected.csv"), PUBLIC, self.expected_csv().as_bytes())?)
    }

    /// The configuration of `nonesuch serve` for the zones at one address. Zones are not verified,
    /// because faults are intended.
    fn configuration(&self, address: Ipv4Addr, versions: &[(&TreeZone, String)]) -> String {
        let mut text = format!("version = 1\nlisten = [\"{address}:{}\"]\n", self.port);
        for (zone, file) in versions {
            let origin = zone.origin.to_string();
            // Writing to a `String` cannot fail.
            let _ = write!(
                text,
                "\n[zone.{}]\nfile = \"../zones/{file}\"\nverify = \"none\"\non-fault = \"warn\"\n",
                toml::Value::String(origin)
            );
            if zone.is_online() {
                let _ = writeln!(text, "denial = \"{}\"\nkeys = \"../keys/{file}\"", zone.description.denial);
            }
            if zone.nsec5.is_some() {
                let _ = writeln!(text, "nsec5-keys = \"../nsec5/{file}\"");
            }
        }
        text
    }

    /// The expected results as CSV: name, type, outcome, extended error, fault. Without the faults of
    /// responses, which the configured servers do not have.
    fn expected_csv(&self) -> String {
        let mut text = String::from("name,type,outcome,extended_error,fault\n");
        let is_of_responses = |fault: &Fault| fault.scope() == FaultScope::Responses;
        for expected in self.expectations() {
            if expected.fault.as_ref().is_some_and(is_of_responses) {
                continue;
            }
            let name = expected.name.to_string().replace('"', "\"\"");
            let code = expected.extended_error.map(|code| code.to_string()).unwrap_or_default();
            let fault = expected.fault.map(|fault| fault.to_string()).unwrap_or_default();
            let (rtype, outcome) = (expected.rtype, expected.outcome);
            let _ = writeln!(text, "\"{name}\",{rtype},{outcome},{code},{fault}");
        }
        text
    }
}

impl TreeZone {
    /// The name of its zone file, and of the directory of its keys.
    pub(crate) fn file_name(&self) -> String {
        file_name(&self.origin)
    }

    /// The name of the zone file of its version with NSEC5.
    fn successor_name(&self) -> String {
        self.file_name() + SUCCESSOR_SUFFIX
    }

    /// The version with NSEC5, or else the zone, with the name of its zone file.
    fn newest_version(&self) -> (&Self, String) {
        match &self.successor {
            Some(successor) => (successor.as_ref(), self.successor_name()),
            None => (self, self.file_name()),
        }
    }

    /// Writes the zone file, the key files, and the VRF key with the proofs.
    fn write(&self, file: &str, out: &Path) -> Result<(), TreeError> {
        write_new_file(&out.join("zones").join(file), PUBLIC, self.text().as_bytes())?;
        if let Some(keys) = self.keys.as_ref().filter(|_| !self.description.has_unsupported_algorithm()) {
            let directory = out.join("keys").join(file);
            write_signing_keys(&directory, keys, &KeyTimes::default())?;
        }
        if let Some((key, proofs)) = &self.nsec5 {
            let directory = out.join("nsec5").join(file);
            write_nsec5_files(&directory, &self.origin, key, proofs)?;
        }
        Ok(())
    }
}
