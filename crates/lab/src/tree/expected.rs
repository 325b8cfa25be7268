//! The questions of a tree and the results that a validator should report for them.

use super::chain::Chain;
use super::data::DNAME_LABEL;
use super::fault::{Fault, FaultScope, Outcome};
use super::plant::{bit_above_name, lying_bitmap_target};
use super::{PlantedFault, Tree, TreeZone};
use nonesuch_dnssec::denial::is_signed;
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Name, NameRef, Rtype};
use nonesuch_zone::name_statuses;

/// Number of labels below the apex in the question that shows [`Fault::DeepNsec3`].
const DEEP_NAME_LABELS: usize = 60;

/// A question with the expected result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expectation {
    /// The name.
    pub name: Name,
    /// The type.
    pub rtype: Rtype,
    /// The response code of the servers of the zone. A resolver replaces it by SERVFAIL unless the
    /// outcome is [`Outcome::Secure`] or [`Outcome::Insecure`].
    pub rcode: Rcode,
    /// The expected result.
    pub outcome: Outcome,
    /// The code of the extended DNS error (RFC 8914) that a validator should give; `None` if no
    /// code fits, or the answer is sound.
    pub extended_error: Option<u16>,
    /// The fault that causes the result; `None` for a sound answer.
    pub fault: Option<Fault>,
}

/// An expected result without a question.
type Expected = (Outcome, Option<Fault>);

/// The expected result of a zone without faults, and the extended error.
type SoundResult = (Outcome, Option<u16>);

/// The result of a secure zone.
const SECURE: SoundResult = (Outcome::Secure, None);
/// The extended error "Unsupported DNSKEY Algorithm" (RFC 8914 §4.2).
const UNSUPPORTED_ALGORITHM: u16 = 1;

/// A question whose answer needs a denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Denied {
    /// The name does not exist.
    Missing,
    /// The sample wildcard answers.
    Expansion,
}

impl Tree {
    /// Questions for all data of all zones, for denials and for each fault. A zone below a zone
    /// with a fault has none, because its results depend on the fault above.
    #[must_use]
    pub fn expectations(&self) -> Vec<Expectation> {
        self.expectations_with(1)
    }

    /// As [`Tree::expectations`], with this number of questions for each kind of denial in a zone.
    #[must_use]
    pub fn expectations_with(&self, denials: u32) -> Vec<Expectation> {
        let mut list = Vec::new();
        for zone in &self.zones {
            if let Some(sound) = self.sound_result(zone) {
                zone.push_expectations(sound, denials, &mut list);
            }
        }
        list
    }

    /// The result for a zone without faults in the place of `zone`, with the extended error: Secure, or Insecure
    /// at and below an unsigned delegation or a zone with an unsupported algorithm. `None` if a zone above has
    /// faults other than those of [`FaultScope::Data`].
    fn sound_result(&self, zone: &TreeZone) -> Option<SoundResult> {
        let mut result = zone.own_result();
        let mut ancestor = zone.parent;
        while let Some(above) = ancestor.and_then(|index| self.zones.get(index)) {
            if above.description.faults.iter().any(|planted| planted.fault.scope() != FaultScope::Data) {
                return None;
            }
            // The chain of trust ends at the first zone from the root on that is not secure.
            if above.own_result() != SECURE {
                result = above.own_result();
            }
            ancestor = above.parent;
        }
        Some(result)
    }
}

impl TreeZone {
    /// The result for this zone without faults below a secure one.
    fn own_result(&self) -> SoundResult {
        if !self.is_in_chain_of_trust() {
            (Outcome::Insecure, None)
        } else if self.description.has_unsupported_algorithm() {
            (Outcome::Insecure, Some(UNSUPPORTED_ALGORITHM))
        } else {
            SECURE
        }
    }

    /// Whether the zone is signed and a DS record or the trust anchor leads to it.
    fn is_in_chain_of_trust(&self) -> bool {
        self.parent.is_none() && self.keys.is_some() || !self.ds.is_empty()
    }

