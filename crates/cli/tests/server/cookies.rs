//! DNS cookies together with BIND and Knot: servers with the same secret accept each other's
//! cookies (RFC 9018), and their clients accept cookies of this server.

use crate::common;
use common::configured::{Configured, configure};
use common::{KEYS_ORIGIN, is_installed, peers, prepared, run};
use nonesuch_lab::peers::{Peer, PeerServer, Serving};
use nonesuch_proto::edns::{self, DO, Opt};
use nonesuch_proto::message::{HEADER, Message, Rcode, push_query};
use nonesuch_proto::{Name, Rtype};
use nonesuch_server::cookies::{CookieStatus, Cookies};
use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const SECRET: &str = "e5e973e5a6b2a43f48e7dc849e37bfcf";
const CLIENT_COOKIE: [u8; 8] = [0x24, 0x64, 0xc4, 0xab, 0xcf, 0x10, 0xc9, 0x57];
const CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn cookies() -> Cookies {
    Cookies::parse_secrets(SECRET).ok().and_then(Cookies::with_secrets).expect("a secret")
}

fn now() -> u32 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() as u32
}

/// Queries the apex SOA record with a cookie option. Returns the response code and the cookie
/// option of the response.
fn ask(server: SocketAddr, cookie: Option<&[u8]>) -> Option<(Rcode, Option<Vec<u8>>)> {
    let socket = UdpSocket::bind((CLIENT, 0)).expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(2))).expect("a limit");
    let mut query = Vec::new();
    push_query(&KEYS_ORIGIN.parse::<Name>().expect("a name"), Rtype::SOA, 7, 0, &mut query);
    query[HEADER - 1] = 1;
    let start = query.len();
    edns::push_opt(1232, 0, DO, &mut query);
    if let Some(cookie) = cookie {
        edns::push_option(edns::COOKIE, &[cookie], &mut query);
    }
    edns::set_options_length(start, &mut query);
    socket.send_to(&query, server).expect("sent");
    let mut response = [0; 4096];
    let (length, _) = socket.recv_from(&mut response).ok()?;
    let message = Message::parse(&response[..length]).expect("a message");
    let opt = message.opt().map(|opt| Opt::from_parts(opt.class.0, opt.ttl, &opt.rdata).expect("options"));
    let cookie = opt.and_then(|opt| opt.option(edns::COOKIE));
    Some((message.rcode(), cookie.map(<[u8]>::to_vec)))
}

/// BIND, which responds with BADCOOKIE to a client with a client cookie and no valid server cookie.
fn start_bind(folder: &Path) -> PeerServer {
    let mut setup = peers::zone(folder, KEYS_ORIGIN, &folder.join("zone"), Serving::Presigned);
    setup.lines = format!(
        "cookie-algorithm siphash24; cookie-secret \"{SECRET}\"; answer-cookie yes; require-server-cookie yes;"
    );
    peers::start(Peer::Bind, &setup)
}

/// Knot DNS with the same behaviour.
fn start_knot(folder: &Path) -> PeerServer {
    let mut setup = peers::zone(folder, KEYS_ORIGIN, &folder.join("zone"), Serving::Presigned);
    setup.sections = format!("mod-cookies:\n  - id: c\n    secret: 0x{SECRET}\n    badcookie-slip: 1\n");
    setup.zones[0].lines = "    module: mod-cookies/c\n".to_owned();
    peers::start(Peer::Knot, &setup)
}

/// A server with the same secret accepts cookies of this library, and this library accepts cookies
/// of the server.
fn exchange(server: SocketAddr) {
    let (rcode, learned) = ask(server, Some(&CLIENT_COOKIE)).expect("a response");
    assert_eq!(rcode, Rcode::BADCOOKIE);
    let learned = learned.expect("a cookie");
    let ours = cookies();
    assert_eq!(ours.check(Some(&learned), CLIENT, now()).status, CookieStatus::Valid, "{learned:02x?}");
    let made = ours.check(Some(&CLIENT_COOKIE), CLIENT, now()).reply.expect("a cookie");
    assert_eq!(ask(server, Some(&made)).expect("a response").0, Rcode::NOERROR);
    let mut forged = made;
    forged[23] ^= 1;
    assert_eq!(ask(server, Some(&forged)).expect("a response").0, Rcode::BADCOOKIE);
    // A cookie of the maximum age, and an older one.
    let at = |age: u32| ours.check(Some(&CLIENT_COOKIE), CLIENT, now() - age).reply.expect("a cookie");
    assert_eq!(ask(server, Some(&at(3500))).expect("a response").0, Rcode::NOERROR);
    assert_eq!(ask(server, Some(&at(3700))).expect("a response").0, Rcode::BADCOOKIE);
}

