//! Tests of the servers without sockets.

use super::{Shared, Transport};
use crate::check::Query;
use crate::check::resolver::{Place, ResolverOptions, Target, zone_options};
use crate::check::zones::{Role, SIZES, SizedZone, sized_name};
use nonesuch_proto::message::{Message, Rcode, flags};
use nonesuch_proto::{Name, Rtype};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// The time of the tests: 2026-01-01.
const NOW: u64 = 1_767_225_600;

struct Servers {
    shared: Shared,
    domain: String,
    leaf: SocketAddr,
}

impl Servers {
    fn start() -> Self {
        let place = Place::Local { root: Ipv4Addr::new(127, 53, 0, 1), port: 53 };
        let target = Target::Running(SocketAddr::from((Ipv4Addr::LOCALHOST, 53)));
        let options = ResolverOptions { target, timeout: Duration::from_secs(1), place, seed: 1, now: NOW };
        let zones = zone_options(&options, "rtests", 7);
        let leaf = SocketAddr::from((zones.addresses.of(Role::Leaf), 53));
        let shared = Shared::new(zones.build().expect("zones")).expect("servers");
        Self { shared, domain: zones.domain(), leaf }
    }

    fn name(&self, relative: &str) -> Name {
        format!("{relative}.{}", self.domain).parse().expect("a name")
    }

    fn ask(&self, query: &Query, transport: Transport) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        self.shared.answer(self.leaf, self.leaf, transport, &query.to_octets(7), &mut out).then_some(out)
    }
}

#[test]
fn answers_have_exactly_the_size_that_their_names_state() {
    let servers = Servers::start();
    for zone in SizedZone::ALL {
        for size in SIZES {
            let name = sized_name(size, &servers.name(zone.label())).expect("a name");
            let query = Query::new(name, Rtype::TXT).with_payload(u16::MAX);
            let transport = if size <= 4096 { Transport::Udp } else { Transport::Tcp };
            let response = servers.ask(&query, transport).expect("a response");
            assert_eq!(response.len(), size, "{}", query.name);
            assert!(Message::parse(&response).is_ok());
        }
    }
    // The behaviour of special servers, and the log of queries.
    let truncated = servers.ask(&Query::new(servers.name("www.truncates"), Rtype::A), Transport::Udp);
    let truncated = Message::parse(&truncated.expect("a response")).expect("a message");
    assert_ne!(truncated.header.flags & flags::TC, 0);
    let compact = servers.ask(&Query::new(servers.name("none.with-compact"), Rtype::A), Transport::Udp);
    let compact = Message::parse(&compact.expect("a response")).expect("a message");
    assert_eq!(compact.rcode(), Rcode::NOERROR);
    assert!(compact.records.iter().any(|record| record.rtype == Rtype::NSEC));
    let (count, observations) = servers.shared.log().from(SIZES.len());
    assert_eq!((count, observations.len()), (2 * SIZES.len() + 2, SIZES.len() + 2));
}
