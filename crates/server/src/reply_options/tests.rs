//! Tests of the options in responses to given options in queries.

use super::*;
use crate::extended_errors::ExtendedError;
use nonesuch_proto::edns::{CookieOption, Options, push_opt, read_extended_error, read_report_channel};
use proptest::prelude::*;

const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
const NOW: u32 = 1_750_000_000;

fn settings() -> ReplySettings {
    ReplySettings {
        nsid: b"site 7".to_vec(),
        keepalive: 300,
        report_channel: Some("agent.example.".parse().expect("a name")),
        ..ReplySettings::default()
    }
}

fn cookies() -> Cookies {
    Cookies::new(&[[7; 16]]).expect("a secret")
}

fn query(options: &[(u16, &[u8])]) -> Vec<u8> {
    let mut rdata = Vec::new();
    options.iter().for_each(|(code, data)| edns::push_option(*code, &[data], &mut rdata));
    rdata
}

fn read(
    rdata: &[u8],
    transport: Transport,
    settings: &ReplySettings,
) -> Result<ReplyOptions, MalformedCookie> {
    let opt = Opt::from_parts(1232, 0, rdata).expect("well-formed");
    ReplyOptions::read(&opt, transport, settings, Some(&cookies()), CLIENT, NOW)
}

/// Writes a message of `before` octets and OPT with the options. Returns the contents of OPT.
fn written(
    options: &ReplyOptions,
    settings: &ReplySettings,
    error: Option<ExtendedError>,
    (before, limit, behind): (usize, usize, usize),
) -> (Vec<(u16, Vec<u8>)>, usize) {
    let mut out = vec![0xee; before];
    push_opt(1232, 0, 0, &mut out);
    options.push(settings, error, limit, behind, &mut out);
    let rdata = &out[before + OPT_OCTETS..];
    assert_eq!(out[before + OPT_OCTETS - 2..before + OPT_OCTETS], (rdata.len() as u16).to_be_bytes());
    let mut walk = Options::new(rdata);
    let found = walk.by_ref().map(|(code, data)| (code, data.to_vec())).collect();
    assert!(walk.is_at_end());
    (found, out.len())
}

#[test]
fn a_query_without_options_gets_none() {
    let plain = ReplySettings::default();
    let options = read(&[], Transport::Tls, &plain).expect("well-formed");
    assert_eq!((options, options.required_octets(&plain)), (ReplyOptions::NONE, 0));
    assert_eq!(written(&options, &plain, None, (50, 1232, 0)), (Vec::new(), 50 + OPT_OCTETS));
}

#[test]
fn what_is_asked_for_is_given() {
    let settings = settings();
    let rdata = query(&[
        (edns::NSID, b""),
        (edns::COOKIE, &[3; 8]),
        (edns::KEEPALIVE, b""),
        (edns::CLIENT_SUBNET, &[0; 4]),
    ]);
    let over_udp = read(&rdata, Transport::Udp, &settings).expect("well-formed");
    assert_eq!(over_udp.cookie_status(), CookieStatus::ClientOnly);
    assert_eq!(over_udp.required_octets(&settings), 4 + 6 + 4 + 24);
    let (found, octets) = written(&over_udp, &settings, None, (50, 1232, 0));
    let codes: Vec<u16> = found.iter().map(|(code, _)| *code).collect();
    assert_eq!(codes, [edns::NSID, edns::COOKIE, edns::REPORT_CHANNEL]);
    assert_eq!(octets, 50 + OPT_OCTETS + over_udp.required_octets(&settings) + 4 + 15);
    assert_eq!(found[0].1, b"site 7");
    let cookie = CookieOption::read(&found[1].1).expect("a cookie");
    assert_eq!((cookie.client, cookie.server.len()), (&[3; 8], 16));
    assert_eq!(read_report_channel(&found[2].1), settings.report_channel.as_ref().map(Name::view));
    let again = read(&query(&[(edns::COOKIE, &found[1].1)]), Transport::Udp, &settings).expect("well-formed");
    assert_eq!(again.cookie_status(), CookieStatus::Valid);
    let over_tcp = read(&rdata, Transport::Tcp, &settings).expect("well-formed");
    let (found, _) = written(&over_tcp, &settings, None, (50, 65_535, 0));
    assert_eq!(found[2], (edns::KEEPALIVE, 300u16.to_be_bytes().to_vec()));
}

