//! Tests of signed and verified requests and responses, of this module and of other
//! implementations.

use super::record::{TsigRecord, TsigVariables, begin_chained_mac};
use super::*;
use data_encoding::HEXLOWER_PERMISSIVE as HEX;
use nonesuch_proto::message::{self, Header, Message};
use nonesuch_proto::{Name, NameError, Rtype};
use proptest::prelude::*;
use std::sync::Arc;

const NOON: u64 = 1_750_000_000;

fn key(name: &str, algorithm: TsigAlgorithm, secret: &[u8]) -> TsigKey {
    TsigKey::new(&name.parse().unwrap(), algorithm, secret).unwrap()
}

fn keys() -> TsigKeys {
    let of = |algorithm: TsigAlgorithm| key(&format!("{algorithm}.Keys"), algorithm, &[7; 64]);
    TsigKeys::new(TsigAlgorithm::ALL.map(of)).unwrap()
}

fn shared(algorithm: TsigAlgorithm) -> Arc<TsigKey> {
    let name: Name = format!("{algorithm}.keys").parse().unwrap();
    Arc::clone(keys().find(&name).unwrap())
}

fn query(id: u16) -> Vec<u8> {
    let mut out = Vec::new();
    message::push_query(&"example.".parse().unwrap(), Rtype::SOA, id, 0, &mut out);
    out
}

fn signed(key: &Arc<TsigKey>, now: u64) -> (Vec<u8>, ResponseVerifier) {
    let mut out = query(7);
    let verifier = sign_request(key, &mut out, now);
    (out, verifier)
}

/// Returns the error and the response for a rejected request.
fn refused(keys: &TsigKeys, request: &[u8], now: u64) -> (TsigError, Vec<u8>) {
    let refused = keys.verify(request, now).unwrap_err();
    let mut out = Vec::new();
    refused.answer(request, &[], now, &mut out);
    (refused.error(), out)
}

#[test]
fn request_and_answer_for_each_algorithm() {
    for algorithm in TsigAlgorithm::ALL {
        let (request, mut verifier) = signed(&shared(algorithm), NOON);
        let verified = keys().verify(&request, NOON + 300).unwrap().unwrap();
        assert_eq!((verified.name(), verified.octets()), (shared(algorithm).name(), query(7).len()));
        let (mut answer, mut signer) = (query(7), verified.signer());
        signer.sign(&mut answer, NOON + 5);
        assert_eq!(answer.len(), query(7).len() + signer.octets());
        assert!(Message::parse(&answer).is_ok());
        let checked = verifier.verify(&answer, NOON + 305).unwrap();
        assert_eq!(checked, CheckedMessage { end: query(7).len(), is_signed: true });
        assert_eq!(verifier.finish(), Ok(()));
    }
}

#[test]
fn what_is_not_signed_is_passed() {
    assert!(keys().verify(&query(7), NOON).unwrap().is_none());
    let (_, mut verifier) = signed(&shared(TsigAlgorithm::HmacSha256), NOON);
    assert_eq!(verifier.verify(&query(7), NOON), Err(ResponseTsigError::Unsigned));
    assert_eq!(verifier.finish(), Err(ResponseTsigError::Unsigned));
}

#[test]
fn another_secret_is_badsig_and_the_answer_is_not_signed() {
    let other = Arc::new(key("hmac-sha256.keys", TsigAlgorithm::HmacSha256, b"another"));
    let (request, mut verifier) = signed(&other, NOON);
    let (error, answer) = refused(&keys(), &request, NOON);
    let header = Header::read(&answer).unwrap();
    assert_eq!((error, header.rcode().0, header.id), (TsigError::BadSig, 9, 7));
    let record = TsigRecord::find(&answer).unwrap().unwrap();
    assert_eq!((record.mac.len(), record.error, record.original_id), (0, 16, 7));
    assert_eq!(verifier.verify(&answer, NOON), Err(ResponseTsigError::RejectedByServer(TsigError::BadSig)));
}

#[test]
fn another_name_or_algorithm_is_badkey() {
    for other in [
        key("other.keys", TsigAlgorithm::HmacSha256, &[7; 64]),
        key("hmac-sha256.keys", TsigAlgorithm::HmacSha512, &[7; 64]),
    ] {
        let (request, mut verifier) = signed(&Arc::new(other), NOON);
        let (error, answer) = refused(&keys(), &request, NOON);
        assert_eq!(error, TsigError::BadKey);
        let record = TsigRecord::find(&answer).unwrap().unwrap();
        assert_eq!((record.mac.len(), record.error), (0, 17));
        assert_eq!(
            verifier.verify(&answer, NOON),
            Err(ResponseTsigError::RejectedByServer(TsigError::BadKey))
        );
        // NSD does not sign a BADTIME response.
        let mut of_time = answer;
        let low = of_time.len() - 3;
        of_time[low] = 18;
        let found = verifier.verify(&of_time, NOON).unwrap_err();
        assert_eq!(found, ResponseTsigError::RejectedByServer(TsigError::BadTime));
        assert_eq!(
            found.to_string(),
            "the server rejected the signature of the request: BADTIME (the clocks differ: correct them)"
        );
    }
}

