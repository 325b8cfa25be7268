//! Random zones and all possible claims about their names. Each claim comes with all denial records
//! of the zone. A true claim is Secure, and a false claim never is. The truth is determined from
//! the unsigned zone according to RFC 1034 §4.3.2, RFC 4592 and RFC 6672, without use of a chain.

use super::*;
use crate::denial::nsec5::Proofs;
use crate::denial::{Mechanism, NameHash};
use crate::keys::{KeySet, Nsec5Key};
use crate::tests::{NSEC_AND_NSEC3, key, number_for, options, sign_any, zone};
use nonesuch_crypto::vrf::VrfPrivateKey;
use nonesuch_proto::NameRef;
use nonesuch_zone::{Contents, Node, Rrset};
use proptest::prelude::*;
use std::collections::BTreeMap;

/// The true answer of a zone for a name and type.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Truth {
    Answer,
    /// The records of this wildcard are the answer.
    Wildcard(Name),
    /// An alias from the name itself, a wildcard or a DNAME.
    Alias,
    NoData,
    WildcardNoData,
    NxDomain,
    Referral(Name, bool),
}

struct World {
    plain: Contents,
    signed: Contents,
    mechanism: Mechanism,
    keys: TrustedKeys,
    vrf: VrfPrivateKey,
}

fn ancestors(name: &Name) -> Vec<Name> {
    let labels = name.view().label_count();
    (1..=labels).map(|count| name.view().suffix(count).to_name()).collect()
}

impl World {
    fn new(plain: Contents, mechanism: Mechanism) -> Self {
        let pair = key("example.", 257, number_for(Algorithm::ED25519, mechanism), 1);
        let rdata = pair.dnskey_rdata();
        let set = KeySet::new(&name("example."), vec![pair]).unwrap();
        let (signed, proofs): (Contents, Option<Arc<Proofs>>) = sign_any(&plain, &set, &options(mechanism));
        let mut keys = TrustedKeys::new(&name("example."), [rdata.as_slice()], &ValidationLimits::default());
        let vrf = crate::tests::nsec5::vrf();
        if proofs.is_some() {
            keys.set_nsec5_keys([Nsec5Key::of(&vrf).rdata()], &ValidationLimits::default());
        }
        Self { plain, signed, mechanism, keys, vrf }
    }

    fn node(&self, owner: NameRef<'_>) -> Option<Node<'_>> {
        self.plain.nodes().find(|node| node.name() == owner)
    }

    fn exists(&self, owner: NameRef<'_>) -> bool {
        self.plain.nodes().any(|node| node.name().is_at_or_below(owner))
    }

    fn truth(&self, owner: &Name, rtype: Rtype) -> Truth {
        let apex = self.plain.apex();
        for above in ancestors(owner) {
            let Some(node) = self.node(above.view()) else { continue };
            let is_owner = above == *owner;
            if above != *apex && node.has(Rtype::NS) && !(is_owner && rtype == Rtype::DS) {
                return Truth::Referral(above, node.has(Rtype::DS));
            }
            if !is_owner && node.has(Rtype::DNAME) {
                return Truth::Alias;
            }
        }
        if self.exists(owner.view()) {
            return match self.node(owner.view()) {
                Some(node) if node.has(rtype) => Truth::Answer,
                Some(node) if node.has(Rtype::CNAME) => Truth::Alias,
                _ => Truth::NoData,
            };
        }
        let mut encloser = owner.view();
        while !self.exists(encloser) {
            encloser = encloser.parent().unwrap();
        }
        let wildcard = Name::wildcard_below(encloser).unwrap();
        match self.node(wildcard.view()) {
            Some(node) if node.has(rtype) => Truth::Wildcard(wildcard),
            Some(node) if node.has(Rtype::CNAME) => Truth::Alias,
            _ if self.exists(wildcard.view()) => Truth::WildcardNoData,
            _ => Truth::NxDomain,
        }
    }

    /// A response with all chain records and without proofs.
    fn reply(&self, owner: &Name, rtype: Rtype) -> Reply {
        let reply = Reply::to(&owner.to_string(), rtype);
        let chain = |rtype| matches!(rtype, Rtype::NSEC | Rtype::NSEC3 | Rtype::NSEC5);
        let rrsets = self.signed.nodes().flat_map(|node| node.rrsets().map(move |rrset| (node, rrset)));
        let of_chain = rrsets.filter(|(_, rrset)| chain(rrset.rtype()));
        of_chain.fold(reply, |reply, (node, rrset)| {
            copy(reply, Section::Authority, &node.name().to_name(), node, rrset)
        })
    }

    fn signed_node(&self, owner: &Name) -> Node<'_> {
        self.signed.find(owner.view()).unwrap_or_else(|_| panic!("{owner}"))
    }