    fn push_expectations(&self, sound: SoundResult, denials: u32, list: &mut Vec<Expectation>) {
        let (sound_outcome, sound_error) = sound;
        let mut push = |name: Name, rtype, rcode, (outcome, fault): Expected| {
            let extended_error = fault.map_or(sound_error, |fault| fault.entry().extended_error);
            list.push(Expectation { name, rtype, rcode, outcome, extended_error, fault });
        };
        let for_zone = self.expected_for_zone(sound_outcome);
        // A direct question for the wildcard shows another fault than an answer from the wildcard.
        let is_too_high = self.description.has(Fault::WildcardTooHigh);
        let rrsets = self.data_rrsets().into_iter();
        for (owner, rtype) in rrsets.filter(|(owner, _)| !(is_too_high && owner.view().is_wildcard())) {
            let expected = for_zone.unwrap_or_else(|| self.expected_for_rrset(sound_outcome, &owner, rtype));
            push(owner, rtype, Rcode::NOERROR, expected);
        }
        for (name, kind) in self.denied_names(denials) {
            let expected = for_zone.or_else(|| self.expected_for_denial(sound_outcome, &name, kind));
            let rcode = if kind == Denied::Missing { Rcode::NXDOMAIN } else { Rcode::NOERROR };
            expected.into_iter().for_each(|expected| push(name.clone(), Rtype::A, rcode, expected));
        }
        if for_zone.is_some() {
            return;
        }
        for planted in &self.description.faults {
            let expected = (planted.fault.entry().outcome, Some(planted.fault));
            if sound_outcome == Outcome::Secure || planted.fault == Fault::CnameLoop {
                for (name, rtype, rcode) in self.questions_of(planted, denials) {
                    push(name, rtype, rcode, expected);
                }
            }
        }
    }

    /// The questions that show a fault and are not about data or missing names of each zone.
    fn questions_of(&self, planted: &PlantedFault, denials: u32) -> Vec<(Name, Rtype, Rcode)> {
        match planted.fault {
            Fault::LyingBitmap => {
                let (at, rtype) = lying_bitmap_target(planted, &self.origin);
                vec![(at, rtype, Rcode::NOERROR)]
            }
            Fault::DeepNsec3 => {
                self.deep_name().into_iter().map(|name| (name, Rtype::A, Rcode::NXDOMAIN)).collect()
            }
            Fault::CnameLoop => {
                self.name_below(b"loop").into_iter().map(|name| (name, Rtype::A, Rcode::NOERROR)).collect()
            }
            Fault::UnsignedCname => {
                self.name_below(b"alias").into_iter().map(|name| (name, Rtype::A, Rcode::NOERROR)).collect()
            }
            Fault::Dname | Fault::UnsignedDname | Fault::ForgedCname => {
                let dname = self.name_below(DNAME_LABEL.as_bytes());
                let below = dname.and_then(|dname| Name::prepend(b"deep", dname.view()).ok());
                below.into_iter().map(|name| (name, Rtype::A, Rcode::NOERROR)).collect()
            }
            Fault::RemovedData => self.removed_questions(),
            fault => {
                let above = bit_above_name(fault, &self.origin);
                let below = |above: &Name| -> Vec<Name> {
                    numbered_names(above.view(), b"does-not-exist", denials).collect()
                };
                let names = above.iter().flat_map(|(above, _)| below(above));
                names.map(|name| (name, Rtype::A, Rcode::NXDOMAIN)).collect()
            }
        }
    }

    /// The questions for the data that [`Fault::RemovedData`] removes.
    fn removed_questions(&self) -> Vec<(Name, Rtype, Rcode)> {
        let hosts = (0..self.description.names).map(|number| (format!("host{number}"), Rtype::A));
        let all = hosts.chain([("mail".to_owned(), Rtype::MX)]);
        all.filter_map(|(label, rtype)| Some((self.name_below(label.as_bytes())?, rtype, Rcode::NOERROR)))
            .collect()
    }

