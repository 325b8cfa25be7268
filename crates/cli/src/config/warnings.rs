//! What a configuration may say, and hardly means: keys that have no effect, entries that are never reached, ports that are taken
//! for a part of the address. These are warnings, since a server can run so.

use super::reader::{Section, quoted};
use super::values::parse_name;
use nonesuch_authoritative::acl::AccessEntry;
use nonesuch_authoritative::service::{Making, ZoneSettings};
use nonesuch_proto::Name;
use std::collections::BTreeSet;
use std::net::Ipv6Addr;

/// Entries of a list that are held against each other; longer lists are made by programs.
const MOST_ENTRIES: usize = 1000;

/// Looks at what stands in no table.
pub(super) fn look_at_server(root: &Section<'_, '_>) {
    for key in ["listen", "listen-tls", "metrics-listen"] {
        warn_of_ports(root, key);
    }
    look_at_query(root);
    if root.has("tls-certificate") && root.has("tls-key") && !root.has_items("listen-tls") {
        root.warn(
            "tls-certificate",
            "nobody is answered over TLS: add listen-tls, as [\"192.0.2.1:853\"], or leave certificate and key out",
        );
    }
}

/// Looks at a zone or template.
pub(super) fn look_at_zone(section: &Section<'_, '_>) {
    for key in ["primaries", "also-notify"] {
        warn_of_ports(section, key);
    }
    for key in ["transfer", "notify-from"] {
        warn_of_unreached(section, key);
    }
    look_at_query(section);
    warn_of_nobody(section, "transfer", "nobody may transfer the zone");
}

/// Looks at who may ask, for all zones or one.
fn look_at_query(section: &Section<'_, '_>) {
    warn_of_unreached(section, "allow-query");
    warn_of_nobody(section, "allow-query", "nobody may ask");
}

/// Warns of TSIG keys that no list of the files speaks of, once all zones were read.
pub(super) fn look_at_keys(roots: &[Section<'_, '_>]) {
    let keys: Vec<_> = roots.iter().flat_map(|root| root.take_tables("key")).collect();
    if keys.is_empty() {
        return;
    }
    let mut used = BTreeSet::new();
    for root in roots {
        note_keys(root, &mut used);
        for table in ["template", "zone"] {
            root.take_tables(table).iter().for_each(|(_, _, section)| note_keys(section, &mut used));
        }
    }
    for (name, span, section) in keys {
        if let Ok(parsed) = parse_name(&name)
            && !used.contains(&parsed)
        {
            let message = format!(
                "no zone speaks of this key: write key:{parsed} where one is to (transfer, allow-query, notify-from, primaries, \
                 also-notify), or leave it out"
            );
            section.context().warn(span, &format!("key.{}", quoted(&name)), message);
        }
    }
}

/// Notes the keys that lists of this table speak of.
fn note_keys(section: &Section<'_, '_>, used: &mut BTreeSet<Name>) {
    for list in ["allow-query", "transfer", "notify-from", "primaries", "also-notify"] {
        for (_, text) in section.texts(list) {
            let words = text.split([' ', '\t', '!']).filter_map(|word| word.strip_prefix("key:"));
            used.extend(words.filter_map(|name| parse_name(name).ok()));
        }
    }
}

/// Warns of IPv6 addresses whose last group was meant as a port: without brackets it is one of the address.
fn warn_of_ports(section: &Section<'_, '_>, key: &str) {
    for (span, text) in section.texts(key) {
        let word = text.split_ascii_whitespace().next().unwrap_or_default();
        if let Some((address, port)) = split_port(word) {
            let message = format!(
                "{word} is an address, whose port is not said; did you mean [{address}]:{port}? Else write [{word}]"
            );
            section.context().warn(span, &section.path_of(key), message);
        }
    }
}

/// The address and the port that `text` would be with brackets, where it is an address without.
fn split_port(text: &str) -> Option<(Ipv6Addr, u16)> {
    text.parse::<Ipv6Addr>().ok()?;
    let (address, port) = text.rsplit_once(':')?;
    let is_decimal =
        port.len() >= 2 && !port.starts_with('0') && port.bytes().all(|octet| octet.is_ascii_digit());
    let port = port.parse().ok().filter(|_| is_decimal)?;
    Some((address.parse().ok()?, port))
}

/// Warns of entries that no request comes to: one before them takes all.
fn warn_of_unreached(section: &Section<'_, '_>, key: &str) {
    let mut earlier: Vec<AccessEntry> = Vec::new();
    for (span, text) in section.texts(key).into_iter().take(MOST_ENTRIES) {
        let Ok(entry) = text.parse::<AccessEntry>() else { continue };
        if let Some(first) = earlier.iter().find(|first| first.covers(&entry)) {
            let message = format!(
                "\"{entry}\" has no effect: \"{first}\" stands before it, and the first entry that fits decides; put it in front, or \
                 leave it out"
            );
            section.context().warn(span, &section.path_of(key), message);
        }
        earlier.push(entry);
    }
}

/// Warns of a list that refuses some, where the others were meant to be allowed: behind its end nobody is. (In `notify-from` it has
/// its use, since the primaries stand behind it.)
fn warn_of_nobody(section: &Section<'_, '_>, key: &str, what: &str) {
    let entries = section.texts(key).into_iter().map(|(_, text)| text.parse::<AccessEntry>());
    // What is no entry is said already.
    let Ok(entries) = entries.collect::<Result<Vec<_>, _>>() else { return };
    let everybody = AccessEntry { is_denied: true, ..AccessEntry::default() };
    if !entries.is_empty() && entries.iter().all(|entry| entry.is_denied) && !entries.contains(&everybody) {
        let message = format!(
            "{what}: each entry refuses, and so does the end of the list; put \"any\" behind them for all others, or write [] where \
             nobody is meant"
        );
        section.warn(key, message);
    }
}

