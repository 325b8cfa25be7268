//! Checks of the Debian package and the systemd unit with `systemd-analyze`, `dpkg` and `lintian`.
//! The package is is_installed, serves a zone and is removed in a temporary copy of this system.

use crate::common;
use common::{folder, is_installed, run, text};
use nonesuch_testing::require_peer;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Maximum exposure of the unit, on systemd's scale from 0 to 10.
const EXPOSURE: f64 = 2.0;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Builds the package into `output` and returns its path. Returns `None` if the required programs
/// are missing.
fn build(output: &Path) -> Option<PathBuf> {
    if !["dpkg-deb", "strip", "gzip", "xz"].into_iter().all(is_installed) {
        return None;
    }
    let mut command = Command::new(repository().join("tools/build-deb"));
    command.args(["--binary", env!("CARGO_BIN_EXE_nonesuch"), "--output", text(output), "--quick"]);
    let built = run(command.env("SOURCE_DATE_EPOCH", "1750000000")).expect_done("tools/build-deb");
    Some(PathBuf::from(built.stdout.trim()))
}

#[test]
fn systemd_finds_the_unit_sound_and_little_exposed() {
    require_peer!("systemd-analyze");
    let folder = folder();
    let unit = folder.path().join("nonesuch.service");
    let packaged = fs::read_to_string(repository().join("pkg/systemd/nonesuch.service")).expect("the unit");
    assert!(packaged.contains("Documentation=man:nonesuch-serve(1) man:nonesuch.toml(5) "), "{packaged}");
    // The program that the unit starts must exist.
    let started = packaged.replace("/usr/bin/nonesuch", env!("CARGO_BIN_EXE_nonesuch"));
    assert_ne!(started, packaged);
    fs::write(&unit, started).expect("written");
    let analyze = |arguments: &[&str]| run(Command::new("systemd-analyze").args(arguments));
    let verified = analyze(&["verify", "--man=no", text(&unit)]).expect_done("verify");
    let of_unit: Vec<String> =
        verified.text().lines().filter(|line| line.contains("nonesuch")).map(str::to_owned).collect();
    assert_eq!(of_unit, Vec::<String>::new());
    let judged = analyze(&["security", "--offline=true", text(&unit)]).expect_done("security");
    let words = "Overall exposure level for nonesuch.service: ";
    let exposure = judged.stdout.lines().find_map(|line| line.split_once(words)).expect("a judgement").1;
    let exposure: f64 = exposure.split(' ').next().and_then(|number| number.parse().ok()).expect("a number");
    assert!(exposure <= EXPOSURE, "{}", judged.stdout);
}

#[test]
#[ignore = "`just judge`: two packages"]
fn the_package_is_the_same_each_time_and_lintian_finds_no_error() {
    let (first, second) = (folder(), folder());
    let (Some(one), Some(other)) = (build(first.path()), build(second.path())) else { return };
    assert!(
        fs::read(&one).expect("a package") == fs::read(&other).expect("a package"),
        "not the same octets"
    );
    let listed =
        run(Command::new("dpkg-deb").args(["--contents", text(&one)])).expect_done("dpkg-deb").stdout;
    for path in [
        "/usr/bin/nonesuch",
        "/lib/systemd/system/nonesuch.service",
        "/etc/nonesuch/nonesuch.toml",
        "/usr/share/man/man1/nonesuch-serve.1.gz",
        "/usr/share/man/man7/nonesuch-metrics.7.gz",
        "/usr/share/bash-completion/completions/nonesuch",
        "/usr/share/zsh/vendor-completions/_nonesuch",
        "/usr/share/fish/vendor_completions.d/nonesuch.fish",
        "/usr/share/doc/nonesuch/copyright",
    ] {
        assert!(listed.lines().any(|line| line.ends_with(&format!(".{path}"))), "{path} is not in\n{listed}");
    }
    assert!(listed.lines().all(|line| line.contains("root/root")), "{listed}");
    if is_installed("lintian") {
        let judged = run(Command::new("lintian").args(["--fail-on", "error", "--allow-root", text(&one)]));
        assert_eq!(judged.status, 0, "{}", judged.text());
    }
}

/// Runs the rest of a script in a copy of this system; changes go to `$1/upper`.
const COPY: &str = r#"
set -eu
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root"
mount --rbind /dev "$1/root/dev"
mount -t proc proc "$1/root/proc"
"#;

