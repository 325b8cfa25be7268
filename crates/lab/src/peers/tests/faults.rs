//! Errors: bad configurations, missing programs, and setups that a peer cannot have.

use super::fixture::is_installed;
use crate::peers::{
    OnlineDenial, Peer, PeerError, PeerRole, PeerServer, PeerZone, PrimaryTls, ResolverSetup, RootServer,
    Serving, Setup, StubZone, TrustAnchor, Upstream,
};
use std::net::Ipv4Addr;
use std::path::Path;

#[test]
fn a_bad_configuration_names_program_and_line() {
    let folder = tempfile::tempdir().expect("a directory");
    for peer in Peer::all().filter(|peer| is_installed(*peer)) {
        let lines = match peer {
            Peer::Knot | Peer::Nsd | Peer::Unbound => "  no-such-option: 1\n",
            Peer::PowerDns | Peer::PowerDnsRecursor => "no-such-option=1\n",
            Peer::KnotResolver => "no_such_option()\n",
            // At the top of its file, each word is an address of a server block.
            Peer::CoreDns => ".:0 {\n  no-such-option 1\n}\n",
            Peer::Bind | Peer::BindResolver => "no-such-option 1;\n",
        };
        let lines = lines.to_owned();
        let setup = Setup { lines, ..Setup::new(&folder.path().join(peer.info().name)) };
        let error = PeerServer::start(peer, &setup).expect_err("a bad configuration");
        assert!(matches!(error, PeerError::Ended { .. } | PeerError::Step { .. }), "{error}");
        let text = error.to_string().replace('_', "-");
        assert!(text.contains("no-such-option"), "{peer:?}: {error}");
        assert!(text.contains(peer.info().title) || text.contains("pdnsutil"), "{peer:?}: {error}");
    }
}

#[test]
fn a_missing_program_is_named_with_its_package() {
    let folder = tempfile::tempdir().expect("a directory");
    for peer in Peer::all().filter(|peer| !peer.missing_programs().is_empty()) {
        let error = PeerServer::start(peer, &Setup::new(folder.path())).expect_err("not installed");
        let PeerError::Missing { programs, package, .. } = &error else { panic!("{error}") };
        assert!(programs.contains(peer.info().programs[0]) && *package == peer.info().package, "{error}");
        assert_eq!(peer.version(), None);
    }
}

fn rejected(peer: Peer, setup: &Setup) -> PeerError {
    setup.check(peer).expect_err("a setup that the peer cannot have")
}

#[test]
fn a_peer_cannot_do_everything() {
    let new = || Setup::new(Path::new("/tmp/peer"));
    let zone = |serving| vec![PeerZone::new("example.", Path::new("/tmp/zone"), serving)];
    let server = ([127, 0, 0, 1], 53).into();
    let tls = PrimaryTls { authorities: "/tmp/authorities.pem".into(), name: "ns.example".to_owned() };
    let online = Serving::Online { denial: OnlineDenial::Nsec3, keys: Vec::new() };
    let generated = Serving::Online { denial: OnlineDenial::Compact, keys: Vec::new() };
    let upstream = Upstream::Roots { servers: Vec::new(), port: 5300 };
    let resolver = ResolverSetup { upstream, ..ResolverSetup::default() };
    for (peer, setup) in [
        (Peer::Knot, Setup { zones: zone(online), ..new() }),
        (Peer::CoreDns, Setup { zones: zone(generated), ..new() }),
        (Peer::PowerDns, Setup { zones: zone(Serving::Secondary { primary: server, tls: None }), ..new() }),
        (Peer::Knot, Setup { zones: zone(Serving::Secondary { primary: server, tls: Some(tls) }), ..new() }),
        (Peer::PowerDns, Setup { sections: "zone \"x\" {};".to_owned(), ..new() }),
        (Peer::Bind, Setup { ip: Ipv4Addr::new(127, 0, 0, 2), ..new() }),
        (Peer::Unbound, Setup { zones: zone(Serving::Unsigned), ..new() }),
        (Peer::Unbound, Setup { resolver: resolver.clone(), ..new() }),
    ] {
        assert!(matches!(rejected(peer, &setup), PeerError::Unsupported { .. }), "{peer:?}");
    }
    assert!(Setup { resolver, ..new() }.check(Peer::BindResolver).is_ok());
}

#[test]
fn nothing_on_the_internet_is_configured() {
    let new = || Setup::new(Path::new("/tmp/peer"));
    let outside = Ipv4Addr::new(203, 0, 113, 1);
    let with = |upstream| Setup { resolver: ResolverSetup { upstream, ..ResolverSetup::default() }, ..new() };
    let stub = StubZone { zone: "example.".to_owned(), server: (outside, 53).into() };
    let root = RootServer { name: "a.root.".to_owned(), address: outside };
    for setup in [
        Setup { ip: outside, ..new() },
        with(Upstream::Stubs(vec![stub])),
        with(Upstream::Roots { servers: vec![root], port: 53 }),
    ] {
        assert!(matches!(rejected(Peer::Unbound, &setup), PeerError::Setup { .. }));
    }
}

#[test]
fn text_that_would_change_a_configuration_is_rejected() {
    let new = || Setup::new(Path::new("/tmp/peer"));
    let zone = |origin: &str, file: &str| Setup {
        zones: vec![PeerZone::new(origin, Path::new(file), Serving::Unsigned)],
        ..new()
    };
    for setup in [
        zone("example.\"; };", "/tmp/zone"),
        zone("", "/tmp/zone"),
        zone("example.", "/tmp/a zone"),
        zone("example.", "/tmp/\"zone"),
    ] {
        assert!(matches!(rejected(Peer::Bind, &setup), PeerError::Setup { .. }));
    }
    for ds in ["", "1 13 2", "1 13 2 AB; }", "1 13 2 AB CD"] {
        let anchors = vec![TrustAnchor { zone: ".".to_owned(), ds: ds.to_owned() }];
        let setup = Setup { resolver: ResolverSetup { anchors, ..ResolverSetup::default() }, ..new() };
        assert!(matches!(rejected(Peer::Unbound, &setup), PeerError::Setup { .. }), "{ds}");
    }
    let negative_anchors = vec!["nta.example.\"; };".to_owned()];
    let setup = Setup { resolver: ResolverSetup { negative_anchors, ..ResolverSetup::default() }, ..new() };
    assert!(matches!(rejected(Peer::BindResolver, &setup), PeerError::Setup { .. }));
    for peer in Peer::all().filter(|peer| peer.info().role == PeerRole::Resolver) {
        assert!(new().check(peer).is_ok());
    }
}
