//! The chain of trust from a trust anchor to the zone, step by step.

use super::ZoneCheckOptions;
use super::context::ZoneContext;
use super::lookup::{PathZone, Server};
use crate::check::signature::MessageRrset;
use crate::check::{ChainStep, Evidence, Picture, Verdict, chain_picture};
use nonesuch_crypto::Algorithm;
use nonesuch_dnssec::validate::{
    AlgorithmPolicy, Budget, EntryPoints, NoEntryPoint, ProvedAnswer, Question, SecurityStatus, TrustedKeys,
    Validation, ValidationLimits, validate,
};
use nonesuch_proto::message::Message;
use nonesuch_proto::{Name, Rtype};

/// A trust anchor: a DS or DNSKEY record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustAnchor {
    /// The zone.
    pub zone: Name,
    /// DS or DNSKEY.
    pub rtype: Rtype,
    /// The RDATA.
    pub rdata: Vec<u8>,
}

/// The result for the zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ChainStatus {
    Secure,
    Insecure(String),
    Bogus(String),
    /// A server does not answer.
    Broken(String),
}

/// A response with the decision about it.
#[derive(Clone, Debug)]
struct Step {
    name: Name,
    rtype: Rtype,
    message: Message,
    decision: Decision,
}

#[derive(Clone, Debug)]
enum Decision {
    Validated { zone: Name, keys: Vec<(u16, Algorithm)>, validation: Box<Validation> },
    Insecure { cut: Name, reason: String },
    NoKeys { reason: String },
}

/// The chain of trust.
#[derive(Clone, Debug)]
pub(super) struct ChainOfTrust {
    steps: Vec<Step>,
    pub(super) status: ChainStatus,
    /// The zone at which it begins.
    pub(super) start: Name,
}

impl ChainOfTrust {
    pub(super) fn to_picture(&self, options: &ZoneCheckOptions) -> Picture {
        let steps = self.steps.iter().map(|step| {
            let verdict = match &step.decision {
                Decision::Validated { zone, keys, validation } => {
                    Verdict::Validated { zone, keys, validation }
                }
                Decision::Insecure { cut, reason } => Verdict::Insecure { cut, reason },
                Decision::NoKeys { reason } => Verdict::NoKeys { reason },
            };
            ChainStep { name: &step.name, rtype: step.rtype, message: &step.message, verdict }
        });
        let title = format!("Chain of trust of the zone {}", options.zone);
        let mut picture = chain_picture(&title, &steps.collect::<Vec<_>>(), options.now);
        if let ChainStatus::Broken(reason) = &self.status {
            picture.notes.push(reason.clone());
        }
        if options.anchors.is_empty() && options.undelegated.is_none() {
            let note =
                format!("no trust anchor is given: the keys of {} are assumed to be right", self.start);
            picture.notes.push(note);
        }
        picture
    }
}

/// What the next zone is validated with.
enum Entry {
    /// RDATA of DS records and DNSKEY records.
    Records { ds: Vec<Vec<u8>>, dnskeys: Vec<Vec<u8>> },
    /// All its keys: there is no trust anchor.
    Assumed,
    /// The zone is outside the chain of trust.
    Insecure { cut: Name, reason: String },
}

/// Builds the chain.
struct Builder<'c, 'e> {
    context: &'c mut ZoneContext,
    evidence: &'e mut Evidence,
    steps: Vec<Step>,
    budget: Budget,
}

impl ZoneContext {
    /// Validates from the trust anchor down to the SOA and NS RRsets of the zone.
    pub(super) fn chain_of_trust(&mut self, evidence: &mut Evidence) -> ChainOfTrust {
        let mut levels = self.discovery.path.clone();
        let servers: Vec<Server> = self.live_servers(evidence);
        levels.push(PathZone { zone: self.zone().clone(), servers, flags: 0 });
        let has_anchor = |zone: &Name| self.options.anchors.iter().any(|anchor| anchor.zone == *zone);
        let start = levels.iter().rposition(|level| has_anchor(&level.zone)).unwrap_or(0);
        levels.drain(..start);
        let entry = self.first_entry(&levels[0].zone);
        let start = levels[0].zone.clone();
        // One budget for all responses: more than for one query of a client.
        let mut limits = ValidationLimits::default();
        limits.signatures = 512;
        let budget = Budget::new(limits);
        let mut builder = Builder { context: self, evidence, steps: Vec::new(), budget };
        let status = builder.run(&levels, entry);
        ChainOfTrust { steps: builder.steps, status, start }
    }

