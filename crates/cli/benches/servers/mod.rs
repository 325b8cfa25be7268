//! The measured servers. Each row has the requirements of a server and the function that starts it.
//! Each server has one worker on CPU 0.
//!
//! A row is skipped with a message if its program is missing or its server does not answer.

use crate::peers::{ORIGIN, OURS, find, run};
use nonesuch_lab::process;
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit for a server to answer.
const READY: Duration = Duration::from_secs(60);

/// A way to serve a zone.
pub(crate) struct Row {
    /// Name in tables.
    pub(crate) name: &'static str,
    /// Required programs.
    programs: &'static [&'static str],
    start: fn(&Site<'_>) -> io::Result<Server>,
}

/// The inputs of a server.
pub(crate) struct Site<'a> {
    /// The directory of this server.
    pub(crate) folder: PathBuf,
    /// The zone: signed for [`PRESIGNED`], otherwise as [`ONLINE`] requires.
    pub(crate) zone: &'a Path,
    /// A directory with a KSK and a ZSK for servers that sign, and the base names of the keys.
    pub(crate) keys: &'a Path,
    pub(crate) key_names: &'a [String; 2],
    /// CPUs for the server.
    pub(crate) cpus: Cpus,
}

/// The CPUs that a server may use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cpus {
    /// Only CPU 0.
    First,
    /// All CPUs.
    All,
}

/// Servers of a signed zone; the first is this project's server.
pub(crate) const PRESIGNED: &[Row] = &[
    Row { name: "nonesuch", programs: &[], start: |site| start_ours(site, &[]) },
    Row { name: "nsd", programs: &["nsd"], start: start_nsd },
    Row { name: "knot", programs: &["knotd", "taskset"], start: start_knot },
    Row { name: "bind", programs: &["named", "taskset"], start: start_bind },
];

/// This project's server with one and with two workers, on any CPU.
pub(crate) const WORKERS: &[Row] = &[
    Row { name: "one worker", programs: &[], start: |site| start_workers(site, "1") },
    Row { name: "two workers", programs: &[], start: |site| start_workers(site, "2") },
];

/// Servers with online denial.
pub(crate) const ONLINE: &[Row] = &[
    Row { name: "nonesuch white-lies", programs: &[], start: |site| start_online(site, "white-lies") },
    Row { name: "nonesuch compact", programs: &[], start: |site| start_online(site, "compact") },
    Row { name: "nonesuch minimal-nsec", programs: &[], start: |site| start_online(site, "minimal-nsec") },
    Row {
        name: "nonesuch nsec5-p256",
        programs: &[],
        start: |site| start_nsec5(site, "ecdsap256sha256", "p256"),
    },
    Row {
        name: "nonesuch nsec5-ed25519",
        programs: &[],
        start: |site| start_nsec5(site, "ed25519", "ed25519"),
    },
    Row { name: "powerdns narrow", programs: &["pdns_server", "pdnsutil", "taskset"], start: start_powerdns },
    Row { name: "coredns black lies", programs: &["coredns", "taskset"], start: start_coredns },
    Row { name: "knot onlinesign", programs: &["knotd", "taskset"], start: start_knot_online },
];

/// Starts the servers of `rows` that can be started, each in its own directory below `dir`. Reports
/// skipped servers.
pub(crate) fn start_all(
    rows: &[Row],
    dir: &Path,
    zone: &Path,
    keys: (&Path, &[String; 2]),
    cpus: Cpus,
) -> Vec<Server> {
    let mut servers = Vec::new();
    for row in rows {
        if let Some(missing) = row.programs.iter().find(|program| find_program(program).is_none()) {
            println!("left out: {}: {missing} is not installed", row.name);
            continue;
        }
        let folder = dir.join(format!(
            "{}-{}",
            row.name.replace(' ', "-"),
            zone.file_name().unwrap_or_default().display()
        ));
        fs::create_dir_all(&folder).expect("a directory for the server");
        let site = Site { folder, zone, keys: keys.0, key_names: keys.1, cpus };
        match (row.start)(&site) {
            Ok(mut server) => {
                server.name = row.name;
                servers.push(server);
            }
            Err(error) => println!("left out: {}: {error}", row.name),
        }
    }
    servers
}

