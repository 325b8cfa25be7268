//! Validates every response that the oracle checks, using only the keys of the zone. The response
//! proves what it must prove, and is Secure, except where no proof can exist.

use super::checker::Mismatch;
use super::oracle::{Expected, Need, Oracle};
use super::{NOW, Zone, display_message, line};
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::validate::{
    BogusReason, Budget, IndeterminateReason, InsecureReason, Limit, ProvedAnswer, Question, RrsetStatus,
    SecurityStatus, TrustedKeys, Validation, ValidationLimits, validate,
};
use nonesuch_proto::message::{Message, Rcode, Record, Section};
use nonesuch_proto::{Name, NameRef, Rtype};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::LazyLock;

/// Maximum number of CNAME and DNAME steps that validators follow.
const MOST_ALIASES: usize = 16;
const YXDOMAIN: Rcode = Rcode(6);

/// Validates a response from a signed zone.
pub(super) fn check(
    zone: &Zone,
    (qname, qtype): (&Name, Rtype),
    message: &Message,
    expected: &Expected,
) -> Result<(), Mismatch> {
    let apex = zone.plain.apex();
    let trusted = trusted_keys(zone);
    // The longest chains of aliases have more records than resolvers process.
    let mut limits = ValidationLimits::default();
    (limits.nsec3_records, limits.hash_blocks) = (100, 10_000);
    (limits.proofs_per_response, limits.proofs) = (100, 100);
    let question = Question { name: qname.view(), rtype: qtype };
    let validation = validate(question, message, &trusted, NOW, &mut Budget::new(limits));
    let judge = Judge { zone, qtype, message, expected, apex: apex.view() };
    let what = if judge.is_status(&validation) { "proved" } else { "status" };
    if what == "proved" && judge.is_proved(&validation) && judge.are_answers_known(&validation) {
        return Ok(());
    }
    Err(format!("validated, {what}: {:?} {:?}", validation.status, validation.proved).into())
}

/// Returns the keys that the zone publishes.
fn trusted_keys(zone: &Zone) -> TrustedKeys {
    let image = zone.image();
    let (dnskeys, nsec5_keys) = (image.apex_rdatas(Rtype::DNSKEY), image.apex_rdatas(Rtype::NSEC5KEY));
    let limits = ValidationLimits::default();
    let mut keys = TrustedKeys::new(zone.plain.apex(), dnskeys.iter().map(Vec::as_slice), &limits);
    keys.set_nsec5_keys(nsec5_keys.iter().map(Vec::as_slice), &limits);
    keys
}

struct Judge<'j> {
    zone: &'j Zone,
    qtype: Rtype,
    message: &'j Message,
    expected: &'j Expected,
    apex: NameRef<'j>,
}

