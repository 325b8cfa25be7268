//! Tests that the document of the protocol matches the types.

use super::status::SecondaryNotify;
use super::*;
use nonesuch_authoritative::service::{ActivityKind, ServiceStatus, ZoneStatus};
use nonesuch_secondary::notify::{LastQuery, LastTransfer};
use nonesuch_secondary::{FailingPrimary, RefreshState};
use std::collections::BTreeMap;

const DOCUMENT: &str = include_str!("../../../../docs/control-protocol.md");

/// The members and their types in the tables below each heading.
fn documented() -> BTreeMap<&'static str, BTreeMap<String, &'static str>> {
    let mut tables: BTreeMap<_, BTreeMap<_, _>> = BTreeMap::new();
    let mut heading = "";
    // The tables of requests and of lines have other columns.
    let responses = DOCUMENT.split_once("\n## Server status").unwrap().0.len();
    for line in DOCUMENT[responses..].lines() {
        if line.starts_with('#') {
            heading = line.trim_start_matches(['#', ' ']);
        }
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let ["", member, kind, _meaning, ""] = cells[..]
            && let Some(member) = member.strip_prefix('`').and_then(|member| member.strip_suffix('`'))
        {
            let known = tables.entry(heading).or_default().insert(member.to_owned(), kind);
            assert_eq!(known, None, "{heading}: {member} stands there twice");
        }
    }
    tables
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind.strip_suffix(" or null").unwrap_or(kind) {
        "number" => value.is_number(),
        "text" => value.is_string(),
        "object" => value.is_object(),
        "true or false" => value.is_boolean(),
        "list of text" => value[0].is_string(),
        "list of objects" => value[0].is_object(),
        "list of pairs" => value[0].as_array().is_some_and(|pair| pair.len() == 2),
        other => panic!("{other} is no type of this document"),
    }
}

fn text() -> String {
    "x".to_owned()
}

fn report() -> ReloadReport {
    let pairs = || vec![(text(), text())];
    let names = || vec![text()];
    ReloadReport {
        at: 1,
        seconds: 1.5,
        added: names(),
        removed: names(),
        updated: names(),
        refused: pairs(),
        warnings: pairs(),
        unchanged: 1,
    }
}

fn server_status() -> ServerStatus {
    let address = "192.0.2.1:53".parse().unwrap();
    let failure = RefreshFailure {
        zone: text(),
        state: RefreshState::Failing,
        primary: Some(address),
        since: Some(1),
        error: Some(text()),
        next_refresh: Some(1),
        expires: Some(1),
    };
    let activity = Activity {
        kind: ActivityKind::Load,
        zone: Some(text()),
        phase: "x".into(),
        done: 1,
        total: 1,
        seconds: 1.5,
    };
    ServerStatus {
        protocol: VERSION,
        version: text(),
        pid: 1,
        up_seconds: 1,
        configuration: Some("x".into()),
        control_socket: Some("x".into()),
        listen: vec![address],
        listen_tls: vec![address],
        datagrams_in: 1,
        datagrams_out: 1,
        needs_restart: vec![text()],
        refused_configuration: Some(RefusedConfiguration { at: 1, problems: text() }),
        refresh_failures: RefreshFailures { count: 1, zones: vec![failure] },
        transfers_in: vec![TransferIn { zone: text(), primary: text(), octets: 1, records: 1, since: 1 }],
        transfers_out: vec![TransferOut { zone: text(), client: text(), octets: 1, messages: 1, records: 1 }],
        service: ServiceStatus {
            serving: 1,
            not_ready: 1,
            expired: 1,
            failed: 1,
            troubled: vec![text()],
            activities: vec![activity],
            last_reload: Some(report()),
        },
    }
}

fn resolver_status() -> ResolverStatus {
    ResolverStatus {
        protocol: VERSION,
        version: text(),
        pid: 1,
        up_seconds: 1,
        configuration: Some("x".into()),
        control_socket: Some("x".into()),
        listen: vec!["192.0.2.1:53".parse().unwrap()],
        listen_tls: vec!["192.0.2.1:853".parse().unwrap()],
        datagrams_in: 1,
        datagrams_out: 1,
        needs_restart: vec![text()],
        refused_configuration: Some(RefusedConfiguration { at: 1, problems: text() }),
        cache: CacheStatus { entries: 1, octets: 1, octets_max: 1, hits: 1, misses: 1 },
        upstream: UpstreamStatus { queries: 1, responses: 1, open: 1 },
        validation: ValidationStatus {
            anchors: vec![text()],
            keys: vec![ManagedKeyStatus { zone: text(), tag: 1, algorithm: 1, state: text(), since: 1 }],
            negative_anchors: vec![negative_anchor()],
            zones: 1,
            octets: 1,
            denials: 1,
            denial_answers: 1,
        },
        cost_model: CostModelStatus { total: cost_model_second(), seconds: vec![cost_model_second()] },
    }
}

