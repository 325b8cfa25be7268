//! What ties a service to transfers, while zones are worked at.

use super::super::{Link, Settings, Template};
use super::*;
use crate::acl::Remote;
use crate::catalog::Listed;
use crate::secondary::TransfersOptions;
use crate::service::activity::lock;
use crate::zones::Zones;
use arc_swap::ArcSwap;
use std::time::{Duration, Instant};

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// A consumer of the catalog `catalog.`, whose members have this primary; nobody listens there.
fn settings(dir: &std::path::Path, primary: &str) -> Settings {
    let of_primary = |apex: &str, primary: &str| {
        let mut zone = ZoneSettings::of_file(name(apex), dir.join("unused"));
        zone.source = Source::Primaries;
        zone.transfers.primaries = vec![Remote::plain(primary.parse().unwrap())];
        zone
    };
    let mut catalog = of_primary("catalog.", "127.0.0.1:1");
    catalog.catalog = Some(Role::Consumer { template: "member".to_owned(), groups: BTreeMap::new() });
    let member = Template::new(of_primary("template.", primary));
    let templates = BTreeMap::from([("member".to_owned(), member)]);
    Settings {
        state_dir: Some(dir.join("state")),
        zones: vec![catalog],
        templates,
        jobs: 2,
        ..Settings::default()
    }
}

/// A version of the catalog behind `previous`.
fn catalog(members: &[&str], previous: Option<&Contents>) -> Contents {
    let members: Vec<Listed> = members.iter().map(|member| Listed::new(name(member), None)).collect();
    produce(&name("catalog."), &members, previous, 1_750_000_000).unwrap().unwrap()
}

#[track_caller]
fn wait_for(what: impl Fn() -> bool) {
    let begun = Instant::now();
    while !what() {
        assert!(begun.elapsed() < Duration::from_secs(20), "it never happens");
        std::thread::yield_now();
    }
}

#[test]
fn members_come_while_others_are_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::open(
        settings(dir.path(), "127.0.0.1:1"),
        crate::service::tests::KEY_FILES,
        Arc::new(Zones::new()),
    );
    let service = service.unwrap();
    let link = Link { service: Arc::clone(&service), settings: Arc::new(ArcSwap::default()) };
    let transfers = Arc::new(Transfers::start(TransfersOptions::default(), Arc::new(link)).unwrap());
    follow(&service, service.events(), transfers).unwrap();
    service.begin().unwrap();
    let _ = service.wait();
    let first = catalog(&["a.example."], None);
    service.publish(&name("catalog."), first.clone(), &[]).unwrap();
    wait_for(|| service.zone(&name("a.example.")).is_some());
    // A reload with another template has the member loaded again, which does not end.
    let member = service.zone(&name("a.example.")).unwrap();
    let working = service.begin_work(&member);
    service.reload(settings(dir.path(), "127.0.0.1:2"));
    wait_for(|| member.settings().transfers.primaries[0].address.port() == 2);
    let second = catalog(&["a.example.", "b.example."], Some(&first));
    service.publish(&name("catalog."), second, &[]).unwrap();
    wait_for(|| service.zone(&name("b.example.")).is_some());
    drop(working);
    service.stop();
}

/// A member that is removed while it is verified is not waited for by the thread that follows all catalogs, by a reload or a purge.
#[test]
fn nobody_waits_for_a_member_that_goes_while_it_is_verified() {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    static GATE: Mutex<()> = Mutex::new(());
    static IS_VERIFIED: AtomicBool = AtomicBool::new(false);
    let keys = crate::service::KeyFiles {
        // Reading the keys is a part of making a version.
        signing: |_, _| {
            IS_VERIFIED.store(true, SeqCst);
            let _open = lock(&GATE);
            Err("no keys".to_owned())
        },
        ..crate::service::tests::KEY_FILES
    };
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(dir.path(), "127.0.0.1:1");
    let mut member = settings.templates["member"].settings().clone();
    let mechanism = nonesuch_dnssec::Mechanism::Compact;
    member.making =
        crate::service::Making::Online { mechanism, keys: dir.path().join("keys"), validity: 86_400 };
    settings.templates.insert("member".to_owned(), Template::new(member));
    let service = Service::open(settings.clone(), keys, Arc::new(Zones::new())).unwrap();
    let link = Link { service: Arc::clone(&service), settings: Arc::new(ArcSwap::default()) };
    let transfers = Arc::new(Transfers::start(TransfersOptions::default(), Arc::new(link)).unwrap());
    follow(&service, service.events(), transfers).unwrap();
    service.begin().unwrap();
    let _ = service.wait();
    let first = catalog(&["a.example."], None);
    service.publish(&name("catalog."), first.clone(), &[]).unwrap();
    wait_for(|| service.zone(&name("a.example.")).is_some());
    let gate = lock(&GATE);
    let publisher = Arc::clone(&service);
    let publishing = std::thread::spawn(move || {
        let text = b"$ORIGIN a.example.\n@ 60 SOA ns h 1 1 1 1 1\n@ 60 NS ns.other.\n";
        let contents =
            nonesuch_zone::read::read_text(text, std::path::Path::new("zone"), None).unwrap().contents;
        publisher.publish(&name("a.example."), contents, &[]).is_err()
    });
    wait_for(|| IS_VERIFIED.load(SeqCst));
    let second = catalog(&[], Some(&first));
    service.publish(&name("catalog."), second.clone(), &[]).unwrap();
    wait_for(|| service.zone(&name("a.example.")).is_none());
    let third = catalog(&["b.example."], Some(&second));
    service.publish(&name("catalog."), third, &[]).unwrap();
    wait_for(|| service.zone(&name("b.example.")).is_some());
    let (done, is_done) = channel();
    let other = Arc::clone(&service);
    std::thread::spawn(move || {
        other.reload(settings);
        let _ = other.purge_zone(&name("a.example."));
        done.send(other.purge_all().is_ok())
    });
    assert_eq!(is_done.recv_timeout(Duration::from_secs(20)), Ok(true));
    drop(gate);
    assert!(publishing.join().unwrap());
    service.stop();
}
