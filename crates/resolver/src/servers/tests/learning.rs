use super::*;

/// Returns a response without OPT.
fn plain(rcode: Rcode) -> ResponseFacts<'static> {
    ResponseFacts { rcode, has_opt: false, ..GOOD }
}

/// Returns the cookie option of a response to `attempt`, with `server` as the server cookie.
fn cookie_option(attempt: &Attempt, server: &[u8]) -> Vec<u8> {
    let cookie = attempt.cookie.expect("a cookie");
    [&cookie.option_data()[..8], server].concat()
}

/// Sends a query to `server`, which answers with the server cookie `cookie`.
fn learn_cookie(lab: &Lab, server: SocketAddr, cookie: &[u8]) {
    let attempt = lab.begin(server);
    let option = cookie_option(&attempt, cookie);
    let response = ResponseFacts { cookie: Some(&option), ..GOOD };
    assert_eq!(lab.table.answered(attempt, &response, lab.now), Next::Use);
}

/// Returns the server cookie that the next query to `server` has.
fn server_cookie(lab: &Lab, server: SocketAddr) -> Vec<u8> {
    lab.begin(server).cookie.expect("a cookie").option_data()[8..].to_vec()
}

#[test]
fn a_server_that_rejects_edns_and_answers_without_it_gets_none_for_fifteen_minutes() {
    for rcode in [Rcode::FORMERR, Rcode::NOTIMP] {
        let mut lab = Lab::new();
        let next = lab.table.answered(lab.begin(server(1)), &plain(rcode), lab.now);
        assert_eq!(next, Next::Repeat(Repeat::WithoutEdns));
        let attempt = lab.repeat(server(1), next);
        assert!(attempt.payload.is_none() && attempt.cookie.is_none());
        assert_eq!(lab.table.answered(attempt, &plain(Rcode::NXDOMAIN), lab.now), Next::Use);
        assert!(lab.begin(server(1)).payload.is_none());
        assert!(lab.begin(server(2)).payload.is_some());
        lab.pass(900_000);
        assert!(lab.begin(server(1)).payload.is_some());
    }
}

#[test]
fn an_error_with_and_without_edns_says_nothing_about_edns() {
    let lab = Lab::new();
    let next = lab.table.answered(lab.begin(server(1)), &plain(Rcode::FORMERR), lab.now);
    let attempt = lab.repeat(server(1), next);
    assert_eq!(lab.table.answered(attempt, &plain(Rcode::FORMERR), lab.now), Next::Use);
    assert!(lab.begin(server(1)).payload.is_some());
}

#[test]
fn a_server_that_supports_edns_keeps_it_after_an_error() {
    let mut lab = Lab::new();
    lab.exchange(server(1), 10);
    for rcode in [Rcode::FORMERR, Rcode::NOTIMP, Rcode::BADVERS] {
        assert_eq!(lab.table.answered(lab.begin(server(1)), &plain(rcode), lab.now), Next::Use);
    }
    assert!(lab.begin(server(1)).payload.is_some());
    // Unless it sends no OPT for a long time, because it has been replaced.
    lab.pass(600_000);
    let _ = lab.table.answered(lab.begin(server(1)), &plain(Rcode::NOERROR), lab.now);
    lab.pass(600_000);
    let next = lab.table.answered(lab.begin(server(1)), &plain(Rcode::FORMERR), lab.now);
    assert_eq!(next, Next::Repeat(Repeat::WithoutEdns));
}

#[test]
fn an_opt_record_in_an_error_tells_what_the_server_rejects() {
    let lab = Lab::new();
    let answer = |number, rcode| {
        lab.table.answered(lab.begin(server(number)), &ResponseFacts { rcode, ..GOOD }, lab.now)
    };
    // The type, not EDNS.
    assert_eq!(answer(1, Rcode::NOTIMP), Next::Use);
    // An option, or the version.
    assert_eq!(answer(2, Rcode::FORMERR), Next::Repeat(Repeat::WithoutEdns));
    assert_eq!(answer(3, Rcode::BADVERS), Next::Repeat(Repeat::WithoutEdns));
    // The name.
    assert_eq!(answer(4, Rcode::SERVFAIL), Next::Use);
}