fn negative_anchor() -> NegativeAnchorStatus {
    NegativeAnchorStatus { zone: text(), until: Some(1), recheck: true, configured: true }
}

fn cost_model_second() -> CostModelSecond {
    CostModelSecond {
        unix: 1,
        queries: 1,
        tcp_queries: 1,
        responses: 1,
        truncated: 1,
        signed_responses: 1,
        response_octets: Some(1),
        signatures: [(13, 1)].into(),
        verified: [(13, 1)].into(),
    }
}

#[test]
fn a_status_is_that_of_a_server_or_of_a_resolver() {
    let (server, resolver) = (to_value(&server_status()), to_value(&resolver_status()));
    assert!(parse_response::<ServerStatus>(&server).is_some());
    assert!(parse_response::<ServerStatus>(&resolver).is_none());
    assert!(parse_response::<ResolverStatus>(&resolver).is_some());
}

fn zone_report() -> ZoneReport {
    let address = "192.0.2.1:53".parse().unwrap();
    ZoneReport {
        status: ZoneStatus {
            zone: text(),
            state: ServingState::Serving,
            serial: Some(1),
            served: Some(text()),
            source: text(),
            records: Some(1),
            signatures: 1,
            verified: Some(text()),
            next_key_event: Some(1),
            nearest_expiration: Some(1),
            expires_soon: true,
            loaded_at: Some(1),
            image_octets: 1,
            catalog: Some(text()),
            template: Some(text()),
            error: Some(text()),
            storage_error: Some(text()),
            warnings: vec![text()],
            findings: Some(1),
        },
        secondaries: vec![Secondary {
            address,
            notify: SecondaryNotify { result: text(), serial: Some(1), at: 1 },
            query: Some(LastQuery { serial: Some(1), at: 1 }),
            transfer: Some(LastTransfer { serial: 1, at: 1 }),
        }],
        refresh: Some(Refresh {
            primary: text(),
            refresh_state: RefreshState::Failing,
            failing_primaries: vec![FailingPrimary { address, since: 1, error: text() }],
            refreshed: Some(1),
            next_refresh: Some(1),
            expires: Some(1),
            transfer_error: Some(text()),
            rejected_serial: Some(1),
            behind: vec![text()],
        }),
    }
}

/// A sample of each object of the protocol with all members, by its heading in the document.
fn samples() -> Vec<(&'static str, Value)> {
    let resolver = to_value(&resolver_status());
    let (status, zone) = (to_value(&server_status()), to_value(&zone_report()));
    let (refresh, names) = (RefreshStarted { zone: text(), is_started: true }, || vec![text()]);
    let loaded = ZoneReloaded::Loaded { zone: text(), updated: true, warnings: names() };
    let added = ZoneAdded {
        zone: text(),
        state: ServingState::Failed,
        serial: Some(1),
        error: Some(text()),
        warnings: names(),
    };
    vec![
        ("Managed keys", resolver["validation"]["keys"][0].clone()),
        ("Negative trust anchor", to_value(&negative_anchor())),
        ("Refused configuration", status["refused_configuration"].clone()),
        ("Refresh failures", status["refresh_failures"].clone()),
        ("Refresh failure", status["refresh_failures"]["zones"][0].clone()),
        ("Incoming transfer", status["transfers_in"][0].clone()),
        ("Outgoing transfer", status["transfers_out"][0].clone()),
        ("Activity", status["activities"][0].clone()),
        ("Server status", status),
        ("Cache", resolver["cache"].clone()),
        ("Queries to servers", resolver["upstream"].clone()),
        ("Validation", resolver["validation"].clone()),
        ("Cost model", resolver["cost_model"]["total"].clone()),
        ("Resolver status", resolver),
        ("Resolver reload", to_value(&ResolverReload { needs_restart: names() })),
        ("Failing primary", zone["failing_primaries"][0].clone()),
        ("Secondary", zone["secondaries"][0].clone()),
        ("Last NOTIFY", zone["secondaries"][0]["notify"].clone()),
        ("Last query", zone["secondaries"][0]["query"].clone()),
        ("Last transfer", zone["secondaries"][0]["transfer"].clone()),
        ("Zone status", zone),
        ("Reload report", to_value(&ReloadResult { report: report(), needs_restart: names() })),
        ("Zone reload", to_value(&loaded)),
        ("Zone transfer", to_value(&ZoneReloaded::RefreshStarted(refresh))),
        ("Zone notify", to_value(&ZoneNotified { zone: text(), serial: Some(1), servers: names() })),
        ("Zone add", to_value(&added)),
        ("Zone remove", to_value(&ZoneRemoved { zone: text() })),
        ("Zone purge", to_value(&ZonePurged { zone: text(), purged: true })),
        ("Purge", to_value(&PurgeResult { purged: names() })),
        ("Zone export", to_value(&ZoneExported { zone: text(), serial: Some(1), records: 1 })),
    ]
}

