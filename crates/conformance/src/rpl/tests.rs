//! Tests of the reader, of comparisons and of responses.

use super::matching::check;
use super::respond::{respond, servfail};
use super::*;
use crate::describe::{QuestionText, RecordText};
use nonesuch_net::Transport;
use nonesuch_proto::message::{Header, Message, Rcode, Record, Section, flags};
use nonesuch_proto::{Class, Name, Rtype};
use proptest::prelude::*;
use std::path::Path;
use std::time::Duration;

fn parse(text: &str) -> Result<Scenario, RplError> {
    Scenario::parse(text, Path::new("x.rpl"), None)
}

/// Reads a scenario with one entry.
fn entry(dialect: Dialect, text: &str) -> Entry {
    let text =
        format!("CONFIG_END\nSCENARIO_BEGIN x\nSTEP 1 QUERY\nENTRY_BEGIN\n{text}\nENTRY_END\nSCENARIO_END\n");
    let scenario = Scenario::parse(&text, Path::new("x.rpl"), Some(dialect)).unwrap();
    scenario.steps[0].entry().unwrap().clone()
}

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

const DECKARD: &str = r#"
do-ip6: no
; a comment
	stub-addr: 198.51.100.1
	stub-addr: 193.0.14.129 	# K.ROOT-SERVERS.NET.
	stub-name: rootns
	trust-anchor: "example.com.  IN DS 438 10 2 33F8133EB48EDB093839E985600EB7B7009EB5AC312D11CCA9007F6B 71D94D7B" # x
	domain-insecure: net.
	val-override-date: "20120420235959"
	query-minimization: off
	do-not-query-localhost: off
	features: min_ttl = 5; max_ttl = 600; renumber_src = 1.2.3.0/24
	feature-list: policy=policy:add(policy.suffix(policy.FORWARD('1.2.3.4'), {todname('example.cz')}))
CONFIG_END

SCENARIO_BEGIN A title  ; with more

RANGE_BEGIN 0 100 193.0.14.129 ; root
	ADDRESS 2001:db8::1
ENTRY_BEGIN
MANDATORY
MATCH opcode qtype qname ; as always
ADJUST copy_id copy_query
REPLY QR AA NXDOMAIN
SECTION QUESTION
www.example.com IN A
SECTION AUTHORITY
example.com. 600 IN SOA ns1.example.com. admin.example.com. 1 2 3 4 5
example.com. IN 600 TXT "one ; two" three
ENTRY_END
RANGE_END

STEP 1 QUERY
ENTRY_BEGIN
REPLY RD DO
SECTION QUESTION
www.example.com. IN A
ENTRY_END
STEP 2 CHECK_ANSWER
ENTRY_BEGIN
MATCH all
FLAGS QR RD RA NXDOMAIN
SECTION QUESTION
www.example.com. IN A
ENTRY_END
STEP 3 TIME_PASSES ELAPSE 10
STEP 4 QUERY
ENTRY_BEGIN
RAW
b5c9ca3d
ENTRY_END
SCENARIO_END
garbage after the end
"#;

#[test]
fn a_scenario_of_deckard_is_read() {
    let scenario = parse(DECKARD).unwrap();
    let settings = &scenario.settings;
    assert_eq!(settings.dialect, Dialect::Deckard);
    assert_eq!(settings.root_servers, [(name("rootns."), "193.0.14.129:53".parse().unwrap())]);
    assert_eq!((settings.uses_ipv4, settings.uses_ipv6), (true, false));
    assert_eq!((settings.minimum_ttl, settings.maximum_ttl), (Some(5), Some(600)));
    assert_eq!(settings.qname_minimisation, Some(false));
    assert!(settings.queries_loopback);
    assert_eq!(settings.unix_time, Some(1_334_966_399));
    assert_eq!(settings.insecure_domains, [name("net.")]);
    assert_eq!((settings.trust_anchors[0].rtype, settings.trust_anchors[0].rdata.len()), (Rtype::DS, 36));
    assert_eq!(settings.forward_zones[0].zone, name("example.cz."));
    assert_eq!(settings.other_options.len(), 1);
    assert_eq!(settings.other_options[0].value, "renumber_src = 1.2.3.0/24");

    let range = &scenario.ranges[0];
    assert_eq!((range.first, range.last, range.addresses.len(), range.line), (0, 100, 2, 18));
    let entry = &range.entries[0];
    assert_eq!(entry.rules, [MatchRule::Opcode, MatchRule::Qtype, MatchRule::Qname]);
    assert!(entry.is_mandatory && entry.adjust.copies_id && entry.adjust.copies_question);
    assert_eq!(entry.message.header.flags, flags::QR | flags::AA | 3);
    let texts: Vec<String> =
        entry.message.section(Section::Authority).map(|record| RecordText(record).to_string()).collect();
    assert_eq!(texts[1], "example.com. 600 IN TXT \"one ; two\" \"three\"");

    assert_eq!(scenario.steps.len(), 4);
    let opt = scenario.steps[0].entry().unwrap().message.opt().unwrap();
    assert_eq!((opt.class.0, opt.ttl), (4096, 0x8000));
    assert_eq!(scenario.steps[2].action, Action::TimePasses(Duration::from_secs(10)));
    assert_eq!(scenario.steps[3].entry().unwrap().raw.as_deref(), Some(&[0xb5, 0xc9, 0xca, 0x3d][..]));
}

