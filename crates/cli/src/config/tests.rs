//! Tests of configurations: each class of faults with its message, the annotated example and the
//! defaults.

mod queries;
mod socket;
mod warnings;

use super::*;
use nonesuch_authoritative::catalog::ProducedMember;
use nonesuch_authoritative::service::{
    CatalogSettings, OnFault, RecordLimits, SigningMode, TransferSettings, VerifyChoice, ZoneSource,
};
use nonesuch_secondary::inbound::TransferBounds;

/// The annotated example.
const EXAMPLE: &str = include_str!("../../../../etc/nonesuch.toml");
/// Ends the lines of the example with keys that have no default.
const NO_DEFAULT: &str = "# example";

fn problems(text: &str) -> Vec<String> {
    match parse(Path::new("c.toml"), text) {
        Ok(read) => panic!("taken: {text}: {read:?}"),
        Err(problems) => problems.0.iter().map(ToString::to_string).collect(),
    }
}

/// Compares messages with the section `case` of the snapshot.
#[track_caller]
fn check_messages(case: &str, found: &[String]) {
    crate::snapshot::check("serve configuration", &case.trim().replace('\n', " "), &found.join("\n"));
}

#[track_caller]
fn accepted(text: &str) -> Configuration {
    match parse(Path::new("c.toml"), text) {
        Ok(read) => read.configuration,
        Err(problems) => panic!("refused:\n{problems}\n{text}"),
    }
}

/// The only problem of a configuration of version 1 with `text` from its second line on.
#[track_caller]
fn problem(text: &str) -> String {
    let mut found = problems(&format!("version = 1\n{text}"));
    assert_eq!(found.len(), 1, "{text}: {found:#?}");
    found.remove(0)
}

