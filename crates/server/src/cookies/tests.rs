//! Tests with the vectors of RFC 9018, appendix A, and of the requirements in its text.

use super::*;
use data_encoding::HEXLOWER;
use proptest::prelude::*;

const SECRET: &str = "e5e973e5a6b2a43f48e7dc849e37bfcf";

fn cookies(secrets: &[&str]) -> Cookies {
    let secrets: Vec<_> = secrets.iter().map(|digits| parse_secret(digits).expect("a secret")).collect();
    Cookies::with_secrets(secrets).expect("secrets")
}

fn hex(digits: &str) -> Vec<u8> {
    HEXLOWER.decode(digits.as_bytes()).expect("hexadecimal digits")
}

fn check(cookies: &Cookies, digits: &str, client: &str, now: u32) -> (CookieStatus, String) {
    let checked = cookies.check(Some(&hex(digits)), client.parse().expect("an address"), now);
    (checked.status, checked.reply.map(|reply| HEXLOWER.encode(&reply)).unwrap_or_default())
}

/// A.1: a client receives a server cookie.
#[test]
fn a_client_learns_a_cookie() {
    let found = check(&cookies(&[SECRET]), "2464c4abcf10c957", "198.51.100.100", 1_559_731_985);
    assert_eq!(
        found,
        (CookieStatus::ClientOnly, "2464c4abcf10c957010000005cf79f111f8130c3eee29480".to_owned())
    );
}

/// A.2: 40 minutes later, the client receives a new cookie.
#[test]
fn a_cookie_is_renewed_after_half_an_hour() {
    let cookies = cookies(&[SECRET]);
    let learned = "2464c4abcf10c957010000005cf79f111f8130c3eee29480";
    let later = |now| check(&cookies, learned, "198.51.100.100", now);
    let renewed = "2464c4abcf10c957010000005cf7a871d4a564a1442aca77";
    assert_eq!(later(1_559_734_385), (CookieStatus::Valid, renewed.to_owned()));
    assert_eq!(later(1_559_731_985 + 1800), (CookieStatus::Valid, learned.to_owned()));
    assert_ne!(later(1_559_731_985 + 1801).1, learned);
    assert_eq!(later(1_559_731_985 + 3600).0, CookieStatus::Valid);
    assert_eq!(later(1_559_731_985 + 3601).0, CookieStatus::Invalid);
    assert_eq!(later(1_559_731_985 - 300).0, CookieStatus::Valid);
    assert_eq!(later(1_559_731_985 - 301).0, CookieStatus::Invalid);
}

/// A.3: reserved octets are hashed as received. The appendix accepts this cookie when it is nearly
/// two hours old, which contradicts section 4.3.
#[test]
fn reserved_octets_are_hashed_and_not_sent_back() {
    let sent = "fc93fc62807ddb8601abcdef5cf78f71a314227b6679ebf5";
    let cookies = cookies(&[SECRET]);
    assert_eq!(check(&cookies, sent, "203.0.113.203", 1_559_727_985).0, CookieStatus::Valid);
    let renewed = "fc93fc62807ddb86010000005cf7a9acf73a7810aca2381e";
    assert_eq!(
        check(&cookies, sent, "203.0.113.203", 1_559_734_700),
        (CookieStatus::Invalid, renewed.to_owned())
    );
}

/// A.4: IPv6, and a cookie of the previous secret.
#[test]
fn a_cookie_of_the_secret_before_is_taken() {
    let (old, new) = ("dd3bdf9344b678b185a6f5cb60fca715", "445536bcd2513298075a5d379663c962");
    let sent = "22681ab97d52c298010000005cf7c57926556bd0934c72f8";
    let client = "2001:db8:220:1:59de:d0f4:8769:82b8";
    let made = "22681ab97d52c298010000005cf7c609a6bb79d16625507a";
    assert_eq!(check(&cookies(&[new, old]), sent, client, 1_559_741_961).0, CookieStatus::Valid);
    assert_eq!(
        check(&cookies(&[new]), sent, client, 1_559_741_961),
        (CookieStatus::Invalid, made.to_owned())
    );
    assert_eq!(check(&cookies(&[new]), made, client, 1_559_741_961), (CookieStatus::Valid, made.to_owned()));
}

