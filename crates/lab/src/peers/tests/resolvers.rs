//! Installed resolvers validate in two configurations: with stub zones (a given server for each
//! zone), and by iteration from root servers.

use super::fixture::{EXAMPLE, SignedZone, ask, assert_stops, is_installed};
use crate::peers::{
    Peer, PeerRole, PeerServer, PeerZone, ResolverSetup, RootServer, Serving, Setup, StubZone, TrustAnchor,
    Upstream,
};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Rcode, flags};
use std::hash::{BuildHasher as _, RandomState};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::path::Path;

fn installed() -> impl Iterator<Item = Peer> {
    Peer::all().filter(|peer| peer.info().role == PeerRole::Resolver).filter(|peer| is_installed(*peer))
}

/// Any free port of the loopback address.
const ANY_PORT: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);

/// Starts the first installed server for the zones; `None` if none is installed. Port 0 selects a
/// free port.
fn serve(folder: &Path, at: SocketAddrV4, zones: &[(&str, &Path)]) -> Option<PeerServer> {
    let peer = [Peer::Nsd, Peer::Knot, Peer::Bind].into_iter().find(|peer| is_installed(*peer))?;
    let zones = zones.iter().map(|(origin, file)| PeerZone::new(origin, file, Serving::Presigned));
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
    start(peer, folder, resolver)
}

