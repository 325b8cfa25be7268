//! What a thief of a server can do with its files: forge responses, and search for names offline
//! ("Making NSEC5 Practical for DNSSEC", table 2).
//!
//! Our validator judges each forged response, with the keys that the zone publishes.

mod forge;
mod offline;

use super::StopReason;
use super::client::{Client, records_of};
use super::crack::Plan;
use super::labels::RandomLabels;
use super::mechanism::{below, denial};
use super::report::FoundName;
use nonesuch_crypto::vrf::VrfPrivateKey;
use nonesuch_dnssec::KeyPair;
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::denial::nsec5::Proofs;
use nonesuch_dnssec::validate::{Budget, TrustedKeys, ValidationLimits};
use nonesuch_proto::message::{Message, Section};
use nonesuch_proto::{Name, NameRef, Rtype};
use serde::Serialize;
use std::fmt::Write as _;

/// Number of names that the text report lists for each source.
const LISTED: usize = 20;

/// The files of a stolen server that matter for a zone.
#[derive(Debug, Default)]
pub struct StolenFiles {
    /// The directory.
    pub directory: String,
    /// The private keys of the DNSKEY RRset.
    pub signing_keys: Vec<KeyPair>,
    /// The VRF keys.
    pub vrf_keys: Vec<VrfPrivateKey>,
    /// The stored NSEC5 proofs, which have the names of the chain.
    pub proofs: Option<Proofs>,
    /// The names of a stored version of the zone.
    pub stored_names: Vec<Name>,
}

impl StolenFiles {
    /// The keys and data that were found, for each kind.
    fn found(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut add = |count: usize, noun: &str| {
            if count > 0 {
                found.push(format!("{count} {noun}"));
            }
        };
        add(self.signing_keys.len(), "signing key(s)");
        add(self.vrf_keys.len(), "VRF key(s)");
        add(usize::from(self.proofs.is_some()), "file of NSEC5 proofs");
        add(self.stored_names.len(), "names of a stored version of the zone");
        found
    }
}

/// The zone of the stolen server.
pub(super) struct Target<'a> {
    pub(super) zone: &'a Name,
    pub(super) mechanism: Option<Mechanism>,
    pub(super) now: u32,
}

/// What a thief achieves.
#[derive(Clone, Debug, Default, Serialize)]
pub struct StolenReport {
    /// The directory.
    pub directory: String,
    /// The keys and data in it.
    pub found: Vec<String>,
    /// The forged responses.
    pub attempts: Vec<Attempt>,
    /// Whether a validator accepts a forged response.
    pub forgery: bool,
    /// The searches for names.
    pub searches: Vec<OfflineSearch>,
    /// Why the attack ended early.
    pub stopped: Option<String>,
}

/// A forged response.
#[derive(Clone, Debug, Serialize)]
pub struct Attempt {
    /// What the response claims.
    pub claim: String,
    /// How it was forged.
    pub method: &'static str,
    /// The status that the validator gives it.
    pub status: &'static str,
    /// The validator's reason.
    pub reason: Option<String>,
    /// Whether a validator passes it to clients: it is secure or insecure.
    pub accepted: bool,
}

/// A search for names without queries.
#[derive(Clone, Debug, Serialize)]
pub struct OfflineSearch {
    /// The method of the attack.
    pub method: &'static str,
    /// Number of names that were tested; `None` if the files list the names.
    pub tested: Option<u64>,
    /// Names tested per second.
    pub per_second: Option<f64>,
    /// The names found.
    pub names: Vec<FoundName>,
    /// Number of records of the chain that were collected for the search.
    pub records: Option<usize>,
}

impl StolenReport {
    pub(super) fn push_text(&self, text: &mut String) {
        let found = if self.found.is_empty() { "no key or names".to_owned() } else { self.found.join(", ") };
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "stolen server {}: {found}", self.directory);
        for Attempt { claim, method, status, reason, accepted } in &self.attempts {
            let outcome = if *accepted { "accepted" } else { "rejected" };
            let reason = reason.as_ref().map_or_else(String::new, |reason| format!(": {reason}"));
            let _ = writeln!(text, "    forge {claim}, {method}: {outcome} ({status}{reason})");
        }
        for search in &self.searches {
            search.push_text(text);
        }
        if let Some(reason) = &self.stopped {
            let _ = writeln!(text, "    ended early: {reason}");
        }
        let forgery = if self.forgery { "possible" } else { "not possible with these files" };
        let privacy =
            if self.searches.iter().any(|search| !search.names.is_empty()) { "lost" } else { "kept" };
        let _ = writeln!(text, "    forgery: {forgery}; privacy of names: {privacy}");
    }
}

