//! Knot Resolver: `kresd` with a Lua configuration, which the versions 5 and 6 read.

use super::{PeerLocation, program_command};
use crate::peers::error::PeerError;
use crate::peers::info::Peer;
use crate::peers::setup::{ResolverSetup, Setup, TlsIdentity, Upstream};
use std::fmt::Write as _;
use std::process::Command;

pub(super) fn prepare(setup: &Setup, location: &PeerLocation) -> Result<Command, PeerError> {
    if setup.workers != 1 {
        let peer = Peer::KnotResolver.info().title;
        return Err(PeerError::Unsupported { peer, what: "run more than one worker in one process" });
    }
    if let Upstream::Roots { servers, .. } = &setup.resolver.upstream {
        location.write_hints(servers)?;
    }
    let config = location.write("kresd.conf", &configuration_text(setup, location))?;
    let mut command = program_command("kresd", setup);
    command.args(["-n", "-q", "-c"]).arg(config).arg(&location.folder);
    Ok(command)
}

fn configuration_text(setup: &Setup, location: &PeerLocation) -> String {
    let ResolverSetup { upstream, anchors, negative_anchors, cache_mib, source, .. } = &setup.resolver;
    let (ip, port, octets) = (location.address.ip(), location.address.port(), setup.udp_octets);
    let mut text = format!(
        "net.ipv6 = false\nnet.listen('{ip}', {port}, {{ kind = 'dns' }})\nnet.outgoing_v4('{source}')\n\
         net.bufsize({octets})\ncache.size = {cache_mib} * MB\nmodules.unload('ta_signal_query')\n\
         modules.unload('priming')\nmodules.unload('detect_time_skew')\nmodules.unload('detect_time_jump')\n\
         modules.unload('ta_update')\ntrust_anchors.remove('.')\n"
    );
    if let (Some(TlsIdentity { certificate, key }), Some(tls)) = (&setup.tls, location.tls) {
        let (ip, port, certificate, key) = (tls.ip(), tls.port(), certificate.display(), key.display());
        let _ = write!(
            text,
            "net.listen('{ip}', {port}, {{ kind = 'tls' }})\nnet.tls('{certificate}', '{key}')\n"
        );
    }
    for anchor in anchors {
        let _ = writeln!(text, "trust_anchors.add('{}')", anchor.record());
    }
    for zone in negative_anchors {
        let _ = writeln!(text, "trust_anchors.set_insecure({{ '{zone}' }})");
    }
    text += &setup.complete_lines();
    match upstream {
        Upstream::Roots { .. } => {
            let _ = writeln!(
                text,
                "modules.load('hints > iterate')\nhints.root_file('{}/root.hints')",
                location.folder.display()
            );
        }
        Upstream::Stubs(zones) => {
            for stub in zones {
                let (zone, ip, port) = (&stub.zone, stub.server.ip(), stub.server.port());
                let _ = writeln!(
                    text,
                    "policy.add(policy.suffix(policy.FORWARD({{'{ip}@{port}'}}), policy.todnames({{'{zone}'}})))"
                );
            }
            text += "policy.add(policy.all(policy.REFUSE))\n";
        }
    }
    text
}
