//! Catalog zones (RFC 9432) between servers. BIND and Knot DNS are consumers of this server's
//! catalogs, with members that are added, removed, change their group or move to another catalog.
//! This server is a consumer of catalogs of NSD, Knot DNS and BIND. NSD consumes catalogs from
//! version 4.9 on.

use crate::common;
use crate::common::transferring;
use common::configured::{Configured, plain_zone, write_beside};
use common::{Running, folder, is_installed, start_peer, text};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Message, Rcode, Section};
use nonesuch_testing::require_peer;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use transferring::{SECRET, bind_with, free_port, hang_up, start_at, try_transferred};

const LIMIT: Duration = Duration::from_secs(30);
/// Catalogs, and zones that are their members.
const CATALOGS: [&str; 2] = ["one.catalog.", "two.catalog."];
const MEMBERS: [&str; 4] = ["a.example.", "b.example.", "c.example.", "m.example."];
/// Other tests cover TLS, TSIG and similar settings.
const RIGHTS: &str = "transfer = [\"key:transfer.key.\"]\n";

/// The serial in the server's response, if it has the zone.
fn serial(server: SocketAddr, zone: &str) -> Option<u32> {
    let message: Message = common::configured::ask(server, zone, Rtype::SOA);
    let soa = message.section(Section::Answer).find(|record| record.rtype == Rtype::SOA)?;
    let serial = soa.rdata.len().checked_sub(20).and_then(|at| soa.rdata[at..].first_chunk())?;
    (message.rcode() == Rcode::NOERROR).then(|| u32::from_be_bytes(*serial))
}

