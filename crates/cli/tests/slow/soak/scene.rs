//! The servers of the soak test: a primary, the server under test, and its secondaries.

use super::common::configured::{Configured, write_beside};
use super::common::transfer::{transferred, zone_text};
use super::common::{events, free_address, is_installed, made, nonesuch, run, text};
use super::load::{Load, Stream};
use super::peers::{KEY, SECRET, Secondary, records_of};
use super::zones::{Question, Way, Zone, lines};
use nonesuch_lab::peers::Peer;
use nonesuch_net::tls::ClientTls;
use nonesuch_zone::load as load_zone;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The zone with incremental transfers. Secondaries of other implementations transfer it, too.
const BY_STEPS: &str = "example.";
/// The zone with complete transfers: its primary has no journal.
const WHOLE: &str = "whole.test.";
/// Zones that a secondary of this project transfers from the server.
const FOLLOWED: [&str; 3] = [BY_STEPS, "signed.test.", "plain.test."];
/// Name in the server's certificate.
const HOST: &str = "ns.test";
/// Maximum time from a change until a server has it. NOTIFY is repeated within this time.
const ARRIVAL: Duration = Duration::from_secs(90);
/// The same for other implementations, which have other intervals.
const ARRIVAL_THERE: Duration = Duration::from_secs(180);
/// One of this number of versions is transferred completely on request.
const WHOLE_EACH: u32 = 5;

/// All servers and zones.
pub(crate) struct Soak {
    home: PathBuf,
    certificate: PathBuf,
    incoming: Vec<Zone>,
    own: Vec<Zone>,
    pub(crate) primary: Configured,
    pub(crate) server: Configured,
    pub(crate) secondary: Configured,
    peers: Vec<Secondary>,
    metrics: SocketAddr,
}

/// A key, and the first lines of the configurations of all three servers.
fn head(dir: &Path, listen: &str, more: &str) -> String {
    fs::create_dir_all(dir.join("state")).expect("a directory");
    format!(
        "version = 1\nlisten = [\"{listen}\"]\nstate-dir = \"state\"\ncontrol-socket = \"control\"\n{more}\
         [key.\"{KEY}.\"]\nalgorithm = \"hmac-sha256\"\nsecret = \"{SECRET}\"\n"
    )
}

#[track_caller]
fn start(dir: &Path, configuration: &str) -> Configured {
    let path = dir.join("c.toml");
    write_beside(&path, configuration);
    // The configuration contains a secret.
    fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("permitted");
    Configured::start(&path)
}

/// Writes a certificate and its key.
fn certificate(dir: &Path) {
    let made = rcgen::generate_simple_self_signed(vec![HOST.to_owned()]).expect("a certificate");
    fs::write(dir.join("certificate.pem"), made.cert.pem()).expect("written");
    fs::write(dir.join("key.pem"), made.signing_key.serialize_pem()).expect("written");
}

/// A zone that is transferred from this primary, and that every local client may transfer.
fn transferred_zone(zone: &str, primary: SocketAddr, told: &str) -> String {
    format!(
        "[zone.\"{zone}\"]\nprimaries = [\"{primary} key:{KEY}.\"]\ntransfer = [\"127.0.0.1\"]\njournal-size = \"128KiB\"\n\
         also-notify = [{told}]\n"
    )
}

fn start_primary(dir: &Path, zones: &[Zone], told: SocketAddr) -> Configured {
    let mut configuration = head(dir, "127.0.0.1:0", "workers = 1\n");
    for zone in zones {
        let journal = if zone.origin == WHOLE { "0B" } else { "128KiB" };
        configuration.push_str(&zone.table(&format!(
            "transfer = [\"key:{KEY}.\"]\nalso-notify = [\"{told} key:{KEY}.\"]\njournal-size = \"{journal}\"\n"
        )));
    }
    start(dir, &configuration)
}

fn start_server(dir: &Path, places: &Places, zones: &[Zone], primary: SocketAddr) -> Configured {
    certificate(dir);
    // The cache is small, so that random names fill it during the warm-up.
    let more = format!(
        "listen-tls = [\"127.0.0.1:0\"]\ntls-certificate = \"certificate.pem\"\ntls-key = \"key.pem\"\nworkers = 2\n\
         metrics-listen = \"{}\"\nsignature-cache = \"2MiB\"\n",
        places.metrics
    );
    let mut configuration = head(dir, &places.server.to_string(), &more);
    // The timeouts are long, so that a machine that stalls ends no connection.
    configuration.push_str(
        "[limits]\ntcp-idle = \"60s\"\ntcp-first-message = \"60s\"\ntcp-write = \"60s\"\ntls-handshake = \"60s\"\n",
    );
    let mut followers = format!("\"{} key:{KEY}.\"", places.secondary);
    places.peers.iter().for_each(|(_, at)| followers.push_str(&format!(", \"{at}\"")));
    configuration.push_str(&transferred_zone(BY_STEPS, primary, &followers));
    configuration.push_str(&transferred_zone(WHOLE, primary, ""));
    let given = format!(
        "transfer = [\"127.0.0.1\"]\nalso-notify = [\"{} key:{KEY}.\"]\njournal-size = \"128KiB\"\n",
        places.secondary
    );
    for zone in zones {
        configuration.push_str(&zone.table(if FOLLOWED.contains(&zone.origin) { &given } else { "" }));
    }
    start(dir, &configuration)
}

