use super::*;
use crate::zones::ZoneRule;
use proptest::prelude::*;
use std::collections::HashSet;
use std::net::IpAddr;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn all() -> LocalNames {
    LocalNames::new(&[], &ZoneRules::default(), Chaos::default()).unwrap()
}

fn with_rules(apexes: &[&str]) -> LocalNames {
    let server = || vec!["192.0.2.1:53".parse().unwrap()];
    let rules = apexes.iter().map(|apex| ZoneRule::stub(name(apex), server()));
    LocalNames::new(&[], &ZoneRules::new(rules).unwrap(), Chaos::default()).unwrap()
}

/// Returns the answer as text: RCODE, types of the answer, owner of the SOA record in the authority
/// section.
fn ask(names: &LocalNames, question: &str, rtype: Rtype) -> Option<String> {
    let LocalAnswer { rcode, answer, authority } = names.answer(name(question).view(), rtype, Class::IN)?;
    let mut text = rcode.to_string();
    for rrset in &answer {
        assert_eq!((rrset.owner.wire(), rrset.class, rrset.ttl), (name(question).wire(), Class::IN, 10_800));
        assert_eq!(rrset.records.iter().count(), 1);
        assert!(rrset.signatures.is_empty());
        text += &format!(" {}", rrset.rtype);
    }
    assert_eq!(answer.is_empty(), authority.len() == 1);
    for rrset in &authority {
        assert_eq!((rrset.rtype, rrset.ttl), (Rtype::SOA, 10_800));
        text += &format!(" [{}]", rrset.owner);
    }
    Some(text)
}

fn reverse(address: IpAddr) -> Name {
    let labels: Vec<String> = match address {
        IpAddr::V4(address) => address.octets().iter().rev().map(ToString::to_string).collect(),
        IpAddr::V6(address) => {
            let octets = address.octets().into_iter().rev();
            octets.flat_map(|octet| [octet & 15, octet >> 4]).map(|nibble| format!("{nibble:x}")).collect()
        }
    };
    let suffix = if address.is_ipv4() { "in-addr" } else { "ip6" };
    name(&format!("{}.{suffix}.arpa.", labels.join(".")))
}

#[test]
fn the_apex_of_an_empty_zone_has_soa_and_ns() {
    let names = all();
    for apex in ["home.arpa.", "service.arpa.", "10.in-addr.arpa.", "31.172.in-addr.arpa.", "d.f.ip6.arpa."] {
        assert_eq!(ask(&names, apex, Rtype::SOA).unwrap(), "NOERROR SOA");
        assert_eq!(ask(&names, apex, Rtype::NS).unwrap(), "NOERROR NS");
        assert_eq!(ask(&names, apex, Rtype::ANY).unwrap(), "NOERROR SOA NS");
        assert_eq!(ask(&names, apex, Rtype::A).unwrap(), format!("NOERROR [{apex}]"));
        let below = format!("a.{apex}");
        assert_eq!(ask(&names, &below, Rtype::PTR).unwrap(), format!("NXDOMAIN [{apex}]"));
        assert_eq!(ask(&names, &below, Rtype::DS).unwrap(), format!("NXDOMAIN [{apex}]"));
        assert_eq!(ask(&names, &format!("*.b.{below}"), Rtype::ANY).unwrap(), format!("NXDOMAIN [{apex}]"));
    }
}

/// The records of RFC 6303 §3.
#[test]
fn soa_and_ns_have_the_values_of_the_rfc() {
    let names = all();
    let rdata = |rtype| {
        let answer = names.answer(name("10.in-addr.arpa.").view(), rtype, Class::IN).unwrap().answer;
        answer[0].records.iter().next().unwrap().to_vec()
    };
    let mut text = Vec::new();
    nonesuch_proto::rdata::push_text(Rtype::SOA, &rdata(Rtype::SOA), &mut text);
    assert_eq!(String::from_utf8(text).unwrap(), "10.in-addr.arpa. nobody.invalid. 1 3600 1200 604800 10800");
    assert_eq!(rdata(Rtype::NS), name("10.in-addr.arpa.").wire());
}

#[test]
fn names_outside_the_dns_do_not_exist() {
    let names = all();
    for apex in ["test.", "invalid.", "local.", "onion.", "alt."] {
        for question in [apex.to_owned(), format!("www.example.{apex}")] {
            for rtype in [Rtype::A, Rtype::NS, Rtype::SOA, Rtype::ANY] {
                assert_eq!(
                    ask(&names, &question, rtype).unwrap(),
                    format!("NXDOMAIN [{apex}]"),
                    "{question}"
                );
            }
        }
    }
    assert_eq!(ask(&names, "Example.ONION.", Rtype::A).unwrap(), "NXDOMAIN [onion.]");
}

