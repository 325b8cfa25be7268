//! Other programs as clients: `nsupdate` gets the response code for the reason, and `dnsperf` loses
//! no queries over UDP, TCP and TLS.

use crate::common;
use crate::common::certificates;
use certificates::Certificates;
use common::configured::{Configured, configure, plain_zone};
use common::{folder, generate_keys, made, run, run_on, sign, text};
use nonesuch_testing::require_peer;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

const ZONE: &str = "clients.example.";
const SECRET: &str = "c2VjcmV0IG9mIHRoaXJ0eS10d28gb2N0ZXRzIGxvbmch";

/// A server of a signed zone, with a key and TLS.
fn start(dir: &Path) -> Configured {
    let files = Certificates::make(dir);
    let mut zone = plain_zone(ZONE, 1);
    for number in 0..200 {
        writeln!(zone, "h{number} 60 A 192.0.2.{number}").expect("written");
    }
    fs::write(dir.join("plain"), zone).expect("written");
    generate_keys(&made(dir, "keys"), ZONE, "ecdsap256sha256");
    sign(&dir.join("plain"), ZONE, &dir.join("keys"), "nsec", &dir.join("zone"));
    let zones = format!(
        "listen-tls = [\"127.0.0.1:0\"]\ntls-certificate = \"{}\"\ntls-key = \"{}\"\n\
         [key.\"k.\"]\nsecret = \"{SECRET}\"\n[zone.\"{ZONE}\"]\nfile = \"zone\"\n",
        text(&files.server),
        text(&files.key)
    );
    let server = Configured::start(&configure(dir, &zones));
    server.wait_for(ZONE, 1);
    server
}

#[test]
fn nsupdate_is_refused_with_the_reason() {
    require_peer!("nsupdate");
    let folder = folder();
    let server = start(folder.path());
    let script = folder.path().join("script");
    let key = format!("hmac-sha256:k:{SECRET}");
    let wrong = format!("hmac-sha256:k:{}", data_encoding::BASE64.encode(&[7; 32]));
    for (zone, options, expected) in [
        (ZONE, vec![], "update failed: REFUSED"),
        (ZONE, vec!["-v"], "update failed: REFUSED"),
        (ZONE, vec!["-y", &key], "update failed: REFUSED"),
        (ZONE, vec!["-y", &wrong], "BADSIG"),
        ("elsewhere.example.", vec![], "update failed: NOTAUTH"),
    ] {
        let port = server.address.port();
        let text =
            format!("server 127.0.0.1 {port}\nzone {zone}\nupdate add new.{zone} 60 A 192.0.2.9\nsend\n");
        fs::write(&script, text).expect("written");
        let ended = run_on(Command::new("nsupdate").args(["-t", "10"]).args(&options), &script);
        assert!(ended.status != 0 && ended.stderr.contains(expected), "{options:?}: {}", ended.text());
    }
    assert_eq!(server.serial(ZONE), Some(1));
}

#[test]
fn dnsperf_loses_nothing() {
    require_peer!("dnsperf");
    let folder = folder();
    let server = start(folder.path());
    let mut queries = String::new();
    for number in 0..400 {
        writeln!(queries, "h{number}.{ZONE} {}", ["A", "AAAA"][number % 2]).expect("written");
    }
    let file = folder.path().join("queries");
    fs::write(&file, queries).expect("written");
    let tls = server.ready["tls_addresses"][0].as_str().and_then(|text| text.rsplit(':').next());
    let (plain, tls) = (server.address.port().to_string(), tls.expect("a port"));
    for (mode, port) in [("udp", &*plain), ("tcp", &plain), ("dot", tls)] {
        let mut command = Command::new("dnsperf");
        command.args(["-s", "127.0.0.1", "-p", port, "-m", mode, "-d", text(&file), "-n", "20", "-D"]);
        let said = run(command.args(["-c", "4", "-T", "1", "-q", "50"])).expect_done("dnsperf").stdout;
        let number = |what: &str| {
            let line = said.lines().find_map(|line| line.trim().strip_prefix(what));
            line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
        };
        assert_eq!(number("Queries sent:"), Some(8000), "{said}");
        assert_eq!((number("Queries completed:"), number("Queries lost:")), (Some(8000), Some(0)), "{said}");
        assert!(said.contains("NOERROR 4000 (50.00%), NXDOMAIN 4000 (50.00%)"), "{said}");
    }
}