#[test]
fn bind_with_our_secret_takes_our_cookies_and_we_take_its() {
    if is_installed("named") {
        let folder = prepared();
        exchange(start_bind(folder.path()).address);
    }
}

#[test]
fn knot_with_our_secret_takes_our_cookies_and_we_take_its() {
    if is_installed("knotd") {
        let folder = prepared();
        exchange(start_knot(folder.path()).address);
    }
}

/// This project's server with the same secret, and one response per second to clients without a
/// cookie.
fn start_ours(folder: &Path) -> Configured {
    fs::write(folder.join("secret"), format!("{SECRET}\n")).expect("written");
    let zones = format!(
        "[limits]\nexempt = []\nresponses-per-second = 1\nslip = 1\n\n\
         [cookies]\nsecret-file = \"secret\"\n\n[zone.\"{KEYS_ORIGIN}\"]\nfile = \"zone\"\n"
    );
    let server = Configured::start(&configure(folder, &zones));
    // A rate-limited response without a cookie is empty and does not show whether the zone is loaded.
    let made = cookies().check(Some(&CLIENT_COOKIE), CLIENT, now()).reply.expect("a cookie");
    let is_loaded = || ask(server.address, Some(&made)).is_some_and(|(rcode, _)| rcode == Rcode::NOERROR);
    server.wait_until("its zone", is_loaded);
    server
}

#[test]
fn clients_with_cookies_come_through_where_others_are_limited() {
    let folder = prepared();
    let running = start_ours(folder.path());
    let server = running.address;
    // Only clients without a cookie are rate limited.
    let made = cookies().check(Some(&CLIENT_COOKIE), CLIENT, now()).reply.expect("a cookie");
    let (mut limited, mut asked) = (0, 0);
    for _ in 0..20 {
        let (rcode, cookie) = ask(server, Some(&made)).expect("a response");
        assert_eq!((rcode, cookie.as_deref()), (Rcode::NOERROR, Some(&made[..])));
        if ask(server, Some(&CLIENT_COOKIE)).is_some_and(|(rcode, _)| rcode == Rcode::BADCOOKIE) {
            limited += 1;
        }
        asked += 1;
    }
    assert!(limited >= asked / 2, "{limited} of {asked}");
    // Errors are limited, too; after a pause, there is a response.
    let malformed = (0..10).find_map(|_| ask(server, Some(&[1; 9])));
    assert_eq!(malformed, Some((Rcode::FORMERR, None)));
}

/// The clients of the other programs get a cookie with BADCOOKIE, and repeat the query with it.
#[test]
fn dig_and_kdig_ask_again_with_our_cookie() {
    let folder = prepared();
    let running = start_ours(folder.path());
    for (program, options) in [("dig", &["+cookie", "+tries=1"][..]), ("kdig", &["+cookie", "+badcookie=3"])]
    {
        if !is_installed(program) {
            continue;
        }
        for _ in 0..5 {
            // This query uses the permitted response of this second, if it is still available.
            let _ = ask(running.address, Some(&CLIENT_COOKIE));
            let port = running.address.port().to_string();
            let mut command = Command::new(program);
            command.args(["@127.0.0.1", "-p", &port, KEYS_ORIGIN, "SOA", "+norecurse"]).args(options);
            let said = run(&mut command).expect_done(program).text();
            assert!(said.contains("NOERROR") && said.contains("COOKIE: "), "{said}");
            assert!(said.contains("ns.keys.example. h.keys.example."), "{said}");
            assert!(program == "kdig" || said.contains("(good)"), "{said}");
        }
    }
}
