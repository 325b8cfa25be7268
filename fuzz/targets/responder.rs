//! Processes one message in a thread of the server: signed or unsigned, query, NOTIFY, UPDATE or
//! transfer.
//!
//! The first octet selects the transport and whether the message has a TSIG signature, valid or
//! invalid. The rest is the message.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nonesuch_authoritative::chaos::Chaos;
use nonesuch_authoritative::zones::{ServedZone, ZonePolicy, ZoneState, Zones};
use nonesuch_authoritative::{AnswerSettings, Published, Responder, ServerContext};
use nonesuch_dnssec::online::OnlineSigner;
use nonesuch_dnssec::{VerifyOptions, into_verified};
use nonesuch_net::Transport;
use nonesuch_net::{Answer, Handler as _};
use nonesuch_proto::Name;
use nonesuch_proto::message::{Header, Message, flags};
use nonesuch_server::acl::AccessList;
use nonesuch_server::cookies::Cookies;
use nonesuch_server::limits::{LimitSettings, Limits, RateSettings};
use nonesuch_server::reply_options::ReplySettings;
use nonesuch_server::tsig::{self, TsigKey, TsigKeys};
use nonesuch_zone::read::read_text;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::SystemTime;

/// Maximum number of messages of a transfer that the target checks.
const MOST_MESSAGES: usize = 8;

static SHARED: LazyLock<ServerContext> = LazyLock::new(|| {
    let zones = Zones::new();
    let served = served();
    zones.set(&name("example."), served);
    zones.set(&name("late.example."), ZoneState::NotReady(Arc::new(policy())));
    zones.set(&name("test."), ZoneState::Expired(Arc::new(policy())));
    let shared =
        ServerContext { notify_sink: Some(Arc::new(|_| true)), ..ServerContext::new(Arc::new(zones)) };
    let limits = LimitSettings { responses: Some(RateSettings::default()), ..LimitSettings::default() };
    let limits = Limits::new(&limits).unwrap_or_else(|error| panic!("{error}"));
    let report = Some(name("agent.example."));
    shared.settings.store(Arc::new(AnswerSettings {
        tsig_keys: TsigKeys::new([key(1)]).unwrap_or_else(|error| panic!("{error}")),
        cookies: Cookies::new(&[[7; 16]]),
        limits: Some(Arc::new(limits)),
        reply: ReplySettings { nsid: b"ns1".to_vec(), report_channel: report, ..ReplySettings::default() },
        counts_zone_queries: true,
        chaos: Chaos { identity: Some(b"ns1".to_vec()), version: Some(b"1".to_vec()) },
    }));
    shared
});

thread_local! {
    static RESPONDERS: RefCell<Vec<Responder>> = RefCell::new(
        [Transport::Udp, Transport::Tcp, Transport::Tls]
            .map(|transport| Responder::new(&SHARED, transport, local(), OnlineSigner::new(1 << 16, Arc::default()), 0))
            .into(),
    );
}

fn name(text: &str) -> Name {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn local() -> SocketAddr {
    ([127, 0, 0, 1], 53).into()
}

/// Returns a key with this secret. All keys have the same name; the server has only the key with
/// secret 1.
fn key(secret: u8) -> TsigKey {
    TsigKey::new(&name("key."), tsig::TsigAlgorithm::HmacSha256, &[secret; 32])
        .unwrap_or_else(|error| panic!("{error}"))
}

fn policy() -> ZonePolicy {
    let anybody = AccessList::allow_all;
    ZonePolicy {
        transfer_access: anybody(),
        notify_from: anybody(),
        is_secondary: true,
        ..ZonePolicy::default()
    }
}

fn served() -> ZoneState {
    let reading = read_text(include_bytes!("zone.txt"), Path::new("zone.txt"), None);
    let contents = reading.unwrap_or_else(|error| panic!("{error}")).contents;
    let shared = Arc::new(contents.clone());
    let verified = into_verified(contents, &VerifyOptions::default())
        .unwrap_or_else(|bad| panic!("{:?}", bad.report.faults));
    let published = Published::new(&verified).unwrap_or_else(|error| panic!("{error}"));
    ZoneState::Serving(Arc::new(ServedZone::new(published, Arc::new(policy())).with_contents(shared)))
}

fuzz_target!(|data: &[u8]| {
    let Some((&choice, message)) = data.split_first() else { return };
    let mut message = message.to_vec();
    let now = SystemTime::UNIX_EPOCH.elapsed().map_or(0, |elapsed| elapsed.as_secs());
    let is_signed = choice & 4 != 0 && message.len() > 12 && message.len() < 4000;
    let mut verifier = None;
    if is_signed {
        let secret = if choice & 8 == 0 { 1 } else { 2 };
        let signed = tsig::sign_request(&Arc::new(key(secret)), &mut message, now);
        verifier = (secret == 1).then_some(signed);
    }
    RESPONDERS.with_borrow_mut(|responders| {
        let responder = &mut responders[usize::from(choice & 3) % 3];
        let sender = ([192, 0, 2, choice], 5300).into();
        let mut out = Vec::new();
        responder.begin_batch();
        match responder.answer(&message, sender, &mut out) {
            Answer::Ready => {
                check(&message, &out);
                // A message with a good signature gets a signed response. The exception is FORMERR,
                // which may precede the check of the signature.
                if let Some(verifier) = &mut verifier
                    && out[3] & 15 != 1
                {
                    let _ = verifier.verify(&out, now);
                }
            }
            Answer::Nothing => {}
            Answer::Deferred => panic!("no records are generated online here"),
            Answer::Stream => {
                let mut stream = responder.stream().unwrap_or_else(|| panic!("no stream"));
                for _ in 0..MOST_MESSAGES {
                    out.clear();
                    if !stream.next(&mut out).unwrap_or_else(|error| panic!("{error}")) {
                        break;
                    }
                    check(&message, &out);
                }
            }
        }
        responder.end_batch();
    });
});

fn check(message: &[u8], answer: &[u8]) {
    assert!(answer.len() <= usize::from(u16::MAX));
    let response = Message::parse(answer).unwrap_or_else(|error| panic!("{error}: {answer:02x?}"));
    assert_eq!(Some(response.header.id), Header::read(message).map(|header| header.id));
    assert_ne!(response.header.flags & flags::QR, 0);
}
