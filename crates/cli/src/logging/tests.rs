use super::*;
use std::sync::{Arc, Mutex, PoisonError};
use tracing::subscriber::with_default;

/// A buffer as the output of a log.
#[derive(Clone, Default)]
struct Buffer(Arc<Mutex<Vec<u8>>>);

impl Write for Buffer {
    fn write(&mut self, octets: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(octets);
        Ok(octets.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// The lines that `say` logs in a format.
fn logged(style: fn() -> Style, say: impl FnOnce()) -> String {
    let buffer = Buffer::default();
    let log = Log { direct: Mutex::new(Box::new(buffer.clone())), style, queue: || None };
    with_default(tracing_subscriber::registry().with(log), say);
    let octets = buffer.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    String::from_utf8(octets).expect("text")
}

fn loaded() {
    let error = std::io::Error::other("no \"way\"");
    tracing::info!(name: "zone-loaded", zone = %"example.", serial = 7_u32, seconds = 0.25, is_signed = true, "zone loaded");
    tracing::warn!(peer = "192.0.2.1", error = &error as &dyn std::error::Error, "no transfer");
}

/// The lines with "TIME" in place of the time, which differs between runs.
fn without_times(text: &str) -> Vec<String> {
    let timeless = |line: &str| {
        let at = line.find("20").expect("a year");
        let end = at + line[at..].find('Z').expect("UTC") + 1;
        assert_eq!(end - at, "2026-11-21T21:47:04.123Z".len(), "{line}");
        format!("{}TIME{}", &line[..at], &line[end..])
    };
    text.lines().map(timeless).collect()
}

#[test]
fn text_has_time_level_message_and_fields() {
    let text = logged(|| Style::Text { colours: false }, loaded);
    assert_eq!(
        without_times(&text),
        [
            "TIME  INFO zone loaded event=zone-loaded zone=example. serial=7 seconds=0.25 is_signed=true",
            "TIME  WARN no transfer peer=192.0.2.1 error=\"no \\\"way\\\"\"",
        ]
    );
}

#[test]
fn the_journal_gets_priorities_and_no_time() {
    let text = logged(|| Style::Journal, loaded);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(
        lines[0],
        "<6>zone loaded event=zone-loaded zone=example. serial=7 seconds=0.25 is_signed=true"
    );
    assert!(lines[1].starts_with("<4>no transfer "), "{text}");
}

#[test]
fn json_is_one_object_for_each_line() {
    let text = logged(|| Style::Json, loaded);
    let objects: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(objects[0]["message"], "zone loaded");
    assert_eq!((&objects[0]["level"], &objects[0]["zone"]), (&"info".into(), &"example.".into()));
    assert_eq!(
        (&objects[0]["event"], &objects[1]["event"]),
        (&"zone-loaded".into(), &serde_json::Value::Null)
    );
    assert_eq!(
        (&objects[0]["serial"], &objects[0]["seconds"], &objects[0]["is_signed"]),
        (&7.into(), &0.25.into(), &true.into())
    );
    assert_eq!(objects[1]["error"], "no \"way\"");
    let fields = logged(|| Style::Json, || tracing::info!(level = "of a field", "said"));
    let object: serde_json::Value = serde_json::from_str(fields.trim_end()).expect("JSON");
    assert_eq!((&object["level"], &object["field_level"]), (&"info".into(), &"of a field".into()));
}

#[test]
fn values_of_peers_add_neither_lines_nor_escape_sequences() {
    let harmful = "a\nb\x1b[2J\r\0\x7f\u{9b}\u{202e}\u{2028}c";
    let say = || tracing::warn!(peer = harmful, "{harmful}");
    for style in [(|| Style::Text { colours: false }) as fn() -> Style, || Style::Journal, || Style::Json] {
        let text = logged(style, say);
        assert_eq!(text.matches('\n').count(), 1, "{text:?}");
        let line = text.trim_end_matches('\n');
        assert!(line.chars().all(|character| !character.is_control()), "{text:?}");
        assert!(!line.contains(['\u{202e}', '\u{2028}']), "{text:?}");
        if style() == Style::Json {
            let object: serde_json::Value = serde_json::from_str(line).expect("JSON");
            assert_eq!((&object["peer"], &object["message"]), (&harmful.into(), &harmful.into()));
        } else {
            assert!(line.contains("a\\nb\\u{1b}[2J\\r\\u{0}\\u{7f}\\u{9b}\\u{202e}\\u{2028}c"), "{text:?}");
        }
    }
}

#[test]
fn values_that_are_not_one_word_are_quoted() {
    let say =
        || tracing::info!(empty = "", equals = "a=b", plain = "a\\.b.example.", spaced = "a b\\", "said");
    let text = logged(|| Style::Journal, say);
    assert_eq!(text, "<6>said empty=\"\" equals=\"a=b\" plain=a\\.b.example. spaced=\"a b\\\\\"\n");
}
