use super::*;
use nonesuch_net::Transport;
use nonesuch_proto::dnstap::family::{INET, INET6};
use nonesuch_proto::dnstap::{CONTENT_TYPE, Control, Message, MessageKind, push_control};
use prost::Message as _;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

const SENDER: &str = "192.0.2.7:4711";
const SENDER6: &str = "[2001:db8::7]:4712";
const LOCAL: &str = "198.51.100.1:53";

/// A query for example. SOA.
const QUERY: [u8; 25] = *b"\0\x07\0\0\0\x01\0\0\0\0\0\0\x07example\0\0\x06\0\x01";

fn address(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

/// The response to [`QUERY`]: REFUSED.
fn response() -> Vec<u8> {
    let mut response = QUERY.to_vec();
    response[2] = 0x80;
    response[3] = 5;
    response
}

fn options(destination: Destination) -> DnstapOptions {
    DnstapOptions {
        identity: b"ns1".to_vec(),
        version: b"nonesuch".to_vec(),
        ..DnstapOptions::new(destination)
    }
}

/// Exports a query and its response `times` times.
fn tap_some(thread: &mut DnstapSender, times: usize) {
    for _ in 0..times {
        thread.begin();
        thread.query(address(SENDER), &QUERY);
        thread.response(address(SENDER), &QUERY, &response());
        thread.end();
    }
}

/// Returns the data frames of a file, which must begin with START and end with STOP.
fn read_file(path: &Path) -> Vec<Dnstap> {
    let octets = fs::read(path).expect("a file");
    let (mut start, mut stop) = (Vec::new(), Vec::new());
    push_control(Control::Start, Some(CONTENT_TYPE), &mut start);
    push_control(Control::Stop, None, &mut stop);
    let data = octets.strip_prefix(&start[..]).expect("a START frame");
    let mut data = data.strip_suffix(&stop[..]).expect("a STOP frame");
    let mut frames = Vec::new();
    while let Some((length, rest)) = data.split_first_chunk() {
        let (frame, rest) = rest.split_at(u32::from_be_bytes(*length) as usize);
        frames.push(Dnstap::decode(frame).expect("a frame"));
        data = rest;
    }
    frames
}

#[test]
fn frames_say_what_was_asked_and_answered_by_whom_and_when() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("tap");
    let tap = DnstapOutput::start(options(Destination::File(path.clone()))).expect("a dnstap output");
    let mut udp = tap.thread(Transport::Udp, address(LOCAL));
    let mut tls = tap.thread(Transport::Tls, address("[::]:853"));
    tap_some(&mut udp, 1);
    tls.begin();
    tls.query(address(SENDER6), &QUERY);
    drop((udp, tls));
    drop(tap);
    let frames = read_file(&path);
    assert_eq!(frames.len(), 3);
    let messages: Vec<&Message> =
        frames.iter().map(|frame| frame.message.as_ref().expect("a message")).collect();
    for frame in &frames {
        assert_eq!(frame.identity.as_deref(), Some(&b"ns1"[..]));
        assert_eq!((frame.version.as_deref(), frame.kind), (Some(&b"nonesuch"[..]), 1));
    }
    let [query, answer, over_tls] = messages[..] else { panic!("{messages:?}") };
    assert_eq!(
        (query.kind, query.socket_family, query.socket_protocol),
        (MessageKind::Auth.number(false), Some(INET), Some(1))
    );
    assert_eq!(query.query_address.as_deref(), Some(&[192, 0, 2, 7][..]));
    assert_eq!((query.query_port, query.response_port), (Some(4711), Some(53)));
    assert_eq!(query.response_address.as_deref(), Some(&[198, 51, 100, 1][..]));
    assert_eq!(query.query_message.as_deref(), Some(&QUERY[..]));
    assert_eq!((&query.response_message, query.response_time_sec), (&None, None));
    assert!(query.query_time_sec.is_some_and(|seconds| seconds > 1_700_000_000));
    assert_eq!((answer.kind, &answer.query_message), (MessageKind::Auth.number(true), &None));
    assert_eq!(answer.response_message, Some(response()));
    let time =
        |seconds: Option<u64>, nanoseconds: Option<u32>| (seconds.expect("s"), nanoseconds.expect("ns"));
    assert!(
        time(answer.query_time_sec, answer.query_time_nsec)
            <= time(answer.response_time_sec, answer.response_time_nsec)
    );
    assert_eq!((over_tls.socket_family, over_tls.socket_protocol), (Some(INET6), Some(3)));
    assert_eq!(over_tls.query_address.as_ref().map(Vec::len), Some(16));
    assert_eq!((&over_tls.response_address, over_tls.response_port), (&None, Some(853)));
}