#[test]
fn timeouts_do_not_remove_edns_but_make_the_payload_small() {
    let mut lab = Lab::new();
    let purpose = lab.purpose("example.");
    let payloads = [(); 4].map(|()| {
        let payload = lab.begin(server(1)).payload;
        lab.lose(server(1), purpose);
        payload
    });
    assert_eq!(payloads, [1232, 1232, 512, 512].map(Some));
}

#[test]
fn a_server_cookie_is_returned_until_the_client_cookie_changes() {
    let mut lab = Lab::new();
    assert!(server_cookie(&lab, server(1)).is_empty());
    learn_cookie(&lab, server(1), &[5; 16]);
    assert_eq!(server_cookie(&lab, server(1)), [5; 16]);
    assert!(server_cookie(&lab, server(2)).is_empty());
    learn_cookie(&lab, server(1), &[6; 24]);
    assert_eq!(server_cookie(&lab, server(1)), [6; 24]);
    lab.now.unix += 86_400;
    assert!(server_cookie(&lab, server(1)).is_empty());
}

#[test]
fn a_response_with_another_client_cookie_is_discarded_and_teaches_nothing() {
    let lab = Lab::new();
    let attempt = lab.begin(server(1));
    let mut option = cookie_option(&attempt, &[5; 16]);
    assert!(attempt.matches_cookie(Some(&option)) && attempt.matches_cookie(None));
    option[0] ^= 1;
    assert!(!attempt.matches_cookie(Some(&option)));
    let _ = lab.table.answered(attempt, &ResponseFacts { cookie: Some(&option), ..GOOD }, lab.now);
    assert!(server_cookie(&lab, server(1)).is_empty());
}

#[test]
fn badcookie_repeats_the_query_with_the_new_cookie_and_then_over_tcp() {
    let lab = Lab::new();
    let mut attempt = lab.begin(server(1));
    for (cookie, expected) in [(5, Repeat::WithCookie), (6, Repeat::OverTcp)] {
        let option = cookie_option(&attempt, &[cookie; 16]);
        let response = ResponseFacts { rcode: Rcode::BADCOOKIE, cookie: Some(&option), ..GOOD };
        let next = lab.table.answered(attempt, &response, lab.now);
        assert_eq!(next, Next::Repeat(expected));
        attempt = lab.repeat(server(1), next);
        assert_eq!(attempt.cookie.expect("a cookie").option_data()[8..], [cookie; 16]);
    }
    assert_eq!(attempt.transport, Transport::Tcp);
    let option = cookie_option(&attempt, &[7; 16]);
    let response = ResponseFacts { rcode: Rcode::BADCOOKIE, cookie: Some(&option), ..GOOD };
    // There is nothing left to try.
    assert_eq!(lab.table.answered(attempt, &response, lab.now), Next::Use);
    assert_eq!(lab.begin(server(1)).transport, Transport::Tcp);
}

#[test]
fn badcookie_without_a_server_cookie_leads_to_tcp() {
    let lab = Lab::new();
    let response = ResponseFacts { rcode: Rcode::BADCOOKIE, cookie: None, ..GOOD };
    let next = lab.table.answered(lab.begin(server(1)), &response, lab.now);
    assert_eq!(next, Next::Repeat(Repeat::OverTcp));
}

#[test]
fn a_response_that_lacks_an_expected_cookie_is_confirmed_over_tcp() {
    let mut lab = Lab::new();
    learn_cookie(&lab, server(1), &[5; 16]);
    let next = lab.table.answered(lab.begin(server(1)), &GOOD, lab.now);
    assert_eq!(next, Next::Repeat(Repeat::OverTcp));
    let attempt = lab.repeat(server(1), next);
    assert_eq!(attempt.transport, Transport::Tcp);
    // The server sends no cookies any more.
    assert_eq!(lab.table.answered(attempt, &GOOD, lab.now), Next::Use);
    assert!(server_cookie(&lab, server(1)).is_empty());
    lab.exchange(server(1), 10);
}

