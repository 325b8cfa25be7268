//! The extended errors (RFC 8914) of each cause, in the first reply and in replies from the cache
//! (XF-080).

use crate::tree::{CHILD, Change, Reply, START, Tree, World, deep_name, dnskey, ds, ds_of, name};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Message, Rcode, Record};
use nonesuch_resolver::options::NegativeAnchor;

/// The RCODE of replies whose data are bogus, or have no server.
const FAILURE: Rcode = Rcode::SERVFAIL;
const HOST: &str = "host.child.";

/// Asks both workers several times. Returns the reply, which is always the same.
#[track_caller]
fn ask(world: &mut World, asked: &str, rtype: Rtype) -> Reply {
    let first = world.ask_for(0, asked, rtype);
    for worker in [0, 1, 1] {
        assert_eq!(world.ask_for(worker, asked, rtype), first, "{asked} {rtype}: the reply of the cache");
    }
    first
}

/// Changes each record of `child.` that `selects` selects.
fn changed(selects: impl Fn(&Record) -> bool + 'static, change: impl Fn(&mut Record) + 'static) -> Change {
    Box::new(move |server, response| {
        if server == CHILD {
            response.records.iter_mut().filter(|record| selects(record)).for_each(&change);
        }
    })
}

/// Removes the records of `child.` that `selects` selects.
fn without(selects: impl Fn(&Record) -> bool + 'static) -> Change {
    Box::new(move |server, response| {
        if server == CHILD {
            response.records.retain(|record| !selects(record));
        }
    })
}

/// Whether this is the signature over an RRset of the type.
fn covers(record: &Record, rtype: Rtype) -> bool {
    record.rtype == Rtype::RRSIG && record.rdata.starts_with(&rtype.0.to_be_bytes())
}

/// Changes the signature over the address of the host.
fn changed_signature(change: impl Fn(&mut [u8]) + 'static) -> Change {
    changed(|record| covers(record, Rtype::A), move |record| change(&mut record.rdata))
}

/// Sets expiration and inception of the signature over the address, in seconds from the begin.
fn with_period(expiration: i32, inception: i32) -> Change {
    let time = |seconds: i32| (START as u32).wrapping_add_signed(seconds).to_be_bytes();
    changed_signature(move |rdata| {
        rdata[8..12].copy_from_slice(&time(expiration));
        rdata[12..16].copy_from_slice(&time(inception));
    })
}

/// Codes of faults in the responses of `child.`
#[test]
fn faults_of_responses_have_their_codes() {
    let is_denial = |record: &Record| record.rtype == Rtype::NSEC || covers(record, Rtype::NSEC);
    let server_failure = |server, response: &mut Message| {
        if server == CHILD {
            response.header.flags |= FAILURE.0;
            response.records.clear();
        }
    };
    let deep = deep_name();
    let is_deep = |record: &Record| covers(record, Rtype::A) && record.owner.view().label_count() > 50;
    let cases: [(u16, &str, Rtype, Change); 9] = [
        (5, &deep, Rtype::A, without(is_deep)),
        (
            6,
            HOST,
            Rtype::A,
            changed_signature(|rdata| rdata.iter_mut().last().into_iter().for_each(|octet| *octet ^= 1)),
        ),
        (7, HOST, Rtype::A, with_period(-10, -20)),
        (8, HOST, Rtype::A, with_period(2000, 1000)),
        (9, HOST, Rtype::A, changed_signature(|rdata| rdata[17] ^= 1)),
        (10, HOST, Rtype::A, without(|record| covers(record, Rtype::A))),
        (12, HOST, Rtype::TXT, without(is_denial)),
        (23, HOST, Rtype::A, Box::new(server_failure)),
        (25, HOST, Rtype::A, with_period(1000, 2000)),
    ];
    for (code, asked, rtype, change) in cases {
        let mut tree = Tree::new();
        tree.change = change;
        let reply = ask(&mut World::new(tree, |_| {}), asked, rtype);
        assert_eq!((reply.rcode, reply.code()), (FAILURE, Some(code)), "{reply:?}");
    }
}

/// Codes of zones that no validator validates, and of keys and servers.
#[test]
fn faults_of_zones_have_their_codes() {
    let with_ds = |ds: &[u8]| {
        let mut tree = Tree::new();
        tree.set_ds(Some(ds));
        tree
    };
    let altered = |at: usize, octet: u8| {
        let mut ds = ds("child.");
        ds[at] = octet;
        with_ds(&ds)
    };
    let nsec3 = |iterations| {
        let mut tree = Tree::new();
        tree.set_nsec3(iterations);
        tree
    };
    let mut no_zone_key = dnskey("child.");
    no_zone_key[0] = 0;
    let mut without_flag = with_ds(&ds_of("child.", &no_zone_key));
    without_flag.change = changed(|record| record.rtype == Rtype::DNSKEY, |record| record.rdata[0] = 0);
    let mut silent = Tree::new();
    silent.servers.remove(&CHILD);
    let missing = "none.child.";
    for (code, asked, rcode, tree) in [
        (1, HOST, Rcode::NOERROR, altered(2, 200)),
        (2, HOST, Rcode::NOERROR, altered(3, 250)),
        (9, HOST, FAILURE, altered(0, 0xff)),
        (11, HOST, FAILURE, without_flag),
        (22, HOST, FAILURE, silent),
        (27, missing, Rcode::NXDOMAIN, nsec3(51)),
        (27, missing, FAILURE, nsec3(101)),
    ] {
        let mut world = World::new(tree, |options| options.limits.validation.max_iterations_insecure = 100);
        let reply = ask(&mut world, asked, Rtype::A);
        assert_eq!((reply.rcode, reply.is_secure, reply.code()), (rcode, false, Some(code)), "{reply:?}");
    }
    assert_eq!(ask(&mut World::new(nsec3(50), |_| {}), missing, Rtype::A).error, None);
}

#[test]
fn queries_and_negative_trust_anchors_have_their_codes() {
    let mut world = World::new(Tree::new(), |options| {
        let name = name("child.");
        options.validation.negative_anchors.push(NegativeAnchor { name, expires: None, is_rechecked: false });
    });
    // RFC 9824 §3.5.
    let reply = ask(&mut world, HOST, Rtype::NXNAME);
    assert_eq!((reply.rcode, reply.code()), (Rcode::FORMERR, Some(30)));
    for (asked, rtype, rcode) in [
        (HOST, Rtype::A, Rcode::NOERROR),
        (HOST, Rtype::TXT, Rcode::NOERROR),
        ("none.child.", Rtype::A, Rcode::NXDOMAIN),
    ] {
        let reply = ask(&mut world, asked, rtype);
        assert_eq!((reply.rcode, reply.code()), (rcode, Some(33)), "{reply:?}");
    }
    // The answers of other zones have none.
    let reply = ask(&mut world, "a.root.", Rtype::A);
    assert_eq!((reply.is_secure, reply.error), (true, None));
}

/// The reply about a name after a failure of its zone names the record that has the fault.
#[test]
fn a_failure_of_the_chain_of_trust_keeps_its_reason() {
    let mut tree = Tree::new();
    tree.change = without(|record| covers(record, Rtype::DNSKEY));
    let mut world = World::new(tree, |_| {});
    let first = ask(&mut world, HOST, Rtype::A);
    let other = ask(&mut world, "host.sub.child.", Rtype::A);
    assert_eq!((other.rcode, &other.error), (FAILURE, &first.error));
    let (code, text) = first.error.expect("an extended error");
    assert!(code == 10 && text.starts_with("child. DNSKEY: "), "{code} {text}");
}