const UNBOUND: &str = r#"
; config options
server: target-fetch-policy: "0 0 0 0 0"
	trust-anchor: "example.com.    3600    IN      DS      2854 3 1 46e4ffc6e9a4793b488954bd3f0cc6af0dfb201b"
	val-override-date: "20070916134226"
	qname-minimisation: "no"
	minimal-responses: no
AUTOTRUST_FILE example.com
; not read
CONFIG_END of a file
AUTOTRUST_END
stub-zone:
	name: "."
	stub-addr: 193.0.14.129 	# K.ROOT-SERVERS.NET.
	stub-prime: yes
forward-zone:
	name: "example.net"
	forward-addr: 192.0.2.1@5353
	forward-host: ns.example.net
	forward-no-cache: yes
CONFIG_END
SCENARIO_BEGIN Unbound
$ORIGIN example.com.
RANGE_BEGIN 0 10
	ADDRESS 192.0.2.1
	ADDRESS 192.0.2.2
ENTRY_BEGIN
MATCH opcode qname ttl
MATCH UDP DO serial=7 ede=any
ADJUST copy_id sleep=2
REPLY QR
REPLY NOTIMPL
SECTION QUESTION
www IN A
SECTION ANSWER
$TTL 60
www A 192.0.2.7
EXTRA_PACKET
REPLY QR AA
SECTION ANSWER
www A 192.0.2.8
ENTRY_END
RANGE_END
STEP 1 QUERY ADDRESS 127.0.0.2
ENTRY_BEGIN
REPLY RD
SECTION QUESTION
www IN A
HEX_EDNSDATA_BEGIN
	; an NSID option
	00 03 00 00
HEX_EDNSDATA_END
ENTRY_END
STEP 2 CHECK_OUT_QUERY ADDRESS 192.0.2.1
ENTRY_BEGIN
MATCH qname
SECTION QUESTION
www IN A
HEX_ANSWER_BEGIN
00 bf	; ID
HEX_ANSWER_END
ENTRY_END
STEP 3 TIMEOUT
STEP 4 NOTHING
STEP 5 CHECK_TEMPFILE x
FILE_BEGIN
STEP garbage
FILE_END
STEP 6 TIME_PASSES EVAL ${30*24*3600}
STEP 7 ASSIGN t0 = ${time}
SCENARIO_END
"#;