#[test]
fn a_forged_error_does_not_remove_edns_from_a_server_with_cookies() {
    let lab = Lab::new();
    learn_cookie(&lab, server(1), &[5; 16]);
    let next = lab.table.answered(lab.begin(server(1)), &plain(Rcode::FORMERR), lab.now);
    assert_eq!(next, Next::Repeat(Repeat::OverTcp));
}

#[test]
fn case_and_tcp_are_remembered_for_fifteen_minutes() {
    let mut lab = Lab::new();
    lab.table.mark_changes_case(server(1), lab.now);
    lab.table.mark_requires_tcp(server(1), lab.now);
    let attempt = lab.begin(server(1));
    assert_eq!((attempt.copies_case, attempt.transport), (false, Transport::Tcp));
    lab.pass(900_000);
    let attempt = lab.begin(server(1));
    assert_eq!((attempt.copies_case, attempt.transport), (true, Transport::Udp));
}

/// A response that does not fit into a datagram.
const LARGE: ResponseFacts<'_> = ResponseFacts { octets: 1233, ..GOOD };

/// Asks over TCP, as after a truncated response.
fn repeat_over_tcp(lab: &Lab, response: &ResponseFacts<'_>) {
    let purpose = Purpose { transport: Transport::Tcp, ..lab.purpose("example.") };
    let attempt = lab.table.begin(server(1), purpose, None, lab.now).expect("an attempt");
    assert!(!attempt.can_use_udp());
    let _ = lab.table.answered(attempt, response, lab.now);
}

#[test]
fn after_a_large_response_fifteen_queries_go_over_tcp_at_once() {
    let lab = Lab::new();
    repeat_over_tcp(&lab, &GOOD);
    assert_eq!(lab.begin(server(1)).transport, Transport::Udp);
    repeat_over_tcp(&lab, &LARGE);
    for _ in 0..15 {
        let attempt = lab.begin(server(1));
        assert_eq!((attempt.transport, attempt.can_use_udp()), (Transport::Tcp, true));
        let _ = lab.table.answered(attempt, &LARGE, lab.now);
    }
    assert_eq!(lab.begin(server(1)).transport, Transport::Udp);
    assert_eq!(lab.begin(server(2)).transport, Transport::Udp);
}

#[test]
fn a_small_response_and_a_failure_over_tcp_end_tcp_at_once() {
    let lab = Lab::new();
    let ends: [fn(&Lab, Attempt); 3] = [
        |lab, attempt| assert_eq!(lab.table.answered(attempt, &GOOD, lab.now), Next::Use),
        |lab, attempt| lab.table.timed_out(attempt, lab.now),
        |lab, attempt| lab.table.failed(attempt, SendFailure::Refused, lab.now),
    ];
    for end in ends {
        repeat_over_tcp(&lab, &LARGE);
        end(&lab, lab.begin(server(1)));
        assert_eq!(lab.begin(server(1)).transport, Transport::Udp);
    }
}

#[test]
fn a_query_over_tcp_at_once_does_not_wait_as_long_as_for_a_connection() {
    let mut lab = Lab::new();
    (0..50).for_each(|_| lab.exchange(server(1), 100));
    repeat_over_tcp(&lab, &LARGE);
    let timeout = lab.begin(server(1)).timeout.as_millis();
    assert!((315..=345).contains(&timeout), "{timeout}");
}

#[test]
fn output_shows_neither_cookies_nor_secrets() {
    let lab = Lab::new();
    let attempt = lab.begin(server(1));
    let cookie = attempt.cookie.expect("a cookie");
    let output = format!("{attempt:?} {cookie:?} {:?}", lab.table);
    assert!(!output.contains("octets: [") && !output.contains("3, 3"), "{output}");
}