#[test]
fn problems_have_file_line_key_and_permitted_values() {
    let zone = "[zone.\"example.\"]\n";
    let online = "file = \"z\"\ndenial = \"compact\"\nkeys = \"k\"\n";
    let long = "d".repeat(108);
    let cases: &[(&str, &str)] = &[
        ("listne = []", "c.toml:2:1: listne: "),
        ("colour = 1", "c.toml:2:1: colour: "),
        ("[log]\nlevl = \"info\"", "c.toml:3:1: log.levl: "),
        ("[log]\nlevel = \"loud\"", "c.toml:3:9: log.level: \"loud\" "),
        ("log = 1", "c.toml:2:7: log: 1 "),
        ("workers = 0", "c.toml:2:11: workers: 0 "),
        ("workers = \"two\"", "c.toml:2:11: workers: \"two\" "),
        ("workers = 1.5", "c.toml:2:11: workers: 1.5 "),
        ("workers = -1", "c.toml:2:11: workers: -1 "),
        ("listen = \"127.0.0.1\"", "c.toml:2:10: listen: \"127.0.0.1\" "),
        ("listen = [\"ns.example\"]", "c.toml:2:11: listen: \"ns.example\" "),
        ("listen = []", "c.toml:2:10: listen: "),
        ("listen = [\"127.0.0.1\", \"127.0.0.1:53\"]", "c.toml:2:10: listen: 127.0.0.1:53 "),
        ("listen-tls = [\"127.0.0.1\"]", "c.toml:2:14: listen-tls: "),
        ("tls-key = \"k\"", "c.toml:2:11: tls-key: "),
        ("control-group = \"g\"", "c.toml:2:17: control-group: "),
        ("nsid = \"0x1\"", "c.toml:2:8: nsid: \"0x1\" "),
        ("report-channel = \"a..b\"", "c.toml:2:18: report-channel: \"a..b\" "),
        ("signature-cache = \"64 MB\"", "c.toml:2:19: signature-cache: \"64 MB\" "),
        ("[limits]\ntcp-idle = \"10\"", "c.toml:3:12: limits.tcp-idle: \"10\" "),
        ("[limits]\nexempt = [\"192.0.2.1/24\"]", "c.toml:3:11: limits.exempt: "),
        ("[limits]\ntcp-connections = 5", "c.toml:2:1: limits.tcp-connections-each: "),
        ("[limits]\ntransfers-out-each = 11", "c.toml:3:22: limits.transfers-out-each: "),
        ("[limits]\nonline-share = 5", "limits.online-busy-share: "),
        ("[dnstap]\nqueue = \"1MiB\"", "c.toml:2:1: dnstap.socket: "),
        ("[dnstap]\nsocket = \"s\"\nfile = \"f\"", "c.toml:4:8: dnstap.file: "),
        (
            &format!("{zone}catalog = \"producer\"\ntransfer = [\"any\"]"),
            "c.toml:3:11: zone.\"example.\".catalog: ",
        ),
        (
            "listen = [\"127.0.0.1:9530\"]\nmetrics-listen = \"127.0.0.1\"",
            "c.toml:3:18: metrics-listen: 127.0.0.1:9530 ",
        ),
        ("report-channel = \".\"", "c.toml:2:18: report-channel: "),
        (
            &format!("state-dir = \"s\"\n{zone}primaries = [\"192.0.2.1\", \"127.0.0.1\"]"),
            "c.toml:4:13: zone.\"example.\".primaries: 127.0.0.1:53 ",
        ),
        (
            &format!("listen = [\"[::]:5300\"]\n{zone}file = \"z\"\nalso-notify = [\"[::1]:5300\"]"),
            ".also-notify: [::1]:5300 ",
        ),
        (
            &format!("{zone}file = \"z\"\nalso-notify = [\"192.0.2.1:0\"]"),
            "c.toml:4:15: zone.\"example.\".also-notify: 192.0.2.1:0: ",
        ),
        (
            "state-dir = \"s\"\n[template.t]\nprimaries = [\"::1\"]",
            "c.toml:4:13: template.t.primaries: [::1]:53 ",
        ),
        ("[log]\nworkers = 2", "c.toml:3:1: log.workers: "),
        ("[zone.www.example]\nfile = \"z\"", "zone.www.example: "),
        ("[cookies]\nenabled = 1", "c.toml:3:11: cookies.enabled: 1 "),
        ("[cookies]\nsecret-file = \"nowhere/s\"", "c.toml:3:15: cookies.secret-file: nowhere/s: "),
        ("[key.k]\n", "c.toml:2:1: key.k.secret-file: "),
        (
            "[key.k]\nsecret = \"AAAA\"\nalgorithm = \"hmac-md5\"",
            "c.toml:4:13: key.k.algorithm: \"hmac-md5\" ",
        ),
        ("[key.k]\nsecret = \"%\"", "c.toml:3:10: key.k.secret: "),
        ("[key.k]\nsecret = \"AAAA\"\nsecret-file = \"f\"", "c.toml:4:15: key.k.secret-file: "),
        ("[zone.\"a..b\"]\nfile = \"z\"", "c.toml:2:7: zone: \"a..b\" "),
        (zone, "c.toml:2:1: zone.\"example.\".file: "),
        (&format!("{zone}fiel = \"z\""), "zone.\"example.\".fiel: "),
        (&format!("{zone}file = 7"), "c.toml:3:8: zone.\"example.\".file: 7 "),
        (&format!("{zone}file = \"z\"\nverify = \"no\""), ".verify: \"no\" "),
        (&format!("{zone}file = \"z\"\ntemplate = \"t\""), "c.toml:4:12: zone.\"example.\".template: "),
        (
            &format!("[template.u]\ndnssec = \"optional\"\n{zone}file = \"z\"\ntemplate = \"t.x\""),
            "c.toml:6:12: zone.\"example.\".template: ",
        ),
        ("[template.t]\ntemplate = \"t\"", "c.toml:3:1: template.t.template: "),
        // A table is not suggested where a key is expected.
        ("[log]\nzone = 1", "c.toml:3:1: log.zone: "),
        (&format!("control-socket = \"{long}\""), "c.toml:2:18: control-socket: dddddddddd"),
        (&format!("[dnstap]\nsocket = \"{long}\""), "ddd: 108 octets"),
        (
            &format!("{zone}file = \"z\"\ntransfer = [\"key:k.\"]"),
            "c.toml:4:12: zone.\"example.\".transfer: ",
        ),
        (&format!("{zone}file = \"z\"\ntransfer = [\"some\"]"), "c.toml:4:13: zone.\"example.\".transfer: "),
        (&format!("{zone}primaries = [\"192.0.2.1\"]"), "zone.\"example.\".primaries: "),
        (&format!("{zone}file = \"z\"\njournal-size = \"1MiB\""), ".journal-size: "),
        (
            &format!("{zone}file = \"z\"\nrequest-ixfr = false"),
            "c.toml:4:16: zone.\"example.\".request-ixfr: ",
        ),
        (
            &format!("state-dir = \"s\"\n{zone}primaries = [\"192.0.2.1\"]\nallow-unsafe-transition = true"),
            "c.toml:5:27: zone.\"example.\".allow-unsafe-transition: ",
        ),
        (&format!("{zone}file = \"z\"\ntransfer-size-max = \"1GiB\""), ".transfer-size-max: "),
        ("[limits]\nresponses-per-second = 1000001", "limits.responses-per-second: 1000001 "),
        ("[limits]\nonline-operations = 20", "c.toml:3:1: limits.online-operations: "),
        ("[limits]\nonline-proven-factor = 10", "c.toml:3:1: limits.online-proven-factor: "),
        ("[limits]\nresponse-table = \"2GiB\"", "limits.response-table: \"2GiB\" "),
        (&format!("{zone}file = \"z\"\nnotify-from = [\"192.0.2.1\"]"), ".notify-from: "),
        (&format!("{zone}file = \"z\"\nrefresh-min = \"1m\""), ".refresh-min: "),
        (&format!("{zone}file = \"z\"\ngroup = \"g\""), ".group: "),
        (
            &format!("{zone}file = \"z\"\ntransfer = [\"any\"]\ncatalog-zone = \"c.\""),
            "c.toml:5:16: zone.\"example.\".catalog-zone: c. ",
        ),
        (&format!("{zone}file = \"z\"\nmember-template = \"m\""), ".member-template: "),
        (&format!("{zone}catalog = \"producer\"\nfile = \"z\""), ".file: "),
        (&format!("{zone}file = \"z\"\ncatalog = \"consumer\""), ".catalog: "),
        (
            &format!("state-dir = \"s\"\n{zone}primaries = [\"192.0.2.1 tls:ns.example\"]"),
            "c.toml:4:13: zone.\"example.\".primaries: ",
        ),
        (&format!("{zone}file = \"z\"\nalso-notify = [\"192.0.2.1 tls:ns.example\"]"), ".also-notify: "),
        (&format!("{zone}file = \"z\"\ntransfer = [\"192.0.2.1 tsl\"]"), ".transfer: 'tsl' "),
        // Contradictions, with the reason.
        (&format!("{zone}file = \"z\"\ndenial = \"compact\""), "c.toml:4:10: zone.\"example.\".denial: "),
        (&format!("{zone}file = \"z\"\nkeys = \"k\""), ".keys: "),
        (
            &format!("{zone}file = \"z\"\nkeys = \"k\"\nnsec5-keys = \"n\""),
            "c.toml:4:8: zone.\"example.\".keys: ",
        ),
        (&format!("{zone}{online}nsec5-keys = \"n\""), ".denial: "),
        (&format!("{zone}{online}transfer = [\"any\"]"), ".transfer: "),
        (&format!("{zone}file = \"z\"\ndenial = \"nsec3\"\nkeys = \"k\""), ".denial: \"nsec3\" "),
        (&format!("{zone}file = \"z\"\nsignature-validity = \"7d\""), ".signature-validity: "),
        (&format!("{zone}file = \"z\"\nignore-key-times = true"), ".ignore-key-times: "),
    ];
    for &(text, expected) in cases {
        let found = problems(&format!("version = 1\n{text}"));
        assert!(
            found.iter().any(|found| found.contains(expected)),
            "{text}\nexpected: {expected}\nfound: {found:#?}"
        );
        check_messages(&text.replace(&long, "LONG"), &found);
    }
}