impl Judge<'_> {
    fn is_opt_out(&self) -> bool {
        self.zone.signing.is_some_and(Mechanism::is_opt_out)
    }

    fn is_status(&self, validation: &Validation) -> bool {
        match &validation.status {
            SecurityStatus::Secure => !self.is_of_the_parent() && !self.is_unsigned_referral(),
            SecurityStatus::Insecure(InsecureReason::UnsignedDelegation) => self.is_unsigned_referral(),
            SecurityStatus::Insecure(InsecureReason::OptOut) => self.is_opt_out(),
            SecurityStatus::Bogus(BogusReason::ChildSideRecord(_)) => self.is_of_the_parent(),
            SecurityStatus::Bogus(_) => self.is_unprovable(),
            SecurityStatus::Indeterminate(IndeterminateReason::Limit(Limit::Aliases)) => {
                self.aliases() > MOST_ALIASES
            }
            SecurityStatus::Insecure(_) | SecurityStatus::Indeterminate(_) => false,
        }
    }

    /// Returns whether the response concerns DS at the apex, which belongs to the parent zone. The
    /// root zone has no parent.
    fn is_of_the_parent(&self) -> bool {
        let is_apex_ds = |need: &Need| matches!(need, Need::Type { name, rtype } if *rtype == Rtype::DS && name.view() == self.apex);
        !self.apex.is_root() && self.expected.needs.iter().any(is_apex_ds)
    }

    fn is_unsigned_referral(&self) -> bool {
        self.has_authority(Rtype::NS) && self.expected.delegation_signers.is_empty()
    }

    /// If opt-out omits an encloser from the chain, the closest provable encloser may have a
    /// wildcard.
    fn is_unprovable(&self) -> bool {
        let is_left_out = |need: &Need| match need {
            Need::Name { encloser, .. } | Need::WildcardType { encloser, .. } => {
                let wildcard = Name::wildcard_below(encloser.view()).ok();
                self.expected.insecure_only.contains(encloser)
                    || wildcard.is_some_and(|wildcard| self.expected.insecure_only.contains(&wildcard))
            }
            _ => false,
        };
        self.is_opt_out() && self.expected.needs.iter().any(is_left_out)
    }

    fn aliases(&self) -> usize {
        let is_alias = |rtype| rtype == Rtype::CNAME && self.qtype != Rtype::CNAME;
        self.message.section(Section::Answer).filter(|record| is_alias(record.rtype)).count()
    }

    fn has_authority(&self, rtype: Rtype) -> bool {
        self.message.section(Section::Authority).any(|record| record.rtype == rtype)
    }

    fn is_proved(&self, validation: &Validation) -> bool {
        let Some(proved) = &validation.proved else {
            return matches!(validation.status, SecurityStatus::Bogus(_) | SecurityStatus::Indeterminate(_));
        };
        let last = self.expected.needs.last();
        let is_denial = self.has_authority(Rtype::SOA);
        let is_rcode = validation.rcode == self.expected.rcode;
        is_rcode
            && match proved {
                ProvedAnswer::NxDomain => self.expected.rcode == Rcode::NXDOMAIN,
                ProvedAnswer::DnameTooLong => self.expected.rcode == YXDOMAIN,
                ProvedAnswer::NoData | ProvedAnswer::WildcardNoData if self.is_opt_out() => is_denial,
                // RFC 9824 §3.3: an answer from a wildcard looks like an answer at the name itself.
                ProvedAnswer::NoData if self.zone.is_compact() => {
                    is_denial && !self.expected.needs.is_empty()
                }
                ProvedAnswer::NoData => {
                    is_denial && matches!(last, Some(Need::Type { .. } | Need::Ds { .. }))
                }
                ProvedAnswer::WildcardNoData => is_denial && matches!(last, Some(Need::WildcardType { .. })),
                ProvedAnswer::Referral { has_ds, .. } => {
                    self.has_authority(Rtype::NS) && *has_ds != self.expected.delegation_signers.is_empty()
                }
                ProvedAnswer::Answer => !is_denial && !self.has_authority(Rtype::NS),
                ProvedAnswer::WildcardAnswer => matches!(last, Some(Need::CloserMatch { .. })),
                ProvedAnswer::Alias { target } => {
                    let is_outside = !target.view().is_at_or_below(self.apex);
                    let is_loop = validation.aliases.iter().any(|alias| alias.name == *target);
                    !is_denial && (is_outside || is_loop)
                }
            }
    }

    /// Returns whether the answer section contains only the necessary records.
    fn are_answers_known(&self, validation: &Validation) -> bool {
        let is_known =
            |status: &RrsetStatus| matches!(status, RrsetStatus::Secure | RrsetStatus::Synthesised);
        validation.proved.is_none()
            || validation
                .rrsets
                .iter()
                .all(|rrset| rrset.section != Section::Answer || is_known(&rrset.status))
    }
}

thread_local! {
    /// The zone of all cases, signed with each mechanism.
    static ZONES: [Rc<Zone>; 3] = [Mechanism::Nsec, Mechanism::Nsec3, Mechanism::Nsec3OptOut]
        .map(|signing| Rc::new(Zone::new(super::cases::ZONE, "example.", Some(signing))));
}

const TYPES: [Rtype; 6] = [Rtype::A, Rtype::TXT, Rtype::DS, Rtype::NS, Rtype::CNAME, Rtype::MX];

/// The names of the zone with its empty non-terminals, and names below and adjacent to them.
static NAMES: LazyLock<Vec<Name>> = LazyLock::new(|| {
    let zone = ZONES.with(|zones| Rc::clone(&zones[0]));
    let nodes = zone.plain.nodes();
    let own =
        nodes.flat_map(|node| (1..=node.name().label_count()).map(move |count| node.name().suffix(count)));
    let with_others = own.flat_map(|own| {
        let below = [&b"m"[..], b"*", b"zz"].map(|label| Name::prepend(label, own).unwrap());
        below.into_iter().chain([own.to_name()])
    });
    with_others.collect::<BTreeSet<Name>>().into_iter().collect()
});

/// A manipulation of a response that uses only genuine records.
#[derive(Clone, Debug)]
enum Forgery {
    Drop(usize),
    /// Moves a record into another section.
    Move(usize, usize),
    /// Changes the owner of an RRset and its signatures to one of the names, or to the query name.
    Rename(usize, Option<usize>),
    Rcode(u16),
    /// Adds the records of the response to another query.
    Add(usize, usize),
}

fn forgery() -> impl Strategy<Value = Forgery> {
    let any_name = prop_oneof![Just(None), (0..10_000usize).prop_map(Some)];
    prop_oneof![
        2 => (0..20usize).prop_map(Forgery::Drop),
        1 => (0..20usize, 0..3usize).prop_map(|(index, section)| Forgery::Move(index, section)),
        2 => (0..20usize, any_name).prop_map(|(index, name)| Forgery::Rename(index, name)),
        1 => prop_oneof![Just(0u16), Just(3), Just(6)].prop_map(Forgery::Rcode),
        3 => (0..10_000usize, 0..TYPES.len()).prop_map(|(name, rtype)| Forgery::Add(name, rtype)),
    ]
}

