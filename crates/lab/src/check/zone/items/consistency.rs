//! Items that compare the servers of the zone with each other.

use super::{item, list};
use crate::check::signature::MessageRrset;
use crate::check::zone::context::ZoneContext;
use crate::check::zone::findings::Findings;
use crate::check::zone::items::delegation::read_names;
use crate::check::zone::items::denial::mechanism;
use crate::check::zone::lookup::Server;
use crate::check::{Evidence, Outcome, Row};
use nonesuch_crypto::{Algorithm, key_tag};
use nonesuch_proto::{NameRef, Rtype};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const ITEMS: &[Row<ZoneContext>] = &[
    Row {
        item: item(
            "Z-030",
            "all servers have the same serial",
            &["RFC 1034 §4.3.5"],
            "Compares the serials in the SOA records of all servers. They may differ for a short time after a \
             change of the zone.",
        ),
        run: |context, evidence| {
            same(context, evidence, |context, evidence, server| {
                let soa = soa(context, evidence, server)?;
                Some(format!("serial {}", soa.serial))
            })
        },
    },
    Row {
        item: item(
            "Z-031",
            "all servers have the same SOA record, apart from the serial",
            &["RFC 1034 §4.3.5"],
            "Compares the other fields of the SOA records of all servers.",
        ),
        run: |context, evidence| {
            same(context, evidence, |context, evidence, server| {
                let soa = soa(context, evidence, server)?;
                Some(format!("SOA {}", soa.text_without_serial()))
            })
        },
    },
    Row {
        item: item(
            "Z-032",
            "all servers have the same NS records",
            &["RFC 1034 §4.3.5"],
            "Compares the NS RRsets at the apex of all servers.",
        ),
        run: |context, evidence| {
            same(context, evidence, |context, evidence, server| {
                let rrset = context.apex_rrset(evidence, server, Rtype::NS)?;
                let names: BTreeSet<_> = read_names(&rrset.rdatas).into_iter().collect();
                Some(format!("NS {}", list(names)))
            })
        },
    },
    Row {
        item: item(
            "Z-033",
            "all servers have the same DNSKEY records",
            &["RFC 1034 §4.3.5", "RFC 8901 §3"],
            "Compares the DNSKEY RRsets of all servers. A difference is noted if several signers sign the zone, and each \
             DNSKEY RRset has the keys of all signatures over SOA and NS.",
        ),
        run: |context, evidence| {
            let outcome = same_if_signed(context, evidence, |context, evidence, server| {
                let keys = context.apex_rrset(evidence, server, Rtype::DNSKEY);
                let tags: BTreeSet<u16> =
                    keys.iter().flat_map(|keys| &keys.rdatas).map(|key| key_tag(key)).collect();
                Some(format!("DNSKEY with key tags {}", list(tags)))
            });
            note_several_signers(context, evidence, outcome)
        },
    },
    Row {
        item: item(
            "Z-034",
            "all servers sign with the same keys and deny with the same mechanism",
            &["RFC 1034 §4.3.5", "RFC 8901 §3", "RFC 8901 §5"],
            "Compares the key tags of the signatures over SOA, NS and DNSKEY, and the records with which the servers \
             deny a name: NSEC, NSEC3 with its parameters, or NSEC5. Several signers are noted as in Z-033.",
        ),
        run: |context, evidence| {
            let outcome = same_if_signed(context, evidence, |context, evidence, server| {
                let mut parts = Vec::new();
                for rtype in [Rtype::SOA, Rtype::NS, Rtype::DNSKEY] {
                    let rrset = context.apex_rrset(evidence, server, rtype);
                    let tags: BTreeSet<u16> =
                        rrset.iter().flat_map(MessageRrset::rrsigs).map(|rrsig| rrsig.tag).collect();
                    parts.push(format!("{rtype} signed by {}", list(tags)));
                }
                parts.push(format!("denial with {}", mechanism(context, evidence, server)?));
                Some(parts.join(", "))
            });
            note_several_signers(context, evidence, outcome)
        },
    },
    Row {
        item: item(
            "Z-035",
            "the SOA record has usual values",
            &["RFC 1912 §2.2", "RFC 2308 §5", "RFC 1034 §4.3.5"],
            "Compares the SOA record of each server with the advice of the RFCs: refresh 20 minutes to 12 hours, retry \
             less than refresh, expire 2 to 4 weeks and more than refresh and retry together, minimum at most 3 hours. \
             Other values are noted. An expire that is not above both refresh and retry fails.",
        ),
        run: soa_values,
    },
];

