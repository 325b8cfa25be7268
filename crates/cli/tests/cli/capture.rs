//! `nonesuch lab capture` and `nonesuch load --replay`.

use crate::common;
use crate::load::Echo;
use common::{done, folder, nonesuch, run, snapshot, text};
use nonesuch_lab::capture::{
    CaptureFormat, CaptureOptions, CaptureReader, CaptureWriter, CapturedMessage, MessageKind, Transport,
};
use serde_json::Value;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// A query for `www.example.` from the client with this number, and its response.
fn exchange(client: u8) -> [CapturedMessage; 2] {
    let octets = b"\x12\x34\x01\0\0\x01\0\0\0\0\0\0\x03www\x07example\0\0\x01\0\x01".to_vec();
    let query = CapturedMessage {
        time_ns: 1_700_000_000_000_000_000 + u64::from(client) * 1_000_000,
        client: SocketAddr::new([192, 0, 2, client].into(), 4711),
        server: SocketAddr::new([198, 51, 100, 1].into(), 53),
        transport: Transport::Udp,
        is_response: false,
        kind: MessageKind::Auth,
        octets,
    };
    let mut response = CapturedMessage { is_response: true, ..query.clone() };
    response.octets[2] |= 0x80;
    [query, response]
}

/// Writes a capture with exchanges of 20 clients.
fn capture(folder: &Path) -> PathBuf {
    let mut writer = CaptureWriter::new(Vec::new(), CaptureFormat::Pcap).expect("written");
    for message in (0..20).flat_map(exchange) {
        assert!(writer.write(&message).expect("written"));
    }
    let path = folder.join("in.pcap");
    fs::write(&path, writer.finish().expect("written")).expect("written");
    path
}

fn read(path: &Path) -> Vec<CapturedMessage> {
    let reader = CaptureReader::open(path, &CaptureOptions::default()).expect("a capture");
    reader.collect::<Result<_, _>>().expect("messages")
}

#[test]
fn a_capture_is_converted_there_and_back() {
    let folder = folder();
    let (input, tap, back) =
        (capture(folder.path()), folder.path().join("x.dnstap"), folder.path().join("back.pcap"));
    let printed = done(["lab", "capture", text(&input), "-f", text(&tap)]).stdout;
    assert!(printed.contains("40 messages written"), "{printed}");
    assert_eq!(read(&tap), read(&input));
    let json = done(["lab", "capture", text(&tap), "-f", text(&back), "--json"]).stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json, serde_json::json!({ "read": 40, "written": 40, "skipped": {} }));
    assert_eq!(fs::read(back).expect("a file"), fs::read(&input).expect("a file"));
    // Queries are confidential.
    assert_eq!(fs::metadata(tap).expect("a file").mode() & 0o777, 0o640);
}

#[test]
fn a_key_anonymises_alike_in_every_run() {
    let folder = folder();
    let (input, key) = (capture(folder.path()), folder.path().join("key"));
    let output = |name: &str| folder.path().join(name);
    for name in ["a.pcap", "b.pcap"] {
        let key = ["--anonymize", "--key", text(&key), "--names"];
        done([&["lab", "capture", text(&input), "-f", text(&output(name))][..], &key].concat());
    }
    done(["lab", "capture", text(&input), "-f", text(&output("other.pcap")), "--anonymize"]);
    assert_eq!(fs::metadata(&key).expect("a key").mode() & 0o777, 0o600);
    let (before, a, b) = (read(&input), read(&output("a.pcap")), read(&output("b.pcap")));
    let other = read(&output("other.pcap"));
    assert_eq!(a, b);
    assert_eq!(a.len(), before.len());
    let network = |address: IpAddr| match address {
        IpAddr::V4(address) => address.to_bits() >> 8,
        IpAddr::V6(_) => panic!("an IPv4 address"),
    };
    // All clients have addresses in one network.
    let first = network(a[0].client.ip());
    for ((a, other), before) in a.iter().zip(&other).zip(&before) {
        assert_eq!(network(a.client.ip()), first);
        assert_ne!(a.client.ip(), before.client.ip());
        assert_ne!(a.client.ip(), other.client.ip());
        assert_eq!((a.octets.len(), a.time_ns), (before.octets.len(), before.time_ns));
        assert!(!a.octets.windows(3).any(|part| part == b"www"));
        // Without --names, names stay.
        assert_eq!(other.octets, before.octets);
    }
}