#[test]
fn localhost_and_names_below_have_the_loopback_addresses() {
    let names = all();
    for question in ["localhost.", "LocalHost.", "a.b.localhost."] {
        assert_eq!(ask(&names, question, Rtype::A).unwrap(), "NOERROR A");
        assert_eq!(ask(&names, question, Rtype::AAAA).unwrap(), "NOERROR AAAA");
        assert_eq!(ask(&names, question, Rtype::ANY).unwrap(), "NOERROR A AAAA");
        for rtype in [Rtype::MX, Rtype::NS, Rtype::SOA, Rtype::CNAME, Rtype::RRSIG] {
            assert_eq!(ask(&names, question, rtype).unwrap(), "NOERROR [localhost.]");
        }
    }
    let rdata = |rtype| {
        let answer = names.answer(name("localhost.").view(), rtype, Class::IN).unwrap().answer;
        answer[0].records.iter().next().unwrap().to_vec()
    };
    assert_eq!(rdata(Rtype::A), [127, 0, 0, 1]);
    assert_eq!(rdata(Rtype::AAAA), Ipv6Addr::LOCALHOST.octets());
}

#[test]
fn the_loopback_addresses_have_the_name_localhost() {
    let names = all();
    for address in ["127.0.0.1", "::1"] {
        let question = reverse(address.parse().unwrap());
        let answer = names.answer(question.view(), Rtype::PTR, Class::IN).unwrap().answer;
        assert_eq!(answer[0].records.iter().collect::<Vec<_>>(), [name("localhost.").wire()]);
    }
    assert_eq!(ask(&names, "1.0.0.127.in-addr.arpa.", Rtype::ANY).unwrap(), "NOERROR PTR");
    assert_eq!(ask(&names, "1.0.0.127.in-addr.arpa.", Rtype::A).unwrap(), "NOERROR [127.in-addr.arpa.]");
    // NXDOMAIN for an ancestor would deny the name with the PTR record.
    for ancestor in ["0.0.127.in-addr.arpa.", "0.127.in-addr.arpa.", "127.in-addr.arpa."] {
        assert_eq!(ask(&names, ancestor, Rtype::PTR).unwrap(), "NOERROR [127.in-addr.arpa.]");
    }
    for other in ["2.0.0.127.in-addr.arpa.", "1.127.in-addr.arpa.", "x.1.0.0.127.in-addr.arpa."] {
        assert_eq!(ask(&names, other, Rtype::PTR).unwrap(), "NXDOMAIN [127.in-addr.arpa.]");
    }
    let ipv6 = reverse("::1".parse().unwrap()).to_string();
    assert_eq!(ask(&names, &ipv6, Rtype::ANY).unwrap(), "NOERROR SOA NS PTR");
}

#[test]
fn all_names_below_resolver_arpa_exist() {
    let names = all();
    assert_eq!(ask(&names, "resolver.arpa.", Rtype::SOA).unwrap(), "NOERROR SOA");
    for question in ["resolver.arpa.", "_dns.resolver.arpa.", "a.b.resolver.arpa."] {
        assert_eq!(ask(&names, question, Rtype(64)).unwrap(), "NOERROR [resolver.arpa.]");
    }
}

#[test]
fn the_ds_rrset_of_an_apex_is_not_local() {
    let names = all();
    for LocalZone { apex, .. } in known_zones() {
        assert_eq!(names.answer(apex.view(), Rtype::DS, Class::IN), None, "{apex}");
        assert!(names.answer(apex.view(), Rtype::DNSKEY, Class::IN).is_some(), "{apex}");
    }
}

#[test]
fn other_names_are_not_local() {
    let names = all();
    for question in [
        ".",
        "arpa.",
        "in-addr.arpa.",
        "ip6.arpa.",
        "example.",
        "www.example.com.",
        "mylocalhost.",
        "onion.example.",
        "172.in-addr.arpa.",
        "15.172.in-addr.arpa.",
        "32.172.in-addr.arpa.",
        "1.1.1.1.in-addr.arpa.",
        "63.100.in-addr.arpa.",
        "128.100.in-addr.arpa.",
        "1.0.192.in-addr.arpa.",
        "254.255.255.255.in-addr.arpa.",
        "c.f.ip6.arpa.",
        "c.e.f.ip6.arpa.",
        "0.0.0.ip6.arpa.",
        "ipv4only.arpa.",
        "170.0.0.192.in-addr.arpa.",
    ] {
        assert_eq!(ask(&names, question, Rtype::A), None, "{question}");
    }
    assert_eq!(names.answer(name("localhost.").view(), Rtype::A, Class(4)), None);
    assert_eq!(names.answer(name("localhost.").view(), Rtype::A, Class::ANY), None);
}