#[track_caller]
fn wait(what: &str, log: impl Fn() -> String, holds: impl Fn() -> bool) {
    let end = Instant::now() + LIMIT;
    while !holds() {
        assert!(Instant::now() < end, "{what} does not come about: {}", log());
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A catalog in the form that an operator writes.
fn catalog(apex: &str, serial: u32, members: &str) -> String {
    format!(
        "$ORIGIN {apex}\n$TTL 0\n@ SOA invalid. invalid. {serial} 60 60 3600 0\n@ NS invalid.\nversion TXT 2\n{members}"
    )
}

fn write_catalog(dir: &Path, apex: &str, serial: u32, members: &str) {
    write_beside(&dir.join(apex), &catalog(apex, serial, members));
}

fn write_members(dir: &Path) {
    for zone in MEMBERS {
        fs::write(dir.join(zone), plain_zone(zone, 1)).expect("written");
    }
}

/// A consumer of both catalogs: its command, for a directory, its port and the port of the primary.
type Consumer = fn(&Path, u16, u16) -> Command;

fn bind_consumer(dir: &Path, port: u16, primary: u16) -> Command {
    let dir = text(dir);
    let from = format!("127.0.0.1 port {primary} key transfer.key");
    let mut list = String::new();
    let mut zones = String::new();
    for apex in CATALOGS {
        list.push_str(&format!(
            "zone \"{apex}\" default-primaries {{ {from}; }} zone-directory \"{dir}\" in-memory no min-update-interval 0;\n"
        ));
        zones.push_str(&format!(
            "zone \"{apex}\" {{ type secondary; file \"{apex}copy\"; allow-notify {{ 127.0.0.1; }}; primaries {{ {from}; }}; }};\n"
        ));
    }
    let configuration = format!(
        "key \"transfer.key\" {{ algorithm hmac-sha256; secret \"{SECRET}\"; }};\n\
         options {{ directory \"{dir}\"; listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }}; recursion no;\n\
         pid-file \"pid\"; session-keyfile \"session\"; dnssec-validation no; notify no; allow-transfer {{ 127.0.0.1; }};\n\
         serial-query-rate 1000; catalog-zones {{ {list} }}; }};\ncontrols {{ }};\n{zones}"
    );
    fs::write(Path::new(dir).join("peer.conf"), configuration).expect("written");
    let mut command = Command::new("named");
    command.args(["-g", "-n", "1", "-c", &format!("{dir}/peer.conf")]);
    command
}

/// Members of the group `open` may be transferred.
fn knot_consumer(dir: &Path, port: u16, primary: u16) -> Command {
    let dir = text(dir);
    let mut configuration = format!(
        "server:\n  rundir: {dir}\n  listen: 127.0.0.1@{port}\n  udp-workers: 1\n  tcp-workers: 1\n  background-workers: 1\n\
         database:\n  storage: {dir}\nlog:\n  - target: stderr\n    any: info\n\
         key:\n  - id: transfer.key\n    algorithm: hmac-sha256\n    secret: {SECRET}\n\
         remote:\n  - id: us\n    address: 127.0.0.1@{primary}\n    key: transfer.key\n\
         acl:\n  - id: told\n    address: 127.0.0.1\n    action: notify\n  - id: open\n    address: 127.0.0.1\n    action: transfer\n\
         template:\n  - id: default\n    storage: {dir}\n  - id: member\n    storage: {dir}\n    master: us\n    acl: told\n\
         \x20 - id: open\n    storage: {dir}\n    master: us\n    acl: [told, open]\nzone:\n"
    );
    for apex in CATALOGS {
        configuration.push_str(&format!(
            "  - domain: {apex}\n    master: us\n    acl: told\n    catalog-role: interpret\n    catalog-template: [member, open]\n"
        ));
    }
    fs::write(Path::new(dir).join("peer.conf"), configuration).expect("written");
    let mut command = Command::new("knotd");
    command.args(["-c", &format!("{dir}/peer.conf")]);
    command
}

/// This server, and a consumer that has read the catalogs.
struct Pair {
    ours: Configured,
    theirs: Running,
    folders: [tempfile::TempDir; 2],
}

impl Pair {
    /// `zones` returns the zones of this server for the port that receives NOTIFY.
    fn start(program: &str, consumer: Consumer, zones: impl Fn(u16) -> String) -> Option<Self> {
        if !is_installed(program) {
            return None;
        }
        let folders = [folder(), folder()];
        write_members(folders[0].path());
        let port = free_port();
        // Catalogs that a test does not write have no members.
        for apex in CATALOGS {
            if !folders[0].path().join(apex).exists() {
                write_catalog(folders[0].path(), apex, 1, "");
            }
        }
        let theirs = start_peer(&folders[1].path().join("log"), |address| {
            consumer(folders[1].path(), address.port(), port)
        });
        let ours = start_at(folders[0].path(), port, &zones(theirs.address.port()));
        Some(Self { ours, theirs, folders })
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folders[1].path().join("log")).unwrap_or_default()
    }

    #[track_caller]
    fn wait(&self, zone: &str, expected: Option<u32>) {
        let what = format!("{zone} {expected:?}");
        let log = || format!("{}\n{}", self.log(), self.ours.logged());
        wait(&what, log, || serial(self.theirs.address, zone) == expected);
    }

    /// Changes the configuration of this server and reloads it.
    fn reload_with(&self, change: impl Fn(&str) -> String) {
        let text = fs::read_to_string(&self.ours.configuration).expect("a configuration");
        write_beside(&self.ours.configuration, &change(&text));
        self.ours.ctl(&["reload"]).expect_done("reload");
    }
}

/// Members of a catalog that this server produces, as part of the configuration.
fn producer(told: u16, members: &str) -> String {
    let mut zones = String::new();
    for apex in CATALOGS {
        zones.push_str(&format!(
            "[zone.\"{apex}\"]\ncatalog = \"producer\"\n{RIGHTS}also-notify = [\"127.0.0.1:{told}\"]\n"
        ));
    }
    for zone in &MEMBERS[..3] {
        zones.push_str(&format!("[zone.\"{zone}\"]\nfile = \"{zone}\"\n{RIGHTS}#{zone}#\n"));
    }
    members.split_ascii_whitespace().fold(zones, |zones, zone| enter(&zones, zone, ""))
}

/// The configuration with a zone added to the first catalog.
fn enter(configuration: &str, zone: &str, more: &str) -> String {
    configuration
        .replace(&format!("#{zone}#\n"), &format!("catalog-zone = \"{}\"\n{more}#in {zone}#\n", CATALOGS[0]))
}

/// The configuration without a zone.
fn take_out(configuration: &str, zone: &str) -> String {
    let entered = format!("catalog-zone = \"{}\"\n#in {zone}#\n", CATALOGS[0]);
    assert!(configuration.contains(&entered), "{configuration}");
    configuration.replace(&entered, &format!("#{zone}#\n"))
}

fn members_come_and_go(program: &str, consumer: Consumer) -> Option<Pair> {
    let pair = Pair::start(program, consumer, |told| producer(told, "a.example. b.example."))?;
    pair.wait("a.example.", Some(1));
    pair.wait("b.example.", Some(1));
    assert_eq!(serial(pair.theirs.address, "c.example."), None);
    pair.reload_with(|text| take_out(&enter(text, "c.example.", ""), "b.example."));
    pair.wait("c.example.", Some(1));
    pair.wait("b.example.", None);
    // The zone returns with another label, so a version that the consumer may have stored is not
    // served. The new version is there before the consumer transfers it.
    write_beside(&pair.folders[0].path().join("b.example."), &plain_zone("b.example.", 2));
    pair.ours.ctl(&["reload"]).expect_done("reload");
    pair.reload_with(|text| enter(text, "b.example.", ""));
    pair.wait("b.example.", Some(2));
    assert_eq!(serial(pair.theirs.address, "a.example."), Some(1));
    Some(pair)
}

#[test]
fn bind_consumes_what_ours_produces() {
    members_come_and_go("named", bind_consumer);
}

#[test]
fn knot_consumes_what_ours_produces_and_heeds_groups() {
    let Some(pair) = members_come_and_go("knotd", knot_consumer) else { return };
    let is_open = || try_transferred(pair.theirs.address, "a.example.").is_ok();
    assert!(!is_open());
    pair.reload_with(|text| enter(&take_out(text, "a.example."), "a.example.", "group = \"open\"\n"));
    wait("the group's settings", || pair.log(), is_open);
}

/// A zone moves between catalogs that this server produces, in the three steps of the
/// documentation. Knot DNS 3.2 ignores the `coo` property of a member that it has; it transfers the
/// zone again with the next version of the other catalog.
fn ours_has_a_member_move(program: &str, consumer: Consumer, heeds_moves: bool) {
    let Some(pair) = Pair::start(program, consumer, |told| producer(told, "a.example.")) else { return };
    pair.wait("a.example.", Some(1));
    let [one, two] = CATALOGS;
    let (first, second) = (format!("catalog-zone = \"{one}\"\n"), format!("catalog-zone = \"{two}\"\n"));
    let (next, former) = (format!("catalog-next = \"{two}\"\n"), format!("catalog-former = \"{one}\"\n"));
    let mark = "#in a.example.#\n";
    let [stays, goes, came, is_there] = [
        format!("{first}{mark}"),
        format!("{first}{next}{mark}"),
        format!("{second}{former}{mark}"),
        format!("{second}{mark}"),
    ];
    // Each time, another zone shows that the consumer has the versions.
    pair.reload_with(|text| enter(&text.replace(&stays, &goes), "b.example.", ""));
    pair.wait("b.example.", Some(1));
    let shows = format!("{second}#in c.example.#\n");
    pair.reload_with(|text| text.replace(&goes, &came).replace("#c.example.#\n", &shows));
    pair.wait("c.example.", Some(1));
    pair.reload_with(|text| take_out(&text.replace(&came, &is_there), "b.example."));
    pair.wait("b.example.", None);
    if heeds_moves {
        assert_eq!(serial(pair.theirs.address, "a.example."), Some(1));
    }
    pair.reload_with(|text| text.replace(&shows, ""));
    pair.wait("c.example.", None);
    pair.wait("a.example.", Some(1));
    pair.reload_with(|text| text.replace(&is_there, ""));
    pair.wait("a.example.", None);
}

#[test]
fn members_of_what_ours_produces_move_with_bind() {
    ours_has_a_member_move("named", bind_consumer, true);
}

#[test]
fn members_of_what_ours_produces_move_with_knot() {
    ours_has_a_member_move("knotd", knot_consumer, false);
}

/// Both catalogs as files of this server: a member gets a `coo` property for the other catalog, the
/// other catalog lists it, and the first removes it.
fn members_move(program: &str, consumer: Consumer, heeds_moves: bool) {
    let from_files = |told: u16| {
        let rights = format!("{RIGHTS}also-notify = [\"127.0.0.1:{told}\"]\n");
        let zones = CATALOGS.iter().map(|apex| (apex, &*rights));
        let zones = zones.chain(MEMBERS.iter().map(|zone| (zone, RIGHTS)));
        zones.map(|(zone, rights)| format!("[zone.\"{zone}\"]\nfile = \"{zone}\"\n{rights}")).collect()
    };
    let Some(pair) = Pair::start(program, consumer, from_files) else { return };
    let dir = pair.folders[0].path();
    let publish = |apex: &str, version: u32, members: &str| {
        write_catalog(dir, apex, version, members);
        pair.ours.ctl(&["reload"]).expect_done("reload");
    };
    let [one, two] = CATALOGS;
    // In each version, a zone is added or removed to show that the consumer has processed it.
    publish(one, 2, "1.zones PTR m.example.\n2.zones PTR a.example.\n");
    pair.wait("m.example.", Some(1));
    pair.wait("a.example.", Some(1));
    // The other catalog cannot take it over before the `coo` property permits it.
    publish(two, 2, "1.zones PTR m.example.\n3.zones PTR b.example.\n");
    pair.wait("b.example.", Some(1));
    publish(two, 3, "4.zones PTR c.example.\n");
    pair.wait("b.example.", None);
    pair.wait("c.example.", Some(1));
    assert_eq!(serial(pair.theirs.address, "m.example."), Some(1));
    publish(one, 3, "1.zones PTR m.example.\ncoo.1.zones PTR two.catalog.\n");
    pair.wait("a.example.", None);
    publish(two, 4, "1.zones PTR m.example.\n3.zones PTR b.example.\n4.zones PTR c.example.\n");
    pair.wait("b.example.", Some(1));
    // After the first catalog has removed it, it belongs to the other one.
    publish(one, 4, "2.zones PTR a.example.\n");
    pair.wait("a.example.", Some(1));
    if heeds_moves {
        assert_eq!(serial(pair.theirs.address, "m.example."), Some(1));
    }
    publish(two, 5, "1.zones PTR m.example.\n4.zones PTR c.example.\n");
    pair.wait("b.example.", None);
    pair.wait("m.example.", Some(1));
    publish(two, 6, "4.zones PTR c.example.\n");
    pair.wait("m.example.", None);
    assert_eq!(serial(pair.theirs.address, "c.example."), Some(1));
}

#[test]
fn members_move_with_bind() {
    members_move("named", bind_consumer, true);
}

#[test]
fn members_move_with_knot() {
    members_move("knotd", knot_consumer, false);
}

/// A primary of both catalogs and all members, each from the file with its name.
type Producer = fn(&Path, u16, u16) -> Command;

fn all_zones() -> impl Iterator<Item = &'static str> {
    CATALOGS.into_iter().chain(MEMBERS)
}

