use super::super::{CheckReport, Evidence, Exchange, Item, ItemResult, Outcome, Profile, Transport};
use std::time::{Duration, UNIX_EPOCH};

const HOSTILE: &str = "<b>&\"'\u{1b}[2J\u{0}\n]]>\u{fffe}";

fn item(id: &'static str, outcome: Outcome) -> ItemResult {
    let item = Item {
        id,
        subject: "Answers <queries> & \"more\"",
        rules: &["RFC 1035 §4.1", "RFC 6891 §6.1.1"],
        method: "One query.",
        is_jprs: false,
        is_quick: true,
    };
    let mut evidence = Evidence::default();
    let exchange = |reply| Exchange {
        sender: "check",
        server: "127.0.0.1:53".parse().unwrap(),
        transport: Transport::Udp,
        query: vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 6, 0, 1],
        reply,
        elapsed: Duration::from_micros(1500),
    };
    evidence.push(exchange(Ok(vec![0xff; 40])));
    evidence.push(exchange(Err(HOSTILE.to_owned())));
    evidence.notes.push(HOSTILE.to_owned());
    ItemResult { item, outcome, evidence, elapsed: Duration::from_millis(3) }
}

fn report() -> CheckReport {
    let results = vec![
        item("A-1", Outcome::pass()),
        item("A-2", Outcome::Pass("a note".to_owned())),
        item("A-3", Outcome::Fail(HOSTILE.to_owned())),
        item("A-4", Outcome::NotTestable("the server is silent".to_owned())),
    ];
    CheckReport {
        kind: "authoritative server",
        subject: "127.0.0.1:53".to_owned(),
        profile: Profile::Full,
        started_at: UNIX_EPOCH + Duration::from_secs(1_767_225_600),
        facts: vec![("version".to_owned(), HOSTILE.to_owned())],
        results,
    }
}

#[test]
fn the_text_has_one_line_for_each_item_and_the_numbers_of_results() {
    let text = report().to_text();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 7, "{text}");
    assert!(lines[2].starts_with("A-1      pass"), "{}", lines[2]);
    assert!(lines[3].ends_with(": a note"), "{}", lines[3]);
    assert!(lines[4].starts_with("A-3      FAIL"), "{}", lines[4]);
    assert!(lines[5].ends_with("could not verify this because the server is silent"), "{}", lines[5]);
    assert_eq!(lines[6], "2 passed, 1 failed, 1 not testable");
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn an_explanation_has_every_message_as_text_and_as_octets() {
    let text = report().explain("a-3").unwrap();
    for part in [
        "rules: RFC 1035 §4.1, RFC 6891 §6.1.1",
        "exchange 1: check to 127.0.0.1:53 over UDP, 1.500 ms",
        ";; QUESTION . IN SOA",
        "0000  0007010000010000000000000000060001",
        "response, 40 octets:",
        ";; malformed message",
        "0020  ffffffffffffffff",
        "no response: <b>",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains('\u{1b}'));
    assert!(report().explain("A-9").is_none());
}

#[test]
fn the_json_has_results_and_messages() {
    let json = report().to_json();
    assert_eq!((&json["passed"], &json["failed"], &json["not_testable"]), (&2.into(), &1.into(), &1.into()));
    assert_eq!(json["started_at"], "2026-01-01T00:00:00Z");
    let item = &json["items"][2];
    assert_eq!(
        (&item["id"], &item["result"], &item["text"]),
        (&"A-3".into(), &"fail".into(), &HOSTILE.into())
    );
    assert_eq!(item["exchanges"][0]["query"], "0007010000010000000000000000060001");
    assert_eq!(item["exchanges"][1]["fault"], HOSTILE);
}

#[test]
fn the_junit_xml_is_well_formed_for_hostile_text() {
    let xml = report().to_junit();
    assert!(xml.contains("tests=\"4\" failures=\"1\" errors=\"0\" skipped=\"1\""), "{xml}");
    assert_eq!(xml.matches("<testcase ").count(), 4);
    assert!(xml.contains("<skipped message=\"could not verify this because the server is silent\"/>"));
    assert!(xml.contains("<system-out>a note</system-out>"));
    let is_permitted =
        |letter: char| !matches!(letter, '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}');
    assert!(xml.chars().all(is_permitted));
    assert!(!xml.contains("<b>") && !xml.contains("]]>"));
    // Tags are balanced, and every '&' begins a reference.
    for name in ["testsuite", "testcase", "properties", "failure", "system-out"] {
        let (opened, closed) = (format!("<{name}"), format!("</{name}>"));
        let opened = xml.match_indices(&opened).filter(|(at, tag)| !xml[at + tag.len()..].starts_with('s'));
        assert_eq!(opened.count(), xml.matches(&closed).count(), "{name}");
    }
    for (at, _) in xml.match_indices('&') {
        let end = xml[at..].find(';').unwrap();
        assert!(["amp", "lt", "gt", "quot", "apos", "#9", "#10", "#13"].contains(&&xml[at + 1..at + end]));
    }
}

#[test]
fn the_page_escapes_hostile_text_and_has_the_messages_of_failed_items() {
    let page = report().to_html().unwrap();
    assert!(!page.contains("<b>") && !page.contains('\u{1b}'));
    assert!(page.contains("A-3: fail") && page.contains("A-4: not testable") && !page.contains("A-1: pass"));
    assert!(page.contains("response, 40 octets:"));
}