#[test]
fn another_time_is_badtime_and_the_answer_says_ours() {
    for now in [NOON - 301, NOON + 301, 0, u64::from(u32::MAX) * 8] {
        let (request, mut verifier) = signed(&shared(TsigAlgorithm::HmacSha384), NOON);
        let (error, answer) = refused(&keys(), &request, now);
        let record = TsigRecord::find(&answer).unwrap().unwrap();
        assert_eq!((error, record.error, record.time, record.other.len()), (TsigError::BadTime, 18, NOON, 6));
        // The response is signed: an unauthenticated BADTIME must not be accepted.
        assert_eq!(
            verifier.clone().verify(&answer, NOON),
            Err(ResponseTsigError::TimeRejectedByServer { server: now })
        );
        let mut altered = answer;
        *altered.last_mut().unwrap() ^= 1;
        assert_eq!(verifier.verify(&altered, NOON), Err(ResponseTsigError::BadSig));
    }
    assert!(keys().verify(&signed(&shared(TsigAlgorithm::HmacSha384), NOON).0, NOON - 300).is_ok());
}

/// Returns a request with a MAC truncated to `octets`.
fn truncated(key: &Arc<TsigKey>, octets: usize) -> (Vec<u8>, ResponseVerifier) {
    let mut request = query(7);
    let variables = TsigVariables { time: NOON, fudge: FUDGE_SECONDS, error: 0, other: &[] };
    let mut mac = key.begin();
    mac.update(&request);
    variables.digest(key, &mut mac);
    let tag = mac.finish();
    let code = [tag.as_ref(), &[0; 8]].concat();
    variables.push(key.name(), key.algorithm().name(), &code[..octets], &mut request);
    let mut verifier = sign_request(key, &mut query(7), NOON);
    verifier.continue_after(&code[..octets]);
    (request, verifier)
}

#[test]
fn truncated_macs_are_taken_down_to_half() {
    for algorithm in TsigAlgorithm::ALL {
        let (key, whole) = (shared(algorithm), algorithm.mac_length());
        for octets in [whole / 2, whole / 2 + 1, whole - 1, whole] {
            let verified = keys().verify(&truncated(&key, octets).0, NOON).unwrap().unwrap();
            // The response follows the truncated MAC.
            let (_, mut verifier) = truncated(&key, octets);
            let mut answer = query(7);
            verified.signer().sign(&mut answer, NOON);
            assert!(verifier.verify(&answer, NOON).is_ok());
        }
        for octets in [0, 9, 10, whole / 2 - 1, whole + 1] {
            let (error, answer) = refused(&keys(), &truncated(&key, octets).0, NOON);
            assert_eq!((error, Header::read(&answer).unwrap().rcode().0), (TsigError::Form, 1), "{octets}");
            assert!(TsigRecord::find(&answer).unwrap().is_none());
        }
    }
}

#[test]
fn macs_shorter_than_we_want_are_badtrunc() {
    let strict = TsigKeys::new([key("k", TsigAlgorithm::HmacSha256, &[7; 32]).with_min_mac(32)]).unwrap();
    let sender = Arc::clone(strict.find(&"k".parse().unwrap()).unwrap());
    let (request, mut verifier) = truncated(&sender, 31);
    let (error, answer) = refused(&strict, &request, NOON);
    assert_eq!((error, TsigRecord::find(&answer).unwrap().unwrap().error), (TsigError::BadTrunc, 22));
    assert_eq!(verifier.verify(&answer, NOON), Err(ResponseTsigError::RejectedByServer(TsigError::BadTrunc)));
    assert!(strict.verify(&truncated(&sender, 32).0, NOON).is_ok());
    // A MAC that is both wrong and too short counts as wrong.
    let (mut request, _) = truncated(&sender, 31);
    request[0] ^= 1;
    request[2] ^= 1;
    assert_eq!(refused(&strict, &request, NOON).0, TsigError::BadSig);
}

#[test]
fn the_id_may_change_on_the_way() {
    let (mut request, _) = signed(&shared(TsigAlgorithm::HmacSha256), NOON);
    request[..2].copy_from_slice(&[9, 9]);
    assert!(keys().verify(&request, NOON).unwrap().is_some());
}