#[test]
fn one_fault_is_one_problem() {
    for text in [
        "workers = 0",
        "[zone.\"example.\"]\nfile = 7",
        "[zone.\"example.\"]\nfile = \"z\"\nkeys = \"k\"",
        "[zone.\"example.\"]\nfile = \"z\"\ndenial = \"nosuch\"",
        "[key.k]\nsecret = \"AAAA\"\nalgorithm = \"hmac-md5\"",
        "listen = [\"localhost:5399\"]",
        "state-dir = \"s\"\n[zone.\"example.\"]\nprimaries = [\"ns.example\"]",
        "state-dir = \"s\"\n[zone.\"example.\"]\ncatalog = \"both\"",
        "[zone.\"example.\"]\nfile = \"z\"\nkeys = \"k\"\ndenial = \"nsec3\"",
        // The key exists, and its fault is reported at the key.
        "[key.k]\nsecret-file = \"nowhere\"\n[zone.\"example.\"]\nfile = \"z\"\ntransfer = [\"key:k.\"]",
    ] {
        problem(text);
    }
}

#[test]
fn all_faults_are_reported_in_the_order_of_the_text() {
    let text = "version = 1\nworkers = 0\nlistne = []\n[zone.\"b.\"]\nfile = 1\n[zone.\"a.\"]\n[zone.\"B\"]\nfile = \"z\"\n";
    let found = problems(text);
    let locations: Vec<&str> = found.iter().filter_map(|found| found.split(' ').next()).collect();
    assert_eq!(
        locations,
        ["c.toml:2:11:", "c.toml:3:1:", "c.toml:5:8:", "c.toml:6:1:", "c.toml:7:7:"],
        "{found:#?}"
    );
    assert!(found[4].contains("zone.\"B\": ") && found[4].contains("\"b.\""), "{found:#?}");
    check_messages("several faults", &found);
}

