//! Items about keys and signatures.

use super::{for_each_server, for_each_signed_server, item, list};
use crate::check::signature::{MessageRrset, SignatureFault, verify_signature};
use crate::check::zone::context::ZoneContext;
use crate::check::zone::findings::Findings;
use crate::check::zone::items::consistency::soa_times;
use crate::check::zone::lookup::Server;
use crate::check::zone::registry;
use crate::check::zone::trust::ChainStatus;
use crate::check::{Evidence, Outcome, Query, Response, Row, Transport};
use nonesuch_crypto::{Algorithm, key_tag};
use nonesuch_dnssec::inspect::KeyInfo;
use nonesuch_dnssec::keys::{PROTOCOL, ZONE_KEY};
use nonesuch_dnssec::rrsig::Rrsig;
use nonesuch_proto::Rtype;
use nonesuch_proto::message::flags;
use nonesuch_proto::timestamp::Rfc3339;
use std::collections::BTreeSet;

/// Octets of a response over UDP that is not fragmented on any path of IPv6 (RFC 9715 §A).
const PAYLOAD: u16 = 1232;
/// RSA keys below this length are noted (NIST SP 800-131A: 112 bits of security).
const RSA_BITS: u32 = 2048;

pub(super) const ITEMS: &[Row<ZoneContext>] = &[
    Row {
        item: item(
            "Z-050",
            "the keys have recommended algorithms",
            &["RFC 9904 §3", "RFC 9905 §2", "RFC 9905 §5", "RFC 9906 §2"],
            "Looks up the algorithm of each DNSKEY record in the IANA registry, column \"Use for DNSSEC Signing\". MUST \
             NOT, NOT RECOMMENDED and unassigned numbers fail. RSA keys of less than 2,048 bits are noted.",
        ),
        run: algorithms,
    },
    Row {
        item: item(
            "Z-051",
            "the DNSKEY records are well-formed zone keys",
            &["RFC 4034 §2.1.1", "RFC 4034 §2.1.2", "RFC 4034 §2.1.4"],
            "Reads flags, protocol and public key of each DNSKEY record. A key without the Zone Key flag is noted: it \
             must not sign the zone.",
        ),
        run: key_fields,
    },
    Row {
        item: item(
            "Z-052",
            "each algorithm in the DNSKEY RRset signs the zone",
            &["RFC 4035 §2.2", "RFC 6840 §5.11"],
            "Compares the algorithms of the DNSKEY records with those of the signatures over DNSKEY, SOA and NS.",
        ),
        run: all_algorithms_sign,
    },
    Row {
        item: item(
            "Z-053",
            "all signatures at the apex are valid now",
            &["RFC 4035 §2.2", "RFC 4035 §5.3.1", "RFC 4035 §5.3.3", "RFC 6781 §4.1.4"],
            "Verifies each signature over DNSKEY, SOA and NS of each server: signer, period of validity, and the \
             signature itself with the key that it names. A signature of a key that is not in the DNSKEY RRset is noted if \
             another signature is valid, because a rollover of the algorithm publishes signatures before their keys.",
        ),
        run: signatures_are_valid,
    },
    Row {
        item: item(
            "Z-054",
            "the signatures remain valid for longer than caches and secondaries keep the data",
            &["RFC 6781 §4.4.1", "RFC 4035 §5.3.3"],
            "Compares the time until the expiration of each signature with the TTL of its RRset: a shorter time fails, \
             because caches that do not validate keep the expired signature. The RFC advises also a longer time than the \
             field expire of the SOA record: a shorter time is noted.",
        ),
        run: remaining_validity,
    },
    Row {
        item: item(
            "Z-055",
            "the response with the DNSKEY RRset fits in a response over UDP",
            &["RFC 9715 §4", "RFC 9715 §A", "RFC 8906 §3.2.5", "RFC 7766 §5"],
            "Requests the DNSKEY RRset with DO and the payload size 1232, and measures the response. More than 1,232 octets \
             are noted: resolvers need TCP then. It fails if the server exceeds the payload size, or truncates the response \
             and has no response over TCP.",
        ),
        run: dnskey_size,
    },
    Row {
        item: item(
            "Z-056",
            "the chain of trust from the trust anchor to the zone is secure",
            &["RFC 4035 §5"],
            "Validates the DNSKEY and DS RRsets of all zones from the trust anchor down, and the SOA and NS RRsets of \
             the zone. A zone that is proved to be insecure passes with a note.",
        ),
        run: chain_is_secure,
    },
];