#[test]
fn a_scenario_of_unbound_is_read() {
    let scenario = parse(UNBOUND).unwrap();
    let settings = &scenario.settings;
    assert_eq!(settings.dialect, Dialect::Unbound);
    assert_eq!((settings.qname_minimisation, settings.minimal_responses), (Some(false), Some(false)));
    assert_eq!(settings.unix_time, Some(1_189_950_146));
    let stub = &settings.stub_zones[0];
    assert_eq!((stub.zone.clone(), stub.is_primed), (Name::root(), true));
    let forward = &settings.forward_zones[0];
    assert_eq!(forward.addresses, ["192.0.2.1:5353".parse().unwrap()]);
    assert_eq!(forward.hosts, [name("ns.example.net.")]);
    let others: Vec<(&str, &str)> =
        settings.other_options.iter().map(|option| (option.clause.as_str(), option.key.as_str())).collect();
    let expected = [
        ("server", "target-fetch-policy"),
        ("server", "AUTOTRUST_FILE"),
        ("forward-zone", "forward-no-cache"),
    ];
    assert_eq!(others, expected);

    assert_eq!(settings.special_options().count(), 2);

    let range = &scenario.ranges[0];
    assert_eq!(range.addresses, ["192.0.2.2:53".parse().unwrap()]);
    let entry = &range.entries[0];
    let rules = [
        MatchRule::Opcode,
        MatchRule::Qname,
        MatchRule::Ttl,
        MatchRule::Udp,
        MatchRule::DnssecOk,
        MatchRule::Serial(7),
        MatchRule::ExtendedError(None),
    ];
    assert_eq!(entry.rules, rules);
    assert_eq!((entry.extra_messages, entry.adjust.delay), (1, Duration::from_secs(2)));
    assert_eq!(entry.message.rcode(), Rcode::NOTIMP);
    assert!(entry.message.opt().is_none());
    assert_eq!(RecordText(&entry.message.records[0]).to_string(), "www.example.com. 60 IN A 192.0.2.7");
    assert_eq!(entry.message.records.len(), 1);

    let query = scenario.steps[0].entry().unwrap();
    assert_eq!(query.message.opt().map(|opt| (opt.class.0, opt.rdata.len())), Some((1232, 4)));
    assert_eq!(scenario.steps[1].entry().unwrap().raw.as_deref(), Some(&[0x00, 0xbf][..]));
    let actions: Vec<&Action> = scenario.steps[2..].iter().map(|step| &step.action).collect();
    let unsupported = |text: &str| Action::Unsupported(text.to_owned());
    let expected = [
        Action::Timeout,
        Action::Nothing,
        Action::Nothing,
        unsupported("TIME_PASSES EVAL"),
        unsupported("ASSIGN"),
    ];
    assert_eq!(actions, expected.iter().collect::<Vec<_>>());
}

#[test]
fn records_may_have_the_type_null_and_words_as_signatures() {
    let question = entry(Dialect::Deckard, "SECTION QUESTION\n_ta-4F66. IN NULL").message.questions.remove(0);
    assert_eq!(question.rtype, Rtype(10));
    for (word, base64) in [("UNUS ABLE==", "UNUSABLE"), ("BAD", "BAA="), ("AB", "AA==")] {
        let fields = "RRSIG SOA 253 1 86400 20170815084229 20170716084229 12062 test.";
        let entry = entry(Dialect::Deckard, &format!("SECTION ANSWER\ntest. {fields} {word}"));
        let text = RecordText(&entry.message.records[0]).to_string();
        assert!(text.ends_with(&format!(" test. {base64}")), "{text}");
    }
}

#[test]
fn errors_have_a_line() {
    let body = "stub-addr: 192.0.2.1\nCONFIG_END\nSCENARIO_BEGIN x\n";
    let step = "STEP 1 QUERY\nENTRY_BEGIN\n";
    let cases = [
        ("nonsense: 1\nstub-addr: 192.0.2.1\n", 1, "expected a clause"),
        ("stub-addr: 192.0.2.1\nstub-color: red\n", 2, "unknown option stub-color"),
        ("stub-addr: 192.0.2\nCONFIG_END\n", 1, "expected an address, found 192.0.2"),
        ("stub-addr: 192.0.2.1\n", 1, "CONFIG_END is missing"),
        (body, 3, ""),
        (&format!("{body}HELLO"), 4, "unexpected HELLO"),
        (&format!("{body}STEP x QUERY"), 4, "expected a number, found x"),
        (&format!("{body}STEP 1 DANCE"), 4, "unknown word DANCE after STEP"),
        (&format!("{body}STEP 1 QUERY\nSTEP 2 QUERY"), 5, "unexpected STEP; expected ENTRY_BEGIN"),
        (&format!("{body}{step}MATCH qname colour"), 6, "unknown word colour after MATCH"),
        (&format!("{body}{step}REPLY QX"), 6, "unknown word QX after REPLY"),
        (&format!("{body}{step}ADJUST copy"), 6, "unknown word copy after ADJUST"),
        (&format!("{body}{step}SECTION OTHER"), 6, "unknown word OTHER after SECTION"),
        (&format!("{body}{step}RAW\nxyz"), 7, "hexadecimal digits"),
        (&format!("{body}{step}SECTION ANSWER\na. IN A 1.2.3"), 7, "malformed RDATA"),
        (&format!("{body}{step}SECTION ANSWER\na. IN"), 7, "no known type"),
        (&format!("{body}{step}SECTION ANSWER\na. IN TXT \"x"), 7, "quoted string"),
        (&format!("{body}{step}SECTION ANSWER\na..b. IN A 1.2.3.4"), 7, "malformed name"),
        (&format!("{body}{step}MATCH qname"), 6, "ENTRY_END is missing"),
        (&format!("{body}RANGE_BEGIN 0 1\nADDRESS 1.2"), 5, "an address"),
    ];
    for (text, line, expected) in cases {
        let Err(error) = parse(text) else {
            assert_eq!(expected, "", "{text}");
            continue;
        };
        assert!(error.to_string().contains(expected), "{text}: {error}");
        assert_eq!(error.line, line, "{text}: {error}");
    }
}