#[test]
fn the_document_has_the_members_of_each_response() {
    let mut documented = documented();
    for (heading, sample) in samples() {
        let table = documented.remove(heading).unwrap_or_default();
        let members = sample.as_object().unwrap();
        assert_eq!(
            table.keys().collect::<Vec<_>>(),
            members.keys().collect::<Vec<_>>(),
            "the members of {heading}"
        );
        for (member, kind) in table {
            assert!(is_of(kind, &members[&member]), "{heading}: {member} is documented as {kind}");
        }
    }
    assert!(documented.is_empty(), "no response has the members of {:?}", documented.keys());
}

#[test]
fn the_document_has_all_commands() {
    let zone = text;
    let requests = [
        Request::Status {},
        Request::Reload { zone: None },
        Request::Reload { zone: Some(zone()) },
        Request::ZoneStatus { zone: Some(zone()) },
        Request::ZoneRefresh { zone: zone() },
        Request::ZoneRetransfer { zone: zone() },
        Request::ZoneNotify { zone: zone() },
        Request::ZoneAdd { zone: zone(), settings: toml::Table::new() },
        Request::ZoneRemove { zone: zone() },
        Request::ZonePurge { zone: zone() },
        Request::ZoneExport { zone: zone() },
        Request::NegativeAnchorAdd { zone: zone(), lifetime: 1, recheck: true },
        Request::NegativeAnchorRemove { zone: zone() },
        Request::NegativeAnchorList {},
        Request::Purge {},
        Request::Stop {},
    ];
    let section = DOCUMENT.split("\n## ").find(|section| section.starts_with("Requests")).unwrap();
    let rows: Vec<&str> =
        section.lines().filter(|line| line.starts_with("| `") && !line.contains("| members |")).collect();
    assert_eq!(rows.len(), requests.len());
    for (row, request) in rows.iter().zip(&requests) {
        let request = to_value(request);
        let mut cells = row.split('|').map(str::trim).skip(1);
        let (command, members) = (cells.next().unwrap(), cells.next().unwrap());
        assert_eq!(command.trim_matches('`'), request["command"], "{row}");
        for member in request.as_object().unwrap().keys().filter(|member| *member != "command") {
            assert!(members.contains(&format!("`{member}`")), "{row}");
        }
        assert_eq!(members.is_empty(), request.as_object().unwrap().len() == 1, "{row}");
    }
}

#[test]
fn lines_of_responses_are_distinguished() {
    let zone = Line::zone(&zone_report());
    for line in [Line::done(&1), Line::Error(text()), Line::working(&[]), Line::Text(text()), zone] {
        let text = serde_json::to_string(&line).unwrap();
        let read: Line = serde_json::from_str(&text).unwrap();
        assert_eq!(std::mem::discriminant(&read), std::mem::discriminant(&line), "{text}");
    }
}

#[test]
fn clients_ignore_members_that_they_do_not_know() {
    let mut status = to_value(&server_status());
    status["new"] = 1.into();
    assert_eq!(parse_response::<ServerStatus>(&status).unwrap().pid, 1);
    let mut zone = to_value(&zone_report());
    zone["new"] = 1.into();
    let zone: ZoneReport = parse_response(&zone).unwrap();
    assert!(zone.refresh.is_some());
    let request = r#"{"command": "purge", "zone": "example."}"#;
    assert!(serde_json::from_str::<Request>(request).is_err());
}
