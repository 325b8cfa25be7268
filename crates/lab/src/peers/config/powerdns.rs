//! PowerDNS Authoritative Server with its BIND backend, which reads zone files.

use super::{PeerLocation, program_command};
use crate::peers::error::PeerError;
use crate::peers::info::OnlineDenial;
use crate::peers::setup::{PeerZone, Serving, Setup};
use nonesuch_dnssec::keys::KeyRecord;
use nonesuch_proto::Rtype;
use nonesuch_zone::Contents;
use nonesuch_zone::read::read_file;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Opt-out flag of NSEC3 records (RFC 5155 §3.1.2.1).
const NSEC3_OPT_OUT: u8 = 1;

pub(super) fn prepare(setup: &Setup, location: &PeerLocation) -> Result<Command, PeerError> {
    location.write("named.conf", &zones_file_text(setup))?;
    location.write("pdns.conf", &configuration_text(setup, location))?;
    let config = format!("--config-dir={}", location.folder.display());
    let run_pdnsutil = |arguments: &[&str]| {
        let mut command = program_command("pdnsutil", setup);
        location.run_preparation(command.arg(&config).args(arguments))
    };
    let database = location.folder.join("dnssec.sqlite");
    run_pdnsutil(&["create-bind-db", &database.display().to_string()])?;
    for zone in &setup.zones {
        for arguments in pdnsutil_calls(zone)? {
            run_pdnsutil(&arguments.iter().map(String::as_str).collect::<Vec<_>>())?;
        }
    }
    let mut command = program_command("pdns_server", setup);
    command.arg(config).args(["--daemon=no", "--guardian=no", "--disable-syslog", "--write-pid=no"]);
    Ok(command)
}

/// The zones, in the syntax of `named.conf`.
fn zones_file_text(setup: &Setup) -> String {
    setup.zones.iter().fold(String::new(), |mut text, zone| {
        let (name, file) = (pdnsutil_name(zone), zone.file.display());
        let _ = writeln!(text, "zone \"{name}\" {{ type native; file \"{file}\"; }};");
        text
    })
}

fn configuration_text(setup: &Setup, location: &PeerLocation) -> String {
    let (dir, workers, octets) = (location.folder.display(), setup.workers, setup.udp_octets);
    format!(
        "launch=bind\nbind-config={dir}/named.conf\nbind-dnssec-db={dir}/dnssec.sqlite\nlocal-address={}\nlocal-port={}\n\
         socket-dir={dir}\nsetuid=\nsetgid=\nsecurity-poll-suffix=\nreceiver-threads={workers}\ndistributor-threads={workers}\n\
         udp-truncation-threshold={octets}\ndname-processing=yes\n8bit-dns=yes\nallow-axfr-ips=127.0.0.0/8\n{}",
        location.address.ip(),
        location.address.port(),
        setup.complete_lines()
    )
}

/// The arguments of each call of `pdnsutil` that prepares a zone.
fn pdnsutil_calls(zone: &PeerZone) -> Result<Vec<Vec<String>>, PeerError> {
    let name = pdnsutil_name(zone);
    let call = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let (denial, keys) = match &zone.serving {
        Serving::Presigned => {
            let nsec3 = presigned_nsec3(zone)?.map(|parameters| call(&["set-nsec3", name, &parameters]));
            return Ok(nsec3.into_iter().chain([call(&["set-presigned", name])]).collect());
        }
        Serving::Online { denial, keys } => (*denial, keys),
        Serving::Unsigned | Serving::Secondary { .. } => return Ok(Vec::new()),
    };
    let mut calls = Vec::new();
    for key in keys {
        let role = if is_ksk(key)? { "ksk" } else { "zsk" };
        let private = format!("{}.private", key.display());
        calls.push(call(&["import-zone-key", name, &private, "active", role]));
    }
    if keys.is_empty() {
        calls.extend(["ksk", "zsk"].map(|role| call(&["add-zone-key", name, role, "active", "ecdsa256"])));
    }
    match denial {
        OnlineDenial::Nsec3 => calls.push(call(&["set-nsec3", name, "1 0 0 -"])),
        OnlineDenial::WhiteLies => calls.push(call(&["set-nsec3", name, "1 0 0 -", "narrow"])),
        OnlineDenial::Nsec | OnlineDenial::Compact => {}
    }
    Ok(calls)
}

