//! What an attacker learns about a zone from the denials of its server ("Making NSEC5 Practical for
//! DNSSEC", tables 1 and 2).
//!
//! - NSEC: walks the chain of names (`walk`).
//! - NSEC3: collects the records (`collect`), estimates the number of names from the distances between
//!   hashes (`estimate`), and searches for the names offline ([`crack`]).
//! - NSEC5: estimates the number of names (`nsec5_size`).
//! - Mechanisms whose records are generated online, NSEC5 and unsigned zones: guesses names online
//!   (`guess`).
//! - With the files of a stolen server: forges responses and searches offline (`stolen`).
//!
//! Every step ends in bounded time: queries have a rate, a number and a total time, and each wait has a
//! limit.

mod client;
mod collect;
pub mod crack;
mod error;
mod estimate;
mod guess;
mod hash_chain;
mod labels;
mod mechanism;
mod nsec5_size;
mod report;
mod state;
mod stolen;
mod walk;

pub use crate::query::QueryFault;
pub use client::ClientOptions;
pub use crack::words::{Words, WordsError};
pub use crack::{CrackProgress, CrackReport, Plan};
pub use error::{EnumerateError, StopReason};
pub use estimate::Estimate;
pub use guess::GuessReport;
pub use mechanism::{Recognised, lesson};
pub use report::{EnumerationReport, FoundName, HashReport, UnknownHash};
pub use state::{State, StateError, StateFault};
pub use stolen::{StolenFiles, StolenReport};

use client::Client;
use collect::Hash;
use labels::RandomLabels;
use nonesuch_dnssec::Mechanism;
use nonesuch_proto::message::Section;
use nonesuch_proto::{Name, Rtype};
use state::{hash_text, salt_text};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Longest apex below which random labels and hashed owner names fit, in octets.
const APEX_MAX: usize = 190;
/// Time between two states that are passed on.
const SAVE_INTERVAL: Duration = Duration::from_secs(10);

/// Options of an enumeration.
#[derive(Debug)]
pub struct EnumerateOptions {
    /// The apex of the zone.
    pub zone: Name,
    /// How queries are sent; `None`: no queries, only a search for the names of the hashes in the state.
    pub client: Option<ClientOptions>,
    /// Seed of the random labels.
    pub seed: u64,
    /// The names that are tested.
    pub plan: Plan,
    /// Whether names are searched offline.
    pub crack: bool,
    /// Number of levels of names that are tested: 1 only below the apex, 2 also below the names found.
    pub depth: u8,
    /// Number of threads of the search.
    pub threads: usize,
    /// Maximum time of the search.
    pub crack_time_limit: Duration,
    /// Maximum number of guesses online.
    pub guesses: u64,
    /// The files of a stolen server.
    pub stolen: Option<StolenFiles>,
    /// The present, in seconds since 1970 modulo 2^32, for signatures.
    pub now: u32,
}

/// What happens during an enumeration.
#[derive(Debug)]
pub enum Event<'e> {
    /// The mechanism is known.
    Recognised(Recognised),
    /// A response was read: number of records so far, share of the hashes that they cover, and number of
    /// queries.
    Collected(usize, Option<f64>, u64),
    /// Progress of the search.
    Cracking(CrackProgress),
    /// The state should be saved.
    Save(&'e State),
}