    fn first_entry(&self, zone: &Name) -> Entry {
        let of = |rtype: Rtype| {
            let anchors = self.options.anchors.iter().filter(move |anchor| anchor.zone == *zone);
            anchors.filter(move |anchor| anchor.rtype == rtype).map(|anchor| anchor.rdata.clone()).collect()
        };
        let (ds, dnskeys): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (of(Rtype::DS), of(Rtype::DNSKEY));
        match &self.options.undelegated {
            Some(planned) if !planned.ds.is_empty() => Entry::Records { ds: planned.ds.clone(), dnskeys },
            _ if ds.is_empty() && dnskeys.is_empty() => Entry::Assumed,
            _ => Entry::Records { ds, dnskeys },
        }
    }
}

impl Builder<'_, '_> {
    fn run(&mut self, levels: &[PathZone], mut entry: Entry) -> ChainStatus {
        for (index, level) in levels.iter().enumerate() {
            let next = levels.get(index + 1).map(|level| level.zone.clone());
            match self.enter(level, entry, next.as_ref()) {
                Ok(child) => entry = child,
                Err(status) => return status,
            }
        }
        match entry {
            Entry::Insecure { reason, .. } => ChainStatus::Insecure(reason),
            _ => ChainStatus::Secure,
        }
    }

    /// Validates the keys of a zone, and then the DS RRset of the next zone, or the data of the last one.
    fn enter(&mut self, level: &PathZone, entry: Entry, next: Option<&Name>) -> Result<Entry, ChainStatus> {
        let keys = match &entry {
            Entry::Insecure { cut, reason } => {
                self.show_insecure(level, (cut, reason), next)?;
                return Ok(entry);
            }
            Entry::Records { .. } | Entry::Assumed => self.keys(level, &entry)?,
        };
        let keys = match keys {
            Ok(keys) => keys,
            Err(reason) => {
                let cut = level.zone.clone();
                self.show_insecure(level, (&cut, &reason), next)?;
                return Ok(Entry::Insecure { cut, reason });
            }
        };
        match next {
            Some(next) => self.delegation(level, &keys, next),
            None => {
                for rtype in [Rtype::SOA, Rtype::NS] {
                    let (_, validation) = self.validated(level, &level.zone.clone(), rtype, &keys)?;
                    require(&validation)?;
                }
                Ok(Entry::Assumed)
            }
        }
    }

    /// The keys of a zone. The inner error is the reason for which the zone is insecure.
    fn keys(&mut self, level: &PathZone, entry: &Entry) -> Result<Result<TrustedKeys, String>, ChainStatus> {
        let zone = &level.zone;
        let message = self.ask(level, zone, Rtype::DNSKEY)?;
        let rrset = MessageRrset::find(&message, zone, Rtype::DNSKEY);
        let dnskeys = rrset.map(|rrset| rrset.rdatas).unwrap_or_default();
        let dnskeys: Vec<&[u8]> = dnskeys.iter().map(Vec::as_slice).collect();
        let limits = *self.budget.limits();
        let named = match entry {
            Entry::Records { ds, dnskeys: anchors } => {
                let (ds, anchors): (Vec<&[u8]>, Vec<&[u8]>) =
                    (ds.iter().map(Vec::as_slice).collect(), anchors.iter().map(Vec::as_slice).collect());
                let points = EntryPoints { ds: &ds, dnskeys: &anchors };
                points.select(zone, &dnskeys, AlgorithmPolicy::ALL, &limits)
            }
            _ if dnskeys.is_empty() => return Ok(Err(format!("the zone {zone} is not signed"))),
            _ => Ok(TrustedKeys::new(zone, dnskeys.iter().copied(), &limits)),
        };
        let named = match named {
            Ok(keys) => keys,
            Err(NoEntryPoint::Insecure(reason)) => return Ok(Err(reason.to_string())),
            Err(NoEntryPoint::Bogus(reason)) => {
                let text = format!("{reason} ({})", reason.rule());
                let decision = Decision::NoKeys { reason: text.clone() };
                self.steps.push(Step { name: zone.clone(), rtype: Rtype::DNSKEY, message, decision });
                return Err(ChainStatus::Bogus(format!("DNSKEY RRset of {zone}: {text}")));
            }
        };
        let (_, validation) = self.validated(level, zone, Rtype::DNSKEY, &named)?;
        require(&validation)?;
        let mut keys = TrustedKeys::new(zone, dnskeys.iter().copied(), &limits);
        if keys.may_use_nsec5() {
            let response = self.ask(level, zone, Rtype::NSEC5KEY)?;
            let _ = keys.learn_nsec5_keys(&response, self.context.options.now, &mut self.budget);
        }
        Ok(Ok(keys))
    }

