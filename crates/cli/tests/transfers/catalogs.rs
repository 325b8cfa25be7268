//! Catalog zones (RFC 9432) between servers. BIND and Knot DNS are consumers of this server's
//! catalogs, with members that are added, removed, change their group or move to another catalog.
//! This server is a consumer of catalogs of NSD, Knot DNS and BIND. NSD consumes catalogs from
//! version 4.9 on.

use crate::common;
use crate::common::transferring;
use common::configured::{Configured, plain_zone, write_beside};
use common::{folder, peers};
use nonesuch_lab::peers::{Peer, PeerServer, PeerZone, Serving, Setup};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Message, Rcode, Section};
use nonesuch_testing::require_peer;
use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::{Duration, Instant};
use transferring::{free_port, peer_setup, primary_setup_of, start_at, try_transferred};

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

/// A consumer of both catalogs.
fn consumer(peer: Peer, dir: &Path, primary: u16) -> Setup {
    let serving = Serving::Secondary { primary: ([127, 0, 0, 1], primary).into(), tls: None };
    let zone = |apex| PeerZone::new(apex, &dir.join(apex), serving.clone());
    let mut setup = Setup { zones: CATALOGS.map(zone).to_vec(), ..peer_setup(dir) };
    if peer == Peer::Bind {
        let from = format!("127.0.0.1 port {primary} key transfer.key");
        let catalog = |apex| {
            format!(
                "zone \"{apex}\" default-primaries {{ {from}; }} zone-directory \".\" in-memory no min-update-interval 0;\n"
            )
        };
        setup.lines = format!("catalog-zones {{ {} }};", CATALOGS.map(catalog).concat());
    } else {
        // Members of the group `open` may be transferred.
        let member = "master: primary-0\n    zonefile-load: none\n    zonefile-sync: -1\n    journal-content: all\n    acl:";
        setup.sections = format!(
            "acl:\n  - id: open\n    address: 127.0.0.1\n    action: transfer\n\
             template:\n  - id: member\n    {member} notify\n  - id: open\n    {member} [notify, open]\n"
        );
        for zone in &mut setup.zones {
            zone.lines = "    catalog-role: interpret\n    catalog-template: [member, open]\n".to_owned();
        }
    }
    setup
}

/// This server, and a consumer that has read the catalogs.
struct Pair {
    ours: Configured,
    theirs: PeerServer,
    folders: [tempfile::TempDir; 2],
}

impl Pair {
    /// `zones` returns the zones of this server for the port that receives NOTIFY.
    fn start(peer: Peer, zones: impl Fn(u16) -> String) -> Option<Self> {
        require_peer!(peer.info().programs[0]);
        let folders = [folder(), folder()];
        write_members(folders[0].path());
        let port = free_port();
        // Catalogs that a test does not write have no members.
        for apex in CATALOGS {
            if !folders[0].path().join(apex).exists() {
                write_catalog(folders[0].path(), apex, 1, "");
            }
        }
        let theirs = peers::start(peer, &consumer(peer, folders[1].path(), port));
        let ours = start_at(folders[0].path(), port, &zones(theirs.address.port()));
        let pair = Self { ours, theirs, folders };
        if peer == Peer::Bind {
            pair.wait_for_catalogs();
        }
        Some(pair)
    }

    /// Waits until the consumer has both catalogs. BIND drops a NOTIFY during an attempt to transfer
    /// the zone, which fails while this server starts, and next tries after a minute.
    fn wait_for_catalogs(&self) {
        let has = |apex: &str| {
            let has = serial(self.theirs.address, apex).is_some();
            if !has {
                self.ours.ctl(&["zone", "notify", apex]);
            }
            has
        };
        let log = || format!("{}\n{}", self.theirs.log(), self.ours.logged());
        wait("both catalogs", log, || CATALOGS.into_iter().all(has));
    }

    #[track_caller]
    fn wait(&self, zone: &str, expected: Option<u32>) {
        let what = format!("{zone} {expected:?}");
        let log = || format!("{}\n{}", self.theirs.log(), self.ours.logged());
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

fn members_come_and_go(peer: Peer) -> Option<Pair> {
    let pair = Pair::start(peer, |told| producer(told, "a.example. b.example."))?;
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
    members_come_and_go(Peer::Bind);
}

#[test]
fn knot_consumes_what_ours_produces_and_heeds_groups() {
    let Some(pair) = members_come_and_go(Peer::Knot) else { return };
    let is_open = || try_transferred(pair.theirs.address, "a.example.").is_ok();
    assert!(!is_open());
    pair.reload_with(|text| enter(&take_out(text, "a.example."), "a.example.", "group = \"open\"\n"));
    wait("the group's settings", || pair.theirs.log(), is_open);
}

/// A zone moves between catalogs that this server produces, in the three steps of the
/// documentation. Knot DNS 3.2 ignores the `coo` property of a member that it has; it transfers the
/// zone again with the next version of the other catalog.
fn ours_has_a_member_move(peer: Peer, heeds_moves: bool) {
    let Some(pair) = Pair::start(peer, |told| producer(told, "a.example.")) else { return };
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
    ours_has_a_member_move(Peer::Bind, true);
}

#[test]
fn members_of_what_ours_produces_move_with_knot() {
    ours_has_a_member_move(Peer::Knot, false);
}

/// Both catalogs as files of this server: a member gets a `coo` property for the other catalog, the
/// other catalog lists it, and the first removes it.
fn members_move(peer: Peer, heeds_moves: bool) {
    let from_files = |told: u16| {
        let rights = format!("{RIGHTS}also-notify = [\"127.0.0.1:{told}\"]\n");
        let zones = CATALOGS.iter().map(|apex| (apex, &*rights));
        let zones = zones.chain(MEMBERS.iter().map(|zone| (zone, RIGHTS)));
        zones.map(|(zone, rights)| format!("[zone.\"{zone}\"]\nfile = \"{zone}\"\n{rights}")).collect()
    };
    let Some(pair) = Pair::start(peer, from_files) else { return };
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
    members_move(Peer::Bind, true);
}

#[test]
fn members_move_with_knot() {
    members_move(Peer::Knot, false);
}

/// This server consumes the catalogs of a peer: members are added, removed, change their group, and
/// move from one catalog to the other.
fn ours_consumes(peer: Peer) {
    require_peer!(peer.info().programs[0]);
    let (home, theirs) = (folder(), folder());
    let dir = theirs.path();
    write_members(dir);
    let [one, two] = CATALOGS;
    write_catalog(dir, one, 1, "1.zones PTR m.example.\n2.zones PTR a.example.\n");
    write_catalog(dir, two, 1, "3.zones PTR b.example.\n");
    let port = free_port();
    let files = CATALOGS.into_iter().chain(MEMBERS).map(|zone| (zone, zone));
    let peer = peers::start(peer, &primary_setup_of(dir, files, port));
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
        peer.reload().expect("it runs");
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
    ours_consumes(Peer::Bind);
}

#[test]
fn ours_consumes_catalogs_of_knot() {
    ours_consumes(Peer::Knot);
}

#[test]
fn ours_consumes_catalogs_of_nsd() {
    ours_consumes(Peer::Nsd);
}
