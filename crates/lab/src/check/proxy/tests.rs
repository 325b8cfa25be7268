//! Every item passes with the correct proxy, and fails with the fault that it must find.

use super::{ProxyCheck, ProxyCheckOptions, items};
use crate::check::{Evidence, Outcome};
use crate::proxy::{FAULTS, Fault, FaultEntry};
use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

/// A dropped response costs this time.
const TIMEOUT: Duration = Duration::from_millis(80);

/// The outcomes of the items that `is_wanted` selects, for a proxy with these faults.
fn outcomes(faults: &[Fault], is_wanted: impl Fn(&str) -> bool) -> Vec<(&'static str, Outcome)> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    // The address on the side of the provider must be known before the start.
    let wan = std::net::UdpSocket::bind(any).and_then(|socket| socket.local_addr()).expect("a port");
    let mut check = ProxyCheck::start(&ProxyCheckOptions {
        proxy: None,
        upstream: any,
        wan: Some(wan),
        faults: faults.to_vec(),
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
    for (id, outcome) in outcomes(&[], |_| true) {
        assert_eq!(outcome.name(), "pass", "{id}: {}", outcome.text());
    }
}

#[test]
fn every_fault_is_found_by_its_items() {
    for entry in FAULTS {
        let wanted = items_of(entry);
        assert!(wanted.iter().all(|id| items().any(|row| row.item.id == id)), "{wanted:?}");
        let found = outcomes(&[entry.fault], |id| wanted.iter().any(|wanted| wanted == id));
        for (id, outcome) in found {
            assert_eq!(outcome.name(), "fail", "{} with {}: {}", id, entry.name, outcome.text());
        }
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
        proxy: Some(silent.local_addr().expect("an address")),
        upstream: any,
        wan: None,
        faults: Vec::new(),
        timeout: TIMEOUT,
    };
    let error = ProxyCheck::start(&options).expect_err("not forwarded");
    assert!(matches!(error, super::ProxyCheckError::NotForwarded { .. }), "{error}");
}