/// Enumerates a zone. `state` is that of an earlier run, or a new one; it is updated. `on_event` is called
/// with progress, and with the state at least every ten seconds of work and at the end.
///
/// # Errors
/// The enumeration cannot start. If it ends early, the report has the reason.
pub fn enumerate(
    options: &EnumerateOptions,
    state: &mut State,
    on_event: &mut dyn FnMut(Event<'_>),
) -> Result<EnumerationReport, EnumerateError> {
    if state.zone != options.zone {
        return Err(EnumerateError::OtherZone { zone: options.zone.clone(), found: state.zone.clone() });
    }
    if options.zone.view().len() > APEX_MAX {
        return Err(EnumerateError::ZoneTooLong(options.zone.clone()));
    }
    let mut run = Run::new(options, state, on_event);
    match &options.client {
        Some(client) => run.ask(client)?,
        None if run.state.nsec3.chain.is_empty() => return Err(EnumerateError::NothingOffline),
        None => run.recognised = Some(Recognised::Mechanism(Mechanism::Nsec3)),
    }
    if options.crack && !run.state.nsec3.chain.is_empty() {
        run.crack();
    }
    run.save();
    Ok(run.into_report())
}

/// One run.
struct Run<'r> {
    options: &'r EnumerateOptions,
    state: &'r mut State,
    on_event: &'r mut dyn FnMut(Event<'_>),
    saved_at: Instant,
    recognised: Option<Recognised>,
    /// Names without a chain, from guesses.
    guessed: Vec<Name>,
    stopped: Option<StopReason>,
    queries: u64,
    query_time: Duration,
    estimate: Option<Estimate>,
    crack: Option<CrackReport>,
    guesses: Option<GuessReport>,
    stolen: Option<StolenReport>,
}

