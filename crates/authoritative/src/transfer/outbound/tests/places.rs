//! Limits for concurrent transfers.

use super::*;

#[test]
fn no_client_network_uses_all_transfers() {
    let mut server = Server::new(&large(7));
    let start = |server: &Server, client: &str| {
        let (message, mut out) = (request(None), Vec::new());
        let client = format!("{client}:53").parse().unwrap();
        match server.begin_for(client, &message, None, false, &mut out) {
            TransferAnswer::Stream(sending) => Ok(sending),
            TransferAnswer::Refuse(refusal) => Err(refusal),
            TransferAnswer::Truncate | TransferAnswer::Single => panic!("one message"),
        }
    };
    let with_each = |each| {
        Arc::new(
            OutgoingTransfers::new(4, || NOON)
                .with_limit_per_client(each, nonesuch_server::acl::Prefix::loopback()),
        )
    };
    server.outgoing = with_each(2);
    let held = [start(&server, "192.0.2.1").unwrap(), start(&server, "192.0.2.250").unwrap()];
    // Addresses of one network share a limit. An IPv4-mapped IPv6 address counts as IPv4.
    for client in ["192.0.2.1", "192.0.2.7", "[::ffff:192.0.2.9]"] {
        let refusal = start(&server, client).unwrap_err();
        assert_eq!((refusal, refusal.rcode()), (TransferRefusal::TooManyOfClient, Rcode::SERVFAIL));
        assert_eq!(refusal.extended_error().map(|error| error.code), Some(0));
    }
    let others = [start(&server, "192.0.3.1").unwrap(), start(&server, "[2001:db8::1]").unwrap()];
    assert_eq!(start(&server, "198.51.100.1").unwrap_err(), TransferRefusal::TooMany);
    // A transfer that ends frees a place for its own network.
    drop(held);
    start(&server, "192.0.2.7").unwrap();
    drop(others);
    let networks = ["[2001:db8:0:1::1]", "[2001:db8:0:2::1]", "[2001:db8:0:100::1]"];
    let [first, second, third] = networks.map(|client| start(&server, client));
    assert!(first.is_ok() && second.is_ok() && third.is_ok());
    assert_eq!(start(&server, "[2001:db8:0:ff::1]").unwrap_err(), TransferRefusal::TooManyOfClient);
    // Exempt clients are subject only to the limit for all transfers.
    server.outgoing = with_each(1);
    let all = [(); 4].map(|()| start(&server, "127.0.0.1").unwrap());
    assert_eq!(start(&server, "127.0.0.1").unwrap_err(), TransferRefusal::TooMany);
    drop(all);
}

#[test]
fn each_refusal_has_a_unique_name() {
    let names: std::collections::BTreeSet<_> =
        TransferRefusal::ALL.iter().map(|refusal| refusal.name()).collect();
    assert_eq!(names.len(), TransferRefusal::ALL.len());
}
