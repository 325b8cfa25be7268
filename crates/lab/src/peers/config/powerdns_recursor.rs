//! PowerDNS Recursor with its older configuration format, which all versions read.

use super::{PeerLocation, hints_file_text, program_command};
use crate::peers::error::PeerError;
use crate::peers::info::Peer;
use crate::peers::setup::{CLIENTS, ResolverSetup, RootServer, Setup, StubZone, TrustAnchor, Upstream};
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use std::process::Command;

/// Number of entries of the record cache for each MiB: an entry has about 256 bytes.
const ENTRIES_PER_MIB: u32 = 4096;

pub(super) fn prepare(setup: &Setup, location: &PeerLocation) -> Result<Command, PeerError> {
    let unreachable_root =
        RootServer { name: "none.invalid.".to_owned(), address: Ipv4Addr::new(127, 255, 255, 254) };
    let hints = match &setup.resolver.upstream {
        Upstream::Roots { servers, .. } => hints_file_text(servers),
        Upstream::Stubs(_) => hints_file_text(&[unreachable_root]),
    };
    location.write("root.hints", &hints)?;
    location.write("anchors.lua", &anchors_file_text(&setup.resolver))?;
    location.write("recursor.conf", &configuration_text(setup, location))?;
    let mut command = program_command("pdns_recursor", setup);
    command.arg(format!("--config-dir={}", location.folder.display()));
    if Peer::PowerDnsRecursor.version().is_some_and(|version| needs_option_for_old_settings(&version)) {
        command.arg("--enable-old-settings");
    }
    Ok(command)
}

/// Whether this version reads the older format only with an option: 5.2 and later do.
fn needs_option_for_old_settings(version: &str) -> bool {
    let mut numbers = version.split('.').map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(5), Some(2))
}

fn configuration_text(setup: &Setup, location: &PeerLocation) -> String {
    let ResolverSetup { upstream, anchors, cache_mib, aggressive, source, .. } = &setup.resolver;
    let (dir, ip, port, octets) =
        (location.folder.display(), location.address.ip(), location.address.port(), setup.udp_octets);
    let validation = if anchors.is_empty() { "off" } else { "validate" };
    let aggressive = if *aggressive { 100_000 } else { 0 };
    let mut text = format!(
        "local-address={ip}\nlocal-port={port}\nallow-from={}\nthreads={}\ndaemon=no\ndisable-syslog=yes\n\
         write-pid=no\nsocket-dir={dir}\nsetuid=\nsetgid=\nsecurity-poll-suffix=\nhint-file={dir}/root.hints\ndont-query=\n\
         query-local-address={source}\nlua-config-file={dir}/anchors.lua\ndnssec={validation}\n\
         aggressive-nsec-cache-size={aggressive}\nmax-cache-entries={}\nedns-outgoing-bufsize={octets}\n\
         udp-truncation-threshold={octets}\n",
        CLIENTS.join(","),
        setup.workers,
        cache_mib.saturating_mul(ENTRIES_PER_MIB),
    );
    if let Upstream::Stubs(zones) = upstream {
        let stubs: Vec<String> =
            zones.iter().map(|StubZone { zone, server }| format!("{zone}={server}")).collect();
        let _ = writeln!(text, "forward-zones={}", stubs.join(","));
    }
    text + &setup.complete_lines()
}

/// The Lua file that replaces the trust anchor of the public root zone by those of `resolver`. Only a Lua file can
/// have negative trust anchors.
fn anchors_file_text(resolver: &ResolverSetup) -> String {
    let mut text = "clearTA()\n".to_owned();
    for TrustAnchor { zone, ds } in &resolver.anchors {
        let _ = writeln!(text, "addTA('{zone}', \"{ds}\")");
    }
    for zone in &resolver.negative_anchors {
        let _ = writeln!(text, "addNTA('{zone}')");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::PeerLocation;
    use super::*;
    use std::path::Path;

    fn configuration(upstream: Upstream, anchors: Vec<TrustAnchor>) -> String {
        let resolver = ResolverSetup { upstream, anchors, cache_mib: 10, ..ResolverSetup::default() };
        let setup = Setup { resolver, ..Setup::new(Path::new("/p")) };
        let location =
            PeerLocation { folder: "/p".into(), address: ([127, 0, 0, 1], 5300).into(), tls: None };
        configuration_text(&setup, &location)
    }

    #[test]
    fn stub_zones_have_servers_on_any_port() {
        let stub =
            |zone: &str, port| StubZone { zone: zone.to_owned(), server: ([127, 0, 0, 2], port).into() };
        let anchor = TrustAnchor { zone: "example.".to_owned(), ds: "1 13 2 AB".to_owned() };
        let text = configuration(
            Upstream::Stubs(vec![stub("example.", 5301), stub("example.net.", 5302)]),
            vec![anchor.clone()],
        );
        for line in [
            "forward-zones=example.=127.0.0.2:5301,example.net.=127.0.0.2:5302",
            "dnssec=validate",
            "dont-query=",
            "query-local-address=127.0.0.1",
            "security-poll-suffix=",
            "local-port=5300",
            "max-cache-entries=40960",
        ] {
            assert!(text.lines().any(|found| found == line), "{line} is not in:\n{text}");
        }
        let resolver = ResolverSetup {
            anchors: vec![anchor],
            negative_anchors: vec!["nta.example.".to_owned()],
            ..ResolverSetup::default()
        };
        let expected = "clearTA()\naddTA('example.', \"1 13 2 AB\")\naddNTA('nta.example.')\n";
        assert_eq!(anchors_file_text(&resolver), expected);
    }

    #[test]
    fn without_trust_anchors_nothing_is_validated() {
        let text = configuration(Upstream::Roots { servers: Vec::new(), port: 53 }, Vec::new());
        assert!(text.contains("\ndnssec=off\n") && !text.contains("forward-zones"), "{text}");
    }

    #[test]
    fn newer_versions_need_an_option_for_this_format() {
        for (version, needed) in
            [("4.8.8", false), ("5.1.10", false), ("5.2.0", true), ("5.10.1", true), ("6.0.0", true)]
        {
            assert_eq!(needs_option_for_old_settings(version), needed, "{version}");
        }
    }
}