fn algorithms(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    for_each_signed_server(context, evidence, |_, _, (_, keys), findings| {
        for key in keys.iter().filter_map(|key| KeyInfo::read(key)) {
            let KeyInfo { tag, algorithm, bits, .. } = key;
            let rule = registry::signing(algorithm.0);
            let text = format!("algorithm {} ({algorithm}): {}", algorithm.0, rule.name());
            findings.note(text.clone());
            findings.check(rule.is_violation().then(|| format!("key {tag}: {text}")));
            let is_rsa = matches!(algorithm.0, 1 | 5 | 7 | 8 | 10);
            if let Some(bits) = bits.filter(|bits| is_rsa && *bits < RSA_BITS) {
                findings.note(format!("key {tag} has {bits} bits, fewer than {RSA_BITS}"));
            }
        }
    })
}

fn key_fields(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    for_each_signed_server(context, evidence, |_, _, (server, keys), findings| {
        for rdata in keys {
            let Some(key) = KeyInfo::read(rdata) else {
                findings.fault(format!("{}: a DNSKEY record is truncated", server.text()));
                continue;
            };
            let KeyInfo { tag, algorithm, flags, bits, .. } = key;
            let protocol = rdata.get(2).copied().unwrap_or_default();
            findings.check(
                (protocol != PROTOCOL).then(|| format!("key {tag} has the protocol {protocol}, expected 3")),
            );
            if flags & ZONE_KEY == 0 {
                findings.note(format!("key {tag} has no Zone Key flag"));
            }
            let is_malformed = bits.is_none() && algorithm.entry().is_some();
            findings.check(
                is_malformed.then(|| format!("key {tag}: the public key of {algorithm} is malformed")),
            );
        }
    })
}

/// The signed RRsets at the apex that a check compares.
fn apex_rrsets(context: &mut ZoneContext, evidence: &mut Evidence, server: &Server) -> Vec<MessageRrset> {
    let rtypes = [Rtype::DNSKEY, Rtype::SOA, Rtype::NS];
    rtypes.into_iter().filter_map(|rtype| context.apex_rrset(evidence, server, rtype)).collect()
}

fn all_algorithms_sign(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    for_each_signed_server(context, evidence, |context, evidence, (server, keys), findings| {
        // A key without the Zone Key flag signs nothing (RFC 4034 §2.1.1), and a revoked key only the key set (RFC
        // 5011 §2.1).
        let usable = keys.iter().filter_map(|key| KeyInfo::read(key));
        let usable =
            usable.filter(|key| key.flags & ZONE_KEY != 0 && key.flags & nonesuch_dnssec::keys::REVOKE == 0);
        let wanted: BTreeSet<Algorithm> = usable.map(|key| key.algorithm).collect();
        for rrset in apex_rrsets(context, evidence, server) {
            let present: BTreeSet<Algorithm> = rrset.rrsigs().map(|rrsig| rrsig.algorithm).collect();
            let missing: Vec<&Algorithm> = wanted.difference(&present).collect();
            findings.check((!missing.is_empty()).then(|| {
                format!("{}: the {} RRset is not signed with {}", server.text(), rrset.rtype, list(missing))
            }));
        }
    })
}

fn signatures_are_valid(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    for_each_signed_server(context, evidence, |context, evidence, (server, keys), findings| {
        let (zone, now) = (context.zone().clone(), context.options.now);
        for rrset in apex_rrsets(context, evidence, server) {
            let (rtype, text) = (rrset.rtype, server.text());
            if rrset.signatures.is_empty() {
                findings.fault(format!("{text}: the {rtype} RRset has no signature"));
            }
            let results: Vec<_> = rrset
                .rrsigs()
                .map(|rrsig| (rrsig, verify_signature(&rrsig, &rrset, &zone, keys, now)))
                .collect();
            let has_valid = results.iter().any(|(_, result)| result.is_ok());
            for (Rrsig { tag, algorithm, .. }, result) in results {
                match result {
                    Ok(()) => findings.good(),
                    Err(SignatureFault::UnsupportedKey) => {
                        findings.skip(format!("the algorithm {algorithm} is not supported here"));
                    }
                    Err(fault @ SignatureFault::NoKey) if has_valid => {
                        findings.note(format!("{text}: the signature over {rtype} by key {tag} {fault}"));
                    }
                    Err(fault) => {
                        findings.fault(format!("{text}: the signature over {rtype} by key {tag} {fault}"))
                    }
                }
            }
        }
    })
}

