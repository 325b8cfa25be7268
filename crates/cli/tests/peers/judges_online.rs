//! Validators for every served mechanism: Unbound, Knot Resolver and `delv`, each with the zone's
//! DS record as its trust anchor, validate every kind of response, from presigned zones and from
//! online signing.
//!
//! Two results depend on the mechanism. Compact denial responds with NOERROR for a missing name
//! (RFC 9824 §3.1; these validators do not send the CO flag). Under opt-out, a record that covers a
//! next closer name does not make a response secure (RFC 5155 §9.2).

use crate::common;
use nonesuch_testing::require_peer;
mod cases;
mod validators;

use cases::{CASES, Case, Kind, ORIGIN, ZONE};
use common::{Running, folder, generate_key, nonesuch, peers, run, serve, sign, text};
use nonesuch_lab::peers::{Peer, ResolverSetup, Setup, TrustAnchor};
use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use validators::{Validator, Verdict, anchor_of};

const NOERROR: u8 = 0;
const SERVFAIL: u8 = 2;
const NXDOMAIN: u8 = 3;

/// Source of the denial records.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum RecordOrigin {
    /// `zone sign`.
    Before,
    /// `serve`, for an unsigned zone file, with one key for everything.
    OfUnsigned,
    /// `serve`, for a zone that `zone sign` has signed with NSEC; the private key of the KSK is not
    /// on the server.
    OverSigned,
    /// `zone sign` and, for NSEC5 proofs, `serve`.
    WithNsec5,
}

/// A served zone.
struct Served {
    folder: tempfile::TempDir,
    anchor: TrustAnchor,
    server: Running,
    /// Servers of the secure and of the unsigned child, if port 53 is available.
    children: Vec<Running>,
}

/// An address of the loopback range with port 53, for referrals; `None` if this port is not
/// available.
fn child_address(last: u8) -> Option<Ipv4Addr> {
    let process = std::process::id();
    (0..8u8).map(|try_| Ipv4Addr::new(127, 77 + try_, process as u8, last)).find(|address| {
        UdpSocket::bind((*address, 53)).is_ok() && std::net::TcpListener::bind((*address, 53)).is_ok()
    })
}

/// A server of a child zone at this address.
fn serve_child(file: &Path, address: Ipv4Addr) -> Running {
    common::serve_at(file, &SocketAddr::from((address, 53)).to_string(), &[])
}

/// The children's servers, their address, and the DS record of the secure child.
fn children(folder: &Path, algorithm: &str, last: u8) -> (Vec<Running>, Ipv4Addr, String) {
    let keys = folder.join("child-keys");
    let zone = "@ 3600 SOA ns h 1 2 3 4 5\n@ 3600 NS ns\nhost 3600 A 192.0.2.77\n";
    let of = |child: &str| {
        let origin = format!("{child}.{ORIGIN}");
        let file = folder.join(child);
        fs::write(&file, format!("$ORIGIN {origin}\n{zone}ns 3600 A 127.0.0.1\n")).expect("written");
        (origin, file)
    };
    let (secure, unsigned_secure) = of("secure");
    let (_, unsigned) = of("unsigned");
    let base = generate_key(&keys, &secure, algorithm, &["--csk"]);
    let signed = folder.join("secure.signed");
    sign(&unsigned_secure, &secure, &keys, "nsec", &signed);
    let anchor = anchor_of(&secure, &keys.join(base + ".key"));
    let (Some(first), Some(second)) = (child_address(last), child_address(last + 1)) else {
        nonesuch_testing::record_skip("referrals: port 53 of the loopback range cannot be bound");
        return (Vec::new(), Ipv4Addr::LOCALHOST, anchor.ds);
    };
    // If both glue records had the same address, the parent's referral would lead to the wrong
    // zone.
    let servers = vec![serve_child(&signed, first), serve_child(&unsigned, second)];
    (servers, first, anchor.ds)
}

