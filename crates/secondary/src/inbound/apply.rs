//! Applies the steps of an incremental transfer (RFC 1995 §4). The checks are strict, and the cost
//! depends on the names that the steps change.

use nonesuch_proto::{Name, NameRef, Rtype};
use nonesuch_zone::change::{ChangeError, SerialRule};
use nonesuch_zone::{ChangeSet, Contents, Node, NodesBuilder, Rrset};

/// Maximum of the octets copied while the steps are applied, as a multiple of the octets of the
/// zone and the steps.
const COPY_FACTOR: u64 = 8;
/// Number of octets that may always be copied, however small the zone and the steps are.
const ALWAYS_PERMITTED_OCTETS: u64 = 64 << 20;

/// Why the steps cannot be applied. The caller transfers the whole zone instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IxfrApplyError {
    /// A step does not fit the previous version.
    #[error("the incremental transfer cannot be applied: {0}")]
    Change(#[from] ChangeError),
    /// A step changes a part of an RRset with different TTLs. The zone stores only the lowest TTL
    /// (RFC 2181 §5.2).
    #[error(
        "the incremental transfer cannot be applied: the {rtype} records of {owner} have different TTLs, and some of them change"
    )]
    DifferentTtls {
        /// Owner of the RRset.
        owner: Name,
        /// Type of the RRset.
        rtype: Rtype,
    },
    /// The steps change large names too often.
    #[error(
        "applying the incremental transfer copies more than {octets} octets: transferring the whole zone instead"
    )]
    TooMuchCopied {
        /// The limit in octets.
        octets: u64,
    },
}

/// Budget of octets that applying the steps of one transfer may copy. A step copies all records of
/// the names that it changes.
struct CopyBudget {
    limit: u64,
    copied: u64,
}

impl CopyBudget {
    fn new(old: &Contents, steps: &[ChangeSet]) -> Self {
        let octets = old.octets() + steps.iter().map(step_octets).sum::<u64>();
        Self { limit: octets.saturating_mul(COPY_FACTOR).max(ALWAYS_PERMITTED_OCTETS), copied: 0 }
    }

    /// Deducts `octets` from the budget.
    ///
    /// # Errors
    /// Fails if the copied octets exceed the limit.
    const fn take(&mut self, octets: u64) -> Result<(), IxfrApplyError> {
        self.copied = self.copied.saturating_add(octets);
        if self.copied > self.limit {
            return Err(IxfrApplyError::TooMuchCopied { octets: self.limit });
        }
        Ok(())
    }
}

fn step_octets(step: &ChangeSet) -> u64 {
    step.removed().octets() + step.added().octets()
}

/// Returns the zone after all `steps`, and the combined change.
///
/// Only the names that any step changes are passed from step to step. All other names are copied
/// once, at the end. Each half of the steps is applied in the same way to the names that it
/// changes. So the work is proportional to the changes of all steps times the logarithm of their
/// number, and not to the product of steps and names. Names are selected only if they have at most
/// half of the octets. So all copies in memory together are a small multiple of the changed names,
/// however many steps there are.
///
/// # Errors
/// Returns the first change that does not fit: a record that a step removes must exist, and a
/// record that it adds must not exist. Also fails if the steps copy more than eight times the
/// octets of the zone and the steps, and more than 64 MiB. The caller then requests the whole zone.
pub fn apply_steps(old: &Contents, steps: &[ChangeSet]) -> Result<(Contents, ChangeSet), IxfrApplyError> {
    let mut budget = CopyBudget::new(old, steps);
    let names = touched_names(steps);
    let before = select_nodes(old, &names);
    let after = apply_each(before.clone(), steps, &mut budget)?;
    let change = ChangeSet::between(&before, &after, |_| true);
    Ok((replace_nodes(old, &names, &after), change))
}

/// Returns `old` after all steps. The cost is low only if most names of `old` are changed by a
/// step.
fn apply_each(
    old: Contents,
    steps: &[ChangeSet],
    budget: &mut CopyBudget,
) -> Result<Contents, IxfrApplyError> {
    match steps {
        [] => Ok(old),
        [step] => {
            budget.take(old.octets() + step_octets(step))?;
            check_ttls(&old, step)?;
            Ok(step.apply(&old, SerialRule::Exact)?)
        }
        _ => {
            let (first, second) = steps.split_at(steps.len() / 2);
            let old = apply_where_touched(old, first, budget)?;
            apply_where_touched(old, second, budget)
        }
    }
}