#[test]
fn responses_alone_hold_their_queries() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("tap");
    let choice = DnstapOptions { queries: false, ..options(Destination::File(path.clone())) };
    let tap = DnstapOutput::start(choice).expect("a dnstap output");
    tap_some(&mut tap.thread(Transport::Tcp, address(LOCAL)), 2);
    drop(tap);
    let frames = read_file(&path);
    assert_eq!(frames.len(), 2);
    let message = frames[0].message.as_ref().expect("a message");
    assert_eq!(message.query_message.as_deref(), Some(&QUERY[..]));
    assert_eq!((message.kind, message.socket_protocol), (MessageKind::Auth.number(true), Some(2)));
}

#[test]
fn a_file_that_is_there_is_kept_under_another_name() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("tap");
    for _ in 0..3 {
        let tap = DnstapOutput::start(options(Destination::File(path.clone()))).expect("a dnstap output");
        tap_some(&mut tap.thread(Transport::Udp, address(LOCAL)), 1);
    }
    let names =
        fs::read_dir(folder.path()).expect("a directory").map(|entry| entry.expect("an entry").path());
    let counts: Vec<usize> = names.map(|name| read_file(&name).len()).collect();
    assert_eq!(counts, [2, 2, 2]);
}

#[test]
fn a_file_that_was_moved_away_is_begun_anew_when_asked() {
    let folder = tempfile::tempdir().expect("a directory");
    let (path, moved) = (folder.path().join("tap"), folder.path().join("moved"));
    let tap = DnstapOutput::start(options(Destination::File(path.clone()))).expect("a dnstap output");
    let mut thread = tap.thread(Transport::Udp, address(LOCAL));
    tap_some(&mut thread, 1);
    wait_until(|| tap.counters().written == 2);
    // The file still has its name, so nothing happens.
    tap.reopen();
    tap_some(&mut thread, 1);
    wait_until(|| tap.counters().written == 4);
    fs::rename(&path, &moved).expect("renamed");
    tap.reopen();
    wait_until(|| tap.counters().opened == 2);
    tap_some(&mut thread, 2);
    drop(tap);
    assert_eq!((read_file(&moved).len(), read_file(&path).len()), (4, 4));
}

#[test]
fn a_tap_is_finished_once_whoever_still_has_it() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("tap");
    let tap = DnstapOutput::start(options(Destination::File(path.clone()))).expect("a dnstap output");
    tap_some(&mut tap.thread(Transport::Udp, address(LOCAL)), 3);
    tap.finish();
    assert_eq!(read_file(&path).len(), 6);
    tap.finish();
    drop(tap);
    assert_eq!(read_file(&path).len(), 6);
}

#[test]
fn a_folder_that_is_not_there_is_an_error_that_names_the_file() {
    let path = PathBuf::from("/nonexistent/tap");
    let error = DnstapOutput::start(options(Destination::File(path))).expect_err("no dnstap output");
    assert!(error.to_string().contains("/nonexistent/tap"), "{error}");
}

/// Polls until `holds` returns `true`, for at most ten seconds.
fn wait_until(holds: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !holds() {
        assert!(Instant::now() < end, "the condition does not hold in time");
        thread::yield_now();
    }
}

/// The reader of Frame Streams: performs the handshake, and reads frames until STOP, which it
/// answers, or until `most` frames are read.
fn read_stream(stream: &mut UnixStream, most: usize) -> usize {
    let word = |stream: &mut UnixStream| {
        let mut octets = [0; 4];
        stream.read_exact(&mut octets).map(|()| u32::from_be_bytes(octets))
    };
    let mut frames = 0;
    while let Ok(length) = word(stream) {
        let mut octets = vec![0; if length == 0 { word(stream).expect("a length") } else { length } as usize];
        stream.read_exact(&mut octets).expect("a frame");
        let mut out = Vec::new();
        match (length, u32::from_be_bytes(*octets.first_chunk().expect("four octets"))) {
            (0, 4) => push_control(Control::Accept, Some(CONTENT_TYPE), &mut out),
            (0, 3) => push_control(Control::Finish, None, &mut out),
            (0, control) => assert_eq!(control, 2),
            _ => {
                Dnstap::decode(&octets[..]).expect("a frame");
                frames += 1;
                if frames == most {
                    return frames;
                }
            }
        }
        stream.write_all(&out).expect("written");
    }
    frames
}

#[test]
fn over_a_socket_every_frame_arrives_also_of_several_threads() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).expect("a socket");
    let tap = DnstapOutput::start(options(Destination::Socket(path))).expect("a dnstap output");
    let reader = thread::spawn(move || read_stream(&mut listener.accept().expect("a writer").0, usize::MAX));
    thread::scope(|scope| {
        for _ in 0..4 {
            let mut tapped = tap.thread(Transport::Udp, address(LOCAL));
            scope.spawn(move || tap_some(&mut tapped, 500));
        }
    });
    wait_until(|| tap.counters().written == 4000);
    assert_eq!((tap.counters().dropped, tap.counters().lost, tap.counters().opened), (0, 0, 1));
    drop(tap);
    assert_eq!(reader.join().expect("a reader"), 4000);
}