#[test]
fn the_version_is_mandatory() {
    for (case, text) in [("no version", ""), ("version = 2", "version = 2")] {
        let found = problems(text);
        assert!(found[0].contains("version"), "{found:?}");
        check_messages(case, &found[..1]);
    }
    assert_eq!(problems("version = \"1\"").len(), 1);
    accepted("version = 1");
}

/// A server of a single file without a configuration has the same limits.
#[test]
fn limits_are_the_same_with_and_without_a_configuration() {
    let of_default = crate::server::limit_settings(&accepted("version = 1"));
    assert_eq!(of_default, nonesuch_server::limits::LimitSettings::default());
}

#[test]
fn zone_names_in_paths_are_escaped_as_in_names_of_stored_zones() {
    let text = "version = 1\nstate-dir = \"s\"\n[template.t]\nfile = \"z/{zone}.db\"\n[template.m]\nprimaries = [\"192.0.2.1\"]\n\
                denial = \"compact\"\nkeys = \"k/{zone}\"\n[zone.\"a/b.example\"]\ntemplate = \"t\"\n[zone.\".\"]\ntemplate = \"t\"\n";
    let configuration = accepted(text);
    let files: Vec<&ZoneSource> = configuration.zones.iter().map(|zone| &zone.source).collect();
    let expected = ["z/a%2fb.example.db", "z/@.db"].map(|path| ZoneSource::File(path.into()));
    assert_eq!(files, expected.iter().collect::<Vec<_>>());
    let member = configuration.templates["m"].for_member("x.example.".parse().unwrap());
    assert!(
        matches!(&member.signing_mode, SigningMode::Online(signing) if signing.key_directory == Path::new("k/x.example")),
        "{member:?}"
    );
}

#[test]
fn a_catalog_that_no_client_may_transfer_causes_a_warning() {
    let text = "version = 1\nstate-dir = \"s\"\n[zone.\"c.\"]\ncatalog = \"producer\"\n";
    let warnings = |text: &str| parse(Path::new("c.toml"), text).unwrap().warnings;
    let found = warnings(text);
    assert_eq!(found.len(), 1, "{found:?}");
    check_messages("catalog that no client may transfer", &[found[0].to_string()]);
    assert!(warnings(&format!("{text}transfer = [\"any\"]\n")).is_empty());
}

