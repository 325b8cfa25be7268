//! Certificates outside their validity (RFC 5280 §6.1.3). `nonesuch query --tls-ca` rejects them
//! with a reason, as kdig does; this applies to pinned certificates and to certificates of
//! authorities. OpenSSL generates the certificates.

use crate::common;
use common::configured::{Configured, configure, plain_zone};
use common::{Ended, folder, is_installed, nonesuch, run, snapshot, text};
use nonesuch_testing::require_peer;
use std::fs;
use std::path::Path;
use std::process::Command;

const ZONE: &str = "tls.example.";
const HOST: &str = "ns.example";

/// Beginning and end of a certificate's validity, in OpenSSL format.
type Validity = [&'static str; 2];
const PAST: Validity = ["20010101000000Z", "20020101000000Z"];
const VALID: Validity = ["20010101000000Z", "29990101000000Z"];
const TO_COME: Validity = ["29980101000000Z", "29990101000000Z"];

fn openssl(dir: &Path, arguments: &str) {
    let words = arguments.split_ascii_whitespace();
    run(Command::new("openssl").current_dir(dir).args(words)).expect_done(arguments);
}

/// Two keys with certificate requests: `authority.csr` and `server.csr`.
fn make_requests(dir: &Path) {
    let configuration = "[ca]\ndefault_ca = own\n[own]\ndatabase = index\nnew_certs_dir = .\nrand_serial = yes\ndefault_md = sha256\n\
                         policy = names\ncopy_extensions = copy\nunique_subject = no\n[names]\ncommonName = supplied\n";
    fs::write(dir.join("ca.cnf"), configuration).expect("written");
    fs::write(dir.join("index"), "").expect("written");
    for (name, subject, extension) in [
        ("authority", "/CN=authority", "basicConstraints=critical,CA:TRUE"),
        ("server", "/CN=ns.example", "subjectAltName=DNS:ns.example"),
    ] {
        openssl(
            dir,
            &format!(
                "req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {name}.key -subj {subject} -addext {extension} -out {name}.csr"
            ),
        );
    }
}

/// A certificate for the request of `name`, self-signed or signed by the authority with this
/// certificate.
fn make(dir: &Path, name: &str, authority: Option<&str>, [from, to]: Validity, file: &str) {
    let signer = match authority {
        Some(authority) => format!("-cert {authority} -keyfile authority.key"),
        None => format!("-selfsign -keyfile {name}.key"),
    };
    openssl(
        dir,
        &format!(
            "ca -batch -notext -config ca.cnf {signer} -in {name}.csr -startdate {from} -enddate {to} -out {file}"
        ),
    );
}

fn start(dir: &Path, certificate: &str) -> (Configured, String) {
    fs::write(dir.join("zone"), plain_zone(ZONE, 1)).expect("written");
    let zones = format!(
        "listen-tls = [\"127.0.0.1:0\"]\ntls-certificate = \"{certificate}\"\ntls-key = \"server.key\"\n[zone.\"{ZONE}\"]\nfile = \"zone\"\n"
    );
    let server = Configured::start(&configure(dir, &zones));
    let address = server.ready["tls_addresses"][0].as_str().expect("an address").to_owned();
    (server, address)
}

fn query(address: &str, trusted: &Path) -> Ended {
    let at = format!("@{address}");
    run(&mut nonesuch([
        "query",
        ZONE,
        "SOA",
        &at,
        "--json",
        "--tls",
        "--tls-ca",
        text(trusted),
        "--tls-hostname",
        HOST,
    ]))
}

/// Whether kdig accepts the server's certificate.
fn is_believed_by_kdig(address: &str, trusted: &Path) -> bool {
    let (_, port) = address.rsplit_once(':').expect("a port");
    let (authority, hostname) = (format!("+tls-ca={}", text(trusted)), format!("+tls-hostname={HOST}"));
    let fixed =
        ["@127.0.0.1", "-p", port, "+tls", &authority, &hostname, "+retry=0", "+time=10", ZONE, "SOA"];
    run(Command::new("kdig").args(fixed)).text().contains("status: NOERROR")
}

/// The text with `N days` in place of the number of days since or until a time.
fn without_days(text: &str) -> String {
    let Some((before, after)) = text.split_once(" days") else { return text.to_owned() };
    format!("{}N days{after}", before.trim_end_matches(|letter: char| letter.is_ascii_digit()))
}

#[test]
fn nobody_is_believed_with_a_certificate_outside_its_validity() {
    require_peer!("openssl");
    let home = folder();
    let dir = home.path();
    make_requests(dir);
    make(dir, "authority", None, VALID, "authority.pem");
    make(dir, "authority", None, PAST, "old-authority.pem");
    let has_kdig = is_installed("kdig");
    for (number, (signer, validity, trusted, rejected)) in [
        (None, VALID, None, None),
        (None, PAST, None, Some("expired certificate, pinned")),
        (None, TO_COME, None, Some("certificate that is not valid yet, pinned")),
        (Some("authority.pem"), VALID, Some("authority.pem"), None),
        (
            Some("authority.pem"),
            PAST,
            Some("authority.pem"),
            Some("expired certificate, signed by an authority"),
        ),
        (
            Some("authority.pem"),
            TO_COME,
            Some("authority.pem"),
            Some("certificate that is not valid yet, signed by an authority"),
        ),
        (
            Some("authority.pem"),
            VALID,
            Some("old-authority.pem"),
            Some("certificate of an expired authority"),
        ),
    ]
    .into_iter()
    .enumerate()
    {
        let file = format!("server{number}.pem");
        make(dir, "server", signer, validity, &file);
        let (_server, address) = start(dir, &file);
        let trusted = dir.join(trusted.unwrap_or(&file));
        let Ended { status, stdout, stderr } = query(&address, &trusted);
        match rejected {
            Some(case) => {
                assert_eq!((status, &*stdout), (2, ""), "{number}: {stderr}");
                snapshot::check("query", case, &without_days(&stderr));
            }
            None => {
                assert_eq!(status, 0, "{number}: {stderr}");
                let answer: serde_json::Value = serde_json::from_str(&stdout).expect("JSON");
                assert_eq!(answer["tls"]["authenticated"], true, "{number}: {stdout}");
            }
        }
        if has_kdig {
            assert_eq!(is_believed_by_kdig(&address, &trusted), rejected.is_none(), "{number}");
        }
    }
}