    /// The result for all names of the zone, if one fault or the chain of trust determines it.
    fn expected_for_zone(&self, sound_outcome: Outcome) -> Option<Expected> {
        let of_scope = |scope| self.first_harm(|planted| planted.fault.scope() == scope);
        let is_secure = sound_outcome == Outcome::Secure;
        let of_dnskey_signature = |planted: &PlantedFault| {
            planted.fault.scope() == FaultScope::Signatures
                && planted.affects_rrset(&self.origin, &self.origin, Rtype::DNSKEY)
        };
        of_scope(FaultScope::Servers)
            .or_else(|| of_scope(FaultScope::Delegation))
            .or_else(|| (!is_secure).then_some((sound_outcome, None)))
            .or_else(|| of_scope(FaultScope::Keys))
            .or_else(|| of_scope(FaultScope::Ds))
            .or_else(|| self.first_harm(of_dnskey_signature))
    }

    /// The expected result of the first planted fault that `is_wanted` selects.
    fn first_fault(&self, is_wanted: impl Fn(&PlantedFault) -> bool) -> Option<Expected> {
        let found = self.description.faults.iter().find(|planted| is_wanted(planted))?;
        Some((found.fault.entry().outcome, Some(found.fault)))
    }

    /// As [`TreeZone::first_fault`], for faults with which an answer is not Secure.
    fn first_harm(&self, is_wanted: impl Fn(&PlantedFault) -> bool) -> Option<Expected> {
        self.first_fault(|planted| planted.fault.entry().outcome != Outcome::Secure && is_wanted(planted))
    }

    /// The result of an answer that no fault affects. It names a fault of the keys or the DS records
    /// with which the answer is Secure.
    fn sound(&self, outcome: Outcome) -> Expected {
        let is_harmless = |planted: &PlantedFault| {
            planted.fault.entry().outcome == Outcome::Secure
                && matches!(planted.fault.scope(), FaultScope::Keys | FaultScope::Ds)
        };
        (outcome, self.first_fault(is_harmless).and_then(|(_, fault)| fault))
    }

    fn expected_for_rrset(&self, sound_outcome: Outcome, owner: &Name, rtype: Rtype) -> Expected {
        let affects = |planted: &PlantedFault| match planted.fault {
            Fault::LargeRrset => *owner == self.large_rrset_owner(),
            Fault::UnsignedCname => rtype == Rtype::CNAME,
            Fault::UnsignedDname => rtype == Rtype::DNAME,
            fault => {
                fault.scope() == FaultScope::Signatures && planted.affects_rrset(&self.origin, owner, rtype)
            }
        };
        self.first_fault(affects).unwrap_or_else(|| self.sound(sound_outcome))
    }

    /// The owner of the records of [`Fault::LargeRrset`].
    fn large_rrset_owner(&self) -> Name {
        self.name_below(b"large").unwrap_or_else(|| self.origin.clone())
    }

    /// The result of a denial, or of an answer from a wildcard. `None` if a fault may affect it or
    /// not.
    fn expected_for_denial(&self, sound_outcome: Outcome, name: &Name, kind: Denied) -> Option<Expected> {
        let is_answer = kind == Denied::Expansion;
        let of_signatures = |planted: &PlantedFault| {
            planted.fault.scope() == FaultScope::Signatures
                && planted.rtype.is_none_or(|rtype| {
                    rtype == Rtype::SOA || rtype.is_signature_or_chain() || is_answer && rtype == Rtype::A
                })
        };
        if self.first_harm(of_signatures).is_some() {
            return None;
        }
        let is_opt_out = self.description.denial.is_opt_out() && sound_outcome == Outcome::Secure;
        let sound = self.sound(if is_opt_out { Outcome::Insecure } else { sound_outcome });
        let mut faults = self.description.faults.iter();
        let planted = faults.find(|planted| {
            planted.fault.scope() == FaultScope::Denial || planted.fault == Fault::MixedDenial
        });
        let Some(fault) = planted.map(|planted| planted.fault) else { return Some(sound) };
        let expected = (fault.entry().outcome, Some(fault));
        match fault {
            Fault::LyingBitmap
            | Fault::DeepNsec3
            | Fault::RemovedData
            | Fault::DelegationBitAboveName
            | Fault::DnameBitAboveName => Some(sound),
            Fault::WildcardTooHigh => Some(if is_answer { expected } else { sound }),
            Fault::MissingClosestEncloser | Fault::MissingWildcardDenial | Fault::MixedNsec3Parameters => {
                (!is_answer).then_some(expected)
            }
            Fault::MissingNextCloser => (!is_answer && !self.is_proved(name)).then_some(expected),
            _ => Some(expected),
        }
    }