#[test]
fn secrets_may_have_the_format_of_bind() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("k.key");
    std::fs::write(&file, "key \"K.example\" {\n  algorithm hmac-sha512;\n  secret \"c2VjcmV0\";\n};\n")
        .unwrap();
    let text = |name: &str, more: &str| {
        let place = file.display();
        format!("version = 1\n[key.\"{name}\"]\nsecret-file = \"{place}\"\n{more}")
    };
    let keys = accepted(&text("k.example.", "")).keys;
    let key = keys.iter().next().expect("a key");
    assert_eq!(
        (key.name().to_string().as_str(), key.algorithm().to_string().as_str()),
        ("k.example.", "hmac-sha512")
    );
    let found = problems(&text("other.", ""));
    assert!(found.len() == 1 && found[0].contains(" other."), "{found:?}");
    check_messages("secret-file without the key", &found);
    let found = problems(&text("k.example.", "algorithm = \"hmac-sha256\""));
    assert!(
        found.len() == 1
            && found[0].contains("key.\"k.example.\".algorithm: ")
            && found[0].contains("hmac-sha512"),
        "{found:?}"
    );
    check_messages("secret-file with another algorithm", &found);
}

#[test]
fn toml_syntax_errors_have_a_location() {
    for text in
        ["version = 1\nlisten = [", "version = 1\n= 2", "version = 1\nversion = 1", "\u{feff}\0", "[[["]
    {
        let Problems(found) = parse(Path::new("c.toml"), text).unwrap_err();
        assert!(!found.is_empty(), "{text:?}");
        // A syntax error has a line and no key.
        let is_located = |found: &Problem| found.location.line > 0 && found.location.key.is_empty();
        assert!(found.iter().all(is_located), "{text:?}: {found:?}");
        assert!(found.iter().all(|found| found.to_string().starts_with("c.toml:")), "{text:?}: {found:?}");
    }
}

#[test]
fn a_zone_inherits_the_keys_that_it_does_not_set() {
    let text = "version = 1\nstate-dir = \"s\"\n[template.t]\nfile = \"zones/{zone}.db\"\nverify = \"full\"\ntransfer = [\"any\"]\n\
                [zone.\"a.example\"]\ntemplate = \"t\"\n[zone.\"b.\"]\ntemplate = \"t\"\nprimaries = [\"192.0.2.1\"]\ntransfer = []\n";
    let zones = accepted(text).zones;
    assert_eq!(zones[0].source, ZoneSource::File(PathBuf::from("zones/a.example.db")));
    assert!(zones[0].transfers.transfer.allows("192.0.2.9".parse().unwrap(), None));
    assert_eq!(zones[1].source, ZoneSource::Primaries);
    assert_eq!(zones[1].verify, zones[0].verify);
    assert!(!zones[1].transfers.transfer.allows("192.0.2.9".parse().unwrap(), None));
}

/// Other secondaries have the same default. A zone file belongs to the operator.
#[test]
fn the_default_of_on_fault_is_warn_only_for_zones_from_primaries() {
    let primaries = "primaries = [\"192.0.2.1\"]\n";
    for (keys, expected) in [
        ("file = \"z\"\n".to_owned(), OnFault::Reject),
        ("file = \"z\"\non-fault = \"warn\"\n".to_owned(), OnFault::Warn),
        (primaries.to_owned(), OnFault::Warn),
        (format!("{primaries}on-fault = \"reject\"\n"), OnFault::Reject),
        ("template = \"t\"\nfile = \"z\"\n".to_owned(), OnFault::Reject),
        ("template = \"t\"\n".to_owned(), OnFault::Warn),
        ("template = \"strict\"\n".to_owned(), OnFault::Reject),
    ] {
        let text = format!(
            "version = 1\nstate-dir = \"s\"\n[template.t]\n{primaries}[template.strict]\n{primaries}on-fault = \"reject\"\n\
             [zone.\"a.\"]\nverify = \"none\"\n{keys}"
        );
        let zones = accepted(&text).zones;
        assert_eq!((zones[0].on_fault, zones[0].verify), (expected, VerifyChoice::Nothing), "{keys}");
    }
}

