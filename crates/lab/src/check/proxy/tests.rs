//! Every item passes with the correct proxy, and fails with the fault that it must find.

use super::{ProxyCheck, ProxyCheckError, ProxyCheckOptions, ProxyTarget, items};
use crate::check::{Evidence, Outcome};
use crate::link::{Link, LinkError, LinkOptions};
use crate::proxy::{FAULTS, Fault, FaultEntry, Proxy, ProxyOptions};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// A dropped response costs this time.
const TIMEOUT: Duration = Duration::from_millis(80);
/// Number of faults that are tested at the same time.
const THREADS: usize = 5;
/// The items that need network namespaces.
const OVER_PATHS: [&str; 6] = ["XP-009", "XP-011", "XP-012", "XP-013", "XP-015", "XP-016"];

/// Whether items over paths can be tested. Records a skip if not.
fn has_paths() -> bool {
    match Link::new(LinkOptions::default()) {
        Err(LinkError::Namespace(error)) if error.is_unavailable() => {
            nonesuch_testing::record_skip("network namespaces or TUN devices cannot be used");
            false
        }
        link => link.map(drop).map(|()| true).expect("a link"),
    }
}

/// The outcomes of the items that `is_wanted` selects, for a proxy with these faults.
fn outcomes(faults: &[Fault], is_wanted: impl Fn(&str) -> bool) -> Vec<(&'static str, Outcome)> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    // The address on the side of the provider must be known before the start.
    let wan = std::net::UdpSocket::bind(any).and_then(|socket| socket.local_addr()).expect("a port");
    let mut check = ProxyCheck::start(&ProxyCheckOptions {
        target: ProxyTarget::Own(faults.to_vec()),
        upstream: any,
        wan: Some(wan),
        timeout: if faults.is_empty() { Duration::from_secs(2) } else { TIMEOUT },
    })
    .expect("the check starts");
    let wanted = items().filter(|row| is_wanted(row.item.id));
    wanted.map(|row| (row.item.id, (row.run)(&mut check, &mut Evidence::default()))).collect()
}

/// The items that find a fault: "P (2) (3), XP-003" is P-2, P-3 and XP-003.
fn items_of(entry: &FaultEntry) -> Vec<String> {
    let mut items = Vec::new();
    for part in entry.items.split(", ") {
        match part.strip_prefix("P ") {
            Some(cases) => {
                items.extend(cases.split(' ').map(|case| format!("P-{}", case.trim_matches(['(', ')']))))
            }
            None => items.push(part.to_owned()),
        }
    }
    items
}

#[test]
fn every_item_passes_with_the_correct_proxy() {
    let has_paths = has_paths();
    for (id, outcome) in outcomes(&[], |_| true) {
        let expected = if has_paths || !OVER_PATHS.contains(&id) { "pass" } else { "not testable" };
        assert_eq!(outcome.name(), expected, "{id}: {}", outcome.text());
    }
}

#[test]
fn large_responses_are_fragments_on_the_paths() {
    if !has_paths() {
        return;
    }
    let notes: Vec<String> = outcomes(&[], |id| id == "XP-009" || id == "XP-011")
        .into_iter()
        .map(|(_, outcome)| outcome.text().to_owned())
        .collect();
    assert_eq!(
        notes,
        [
            "1472 octets in 1 packet; 1473 octets in 2 packets; 4000 octets in 3 packets",
            "1232 octets in 1 packet; 1252 octets in 1 packet; 1253 octets in 2 packets; \
             1473 octets in 3 packets; 4000 octets in 5 packets",
        ]
    );
}

#[test]
fn every_fault_is_found_by_its_items() {
    let has_paths = has_paths();
    // The threads wait for time limits most of the time.
    std::thread::scope(|scope| {
        for entries in FAULTS.chunks(FAULTS.len().div_ceil(THREADS)) {
            scope.spawn(move || entries.iter().for_each(|entry| is_found(entry, has_paths)));
        }
    });
}

fn is_found(entry: &FaultEntry, has_paths: bool) {
    let mut wanted = items_of(entry);
    assert!(wanted.iter().all(|id| items().any(|row| row.item.id == id)), "{wanted:?}");
    wanted.retain(|id| has_paths || !OVER_PATHS.contains(&id.as_str()));
    for (id, outcome) in outcomes(&[entry.fault], |id| wanted.iter().any(|wanted| wanted == id)) {
        assert_eq!(outcome.name(), "fail", "{} with {}: {}", id, entry.name, outcome.text());
    }
}

#[test]
fn every_item_fails_with_a_fault() {
    for row in items() {
        let is_found = FAULTS.iter().any(|entry| items_of(entry).iter().any(|id| id == row.item.id));
        assert!(is_found, "{}: no fault of `nonesuch proxy --fault` fails it", row.item.id);
    }
}

#[test]
fn a_proxy_that_does_not_forward_is_reported() {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let silent = std::net::UdpSocket::bind(any).expect("bound");
    let options = ProxyCheckOptions {
        target: ProxyTarget::Running(silent.local_addr().expect("an address")),
        upstream: any,
        wan: None,
        timeout: TIMEOUT,
    };
    let error = ProxyCheck::start(&options).expect_err("not forwarded");
    assert!(matches!(error, ProxyCheckError::NotForwarded { .. }), "{error}");
}

#[test]
fn no_path_to_a_running_proxy_is_simulated() {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    // An address of its own: a port that is free over UDP is free over TCP, too.
    let own = SocketAddr::from((Ipv4Addr::new(127, 77, 0, 1), 0));
    let free = std::net::UdpSocket::bind(own).and_then(|socket| socket.local_addr()).expect("a port");
    let proxy = Proxy::start(&ProxyOptions::new(any, free)).expect("a proxy");
    let mut check = ProxyCheck::start(&ProxyCheckOptions {
        target: ProxyTarget::Running(proxy.address()),
        upstream: free,
        wan: None,
        timeout: Duration::from_secs(2),
    })
    .expect("the check starts");
    for row in items().filter(|row| row.item.id == "XP-014" || OVER_PATHS.contains(&row.item.id)) {
        let outcome = (row.run)(&mut check, &mut Evidence::default());
        let expected = match row.item.id {
            // Only the sizes are tested, and the resolver of the check refuses TCP without a path.
            "XP-009" | "XP-014" => "pass",
            _ => "not testable",
        };
        assert_eq!(outcome.name(), expected, "{}: {}", row.item.id, outcome.text());
    }
}