/// The fields of an SOA record.
struct Soa {
    serial: u32,
    refresh: u32,
    retry: u32,
    expire: u32,
    minimum: u32,
    mname: String,
    rname: String,
}

impl Soa {
    fn text_without_serial(&self) -> String {
        let Self { refresh, retry, expire, minimum, mname, rname, .. } = self;
        format!("{mname} {rname} {refresh} {retry} {expire} {minimum}")
    }
}

/// Reads SOA RDATA.
fn read_soa(rdata: &[u8]) -> Option<Soa> {
    let (mname, rest) = NameRef::split_from(rdata).ok()?;
    let (rname, rest) = NameRef::split_from(rest).ok()?;
    let numbers: &[u8; 20] = rest.try_into().ok()?;
    let number =
        |at: usize| u32::from_be_bytes([numbers[at], numbers[at + 1], numbers[at + 2], numbers[at + 3]]);
    let [serial, refresh, retry, expire, minimum] = [0, 4, 8, 12, 16].map(number);
    let text = |name: NameRef<'_>| name.to_canonical().to_string();
    Some(Soa { serial, refresh, retry, expire, minimum, mname: text(mname), rname: text(rname) })
}

/// The expire and minimum fields of the SOA record of a server, and its TTL, in seconds.
pub(super) fn soa_times(
    context: &mut ZoneContext,
    evidence: &mut Evidence,
    server: &Server,
) -> Option<[u32; 3]> {
    let rrset = context.apex_rrset(evidence, server, Rtype::SOA)?;
    let soa = read_soa(rrset.rdatas.first()?)?;
    Some([soa.expire, soa.minimum, rrset.ttl])
}

fn soa(context: &mut ZoneContext, evidence: &mut Evidence, server: &Server) -> Option<Soa> {
    let rrset = context.apex_rrset(evidence, server, Rtype::SOA)?;
    read_soa(rrset.rdatas.first()?)
}

/// Compares what `read` reads from each server.
fn same(
    context: &mut ZoneContext,
    evidence: &mut Evidence,
    read: impl Fn(&mut ZoneContext, &mut Evidence, &Server) -> Option<String>,
) -> Outcome {
    let live = context.live_servers(evidence);
    if let Some(reason) = context.why_no_server(&live) {
        return Outcome::NotTestable(reason);
    }
    let mut values: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut findings = Findings::default();
    for server in &live {
        match read(context, evidence, server) {
            Some(value) => values.entry(value).or_default().push(server.text()),
            None => findings.skip(format!("{} does not answer the question", server.text())),
        }
    }
    if values.len() > 1 {
        let texts = values.into_iter().map(|(value, servers)| format!("{}: {value}", servers.join(", ")));
        return Outcome::Fail(texts.collect::<Vec<_>>().join("; "));
    }
    if let Some((value, _)) = values.into_iter().next() {
        findings.good();
        findings.note(value);
    }
    findings.outcome()
}

/// As [`same`], for a signed zone.
fn same_if_signed(
    context: &mut ZoneContext,
    evidence: &mut Evidence,
    read: impl Fn(&mut ZoneContext, &mut Evidence, &Server) -> Option<String>,
) -> Outcome {
    if context.fault().is_none() && context.dnskeys(evidence).is_empty() {
        return Outcome::NotTestable("the zone is not signed".to_owned());
    }
    same(context, evidence, read)
}

/// The keys of one server: tags and algorithms.
#[derive(Debug, Default)]
struct ServerKeys {
    /// Those of the signatures over SOA and NS.
    signing: BTreeSet<(u16, Algorithm)>,
    /// Those in the DNSKEY RRset.
    published: BTreeSet<(u16, Algorithm)>,
}