fn start_secondary(dir: &Path, at: SocketAddr, primary: SocketAddr) -> Configured {
    let mut configuration = head(dir, &at.to_string(), "workers = 1\n");
    FOLLOWED.iter().for_each(|zone| configuration.push_str(&transferred_zone(zone, primary, "")));
    start(dir, &configuration)
}

/// Ports on which the servers receive NOTIFY, and the port of the metrics.
struct Places {
    server: SocketAddr,
    secondary: SocketAddr,
    metrics: SocketAddr,
    peers: Vec<(Peer, SocketAddr)>,
}

impl Places {
    fn find() -> Self {
        let peers = [Peer::Nsd, Peer::Knot].into_iter();
        let peers = peers.filter(|peer| is_installed(peer.info().programs[0]));
        Self {
            server: free_address(),
            secondary: free_address(),
            metrics: free_address(),
            peers: peers.map(|peer| (peer, free_address())).collect(),
        }
    }
}

impl Soak {
    /// Starts a primary, the server, a secondary of this project, and the installed other
    /// secondaries.
    pub(crate) fn start(home: &Path) -> Self {
        let [theirs, dir, behind] = ["primary", "server", "secondary"].map(|name| made(home, name));
        let incoming = vec![
            Zone::new(&theirs, BY_STEPS, Way::Signed("nsec3")),
            Zone::new(&theirs, WHOLE, Way::Signed("nsec")),
        ];
        let own = vec![
            Zone::new(&dir, "signed.test.", Way::Signed("nsec")),
            Zone::new(&dir, "plain.test.", Way::Unsigned),
            Zone::new(&dir, "lies.test.", Way::Online("white-lies")),
            Zone::new(&dir, "compact.test.", Way::Online("compact")),
            Zone::new(&dir, "nsec5.test.", Way::Nsec5),
        ];
        incoming.iter().chain(&own).for_each(|zone| zone.write(1));
        let places = Places::find();
        let primary = start_primary(&theirs, &incoming, places.server);
        let server = start_server(&dir, &places, &own, primary.address);
        let secondary = start_secondary(&behind, places.secondary, server.address);
        let peers = places.peers.iter().filter_map(|(peer, at)| {
            let dir = made(home, &format!("{peer:?}"));
            Secondary::start_at(*peer, Some(at.port()), server.address, &dir, "hmac-sha256")
        });
        let peers = peers.collect();
        let (home, certificate, metrics) = (home.to_path_buf(), dir.join("certificate.pem"), places.metrics);
        Self { home, certificate, incoming, own, primary, server, secondary, peers, metrics }
    }

    /// All zones of the server.
    pub(crate) fn zones(&self) -> impl Iterator<Item = &Zone> {
        self.incoming.iter().chain(&self.own)
    }