#[test]
fn what_is_not_configured_is_not_given() {
    let plain = ReplySettings { padding_block: 0, ..ReplySettings::default() };
    let rdata = query(&[(edns::NSID, b""), (edns::COOKIE, &[3; 8]), (edns::PADDING, &[0; 9])]);
    let opt = Opt::from_parts(1232, 0, &rdata).expect("well-formed");
    let options = ReplyOptions::read(&opt, Transport::Tls, &plain, None, CLIENT, NOW);
    assert_eq!(options, Ok(ReplyOptions::NONE));
}

/// RFC 7828 §3.2.2: a client closes the connection after a timeout of 0.
#[test]
fn settings_without_options_send_no_keepalive_timeout() {
    let rdata = query(&[(edns::KEEPALIVE, b"")]);
    for transport in [Transport::Tcp, Transport::Tls] {
        assert_eq!(read(&rdata, transport, &ReplySettings::NONE), Ok(ReplyOptions::NONE));
    }
}

#[test]
fn malformed_cookies_are_refused_where_cookies_are_looked_at() {
    let rdata = query(&[(edns::COOKIE, &[3; 9])]);
    assert_eq!(read(&rdata, Transport::Udp, &settings()), Err(MalformedCookie));
    // RFC 7873 §5.2: a server without cookies ignores the option.
    let opt = Opt::from_parts(1232, 0, &rdata).expect("well-formed");
    assert!(ReplyOptions::read(&opt, Transport::Udp, &settings(), None, CLIENT, NOW).is_ok());
}

#[test]
fn of_an_option_that_comes_twice_the_first_counts() {
    let rdata = query(&[(edns::COOKIE, &[3; 8]), (edns::COOKIE, &[3; 9])]);
    let options = read(&rdata, Transport::Udp, &settings()).expect("well-formed");
    assert_eq!(options.cookie_status(), CookieStatus::ClientOnly);
}

#[test]
fn padding_is_for_tls_alone() {
    let rdata = query(&[(edns::PADDING, &[0; 9])]);
    let plain = ReplySettings::default();
    for transport in [Transport::Udp, Transport::Tcp] {
        assert_eq!(read(&rdata, transport, &plain), Ok(ReplyOptions::NONE));
    }
    let options = read(&rdata, Transport::Tls, &plain).expect("well-formed");
    for (before, behind, total) in
        [(100, 0, 468), (453, 0, 468), (454, 0, 936), (100, 90, 468), (1000, 0, 1404)]
    {
        let (found, octets) = written(&options, &plain, None, (before, 65_535, behind));
        assert_eq!((found.len(), octets + behind), (1, total), "{before} {behind}");
        assert!(found[0].1.iter().all(|octet| *octet == 0));
    }
    // Near the maximum message size, there is no room for a complete block, or for any option.
    assert_eq!(written(&options, &plain, None, (65_510, 65_535, 0)).1, 65_535);
    assert_eq!(written(&options, &plain, None, (65_522, 65_535, 0)).0, []);
}