    /// Whether a record of the chain covers the name or matches it.
    fn is_proved(&self, name: &Name) -> bool {
        let chain = Chain::new(self.origin.view(), &self.description);
        let nodes = self.contents.nodes();
        let mut records = nodes.filter_map(|node| Some((node.name(), node.rrset(chain.rtype())?)));
        records.any(|(owner, rrset)| rrset.rdatas().any(|rdata| chain.proves(owner, rdata, name.view())))
    }

    /// Owner and type of the authoritative RRsets, without the records that signing generates.
    fn data_rrsets(&self) -> Vec<(Name, Rtype)> {
        let statuses = name_statuses(&self.contents);
        let mut found = Vec::new();
        for (node, status) in self.contents.nodes().zip(statuses) {
            let is_data = |rtype: &Rtype| {
                let is_from_signing = rtype.is_signature_or_chain()
                    || matches!(*rtype, Rtype::DNSKEY | Rtype::NSEC5 | Rtype::NSEC5KEY | Rtype::DS);
                !is_from_signing && is_signed(*rtype, status)
            };
            let rtypes = node.rrsets().map(nonesuch_zone::Rrset::rtype).filter(is_data);
            found.extend(rtypes.map(|rtype| (node.name().to_name(), rtype)));
        }
        found
    }

    /// Names of questions whose answers need a denial: names that do not exist, and names for which
    /// the sample wildcard answers, `count` of each.
    fn denied_names(&self, count: u32) -> Vec<(Name, Denied)> {
        let exists = |name: NameRef<'_>| self.contents.find(name).is_ok();
        let has_wildcard =
            |above: NameRef<'_>| Name::wildcard_below(above).is_ok_and(|name| exists(name.view()));
        let apex = self.origin.view();
        let missing = numbered_names(apex, b"does-not-exist", if has_wildcard(apex) { 0 } else { count });
        let missing = missing.filter(|name| !exists(name.view())).map(|name| (name, Denied::Missing));
        let wild = self.name_below(b"wild").filter(|wild| has_wildcard(wild.view()));
        let expanded = wild.iter().flat_map(|wild| numbered_names(wild.view(), b"expanded", count));
        missing.chain(expanded.map(|name| (name, Denied::Expansion))).collect()
    }

    fn name_below(&self, label: &[u8]) -> Option<Name> {
        Name::prepend(label, self.origin.view()).ok()
    }

    /// A name that does not exist, 60 labels below the apex. `None` if it would be too long.
    fn deep_name(&self) -> Option<Name> {
        let below = |name: &Name| Name::prepend(b"n", name.view()).ok();
        std::iter::successors(Some(self.origin.clone()), below).take(DEEP_NAME_LABELS + 1).last()
    }
}

/// The names with the label and with the label and the numbers from 1, `count` in total.
fn numbered_names<'n>(
    above: NameRef<'n>,
    label: &'static [u8],
    count: u32,
) -> impl Iterator<Item = Name> + use<'n> {
    (0..count).filter_map(move |number| {
        let suffix = if number == 0 { String::new() } else { format!("-{number}") };
        Name::prepend(&[label, suffix.as_bytes()].concat(), above).ok()
    })
}