#[test]
fn addresses_of_ipv4_in_ipv6_are_those_of_ipv4() {
    let found = check(&cookies(&[SECRET]), "2464c4abcf10c957", "::ffff:198.51.100.100", 1_559_731_985);
    assert_eq!(found.1, "2464c4abcf10c957010000005cf79f111f8130c3eee29480");
}

#[test]
fn the_random_secret_changes_at_midnight_and_cookies_outlive_it() {
    let cookies = Cookies::random().expect("random octets");
    let client = IpAddr::from([192, 0, 2, 1]);
    let midnight = 20_000 * SECRET_PERIOD_SECONDS;
    let made = |now| cookies.check(Some(&[1; 8]), client, now).reply.expect("a cookie");
    let late = made(midnight - 1);
    assert_eq!(cookies.check(Some(&late), client, midnight + 3000).status, CookieStatus::Valid);
    // A cookie with the timestamp of the next day and the hash of the previous day.
    let mut forged = made(midnight);
    let SecretSource::Random(secret) = &cookies.source else { panic!("not random") };
    let hash = HashInput::new(&[1; 8], &forged[8..16], client).hash(&secret_of_day(secret, midnight - 1));
    forged[16..].copy_from_slice(&hash.to_le_bytes());
    assert_eq!(cookies.check(Some(&forged), client, midnight).status, CookieStatus::Invalid);
    let other = Cookies::random().expect("random octets");
    assert_eq!(other.check(Some(&late), client, midnight).status, CookieStatus::Invalid);
}

#[test]
fn secrets_are_read_and_not_shown() {
    let text = format!("# first\n{SECRET}  # current\n\n DD3BDF9344B678B185A6F5CB60FCA715 \n");
    let secrets = Cookies::parse_secrets(&text).expect("secrets");
    assert_eq!(secrets[0].to_vec(), hex(SECRET));
    assert_eq!(secrets.len(), 2);
    let wrong = Cookies::parse_secrets(&format!("{SECRET}\n+5e973e5a6b2a43f48e7dc849e37bfcf\n"));
    assert_eq!(wrong, Err(SecretError::Line { line: 2 }));
    assert!(!SecretError::Line { line: 2 }.to_string().contains("5e97"));
    assert_eq!(Cookies::parse_secrets("# none\n"), Err(SecretError::Empty));
    let shown = format!("{:?}", Cookies::with_secrets(secrets));
    assert!(shown.contains("2 given") && !shown.contains("e5") && !shown.contains("229"), "{shown}");
    assert!(Cookies::new(&[]).is_none());
}

#[test]
fn cookies_of_a_wrong_length_are_malformed() {
    let cookies = cookies(&[SECRET]);
    let client = IpAddr::from([192, 0, 2, 1]);
    assert_eq!(cookies.check(None, client, 0), CookieCheck::without_reply(CookieStatus::Absent));
    for length in 0..50 {
        let checked = cookies.check(Some(&vec![1; length]), client, 0);
        let expected = match length {
            8 => CookieStatus::ClientOnly,
            // Version 1 is present, but the hash is wrong. Other lengths belong to other schemes.
            16..=40 => CookieStatus::Invalid,
            _ => CookieStatus::Malformed,
        };
        assert_eq!(checked.status, expected, "{length}");
        assert_eq!(checked.reply.is_some(), expected != CookieStatus::Malformed);
    }
}

proptest! {
    #[test]
    fn only_what_was_made_is_taken(
        client: IpAddr, other: IpAddr, now: u32, client_cookie: [u8; 8], at in 0usize..24, bit in 0u8..8, is_random: bool,
    ) {
        let cookies = if is_random { Cookies::random().expect("random octets") } else { cookies(&[SECRET]) };
        let made = cookies.check(Some(&client_cookie), client, now).reply.expect("a cookie");
        prop_assert_eq!(cookies.check(Some(&made), client, now), CookieCheck { status: CookieStatus::Valid, reply: Some(made) });
        if client.to_canonical() != other.to_canonical() {
            prop_assert_eq!(cookies.check(Some(&made), other, now).status, CookieStatus::Invalid);
        }
        let mut changed = made;
        changed[at] ^= 1 << bit;
        let checked = cookies.check(Some(&changed), client, now);
        prop_assert_eq!(checked.status, CookieStatus::Invalid);
        prop_assert_eq!(&checked.reply.expect("a cookie")[..8], &changed[..8]);
    }
}