/// An echo server with responses of `octets` octets. It shows the cost of receiving and sending.
pub(crate) fn start_echo(octets: f64) -> io::Result<Server> {
    let octets = format!("{}", octets.round().clamp(12.0, 4096.0));
    let mut command = Command::new(OURS);
    command.args(["lab", "echo", "--workers", "1", "--cpus", "0", "--octets", &octets]);
    let mut server = start_and_read(&mut command)?;
    server.name = "echo";
    Ok(server)
}

/// A running server. It ends on drop.
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) address: SocketAddr,
    child: Child,
    /// Kept open, so that the last line of the server can be written.
    _output: Option<BufReader<ChildStdout>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        for pid in self.processes() {
            let _ = Command::new("kill").arg(pid.to_string()).stderr(Stdio::null()).status();
        }
        let _ = self.child.wait();
    }
}

impl Server {
    /// User and system time of its processes, in µs.
    pub(crate) fn cpu(&self) -> (f64, f64) {
        let times = self.processes().into_iter().filter_map(process::cpu_time);
        times.fold((0.0, 0.0), |sum, time| (sum.0 + time.user_us as f64, sum.1 + time.system_us as f64))
    }

    /// Memory of its processes in MiB, with a proportional part of shared pages (PSS).
    pub(crate) fn memory_mib(&self) -> f64 {
        let memory = self.processes().into_iter().filter_map(process::memory);
        let kib: u64 = memory.map(|memory| memory.proportional_kib.unwrap_or(memory.resident_kib)).sum();
        kib as f64 / 1024.0
    }

    /// The process and its descendants.
    fn processes(&self) -> Vec<u32> {
        let mut all = vec![self.child.id()];
        let mut next = 0;
        while let Some(&pid) = all.get(next) {
            let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
            for task in tasks {
                let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
                all.extend(children.split_whitespace().filter_map(|child| child.parse::<u32>().ok()));
            }
            next += 1;
        }
        all
    }
}

fn start_ours(site: &Site<'_>, more: &[&str]) -> io::Result<Server> {
    let mut command = serve_command(site);
    command.args(["--workers", "1"]);
    if site.cpus == Cpus::First {
        command.args(["--cpus", "0"]);
    }
    start_and_read(command.args(more))
}

fn start_workers(site: &Site<'_>, workers: &str) -> io::Result<Server> {
    start_and_read(serve_command(site).args(["--workers", workers]))
}

fn serve_command(site: &Site<'_>) -> Command {
    let mut command = Command::new(OURS);
    command.args(["serve", "--listen", "127.0.0.1:0", "--verify", "structural", "-o", ORIGIN]).arg(site.zone);
    command
}

fn start_online(site: &Site<'_>, denial: &str) -> io::Result<Server> {
    start_ours(site, &["--denial", denial, "--keys", &site.keys.display().to_string()])
}

/// Signs the zone first. The server gets the VRF key, and directories without a signing key.
fn start_nsec5(site: &Site<'_>, algorithm: &str, vrf: &str) -> io::Result<Server> {
    let (zone, vrf_keys) = sign_nsec5(&site.folder, site.zone, algorithm, vrf);
    let site = Site { folder: site.folder.join("served"), zone: &zone, ..*site };
    start_ours(&site, &["--nsec5-keys", &vrf_keys.display().to_string()])
}

/// Signs a zone with NSEC5 below `folder`. Returns the zone file, and the directory of the VRF key
/// and the proofs.
pub(crate) fn sign_nsec5(folder: &Path, plain: &Path, algorithm: &str, vrf: &str) -> (PathBuf, PathBuf) {
    let [keys, vrf_keys, served] = ["keys", "vrf", "served"].map(|name| folder.join(name));
    for folder in [&keys, &vrf_keys, &served] {
        fs::create_dir_all(folder).expect("a directory");
    }
    for flag in [&["--ksk"][..], &[]] {
        let mut command = Command::new(OURS);
        run(command
            .args(["key", "generate", ORIGIN, "--nsec5", "-a", algorithm, "--dir"])
            .arg(&keys)
            .args(flag));
    }
    let zone = served.join("zone");
    let mut command = Command::new(OURS);
    command.args(["zone", "sign", "-o", ORIGIN, "--denial", "nsec5", "--vrf", vrf, "--keys"]).arg(&keys);
    run(command.arg("--nsec5-keys").arg(&vrf_keys).arg("-f").arg(&zone).arg(plain));
    (zone, vrf_keys)
}