fn remaining_validity(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    for_each_signed_server(context, evidence, |context, evidence, (server, keys), findings| {
        let now = context.options.now;
        let expire = soa_times(context, evidence, server).map_or(0, |[expire, ..]| expire);
        let mut first: Option<(u32, u32, Rtype)> = None;
        for rrset in apex_rrsets(context, evidence, server) {
            for rrsig in rrset.rrsigs() {
                let zone = context.zone().clone();
                if verify_signature(&rrsig, &rrset, &zone, keys, now).is_err() {
                    continue;
                }
                let left = rrsig.expiration.wrapping_sub(now);
                if first.is_none_or(|(least, ..)| left < least) {
                    first = Some((left, rrsig.expiration, rrset.rtype));
                }
                findings.check((left < rrset.ttl).then(|| {
                    let (rtype, ttl) = (rrset.rtype, rrset.ttl);
                    format!(
                        "the signature over {rtype} by key {} expires in {}, before the TTL of {ttl} s",
                        rrsig.tag,
                        time(left)
                    )
                }));
            }
        }
        note_first(findings, first, expire);
    })
}

/// Notes the first expiration, and whether a secondary may serve expired signatures.
fn note_first(findings: &mut Findings, first: Option<(u32, u32, Rtype)>, expire: u32) {
    let Some((left, expiration, rtype)) = first else {
        return findings.skip("no signature is valid now");
    };
    let at = Rfc3339(u64::from(expiration));
    findings.note(format!("the first signature to expire is that over {rtype}, in {}, at {at}", time(left)));
    if left < expire {
        findings.note(format!(
            "that is before a secondary without contact to its primary discards the zone (SOA expire {})",
            time(expire)
        ));
    }
}

/// A time in the largest unit that leaves at least two.
fn time(seconds: u32) -> String {
    match seconds {
        0..7200 => format!("{seconds} s"),
        7200..172_800 => format!("{} hours", seconds / 3600),
        _ => format!("{} days", seconds / 86_400),
    }
}

fn dnskey_size(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    for_each_server(context, evidence, |context, evidence, server, findings| {
        let (zone, text) = (context.zone().clone(), server.text());
        match dnskey_response(context, evidence, server) {
            Err(fault) => findings.fault(format!("{text}: {fault}")),
            Ok(response) => match MessageRrset::find(&response.message, &zone, Rtype::DNSKEY) {
                Some(rrset) => note_size(&response, &rrset.rdatas, &text, findings),
                None => findings.skip(format!("{text} has no DNSKEY RRset: the zone is not signed")),
            },
        }
    })
}

/// The complete response to the question for the DNSKEY RRset; an error if a resolver cannot get it.
fn dnskey_response(
    context: &mut ZoneContext,
    evidence: &mut Evidence,
    server: &Server,
) -> Result<Response, String> {
    let query = Query::new(context.zone().clone(), Rtype::DNSKEY).with_payload(PAYLOAD);
    let client = &mut context.network.client;
    let response = client
        .ask_over(evidence, server.address, &query, Transport::Udp)
        .map_err(|fault| fault.to_string())?;
    let octets = response.octets.len();
    if octets > usize::from(PAYLOAD) {
        return Err(format!("{octets} octets over UDP exceed the payload size {PAYLOAD} of the query"));
    }
    if !response.has(flags::TC) {
        return Ok(response);
    }
    let complete = client.ask_over(evidence, server.address, &query, Transport::Tcp);
    complete.map_err(|fault| format!("the response over UDP is truncated, and over TCP: {fault}"))
}

/// Notes the size of a response with these keys.
fn note_size(response: &Response, keys: &[Vec<u8>], server: &str, findings: &mut Findings) {
    findings.good();
    let octets = response.octets.len();
    findings.note(format!("{octets} octets with {} keys", keys.len()));
    if octets > usize::from(PAYLOAD) {
        findings.note(format!("{server}: {octets} octets are more than {PAYLOAD}"));
    }
    let tags: BTreeSet<u16> = keys.iter().map(|key| key_tag(key)).collect();
    if tags.len() < keys.len() {
        findings.note("two keys have the same key tag");
    }
}

fn chain_is_secure(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    if let Some(fault) = context.fault() {
        return Outcome::NotTestable(fault.to_string());
    }
    let has_start = !context.options.anchors.is_empty()
        || context.options.undelegated.as_ref().is_some_and(|planned| !planned.ds.is_empty());
    if !has_start {
        return Outcome::NotTestable("no trust anchor is given".to_owned());
    }
    let chain = context.chain_of_trust(evidence);
    match chain.status {
        ChainStatus::Secure => Outcome::Pass(format!("secure from the trust anchor of {}", chain.start)),
        ChainStatus::Insecure(reason) => Outcome::Pass(format!("insecure: {reason}")),
        ChainStatus::Bogus(reason) => Outcome::Fail(format!("bogus: {reason}")),
        ChainStatus::Broken(reason) => Outcome::NotTestable(reason),
    }
}