#[test]
fn reverse_names_of_special_addresses_are_local() {
    let names = all();
    for (address, expected) in [
        ("0.1.2.3", "0"),
        ("10.1.2.3", "10"),
        ("100.64.0.1", "64.100"),
        ("100.127.255.255", "127.100"),
        ("127.1.2.3", "127"),
        ("169.254.3.4", "254.169"),
        ("172.16.0.1", "16.172"),
        ("172.31.255.255", "31.172"),
        ("192.0.2.5", "2.0.192"),
        ("192.168.7.8", "168.192"),
        ("198.51.100.9", "100.51.198"),
        ("203.0.113.1", "113.0.203"),
        ("::", ""),
        ("fd12:3456::1", "d.f"),
        ("fe80::1", "8.e.f"),
        ("fe9f::1", "9.e.f"),
        ("feaf::1", "a.e.f"),
        ("febf::1", "b.e.f"),
        ("2001:db8::1", "8.b.d.0.1.0.0.2"),
    ] {
        let question = reverse(address.parse().unwrap());
        let answer = names.answer(question.view(), Rtype::PTR, Class::IN).expect(address);
        let apex = &answer.authority[0].owner;
        if expected.is_empty() {
            assert_eq!((apex, answer.rcode), (&question, Rcode::NOERROR));
        } else {
            assert!(apex.to_string().starts_with(&format!("{expected}.i")), "{address}: {apex}");
            assert_eq!(answer.rcode, Rcode::NXDOMAIN);
        }
    }
    let broadcast = reverse("255.255.255.255".parse().unwrap());
    assert_eq!(ask(&names, &broadcast.to_string(), Rtype::SOA).unwrap(), "NOERROR SOA");
}

#[test]
fn each_zone_of_the_table_is_there_once() {
    let known = known_zones();
    let apexes: HashSet<&Name> = known.iter().map(|zone| &zone.apex).collect();
    // RFC 6303: 18 of RFC 1918, 7 others of IPv4, 8 of IPv6; RFC 7793: 64; 9 special names.
    assert_eq!((known.len(), apexes.len()), (106, 106));
    assert!(known.iter().all(|zone| zone.source.starts_with("RFC ")));
    for zone in &known {
        let others = known.iter().filter(|other| other.apex != zone.apex);
        assert_eq!(others.filter(|other| zone.apex.view().is_below(other.apex.view())).count(), 0);
    }
    assert!(apexes.contains(&reverse("::".parse().unwrap())));
    assert!(apexes.contains(&reverse("::1".parse().unwrap())));
}

#[test]
fn a_zone_can_be_switched_off() {
    let disabled = [name("Home.arpa."), name("127.in-addr.arpa."), name("17.172.in-addr.arpa.")];
    let names = LocalNames::new(&disabled, &ZoneRules::default(), Chaos::default()).unwrap();
    for question in ["a.home.arpa.", "1.0.0.127.in-addr.arpa.", "0.127.in-addr.arpa.", "17.172.in-addr.arpa."]
    {
        assert_eq!(ask(&names, question, Rtype::A), None, "{question}");
    }
    assert!(ask(&names, "16.172.in-addr.arpa.", Rtype::A).is_some());
    for unknown in ["a.home.arpa.", "example.", "172.in-addr.arpa."] {
        let error = LocalNames::new(&[name(unknown)], &ZoneRules::default(), Chaos::default()).unwrap_err();
        assert_eq!(error, UnknownLocalZone { name: name(unknown) });
    }
}

#[test]
fn a_configured_zone_replaces_the_local_zone() {
    let names = with_rules(&["home.arpa.", "lan.home.arpa.", "corp."]);
    for question in ["home.arpa.", "a.home.arpa.", "x.lan.home.arpa.", "lan.home.arpa."] {
        for rtype in [Rtype::A, Rtype::DS] {
            assert_eq!(ask(&names, question, rtype), None, "{question}");
        }
    }
    assert!(ask(&names, "a.test.", Rtype::A).is_some());
}

#[test]
fn a_configured_zone_above_does_not_replace_local_zones() {
    let names = with_rules(&[".", "arpa."]);
    assert_eq!(ask(&names, "a.home.arpa.", Rtype::A).unwrap(), "NXDOMAIN [home.arpa.]");
}

