//! Names are compared without regard to case (RFC 4343 §3): the letter case of a message does not
//! change its answer.

use super::responder::{context, responder, send_message};
use super::zones::serving;
use super::*;
use crate::AnswerSettings;
use crate::chaos::Chaos;
use crate::responder::{Responder, ServerContext};
use crate::zones::{ZonePolicy, ZoneState};
use nonesuch_proto::message::Header;
use nonesuch_secondary::notify::ReceivedNotify;
use nonesuch_server::acl::AccessList;
use nonesuch_server::clock::seconds_now;
use nonesuch_server::tsig::{TsigKey, TsigKeys, sign_request};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

const ZONE: &str = "$ORIGIN Example.\n$TTL 60\n@ SOA Ns hostmaster 1 1 1 1 30\n@ NS Ns\nNs A 192.0.2.1\n\
    Host A 192.0.2.2\nalias CNAME HOST\n*.Wild MX 1 hOst\nDn DNAME wild\ncut NS ns.Cut\nNS.cut A 192.0.2.3\n\
    a.ent TXT x\n";
const QNAMES: [&str; 12] = [
    "example.",
    "host.example.",
    "alias.example.",
    "x.wild.example.",
    "*.wild.example.",
    "y.dn.example.",
    "www.cut.example.",
    "ent.example.",
    "none.example.",
    "b.a.ent.example.",
    "elsewhere.",
    "version.bind.",
];

/// Returns `name` with changed case for each letter at a position whose bit in `flips` is set.
fn with_flipped_case(name: &Name, flips: u64) -> Name {
    let text = name.to_string();
    let letters = text.bytes().enumerate().map(|(index, octet)| match flips >> (index % 64) & 1 {
        1 => char::from(octet).to_ascii_uppercase(),
        _ => char::from(octet),
    });
    letters.collect::<String>().parse().unwrap()
}

/// Returns octets with all letters in lower case, for comparison.
fn to_lower_case(octets: &[u8]) -> Vec<u8> {
    octets.to_ascii_lowercase()
}

fn cases(test: impl Fn(u64, u64) -> Result<(), TestCaseError>) {
    let config = Config { cases: 64, failure_persistence: None, ..Config::default() };
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]);
    let mut runner = TestRunner::new_with_rng(config, rng);
    runner.run(&(any::<u64>(), any::<u64>()), |(a, b)| test(a, b)).unwrap();
}

/// Returns a server with a zone in each state, with a key and with answers in class CH.
fn server() -> (ServerContext, Arc<Mutex<Vec<ReceivedNotify>>>) {
    let secondary = ZonePolicy {
        is_secondary: true,
        transfer_access: AccessList::new(vec!["key:Transfer".parse().unwrap()]),
        notify_from: AccessList::new(vec!["192.0.2.0/24 key:traNsfer".parse().unwrap()]),
        query_access: Some(AccessList::new(vec!["192.0.2.0/24".parse().unwrap()])),
        ..ZonePolicy::default()
    };
    let mut context = context(&[
        ("Example.", serving("example.", 1, ZonePolicy::default())),
        ("Copy.test.", serving("copy.test.", 1, secondary.clone())),
        ("late.test.", ZoneState::NotReady(secondary.into())),
    ]);
    let key = TsigKey::from_argument("hmac-sha256:tRansfer:c2VjcmV0").unwrap();
    let settings = AnswerSettings {
        tsig_keys: TsigKeys::new([key]).unwrap(),
        chaos: Chaos { version: Some(b"1".to_vec()), ..Chaos::default() },
        ..AnswerSettings::default()
    };
    context.settings.store(settings.into());
    let taken: Arc<Mutex<Vec<ReceivedNotify>>> = Arc::default();
    let list = Arc::clone(&taken);
    context.notify_sink = Some(Arc::new(move |notified| {
        list.lock().unwrap().push(notified);
        true
    }));
    (context, taken)
}

