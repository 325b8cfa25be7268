//! Versions of TLS (RFC 9325, RFC 8996, RFC 9103). The server supports 1.3 and 1.2 with forward
//! secrecy and authenticated encryption, and no older version. Zones are transferred only over 1.3.
//! The clients are those of OpenSSL and kdig.

use crate::common;
use crate::common::certificates;
use certificates::{Certificates, HOST};
use common::configured::{Configured, configure, plain_zone};
use common::{folder, run, snapshot, text};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::{Message, Rcode, Section, push_query};
use nonesuch_testing::require_peer;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Command, Stdio};

const ZONE: &str = "tls.example.";

fn start(dir: &Path) -> (Configured, SocketAddr, Certificates) {
    let files = Certificates::make(dir);
    fs::write(dir.join("zone"), plain_zone(ZONE, 1)).expect("written");
    let zones = format!(
        "listen-tls = [\"127.0.0.1:0\"]\ntls-certificate = \"{}\"\ntls-key = \"{}\"\n\
         [zone.\"{ZONE}\"]\nfile = \"zone\"\ntransfer = [\"127.0.0.1\"]\n",
        text(&files.server),
        text(&files.key)
    );
    let server = Configured::start(&configure(dir, &zones));
    let address = server.ready["tls_addresses"][0].as_str().and_then(|text| text.parse().ok());
    server.wait_for(ZONE, 1);
    (server, address.expect("an address"), files)
}

/// The response when OpenSSL's client sends one query with these options; `None` if the connection
/// fails.
fn by_openssl(server: SocketAddr, rtype: Rtype, options: &str) -> Option<Message> {
    let mut query = vec![0; 2];
    push_query(&ZONE.parse().expect("a name"), rtype, 7, 0, &mut query);
    let length = (query.len() - 2) as u16;
    query[..2].copy_from_slice(&length.to_be_bytes());
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-connect", &server.to_string()])
        .args(options.split_ascii_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("openssl starts");
    // A client whose handshake failed may have ended already.
    let mut input = client.stdin.take().expect("piped");
    let _ = input.write_all(&query);
    let mut output = client.stdout.take().expect("piped");
    let mut read = |octets: usize| {
        let mut buffer = vec![0; octets];
        output.read_exact(&mut buffer).ok().map(|()| buffer)
    };
    let answer = read(2).and_then(|length| read(usize::from(u16::from_be_bytes([length[0], length[1]]))));
    drop(input);
    let _ = client.kill();
    client.wait().expect("it ends");
    answer.map(|answer| Message::parse(&answer).expect("a message"))
}

#[test]
fn versions_are_served_that_are_fit_for_it() {
    require_peer!("openssl");
    let folder = folder();
    let (_server, address, _) = start(folder.path());
    for (options, is_served) in [
        ("-tls1_3", true),
        ("-tls1_3 -alpn dot", true),
        ("-tls1_2", true),
        ("-tls1_2 -alpn dot", true),
        // RFC 8996 §5.
        ("-tls1_1 -cipher DEFAULT@SECLEVEL=0", false),
        ("-tls1 -cipher DEFAULT@SECLEVEL=0", false),
        // RFC 9325 §4.1: without forward secrecy; without authenticated encryption.
        ("-tls1_2 -cipher AES128-GCM-SHA256", false),
        ("-tls1_2 -cipher ECDHE-ECDSA-AES128-SHA", false),
        // RFC 7301 §3.2: an unsupported protocol.
        ("-tls1_3 -alpn h2", false),
    ] {
        let answer = by_openssl(address, Rtype::SOA, options);
        let served = answer.is_some_and(|answer| answer.section(Section::Answer).count() == 1);
        assert_eq!(served, is_served, "{options}");
    }
}

#[test]
fn zones_are_transferred_over_the_newest_alone() {
    require_peer!("openssl");
    let folder = folder();
    let (server, address, _) = start(folder.path());
    for (options, rcode) in [
        ("-tls1_3 -alpn dot", Rcode::NOERROR),
        ("-tls1_2 -alpn dot", Rcode::REFUSED),
        ("-tls1_3", Rcode::REFUSED),
    ] {
        let answer = by_openssl(address, Rtype::AXFR, options).expect("an answer");
        assert_eq!(answer.rcode(), rcode, "{options}");
        assert_eq!(answer.section(Section::Answer).count() > 1, rcode == Rcode::NOERROR, "{options}");
    }
    let fields = ["zone=tls.example.", "kind=AXFR", "reason=weak_tls"];
    let refused = server.wait_for_event("transfer-refused", &fields);
    // At most one line per second.
    assert!(server.events("transfer-refused", &fields).len() <= 2, "{}", server.logged());
    snapshot::check("serve", "zone transfer over TLS 1.2", &refused);
}

#[test]
fn kdig_asks_and_transfers() {
    require_peer!("kdig");
    let folder = folder();
    let (_server, address, files) = start(folder.path());
    let port = address.port().to_string();
    let authority = format!("+tls-ca={}", text(&files.authority));
    let ask = |host: &str, rtype: &str| {
        let hostname = format!("+tls-hostname={host}");
        let fixed = ["@127.0.0.1", "-p", &port, "+tls", &authority, &hostname, "+retry=0", "+time=10"];
        run(Command::new("kdig").args(fixed).args([ZONE, rtype])).text()
    };
    let answer = ask(HOST, "SOA");
    assert!(answer.contains("status: NOERROR") && answer.contains("(TLS1.3)"), "{answer}");
    let transfer = ask(HOST, "AXFR");
    assert!(transfer.contains("t.tls.example.") && transfer.contains(";; Received"), "{transfer}");
    let other = ask("other.example", "SOA");
    assert!(!other.contains("status: NOERROR"), "{other}");
}