/// Catalogs that are made here with a member which whoever has the catalog cannot have.
#[derive(Debug, Default)]
pub(super) struct ClosedMembers(BTreeSet<Name>);

impl ClosedMembers {
    /// Looks at a member of `catalog`, and warns of the first such one of each: others are so by the same template, mostly.
    pub(super) fn look(&mut self, catalog: &Name, settings: &ZoneSettings, section: &Section<'_, '_>) {
        let reason = if matches!(settings.making, Making::Online { .. }) {
            "this zone is signed when asked, and cannot be transferred"
        } else if settings.transfers.transfer.entries().iter().all(|entry| entry.is_denied) {
            "nobody may transfer this zone (transfer)"
        } else {
            return;
        };
        if self.0.insert(catalog.clone()) {
            let message = format!(
                "{reason}, and whoever has the catalog {catalog} would ask for it in vain: let them have it, or leave catalog-zone out; \
                 of other members of that catalog this is not said"
            );
            section.warn("catalog-zone", message);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::parse;
    use std::path::Path;

    #[test]
    fn ports_without_brackets_are_known_and_addresses_are_not_taken_for_them() {
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

    #[test]
    fn what_has_no_effect_is_warned_of_at_its_place() {
        let warnings = |text: &str| -> Vec<String> {
            let read = parse(Path::new("c.toml"), text).unwrap_or_else(|problems| panic!("{problems}"));
            read.warnings.iter().map(ToString::to_string).collect()
        };
        let zone = "[zone.\"a.\"]\nfile = \"z\"\n";
        let state = "version = 1\nstate-dir = \"s\"\n";
        let producer = "[zone.\"cat.\"]\ncatalog = \"producer\"\ntransfer = [\"any\"]\n";
        let online = "denial = \"compact\"\nkeys = \"k\"\n";
        let cases: &[(String, &str)] = &[
            (
                "version = 1\nlisten = [\"127.0.0.1\", \"::1:5310\"]".to_owned(),
                "c.toml:2:24: listen: ::1:5310 is an address, whose port is not said; did you mean [::1]:5310? Else write [::1:5310]",
            ),
            (
                "version = 1\nmetrics-listen = \"::1:9530\"".to_owned(),
                "c.toml:2:18: metrics-listen: ::1:9530 is an address",
            ),
            (
                format!("{state}[zone.\"a.\"]\nprimaries = [\"2001:db8::1:5310 tls\"]"),
                "c.toml:4:14: zone.\"a.\".primaries: 2001:db8::1:5310 is an address",
            ),
            (
                "version = 1\ntls-certificate = \"c\"\ntls-key = \"k\"".to_owned(),
                "c.toml:2:19: tls-certificate: nobody is answered over TLS: add listen-tls",
            ),
            (
                format!(
                    "version = 1\n[key.\"k.\"]\nsecret = \"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\"\n{zone}"
                ),
                "c.toml:2:6: key.\"k.\": no zone speaks of this key",
            ),
            (
                format!("version = 1\n{zone}transfer = [\"any\", \"127.0.0.1\"]"),
                "c.toml:4:20: zone.\"a.\".transfer: \"127.0.0.1\" has no effect: \"any\" stands before it",
            ),
            (
                format!("version = 1\n{zone}transfer = [\"!192.0.2.0/24\", \"192.0.2.7\", \"any\"]"),
                "c.toml:4:30: zone.\"a.\".transfer: \"192.0.2.7\" has no effect: \"!192.0.2.0/24\" stands before it",
            ),
            (
                format!("version = 1\nallow-query = [\"127.0.0.1\", \"127.0.0.0/8\", \"127.0.0.1\"]\n{zone}"),
                "c.toml:2:44: allow-query: \"127.0.0.1\" has no effect: \"127.0.0.1\" stands before it",
            ),
            (
                format!("version = 1\n{zone}allow-query = [\"tls\", \"192.0.2.1 tls\"]"),
                "c.toml:4:23: zone.\"a.\".allow-query: \"192.0.2.1 tls\" has no effect: \"tls\" stands before it",
            ),
            (
                format!("version = 1\nallow-query = [\"!192.0.2.66\"]\n{zone}"),
                "c.toml:2:15: allow-query: nobody may ask: each entry refuses",
            ),
            (
                format!(
                    "version = 1\n[template.t]\nallow-query = [\"!192.0.2.66\", \"!::1\"]\n{zone}template = \"t\""
                ),
                "c.toml:3:15: template.t.allow-query: nobody may ask: ",
            ),
            (
                format!("version = 1\n{zone}transfer = [\"!192.0.2.66\"]"),
                "c.toml:4:12: zone.\"a.\".transfer: nobody may transfer the zone: ",
            ),
            (
                format!(
                    "{state}{producer}{zone}catalog-zone = \"cat.\"\n[zone.\"b.\"]\nfile = \"y\"\ncatalog-zone = \"cat.\""
                ),
                "c.toml:8:16: zone.\"a.\".catalog-zone: nobody may transfer this zone (transfer), and whoever has the catalog cat. \
                 would ask for it in vain: let them have it, or leave catalog-zone out; of other members",
            ),
            (
                format!("{state}{producer}{zone}{online}catalog-zone = \"cat.\""),
                "zone.\"a.\".catalog-zone: this zone is signed when asked, and cannot be transferred",
            ),
        ];
        for (text, expected) in cases {
            let found = warnings(text);
            assert!(found.len() == 1 && found[0].contains(expected), "{expected}\n{found:#?}");
        }
        // What only looks like it.
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
}