    /// All kinds of load.
    pub(crate) fn loads<'s>(&self, questions: &'s [Question], rate: u32) -> [(&'static str, Load<'s>); 4] {
        let (server, tls) = (self.server.address, self.tls());
        let file = |name: &str, text: String| {
            let path = self.home.join(name);
            fs::write(&path, text).expect("written");
            path
        };
        let names: Vec<Question> = self.zones().flat_map(Zone::names).collect();
        let (queries, names) = (file("queries", lines(questions)), file("names", lines(&names)));
        let trusted = ClientTls::authenticated(&self.certificate, Some(HOST)).expect("a certificate");
        // Of one hundred queries.
        let share = |of: u32| (rate * of / 100).max(1);
        let stream = |server, tls, of| Load::Stream(Stream { server, tls, questions, rate: share(of) });
        [
            ("datagrams", Load::Datagrams { server, queries, rate: share(75), more: &[] }),
            (
                "random names",
                Load::Datagrams { server, queries: names, rate: share(5), more: &["--random-prefix"] },
            ),
            ("TCP", stream(server, None, 15)),
            ("TLS", stream(tls, Some(trusted), 5)),
        ]
    }

    fn tls(&self) -> SocketAddr {
        self.server.ready["tls_addresses"][0].as_str().and_then(|text| text.parse().ok()).expect("an address")
    }

    /// Changes all zones, and waits until each server has the new version. Returns the maximum
    /// time.
    pub(crate) fn change(&self, serial: u32) -> Duration {
        self.zones().for_each(|zone| zone.write(serial));
        let begun = Instant::now();
        self.primary.ctl(&["reload"]).expect_done("reload of the primary");
        // Incoming transfers are in progress at the same time.
        let told = self.server.ctl(&["reload", "--json"]).expect_done("reload").stdout;
        let report: Value = serde_json::from_str(&told).expect("JSON");
        let count = |key: &str| report[key].as_array().map(Vec::len);
        assert_eq!((count("updated"), count("refused")), (Some(self.own.len()), Some(0)), "{told}");
        if serial.is_multiple_of(WHOLE_EACH) {
            self.server.ctl(&["zone", "retransfer", BY_STEPS]).expect_done("retransfer");
        }
        let wait = |what: &str, zone: &str, limit: Duration, found: &dyn Fn() -> Option<u32>| {
            while found() != Some(serial) {
                assert!(
                    begun.elapsed() < limit,
                    "{what}: {zone} is {:?}, not {serial}:\n{}",
                    found(),
                    tail(&self.server.logged())
                );
                sleep(Duration::from_millis(5));
            }
        };
        for zone in self.zones() {
            wait("server", zone.origin, ARRIVAL, &|| self.server.serial(zone.origin));
        }
        for zone in FOLLOWED {
            wait("secondary", zone, ARRIVAL, &|| self.secondary.serial(zone));
        }
        for peer in &self.peers {
            wait(&format!("{:?}", peer.server.peer), BY_STEPS, ARRIVAL_THERE, &|| peer.serial());
        }
        begun.elapsed()
    }

    /// Sends some queries with other programs, reads the metrics and checks the results.
    pub(crate) fn ask_by_programs(&self, serial: u32) {
        let tls = self.tls();
        let (name, authority) = (format!("t.{BY_STEPS}"), text(&self.certificate));
        let at = format!("@{tls}");
        let ours =
            ["query", &at, &name, "TXT", "--short", "--tls", "--tls-ca", authority, "--tls-hostname", HOST];
        let said = run(&mut nonesuch(ours)).expect_done("query over TLS").stdout;
        assert!(said.lines().any(|line| line == format!("\"{serial}\"")), "{said}");
        for (program, server, more) in [
            ("dig", self.server.address, &["+tries=1", "+tcp"][..]),
            ("kdig", self.server.address, &["+retry=0"][..]),
            ("kdig", tls, &["+retry=0", "+tls"][..]),
        ] {
            if !is_installed(program) {
                continue;
            }
            let port = server.port().to_string();
            let fixed = ["@127.0.0.1", "-p", &port, "none.nsec5.test.", "A", "+dnssec", "+time=50"];
            let said = run(Command::new(program).args(fixed).args(more)).expect_done(program).stdout;
            assert!(said.contains("NXDOMAIN"), "{program} {more:?}: {said}");
        }
        assert!(self.scrape().contains("nonesuch_"), "metrics");
    }

    fn scrape(&self) -> String {
        let mut stream = TcpStream::connect(self.metrics).expect("connected");
        stream.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit");
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: m\r\nConnection: close\r\n\r\n").expect("sent");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("metrics");
        assert!(text.starts_with("HTTP/1.1 200"), "{text}");
        text
    }

    /// At the end, the servers have the versions that were written last.
    pub(crate) fn assert_same(&self, serial: u32) {
        let zone = |origin: &str| {
            let zone = self.zones().find(|zone| zone.origin == origin);
            load_zone(&zone.expect("a zone").file(), None).expect("a zone").contents
        };
        for origin in FOLLOWED.into_iter().chain([WHOLE]) {
            let expected = zone_text(&zone(origin));
            assert!(zone_text(&transferred(self.server.address, origin)) == expected, "server: {origin}");
            if origin != WHOLE {
                assert!(
                    zone_text(&transferred(self.secondary.address, origin)) == expected,
                    "secondary: {origin}"
                );
            }
        }
        for peer in &self.peers {
            assert!(peer.records(serial) == records_of(&zone(BY_STEPS)), "{:?}", peer.server.peer);
        }
    }

    /// Checks that the logs contain no forbidden lines; counts other warnings.
    pub(crate) fn look_at_logs(&self) -> BTreeMap<String, usize> {
        let mut warnings = BTreeMap::new();
        for (name, server) in
            [("primary", &self.primary), ("server", &self.server), ("secondary", &self.secondary)]
        {
            for line in server.logged().lines() {
                let is_panic = !events(line, "panic", &[]).is_empty();
                assert!(!is_panic && !line.contains(" ERROR "), "{name}: {line}");
                if let Some((_, warning)) = line.split_once("  WARN ") {
                    *warnings.entry(format!("{name}: {warning}")).or_default() += 1;
                }
            }
        }
        warnings
    }

    /// Messages that the server reports as not answered, by reason.
    pub(crate) fn dropped(&self) -> Vec<String> {
        let metrics = self.scrape();
        let lines = metrics.lines().filter(|line| line.starts_with("nonesuch_dropped_total"));
        lines.filter(|line| !line.ends_with(" 0")).map(str::to_owned).collect()
    }

    /// Incoming transfers by kind.
    pub(crate) fn transfers(&self) -> (usize, usize) {
        let count = |kind: &str| self.server.events("zone-transferred", &[kind]).len();
        (count("kind=IXFR"), count("kind=AXFR"))
    }
}

fn tail(log: &str) -> String {
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(20)..].join("\n")
}
