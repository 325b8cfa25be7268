//! Tests of the permission to query zones.

use super::*;

#[test]
fn allow_query_is_inherited_from_the_server_and_from_templates() {
    let text = "version = 1\nstate-dir = \"s\"\nallow-query = [\"192.0.2.0/24\"]\n[template.t]\nallow-query = [\"any\"]\n\
                primaries = [\"192.0.2.1\"]\n[template.plain]\nprimaries = [\"192.0.2.1\"]\n[zone.\"a.\"]\nfile = \"z\"\n\
                [zone.\"b.\"]\ntemplate = \"t\"\n[zone.\"c.\"]\ntemplate = \"t\"\nallow-query = []\n";
    let configuration = accepted(text);
    let may_ask = |settings: &ZoneSettings| {
        let query = settings.policy().query_access;
        let allows =
            |address: &str| query.as_ref().is_none_or(|list| list.allows(address.parse().unwrap(), None));
        (query.is_some(), allows("192.0.2.7"), allows("198.51.100.7"))
    };
    let zones: Vec<_> = configuration.zones.iter().map(may_ask).collect();
    // Without a list, the server does no lookup.
    assert_eq!(zones, [(true, true, false), (false, true, true), (true, false, false)]);
    let members = ["t", "plain"].map(|name| may_ask(configuration.templates[name].settings()));
    assert_eq!(members, [(false, true, true), (true, true, false)]);
    assert!(accepted("version = 1\n[zone.\"a.\"]\nfile = \"z\"\n").zones[0].policy().query_access.is_none());
    // A missing key is reported once for all zones.
    let zones = "[zone.\"a.\"]\nfile = \"z\"\n[zone.\"b.\"]\nfile = \"z\"\n";
    let message = problem(&format!("allow-query = [\"key:none\"]\n{zones}"));
    assert!(message.starts_with("c.toml:2:15: allow-query: ") && message.contains(" none. "), "{message}");
    check_messages("allow-query with an unknown key", &[message]);
    let message = problem(&format!("{zones}allow-query = [\"key:none\", \"tls\"]\n"));
    assert!(
        message.starts_with("c.toml:6:15: zone.\"b.\".allow-query: ") && message.contains(" none. "),
        "{message}"
    );
    check_messages("allow-query of a zone with an unknown key", &[message]);
}
