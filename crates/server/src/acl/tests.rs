//! Tests of access lists, and of the text forms of lists and servers.

use super::*;
use proptest::prelude::*;

fn list(entries: &[&str]) -> AccessList {
    AccessList::new(entries.iter().map(|entry| entry.parse().unwrap()).collect())
}

fn allows(list: &AccessList, address: &str, key: Option<&str>) -> bool {
    let key = key.map(|key| key.parse::<Name>().unwrap());
    list.allows(address.parse().unwrap(), key.as_ref().map(Name::view))
}

#[test]
fn the_first_entry_that_fits_says() {
    let nobody = AccessList::default();
    assert!(!allows(&nobody, "127.0.0.1", None) && !allows(&nobody, "::1", Some("a")));
    let list =
        list(&["!192.0.2.7", "192.0.2.0/24", "2001:db8::/32 key:Both.example", "!key:bad", "key:good"]);
    let cases = [
        ("192.0.2.7", None, false),
        ("192.0.2.7", Some("good"), false),
        ("192.0.2.8", None, true),
        ("::ffff:192.0.2.8", None, true),
        ("192.0.2.8", Some("bad"), true),
        ("192.0.3.8", None, false),
        ("192.0.3.8", Some("GOOD"), true),
        ("192.0.3.8", Some("bad"), false),
        ("2001:db8:ffff::1", None, false),
        ("2001:db8:ffff::1", Some("both.EXAMPLE"), true),
        ("2001:db9::1", Some("both.example"), false),
    ];
    for (address, key, expected) in cases {
        assert_eq!(allows(&list, address, key), expected, "{address} {key:?}");
    }
    assert_eq!(list.keys().count(), 3);
    assert!(allows(&AccessList::allow_all(), "::1", None));
}

#[test]
fn an_entry_may_want_encryption() {
    let list = list(&["192.0.2.0/24 tls", "key:k tls", "198.51.100.1"]);
    let cases = [
        ("192.0.2.1", None, [false, true]),
        ("203.0.113.1", Some("k"), [false, true]),
        ("203.0.113.1", None, [false, false]),
        ("198.51.100.1", None, [true, true]),
    ];
    for (address, key, expected) in cases {
        let key = key.map(|key| key.parse::<Name>().unwrap());
        let key = key.as_ref().map(Name::view);
        let found =
            [false, true].map(|over_tls| list.allows_request(address.parse().unwrap(), key, over_tls));
        assert_eq!(found, expected, "{address}");
    }
}

#[test]
fn entries_are_read_and_written() {
    for text in [
        "any",
        "!any",
        "192.0.2.0/24",
        "0.0.0.0/0",
        "::/0",
        "!2001:db8::1",
        "key:a.b.",
        "10.0.0.0/8 key:k.",
        "tls",
        "!10.0.0.0/8 key:k. tls",
    ] {
        assert_eq!(text.parse::<AccessEntry>().unwrap().to_string(), text);
    }
    let meant: Prefix = "192.0.2.0/24".parse().unwrap();
    let prefix = |text: &str| AccessError::Prefix(text.to_owned());
    let word = |text: &str| AccessError::Word(text.to_owned());
    let key_name = |name: &str| AccessError::KeyName { name: name.to_owned(), error: NameError::EmptyLabel };
    let cases = [
        ("", AccessError::Empty),
        ("!", AccessError::Empty),
        ("192.0.2.1/24", AccessError::HostBits { given: "192.0.2.1/24".to_owned(), meant }),
        ("192.0.2.0/33", prefix("192.0.2.0/33")),
        ("2001:db8::/129", prefix("2001:db8::/129")),
        ("192.0.2.0/", prefix("192.0.2.0/")),
        ("everybody", prefix("everybody")),
        ("who", word("who")),
        ("any any", word("any")),
        ("tls tls", word("tls")),
        ("any 10.0.0.0/8", word("10.0.0.0/8")),
        ("key:a key:b", word("key:b")),
        ("key:", key_name("")),
        ("key:a..b", key_name("a..b")),
    ];
    for (text, expected) in cases {
        assert_eq!(text.parse::<AccessEntry>(), Err(expected), "{text}");
    }
}

#[test]
fn servers_are_read_and_written() {
    let cases = [
        ("192.0.2.1", "192.0.2.1:53"),
        ("2001:db8::1", "[2001:db8::1]:53"),
        ("192.0.2.1 tls", "192.0.2.1:853 tls"),
        ("[::1]:5353 tls:ns.example key:K", "[::1]:5353 key:k. tls:ns.example"),
        ("192.0.2.1:5353 source:192.0.2.9", "192.0.2.1:5353 source:192.0.2.9"),
    ];
    for (text, expected) in cases {
        let remote: Remote = text.parse().unwrap();
        assert_eq!(remote.to_string(), expected);
        assert_eq!(expected.parse::<Remote>().unwrap(), remote);
    }
    let wrong = [
        "",
        "ns.example",
        "192.0.2.1:x",
        "192.0.2.1 dot",
        "192.0.2.1 tls tls",
        "192.0.2.1 key:a key:b",
        "192.0.2.1 source:x",
        "192.0.2.1 source:::1",
        "192.0.2.1 tls:",
    ];
    for text in wrong {
        assert!(text.parse::<Remote>().is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,40}") {
        let _ = text.parse::<AccessEntry>();
        let _ = text.parse::<Remote>();
    }
}
