//! Tests of the permission to query zones.

use super::*;

#[test]
fn who_may_ask_is_said_for_all_zones_for_those_of_a_template_and_for_one() {
    let text = "version = 1\nstate-dir = \"s\"\nallow-query = [\"192.0.2.0/24\"]\n[template.t]\nallow-query = [\"any\"]\n\
                primaries = [\"192.0.2.1\"]\n[template.plain]\nprimaries = [\"192.0.2.1\"]\n[zone.\"a.\"]\nfile = \"z\"\n\
                [zone.\"b.\"]\ntemplate = \"t\"\n[zone.\"c.\"]\ntemplate = \"t\"\nallow-query = []\n";
    let configuration = taken(text);
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
    assert!(taken("version = 1\n[zone.\"a.\"]\nfile = \"z\"\n").zones[0].policy().query_access.is_none());
    // A missing key is reported once for all zones.
    let zones = "[zone.\"a.\"]\nfile = \"z\"\n[zone.\"b.\"]\nfile = \"z\"\n";
    let said = problem(&format!("allow-query = [\"key:none\"]\n{zones}"));
    assert!(said.starts_with("c.toml:2:15: allow-query: ") && said.contains(" none. "), "{said}");
    check_messages("allow-query with an unknown key", &[said]);
    let said = problem(&format!("{zones}allow-query = [\"key:none\", \"tls\"]\n"));
    assert!(said.starts_with("c.toml:6:15: zone.\"b.\".allow-query: ") && said.contains(" none. "), "{said}");
    check_messages("allow-query of a zone with an unknown key", &[said]);
}