/// Checks that the TTLs of all records that remain in the RRsets that `step` changes are known. In
/// an RRset with different TTLs, they are not: the zone stores only the lowest TTL.
///
/// # Errors
/// [`IxfrApplyError::DifferentTtls`].
fn check_ttls(old: &Contents, step: &ChangeSet) -> Result<(), IxfrApplyError> {
    let mut at = 0;
    for touched in step.touched() {
        let node = match old.find_from(at, touched.name()) {
            Ok(node) => node,
            Err(index) => {
                at = index;
                continue;
            }
        };
        at = node.index();
        let ambiguous = node.rrsets().find(|here| {
            let [removed, added] =
                [touched.removed(), touched.added()].map(|side| matching_rrset(side, *here));
            let is_mixed = [Some(*here), removed].into_iter().flatten().any(Rrset::has_mixed_ttls);
            let stays = removed.is_none_or(|removed| removed.count() < here.count());
            is_mixed && stays && (removed.is_some() || added.is_some())
        });
        if let Some(rrset) = ambiguous {
            return Err(IxfrApplyError::DifferentTtls { owner: node.name().to_name(), rtype: rrset.rtype() });
        }
    }
    Ok(())
}

/// Returns the RRset of `side` with the type of `here`. `side`: the removals or the additions of a
/// step.
fn matching_rrset<'c>(side: Option<Node<'c>>, here: Rrset<'_>) -> Option<Rrset<'c>> {
    side?.rrsets().find(|rrset| (rrset.rtype(), rrset.covered()) == (here.rtype(), here.covered()))
}

fn apply_where_touched(
    old: Contents,
    steps: &[ChangeSet],
    budget: &mut CopyBudget,
) -> Result<Contents, IxfrApplyError> {
    let names = touched_names(steps);
    let selected = select_nodes(&old, &names);
    budget.take(selected.octets())?;
    if selected.octets() > old.octets() / 2 {
        drop((selected, names));
        return apply_each(old, steps, budget);
    }
    let after = apply_each(selected, steps, budget)?;
    budget.take(old.octets())?;
    Ok(replace_nodes(&old, &names, &after))
}

/// Returns the names that the steps change, in canonical order.
fn touched_names(steps: &[ChangeSet]) -> Vec<Name> {
    let mut names: Vec<Name> =
        steps.iter().flat_map(|step| step.touched().map(|touched| touched.name().to_name())).collect();
    names.sort_by(|a, b| a.view().cmp_canonical(b.view()));
    names.dedup();
    names
}

/// Returns only the nodes of `names`.
fn select_nodes(old: &Contents, names: &[Name]) -> Contents {
    let mut nodes = NodesBuilder::default();
    let mut at = 0;
    for name in names {
        at = match old.find_from(at, name.view()) {
            Ok(node) => {
                nodes.push_node(node);
                node.index() + 1
            }
            Err(index) => index,
        };
    }
    Contents::from_parts(old.apex(), vec![nodes])
}

/// Returns `old` with the nodes of `names` replaced by those in `part`.
fn replace_nodes(old: &Contents, names: &[Name], part: &Contents) -> Contents {
    let mut nodes = NodesBuilder::default();
    let (mut at, mut next) = (0, 0);
    for name in names {
        let (index, end) = match old.find_from(at, name.view()) {
            Ok(node) => (node.index(), node.index() + 1),
            Err(index) => (index, index),
        };
        nodes.push_nodes(old, at..index);
        at = end;
        if has_name_at(part, next, name.view()) {
            nodes.push_node(part.node(next));
            next += 1;
        }
    }
    nodes.push_nodes(old, at..old.node_count());
    Contents::from_parts(part.apex(), vec![nodes])
}

fn has_name_at(part: &Contents, index: usize, name: NameRef<'_>) -> bool {
    index < part.node_count() && part.node(index).name() == name
}