/// Returns the parameters of the NSEC3 chain of a presigned zone for `pdnsutil set-nsec3`; `None` for
/// a zone without NSEC3. PowerDNS does not take them from the zone file.
fn presigned_nsec3(zone: &PeerZone) -> Result<Option<String>, PeerError> {
    let named = |reason| PeerError::Setup { what: "origin", value: zone.origin.clone(), reason };
    let origin = zone.origin.parse().map_err(|_| named("not a domain name"))?;
    let contents = read_file(&zone.file, Some(&origin)).map_err(Box::new)?.contents;
    Ok(nsec3_parameters(&contents))
}

/// Returns hash algorithm, flags, iterations and salt of the NSEC3 chain. The flags are those of the
/// NSEC3 records, because PowerDNS needs the opt-out flag, which NSEC3PARAM does not have (RFC 5155
/// §4.1.2).
fn nsec3_parameters(contents: &Contents) -> Option<String> {
    contents.apex_rrset(Rtype::NSEC3PARAM)?;
    let mut records = contents.nodes().filter_map(|node| node.rrset(Rtype::NSEC3)?.rdatas().next());
    let [algorithm, flags, high, low, octets, rest @ ..] = records.next()? else { return None };
    let salt = rest.get(..usize::from(*octets)).filter(|salt| !salt.is_empty());
    let salt =
        salt.map_or_else(|| "-".to_owned(), |salt| salt.iter().map(|octet| format!("{octet:02x}")).collect());
    let iterations = u16::from_be_bytes([*high, *low]);
    Some(format!("{algorithm} {} {iterations} {salt}", flags & NSEC3_OPT_OUT))
}

/// The name of a zone as `pdnsutil` expects it: without the final dot, except the root.
fn pdnsutil_name(zone: &PeerZone) -> &str {
    match zone.origin.strip_suffix('.') {
        Some("") | None => &zone.origin,
        Some(name) => name,
    }
}

/// Whether the public key file has the SEP flag.
fn is_ksk(key: &Path) -> Result<bool, PeerError> {
    let path = PathBuf::from(format!("{}.key", key.display()));
    let text = fs::read_to_string(&path).map_err(|source| PeerError::Read { path: path.clone(), source })?;
    let record = KeyRecord::parse(&text).map_err(|source| PeerError::Key { path, source })?;
    Ok(record.is_sep())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_zone::read::read_text;

    #[test]
    fn parameters_of_a_chain_are_those_of_its_records() {
        let hash = "2t7b4g4vsa5smi47k61mv5bv1a22bojr";
        for (records, expected) in [
            (String::new(), None),
            (format!("{hash} NSEC3 1 0 5 - {hash} A\n"), None),
            (format!("@ NSEC3PARAM 1 0 5 -\n{hash} NSEC3 1 0 5 - {hash} A\n"), Some("1 0 5 -")),
            (format!("@ NSEC3PARAM 1 0 0 AB01\n{hash} NSEC3 1 1 0 AB01 {hash} A\n"), Some("1 1 0 ab01")),
        ] {
            let text = format!("$ORIGIN example.\n$TTL 300\n@ SOA ns host 1 2 3 4 5\n@ NS ns\n{records}");
            let contents = read_text(text.as_bytes(), Path::new("zone"), None).expect("a zone").contents;
            assert_eq!(nsec3_parameters(&contents).as_deref(), expected, "{records}");
        }
    }
}