impl ServerKeys {
    fn read(context: &mut ZoneContext, evidence: &mut Evidence, server: &Server) -> Self {
        let mut keys = Self::default();
        for rtype in [Rtype::SOA, Rtype::NS] {
            let rrset = context.apex_rrset(evidence, server, rtype);
            let rrsigs = rrset.iter().flat_map(MessageRrset::rrsigs);
            keys.signing.extend(rrsigs.map(|rrsig| (rrsig.tag, rrsig.algorithm)));
        }
        let rrset = context.apex_rrset(evidence, server, Rtype::DNSKEY);
        for key in rrset.iter().flat_map(|rrset| &rrset.rdatas) {
            let algorithm = key.get(3).copied().unwrap_or_default();
            keys.published.insert((key_tag(key), Algorithm(algorithm)));
        }
        keys
    }
}

/// Whether the servers sign with different keys, and each of them publishes all these keys, so that a validator can
/// combine their responses (RFC 8901 §3).
fn have_several_signers(servers: &[ServerKeys]) -> bool {
    let signing: BTreeSet<&(u16, Algorithm)> = servers.iter().flat_map(|keys| &keys.signing).collect();
    let is_different = servers.iter().any(|keys| keys.signing.len() < signing.len());
    is_different && servers.iter().all(|keys| signing.iter().all(|key| keys.published.contains(key)))
}

/// A difference between the servers is a note if it follows from several signers.
fn note_several_signers(context: &mut ZoneContext, evidence: &mut Evidence, outcome: Outcome) -> Outcome {
    let Outcome::Fail(text) = outcome else { return outcome };
    let live = context.live_servers(evidence);
    let keys: Vec<ServerKeys> =
        live.iter().map(|server| ServerKeys::read(context, evidence, server)).collect();
    if have_several_signers(&keys) {
        Outcome::Pass(format!("several signers: {text}"))
    } else {
        Outcome::Fail(text)
    }
}

fn soa_values(context: &mut ZoneContext, evidence: &mut Evidence) -> Outcome {
    super::for_each_server(context, evidence, |context, evidence, server, findings| {
        let Some(soa) = soa(context, evidence, server) else {
            return findings.fault(format!("{} has no well-formed SOA record", server.text()));
        };
        let Soa { refresh, retry, expire, .. } = soa;
        findings.check((expire <= refresh.max(retry)).then(|| {
            format!(
                "{}: expire {expire} s is not above refresh {refresh} s and retry {retry} s: secondaries discard the zone",
                server.text()
            )
        }));
        advise(&soa, findings);
    })
}

/// Notes values that differ from the advice.
fn advise(soa: &Soa, findings: &mut Findings) {
    let Soa { refresh, retry, expire, minimum, .. } = *soa;
    let hours = |hours: u64| hours * 3600;
    let (refresh, retry, expire, minimum) =
        (u64::from(refresh), u64::from(retry), u64::from(expire), u64::from(minimum));
    if !(1200..=hours(12)).contains(&refresh) {
        findings.note(format!("refresh is {refresh} s; usual are 1,200 to 43,200 s"));
    }
    if retry >= refresh {
        findings.note(format!("retry {retry} s is not below refresh {refresh} s"));
    }
    if !(hours(14 * 24)..=hours(28 * 24)).contains(&expire) {
        findings.note(format!("expire is {expire} s; usual are 1,209,600 to 2,419,200 s"));
    }
    if expire <= refresh + retry {
        findings.note(format!("expire {expire} s is not above refresh and retry together"));
    }
    // RFC 2308 §5: one to three hours work well as a maximum for negative responses.
    if minimum > hours(3) {
        findings
            .note(format!("minimum is {minimum} s: negative responses are cached for longer than 3 hours"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(signing: &[u16], published: &[u16]) -> ServerKeys {
        let of = |tags: &[u16]| tags.iter().map(|tag| (*tag, Algorithm(13))).collect();
        ServerKeys { signing: of(signing), published: of(published) }
    }

    #[test]
    fn several_signers_publish_the_keys_of_all_signatures() {
        // RFC 8901 §2.1.2: each signer has a key-signing key of its own.
        assert!(have_several_signers(&[keys(&[1], &[1, 2, 11]), keys(&[2], &[1, 2, 12])]));
        assert!(!have_several_signers(&[keys(&[1], &[1, 11]), keys(&[2], &[1, 2, 12])]));
        // One signer, and servers with different keys.
        assert!(!have_several_signers(&[keys(&[1], &[1, 11]), keys(&[1], &[1, 12])]));
        assert!(!have_several_signers(&[]));
    }
}
