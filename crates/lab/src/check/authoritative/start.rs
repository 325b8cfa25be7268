//! The first queries of the check: the zone, its keys, its denial mechanism, and the marker of a test zone.

use super::super::{CheckClient, Evidence, Query, Response, Transport};
use super::{Authoritative, AuthoritativeOptions, ZoneKeys, responses, test_zone};
use crate::enumerate::{ClientOptions, recognise_mechanism};
use crate::load::is_trusted;
use crate::query::QueryFault;
use nonesuch_dnssec::validate::{
    Budget, ProvedAnswer, Question, SecurityStatus, TrustedKeys, ValidationLimits, validate,
};
use nonesuch_dnssec::verify::Anchor;
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Name, Rtype};
use std::net::SocketAddr;
use std::time::Duration;

/// Number of attempts of a query over UDP.
const ATTEMPTS: u32 = 2;

/// Why a check cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The server answers neither over UDP nor over TCP.
    #[error("{server} does not answer: over UDP: {udp}; over TCP: {tcp}: check address and port")]
    Silent {
        /// The server.
        server: SocketAddr,
        /// Why it has no response over UDP.
        udp: QueryFault,
        /// Why it has no response over TCP.
        tcp: QueryFault,
    },
    /// The server does not serve the zone.
    #[error(
        "{server} does not serve the zone {zone}: it answers {rcode} without an SOA record of {zone}: \
        name the apex of a zone that it serves with --zone"
    )]
    NotServed {
        /// The server.
        server: SocketAddr,
        /// The zone.
        zone: Name,
        /// The response code.
        rcode: Rcode,
    },
}

impl Authoritative {
    /// Sends the first queries.
    ///
    /// # Errors
    /// The server does not answer, or does not serve the zone.
    pub fn start(options: AuthoritativeOptions) -> Result<Self, StartError> {
        let AuthoritativeOptions { server, zone, timeout, now, anchors, signer } = options;
        let client = CheckClient { server, timeout, attempts: ATTEMPTS };
        let zone = zone.view().to_canonical();
        let mut evidence = Evidence::default();
        let response = ask_soa(&client, &zone, &mut evidence)?;
        let not_served =
            || StartError::NotServed { server, zone: zone.clone(), rcode: response.message.rcode() };
        let soa = responses::answers(&response.message, &zone, Rtype::SOA).next().ok_or_else(not_served)?;
        let keys = fetch_keys(&client, &zone, now, &anchors, &mut evidence);
        let marker = client.ask(&mut evidence, &Query::new(test_zone::marker_name(&zone), Rtype::TXT));
        Ok(Self {
            soa: soa.rdata.clone(),
            announced: response.message.opt().map(|opt| opt.class.0),
            keys,
            recognised: recognise_mechanism(&recognise_options(server, timeout), &zone),
            is_test_zone: marker.is_ok_and(|response| test_zone::has_marker(&response.message, &zone)),
            client,
            zone,
            now,
            anchors,
            signer,
        })
    }
}

/// The SOA record over UDP with EDNS, over UDP without EDNS, or over TCP.
fn ask_soa(client: &CheckClient, zone: &Name, evidence: &mut Evidence) -> Result<Response, StartError> {
    let query = Query::new(zone.clone(), Rtype::SOA);
    let is_usable = |response: &Response| response.message.rcode() != Rcode::FORMERR;
    let udp = match client.ask_over(evidence, &query, Transport::Udp) {
        Ok(response) if is_usable(&response) => return Ok(response),
        Ok(_) => client.ask_over(evidence, &query.clone().without_edns(), Transport::Udp),
        Err(fault) => Err(fault),
    };
    let udp = match udp {
        Ok(response) => return Ok(response),
        Err(fault) => fault,
    };
    client.ask_over(evidence, &query, Transport::Tcp).map_err(|tcp| StartError::Silent {
        server: client.server,
        udp,
        tcp,
    })
}

/// Fetches the DNSKEY and NSEC5KEY RRsets and validates them.
fn fetch_keys(
    client: &CheckClient,
    zone: &Name,
    now: u32,
    anchors: &[Anchor],
    evidence: &mut Evidence,
) -> ZoneKeys {
    let query = Query::new(zone.clone(), Rtype::DNSKEY);
    let response = client.ask(evidence, &query);
    let response = match response.or_else(|_| client.ask_over(evidence, &query, Transport::Tcp)) {
        Ok(response) => response,
        Err(fault) => return ZoneKeys::Untrusted(format!("{zone} DNSKEY: {fault}")),
    };
    let dnskeys: Vec<&[u8]> = responses::answers(&response.message, zone, Rtype::DNSKEY)
        .map(|record| record.rdata.as_slice())
        .collect();
    if dnskeys.is_empty() {
        return match response.message.rcode() {
            Rcode::NOERROR => ZoneKeys::Unsigned,
            rcode => ZoneKeys::Untrusted(format!("{zone} DNSKEY: the server answers {rcode}")),
        };
    }
    let limits = ValidationLimits::default();
    let anchored = dnskeys.iter().copied().filter(|key| anchors.is_empty() || is_trusted(zone, key, anchors));
    let anchored = TrustedKeys::new(zone, anchored, &limits);
    let question = Question { name: zone.view(), rtype: Rtype::DNSKEY };
    let mut budget = Budget::new(limits);
    let validation = validate(question, &response.message, &anchored, now, &mut budget);
    match (validation.status, validation.proved) {
        (SecurityStatus::Secure, Some(ProvedAnswer::Answer)) => {}
        (SecurityStatus::Bogus(reason), _) => return ZoneKeys::Untrusted(reason.to_string()),
        (SecurityStatus::Insecure(reason), _) => return ZoneKeys::Untrusted(reason.to_string()),
        (SecurityStatus::Indeterminate(reason), _) => return ZoneKeys::Untrusted(reason.to_string()),
        (SecurityStatus::Secure, _) => return ZoneKeys::Untrusted("the response has no keys".to_owned()),
    }
    let mut keys = TrustedKeys::new(zone, dnskeys, &limits);
    if keys.may_use_nsec5() {
        // Without these keys, denials by NSEC5 are bogus, and their items fail.
        if let Ok(response) = client.ask(evidence, &Query::new(zone.clone(), Rtype::NSEC5KEY)) {
            let _ = keys.learn_nsec5_keys(&response.message, now, &mut Budget::new(limits));
        }
    }
    ZoneKeys::Trusted(Box::new(keys))
}

/// Few queries are needed, so the rate of the enumeration does not bound them.
fn recognise_options(server: SocketAddr, timeout: Duration) -> ClientOptions {
    ClientOptions {
        server,
        rate: 1000.0,
        timeout,
        attempts: ATTEMPTS,
        max_queries: 10,
        time_limit: Duration::from_secs(60),
        tcp: false,
    }
}
