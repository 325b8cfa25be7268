use super::*;
use std::time::Duration;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn hints(address: [u8; 4]) -> Hints {
    let server = name("ns.");
    let records =
        [(Name::root(), Rtype::NS, server.wire().to_vec()), (server.clone(), Rtype::A, address.to_vec())];
    Hints::from_records(&records).unwrap()
}

fn zones(rules: &[(&str, &str)]) -> ZoneRules {
    let stub = |(apex, server): &(&str, &str)| ZoneRule::stub(name(apex), vec![server.parse().unwrap()]);
    ZoneRules::new(rules.iter().map(stub)).unwrap()
}

#[test]
fn the_defaults_are_valid_and_serve_only_this_host() {
    let options = ResolverOptions::default();
    assert_eq!(options.check(), Ok(()));
    for (client, is_permitted) in [
        ("127.0.0.1", true),
        ("127.9.9.9", true),
        ("::1", true),
        ("::ffff:127.0.0.1", true),
        ("192.0.2.1", false),
        ("10.0.0.1", false),
        ("fe80::1", false),
        ("2001:db8::1", false),
    ] {
        assert_eq!(options.access.allows(ip(client), None), is_permitted, "{client}");
    }
    assert!(options.clients.is_exempt(ip("127.0.0.1")) && !options.clients.is_exempt(ip("192.0.2.1")));
}

/// The limits of `spec/validation-limits.md`.
#[test]
fn the_limits_are_those_of_the_specification() {
    let limits = UpstreamLimits::default();
    assert_eq!((limits.queries, limits.aliases, limits.depth), (64, 16, 16));
    assert_eq!((limits.address_fetches_per_delegation, limits.address_fetches), (4, 16));
    assert_eq!((limits.octets, limits.time), (1 << 20, Duration::from_secs(8)));
}

#[test]
fn values_out_of_range_are_errors_with_their_key() {
    type Change = fn(&mut ResolverOptions);
    let changes: [(&str, Change); 22] = [
        ("memory", |o| o.memory = (8 << 20) - 1),
        ("memory", |o| o.memory = (1 << 40) + 1),
        ("server-entries", |o| o.server_entries = 0),
        ("edns-payload", |o| o.edns_payload = 511),
        ("edns-payload", |o| o.edns_payload = 4097),
        ("client-queries", |o| o.clients.queries = 0),
        ("client-queries-each", |o| o.clients.queries_each = 0),
        ("client-ipv4-prefix", |o| o.clients.ipv4_prefix = 33),
        ("client-ipv6-prefix", |o| o.clients.ipv6_prefix = 65),
        ("upstream-queries", |o| o.limits.queries = 0),
        ("upstream-queries", |o| o.limits.queries = 1001),
        ("alias-steps", |o| o.limits.aliases = 0),
        ("upstream-depth", |o| o.limits.depth = 101),
        ("upstream-octets", |o| o.limits.octets = 65_535),
        ("addresses-per-delegation", |o| o.limits.address_fetches_per_delegation = 0),
        ("addresses-per-query", |o| o.limits.address_fetches = 1001),
        ("query-time", |o| o.limits.time = Duration::from_secs(61)),
        ("query-time", |o| o.limits.time = Duration::MAX),
        ("ttl-max", |o| o.ttl.max = MAX_TTL + 1),
        ("ttl-min", |o| o.ttl.min = 3601),
        ("negative-ttl-max", |o| o.ttl.negative_max = 86_401),
        ("negative-ttl-max", |o| o.ttl.negative_max = u32::MAX),
    ];
    for (expected, change) in changes {
        let mut options = ResolverOptions::default();
        change(&mut options);
        match options.check() {
            Err(OptionsError::Range { key, found, min, max, .. }) => {
                assert_eq!(key, expected);
                assert!(found < min || found > max);
            }
            other => panic!("{expected}: {other:?}"),
        }
    }
}

#[test]
fn values_that_contradict_each_other_are_errors() {
    type Change = fn(&mut ResolverOptions);
    let changes: [(&str, &str, Change); 4] = [
        ("client-queries-each", "client-queries", |o| o.clients.queries = 999),
        ("addresses-per-delegation", "addresses-per-query", |o| o.limits.address_fetches = 3),
        ("ttl-min", "ttl-max", |o| (o.ttl.min, o.ttl.max) = (60, 59)),
        ("ttl-min", "negative-ttl-max", |o| (o.ttl.min, o.ttl.negative_max) = (60, 59)),
    ];
    for (expected, expected_bound, change) in changes {
        let mut options = ResolverOptions::default();
        change(&mut options);
        match options.check() {
            Err(OptionsError::Order { key, bound_key, .. }) => {
                assert_eq!((key, bound_key), (expected, expected_bound));
            }
            other => panic!("{expected}: {other:?}"),
        }
    }
}