#[test]
fn without_a_reader_the_queue_is_bounded_and_what_is_dropped_is_counted() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("socket");
    let choice = DnstapOptions { queue_octets: 1000, ..options(Destination::Socket(path.clone())) };
    let tap = DnstapOutput::start(choice).expect("a dnstap output");
    let mut thread = tap.thread(Transport::Udp, address(LOCAL));
    tap_some(&mut thread, 100);
    let counters = tap.counters();
    assert!(counters.dropped > 180 && counters.dropped < 200, "{counters:?}");
    // When a reader connects, it gets the queued frames.
    let listener = UnixListener::bind(&path).expect("a socket");
    let (mut stream, _) = listener.accept().expect("a writer");
    let queued = (200 - counters.dropped) as usize;
    assert_eq!(read_stream(&mut stream, queued), queued);
    // The reader disconnects, and another one connects.
    drop(stream);
    let (mut stream, _) = loop {
        tap_some(&mut thread, 1);
        listener.set_nonblocking(true).expect("a socket");
        match listener.accept() {
            Ok(accepted) => break accepted,
            Err(_) => thread::yield_now(),
        }
    };
    stream.set_nonblocking(false).expect("a socket");
    tap_some(&mut thread, 1);
    assert_eq!(read_stream(&mut stream, 2), 2);
    assert!(tap.counters().failures > 0);
}

#[test]
fn a_reader_that_is_none_is_left() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).expect("a socket");
    let tap = DnstapOutput::start(options(Destination::Socket(path))).expect("a dnstap output");
    let mut accept_of_another_type = Vec::new();
    push_control(Control::Accept, Some(b"protobuf:other"), &mut accept_of_another_type);
    // Invalid answers: START instead of ACCEPT, lengths above the limit of control frames, another
    // type, no answer.
    let mut start = Vec::new();
    push_control(Control::Start, None, &mut start);
    for answer in [&start[..], &[0, 0, 0, 0, 255, 255, 255, 255], &accept_of_another_type, &[0; 8], &[]] {
        let before = tap.counters().failures;
        let (mut stream, _) = listener.accept().expect("a writer");
        // The writer may have closed the connection already.
        let _ = stream.write_all(answer);
        drop(stream);
        wait_until(|| tap.counters().failures > before);
    }
    assert_eq!(tap.counters().opened, 0);
}

/// Runs a program that reads dnstap; `None` if it is not installed.
fn run(program: &str, arguments: &[&str]) -> Option<String> {
    match Command::new(program).args(arguments).output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
            Some(text)
        }
        Err(_) => {
            nonesuch_testing::record_skip(&format!("{program} is not installed"));
            None
        }
    }
}

#[test]
fn dnstap_ldns_reads_what_is_written() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("tap");
    let tap = DnstapOutput::start(options(Destination::File(path.clone()))).expect("a dnstap output");
    tap_some(&mut tap.thread(Transport::Udp, address(LOCAL)), 1);
    drop(tap);
    let Some(text) = run("dnstap-ldns", &["-q", "-r", path.to_str().expect("a path")]) else { return };
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    for (line, kind) in lines.iter().zip([" AQ ", " AR "]) {
        assert!(line.contains(kind) && line.contains(" UDP "), "{line}");
        assert!(line.contains("192.0.2.7") && line.contains("\"example.\" IN SOA"), "{line}");
    }
    let long = run("dnstap-ldns", &["-y", "-r", path.to_str().expect("a path")]).expect("the same program");
    assert!(long.contains("identity: \"ns1\"") && long.contains("rcode: REFUSED"), "{long}");
}

#[test]
fn fstrm_capture_takes_the_stream() {
    let folder = tempfile::tempdir().expect("a directory");
    let (socket, file) = (folder.path().join("socket"), folder.path().join("captured"));
    let text = |path: &Path| path.to_str().expect("a path").to_owned();
    let mut command = Command::new("fstrm_capture");
    command.args(["-t", "protobuf:dnstap.Dnstap", "-u", &text(&socket), "-w", &text(&file)]);
    let Ok(mut capture) = command.spawn() else {
        nonesuch_testing::record_skip("fstrm_capture is not installed");
        return;
    };
    let tap = DnstapOutput::start(options(Destination::Socket(socket))).expect("a dnstap output");
    tap_some(&mut tap.thread(Transport::Tcp, address(LOCAL)), 300);
    wait_until(|| tap.counters().written == 600);
    drop(tap);
    // SIGTERM makes the program write its data and end.
    let ended = Command::new("kill").args(["-TERM", &capture.id().to_string()]).status().expect("kill");
    assert!(ended.success());
    capture.wait().expect("it ends");
    assert_eq!(read_file(&file).len(), 600);
}