/// Starts a server of this project, which prints its address when it is ready. Returns an error if
/// it ends before.
pub(crate) fn start_and_read(command: &mut Command) -> io::Result<Server> {
    let log = tempfile::NamedTempFile::new()?;
    let errors = log.reopen()?;
    let mut child = command.stdout(Stdio::piped()).stderr(errors).spawn()?;
    let mut line = String::new();
    let mut output = child.stdout.take().map(BufReader::new);
    // Earlier lines report single zones.
    while let Some(output) = &mut output
        && !line.starts_with("ready")
    {
        line.clear();
        if output.read_line(&mut line)? == 0 {
            break;
        }
    }
    match line.split_whitespace().find_map(|word| word.parse().ok()) {
        Some(address) => Ok(Server { name: "nonesuch", address, child, _output: output }),
        None => {
            let _ = child.kill();
            let _ = child.wait();
            let said = fs::read_to_string(log.path()).unwrap_or_default();
            Err(io::Error::other(said.lines().next().unwrap_or("it ended without a message").trim()))
        }
    }
}

/// The path of a program, also in the directory where Go installs programs.
fn find_program(program: &str) -> Option<PathBuf> {
    let in_go = || Some(PathBuf::from(std::env::var_os("HOME")?).join("go/bin").join(program));
    find(program).or_else(|| in_go().filter(|path| path.is_file()))
}

/// An address with a currently unused port.
fn free_address() -> SocketAddr {
    UdpSocket::bind("127.0.0.1:0").and_then(|socket| socket.local_addr()).expect("a free port")
}

/// Writes a configuration to the directory of the server.
fn write(site: &Site<'_>, name: &str, text: &str) -> PathBuf {
    let path = site.folder.join(name);
    fs::write(&path, text).expect("a configuration");
    path
}

/// A command restricted to the CPUs of the site (CPU 0, or all), for programs that choose the CPUs
/// of their threads themselves.
fn on_cpus(site: &Site<'_>, program: &str) -> Command {
    match site.cpus {
        Cpus::First => on_cpu_0(program),
        Cpus::All => Command::new(find_program(program).unwrap_or_else(|| program.into())),
    }
}

/// A command restricted to CPU 0.
pub(crate) fn on_cpu_0(program: &str) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", "0"]).arg(find_program(program).unwrap_or_else(|| program.into()));
    command
}

fn start_nsd(site: &Site<'_>) -> io::Result<Server> {
    let address = free_address();
    let affinity = match site.cpus {
        Cpus::First => "cpu-affinity: 0\n  server-1-cpu-affinity: 0\n  ",
        Cpus::All => "",
    };
    let text = format!(
        "server:\n  ip-address: 127.0.0.1@{port}\n  server-count: 1\n  username: \"\"\n  zonesdir: \"{dir}\"\n  database: \"\"\n  \
         pidfile: \"{dir}/nsd.pid\"\n  xfrdfile: \"{dir}/xfrd.state\"\n  zonelistfile: \"{dir}/zone.list\"\n  minimal-responses: yes\n  \
         {affinity}rrl-ratelimit: 0\nremote-control:\n  control-enable: no\nzone:\n  name: {ORIGIN}\n  \
         zonefile: \"{zone}\"\n",
        port = address.port(),
        dir = site.folder.display(),
        zone = site.zone.display()
    );
    let config = write(site, "nsd.conf", &text);
    let mut command = Command::new(find_program("nsd").unwrap_or_else(|| "nsd".into()));
    start(command.arg("-d").arg("-c").arg(config), address)
}

fn start_knot(site: &Site<'_>) -> io::Result<Server> {
    let zone = format!("file: {}\n    journal-content: none\n", site.zone.display());
    start_knot_with(site, "", &zone)
}

/// Knot generates its own keys, and denials as "black lies" with two signatures.
fn start_knot_online(site: &Site<'_>) -> io::Result<Server> {
    let policy = "policy:\n  - id: p\n    algorithm: ecdsap256sha256\n    single-type-signing: off\nmod-onlinesign:\n  \
                  - id: os\n    policy: p\n";
    let zone =
        format!("file: {}\n    journal-content: none\n    module: mod-onlinesign/os\n", site.zone.display());
    start_knot_with(site, policy, &zone)
}

fn start_knot_with(site: &Site<'_>, sections: &str, zone: &str) -> io::Result<Server> {
    let address = free_address();
    let text = format!(
        "server:\n  rundir: {dir}\n  listen: 127.0.0.1@{port}\n  udp-workers: 1\n  tcp-workers: 1\n  background-workers: 1\ndatabase:\n  \
         storage: {dir}\n{sections}zone:\n  - domain: {ORIGIN}\n    {zone}",
        port = address.port(),
        dir = site.folder.display(),
    );
    let config = write(site, "knot.conf", &text);
    start(on_cpus(site, "knotd").arg("-c").arg(config), address)
}