/// A zone cannot remove a key that its template sets.
#[test]
fn a_zone_does_not_inherit_keys_that_have_no_effect_on_it() {
    let text = "version = 1\nstate-dir = \"s\"\n[template.t]\nprimaries = [\"192.0.2.1\"]\nnotify-from = [\"192.0.2.3\"]\n\
                refresh-min = \"1h\"\nexpire-max = \"2d\"\nrequest-ixfr = false\ntransfer-size-max = \"1MiB\"\ntransfer-records-max = 7\n\
                [template.online]\ndenial = \"compact\"\nkeys = \"k\"\nsignature-validity = \"2h\"\n\
                [zone.\"a.\"]\ntemplate = \"t\"\nfile = \"z\"\n[zone.\"b.\"]\ntemplate = \"t\"\ncatalog = \"producer\"\n\
                transfer = [\"any\"]\n[zone.\"c.\"]\ntemplate = \"t\"\n\
                [zone.\"d.\"]\ntemplate = \"online\"\nfile = \"z\"\nnsec5-keys = \"n\"\n";
    let zones = accepted(text).zones;
    for zone in &zones[..2] {
        let transfers = TransferSettings {
            transfer: zone.transfers.transfer.clone(),
            also_notify: Vec::new(),
            ..TransferSettings::default()
        };
        assert_eq!(zone.transfers, transfers, "{}", zone.apex);
    }
    let transfers = &zones[2].transfers;
    assert_eq!((*transfers.refresh.start(), *transfers.expire.end()), (3600, 172_800));
    assert_eq!((transfers.bounds.records, transfers.bounds.octets), (7, 1 << 20));
    assert!(!transfers.request_ixfr && !transfers.notify_from.entries().is_empty());
    assert_eq!(zones[3].signing_mode, SigningMode::Nsec5 { key_directory: PathBuf::from("n") });
    let message = problem(
        "state-dir = \"s\"\n[template.t]\nretry-min = \"2h\"\nretry-max = \"1h\"\n[zone.\"a.\"]\ntemplate = \"t\"\n\
         primaries = [\"192.0.2.1\"]\n",
    );
    assert!(message.starts_with("c.toml:4:13: template.t.retry-min: "), "{message}");
    check_messages("retry-min above retry-max", &[message]);
    // The check includes defaults.
    let message = problem(
        "state-dir = \"s\"\n[template.t]\nrefresh-max = \"10s\"\n[zone.\"a.\"]\ntemplate = \"t\"\nprimaries = [\"192.0.2.1\"]\n",
    );
    assert!(message.starts_with("c.toml:4:15: template.t.refresh-max: "), "{message}");
    check_messages("refresh-max below the default of refresh-min", &[message]);
    // A template that no zone uses may exist for other servers.
    let unused = "[template.t]\nalso-notify = [\"192.0.2.1 key:abc.\"]\n";
    assert!(accepted(&format!("version = 1\n{unused}")).zones.is_empty());
    assert!(
        problem(&format!("{unused}[zone.\"a.\"]\ntemplate = \"t\"\nfile = \"z\"\n"))
            .contains("template.t.also-notify")
    );
    // A fault of the zone's own key is reported, because the operator can remove the key.
    let message = problem("[zone.\"a.\"]\nfile = \"z\"\nrefresh-min = \"1h\"\n");
    assert!(message.starts_with("c.toml:4:15: zone.\"a.\".refresh-min: "), "{message}");
    check_messages("refresh-min of a zone from a file", &[message]);
}

#[test]
fn limits_of_records_and_types_are_those_of_the_zone_then_of_its_template() {
    let text = "version = 1\nstate-dir = \"s\"\n[template.t]\nmax-records-per-type = 500\nmax-types-per-name = 7\n\
                [zone.\"a.\"]\ntemplate = \"t\"\nfile = \"a\"\nmax-records-per-type = 0\n\
                [zone.\"b.\"]\nprimaries = [\"192.0.2.1\"]\nmax-types-per-name = 65535\n[zone.\"c.\"]\nfile = \"c\"\n";
    let limits: Vec<_> = accepted(text).zones.iter().map(|zone| zone.limits).collect();
    let of = |records_per_type, types_per_name| RecordLimits { records_per_type, types_per_name };
    assert_eq!(limits, [of(Some(0), Some(7)), of(None, Some(65_535)), of(None, None)]);
    for value in ["-1", "65536", "\"100\"", "true"] {
        for key in ["max-records-per-type", "max-types-per-name"] {
            let error = problem(&format!("[zone.\"a.\"]\nfile = \"a\"\n{key} = {value}\n"));
            assert!(error.contains(&format!("{key}: ")) && error.contains("65535"), "{error}");
            check_messages(&format!("{key} = {value}"), &[error]);
        }
    }
}

