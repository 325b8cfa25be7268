//! Tests with messages of BIND and Knot DNS.

use super::*;

const SECRET: &[u8] = b"01234567890123456789012345678901";

/// A line of the file: the program, the request and the response.
fn vector(who: &str) -> (Vec<u8>, Vec<u8>) {
    let lines = include_str!("vectors.txt").lines();
    let line = lines.map(|line| line.split(' ').collect::<Vec<_>>()).find(|fields| fields[0] == who).unwrap();
    (HEX.decode(line[1].as_bytes()).unwrap(), HEX.decode(line[2].trim_end_matches('-').as_bytes()).unwrap())
}

fn transfer_key(algorithm: TsigAlgorithm) -> TsigKeys {
    TsigKeys::new([key("transfer.example", algorithm, SECRET)]).unwrap()
}

/// Returns the result of a client with `key` for the response to a request that it sent.
fn verify_answer(
    key: &Arc<TsigKey>,
    request: &[u8],
    answer: &[u8],
) -> Result<CheckedMessage, ResponseTsigError> {
    let record = TsigRecord::find(request).unwrap().unwrap();
    let mut verifier = sign_request(key, &mut request.to_vec(), record.time);
    verifier.continue_after(record.mac);
    verifier.verify(answer, record.time)
}

#[test]
fn requests_and_answers_of_bind_and_knot_are_verified() {
    let cases = [
        ("dig-named-sha256", TsigAlgorithm::HmacSha256),
        ("kdig-knotd-sha512", TsigAlgorithm::HmacSha512),
        ("dig-sha384", TsigAlgorithm::HmacSha384),
        ("dig-named-sha256-160", TsigAlgorithm::HmacSha256),
    ];
    for (who, algorithm) in cases {
        let (request, answer) = vector(who);
        let record = TsigRecord::find(&request).unwrap().unwrap();
        let keys = transfer_key(algorithm);
        let verified = keys.verify(&request, record.time).unwrap().unwrap();
        assert_eq!(verified.octets(), record.offset, "{who}");
        match (who, verify_answer(verified.key(), &request, &answer)) {
            // named is configured to accept only full MACs for the key. It signs its rejection.
            ("dig-named-sha256-160", outcome) => {
                assert_eq!(outcome, Err(ResponseTsigError::RejectedByServer(TsigError::BadTrunc)));
            }
            ("dig-sha384", _) => assert!(answer.is_empty()),
            (_, outcome) => assert!(outcome.unwrap().is_signed, "{who}"),
        }
        assert_eq!(keys.verify(&request, record.time + 301).unwrap_err().error(), TsigError::BadTime);
        let other = TsigKeys::new([key("transfer.example", algorithm, b"another")]).unwrap();
        assert_eq!(other.verify(&request, record.time).unwrap_err().error(), TsigError::BadSig);
    }
}

/// This module generates the same octets for the same request.
#[test]
fn requests_are_signed_as_bind_and_knot_sign_them() {
    for (who, algorithm) in
        [("kdig-knotd-sha512", TsigAlgorithm::HmacSha512), ("dig-sha384", TsigAlgorithm::HmacSha384)]
    {
        let (request, _) = vector(who);
        let record = TsigRecord::find(&request).unwrap().unwrap();
        let mut ours = request[..record.offset].to_vec();
        ours[11] -= 1;
        let keys = transfer_key(algorithm);
        sign_request(keys.find(&record.key).unwrap(), &mut ours, record.time);
        assert_eq!(ours, request, "{who}");
    }
}

#[test]
fn what_named_says_of_a_key_that_it_does_not_know_is_understood_and_said_too() {
    let (request, answer) = vector("dig-named-badkey");
    let sender = Arc::new(key("other.example", TsigAlgorithm::HmacSha256, SECRET));
    assert_eq!(
        verify_answer(&sender, &request, &answer),
        Err(ResponseTsigError::RejectedByServer(TsigError::BadKey))
    );
    let (error, ours) = refused(&transfer_key(TsigAlgorithm::HmacSha256), &request, NOON);
    assert_eq!(error, TsigError::BadKey);
    assert_eq!(
        verify_answer(&sender, &request, &ours),
        Err(ResponseTsigError::RejectedByServer(TsigError::BadKey))
    );
}
