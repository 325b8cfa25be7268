use super::*;
use std::fs;

/// Reads a configuration. The directory has the files `hints` and `anchors`.
fn read_text(text: &str) -> Result<(ResolverConfiguration, Vec<String>), Vec<String>> {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("hints"), ". 60 NS a.root.\na.root. 60 A 127.0.0.1\n").unwrap();
    let digest = "AB".repeat(32);
    fs::write(folder.path().join("anchors"), format!(". DS 1 13 2 {digest}\n")).unwrap();
    let path = folder.path().join("r.toml");
    fs::write(&path, text).unwrap();
    let shorten = |text: String| text.replace(&format!("{}/", folder.path().display()), "");
    match load(&path) {
        Ok(LoadedResolver { configuration, warnings, .. }) => {
            Ok((configuration, warnings.iter().map(|warning| shorten(warning.to_string())).collect()))
        }
        Err(problems) => Err(problems.0.iter().map(|problem| shorten(problem.to_string())).collect()),
    }
}

#[test]
fn a_configuration_without_keys_has_the_defaults_of_the_library() {
    let (read, warnings) = read_text("version = 1\n[limits]\n").unwrap();
    let mut expected = ResolverOptions::default();
    expected.validation.anchors = TrustAnchors::iana();
    assert_eq!(format!("{:?}", read.options), format!("{expected:?}"));
    assert_eq!((read.listen, read.workers, warnings), (vec!["127.0.0.1:53".parse().unwrap()], None, vec![]));
}

#[test]
fn every_key_of_the_reference_is_read() {
    // All keys, with the values that the reference shows.
    let is_key = |line: &str| line.starts_with('#') && line.contains(" = ") && !line.starts_with("# ");
    let uncomment = |line: &str| {
        let is_table = line.starts_with("#[");
        let line = if is_key(line) || is_table { &line[1..] } else { line };
        let line = line.replace("trust-anchors = \"root.key\"", "trust-anchors = \"anchors\"");
        let line = line.replace("listen-tls = []", "listen-tls = [\"127.0.0.1\"]");
        line.replace("hints = \"root.hints\"", "hints = \"hints\"") + "\n"
    };
    let text: String = reference().lines().map(uncomment).collect();
    let (read, warnings) = read_text(&text).unwrap_or_else(|problems| panic!("{text}\n{problems:#?}"));
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!((read.user.as_deref(), read.workers), (Some("nonesuch"), Some(2)));
    assert_eq!(read.options.hints.addresses().count(), 1);
    assert_eq!(read.options.validation.anchors.iter().next().unwrap().tags(), [1]);
    let zones: Vec<String> = read.options.zones.iter().map(|rule| rule.apex.to_string()).collect();
    assert_eq!(zones.len(), 2, "{zones:?}");
    assert_eq!(read.options.nsid, b"resolver1.example");
    assert_eq!(read.tls.listen, ["127.0.0.1:853".parse().unwrap()]);
    assert!(read.tls.files().is_some_and(|files| files.key.ends_with("etc/nonesuch/tls/key.pem")));
    assert_eq!((read.tls_handshake, read.options.padding_block), (Some(Duration::from_secs(5)), 468));
    assert_eq!(read.metrics_listen, Some("127.0.0.1:9530".parse().unwrap()));
    assert_eq!(read.control_group.as_deref(), Some("nonesuch"));
    assert!(read.control_socket.unwrap().ends_with("run/nonesuch/resolver"));
}

#[test]
fn forward_and_stub_zones_are_read() {
    let (read, _) = read_text(
        "version = 1\n[forward.\".\"]\nservers = [\"192.0.2.1\", \"[2001:db8::1]:5300\"]\nfall-back = true\ntcp = true\n\
        [stub.\"corp.example\"]\nservers = [\"127.0.0.1:5301\"]\n",
    )
    .unwrap();
    let forward = ZoneRule {
        tcp: true,
        ..ZoneRule::forward_first(
            Name::root(),
            vec!["192.0.2.1:53".parse().unwrap(), "[2001:db8::1]:5300".parse().unwrap()],
        )
    };
    let stub = ZoneRule::stub("corp.example.".parse().unwrap(), vec!["127.0.0.1:5301".parse().unwrap()]);
    let mut rules: Vec<ZoneRule> = read.options.zones.iter().map(|rule| (**rule).clone()).collect();
    rules.sort_by_key(|rule| rule.apex.view().label_count());
    assert_eq!(rules, [forward, stub]);
}