fn start(peer: Peer, folder: &Path, resolver: ResolverSetup) -> PeerServer {
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
/// Without a trust anchor (indeterminate in RFC 4033 §5).
const NOT_VALIDATED: [(Rcode, bool); 2] = [(Rcode::NOERROR, false), (Rcode::NXDOMAIN, false)];
const BOGUS: [(Rcode, bool); 2] = [(Rcode::SERVFAIL, false); 2];

#[test]
fn every_resolver_validates_a_stub_zone_and_stops() {
    let folder = tempfile::tempdir().expect("a directory");
    let zone = SignedZone::make(folder.path(), "example.", EXAMPLE);
    let other = SignedZone::make(&folder.path().join("other"), "example.", EXAMPLE);
    let Some(server) = serve(folder.path(), ANY_PORT, &[("example.", &zone.signed)]) else { return };
    let stub = StubZone { zone: "example.".to_owned(), server: server.address };
    let upstream = Upstream::Stubs(vec![stub]);
    for peer in installed() {
        for (anchors, expected) in [
            (vec![zone.anchor.clone()], SECURE),
            (vec![], NOT_VALIDATED),
            (vec![other.anchor.clone()], BOGUS),
        ] {
            let resolver = resolve(peer, folder.path(), &upstream, &anchors);
            assert_eq!(verdicts(&resolver), expected, "{peer:?}, {anchors:?}: {}", resolver.log());
            assert_stops(resolver);
        }
    }
}

/// The server of a zone gets another version, which a resolver sees only without its cached data.
#[test]
fn every_resolver_removes_its_cached_data() {
    const ADDRESS: [u8; 4] = [192, 0, 2, 1];
    const LATER_ADDRESS: [u8; 4] = [192, 0, 2, 2];
    let folder = tempfile::tempdir().expect("a directory");
    let zone = SignedZone::make(folder.path(), "example.", EXAMPLE);
    let text = EXAMPLE.replace("192.0.2.1", "192.0.2.2");
    let later = SignedZone::make(&folder.path().join("later"), "example.", &text);
    let address_of = |resolver: &PeerServer| {
        let answer = ask(resolver.address, "www.example.", Rtype::A);
        let found = answer.records.iter().find(|record| record.rtype == Rtype::A);
        found.map(|record| record.rdata.clone()).unwrap_or_default()
    };
    for peer in installed() {
        let Some(server) = serve(folder.path(), ANY_PORT, &[("example.", &zone.signed)]) else { return };
        let at = SocketAddrV4::new(Ipv4Addr::LOCALHOST, server.address.port());
        let stub = StubZone { zone: "example.".to_owned(), server: server.address };
        let resolver = resolve(peer, folder.path(), &Upstream::Stubs(vec![stub]), &[]);
        assert_eq!(address_of(&resolver), ADDRESS, "{peer:?}: {}", resolver.log());
        assert_stops(server);
        let _later = serve(folder.path(), at, &[("example.", &later.signed)]).expect("an installed server");
        assert_eq!(address_of(&resolver), ADDRESS, "{peer:?} has cached data");
        resolver.flush_cache().unwrap_or_else(|error| panic!("{error}: {}", resolver.log()));
        assert_eq!(address_of(&resolver), LATER_ADDRESS, "{peer:?}: {}", resolver.log());
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

/// A tree with two servers on free ports: the DS record comes from the parent. Knot Resolver is left
/// out: it sends also the DS query for `example.` to the server of `example.`, which cannot answer
/// it.
#[test]
fn a_tree_of_stub_zones_is_validated_from_the_root() {
    let folder = tempfile::tempdir().expect("a directory");
    let folder = folder.path();
    let zone = SignedZone::make(folder, "example.", EXAMPLE);
    let root = root_zone(folder, Ipv4Addr::LOCALHOST, &zone.anchor);
    let Some(child) = serve(&folder.join("child"), ANY_PORT, &[("example.", &zone.signed)]) else { return };
    let Some(parent) = serve(&folder.join("parent"), ANY_PORT, &[(".", &root.signed)]) else { return };
    let stub = |zone: &str, server: &PeerServer| StubZone { zone: zone.to_owned(), server: server.address };
    let upstream = Upstream::Stubs(vec![stub(".", &parent), stub("example.", &child)]);
    for peer in installed().filter(|peer| *peer != Peer::KnotResolver) {
        let resolver = resolve(peer, folder, &upstream, std::slice::from_ref(&root.anchor));
        assert_eq!(verdicts(&resolver), SECURE, "{peer:?}: {}", resolver.log());
    }
}

/// The parent has the DS record of another key, so that `example.` is bogus. Without Knot Resolver, as above.
#[test]
fn a_bogus_zone_is_accepted_below_a_negative_trust_anchor() {
    let folder = tempfile::tempdir().expect("a directory");
    let folder = folder.path();
    let zone = SignedZone::make(folder, "example.", EXAMPLE);
    let other = SignedZone::make(&folder.join("other"), "example.", EXAMPLE);
    let root = root_zone(folder, Ipv4Addr::LOCALHOST, &other.anchor);
    let Some(child) = serve(&folder.join("child"), ANY_PORT, &[("example.", &zone.signed)]) else { return };
    let Some(parent) = serve(&folder.join("parent"), ANY_PORT, &[(".", &root.signed)]) else { return };
    let stub = |zone: &str, server: &PeerServer| StubZone { zone: zone.to_owned(), server: server.address };
    let upstream = Upstream::Stubs(vec![stub(".", &parent), stub("example.", &child)]);
    for peer in installed().filter(|peer| *peer != Peer::KnotResolver) {
        for (negative_anchors, expected) in [(vec![], BOGUS), (vec!["example.".to_owned()], NOT_VALIDATED)] {
            let resolver = ResolverSetup {
                upstream: upstream.clone(),
                anchors: vec![root.anchor.clone()],
                negative_anchors,
                ..ResolverSetup::default()
            };
            let resolver = start(peer, folder, resolver);
            assert_eq!(verdicts(&resolver), expected, "{peer:?}: {}", resolver.log());
        }
    }
}

/// One server has the root zone and `example.`: first on a free port, for the resolvers that can use
/// any port, then on port 53.
#[test]
fn resolvers_iterate_from_root_servers() {
    let folder = tempfile::tempdir().expect("a directory");
    // A random address in 127.0.0.0/8, so that a parallel test that also uses port 53 does not
    // collide.
    let [.., a, b, c] = RandomState::new().hash_one(0).to_be_bytes();
    let ip = Ipv4Addr::new(127, a | 1, b | 1, c & 0x7f | 1);
    for port in [0, 53] {
        if port == 53 && UdpSocket::bind((ip, port)).is_err() {
            return nonesuch_testing::record_skip("cannot listen on port 53");
        }
        let folder = folder.path().join(format!("port-{port}"));
        let zone = SignedZone::make(&folder, "example.", &EXAMPLE.replace("127.0.0.1", &ip.to_string()));
        let root = root_zone(&folder, ip, &zone.anchor);
        let zones = [(".", root.signed.as_path()), ("example.", zone.signed.as_path())];
        let Some(server) = serve(&folder, SocketAddrV4::new(ip, port), &zones) else { return };
        let servers = vec![RootServer { name: "ns.root.".to_owned(), address: ip }];
        let upstream = Upstream::Roots { servers, port: server.address.port() };
        for peer in installed().filter(|peer| port == 53 || peer.info().iterates_on_any_port) {
            let resolver = resolve(peer, &folder, &upstream, std::slice::from_ref(&root.anchor));
            assert_eq!(verdicts(&resolver), SECURE, "{peer:?}: {}", resolver.log());
        }
    }
}
