use super::*;
use std::collections::HashSet;
use std::net::Ipv4Addr;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn ns(server: &str) -> (Name, Rtype, Vec<u8>) {
    (Name::root(), Rtype::NS, name(server).wire().to_vec())
}

fn address(owner: &str, address: &str) -> (Name, Rtype, Vec<u8>) {
    match address.parse().unwrap() {
        IpAddr::V4(address) => (name(owner), Rtype::A, address.octets().to_vec()),
        IpAddr::V6(address) => (name(owner), Rtype::AAAA, address.octets().to_vec()),
    }
}

#[test]
fn the_default_has_both_addresses_of_the_thirteen_servers() {
    let hints = Hints::default();
    assert_eq!(hints.servers().len(), 13);
    for ((server, addresses), letter) in hints.servers().iter().zip('a'..) {
        assert_eq!(*server, name(&format!("{letter}.root-servers.net.")));
        assert!(matches!(addresses[..], [IpAddr::V4(_), IpAddr::V6(_)]), "{server}");
        assert!(!addresses.iter().any(|address| is_unusable_address(*address)), "{server}");
    }
    assert_eq!(hints.addresses().collect::<HashSet<_>>().len(), 26);
    // The last change of an address, in November 2023.
    assert!(hints.addresses().any(|address| address == Ipv4Addr::new(170, 247, 170, 2)));
}

#[test]
fn the_default_is_what_its_records_form() {
    let hints = Hints::default();
    let mut records = Vec::new();
    for (server, addresses) in hints.servers() {
        let server = server.to_string();
        // Addresses before NS records, and owners in another letter case.
        records.extend(addresses.iter().map(|ip| address(&server.to_uppercase(), &ip.to_string())));
        records.push(ns(&server));
    }
    assert_eq!(Hints::from_records(&records), Ok(hints));
}

#[test]
fn servers_can_be_given_by_name_and_address() {
    let pair = |server: &str, address: &str| (name(server), address.parse().unwrap());
    let hints = Hints::new([pair("a.", "192.0.2.1"), pair("b.", "192.0.2.2"), pair("A.", "::1")]).unwrap();
    let counts: Vec<_> =
        hints.servers().iter().map(|(server, all)| (server.to_string(), all.len())).collect();
    assert_eq!(counts, [("a.".to_owned(), 2), ("b.".to_owned(), 1)]);
    assert_eq!(Hints::new([]), Err(HintsError::NoServer));
    let (server, address) = pair("a.", "0.0.0.0");
    assert_eq!(Hints::new([pair("a.", "0.0.0.0")]), Err(HintsError::Address { server, address }));
}

#[test]
fn records_that_are_not_hints_are_errors() {
    let (server, other) = (|| name("ns."), || name("x."));
    let with = |record| Hints::from_records(&[ns("ns."), address("ns.", "192.0.2.1"), record]);
    assert!(with(address("ns.", "127.0.0.1")).is_ok());
    assert!(with(address("ns.", "::1")).is_ok());
    assert_eq!(Hints::from_records(&[]), Err(HintsError::NoServer));
    let lone = Hints::from_records(&[address("ns.", "192.0.2.1")]);
    assert_eq!(lone, Err(HintsError::NotAServer { owner: server() }));
    assert_eq!(with(ns("x.")), Err(HintsError::NoAddress { server: other() }));
    assert_eq!(with(ns("NS.")), Err(HintsError::RepeatedServer { server: server() }));
    assert_eq!(
        with((other(), Rtype::NS, server().wire().to_vec())),
        Err(HintsError::NotOfRoot { owner: other() })
    );
    assert_eq!(with(address("x.", "192.0.2.1")), Err(HintsError::NotAServer { owner: other() }));
    assert_eq!(
        with((Name::root(), Rtype::SOA, Vec::new())),
        Err(HintsError::OtherType { owner: Name::root(), rtype: Rtype::SOA })
    );
    for (owner, rtype, rdata) in [
        (Name::root(), Rtype::NS, vec![1, b'x']),
        (Name::root(), Rtype::NS, vec![0, 0]),
        (server(), Rtype::A, vec![192, 0, 2]),
        (server(), Rtype::AAAA, vec![0; 15]),
    ] {
        let expected = Err(HintsError::Malformed { owner: owner.clone(), rtype });
        assert_eq!(with((owner, rtype, rdata)), expected);
    }
    for text in ["0.0.0.0", "224.0.0.1", "::", "ff02::1", "fe80::1", "::ffff:192.0.2.1"] {
        let expected = HintsError::Address { server: server(), address: text.parse().unwrap() };
        assert_eq!(with(address("ns.", text)), Err(expected));
    }
    let repeated = HintsError::RepeatedAddress { server: server(), address: "192.0.2.1".parse().unwrap() };
    assert_eq!(with(address("ns.", "192.0.2.1")), Err(repeated));
}

#[test]
fn the_number_of_servers_and_addresses_is_bounded() {
    let servers = |count: usize| -> Vec<_> {
        let records = (0..count).map(|n| format!("ns{n}."));
        records.flat_map(|server| [ns(&server), address(&server, "192.0.2.1")]).collect()
    };
    assert_eq!(Hints::from_records(&servers(64)).unwrap().servers().len(), 64);
    assert_eq!(Hints::from_records(&servers(65)), Err(HintsError::TooManyServers));
    let addresses = |count: usize| -> Vec<_> {
        let addresses = (1..=count).map(|n| address("ns.", &format!("192.0.2.{n}")));
        std::iter::once(ns("ns.")).chain(addresses).collect()
    };
    assert_eq!(Hints::from_records(&addresses(16)).unwrap().addresses().count(), 16);
    assert_eq!(
        Hints::from_records(&addresses(17)),
        Err(HintsError::TooManyAddresses { server: name("ns.") })
    );
}