fn start_bind(site: &Site<'_>) -> io::Result<Server> {
    let address = free_address();
    let text = format!(
        "options {{\n  directory \"{dir}\";\n  listen-on port {port} {{ 127.0.0.1; }};\n  listen-on-v6 {{ none; }};\n  pid-file none;\n  \
         session-keyfile none;\n  recursion no;\n  dnssec-validation no;\n  minimal-responses yes;\n  notify no;\n  querylog no;\n}};\n\
         controls {{ }};\nzone \"{ORIGIN}\" {{ type primary; file \"{zone}\"; }};\n",
        port = address.port(),
        dir = site.folder.display(),
        zone = site.zone.display()
    );
    let config = write(site, "named.conf", &text);
    start(on_cpus(site, "named").args(["-f", "-n", "1", "-c"]).arg(config), address)
}

/// NSEC3 white lies ("narrow") with P-256, in one thread.
fn start_powerdns(site: &Site<'_>) -> io::Result<Server> {
    let address = free_address();
    let (dir, zone) = (site.folder.display(), site.zone.display());
    write(site, "named.conf", &format!("zone \"{ORIGIN}\" {{ type native; file \"{zone}\"; }};\n"));
    write(
        site,
        "pdns.conf",
        &format!(
            "launch=bind\nbind-config={dir}/named.conf\nbind-dnssec-db={dir}/dnssec.sqlite\nlocal-address=127.0.0.1\n\
             local-port={}\nsocket-dir={dir}\nsetuid=\nsetgid=\nreceiver-threads=1\ndistributor-threads=1\n",
            address.port()
        ),
    );
    let config = format!("--config-dir={dir}");
    let database = format!("{dir}/dnssec.sqlite");
    let zone = ORIGIN.trim_end_matches('.');
    for step in [
        &["create-bind-db", &database][..],
        &["add-zone-key", zone, "ksk", "active", "ecdsa256"],
        &["add-zone-key", zone, "zsk", "active", "ecdsa256"],
        &["set-nsec3", zone, "1 0 0 -", "narrow"],
    ] {
        run(Command::new("pdnsutil").arg(&config).args(step));
    }
    let more = ["--daemon=no", "--guardian=no", "--disable-syslog", "--write-pid=no"];
    start(on_cpus(site, "pdns_server").arg(&config).args(more), address)
}

fn start_coredns(site: &Site<'_>) -> io::Result<Server> {
    let address = free_address();
    let [ksk, zsk] = site.key_names.each_ref().map(|name| site.keys.join(name));
    let text = format!(
        "{ORIGIN}:{port} {{\n    bind 127.0.0.1\n    file {zone}\n    dnssec {{\n        key file {ksk} {zsk}\n        \
         cache_capacity 10000\n    }}\n}}\n",
        port = address.port(),
        zone = site.zone.display(),
        ksk = ksk.display(),
        zsk = zsk.display()
    );
    let config = write(site, "Corefile", &text);
    start(on_cpus(site, "coredns").env("GOMAXPROCS", "1").arg("-conf").arg(config), address)
}

/// Starts a peer without output and waits until it answers.
fn start(command: &mut Command, address: SocketAddr) -> io::Result<Server> {
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let mut server = Server { name: "", address, child, _output: None };
    wait_until_ready(&mut server)?;
    Ok(server)
}

/// Queries the SOA record until a response arrives.
fn wait_until_ready(server: &mut Server) -> io::Result<()> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(server.address)?;
    socket.set_read_timeout(Some(Duration::from_millis(20)))?;
    let query = b"\0\x07\0\0\0\x01\0\0\0\0\0\0\x07example\0\0\x06\0\x01";
    let begun = Instant::now();
    while begun.elapsed() < READY {
        let mut answer = [0; 512];
        let sent = socket.send(query).is_ok();
        if sent && socket.recv(&mut answer).is_ok_and(|length| length > 12 && answer[3] & 0x0f == 0) {
            return Ok(());
        }
        if let Ok(Some(status)) = server.child.try_wait() {
            return Err(io::Error::other(format!("it ended: {status}")));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    Err(io::Error::other(format!("it does not answer at {}", server.address)))
}