#[test]
fn a_record_at_another_place_or_of_another_form_is_formerr() {
    let (request, _) = signed(&shared(TsigAlgorithm::HmacSha256), NOON);
    let at = query(7).len();
    let mut cases = Vec::new();
    // An OPT record after the TSIG record.
    let mut with_opt = request.clone();
    with_opt[11] += 1;
    with_opt.extend_from_slice(&[0, 0, 41, 4, 208, 0, 0, 0, 0, 0, 0]);
    cases.push(with_opt);
    // Two TSIG records.
    let mut twice = request.clone();
    twice[11] += 1;
    twice.extend_from_slice(&request[at..]);
    cases.push(twice);
    // A TSIG record in the answer section.
    let mut answer = request.clone();
    answer.swap(7, 11);
    cases.push(answer);
    // Another class, another TTL, and lengths that do not fit.
    let class = at + shared(TsigAlgorithm::HmacSha256).name().len() + 3;
    for (place, octet) in [(class, 1), (class + 4, 1), (class + 6, 0), (request.len() - 1, 1)] {
        let mut other = request.clone();
        other[place] = octet;
        cases.push(other);
    }
    // A truncated message, and a message with trailing data.
    cases.push(request[..request.len() - 1].to_vec());
    cases.push([&request[..], &[0]].concat());
    for case in cases {
        assert_eq!(keys().verify(&case, NOON).unwrap_err().error(), TsigError::Form, "{case:?}");
    }
    assert!(keys().verify(&request, NOON).unwrap().is_some());
}

#[test]
fn a_compressed_owner_is_read_and_digested_written_out() {
    let key = Arc::new(key("example.", TsigAlgorithm::HmacSha256, b"secret"));
    let (request, _) = signed(&key, NOON);
    let at = query(7).len();
    let compressed = [&request[..at], &[0xc0, 12], &request[at + key.name().len()..]].concat();
    let keys = TsigKeys::new([self::key("example.", TsigAlgorithm::HmacSha256, b"secret")]).unwrap();
    assert_eq!(keys.verify(&compressed, NOON).unwrap().unwrap().octets(), at);
}

/// Returns the messages of a response. Messages for which `is_unsigned` is true are not signed; the
/// MAC of the next message covers them.
fn answer_of(request: &[u8], count: usize, is_unsigned: impl Fn(usize) -> bool) -> Vec<Vec<u8>> {
    let verified = keys().verify(request, NOON).unwrap().unwrap();
    let key = Arc::clone(verified.key());
    let mut next_mac = begin_chained_mac(&key, TsigRecord::find(request).unwrap().unwrap().mac);
    let variables = TsigVariables { time: NOON, fudge: FUDGE_SECONDS, error: 0, other: &[] };
    (0..count)
        .map(|place| {
            let mut message = query(place as u16);
            next_mac.update(&message);
            if !is_unsigned(place) {
                if place == 0 {
                    variables.digest(&key, &mut next_mac)
                } else {
                    variables.digest_timers(&mut next_mac)
                }
                let tag = next_mac.clone().finish();
                next_mac = begin_chained_mac(&key, tag.as_ref());
                variables.push(key.name(), key.algorithm().name(), tag.as_ref(), &mut message);
            }
            message
        })
        .collect()
}

#[test]
fn up_to_99_messages_in_a_row_need_not_be_signed() {
    let (request, verifier) = signed(&shared(TsigAlgorithm::HmacSha256), NOON);
    let of = |every: usize, count| {
        let mut verifier = verifier.clone();
        let messages = answer_of(&request, count, |place| place % every != 0);
        let outcome: Result<Vec<CheckedMessage>, _> =
            messages.iter().map(|message| verifier.verify(message, NOON)).collect();
        outcome.and_then(|checked| {
            verifier.finish().map(|()| checked.iter().filter(|one| one.is_signed).count())
        })
    };
    assert_eq!(of(1, 5), Ok(5));
    assert_eq!(of(100, 201), Ok(3));
    assert_eq!(of(100, 200), Err(ResponseTsigError::Unsigned));
    assert_eq!(of(101, 102), Err(ResponseTsigError::TooManyUnsigned));
}