#[test]
fn a_configured_zone_below_has_priority_and_exists() {
    let names = with_rules(&["c.b.test.", "e.d.c.b.test.", "5.10.in-addr.arpa."]);
    for question in ["c.b.test.", "x.c.b.test.", "d.c.b.test.", "e.d.c.b.test.", "9.5.10.in-addr.arpa."] {
        assert_eq!(ask(&names, question, Rtype::A), None, "{question}");
    }
    // The local zone is the parent of the configured zone, whose delegation is insecure.
    assert_eq!(ask(&names, "c.b.test.", Rtype::DS).unwrap(), "NOERROR [test.]");
    assert_eq!(ask(&names, "5.10.in-addr.arpa.", Rtype::DS).unwrap(), "NOERROR [10.in-addr.arpa.]");
    assert_eq!(ask(&names, "e.d.c.b.test.", Rtype::DS), None);
    // The names above the configured zone exist, the others do not.
    assert_eq!(ask(&names, "b.test.", Rtype::A).unwrap(), "NOERROR [test.]");
    assert_eq!(ask(&names, "test.", Rtype::A).unwrap(), "NOERROR [test.]");
    assert_eq!(ask(&names, "a.test.", Rtype::A).unwrap(), "NXDOMAIN [test.]");
    assert_eq!(ask(&names, "a.b.test.", Rtype::A).unwrap(), "NXDOMAIN [test.]");
    assert_eq!(ask(&names, "invalid.", Rtype::A).unwrap(), "NXDOMAIN [invalid.]");
}

#[test]
fn a_configured_zone_can_have_the_reverse_name_of_a_loopback_address() {
    let names = with_rules(&["1.0.0.127.in-addr.arpa."]);
    assert_eq!(ask(&names, "1.0.0.127.in-addr.arpa.", Rtype::PTR), None);
    let names = with_rules(&["0.127.in-addr.arpa."]);
    assert_eq!(ask(&names, "1.0.0.127.in-addr.arpa.", Rtype::PTR), None);
}

#[test]
fn identity_and_version_are_in_class_ch() {
    let chaos = Chaos { identity: Some(b"r1".to_vec()), version: None };
    let names = LocalNames::new(&[], &ZoneRules::default(), chaos).unwrap();
    let ask = |question: &str, rtype| names.answer(name(question).view(), rtype, Class::CH).unwrap();
    let identity = ask("ID.server.", Rtype::TXT);
    assert_eq!((identity.rcode, identity.authority.len()), (Rcode::NOERROR, 0));
    let rrset = &identity.answer[0];
    assert_eq!((rrset.rtype, rrset.class, rrset.ttl), (Rtype::TXT, Class::CH, 0));
    assert_eq!(rrset.records.iter().collect::<Vec<_>>(), [b"\x02r1"]);
    for (question, rtype) in
        [("version.bind.", Rtype::TXT), ("id.server.", Rtype::A), ("localhost.", Rtype::A)]
    {
        let refused = ask(question, rtype);
        assert_eq!((refused.rcode, refused.answer.len(), refused.authority.len()), (Rcode::REFUSED, 0, 0));
    }
}

fn any_question() -> impl Strategy<Value = Name> {
    let label = prop_oneof![
        "[a-z0-9]{1,2}".prop_map(String::from),
        proptest::sample::select(vec![
            "arpa",
            "in-addr",
            "ip6",
            "127",
            "10",
            "home",
            "test",
            "LocalHost",
            "0"
        ])
        .prop_map(str::to_owned),
    ];
    proptest::collection::vec(label, 0..7).prop_map(|labels| {
        labels.iter().fold(Name::root(), |name, label| Name::prepend(label.as_bytes(), name.view()).unwrap())
    })
}

proptest! {
    /// NXDOMAIN means that no name below exists (RFC 8020), and a name below a configured zone is
    /// never local.
    #[test]
    fn answers_of_names_below_each_other_agree(
        question in any_question(),
        below in "[a-z0-9]{1,2}",
        rules in proptest::collection::hash_set(any_question(), 0..5),
        rtype in proptest::sample::select(vec![Rtype::A, Rtype::PTR, Rtype::NS, Rtype::ANY, Rtype::DNSKEY]),
    ) {
        let server = || vec!["192.0.2.1:53".parse().unwrap()];
        let rules = rules.into_iter().map(|apex| ZoneRule::stub(apex, server()));
        let rules = ZoneRules::new(rules).unwrap();
        let names = LocalNames::new(&[], &rules, Chaos::default()).unwrap();
        let child = Name::prepend(below.as_bytes(), question.view()).unwrap();
        let ask = |name: &Name| names.answer(name.view(), rtype, Class::IN);
        if ask(&question).is_some_and(|answer| answer.rcode == Rcode::NXDOMAIN) {
            prop_assert_eq!(ask(&child).map(|answer| answer.rcode), Some(Rcode::NXDOMAIN));
        }
        let is_local_zone = |name: &Name| known_zones().iter().any(|zone| zone.apex == *name);
        if let Some(rule) = rules.closest(question.view()) {
            let mut between = std::iter::successors(Some(question.view()), |name| name.parent())
                .take_while(|name| *name != rule.apex.view());
            if !between.any(|name| is_local_zone(&name.to_name())) {
                prop_assert_eq!(ask(&question), None);
            }
        }
    }
}
