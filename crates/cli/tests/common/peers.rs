//! Other DNS servers (`nonesuch_lab::peers`) in tests.

use nonesuch_lab::peers::{
    Peer, PeerServer, PeerZone, ResolverSetup, Serving, Setup, StubZone, TrustAnchor, Upstream,
};
use std::net::SocketAddr;
use std::path::Path;

/// Starts a peer. If this fails, the test fails with the log of the peer.
#[track_caller]
pub fn start(peer: Peer, setup: &Setup) -> PeerServer {
    PeerServer::start(peer, setup).unwrap_or_else(|error| panic!("{error}"))
}

/// A peer below `folder` with one zone. As many responses as possible are not truncated.
pub fn zone(folder: &Path, origin: &str, file: &Path, serving: Serving) -> Setup {
    Setup { udp_octets: 4096, zones: vec![PeerZone::new(origin, file, serving)], ..Setup::new(folder) }
}

/// A resolver below `folder` with a trust anchor, and `server` as the server of its zone.
pub fn resolver(folder: &Path, anchor: &TrustAnchor, server: SocketAddr) -> Setup {
    let stub = StubZone { zone: anchor.zone.clone(), server };
    let upstream = Upstream::Stubs(vec![stub]);
    let resolver = ResolverSetup { upstream, anchors: vec![anchor.clone()], ..ResolverSetup::default() };
    Setup { resolver, ..Setup::new(folder) }
}

/// The trust anchor of a DS record in presentation format. Its digest may have spaces.
pub fn anchor(record: &str) -> TrustAnchor {
    let fields: Vec<&str> = record.split_whitespace().collect();
    let ds = fields.iter().position(|field| *field == "DS").expect("a DS record");
    let [tag, algorithm, digest_type, digest @ ..] = &fields[ds + 1..] else { panic!("{record}") };
    let zone = fields[0].to_owned();
    TrustAnchor { zone, ds: format!("{tag} {algorithm} {digest_type} {}", digest.concat()) }
}