fn bind_producer(dir: &Path, port: u16, told: u16) -> Command {
    let zones = all_zones().map(|zone| format!("zone \"{zone}\" {{ type primary; file \"{zone}\"; }};\n"));
    bind_with(dir, port, told, &zones.collect::<String>())
}

fn knot_producer(dir: &Path, port: u16, told: u16) -> Command {
    let dir = text(dir);
    let mut configuration = format!(
        "server:\n  rundir: {dir}\n  listen: 127.0.0.1@{port}\n  udp-workers: 1\n  tcp-workers: 1\n  background-workers: 1\n\
         database:\n  storage: {dir}\nlog:\n  - target: stderr\n    any: info\n\
         key:\n  - id: transfer.key\n    algorithm: hmac-sha256\n    secret: {SECRET}\n\
         remote:\n  - id: us\n    address: 127.0.0.1@{told}\n    key: transfer.key\n\
         acl:\n  - id: us\n    address: 127.0.0.1\n    key: transfer.key\n    action: transfer\nzone:\n"
    );
    for zone in all_zones() {
        configuration.push_str(&format!(
            "  - domain: {zone}\n    file: {dir}/{zone}\n    zonefile-load: difference\n    zonefile-sync: -1\n    journal-content: changes\n    notify: us\n    acl: us\n"
        ));
    }
    fs::write(Path::new(dir).join("peer.conf"), configuration).expect("written");
    let mut command = Command::new("knotd");
    command.args(["-c", &format!("{dir}/peer.conf")]);
    command
}