fn forge(zone: &Zone, message: &mut Message, qname: &Name, forgery: &Forgery) {
    let count = message.records.len().max(1);
    let sections = [Section::Answer, Section::Authority, Section::Additional];
    match *forgery {
        Forgery::Drop(index) if !message.records.is_empty() => drop(message.records.remove(index % count)),
        Forgery::Move(index, section) => {
            if let Some(record) = message.records.get_mut(index % count) {
                record.section = sections[section];
            }
        }
        Forgery::Rename(index, other) => {
            let Some(record) = message.records.get(index % count) else { return };
            let (section, owner) = (record.section, record.owner.clone());
            let other = other.map_or(qname, |index| &NAMES[index % NAMES.len()]);
            for record in &mut message.records {
                if (record.section, &record.owner) == (section, &owner) && record.rtype != Rtype::OPT {
                    record.owner = other.clone();
                }
            }
        }
        Forgery::Rcode(rcode) => message.header.flags = message.header.flags & !0x0f | rcode,
        Forgery::Add(index, rtype) => {
            let more = zone.query_over_tcp(&NAMES[index % NAMES.len()], TYPES[rtype], true);
            message.records.extend(more.records.into_iter().filter(|record| record.rtype != Rtype::OPT));
        }
        Forgery::Drop(_) => {}
    }
}

/// Returns whether the zone contains the proved data.
fn is_true(zone: &Zone, qname: &Name, qtype: Rtype, message: &Message, validation: &Validation) -> bool {
    let oracle = Oracle::new(&zone.plain);
    for alias in &validation.aliases {
        let line = format!("{} 3600 cname {}", alias.name, alias.target).to_lowercase();
        if !oracle.resolve(&alias.name, Rtype::CNAME).answer.contains(&line) {
            return false;
        }
    }
    let last = validation.aliases.last().map_or(qname, |alias| &alias.target);
    let truth = oracle.resolve(last, qtype);
    let is_denial = truth.answer.is_empty() && truth.authority.iter().any(|line| line.contains(" soa "));
    match &validation.proved {
        Some(ProvedAnswer::NxDomain) => is_denial && truth.rcode == Rcode::NXDOMAIN,
        Some(ProvedAnswer::NoData | ProvedAnswer::WildcardNoData) => {
            is_denial && truth.rcode == Rcode::NOERROR
        }
        Some(ProvedAnswer::Referral { child, has_ds }) => {
            let servers = format!("{child} 3600 ns ").to_lowercase();
            truth.answer.is_empty()
                && truth.authority.iter().any(|line| line.starts_with(&servers))
                && *has_ds != truth.delegation_signers.is_empty()
        }
        Some(ProvedAnswer::Answer | ProvedAnswer::WildcardAnswer) => {
            let is_answer = |record: &&Record| record.owner == *last && record.rtype == qtype;
            let mut answers = message.section(Section::Answer).filter(is_answer).map(line);
            answers.all(|answer| truth.answer.contains(&answer))
        }
        Some(ProvedAnswer::DnameTooLong) => truth.rcode == YXDOMAIN,
        Some(ProvedAnswer::Alias { target }) => {
            target == last || truth.rcode == YXDOMAIN || qtype == Rtype::CNAME
        }
        None => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 6000,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(9824),
        ..ProptestConfig::default()
    })]

    /// No combination of genuine records gives a Secure result that differs from the zone. The same
    /// holds for unsigned delegations.
    #[test]
    fn true_records_prove_nothing_false(
        signing in 0..3usize,
        qname in 0..10_000usize,
        qtype in 0..TYPES.len(),
        forgeries in proptest::collection::vec(forgery(), 0..6),
    ) {
        let zone = &*ZONES.with(|zones| Rc::clone(&zones[signing]));
        let (qname, qtype) = (&NAMES[qname % NAMES.len()], TYPES[qtype]);
        let mut message = zone.query_over_tcp(qname, qtype, true);
        for forgery in &forgeries {
            forge(zone, &mut message, qname, forgery);
        }
        let trusted = trusted_keys(zone);
        let question = Question { name: qname.view(), rtype: qtype };
        let outcome = validate(question, &message, &trusted, NOW, &mut Budget::default());
        let says_so = matches!(outcome.status, SecurityStatus::Secure | SecurityStatus::Insecure(InsecureReason::UnsignedDelegation));
        if says_so {
            prop_assert!(
                is_true(zone, qname, qtype, &message, &outcome),
                "{qname} {qtype} {:?} {:?} {:?}\n{}",
                outcome.status, outcome.proved, outcome.aliases, display_message(&message)
            );
        }
    }
}
