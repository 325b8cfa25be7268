//! The servers of the tree, and the validators.

use crate::common;
use common::configured::{Configured, write_beside};
use nonesuch_conformance::simulator::{Reaction, ServerQuery};
use nonesuch_conformance::sockets::{self, React};
use nonesuch_lab::peers::{Peer, PeerServer, ResolverSetup, RootServer, Setup, Upstream};
use nonesuch_lab::tree::{AnchorForm, Tree};
use nonesuch_net::Transport;
use nonesuch_proto::edns;
use nonesuch_proto::message::{Header, Message, Record, Section, flags};
use nonesuch_proto::{Class, Name, Rtype};
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;

const DNS_PORT: u16 = 53;
/// Maximum size of UDP responses of the servers, in octets.
const UDP_OCTETS: usize = 1232;
/// Maximum size of UDP responses without EDNS, in octets (RFC 1035 §2.3.4).
const PLAIN_OCTETS: usize = 512;

/// Options of BIND, which does not answer some questions about bogus names until the query times out.
const BIND_LINES: &str = "  resolver-query-timeout 2000;\n";
/// Options of PowerDNS Recursor: a lost packet does not lead to SERVFAIL for a minute.
const POWERDNS_LINES: &str = "dont-throttle-netmasks=127.0.0.0/8,198.18.0.0/15\npacketcache-servfail-ttl=0\n";

/// Starts the servers of the tree. They run until the process ends.
pub(crate) fn serve(tree: Arc<Tree>) {
    let addresses: Vec<IpAddr> = tree.servers().into_keys().map(IpAddr::from).collect();
    let react: React = Arc::new(move |query| react(&tree, query));
    for address in addresses {
        sockets::serve(SocketAddr::new(address, DNS_PORT), &[Transport::Udp, Transport::Tcp], &react)
            .unwrap_or_else(|error| panic!("{address}: {error}"));
    }
}

fn react(tree: &Tree, query: &ServerQuery<'_>) -> Reaction {
    let IpAddr::V4(server) = query.server.ip() else { return Reaction::SILENCE };
    let Ok(asked) = Message::parse(query.message) else { return Reaction::SILENCE };
    let Some(question) = asked.questions.first() else { return Reaction::SILENCE };
    let Some(mut response) = tree.respond(server, question.name.view(), question.rtype) else {
        return Reaction::SILENCE;
    };
    response.header.id = asked.header.id;
    response.header.flags |= asked.header.flags & flags::RD;
    let payload = asked.opt().map(|opt| usize::from(opt.class.0));
    if payload.is_some() {
        response.records.push(opt());
    }
    let octets = response.to_octets();
    let limit = payload.map_or(PLAIN_OCTETS, |payload| payload.clamp(PLAIN_OCTETS, UDP_OCTETS));
    let octets = if query.transport == Transport::Udp && octets.len() > limit {
        let header = Header { flags: response.header.flags | flags::TC, ..response.header };
        let records = payload.map(|_| opt()).into_iter().collect();
        Message { header, questions: response.questions, records }.to_octets()
    } else {
        octets
    };
    Reaction::answer(query.server, octets)
}

fn opt() -> Record {
    Record {
        section: Section::Additional,
        owner: Name::root(),
        rtype: Rtype::OPT,
        class: Class(UDP_OCTETS as u16),
        ttl: u32::from(edns::DO),
        rdata: Vec::new(),
    }
}

/// Starts a validator of another project.
pub(crate) fn start_peer(folder: &Path, tree: &Tree, peer: Peer) -> PeerServer {
    let root = tree.zones.iter().find(|zone| zone.parent.is_none()).expect("a root");
    let server = RootServer { name: root.nameserver.to_string(), address: root.server };
    let anchors = tree.anchors(AnchorForm::Ds);
    let resolver = ResolverSetup {
        upstream: Upstream::Roots { servers: vec![server], port: DNS_PORT },
        anchors: anchors.lines().map(common::peers::anchor).collect(),
        ..ResolverSetup::default()
    };
    let lines = match peer {
        Peer::BindResolver => BIND_LINES,
        Peer::PowerDnsRecursor => POWERDNS_LINES,
        _ => "",
    };
    common::peers::start(peer, &Setup { resolver, lines: lines.to_owned(), ..Setup::new(folder) })
}

/// Starts `nonesuch resolve` with the trust anchor of the tree.
pub(crate) fn start_ours(folder: &Path, tree: &Tree) -> Configured {
    let (hints, anchors) = (folder.join("root.hints"), folder.join("anchor.ds"));
    fs::write(&hints, tree.root_hints()).expect("written");
    fs::write(&anchors, tree.anchors(AnchorForm::Ds)).expect("written");
    let file = folder.join("resolver.toml");
    let configuration = format!(
        "version = 1\nlisten = [\"127.0.0.1:0\"]\nworkers = 1\nhints = {hints:?}\n\
        trust-anchors = {anchors:?}\nexperimental-algorithms = true\n"
    );
    write_beside(&file, &configuration);
    Configured::start_command("resolve", &["--config", common::text(&file)], &file, Stdio::null())
}