/// Installs the package, serves a zone as the package's user, and removes the package. The script
/// prints its port, and continues on request.
const LIFE: &str = r#"
cp "$2" "$1/root/package.deb"
chroot "$1/root" /bin/sh -eu <<'INSIDE'
export PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive
dpkg -i /package.deb
dpkg -s nonesuch | grep -q '^Status: install ok installed$'
dpkg -V nonesuch
[ "$(stat -c %U:%a /var/lib/nonesuch)" = nonesuch:750 ]
[ "$(stat -c %U:%G:%a /etc/nonesuch/nonesuch.toml)" = root:nonesuch:640 ]
sed -i 's/^version = 1$/version = 1\nlisten = ["127.0.0.1:0"]/' /etc/nonesuch/nonesuch.toml
printf '\n[zone."package.example."]\nfile = "/srv/zone"\n' >>/etc/nonesuch/nonesuch.toml
printf '$TTL 60\n@ SOA ns h 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\n' >/srv/zone
chmod 644 /srv/zone
INSIDE
as_user="setpriv --reuid nonesuch --regid nonesuch --init-groups --bounding-set -all --no-new-privs"
chroot "$1/root" $as_user /usr/bin/nonesuch serve --config /etc/nonesuch/nonesuch.toml --check=zones
# As the unit does.
chroot "$1/root" /usr/bin/install -d -o nonesuch -g nonesuch -m 0750 /run/nonesuch
chroot "$1/root" $as_user /usr/bin/nonesuch serve --config /etc/nonesuch/nonesuch.toml --json &
server=$!
read -r go_on
chroot "$1/root" $as_user /usr/bin/nonesuch ctl --config /etc/nonesuch/nonesuch.toml stop
wait $server
chroot "$1/root" /bin/sh -eu <<'INSIDE'
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
dpkg -r nonesuch
[ ! -e /usr/bin/nonesuch ]
[ -e /etc/nonesuch/nonesuch.toml ]
[ -d /var/lib/nonesuch ]
dpkg -P nonesuch
[ ! -e /etc/nonesuch ]
[ ! -e /var/lib/nonesuch ]
rm -rf /run/nonesuch
INSIDE
# What is left of it: nothing, but the user.
left=$(find "$1/upper" -name '*nonesuch*')
[ -z "$left" ] || { echo "left: $left" >&2; exit 1; }
echo "removed"
"#;

#[test]
#[ignore = "`just judge`: a package"]
fn the_package_installs_serves_and_is_removed() {
    let programs = ["unshare", "chroot", "setpriv", "dpkg", "adduser"];
    if !programs.into_iter().all(is_installed) {
        return;
    }
    let copy = folder();
    let shell = |script: &str, arguments: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", script, "sh"]);
        command.args(arguments);
        command
    };
    let tried = run(&mut shell(COPY, &[text(copy.path())]));
    if tried.status != 0 {
        nonesuch_testing::record_skip(&format!(
            "no copy of this system can be made: {}",
            tried.stderr.trim()
        ));
        return;
    }
    let output = folder();
    let Some(package) = build(output.path()) else { return };
    let script = format!("{COPY}{LIFE}");
    let mut command = shell(&script, &[text(copy.path()), text(&package)]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(child.stdout.take().expect("its output")).lines();
    let ready = lines.by_ref().map_while(Result::ok).find(|line| line.starts_with("{\"ready\":"));
    let Some(ready) = ready else {
        let output = child.wait_with_output().expect("it ends");
        panic!("not ready: {}", String::from_utf8_lossy(&output.stderr));
    };
    let ready: serde_json::Value = serde_json::from_str(&ready).expect("JSON");
    let address = ready["ready"]["address"].as_str().expect("an address").to_owned();
    let answer = ask(&address);
    child.stdin.take().expect("its input").write_all(b"go on\n").expect("written");
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{rest:?}\n{said}");
    assert_eq!(rest.last().map(String::as_str), Some("removed"), "{said}");
    assert!(answer.windows(4).any(|octets| octets == [192, 0, 2, 1]), "{answer:?}");
}

/// Queries the address of ns.package.example.
fn ask(address: &str) -> Vec<u8> {
    let mut query = vec![0, 7, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0];
    query.extend_from_slice(b"\x02ns\x07package\x07example\0\0\x01\0\x01");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.set_read_timeout(Some(Duration::from_secs(10))).expect("a limit");
    socket.send_to(&query, address).expect("sent");
    let mut answer = vec![0; 512];
    let octets = socket.recv(&mut answer).expect("an answer");
    answer.truncate(octets);
    answer
}