#[test]
fn faults_name_the_key_and_the_remedy() {
    for (text, expected) in [
        ("", "r.toml:1:1: version: missing: write version = 1 as the first line"),
        ("version = 2", "r.toml:1:11: version: configuration version 2 is unknown"),
        ("version = 1\nlissten = []", "r.toml:2:1: lissten: unknown key; did you mean listen?"),
        ("version = 1\ncontrol-group = \"a\"", "r.toml:2:17: control-group: no control-socket to give"),
        (
            "version = 1\nlisten = [\"127.0.0.1:9530\"]\nmetrics-listen = \"127.0.0.1\"",
            "r.toml:3:18: metrics-listen: 127.0.0.1:9530 is in listen",
        ),
        ("version = 1\nlisten = []", "r.toml:2:10: listen: no address to listen on"),
        ("version = 1\nlisten-tls = [\"127.0.0.1\"]", "r.toml:2:14: listen-tls: DNS over TLS needs tls-cert"),
        ("version = 1\ntls-key = \"k\"", "r.toml:2:11: tls-key: tls-certificate is missing"),
        (
            "version = 1\nlisten-tls = [\"127.0.0.1:53\"]\ntls-key = \"k\"\ntls-certificate = \"c\"",
            "r.toml:2:14: listen-tls: 127.0.0.1:53 is in listen too",
        ),
        (
            "version = 1\nlisten-tls = [\"::1\", \"::1\"]\ntls-key = \"k\"\ntls-certificate = \"c\"",
            "r.toml:2:14: listen-tls: [::1]:853 is listed twice",
        ),
        (
            "version = 1\n[limits]\ntls-handshake = \"2h\"",
            "r.toml:3:17: limits.tls-handshake: \"2h\" is not allowed",
        ),
        ("version = 1\nhints = \"none\"", "r.toml:2:9: hints: none: cannot be read"),
        ("version = 1\nmemory = \"1MiB\"", "r.toml:2:10: memory: \"1MiB\" is not allowed"),
        (
            "version = 1\naddress-families = \"ipv5\"",
            "r.toml:2:20: address-families: \"ipv5\" is not allowed",
        ),
        (
            "version = 1\nallow-query = [\"key:a.\"]",
            "r.toml:2:15: allow-query: allow-query: key:a.: a resolver",
        ),
        (
            "version = 1\n[limits]\nttl-min = \"2m\"\nttl-max = \"1m\"",
            "r.toml:3:11: limits.ttl-min: ttl-min is 120 s: must be at most ttl-max, which is 60",
        ),
        (
            "version = 1\ndisabled-local-zones = [\"example.\"]",
            "r.toml:2:24: disabled-local-zones: 'example.'",
        ),
        ("version = 1\n[stub.\"a.\"]\n", "stub.\"a.\".servers: missing: name at least one server"),
        ("version = 1\n[stub.\"a.\"]\nservers = []\n", "stub: zone a.: no server"),
        (
            "version = 1\n[stub.\"a.\"]\nservers = [\"192.0.2.1\"]\n[forward.\"A\"]\nservers = [\"192.0.2.1\"]",
            "stub: zone a.: there are two forward or stub zones with this name",
        ),
        ("version = 1\n[stub.\"a..b\"]\nservers = [\"192.0.2.1\"]\n", "is not a domain name"),
        ("version = 1\n[stub.\"a.\"]\nservers = [\"192.0.2.1\"]\nfall-back = true", "fall-back: unknown key"),
        (
            "version = 1\naddress-families = \"ipv6\"\n[stub.\"a.\"]\nservers = [\"192.0.2.1\"]\n",
            "r.toml:2:20: address-families: address-families = \"ipv6\", but zone a.",
        ),
    ] {
        let Err(problems) = read_text(text) else { panic!("{text}: no fault") };
        assert!(problems.iter().any(|problem| problem.contains(expected)), "{text}\n{problems:#?}");
        assert_eq!(problems.len(), 1, "{text}\n{problems:#?}");
    }
    let (_, warnings) =
        read_text("version = 1\n[negative-anchor.\".\"]\nuntil = \"2030-01-01T00:00:00Z\"").unwrap();
    assert!(warnings[0].contains("r.toml:3:9: negative-anchor.\".\".until: the zone has"), "{warnings:?}");
    let (_, warnings) = read_text("version = 1\ntls-key = \"k\"\ntls-certificate = \"c\"").unwrap();
    assert!(warnings[0].contains("r.toml:3:19: tls-certificate: the server does not"), "{warnings:?}");
    let (_, warnings) = read_text("version = 1\nuser = \"root\"").unwrap();
    assert!(warnings[0].contains("r.toml:2:8: user: an attacker"), "{warnings:?}");
}