    /// The possible selections of NSEC5 proofs. Other mechanisms have only the empty one. For
    /// NSEC5, there is a selection for each kind of denial and each possible next closer name.
    fn proofs(&self, owner: &Name) -> Vec<Vec<Name>> {
        if self.mechanism.name_hash() != NameHash::Vrf {
            return vec![vec![]];
        }
        let path = ancestors(owner);
        let mut choices = vec![vec![owner.clone()]];
        for pair in path.windows(2) {
            let [parent, next] = pair else { continue };
            let wildcard = Name::wildcard_below(parent.view()).unwrap();
            choices.push(vec![parent.clone(), next.clone()]);
            choices.push(vec![wildcard.clone(), next.clone()]);
            choices.push(vec![next.clone()]);
            choices.push(vec![parent.clone(), next.clone(), wildcard]);
        }
        choices
    }

    fn with_proofs(&self, mut reply: Reply, names: &[Name]) -> Reply {
        let tag = Nsec5Key::of(&self.vrf).tag().to_be_bytes();
        for owner in names {
            let (mut canonical, mut rdata) = (Vec::new(), tag.to_vec());
            owner.view().push_canonical(&mut canonical);
            self.vrf.prove(&canonical, &mut rdata).unwrap();
            reply = reply.raw(Section::Authority, owner, Rtype::NSEC5PROOF, &[rdata]);
        }
        reply
    }

    /// The results of the validation of a claim, for each selection of proofs.
    fn statuses(&self, reply: &Reply) -> Vec<(SecurityStatus, Option<ProvedAnswer>)> {
        let mut choices = self.proofs(&reply.name);
        choices.sort();
        choices.dedup();
        let validate = |names: Vec<Name>| {
            let limits = ValidationLimits {
                nsec3_records: 100,
                proofs_per_response: 100,
                proofs: 100,
                ..ValidationLimits::default()
            };
            let reply = self.with_proofs(reply.clone(), &names);
            let validation = reply.validate_with(&self.keys, NOW, &mut Budget::new(limits));
            (validation.status, validation.proved)
        };
        choices.into_iter().map(validate).collect()
    }

    /// Asserts that a claim is proved if it is true, and never if it is false. With opt-out, a true
    /// claim may be Insecure.
    fn judge(
        &self,
        reply: &Reply,
        is_true: impl Fn(&ProvedAnswer) -> bool,
        truth: &Truth,
    ) -> Result<(), TestCaseError> {
        let statuses = self.statuses(reply);
        let mut any_true = false;
        for (status, proved) in &statuses {
            let holds = proved.as_ref().is_some_and(&is_true);
            any_true |= holds;
            // The proof that a delegation is not signed is as good as one with status Secure.
            let says_so = matches!(
                status,
                SecurityStatus::Secure | SecurityStatus::Insecure(InsecureReason::UnsignedDelegation)
            );
            let is_false = says_so && !holds;
            let is_undecided = matches!(status, SecurityStatus::Indeterminate(_));
            prop_assert!(
                !is_false && !is_undecided,
                "{} {} {truth:?}: {statuses:?}",
                reply.name,
                reply.rtype
            );
        }
        let must_hold = is_true(&self.claimed(reply, truth));
        if must_hold && !self.is_unprovable(&reply.name) {
            prop_assert!(any_true, "{} {} {truth:?}: {statuses:?}", reply.name, reply.rtype);
        }
        if !self.mechanism.is_opt_out() && !must_hold {
            prop_assert!(!any_true, "{} {} {truth:?}: {statuses:?}", reply.name, reply.rtype);
        }
        Ok(())
    }

    /// The content that a true response to this question proves. If the claim differs from the
    /// truth, a content that no claim has.
    fn claimed(&self, reply: &Reply, truth: &Truth) -> ProvedAnswer {
        match truth {
            Truth::NxDomain if reply.rcode == Rcode::NXDOMAIN => ProvedAnswer::NxDomain,
            Truth::NoData if reply.rcode == Rcode::NOERROR => ProvedAnswer::NoData,
            Truth::WildcardNoData if reply.rcode == Rcode::NOERROR => ProvedAnswer::WildcardNoData,
            Truth::Referral(child, signed) => {
                ProvedAnswer::Referral { child: child.clone(), has_ds: *signed }
            }
            Truth::Wildcard(_) => ProvedAnswer::WildcardAnswer,
            _ => ProvedAnswer::Alias { target: Name::root() },
        }
    }

