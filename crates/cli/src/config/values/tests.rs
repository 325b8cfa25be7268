//! Tests of values: durations, sizes and addresses.

use super::*;
use proptest::prelude::*;

#[test]
fn durations_and_sizes_have_units() {
    for (text, seconds) in
        [("0s", 0), ("10s", 10), ("5m", 300), ("2 h", 7200), ("1d", 86_400), ("2w", 1_209_600)]
    {
        assert_eq!(parse_with_unit(text, &DURATION_UNITS), Some(seconds), "{text}");
    }
    for text in ["", "10", "s", "-1s", "1.5h", "10 sec", "99999999999999999999s", "18446744073709551615w"] {
        assert_eq!(parse_with_unit(text, &DURATION_UNITS), None, "{text}");
    }
    assert_eq!(parse_with_unit("64MiB", &SIZE_UNITS), Some(64 << 20));
    assert_eq!(parse_with_unit("64MB", &SIZE_UNITS), None);
}

#[test]
fn the_port_of_an_address_is_optional() {
    for (text, expected) in [
        ("192.0.2.1", "192.0.2.1:53"),
        ("192.0.2.1:5300", "192.0.2.1:5300"),
        ("2001:db8::1", "[2001:db8::1]:53"),
        ("[2001:db8::1]", "[2001:db8::1]:53"),
        ("[2001:db8::1]:853", "[2001:db8::1]:853"),
    ] {
        assert_eq!(parse_address(text, 53), expected.parse().ok(), "{text}");
    }
    assert_eq!(parse_address("ns.example", 53), None);
}

#[test]
fn ipv6_addresses_with_a_port_but_without_brackets_are_recognised() {
    for (text, expected) in [
        ("::1:5310", Some(("::1", 5310))),
        ("2001:db8::1:53", Some(("2001:db8::1", 53))),
        ("::1:99999", None),
        ("::1:5", None),
        ("::1:053", None),
        ("::1:853a", None),
        ("2001:db8::53", None),
        ("2001:db8::5310", None),
        ("2001:db8:1:2:3:4:5:53", None),
        ("[::1]:5310", None),
        ("[::1:5310]", None),
        ("192.0.2.1:53", None),
        ("::", None),
    ] {
        let expected = expected.map(|(address, port)| (address.parse().unwrap(), port));
        assert_eq!(split_port(text), expected, "{text}");
    }
}

proptest! {
    #[test]
    fn formatted_durations_are_parsed_to_the_same_value(seconds in 0u64..1 << 40) {
        prop_assert_eq!(parse_with_unit(&duration_text(seconds), &DURATION_UNITS), Some(seconds));
    }

    #[test]
    fn formatted_sizes_are_parsed_to_the_same_value(octets in 0u64..1 << 60) {
        prop_assert_eq!(parse_with_unit(&size_text(octets), &SIZE_UNITS), Some(octets));
    }
}
