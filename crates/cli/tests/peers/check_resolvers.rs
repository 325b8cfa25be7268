//! `nonesuch check resolver --program`: the items that other resolvers fail. docs/case-studies.md lists them.

use crate::common;
use common::{nonesuch, run_within};
use nonesuch_lab::peers::Peer;
use nonesuch_testing::record_skip;
use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::time::Duration;

/// Time limit for the check of one resolver: BIND takes 70 s on two cores.
const LIMIT: Duration = Duration::from_secs(300);

/// A resolver of another project, as packaged in Debian 12, and the items that it always fails.
struct Known {
    program: &'static str,
    peer: Peer,
    failing: &'static [&'static str],
    /// Items that fail in some runs.
    sometimes: &'static [&'static str],
}

/// Knot Resolver ignores servers on loopback addresses.
const KNOWN: [Known; 3] = [
    Known {
        program: "unbound",
        peer: Peer::Unbound,
        failing: &["F-194", "XF-020", "XF-040"],
        sometimes: &[],
    },
    Known {
        program: "bind",
        peer: Peer::BindResolver,
        failing: &["XF-058"],
        sometimes: &["XF-023", "XF-025", "XF-041"],
    },
    Known {
        program: "pdns",
        peer: Peer::PowerDnsRecursor,
        failing: &["XF-030", "XF-033", "XF-035", "XF-040", "XF-058", "XF-067"],
        sometimes: &[],
    },
];

/// Takes about a minute for each resolver.
#[test]
#[ignore = "just judge"]
fn other_resolvers_fail_the_known_items() {
    if UdpSocket::bind("127.165.0.9:53").is_err() {
        return record_skip("only root can listen on port 53");
    }
    for known in &KNOWN {
        if !known.peer.missing_programs().is_empty() {
            record_skip(&format!("{} is not installed", known.peer.missing_programs().join(", ")));
            continue;
        }
        let arguments =
            ["check", "resolver", "--program", known.program, "--tree-address", "127.165.0.1", "--json"];
        let ended = run_within(LIMIT, &mut nonesuch(arguments));
        let json: serde_json::Value =
            serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.text()));
        let items = json["items"].as_array().expect("items").iter();
        let failed: BTreeSet<&str> =
            items.filter(|item| item["result"] == "fail").filter_map(|item| item["id"].as_str()).collect();
        let expected: BTreeSet<&str> = known.failing.iter().copied().collect();
        let sometimes: BTreeSet<&str> = known.sometimes.iter().copied().collect();
        assert!(
            expected.is_subset(&failed) && failed.is_subset(&expected.union(&sometimes).copied().collect()),
            "{}: {failed:?}",
            known.program
        );
    }
}