    /// Whether the closest encloser is omitted in an opt-out chain. The closest provable encloser
    /// is then another name, which may have a wildcard.
    fn is_unprovable(&self, owner: &Name) -> bool {
        let is_left_out = |above: &Name| {
            let mut below = self.plain.nodes().filter(|node| node.name().is_at_or_below(above.view()));
            let is_insecure = |node: Node<'_>| {
                ancestors(&node.name().to_name()).iter().filter_map(|above| self.node(above.view())).any(
                    |above| {
                        above.name() != self.plain.apex().view()
                            && above.has(Rtype::NS)
                            && !above.has(Rtype::DS)
                    },
                )
            };
            self.exists(above.view()) && below.all(is_insecure)
        };
        self.mechanism == Mechanism::Nsec3OptOut && ancestors(owner).iter().any(is_left_out)
    }
}

/// Copies an RRset of the zone with its signatures, with its owner or another one.
fn copy(reply: Reply, section: Section, owner: &Name, node: Node<'_>, rrset: Rrset<'_>) -> Reply {
    let own = |rrset: Rrset<'_>| rrset.rdatas().map(<[u8]>::to_vec).collect::<Vec<_>>();
    let reply = reply.raw(section, owner, rrset.rtype(), &own(rrset));
    match node.signatures(rrset.rtype()) {
        Some(signatures) => reply.raw(section, owner, Rtype::RRSIG, &own(signatures)),
        None => reply,
    }
}

/// Claims that the name does not exist, and that the type does not exist.
fn judge_denials(world: &World, owner: &Name, rtype: Rtype, truth: &Truth) -> Result<(), TestCaseError> {
    let nodata = world.reply(owner, rtype);
    let nxdomain = nodata.clone().rcode(Rcode::NXDOMAIN);
    world.judge(&nxdomain, |proved| *proved == ProvedAnswer::NxDomain && *truth == Truth::NxDomain, truth)?;
    let is_true = |proved: &ProvedAnswer| match truth {
        Truth::NoData => *proved == ProvedAnswer::NoData,
        Truth::WildcardNoData => {
            *proved == ProvedAnswer::WildcardNoData
                || world.mechanism.is_opt_out() && *proved == ProvedAnswer::NoData
        }
        _ => false,
    };
    world.judge(&nodata, is_true, truth)
}

/// Claims that the records of each wildcard above the name are the answer.
fn judge_wildcards(world: &World, owner: &Name, rtype: Rtype, truth: &Truth) -> Result<(), TestCaseError> {
    for above in ancestors(owner) {
        let wildcard = Name::wildcard_below(above.view()).unwrap();
        let Some(node) = world.node(wildcard.view()).filter(|node| node.has(rtype)) else { continue };
        if wildcard == *owner || !owner.view().is_below(above.view()) || node.has(Rtype::NS) {
            continue;
        }
        let node = world.signed_node(&wildcard);
        let Some(rrset) = node.rrset(rtype).filter(|_| node.signatures(rtype).is_some()) else { continue };
        let reply = copy(world.reply(owner, rtype), Section::Answer, owner, node, rrset);
        let is_own = *truth == Truth::Wildcard(wildcard);
        let not_own = Truth::Alias;
        let truth = if is_own { truth } else { &not_own };
        world.judge(&reply, |proved| *proved == ProvedAnswer::WildcardAnswer && is_own, truth)?;
    }
    Ok(())
}

/// Claims that each ancestor is an unsigned delegation, and that it is a signed one.
fn judge_referrals(world: &World, owner: &Name, rtype: Rtype, truth: &Truth) -> Result<(), TestCaseError> {
    for above in ancestors(owner).into_iter().skip(1) {
        if above == *owner && rtype == Rtype::DS {
            continue;
        }
        let base = world.reply(owner, rtype).unsigned(
            Section::Authority,
            &above.to_string(),
            Rtype::NS,
            "ns.attacker.test.",
        );
        let is_unsigned = *truth == Truth::Referral(above.clone(), false);
        let none = Truth::Alias;
        let unsigned = ProvedAnswer::Referral { child: above.clone(), has_ds: false };
        world.judge(
            &base,
            |proved| *proved == unsigned && is_unsigned,
            if is_unsigned { truth } else { &none },
        )?;
        let Some(node) = world.node(above.view()).filter(|node| node.has(Rtype::DS)) else { continue };
        let signed = world.signed_node(&node.name().to_name());
        let Some(ds) = signed.rrset(Rtype::DS).filter(|_| signed.signatures(Rtype::DS).is_some()) else {
            continue;
        };
        let reply = copy(base, Section::Authority, &above, signed, ds);
        let is_signed = *truth == Truth::Referral(above.clone(), true);
        let referral = ProvedAnswer::Referral { child: above.clone(), has_ds: true };
        world.judge(
            &reply,
            |proved| *proved == referral && is_signed,
            if is_signed { truth } else { &none },
        )?;
    }
    Ok(())
}