fn nsd_producer(dir: &Path, port: u16, told: u16) -> Command {
    let dir = text(dir);
    let mut configuration = format!(
        "server:\n  ip-address: 127.0.0.1@{port}\n  server-count: 1\n  username: \"\"\n  chroot: \"\"\n  zonesdir: \"{dir}\"\n  pidfile: \"{dir}/pid\"\n\
         \x20 database: \"\"\n  zonelistfile: \"{dir}/list\"\n  xfrdfile: \"{dir}/xfrd\"\n  xfrdir: \"{dir}\"\nremote-control:\n  control-enable: no\n\
         key:\n  name: \"transfer.key\"\n  algorithm: hmac-sha256\n  secret: \"{SECRET}\"\n"
    );
    for zone in all_zones() {
        configuration.push_str(&format!(
            "zone:\n  name: \"{zone}\"\n  zonefile: \"{dir}/{zone}\"\n  provide-xfr: 127.0.0.1 transfer.key\n  notify: 127.0.0.1@{told} transfer.key\n"
        ));
    }
    fs::write(Path::new(dir).join("peer.conf"), configuration).expect("written");
    let mut command = Command::new("nsd");
    command.args(["-d", "-c", &format!("{dir}/peer.conf")]);
    command
}

/// This server consumes the catalogs of a peer: members are added, removed, change their group, and
/// move from one catalog to the other.
fn ours_consumes(program: &str, peer: Producer) {
    require_peer!(program);
    let (home, theirs) = (folder(), folder());
    let dir = theirs.path();
    write_members(dir);
    let [one, two] = CATALOGS;
    write_catalog(dir, one, 1, "1.zones PTR m.example.\n2.zones PTR a.example.\n");
    write_catalog(dir, two, 1, "3.zones PTR b.example.\n");
    let port = free_port();
    let peer = start_peer(&dir.join("log"), |address| peer(dir, address.port(), port));
    let primary = format!("primaries = [\"{} key:transfer.key.\"]\nretry-min = \"1s\"\n", peer.address);
    let mut zones =
        format!("[template.member]\n{primary}[template.open]\n{primary}transfer = [\"127.0.0.1\"]\n");
    for apex in CATALOGS {
        zones.push_str(&format!(
            "[zone.\"{apex}\"]\n{primary}catalog = \"consumer\"\nmember-template = \"member\"\ngroup-templates = {{ open = \"open\" }}\n"
        ));
    }
    let server = start_at(home.path(), port, &zones);
    let publish = |apex: &str, version: u32, members: &str| {
        write_catalog(dir, apex, version, members);
        hang_up(&peer);
        server.wait_for(apex, version);
    };
    for zone in ["m.example.", "a.example.", "b.example."] {
        server.wait_for(zone, 1);
    }
    // One member is added, one is removed, one gets the settings of a group.
    let is_open = || try_transferred(server.address, "m.example.").is_ok();
    assert!(!is_open());
    publish(one, 2, "1.zones PTR m.example.\ngroup.1.zones TXT open\n4.zones PTR c.example.\n");
    server.wait_for("c.example.", 1);
    server.wait_until("a.example. goes", || server.serial("a.example.").is_none());
    server.wait_until("the group's settings", is_open);
    // It is not taken over before the `coo` property permits it; then it is.
    publish(two, 2, "1.zones PTR m.example.\n3.zones PTR b.example.\n");
    server.wait_for_event("member-ignored", &["zone=m.example.", "catalog=two.catalog."]);
    publish(one, 3, "1.zones PTR m.example.\ngroup.1.zones TXT open\ncoo.1.zones PTR two.catalog.\n");
    publish(two, 3, "1.zones PTR m.example.\n3.zones PTR b.example.\n5.zones PTR a.example.\n");
    server.wait_for("a.example.", 1);
    // The other catalog specifies no group.
    server.wait_until("the other catalog's settings", || !is_open());
    publish(one, 4, "4.zones PTR c.example.\n");
    server.wait_for("c.example.", 1);
    assert_eq!(server.serial("m.example."), Some(1));
    let removed = server.events("member-removed", &["zone=m.example."]);
    assert!(removed.is_empty(), "{removed:?}");
    publish(two, 4, "3.zones PTR b.example.\n");
    server.wait_until("m.example. goes", || server.serial("m.example.").is_none());
}

#[test]
fn ours_consumes_catalogs_of_bind() {
    ours_consumes("named", bind_producer);
}

#[test]
fn ours_consumes_catalogs_of_knot() {
    ours_consumes("knotd", knot_producer);
}

#[test]
fn ours_consumes_catalogs_of_nsd() {
    ours_consumes("nsd", nsd_producer);
}