#[test]
fn unsafe_transitions_are_allowed_only_for_zones_from_files() {
    let text = "version = 1\nstate-dir = \"s\"\n[template.t]\nallow-unsafe-transition = true\n\
                [zone.\"a.\"]\ntemplate = \"t\"\nfile = \"z\"\n[zone.\"b.\"]\nfile = \"z\"\n\
                [zone.\"c.\"]\ntemplate = \"t\"\nprimaries = [\"192.0.2.1\"]\n";
    let allowed: Vec<bool> = accepted(text).zones.iter().map(|zone| zone.allows_unsafe_transition).collect();
    assert_eq!(allowed, [true, false, false]);
}

#[test]
fn limits_of_transfers_are_read() {
    let text = "version = 1\nstate-dir = \"s\"\n[template.t]\nrequest-ixfr = false\ntransfer-records-max = 7\n\
                [zone.\"a.\"]\ntemplate = \"t\"\nprimaries = [\"192.0.2.1\"]\ntransfer-size-max = \"1MiB\"\n\
                [zone.\"b.\"]\nprimaries = [\"192.0.2.1\"]\n\
                [limits]\ntransfer-in-time = \"1h\"\ntransfer-in-idle = \"5s\"\n\
                transfer-out-time = \"1d\"\ntransfer-out-idle = \"7s\"\n";
    let configuration = accepted(text);
    let transfers: Vec<_> = configuration.zones.iter().map(|zone| &zone.transfers).collect();
    assert!(!transfers[0].request_ixfr && transfers[1].request_ixfr);
    assert_eq!((transfers[0].bounds.records, transfers[0].bounds.octets), (7, 1 << 20));
    assert_eq!(transfers[1].bounds, TransferBounds::default());
    let limits = &configuration.limits;
    assert_eq!((limits.transfer_in_time, limits.transfer_in_idle), (3600, 5));
    assert_eq!((limits.transfer_out_time, limits.transfer_out_idle), (86_400, 7));
}

/// The server accepts every limit that the configuration permits: both use the same bounds.
#[test]
fn limits_are_accepted_within_their_ranges() {
    use nonesuch_server::limits::{RATE_RANGE, SLIP_RANGE, TABLE_OCTETS_RANGE};
    for (rate, slip, table) in [
        (*RATE_RANGE.end(), *SLIP_RANGE.end(), *TABLE_OCTETS_RANGE.end()),
        (*RATE_RANGE.start() + 1, *SLIP_RANGE.start(), *TABLE_OCTETS_RANGE.start()),
    ] {
        let text = format!(
            "version = 1\n[limits]\nresponses-per-second = {rate}\nclient-responses-per-second = {rate}\nslip = {slip}\n\
             response-table = \"{table}B\"\n"
        );
        let limits = crate::server::limit_settings(&accepted(&text));
        limits.check().unwrap();
    }
}

#[test]
fn rates_of_nxdomain_and_referrals_are_set_separately() {
    for (text, expected) in [
        ("", None),
        ("responses-per-second = 0\n", None),
        ("responses-per-second = 200\n", Some((200, 200, 200, 2000))),
        ("responses-per-second = 7\n", Some((7, 7, 7, 2000))),
        ("nxdomain-responses-per-second = 8\n", Some((0, 8, 0, 0))),
        ("client-responses-per-second = 9\n", Some((0, 0, 0, 9))),
        (
            "responses-per-second = 7\nnxdomain-responses-per-second = 8\nreferral-responses-per-second = 0\n",
            Some((7, 8, 0, 2000)),
        ),
    ] {
        let settings = crate::server::limit_settings(&accepted(&format!("version = 1\n[limits]\n{text}")));
        let rates =
            settings.responses.map(|rates| (rates.positive, rates.nxdomain, rates.referral, rates.all));
        assert_eq!(rates, expected, "{text}");
    }
    // The documented value equals the strict settings of the server.
    let strict =
        crate::server::limit_settings(&accepted("version = 1\n[limits]\nresponses-per-second = 200\n"));
    assert_eq!(strict.responses, Some(nonesuch_server::limits::RateSettings::default()));
}

