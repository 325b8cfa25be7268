//! Tests of settings that are permitted but probably not intended.

use super::*;

#[test]
fn settings_without_effect_cause_a_warning_at_their_location() {
    let warnings = |text: &str| -> Vec<String> {
        let read = parse(Path::new("c.toml"), text).unwrap_or_else(|problems| panic!("{problems}"));
        read.warnings.iter().map(ToString::to_string).collect()
    };
    let zone = "[zone.\"a.\"]\nfile = \"z\"\n";
    let state = "version = 1\nstate-dir = \"s\"\n";
    let producer = "[zone.\"cat.\"]\ncatalog = \"producer\"\ntransfer = [\"any\"]\n";
    let online = "denial = \"compact\"\nkeys = \"k\"\n";
    let cases: &[(String, &str)] = &[
        ("version = 1\nlisten = [\"127.0.0.1\", \"::1:5310\"]".to_owned(), "c.toml:2:24: listen: ::1:5310 "),
        ("version = 1\nmetrics-listen = \"::1:9530\"".to_owned(), "c.toml:2:18: metrics-listen: ::1:9530 "),
        (
            format!("{state}[zone.\"a.\"]\nprimaries = [\"2001:db8::1:5310 tls\"]"),
            "c.toml:4:14: zone.\"a.\".primaries: 2001:db8::1:5310 ",
        ),
        (
            "version = 1\ntls-certificate = \"c\"\ntls-key = \"k\"".to_owned(),
            "c.toml:2:19: tls-certificate: ",
        ),
        (
            format!(
                "version = 1\n[key.\"k.\"]\nsecret = \"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\"\n{zone}"
            ),
            "c.toml:2:6: key.\"k.\": ",
        ),
        (
            format!("version = 1\n{zone}transfer = [\"any\", \"127.0.0.1\"]"),
            "c.toml:4:20: zone.\"a.\".transfer: \"127.0.0.1\" ",
        ),
        (
            format!("version = 1\n{zone}transfer = [\"!192.0.2.0/24\", \"192.0.2.7\", \"any\"]"),
            "c.toml:4:30: zone.\"a.\".transfer: \"192.0.2.7\" ",
        ),
        (
            format!("version = 1\nallow-query = [\"127.0.0.1\", \"127.0.0.0/8\", \"127.0.0.1\"]\n{zone}"),
            "c.toml:2:44: allow-query: \"127.0.0.1\" ",
        ),
        (
            format!("version = 1\n{zone}allow-query = [\"tls\", \"192.0.2.1 tls\"]"),
            "c.toml:4:23: zone.\"a.\".allow-query: \"192.0.2.1 tls\" ",
        ),
        (format!("version = 1\nallow-query = [\"!192.0.2.66\"]\n{zone}"), "c.toml:2:15: allow-query: "),
        (
            format!(
                "version = 1\n[template.t]\nallow-query = [\"!192.0.2.66\", \"!::1\"]\n{zone}template = \"t\""
            ),
            "c.toml:3:15: template.t.allow-query: ",
        ),
        (format!("version = 1\n{zone}transfer = [\"!192.0.2.66\"]"), "c.toml:4:12: zone.\"a.\".transfer: "),
        (
            format!(
                "{state}{producer}{zone}catalog-zone = \"cat.\"\n[zone.\"b.\"]\nfile = \"y\"\ncatalog-zone = \"cat.\""
            ),
            "c.toml:8:16: zone.\"a.\".catalog-zone: ",
        ),
        (format!("{state}{producer}{zone}{online}catalog-zone = \"cat.\""), "zone.\"a.\".catalog-zone: "),
    ];
    for (text, expected) in cases {
        let found = warnings(text);
        assert!(found.len() == 1 && found[0].contains(expected), "{expected}\n{found:#?}");
        check_messages(&format!("warning: {}", text.trim_start_matches("version = 1\n")), &found);
    }
    // Similar settings without a warning.
    for text in [
        "version = 1\nlisten = [\"[::1:5310]\", \"2001:db8::53\"]".to_owned(),
        "version = 1\nlisten-tls = [\"127.0.0.1\"]\ntls-certificate = \"c\"\ntls-key = \"k\"".to_owned(),
        format!(
            "version = 1\n{zone}transfer = [\"127.0.0.1\", \"192.0.2.0/25 tls\", \"192.0.2.0/24\", \"any\"]"
        ),
        format!(
            "version = 1\n[key.K]\nsecret = \"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\"\n{zone}transfer = [\"key:k.\"]"
        ),
        format!("{state}{producer}{zone}transfer = [\"!192.0.2.1\", \"any\"]\ncatalog-zone = \"cat.\""),
        format!(
            "version = 1\nallow-query = []\n{zone}allow-query = [\"!192.0.2.1\", \"!any\"]\ntransfer = []"
        ),
        format!(
            "{state}{zone}template = \"t\"\n[template.t]\nprimaries = [\"192.0.2.1\"]\nnotify-from = [\"!192.0.2.1\"]"
        ),
    ] {
        assert_eq!(warnings(&text), <[String; 0]>::default(), "{text}");
    }
}