/// Returns a message that matches [`DECKARD_REPLY`].
fn reply() -> Message {
    let record = |section, text: &str| {
        let entry = entry(Dialect::Unbound, &format!("SECTION {section}\n{text}"));
        entry.message.records[0].clone()
    };
    let message = entry(Dialect::Unbound, "REPLY QR RD RA\nSECTION QUESTION\nWWW.example.com. IN A").message;
    Message {
        records: vec![
            record("ANSWER", "www.example.com. 5 IN CNAME Host.example.com."),
            record("ANSWER", "HOST.example.com. 5 IN A 192.0.2.1"),
            record("AUTHORITY", "example.com. 5 IN NS ns.example.com."),
        ],
        ..message
    }
}

const REPLY: &str = "REPLY QR RD RA NOERROR\nSECTION QUESTION\nwww.example.com. IN A\nSECTION ANSWER\n\
    host.example.com. IN A 192.0.2.1\nwww.example.com. IN CNAME host.example.com.\n\
    SECTION AUTHORITY\nexample.com. IN NS ns.example.com.";

/// Returns the rule that `message` violates.
fn violated(dialect: Dialect, rules: &str, message: &Message) -> Option<MatchRule> {
    let entry = entry(dialect, &format!("MATCH {rules}\n{REPLY}"));
    check(&entry, dialect, message, Transport::Udp).err().map(|mismatch| mismatch.rule)
}

#[test]
fn a_reply_matches_in_any_case_and_order() {
    for dialect in [Dialect::Deckard, Dialect::Unbound] {
        assert_eq!(
            violated(dialect, "all question rcode answer opcode qname qtype subdomain", &reply()),
            None
        );
    }
    assert_eq!(
        violated(Dialect::Deckard, "flags answertypes answerrrsigs authority additional", &reply()),
        None
    );
    assert_eq!(violated(Dialect::Unbound, "all_noedns", &reply()), None);
}

/// A change of a message.
type Change = fn(&mut Message);

#[test]
fn each_rule_of_deckard_sees_its_difference() {
    let cases: [(&str, MatchRule, Change); 14] = [
        ("all", MatchRule::Opcode, |m| m.header.flags |= 0x0800),
        ("all", MatchRule::Qtype, |m| m.questions[0].rtype = Rtype::AAAA),
        ("all", MatchRule::Qtype, |m| m.questions.clear()),
        ("question", MatchRule::Qname, |m| m.questions[0].name = Name::root()),
        ("qcase", MatchRule::Qcase, |_| {}),
        ("subdomain", MatchRule::Subdomain, |m| m.questions[0].name = "example.com.".parse().unwrap()),
        ("all", MatchRule::Flags, |m| m.header.flags |= flags::AD),
        ("all", MatchRule::Rcode, |m| m.header.flags |= 2),
        ("all", MatchRule::Answer, |m| drop(m.records.remove(0))),
        ("answer", MatchRule::Answer, |m| m.records.push(m.records[0].clone())),
        ("answertypes", MatchRule::AnswerTypes, |m| drop(m.records.remove(0))),
        ("all", MatchRule::Authority, |m| drop(m.records.remove(2))),
        ("all", MatchRule::Additional, |m| m.records[2].section = Section::Additional),
        ("edns", MatchRule::Edns, |_| {}),
    ];
    for (rules, expected, change) in cases {
        let mut message = reply();
        change(&mut message);
        let violated = violated(Dialect::Deckard, rules, &message);
        let also = (expected == MatchRule::Additional).then_some(MatchRule::Authority);
        assert!(violated == Some(expected) || violated == also && also.is_some(), "{rules}: {violated:?}");
    }
    // The TTL and EDNS are not part of "all".
    let mut message = reply();
    message.records[0].ttl = 77;
    message.records.push(entry::opt_record(512, 0x8000, Vec::new()));
    assert_eq!(violated(Dialect::Deckard, "all", &message), None);
}