fn prepare(algorithm: &str, mechanism: &str, made: RecordOrigin, last: u8) -> Served {
    let folder = folder();
    let (children, address, ds) = children(folder.path(), algorithm, last);
    let second = match children.get(1) {
        Some(server) => server.address.ip().to_string(),
        None => address.to_string(),
    };
    let zone = ZONE
        .replace("ns.unsigned A CHILD", &format!("ns.unsigned A {second}"))
        .replace("ns.secure A CHILD", &format!("ns.secure A {address}"))
        .replace("DS DS", &format!("DS {ds}"));
    let (unsigned, signed, keys) =
        (folder.path().join("zone"), folder.path().join("signed"), folder.path().join("keys"));
    fs::write(&unsigned, zone).expect("written");
    let (base, server) = match made {
        RecordOrigin::Before => {
            let base = generate_key(&keys, ORIGIN, algorithm, &["--ksk"]);
            generate_key(&keys, ORIGIN, algorithm, &[]);
            sign(&unsigned, ORIGIN, &keys, mechanism, &signed);
            (base, serve(&signed, &[]))
        }
        RecordOrigin::OfUnsigned => {
            let base = generate_key(&keys, ORIGIN, algorithm, &["--csk"]);
            (base, serve(&unsigned, &["--denial", mechanism, "--keys", text(&keys)]))
        }
        RecordOrigin::WithNsec5 => {
            let base = generate_key(&keys, ORIGIN, algorithm, &["--nsec5", "--csk"]);
            // The directories of the server must not contain a signing key.
            let apart = common::made(folder.path(), "apart");
            sign(&unsigned, ORIGIN, &keys, mechanism, &apart.join("signed"));
            (base, serve(&apart.join("signed"), &["--nsec5-keys", text(&apart.join("nsec5"))]))
        }
        RecordOrigin::OverSigned => {
            let base = generate_key(&keys, ORIGIN, algorithm, &["--ksk"]);
            generate_key(&keys, ORIGIN, algorithm, &[]);
            sign(&unsigned, ORIGIN, &keys, "nsec", &signed);
            fs::remove_file(keys.join(format!("{base}.private"))).expect("the KSK goes elsewhere");
            (base, serve(&signed, &["--denial", mechanism, "--keys", text(&keys)]))
        }
    };
    let anchor = anchor_of(ORIGIN, &keys.join(format!("{base}.key")));
    Served { folder, anchor, server, children }
}

/// Whether the proof of the case includes a record that covers a next closer name.
const fn is_covered(case: &Case) -> bool {
    matches!(case.kind, Kind::Expanded | Kind::WildcardNoData | Kind::DsNoData | Kind::NxDomain)
}

/// The expected result of a question.
fn expected(case: &Case, mechanism: &str) -> Verdict {
    let positive =
        matches!(case.kind, Kind::Answer | Kind::Expanded | Kind::BehindSecure | Kind::BehindUnsigned);
    let is_insecure = match mechanism {
        // The validators do not support these algorithms.
        "nsec5" | "nsec5-opt-out" => true,
        "nsec3-opt-out" if is_covered(case) => true,
        _ => case.kind == Kind::BehindUnsigned,
    };
    let missing = case.kind == Kind::NxDomain && mechanism != "compact";
    let rcode = if missing { NXDOMAIN } else { NOERROR };
    Verdict { rcode, secure: !is_insecure, has_answer: positive || case.is_alias }
}

/// Class `denial-by-empty-wildcard` of docs/differences.md: with NSEC, Knot Resolver does not
/// accept the proof that a wildcard is an empty non-terminal.
fn is_empty_wildcard(validator: &Validator, case: &Case, mechanism: &str) -> bool {
    mechanism == "nsec" && matches!(validator, Validator::KnotResolver(_)) && case.name.ends_with("x.hollow")
}

/// Sends all questions to all validators, and adds unexpected results by validator.
fn judge(served: &Served, mechanism: &str, what: &str, failures: &mut String) -> usize {
    let mut asked = 0;
    for validator in Validator::all(served.folder.path(), &served.anchor, served.server.address) {
        // `delv` cannot use a trust anchor with an unknown algorithm: it waits for a key that it
        // can use.
        if mechanism.starts_with("nsec5") && matches!(validator, Validator::Delv { .. }) {
            continue;
        }
        for case in CASES {
            let behind = matches!(case.kind, Kind::BehindSecure | Kind::BehindUnsigned);
            if behind && (!validator.follows_referrals() || served.children.is_empty()) {
                continue;
            }
            let name = case.full_name();
            let (said, mut wanted) = (validator.ask(&name, case.rtype), expected(case, mechanism));
            // `delv` does not report that a denial under opt-out is not secure.
            if mechanism == "nsec3-opt-out" && is_covered(case) && matches!(validator, Validator::Delv { .. })
            {
                wanted.secure = said.secure;
            }
            if is_empty_wildcard(&validator, case, mechanism) {
                wanted = Verdict { rcode: SERVFAIL, secure: false, has_answer: false };
            }
            asked += 1;
            if said != wanted {
                let _ = writeln!(
                    failures,
                    "{}, {what}: {name} type {}, {:?}: {said:?}, wanted {wanted:?}",
                    validator.name(),
                    case.rtype,
                    case.kind
                );
            }
        }
    }
    asked
}