impl<'r> Run<'r> {
    fn new(
        options: &'r EnumerateOptions,
        state: &'r mut State,
        on_event: &'r mut dyn FnMut(Event<'_>),
    ) -> Self {
        Self {
            options,
            state,
            on_event,
            saved_at: Instant::now(),
            recognised: None,
            guessed: Vec::new(),
            stopped: None,
            queries: 0,
            query_time: Duration::ZERO,
            estimate: None,
            crack: None,
            guesses: None,
            stolen: None,
        }
    }

    /// Sends the queries.
    fn ask(&mut self, options: &ClientOptions) -> Result<(), EnumerateError> {
        let mut client = Client::new(options);
        let mut labels = RandomLabels::new(self.options.seed);
        check_authority(&mut client, options, &self.options.zone)?;
        let recognised = mechanism::recognise(&mut client, &self.options.zone, &mut labels);
        let recognised = recognised.map_err(EnumerateError::Unreachable)?;
        self.recognised = Some(recognised);
        (self.on_event)(Event::Recognised(recognised));
        self.stopped = self.learn(&mut client, recognised, &mut labels).err();
        if let Some(files) = &self.options.stolen {
            let zone = stolen::Target {
                zone: &self.options.zone,
                mechanism: recognised.mechanism(),
                now: self.options.now,
            };
            self.stolen = Some(stolen::attack(&mut client, &zone, files, &mut labels, &self.options.plan));
        }
        self.queries = client.queries();
        self.query_time = client.elapsed();
        Ok(())
    }

    /// Learns what the mechanism permits.
    fn learn(
        &mut self,
        client: &mut Client,
        recognised: Recognised,
        labels: &mut RandomLabels,
    ) -> Result<(), StopReason> {
        let zone = &self.options.zone;
        match recognised.mechanism() {
            Some(Mechanism::Nsec) => self.walk(client),
            Some(Mechanism::Nsec3 | Mechanism::Nsec3OptOut) => self.collect(client, labels),
            Some(Mechanism::Nsec5 | Mechanism::Nsec5OptOut) => {
                self.estimate = nsec5_size::estimate_size(client, zone, labels)?;
                self.guess(client, labels)
            }
            _ => self.guess(client, labels),
        }
    }

    fn walk(&mut self, client: &mut Client) -> Result<(), StopReason> {
        let mut chain = std::mem::take(&mut self.state.nsec);
        let walked = walk::walk(client, &self.options.zone, &mut chain, |chain, queries| {
            (self.on_event)(Event::Collected(chain.len(), None, queries));
            if self.saved_at.elapsed() >= SAVE_INTERVAL {
                self.state.nsec.clone_from(chain);
                (self.on_event)(Event::Save(self.state));
                self.saved_at = Instant::now();
            }
        });
        self.state.nsec = chain;
        walked
    }

    fn collect(&mut self, client: &mut Client, labels: &mut RandomLabels) -> Result<(), StopReason> {
        let known: Vec<Hash> = self.state.unknown_hashes().copied().collect();
        let mut found = std::mem::take(&mut self.state.nsec3);
        let collected = collect::collect(client, &self.options.zone, labels, &mut found, |found, queries| {
            (self.on_event)(Event::Collected(found.chain.len(), Some(found.chain.coverage()), queries));
            if self.saved_at.elapsed() >= SAVE_INTERVAL {
                self.state.nsec3.clone_from(found);
                self.state.positions.clear();
                (self.on_event)(Event::Save(self.state));
                self.saved_at = Instant::now();
            }
        });
        self.state.nsec3 = found;
        // Searches were for the hashes that were known then.
        if !self.state.unknown_hashes().eq(&known) {
            self.state.positions.clear();
        }
        // The search for names continues with the records so far.
        self.save();
        collected
    }

    fn guess(&mut self, client: &mut Client, labels: &mut RandomLabels) -> Result<(), StopReason> {
        let limit = self.options.guesses;
        let planned = self.options.plan.names().min(u128::from(limit)) as u64;
        let mut report = GuessReport { planned, ..GuessReport::default() };
        let candidates = self.options.plan.candidates().take(usize::try_from(limit).unwrap_or(usize::MAX));
        let guessed = &mut self.guessed;
        let outcome = guess::guess(client, &self.options.zone, labels, candidates, &mut report, |name| {
            guessed.push(name);
        });
        self.guesses = Some(report);
        outcome
    }

    fn save(&mut self) {
        (self.on_event)(Event::Save(self.state));
        self.saved_at = Instant::now();
    }

    /// Searches for the names of the hashes, below the apex and below the names found.
    fn crack(&mut self) {
        let Some(params) = self.state.nsec3.params.clone() else { return };
        let limit = self.options.crack_time_limit.min(Duration::from_secs(100 * 365 * 86_400));
        let end = Instant::now() + limit;
        self.add_apex(&params);
        let mut parents = vec![self.options.zone.clone()];
        for _ in 0..self.options.depth.max(1) {
            let mut children = Vec::new();
            for parent in &parents {
                self.crack_below(parent, &params, end);
                children.extend(self.children_of(parent));
            }
            parents = children;
        }
    }

    /// The apex is in every chain.
    fn add_apex(&mut self, params: &nonesuch_dnssec::Nsec3Params) {
        let apex = &self.options.zone;
        let hash =
            nonesuch_crypto::nsec3_hash(apex.view().to_canonical().wire(), &params.salt, params.iterations);
        if self.state.nsec3.chain.record(&hash).is_some() {
            self.state.names.insert(hash, apex.clone());
        }
    }

    /// The names found directly below a name, except wildcards.
    fn children_of(&self, parent: &Name) -> Vec<Name> {
        let is_child = |name: &&Name| {
            name.view().parent().is_some_and(|above| above == parent.view()) && !name.view().is_wildcard()
        };
        self.state.names.values().filter(is_child).cloned().collect()
    }

    fn crack_below(&mut self, parent: &Name, params: &nonesuch_dnssec::Nsec3Params, end: Instant) {
        let place = (self.options.plan.digest().to_owned(), parent.clone());
        let position = self.state.positions.get(&place).copied().unwrap_or_default();
        let hashes: Vec<Hash> = self.state.unknown_hashes().copied().collect();
        let search = crack::Search {
            plan: &self.options.plan,
            params,
            parent,
            hashes: &hashes,
            position,
            threads: self.options.threads,
            end,
        };
        let found = RefCell::new(BTreeMap::new());
        let report = crack::run(
            &search,
            |hash, name| drop(found.borrow_mut().insert(hash, name)),
            |progress| {
                (self.on_event)(Event::Cracking(progress));
                if self.saved_at.elapsed() >= SAVE_INTERVAL {
                    self.state.names.append(&mut found.borrow_mut());
                    self.state.positions.insert(place.clone(), progress.position);
                    (self.on_event)(Event::Save(self.state));
                    self.saved_at = Instant::now();
                }
                self.state.positions.insert(place.clone(), progress.position);
            },
        );
        self.state.names.append(&mut found.borrow_mut());
        match &mut self.crack {
            Some(total) => total.add(&report),
            None => self.crack = Some(report),
        }
    }

    fn into_report(self) -> EnumerationReport {
        let recognised = self.recognised.unwrap_or(Recognised::Unsigned);
        let chain = &self.state.nsec3.chain;
        let chain_estimate = match chain.is_complete() {
            true => Some(Estimate::exact(chain.len())),
            false => estimate::estimate(chain.samples(), chain.len() as u64),
        };
        let is_searched = self.crack.as_ref().is_none_or(|crack| crack.complete);
        EnumerationReport {
            zone: self.options.zone.to_string(),
            server: self.options.client.as_ref().map(|client| client.server.to_string()),
            mechanism: recognised.mechanism().map(|mechanism| mechanism.entry().title.to_owned()),
            lesson: lesson(recognised),
            complete: self.stopped.is_none() && is_searched,
            stopped: self.stopped.as_ref().map(ToString::to_string),
            queries: self.queries,
            query_seconds: self.query_time.as_secs_f64(),
            rate: self.options.client.as_ref().map(|client| client.rate),
            names: self.names(),
            hashes: self.hashes(),
            estimated_names: chain_estimate.or(self.estimate),
            crack: self.crack,
            guesses: self.guesses,
            stolen: self.stolen,
        }
    }

    /// All names, in canonical order.
    fn names(&self) -> Vec<FoundName> {
        let mut names: BTreeMap<Name, Vec<Rtype>> = BTreeMap::new();
        for (owner, record) in self.state.nsec.records() {
            names.insert(owner.clone(), record.types.clone());
            // The types of the last name of an incomplete chain are unknown.
            if record.next.view().is_at_or_below(self.options.zone.view()) {
                names.entry(record.next.clone()).or_default();
            }
        }
        for (hash, name) in &self.state.names {
            let types = self.state.nsec3.chain.record(hash).map(|record| record.types.clone());
            names.insert(name.clone(), types.unwrap_or_default());
        }
        names.extend(self.guessed.iter().map(|name| (name.clone(), Vec::new())));
        names.iter().map(|(name, types)| FoundName::new(name, types)).collect()
    }

    fn hashes(&self) -> Option<HashReport> {
        let params = self.state.nsec3.params.as_ref()?;
        let chain = &self.state.nsec3.chain;
        let unknown = self.state.unknown_hashes().map(|hash| UnknownHash {
            hash: hash_text(hash),
            types: chain
                .record(hash)
                .into_iter()
                .flat_map(|record| &record.types)
                .map(Rtype::to_string)
                .collect(),
        });
        let unknown: Vec<UnknownHash> = unknown.collect();
        Some(HashReport {
            iterations: params.iterations,
            salt: salt_text(&params.salt),
            opt_out: chain.records().any(|(_, record)| record.opt_out),
            records: chain.len(),
            coverage: chain.coverage(),
            cracked: chain.len() - unknown.len(),
            unknown,
        })
    }
}

/// Checks that the server is authoritative for the zone.
fn check_authority(client: &mut Client, options: &ClientOptions, zone: &Name) -> Result<(), EnumerateError> {
    let response = client.query(zone.view(), Rtype::SOA).map_err(EnumerateError::Unreachable)?;
    let has_soa =
        response.section(Section::Answer).any(|record| record.rtype == Rtype::SOA && record.owner == *zone);
    if has_soa {
        return Ok(());
    }
    Err(EnumerateError::NotServed { server: options.server, zone: zone.clone(), rcode: response.rcode() })
}

/// Determines the denial mechanism of a zone with a few queries; `None` if the server does not answer them.
pub(crate) fn recognise_mechanism(options: &ClientOptions, zone: &Name) -> Option<Recognised> {
    let mut seed = [0; 8];
    getrandom::fill(&mut seed).ok()?;
    let mut labels = RandomLabels::new(u64::from_be_bytes(seed));
    mechanism::recognise(&mut Client::new(options), zone, &mut labels).ok()
}

#[cfg(test)]
mod tests;