#[test]
fn producers_get_their_members() {
    let text = "version = 1\nstate-dir = \"s\"\n[zone.\"c.\"]\ncatalog = \"producer\"\n[zone.\"a.\"]\nfile = \"z\"\ncatalog-zone = \"C\"\ngroup = \"g\"\n";
    let zones = accepted(text).zones;
    let catalog = zones.iter().find_map(|zone| zone.catalog.clone());
    let members = vec![ProducedMember::new("a.".parse().unwrap(), Some("g".to_owned()))];
    assert_eq!(catalog, Some(CatalogSettings::Producer { members }));
}

/// The former catalog of the zone still lists it, and names the new owner (`coo` property).
#[test]
fn a_zone_is_in_two_catalogs_while_it_moves() {
    let text = "version = 1\nstate-dir = \"state\"\n[zone.\"old.\"]\ncatalog = \"producer\"\n[zone.\"new.\"]\ncatalog = \"producer\"\n\
        [zone.\"a.\"]\nfile = \"z\"\ncatalog-zone = \"new.\"\ncatalog-former = \"old.\"\n";
    let name = |text: &str| text.parse::<Name>().unwrap();
    let listed = |apex: &str| {
        let zones = accepted(text).zones;
        match &zones.iter().find(|zone| zone.apex == name(apex)).unwrap().catalog {
            Some(CatalogSettings::Producer { members }) => members.clone(),
            other => panic!("{other:?}"),
        }
    };
    let plain = ProducedMember::new(name("a."), None);
    assert_eq!(listed("old."), [ProducedMember { new_owner: Some(name("new.")), ..plain.clone() }]);
    assert_eq!(listed("new."), [ProducedMember { former_owner: Some(name("old.")), ..plain }]);
    for (key, value) in [("catalog-former", "none."), ("catalog-next", "new.")] {
        let text = text.replace("catalog-former = \"old.\"", &format!("{key} = \"{value}\""));
        let found = problems(&text);
        assert!(found.iter().any(|problem| problem.contains(&format!("{key}: "))), "{text}: {found:?}");
        check_messages(&format!("{key} = {value}"), &found);
    }
}

/// The lines of the example with keys uncommented. `with_examples` includes the lines that show no
/// default.
fn uncommented(with_examples: bool) -> String {
    let lines = EXAMPLE.lines().map(|line| match line.strip_prefix('#') {
        Some(rest) if rest.starts_with([' ', '#']) || rest.is_empty() => String::new(),
        Some(rest) if with_examples || !rest.ends_with(NO_DEFAULT) => rest.to_owned(),
        Some(_) => String::new(),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_example_shows_the_defaults() {
    let plain = accepted("version = 1");
    for text in [EXAMPLE.to_owned(), uncommented(false)] {
        let shown = accepted(&text);
        assert_eq!(shown.server, plain.server);
        assert_eq!(shown.limits, plain.limits);
        assert_eq!(shown.log, plain.log);
        assert_eq!(shown.cookies, plain.cookies);
        assert!(shown.zones.is_empty() && shown.dnstap.is_none());
    }
}

#[test]
fn the_example_has_every_key_and_no_other() {
    let text = uncommented(true);
    let Problems(problems) = parse(Path::new("etc/nonesuch.toml"), text.clone()).unwrap_err();
    // The secret files do not exist here, and dnstap permits either a socket or a file.
    let expected = ["secret-file", "dnstap.file"];
    let others: Vec<String> = problems
        .iter()
        .filter(|problem| {
            !expected.iter().any(|key| problem.location.key.ends_with(key))
                && !problem.message.contains("[key.")
        })
        .map(ToString::to_string)
        .collect();
    assert!(others.is_empty(), "{others:#?}");
    let shown: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| {
            line.strip_prefix('[')
                .and_then(|rest| rest.split(['.', ']']).next())
                .or_else(|| line.split(" =").next())
        })
        .collect();
    let known = [
        server::table().names(),
        outputs::log_table().names(),
        outputs::dnstap_table().names(),
        limits::table().names(),
        secrets::cookie_table().names(),
        secrets::key_table().names(),
        zone::table().names(),
    ];
    for key in known.into_iter().flatten() {
        // A secret in the configuration itself is explained but not shown.
        assert!(shown.contains(key) || key == "secret", "{key} is not in etc/nonesuch.toml");
    }
}