#[test]
fn letter_case_changes_no_answer_with_any_denial_mechanism() {
    for setup in SIGNINGS.map(SigningSetup::new).into_iter().chain(SigningSetup::all_online()) {
        let zone = Zone::read(ZONE, "example.", &setup);
        cases(|index, flips| {
            let qname = name(QNAMES[index as usize % QNAMES.len()]);
            let qtype = [Rtype::A, Rtype::MX, Rtype::NS, Rtype::NSEC, Rtype::ANY][flips as usize % 5];
            let opt = Some((1232, flips & 64 != 0));
            let sent = |qname: &Name| zone.send(&query(qname, qtype, opt), Transport::Tcp).unwrap();
            prop_assert_eq!(
                to_lower_case(&sent(&qname)),
                to_lower_case(&sent(&with_flipped_case(&qname, flips)))
            );
            Ok(())
        });
    }
}

#[test]
fn letter_case_changes_no_answer_to_queries_transfers_and_class_ch() {
    let (context, _) = server();
    let of = |transport| std::cell::RefCell::new(responder(&context, transport));
    let (udp, tcp) = (of(Transport::Udp), of(Transport::Tcp));
    let said = |responder: &mut Responder, message: &[u8]| {
        send_message(responder, message).map(|octets| to_lower_case(&octets))
    };
    cases(|index, flips| {
        let qname =
            ["www.example.", "example.", "www.copy.test.", "late.test.", "version.bind.", "id.server."]
                [index as usize % 6];
        let qtype = [Rtype::A, Rtype::SOA, Rtype::TXT, Rtype::AXFR, Rtype::DS][flips as usize % 5];
        let compose = |qname: &Name| {
            let mut message = query(qname, qtype, None);
            let class = message.len() - 1;
            message[class] = if qtype == Rtype::TXT { 3 } else { 1 };
            message
        };
        let (small, large) = (name(qname), with_flipped_case(&name(qname), flips));
        for responder in [&udp, &tcp] {
            let responder = &mut *responder.borrow_mut();
            prop_assert_eq!(said(responder, &compose(&small)), said(responder, &compose(&large)));
        }
        Ok(())
    });
}

/// RFC 1996 §3: the zone of a NOTIFY and its hint, the zone of an UPDATE, and the key that signs
/// each of them.
#[test]
fn notify_and_update_find_their_zone_and_their_key() {
    let (context, taken) = server();
    let responder = std::cell::RefCell::new(responder(&context, Transport::Udp));
    cases(|index, flips| {
        let zone = ["copy.test.", "late.test.", "example.", "other."][index as usize % 4];
        let large = with_flipped_case(&name(zone), flips);
        let key = format!("hmac-sha256:{}:c2VjcmV0", with_flipped_case(&name("transfer."), flips >> 20));
        for (opcode, is_signed) in [(4u16, true), (4, false), (5, true)] {
            let mut message = query(&large, Rtype::SOA, None);
            message[2..4].copy_from_slice(&(opcode << 11).to_be_bytes());
            if is_signed {
                let key = Arc::new(TsigKey::from_argument(&key).unwrap());
                sign_request(&key, &mut message, seconds_now());
            }
            let answer = send_message(&mut responder.borrow_mut(), &message).unwrap();
            let expected = match (zone, opcode, is_signed) {
                ("other.", ..) | ("example.", 4, _) => 9,
                (_, 4, true) => 0,
                _ => 5,
            };
            prop_assert_eq!(Header::read(&answer).unwrap().rcode().0, expected, "{} {}", large, opcode);
            let taken = std::mem::take(&mut *taken.lock().unwrap());
            let zones: Vec<String> = taken.iter().map(|notified| notified.apex.to_string()).collect();
            let is_taken = expected == 0;
            prop_assert_eq!(zones, if is_taken { vec![zone.to_owned()] } else { Vec::new() });
        }
        Ok(())
    });
}