#[test]
fn our_own_answers_of_many_messages_are_signed_one_by_one() {
    let (request, mut verifier) = signed(&shared(TsigAlgorithm::HmacSha512), NOON);
    let mut signer = keys().verify(&request, NOON).unwrap().unwrap().signer();
    let mut messages: Vec<Vec<u8>> = (0..4).map(query).collect();
    messages.iter_mut().for_each(|message| signer.sign(message, NOON));
    let mut swapped = verifier.clone();
    assert!(
        messages.iter().all(|message| verifier.verify(message, NOON).is_ok_and(|checked| checked.is_signed))
    );
    assert_eq!(verifier.finish(), Ok(()));
    // The signatures also protect the order and the completeness of the messages.
    assert!(swapped.verify(&messages[0], NOON).is_ok());
    assert_eq!(swapped.verify(&messages[2], NOON), Err(ResponseTsigError::BadSig));
}

#[test]
fn an_unsigned_message_that_was_altered_spoils_the_next_signature() {
    let (request, mut verifier) = signed(&shared(TsigAlgorithm::HmacSha256), NOON);
    let mut messages = answer_of(&request, 3, |place| place == 1);
    messages[1][2] ^= 1;
    assert!(verifier.verify(&messages[0], NOON).is_ok());
    assert!(verifier.verify(&messages[1], NOON).is_ok());
    assert_eq!(verifier.verify(&messages[2], NOON), Err(ResponseTsigError::BadSig));
}

#[test]
fn keys_are_read_from_arguments() {
    let cases = [
        ("k:c2VjcmV0", Ok(("k.", TsigAlgorithm::HmacSha256))),
        ("hmac-sha512:K:c2VjcmV0", Ok(("k.", TsigAlgorithm::HmacSha512))),
        ("k:HMAC-SHA384.:c2VjcmV0", Ok(("k.", TsigAlgorithm::HmacSha384))),
        ("k", Err(TsigKeyError::Argument)),
        ("a:b:c:d", Err(TsigKeyError::Argument)),
        ("hmac-md5:k:c2VjcmV0", Err(TsigKeyError::Algorithm("hmac-md5".to_owned()))),
        ("k:***", Err(TsigKeyError::Secret("k.".parse().unwrap()))),
        (":c2VjcmV0", Err(TsigKeyError::Name { name: String::new(), error: NameError::EmptyLabel })),
        ("k:", Err(TsigKeyError::EmptySecret("k.".parse().unwrap()))),
    ];
    for (text, expected) in cases {
        match (TsigKey::from_argument(text), expected) {
            (Ok(key), Ok((name, algorithm))) => {
                assert_eq!((key.name().to_string().as_str(), key.algorithm()), (name, algorithm));
            }
            (Err(error), Err(expected)) => assert_eq!(error, expected, "{text}"),
            (found, _) => panic!("{text}: {found:?}"),
        }
    }
    assert_eq!(
        TsigKeys::new([key("K", TsigAlgorithm::HmacSha256, b"a"), key("k", TsigAlgorithm::HmacSha512, b"b")])
            .unwrap_err(),
        TsigKeyError::Duplicate("k".parse().unwrap())
    );
    assert!(!format!("{:?}", key("k", TsigAlgorithm::HmacSha256, b"secret")).contains("secret"));
}

proptest! {
    #[test]
    fn no_octet_of_a_signed_request_may_change(place in 0usize..1000, flip in 1u8..=255, sha512: bool) {
        let algorithm = if sha512 { TsigAlgorithm::HmacSha512 } else { TsigAlgorithm::HmacSha256 };
        let (request, _) = signed(&shared(algorithm), NOON);
        let place = place % request.len();
        let mut altered = request.clone();
        altered[place] ^= flip;
        let is_id = place < 2;
        // The original ID is restored, and names do not depend on letter case.
        let same_name = flip == 0x20 && request[place].is_ascii_alphabetic() && place >= query(7).len();
        let outcome = keys().verify(&altered, NOON);
        let is_taken = matches!(outcome, Ok(Some(_)));
        prop_assert_eq!(is_taken, is_id || (same_name && is_name(&request, place)), "octet {} of {:?}", place, outcome);
    }

    #[test]
    fn arbitrary_octets_never_panic(octets in proptest::collection::vec(any::<u8>(), 0..300)) {
        if let Err(refused) = keys().verify(&octets, NOON) {
            let mut out = Vec::new();
            refused.answer(&octets, &[], NOON, &mut out);
        }
        let (_, mut verifier) = signed(&shared(TsigAlgorithm::HmacSha256), NOON);
        prop_assert!(verifier.verify(&octets, NOON).is_err());
    }
}

/// Whether this octet of a signed request belongs to a name of the TSIG record.
fn is_name(request: &[u8], place: usize) -> bool {
    let record = TsigRecord::find(request).unwrap().unwrap();
    let owner = record.offset..record.offset + record.key.wire().len();
    let algorithm = owner.end + 10..owner.end + 10 + record.algorithm.len();
    owner.contains(&place) || algorithm.contains(&place)
}

mod foreign;