const LABELS: [&str; 4] = ["a", "b", "c", "*"];
const TYPES: [Rtype; 5] = [Rtype::A, Rtype::TXT, Rtype::DS, Rtype::NS, Rtype::CNAME];

#[derive(Clone, Debug)]
enum Data {
    Address,
    Text,
    Cname,
    Dname,
    Cut(bool),
}

fn labels(least: usize, most: usize) -> impl Strategy<Value = Vec<usize>> {
    proptest::collection::vec(prop_oneof![4 => 0..3usize, 1 => Just(3usize)], least..=most)
}

fn data() -> impl Strategy<Value = Data> {
    prop_oneof![
        4 => Just(Data::Address),
        2 => Just(Data::Text),
        1 => Just(Data::Cname),
        1 => Just(Data::Dname),
        3 => any::<bool>().prop_map(Data::Cut),
    ]
}

/// A zone with these records, without records that a zone must not contain, and without zone cuts
/// and DNAMEs at wildcards.
fn zone_of(records: &[(Vec<usize>, Data)]) -> Contents {
    let mut owners: BTreeMap<String, Vec<&Data>> = BTreeMap::new();
    for (labels, data) in records {
        let present = owners.entry(text_of(labels)).or_default();
        let has = |wanted: fn(&Data) -> bool| present.iter().any(|data| wanted(data));
        let is_wildcard = labels.first() == Some(&3);
        let is_allowed = match data {
            Data::Cname => present.is_empty(),
            _ if has(|data| matches!(data, Data::Cname)) => false,
            Data::Dname => !is_wildcard && !has(|data| matches!(data, Data::Dname | Data::Cut(_))),
            Data::Cut(_) => !is_wildcard && !has(|data| matches!(data, Data::Dname | Data::Cut(_))),
            Data::Address => !has(|data| matches!(data, Data::Address)),
            Data::Text => !has(|data| matches!(data, Data::Text)),
        };
        if is_allowed {
            present.push(data);
        }
    }
    let line = |owner: &str, data: &Data| match data {
        Data::Address => format!("{owner} A 192.0.2.1\n"),
        Data::Text => format!("{owner} TXT t\n"),
        Data::Cname => format!("{owner} CNAME outside.test.\n"),
        Data::Dname => format!("{owner} DNAME outside.test.\n"),
        Data::Cut(false) => format!("{owner} NS ns.test.\n"),
        Data::Cut(true) => format!("{owner} NS ns.test.\n{owner} DS {DS}\n"),
    };
    let lines = owners.iter().flat_map(|(owner, all)| all.iter().map(move |data| line(owner, data)));
    zone(&lines.collect::<String>())
}

fn text_of(labels: &[usize]) -> String {
    let mut text: String = labels.iter().map(|label| format!("{}.", LABELS[*label])).collect();
    text.push_str("example.");
    text
}

type Asked = Vec<(Vec<usize>, usize)>;

fn judge_zone(
    records: &[(Vec<usize>, Data)],
    questions: &Asked,
    mechanism: Mechanism,
) -> Result<(), TestCaseError> {
    let world = World::new(zone_of(records), mechanism);
    for (labels, rtype) in questions {
        let (owner, rtype) = (name(&text_of(labels)), TYPES[*rtype]);
        // The parent answers for DS at the apex.
        if labels.is_empty() && rtype == Rtype::DS {
            continue;
        }
        let truth = world.truth(&owner, rtype);
        let outcome = judge_denials(&world, &owner, rtype, &truth)
            .and_then(|()| judge_wildcards(&world, &owner, rtype, &truth))
            .and_then(|()| judge_referrals(&world, &owner, rtype, &truth));
        if let Err(error) = outcome {
            return Err(TestCaseError::fail(format!("{mechanism} {records:?}: {error}")));
        }
    }
    Ok(())
}

fn records() -> impl Strategy<Value = Vec<(Vec<usize>, Data)>> {
    proptest::collection::vec((labels(1, 3), data()), 0..7)
}

fn questions() -> impl Strategy<Value = Asked> {
    proptest::collection::vec((labels(0, 4), 0..TYPES.len()), 3)
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(5155),
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(90))]

    #[test]
    fn what_is_true_is_secure_and_what_is_false_is_not(
        records in records(),
        questions in questions(),
        mechanism in 0..NSEC_AND_NSEC3.len(),
    ) {
        judge_zone(&records, &questions, NSEC_AND_NSEC3[mechanism])?;
    }
}

proptest! {
    #![proptest_config(config(16))]

    #[test]
    fn what_is_true_is_secure_and_what_is_false_is_not_with_nsec5(
        records in records(),
        questions in questions(),
        opt_out: bool,
    ) {
        judge_zone(&records, &questions, if opt_out { Mechanism::Nsec5OptOut } else { Mechanism::Nsec5 })?;
    }
}