impl OfflineSearch {
    fn push_text(&self, text: &mut String) {
        let names = self.names.len();
        let _ = match (self.tested, self.per_second) {
            (Some(tested), Some(rate)) => writeln!(
                text,
                "    {}: {names} of {tested} names exist, {rate:.0} per second ({} records of the chain)",
                self.method,
                self.records.unwrap_or_default()
            ),
            _ => writeln!(text, "    {}: {names} names", self.method),
        };
        for name in self.names.iter().take(LISTED) {
            let _ = writeln!(text, "        {}", name.name);
        }
        if names > LISTED {
            let _ = writeln!(text, "        and {} more (--json lists all)", names - LISTED);
        }
    }
}

/// Tries all attacks that the files permit, and the attacks without a file.
pub(super) fn attack(
    client: &mut Client,
    target: &Target<'_>,
    files: &StolenFiles,
    labels: &mut RandomLabels,
    plan: &Plan,
) -> StolenReport {
    let mut report =
        StolenReport { directory: files.directory.clone(), found: files.found(), ..StolenReport::default() };
    report.searches = offline::read_names(files, target.zone);
    report.stopped =
        attack_online(client, target, files, labels, plan, &mut report).err().map(|stop| stop.to_string());
    report.forgery = report.attempts.iter().any(|attempt| attempt.accepted);
    report
}

fn attack_online(
    client: &mut Client,
    target: &Target<'_>,
    files: &StolenFiles,
    labels: &mut RandomLabels,
    plan: &Plan,
    report: &mut StolenReport,
) -> Result<(), StopReason> {
    let scene = Scene::observe(client, target, labels)?;
    report.attempts = forge::attempts(&scene, files);
    if target
        .mechanism
        .is_some_and(|mechanism| mechanism.name_hash() == nonesuch_dnssec::denial::NameHash::Vrf)
    {
        for key in &files.vrf_keys {
            report.searches.push(offline::search_with_vrf_key(client, target.zone, key, labels, plan)?);
        }
    }
    Ok(())
}

/// What the attacker sees of the zone.
pub(super) struct Scene<'a> {
    zone: &'a Name,
    now: u32,
    /// `None` for an unsigned zone.
    keys: Option<TrustedKeys>,
    /// RDATA of the DNSKEY records.
    dnskeys: Vec<Vec<u8>>,
    /// A name that exists, with a type that it has, and the response to the query for them.
    victim: Name,
    victim_type: Rtype,
    genuine: Message,
    /// The denial of a random name.
    denial: Message,
}

impl<'a> Scene<'a> {
    fn observe(
        client: &mut Client,
        target: &Target<'a>,
        labels: &mut RandomLabels,
    ) -> Result<Self, StopReason> {
        let zone = target.zone;
        let apex = zone.view();
        let response = client.query(apex, Rtype::DNSKEY)?;
        let dnskeys: Vec<Vec<u8>> =
            records_of(&response, apex, Rtype::DNSKEY).map(|(_, rdata)| rdata.to_vec()).collect();
        let limits = ValidationLimits::default();
        let mut keys =
            (!dnskeys.is_empty()).then(|| TrustedKeys::new(zone, dnskeys.iter().map(Vec::as_slice), &limits));
        if let Some(keys) = keys.as_mut().filter(|keys| keys.may_use_nsec5()) {
            let response = client.query(apex, Rtype::NSEC5KEY)?;
            // Without these keys, the validator rejects denials by NSEC5.
            let _ = keys.learn_nsec5_keys(&response, target.now, &mut Budget::new(limits));
        }
        let (victim, victim_type, genuine) = find_victim(client, zone)?;
        let denial = denial(client, &below(&labels.next(), zone)?)?;
        Ok(Self { zone, now: target.now, keys, dnskeys, victim, victim_type, genuine, denial })
    }
}

/// Finds a name that exists: the name of a server of the zone, if it is in the zone, with an address.
/// Otherwise the apex with its SOA record.
fn find_victim(client: &mut Client, zone: &Name) -> Result<(Name, Rtype, Message), StopReason> {
    let apex = zone.view();
    let response = client.query(apex, Rtype::NS)?;
    let servers =
        records_of(&response, apex, Rtype::NS).filter_map(|(_, rdata)| NameRef::from_wire(rdata).ok());
    let servers: Vec<Name> = servers.filter(|name| name.is_below(apex)).map(NameRef::to_canonical).collect();
    for server in servers.into_iter().take(4) {
        let response = client.query(server.view(), Rtype::A)?;
        let has_address = response
            .section(Section::Answer)
            .any(|record| record.rtype == Rtype::A && record.owner == server);
        if has_address {
            return Ok((server, Rtype::A, response));
        }
    }
    let response = client.query(apex, Rtype::SOA)?;
    Ok((zone.clone(), Rtype::SOA, response))
}
