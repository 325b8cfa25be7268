//! EDNS options of a query and its response: never panics, no option in the response that the query
//! did not request, and nothing beyond the size limit.
//!
//! The first octets select the transport, the settings, and the length of the response. The rest is
//! the RDATA of OPT in the query.
#![no_main]

use libfuzzer_sys::fuzz_target;
use nonesuch_net::Transport;
use nonesuch_proto::edns::{self, CookieOption, OPT_OCTETS, Opt, Options};
use nonesuch_server::cookies::{CookieStatus, Cookies};
use nonesuch_server::extended_errors::ExtendedError;
use nonesuch_server::reply_options::{ReplyOptions, ReplySettings};
use std::net::IpAddr;
use std::sync::LazyLock;

static SETTINGS: LazyLock<ReplySettings> = LazyLock::new(|| ReplySettings {
    nsid: b"site".to_vec(),
    report_channel: "agent.example.".parse().ok(),
    ..ReplySettings::default()
});
static COOKIES: LazyLock<Option<Cookies>> = LazyLock::new(|| Cookies::new(&[[7; 16]]));

/// A client address and a time with which the cookies in the seeds are valid.
const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
const NOW: u32 = 1_750_000_000;

fuzz_target!(|data: &[u8]| {
    let Some(([choice, high, low, extra], rdata)) = data.split_first_chunk() else { return };
    let Some(opt) = Opt::from_parts(1232, 0, rdata) else {
        let mut options = Options::new(rdata);
        options.by_ref().for_each(drop);
        assert!(!options.is_at_end());
        return;
    };
    let transport = [Transport::Udp, Transport::Tcp, Transport::Tls][usize::from(choice & 3) % 3];
    let settings = if choice & 4 == 0 { &*SETTINGS } else { &ReplySettings::default() };
    let cookies = COOKIES.as_ref().filter(|_| choice & 8 == 0);
    let read = ReplyOptions::read(&opt, transport, settings, cookies, CLIENT, NOW);
    let cookie = opt.option(edns::COOKIE).filter(|_| cookies.is_some());
    let Ok(options) = read else {
        assert!(cookie.is_some_and(|data| CookieOption::read(data).is_none()));
        return;
    };
    assert_eq!(options.cookie_status() == CookieStatus::Absent, cookie.is_none());
    let asks = opt.options().any(|(code, data)| code == edns::EXPIRE && data.is_empty());
    assert_eq!(options.wants_expire(), asks);
    let options = options.with_expire((choice & 32 != 0).then_some(7));
    let before = usize::from(u16::from_be_bytes([*high, *low]) % 1200) + 12;
    let least = before + OPT_OCTETS + options.required_octets(settings);
    let limit = least + usize::from(*extra);
    let mut out = vec![0; before];
    edns::push_opt(1232, 0, 0, &mut out);
    let error = (choice & 16 != 0).then_some(ExtendedError::OVER_BUDGET);
    options.push(settings, error, limit, 0, &mut out);
    assert!(out.len() >= least && out.len() <= limit, "{} of {least} to {limit}", out.len());
    let Some(response) = Opt::from_parts(1232, 0, &out[before + OPT_OCTETS..]) else {
        panic!("does not add up")
    };
    assert_eq!(out[before + OPT_OCTETS - 2..][..2], (response.options.len() as u16).to_be_bytes());
    for (code, data) in response.options() {
        match code {
            edns::EXTENDED_ERROR => assert!(error.is_some()),
            edns::REPORT_CHANNEL => assert!(settings.report_channel.is_some()),
            _ => assert!(opt.option(code).is_some(), "option {code} was not asked for"),
        }
        if code == edns::EXPIRE {
            assert_eq!(edns::read_expire(data), Some(Some(7)));
        }
        if code == edns::COOKIE {
            assert!(CookieOption::read(data).is_some_and(|cookie| cookie.server.len() == 16));
            // The server accepts the cookies that it sends.
            let again = cookies.map(|cookies| cookies.check(Some(data), CLIENT, NOW).status);
            assert_eq!(again, Some(CookieStatus::Valid));
        }
    }
});
