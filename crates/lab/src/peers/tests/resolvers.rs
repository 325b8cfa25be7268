//! Every installed resolver validates: with a server for each zone, and from root servers.

use super::fixture::{EXAMPLE, SignedZone, ask, assert_stops, is_installed};
use crate::peers::{
    Peer, PeerRole, PeerServer, PeerZone, ResolverSetup, RootServer, Serving, Setup, StubZone, TrustAnchor,
    Upstream,
};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Rcode, flags};
use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;

fn installed() -> impl Iterator<Item = Peer> {
    Peer::all().filter(|peer| peer.info().role == PeerRole::Resolver).filter(|peer| is_installed(*peer))
}

/// Starts the first installed server for the zones; `None` if none is installed.
fn serve(folder: &Path, at: SocketAddr, zones: &[(&str, &Path)]) -> Option<PeerServer> {
    let peer = [Peer::Nsd, Peer::Knot, Peer::Bind].into_iter().find(|peer| is_installed(*peer))?;
    let zones = zones.iter().map(|(origin, file)| PeerZone::new(origin, file, Serving::Presigned));
    let SocketAddr::V4(at) = at else { return None };
    let setup = Setup {
        ip: *at.ip(),
        port: Some(at.port()).filter(|port| *port != 0),
        zones: zones.collect(),
        ..Setup::new(&folder.join("server"))
    };
    Some(PeerServer::start(peer, &setup).unwrap_or_else(|error| panic!("{error}")))
}

fn resolve(peer: Peer, folder: &Path, upstream: &Upstream, anchors: &[TrustAnchor]) -> PeerServer {
    let resolver =
        ResolverSetup { upstream: upstream.clone(), anchors: anchors.to_vec(), ..ResolverSetup::default() };
    let setup = Setup { resolver, ..Setup::new(&folder.join(peer.info().name)) };
    PeerServer::start(peer, &setup).unwrap_or_else(|error| panic!("{error}"))
}

/// RCODE and AD of the answer for `www.example.` and for a name that does not exist.
fn verdicts(resolver: &PeerServer) -> [(Rcode, bool); 2] {
    ["www.example.", "missing.example."].map(|name| {
        let answer = ask(resolver.address, name, Rtype::A);
        (answer.rcode(), answer.header.flags & flags::AD != 0)
    })
}

const SECURE: [(Rcode, bool); 2] = [(Rcode::NOERROR, true), (Rcode::NXDOMAIN, true)];
const INSECURE: [(Rcode, bool); 2] = [(Rcode::NOERROR, false), (Rcode::NXDOMAIN, false)];
const BOGUS: [(Rcode, bool); 2] = [(Rcode::SERVFAIL, false); 2];

#[test]
fn every_resolver_validates_a_stub_zone_and_stops() {
    let folder = tempfile::tempdir().expect("a directory");
    let zone = SignedZone::make(folder.path(), "example.", EXAMPLE);
    let other = SignedZone::make(&folder.path().join("other"), "example.", EXAMPLE);
    let at = (Ipv4Addr::LOCALHOST, 0).into();
    let Some(server) = serve(folder.path(), at, &[("example.", &zone.signed)]) else { return };
    let stub = StubZone { zone: "example.".to_owned(), server: server.address };
    let upstream = Upstream::Stubs(vec![stub]);
    for peer in installed() {
        for (anchors, expected) in
            [(vec![zone.anchor.clone()], SECURE), (vec![], INSECURE), (vec![other.anchor.clone()], BOGUS)]
        {
            let resolver = resolve(peer, folder.path(), &upstream, &anchors);
            assert_eq!(verdicts(&resolver), expected, "{peer:?}, {anchors:?}: {}", resolver.log());
            assert_stops(resolver);
        }
    }
}

/// A root zone that delegates `example.`, which is served at `ip`.
fn root_zone(folder: &Path, ip: Ipv4Addr, child: &TrustAnchor) -> SignedZone {
    let text = format!(
        "$TTL 300\n@ SOA ns.root. host.root. 1 7200 3600 1209600 300\n@ NS ns.root.\nns.root. A {ip}\n\
         example. NS ns.example.\nns.example. A {ip}\nexample. DS {}\n",
        child.ds
    );
    SignedZone::make(folder, ".", &text)
}

/// A tree with two servers on free ports: the DS record comes from the parent. Knot Resolver
/// forwards all queries for a zone, DS queries included, to the server of this zone.
#[test]
fn a_tree_of_stub_zones_is_validated_from_the_root() {
    let folder = tempfile::tempdir().expect("a directory");
    let folder = folder.path();
    let zone = SignedZone::make(folder, "example.", EXAMPLE);
    let root = root_zone(folder, Ipv4Addr::LOCALHOST, &zone.anchor);
    let at = (Ipv4Addr::LOCALHOST, 0).into();
    let Some(child) = serve(&folder.join("child"), at, &[("example.", &zone.signed)]) else { return };
    let Some(parent) = serve(&folder.join("parent"), at, &[(".", &root.signed)]) else { return };
    let stub = |zone: &str, server: &PeerServer| StubZone { zone: zone.to_owned(), server: server.address };
    let upstream = Upstream::Stubs(vec![stub(".", &parent), stub("example.", &child)]);
    for peer in installed().filter(|peer| *peer != Peer::KnotResolver) {
        let resolver = resolve(peer, folder, &upstream, std::slice::from_ref(&root.anchor));
        assert_eq!(verdicts(&resolver), SECURE, "{peer:?}: {}", resolver.log());
    }
}

/// A signed root zone with a secure delegation, on one server.
#[test]
fn resolvers_iterate_from_root_servers() {
    let folder = tempfile::tempdir().expect("a directory");
    // An address of its own, because the port may be fixed.
    let [.., a, b, c] = RandomState::new().hash_one(0).to_be_bytes();
    let ip = Ipv4Addr::new(127, a | 1, b | 1, c & 0x7f | 1);
    for port in [0, 53] {
        if port == 53 && UdpSocket::bind((ip, port)).is_err() {
            return nonesuch_testing::record_skip("only root can listen on port 53");
        }
        let folder = folder.path().join(format!("port-{port}"));
        let zone = SignedZone::make(&folder, "example.", &EXAMPLE.replace("127.0.0.1", &ip.to_string()));
        let root = root_zone(&folder, ip, &zone.anchor);
        let zones = [(".", root.signed.as_path()), ("example.", zone.signed.as_path())];
        let Some(server) = serve(&folder, (ip, port).into(), &zones) else { return };
        let servers = vec![RootServer { name: "ns.root.".to_owned(), address: ip }];
        let upstream = Upstream::Roots { servers, port: server.address.port() };
        for peer in installed().filter(|peer| port == 53 || peer.info().iterates_on_any_port) {
            let resolver = resolve(peer, &folder, &upstream, std::slice::from_ref(&root.anchor));
            assert_eq!(verdicts(&resolver), SECURE, "{peer:?}: {}", resolver.log());
        }
    }
}