#[test]
fn each_rule_of_unbound_sees_its_difference() {
    let with_opt = |ttl: u32, options: &[u8]| {
        let mut message = reply();
        message.records.push(entry::opt_record(1232, ttl, options.to_vec()));
        message
    };
    let unbound = |rules, message: &Message| violated(Dialect::Unbound, rules, message);
    assert_eq!(unbound("all", &with_opt(0, &[])), Some(MatchRule::All));
    assert_eq!(unbound("all_noedns", &with_opt(0, &[])), None);
    assert_eq!(unbound("all ttl", &reply()), Some(MatchRule::All));
    assert_eq!(unbound("answer ttl", &reply()), Some(MatchRule::Answer));
    assert_eq!(unbound("DO", &with_opt(0x8000, &[])), None);
    assert_eq!(unbound("DO", &with_opt(0x4000, &[])), Some(MatchRule::DnssecOk));
    assert_eq!(unbound("CO", &with_opt(0x4000, &[])), None);
    assert_eq!(unbound("noedns", &reply()), None);
    assert_eq!(unbound("noedns", &with_opt(0, &[])), Some(MatchRule::WithoutEdns));
    assert_eq!(unbound("UDP", &reply()), None);
    assert_eq!(unbound("TCP", &reply()), Some(MatchRule::Tcp));
    assert_eq!(unbound("serial=1", &reply()), Some(MatchRule::Serial(1)));
    // The extended error is removed, so that the rest equals a message without options.
    let error = with_opt(0, &[0, 15, 0, 2, 0, 9]);
    assert_eq!(unbound("ede=9 all_noedns", &error), None);
    assert_eq!(unbound("ede=any", &error), None);
    assert_eq!(unbound("ede=8", &error), Some(MatchRule::ExtendedError(Some(8))));
    assert_eq!(unbound("ednsdata", &error), Some(MatchRule::EdnsData));
    assert_eq!(unbound("ede=9 ednsdata", &error), None);
    let cookie = with_opt(0, &[0, 10, 0, 8, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(unbound("client_cookie", &cookie), None);
    assert_eq!(unbound("server_cookie", &cookie), Some(MatchRule::ServerCookie));
    let mut other_class = reply();
    other_class.questions[0].class = Class::CH;
    assert_eq!(unbound("question", &other_class), Some(MatchRule::Question));
    assert_eq!(unbound("qname qtype", &other_class), None);
}

fn query(text: &str) -> Message {
    let mut message = entry(Dialect::Deckard, &format!("REPLY RD DO\nSECTION QUESTION\n{text}")).message;
    message.header.id = 4711;
    message
}

#[test]
fn responses_of_deckard_follow_the_query() {
    let query = query("a.WWW.example.com. IN AAAA");
    let answer = |text: &str| {
        let entry = entry(Dialect::Deckard, &format!("{text}\n{REPLY}"));
        respond(&entry, Dialect::Deckard, &query).map(|octets| Message::parse(&octets).unwrap())
    };
    // copy_id: ID, name of the question and EDNS.
    let message = answer("ADJUST copy_id").unwrap();
    assert_eq!(message.header.id, 4711);
    assert_eq!(QuestionText(&message.questions[0]).to_string(), "a.WWW.example.com. IN A");
    assert_eq!(message.opt().map(|opt| (opt.class.0, opt.ttl)), Some((1232, 0x8000)));
    assert_eq!(message.section(Section::Answer).count(), 2);
    // copy_query: the question.
    let message = answer("ADJUST copy_query").unwrap();
    assert_ne!(message.header.id, 4711);
    assert_eq!(QuestionText(&message.questions[0]).to_string(), "a.WWW.example.com. IN AAAA");
    // Neither: the message of the entry.
    let message = answer("").unwrap();
    assert_eq!(QuestionText(&message.questions[0]).to_string(), "www.example.com. IN A");
    assert_eq!(message.opt().map(|opt| (opt.class.0, opt.ttl)), Some((4096, 0)));
    assert_eq!(answer("ADJUST do_not_answer"), None);
    // A query without EDNS gets a response without EDNS.
    let mut without = query.clone();
    without.records.clear();
    let entry = entry(Dialect::Deckard, &format!("ADJUST copy_id\n{REPLY}"));
    let message = Message::parse(&respond(&entry, Dialect::Deckard, &without).unwrap()).unwrap();
    assert!(message.opt().is_none());
}

#[test]
fn raw_responses_keep_their_octets() {
    let query = query("www.example.com. IN A");
    let answer = |dialect, text: &str| respond(&entry(dialect, text), dialect, &query).unwrap();
    assert_eq!(answer(Dialect::Deckard, "RAW\n0102ff"), [1, 2, 255]);
    assert_eq!(answer(Dialect::Deckard, "ADJUST raw_id\nRAW\n0102ff"), [0x12, 0x67, 255]);
    let hex = "ADJUST copy_id\nHEX_ANSWER_BEGIN\n01 02 ff\nHEX_ANSWER_END";
    assert_eq!(answer(Dialect::Unbound, hex), [0x12, 0x67, 255]);
}

#[test]
fn a_query_without_an_entry_gets_servfail() {
    let message = Message::parse(&servfail(&query("www.example.com. IN A"))).unwrap();
    assert_eq!(message.header, Header { id: 4711, flags: flags::QR | flags::RD | 2, counts: [1, 0, 0, 1] });
}

#[test]
fn responses_of_unbound_copy_only_what_adjust_names() {
    let query = query("a.www.example.com. IN AAAA");
    let answer = |text: &str| {
        let entry = entry(Dialect::Unbound, &format!("{text}\n{REPLY}"));
        Message::parse(&respond(&entry, Dialect::Unbound, &query).unwrap()).unwrap()
    };
    let message = answer("ADJUST copy_id");
    assert_eq!((message.header.id, message.opt()), (4711, None));
    assert_eq!(QuestionText(&message.questions[0]).to_string(), "www.example.com. IN A");
    let message = answer("ADJUST copy_query");
    assert_eq!(message.header.id, 0);
    assert_eq!(QuestionText(&message.questions[0]).to_string(), "a.www.example.com. IN AAAA");
}

/// A record with a type whose RDATA has a presentation form.
fn record() -> impl Strategy<Value = Record> {
    let label = "[a-zA-Z0-9-]{1,8}";
    let owner = proptest::collection::vec(label, 0..4);
    let rdata = prop_oneof![
        any::<[u8; 4]>().prop_map(|octets| (Rtype::A, octets.to_vec())),
        any::<[u8; 16]>().prop_map(|octets| (Rtype::AAAA, octets.to_vec())),
        proptest::collection::vec(any::<u8>(), 0..40)
            .prop_map(|octets| { (Rtype::TXT, [&[octets.len() as u8][..], &octets].concat()) }),
        proptest::collection::vec(any::<u8>(), 1..40).prop_map(|octets| (Rtype(65280 + 99), octets)),
        label.prop_map(|label| (Rtype::NS, name(&format!("{label}.")).wire().to_vec())),
    ];
    let sections = prop_oneof![Just(Section::Answer), Just(Section::Authority), Just(Section::Additional)];
    (owner, rdata, 0..=0x7fff_ffff_u32, sections).prop_map(|(labels, (rtype, rdata), ttl, section)| Record {
        section,
        owner: name(&format!("{}.", labels.join("."))),
        rtype,
        class: Class::IN,
        ttl,
        rdata,
    })
}

proptest! {
    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,200}") {
        let _ = parse(&text);
    }

    #[test]
    fn keywords_in_any_order_never_panic(words in proptest::collection::vec(0..29_usize, 0..60)) {
        const WORDS: [&str; 29] = [
            "\n", "CONFIG_END", "SCENARIO_BEGIN x", "RANGE_BEGIN 0 9", "RANGE_END", "ADDRESS 192.0.2.1",
            "ENTRY_BEGIN", "ENTRY_END", "MATCH", "all", "ADJUST", "copy_id", "REPLY", "QR", "SECTION QUESTION",
            "SECTION ANSWER", ". IN A 192.0.2.1", "STEP 1 QUERY", "STEP 2 CHECK_ANSWER", "RAW", "00ff",
            "HEX_ANSWER_BEGIN", "HEX_ANSWER_END", "SCENARIO_END", "stub-addr:", "server:", "\"", ";", "\\",
        ];
        let text: Vec<&str> = words.iter().map(|index| WORDS[*index]).collect();
        let _ = parse(&text.join("\n"));
        let _ = parse(&text.join(" "));
    }

    #[test]
    fn records_are_read_as_they_are_displayed(record in record()) {
        let section = format!("{:?}", record.section).to_uppercase();
        let entry = entry(Dialect::Unbound, &format!("SECTION {section}\n{}", RecordText(&record)));
        prop_assert_eq!(&entry.message.records, &[record]);
    }
}