/// RFC 7314 §2, §3: an empty option is a request, and gets a response if the expiry time is known.
#[test]
fn what_is_left_to_a_zone_is_told_where_it_is_asked() {
    let plain = ReplySettings::default();
    for (data, is_asked) in [(&b""[..], true), (&[0; 4], false), (&[0; 3], false)] {
        let options = read(&query(&[(edns::EXPIRE, data)]), Transport::Udp, &plain).expect("well-formed");
        assert_eq!(options.wants_expire(), is_asked);
        assert_eq!(options.required_octets(&plain), 0);
        assert_eq!(written(&options, &plain, None, (50, 1232, 0)).0, []);
        let told = options.with_expire(Some(0x0001_0203));
        let (found, octets) = written(&told, &plain, None, (50, 1232, 0));
        let expected = is_asked.then(|| (edns::EXPIRE, vec![0, 1, 2, 3]));
        assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
        assert_eq!(octets, 50 + OPT_OCTETS + told.required_octets(&plain));
        assert_eq!(told.with_expire(None), options);
    }
}

#[test]
fn an_error_goes_in_as_far_as_it_fits() {
    let error = ExtendedError::OVER_BUDGET;
    let plain = ReplySettings::default();
    let whole = 6 + error.text.len();
    for (room, expected) in [(whole, Some(error.text)), (whole - 1, Some("")), (6, Some("")), (5, None)] {
        let (found, octets) =
            written(&ReplyOptions::NONE, &plain, Some(error), (50, 50 + OPT_OCTETS + room, 0));
        let text = found.first().map(|(_, data)| read_extended_error(data).expect("well-formed"));
        assert_eq!(text, expected.map(|text| (0, text.as_bytes())));
        assert!(octets <= 50 + OPT_OCTETS + room);
    }
}

#[test]
fn settings_are_checked() {
    assert_eq!(settings().check(), Ok(()));
    let long = ReplySettings { nsid: vec![1; 129], ..settings() };
    assert_eq!(long.check(), Err(ReplySettingsError::Nsid { found: 129 }));
    let root = ReplySettings { report_channel: Some(Name::root()), ..settings() };
    assert_eq!(root.check(), Err(ReplySettingsError::ReportChannel));
}

proptest! {
    /// For any options, the required options fit into the reserved room, and the message never
    /// exceeds the limit.
    #[test]
    fn limits_hold(
        list in proptest::collection::vec((0u16..20, proptest::collection::vec(any::<u8>(), 0..41)), 0..6),
        transport in prop::sample::select(vec![Transport::Udp, Transport::Tcp, Transport::Tls]),
        before in 12usize..1300, extra in 0usize..600, behind in 0usize..100, has_error: bool, is_plain: bool,
        left in any::<Option<u32>>(),
    ) {
        let settings = if is_plain { ReplySettings::default() } else { settings() };
        let options: Vec<(u16, &[u8])> = list.iter().map(|(code, data)| (*code, &data[..])).collect();
        let rdata = query(&options);
        let Ok(options) = read(&rdata, transport, &settings) else { return Ok(()) };
        let options = options.with_expire(left);
        let least = before + OPT_OCTETS + options.required_octets(&settings) + behind;
        let error = has_error.then_some(ExtendedError::OVER_BUDGET);
        let (found, octets) = written(&options, &settings, error, (before, least + extra, behind));
        prop_assert!(octets + behind >= least && octets + behind <= least + extra);
        let codes: Vec<u16> = found.iter().map(|(code, _)| *code).collect();
        for (code, is_given) in [
            (edns::NSID, !is_plain && list.iter().any(|(code, _)| *code == edns::NSID)),
            (edns::EXPIRE, left.is_some() && list.iter().any(|(code, data)| *code == edns::EXPIRE && data.is_empty())),
            (edns::COOKIE, list.iter().any(|(code, _)| *code == edns::COOKIE)),
            (edns::KEEPALIVE, transport != Transport::Udp && list.iter().any(|(code, _)| *code == edns::KEEPALIVE)),
        ] {
            prop_assert_eq!(codes.contains(&code), is_given, "{}", code);
        }
        if codes.contains(&edns::PADDING) && (octets + behind) % 468 != 0 {
            prop_assert_eq!(octets + behind, least + extra);
        }
    }
}