/// Whether `nonesuch serve` generates this denial, or its proofs, online.
fn is_made(mechanism: &str) -> bool {
    let help = run(&mut nonesuch(["serve", "--help"])).stdout;
    let option = if mechanism.starts_with("nsec5") { "--nsec5-keys" } else { mechanism };
    let is_made = help.contains("--denial") && help.contains(option);
    if !is_made {
        nonesuch_testing::record_skip(&format!("nonesuch serve does not make {mechanism}"));
    }
    is_made
}

/// All mechanisms from one source, with one algorithm.
fn judge_all(algorithm: &str, mechanisms: &[&str], made: RecordOrigin, last: u8) {
    let mut failures = String::new();
    for mechanism in mechanisms.iter().filter(|mechanism| made == RecordOrigin::Before || is_made(mechanism))
    {
        let served = prepare(algorithm, mechanism, made, last);
        let asked = judge(&served, mechanism, &format!("{algorithm}, {mechanism}, {made:?}"), &mut failures);
        eprintln!("{algorithm}, {mechanism}, {made:?}: {asked} answers judged");
    }
    assert!(failures.is_empty(), "{failures}");
}

const ONLINE: [&str; 3] = ["minimal-nsec", "compact", "white-lies"];

#[test]
fn signed_before_with_p256() {
    judge_all("ecdsap256sha256", &common::MECHANISMS, RecordOrigin::Before, 10);
}

#[test]
#[ignore = "`just judge`: as with P-256"]
fn signed_before_with_rsa() {
    judge_all("rsasha256", &common::MECHANISMS, RecordOrigin::Before, 20);
}

#[test]
fn signed_when_asked_with_p256() {
    judge_all("ecdsap256sha256", &ONLINE, RecordOrigin::OfUnsigned, 30);
}

#[test]
#[ignore = "`just judge`: as with P-256"]
fn signed_when_asked_with_rsa() {
    judge_all("rsasha256", &ONLINE, RecordOrigin::OfUnsigned, 40);
}

#[test]
#[ignore = "`just judge`: as with P-256"]
fn signed_when_asked_over_a_signed_zone() {
    judge_all("ecdsap256sha256", &ONLINE, RecordOrigin::OverSigned, 50);
}

/// RFC 8198: a resolver that answers from cached NSEC records keeps the records of a wildcard. The
/// second name of each pair is the direct predecessor of the first, where the covering record
/// begins.
#[test]
fn names_that_a_wildcard_matches_stay_for_resolvers_that_use_records_again() {
    require_peer!("unbound");
    const TXT: u16 = 16;
    let (before, behind) = ("v".repeat(63), "v".repeat(62) + "w");
    let wanted = Verdict { rcode: NOERROR, secure: true, has_answer: true };
    for (mechanism, made) in [
        ("minimal-nsec", RecordOrigin::OfUnsigned),
        ("minimal-nsec", RecordOrigin::OverSigned),
        ("compact", RecordOrigin::OverSigned),
    ] {
        let served = prepare("ecdsap256sha256", mechanism, made, 70);
        let setup = peers::resolver(served.folder.path(), &served.anchor, served.server.address);
        let resolver = ResolverSetup { aggressive: true, ..setup.resolver };
        let unbound = peers::start(Peer::Unbound, &Setup { resolver, ..setup });
        let unbound = Validator::Unbound(unbound);
        for (first, second) in [("victim\\000", "victim"), (behind.as_str(), before.as_str())] {
            for labels in [first.to_owned(), second.to_owned(), format!("below.{second}")] {
                let name = format!("{labels}.w.{ORIGIN}");
                assert_eq!(unbound.ask(&name, TXT), wanted, "{mechanism}, {made:?}: {name}");
            }
        }
    }
}

/// A validator that does not know the algorithm numbers of a zone with NSEC5 considers it insecure,
/// and never bogus (RFC 4035 §5.2).
#[test]
fn nsec5_is_insecure_to_others() {
    for algorithm in ["ecdsap256sha256", "ed25519"] {
        judge_all(algorithm, &["nsec5", "nsec5-opt-out"], RecordOrigin::WithNsec5, 60);
    }
}