    /// Validates the DS RRset of the next zone.
    fn delegation(
        &mut self,
        level: &PathZone,
        keys: &TrustedKeys,
        next: &Name,
    ) -> Result<Entry, ChainStatus> {
        let (message, validation) = self.validated(level, next, Rtype::DS, keys)?;
        let has_answer = matches!(validation.proved, Some(ProvedAnswer::Answer));
        match &validation.status {
            SecurityStatus::Secure if has_answer => {
                let rrset = MessageRrset::find(&message, next, Rtype::DS);
                let ds = rrset.map(|rrset| rrset.rdatas).unwrap_or_default();
                Ok(Entry::Records { ds, dnskeys: Vec::new() })
            }
            SecurityStatus::Secure | SecurityStatus::Insecure(_) => {
                let reason = format!("{} has no DS records for {next}", level.zone);
                Ok(Entry::Insecure { cut: next.clone(), reason })
            }
            _ => require(&validation).map(|()| Entry::Assumed),
        }
    }

    /// Adds the responses of a zone outside the chain of trust.
    fn show_insecure(
        &mut self,
        level: &PathZone,
        (cut, reason): (&Name, &String),
        next: Option<&Name>,
    ) -> Result<(), ChainStatus> {
        let rtypes: &[Rtype] =
            if next.is_none() { &[Rtype::DNSKEY, Rtype::SOA, Rtype::NS] } else { &[Rtype::DNSKEY] };
        for rtype in rtypes {
            let message = self.ask(level, &level.zone, *rtype)?;
            let decision = Decision::Insecure { cut: cut.clone(), reason: reason.clone() };
            self.steps.push(Step { name: level.zone.clone(), rtype: *rtype, message, decision });
        }
        Ok(())
    }

    /// Asks a question and validates the response.
    fn validated(
        &mut self,
        level: &PathZone,
        name: &Name,
        rtype: Rtype,
        keys: &TrustedKeys,
    ) -> Result<(Message, Validation), ChainStatus> {
        let message = self.ask(level, name, rtype)?;
        let question = Question { name: name.view(), rtype };
        let validation = validate(question, &message, keys, self.context.options.now, &mut self.budget);
        let (zone, tags) = (level.zone.clone(), keys.tags().collect());
        let decision = Decision::Validated { zone, keys: tags, validation: Box::new(validation.clone()) };
        self.steps.push(Step { name: name.clone(), rtype, message: message.clone(), decision });
        Ok((message, validation))
    }

    fn ask(&mut self, level: &PathZone, name: &Name, rtype: Rtype) -> Result<Message, ChainStatus> {
        let response = self.context.network.ask_zone(self.evidence, level, name, rtype);
        match response {
            Ok(response) => Ok(response.message),
            Err(fault) => Err(ChainStatus::Broken(format!(
                "no server of {} answers the question {name} {rtype}: {fault}",
                level.zone
            ))),
        }
    }
}

/// An error if a validation is bogus or cannot be completed.
fn require(validation: &Validation) -> Result<(), ChainStatus> {
    match &validation.status {
        SecurityStatus::Secure | SecurityStatus::Insecure(_) => Ok(()),
        SecurityStatus::Bogus(reason) => Err(ChainStatus::Bogus(format!("{reason} ({})", reason.rule()))),
        SecurityStatus::Indeterminate(reason) => {
            Err(ChainStatus::Bogus(format!("{reason} ({})", reason.rule())))
        }
    }
}