#[test]
fn queries_are_listed_and_replayed() {
    let folder = folder();
    let (input, list) = (capture(folder.path()), folder.path().join("queries"));
    let printed = done(["lab", "capture", text(&input), "-f", text(&list), "--queries"]).stdout;
    assert!(printed.contains("20 queries written"), "{printed}");
    assert_eq!(fs::read_to_string(&list).expect("a list"), "www.example. A\n".repeat(20));
    let listed = done(["lab", "capture", text(&input), "-f", "-", "--queries"]).stdout;
    assert_eq!(listed, "www.example. A\n".repeat(20));

    let echo = Echo::start("100");
    let server = echo.address.to_string();
    for speed in ["10", "max"] {
        let load = ["load", "--server", &server, "--replay", text(&input), "--speed", speed, "--json"];
        let report: Value = serde_json::from_str(&done(load).stdout).expect("JSON");
        assert_eq!((&report["sent"], &report["received"]), (&20.into(), &20.into()), "{report}");
        assert_eq!(report["lateness_us"].is_null(), speed == "max");
    }
    let load = ["load", "--server", &server, "--queries", text(&list), "--limit", "30", "--json"];
    let report: Value = serde_json::from_str(&done(load).stdout).expect("JSON");
    assert_eq!(report["received"], 30);
}

#[test]
fn faults_are_named() {
    let folder = folder();
    let input = capture(folder.path());
    fs::write(folder.path().join("text"), "no capture, but some text").expect("written");
    fs::write(folder.path().join("key"), "no key").expect("written");
    fs::set_permissions(folder.path().join("key"), fs::Permissions::from_mode(0o600)).expect("set");
    let mut damaged = fs::read(&input).expect("a capture");
    damaged.extend([0xff; 16]);
    fs::write(folder.path().join("damaged.pcap"), damaged).expect("written");
    let empty = CaptureWriter::new(Vec::new(), CaptureFormat::Pcap).expect("written").finish();
    fs::write(folder.path().join("empty.pcap"), empty.expect("written")).expect("written");
    let load = ["load", "--server", "127.0.0.1:1", "--replay"];
    for (case, arguments) in [
        ("missing file", &["lab", "capture", "none", "-f", "x.pcap"][..]),
        ("other file", &["lab", "capture", "text", "-f", "x.pcap"]),
        ("damaged file", &["lab", "capture", "damaged.pcap", "-f", "x.pcap"]),
        ("unknown suffix", &["lab", "capture", "in.pcap", "-f", "x.txt"]),
        ("output is the input", &["lab", "capture", "in.pcap", "-f", "in.pcap"]),
        ("malformed key", &["lab", "capture", "in.pcap", "-f", "x.pcap", "--anonymize", "--key", "key"]),
        ("names without addresses", &["lab", "capture", "in.pcap", "-f", "x.pcap", "--names"]),
        ("replay without queries", &[&load[..], &["empty.pcap"]].concat()),
        ("replay with a rate", &[&load[..], &["in.pcap", "--rate", "5"]].concat()),
        ("replay at no speed", &[&load[..], &["in.pcap", "--speed", "0"]].concat()),
        ("replay without sockets", &[&load[..], &["in.pcap", "--clients", "0"]].concat()),
    ] {
        let ended = run(nonesuch(arguments).current_dir(folder.path()));
        assert_eq!(ended.status, 2, "{case}: {}", ended.text());
        snapshot::check("lab capture", case, &ended.stderr);
        assert!(!folder.path().join("x.pcap").exists(), "{case}");
    }
}