#[test]
fn tsig_keys_in_the_access_list_are_errors() {
    let access = AccessList::new(vec!["192.0.2.0/24 key:k.".parse().unwrap()]);
    let options = ResolverOptions { access, ..ResolverOptions::default() };
    assert_eq!(options.check(), Err(OptionsError::AccessKey { name: name("k.") }));
}

#[test]
fn a_family_without_servers_is_an_error() {
    let families = AddressFamilies::OnlyIpv6;
    let options = ResolverOptions { hints: hints([192, 0, 2, 1]), families, ..ResolverOptions::default() };
    assert_eq!(options.check(), Err(OptionsError::NoHint { families }));
    let zones = zones(&[("a.", "[2001:db8::1]:53"), ("b.", "192.0.2.1:53")]);
    let options = ResolverOptions { zones, families, ..ResolverOptions::default() };
    assert_eq!(options.check(), Err(OptionsError::NoServer { apex: name("b."), families }));
    let options = ResolverOptions { families: AddressFamilies::PreferIpv6, ..options };
    assert_eq!(options.check(), Ok(()));
}

#[test]
fn special_and_excluded_addresses_are_not_queried() {
    let do_not_query = vec!["10.0.0.0/8".parse().unwrap(), "2001:db8::/32".parse().unwrap()];
    let options = ResolverOptions { do_not_query, ..ResolverOptions::default() };
    let may_query = |address: &str| options.may_query(name("example.").view(), ip(address));
    for address in ["192.0.2.1", "172.16.0.1", "2001:500:2::c", "fd00::1"] {
        assert!(may_query(address), "{address}");
    }
    for address in ["127.0.0.1", "::1", "::ffff:192.0.2.1", "224.0.0.1", "0.0.0.0", "10.1.1.1", "2001:db8::1"]
    {
        assert!(!may_query(address), "{address}");
    }
    let options = ResolverOptions { families: AddressFamilies::OnlyIpv4, ..options };
    assert!(!options.may_query(name("example.").view(), ip("2001:500:2::c")));
}

#[test]
fn loopback_servers_are_queried_only_below_configured_loopback_servers() {
    let zones = zones(&[("lab.", "127.0.0.1:5300"), ("public.lab.", "192.0.2.1:53")]);
    let options = ResolverOptions { zones, ..ResolverOptions::default() };
    let may_query = |zone: &str, address: &str| options.may_query(name(zone).view(), ip(address));
    assert!(may_query("a.lab.", "127.0.0.2"));
    assert!(may_query("lab.", "::1"));
    assert!(!may_query("a.public.lab.", "127.0.0.2"));
    assert!(!may_query("example.", "127.0.0.1"));
    assert!(!may_query("a.lab.", "0.0.0.0"));
    assert!(!may_query("a.lab.", "::ffff:127.0.0.1"));
    let local_root = ResolverOptions { hints: hints([127, 0, 0, 1]), ..options };
    let may_query = |zone: &str, address: &str| local_root.may_query(name(zone).view(), ip(address));
    assert!(may_query("example.", "127.0.0.3"));
    assert!(!may_query("a.public.lab.", "127.0.0.2"));
}

#[test]
fn ttls_are_bounded() {
    let bounds = TtlBounds { min: 5, max: 100, negative_max: 50 };
    let clamp = |ttl| (bounds.clamp(ttl), bounds.clamp_negative(ttl));
    assert_eq!(clamp(0), (5, 5));
    assert_eq!(clamp(60), (60, 50));
    assert_eq!(clamp(i32::MAX as u32), (100, 50));
    // RFC 2181 §8: such a TTL counts as 0.
    assert_eq!(clamp(1 << 31), (5, 5));
    assert_eq!(clamp(u32::MAX), (5, 5));
}

#[test]
fn addresses_of_a_family_that_is_not_used_are_dropped() {
    let all: Vec<SocketAddr> =
        ["192.0.2.1:53", "[2001:db8::1]:53"].map(|text| text.parse().unwrap()).to_vec();
    let kept = |families: AddressFamilies, addresses: &[SocketAddr]| {
        let mut addresses = addresses.to_vec();
        families.keep_preferred(&mut addresses);
        addresses
    };
    assert_eq!(kept(AddressFamilies::Both, &all), all);
    for families in [AddressFamilies::PreferIpv4, AddressFamilies::OnlyIpv4] {
        assert_eq!(kept(families, &all), all[..1]);
    }
    assert_eq!(kept(AddressFamilies::PreferIpv4, &all[1..]), all[1..]);
    assert_eq!(kept(AddressFamilies::OnlyIpv4, &all[1..]), []);
    assert_eq!(kept(AddressFamilies::OnlyIpv6, &all), all[1..]);
}
