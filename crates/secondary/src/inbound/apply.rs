//! Applying the steps of an incremental transfer (RFC 1995 §4): strictly, and at the cost of the names that they touch.

use nonesuch_proto::{Name, NameRef, Rtype};
use nonesuch_zone::change::{ChangeError, SerialRule};
use nonesuch_zone::{ChangeSet, Contents, Node, NodesBuilder, Rrset};

/// How many times the octets of the zone and of the steps may be copied while the steps are applied.
const COPIES: u64 = 8;
/// Octets that may be copied in any case.
const MIN_COPIED: u64 = 64 << 20;

/// Why steps cannot be applied: the whole zone is to be transferred instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IxfrApplyError {
    /// A step does not fit the version before it.
    #[error("the primary's steps do not fit: {0}")]
    Change(#[from] ChangeError),
    /// A step changes a part of an RRset of different TTLs, of which the zone holds the lowest alone (RFC 2181 §5.2).
    #[error(
        "the primary's steps do not fit: the {rtype} records of {owner} have different TTLs, and some of them change"
    )]
    DifferentTtls {
        /// Owner of the RRset.
        owner: Name,
        /// Type of the RRset.
        rtype: Rtype,
    },
    /// The steps change large names too often.
    #[error(
        "applying the primary's steps copies more than {octets} octets: transferring the whole zone instead"
    )]
    TooMuchCopied {
        /// The limit.
        octets: u64,
    },
}

/// Octets that applying the steps of one transfer may copy. A step copies all records of the names that it changes.
struct CopyBudget {
    limit: u64,
    copied: u64,
}

impl CopyBudget {
    fn new(old: &Contents, steps: &[ChangeSet]) -> Self {
        let octets = old.octets() + steps.iter().map(step_octets).sum::<u64>();
        Self { limit: octets.saturating_mul(COPIES).max(MIN_COPIED), copied: 0 }
    }

    /// Deducts `octets` that are copied.
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

/// The zone after all `steps`, and what they change together.
///
/// Only the names that any step touches are carried from step to step; all others are copied once, at the end. Halves of the
/// steps are applied likewise to the names that they touch, so that the work grows with the changes of all steps, times the
/// logarithm of their number, and not with the product of steps and names. Names are picked where they have no more than half of the
/// octets, so that all copies that are held at once are a few times the names that any step touches, however many steps there are.
///
/// # Errors
/// The first change that does not fit: what a step removes must be there, what it adds must not be. Or applying the steps copies
/// more than eight times the octets of the zone and of the steps, and more than 64 MiB. The whole zone is to be asked for then.
pub fn apply_steps(old: &Contents, steps: &[ChangeSet]) -> Result<(Contents, ChangeSet), IxfrApplyError> {
    let mut budget = CopyBudget::new(old, steps);
    let names = touched_names(steps);
    let before = pick(old, &names);
    let after = apply_each(before.clone(), steps, &mut budget)?;
    let change = ChangeSet::between(&before, &after, |_| true);
    Ok((splice(old, &names, &after), change))
}

/// `old` after all steps; it has few names that no step touches.
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

/// That the TTLs of all records are known that stay in the RRsets that `step` changes: which records of an RRset had another TTL than
/// the lowest one is not known.
fn check_ttls(old: &Contents, step: &ChangeSet) -> Result<(), IxfrApplyError> {
    let mut at = 0;
    for touched in step.touched() {
        let node = match old.find_from(at, touched.name()) {
            Ok(node) => node,
            Err(place) => {
                at = place;
                continue;
            }
        };
        at = node.index();
        let unclear = node.rrsets().find(|here| {
            let [removed, added] = [touched.removed(), touched.added()].map(|side| same_rrset(side, *here));
            let is_mixed = [Some(*here), removed].into_iter().flatten().any(Rrset::has_mixed_ttls);
            let stays = removed.is_none_or(|removed| removed.count() < here.count());
            is_mixed && stays && (removed.is_some() || added.is_some())
        });
        if let Some(rrset) = unclear {
            return Err(IxfrApplyError::DifferentTtls { owner: node.name().to_name(), rtype: rrset.rtype() });
        }
    }
    Ok(())
}

/// The RRset of a side of a step that changes `here`.
fn same_rrset<'c>(side: Option<Node<'c>>, here: Rrset<'_>) -> Option<Rrset<'c>> {
    side?.rrsets().find(|rrset| (rrset.rtype(), rrset.covered()) == (here.rtype(), here.covered()))
}

fn apply_where_touched(
    old: Contents,
    steps: &[ChangeSet],
    budget: &mut CopyBudget,
) -> Result<Contents, IxfrApplyError> {
    let names = touched_names(steps);
    let picked = pick(&old, &names);
    budget.take(picked.octets())?;
    if picked.octets() > old.octets() / 2 {
        drop((picked, names));
        return apply_each(old, steps, budget);
    }
    let after = apply_each(picked, steps, budget)?;
    budget.take(old.octets())?;
    Ok(splice(&old, &names, &after))
}

/// The names that steps touch, in canonical order.
fn touched_names(steps: &[ChangeSet]) -> Vec<Name> {
    let mut names: Vec<Name> =
        steps.iter().flat_map(|step| step.touched().map(|touched| touched.name().to_name())).collect();
    names.sort_by(|a, b| a.view().cmp_canonical(b.view()));
    names.dedup();
    names
}

/// The nodes of `names` alone.
fn pick(old: &Contents, names: &[Name]) -> Contents {
    let mut run = NodesBuilder::default();
    let mut at = 0;
    for name in names {
        at = match old.find_from(at, name.view()) {
            Ok(node) => {
                run.push_node(node);
                node.index() + 1
            }
            Err(place) => place,
        };
    }
    Contents::from_parts(old.apex(), vec![run])
}

/// `old` with the nodes of `names` as they are in `part`.
fn splice(old: &Contents, names: &[Name], part: &Contents) -> Contents {
    let mut run = NodesBuilder::default();
    let (mut at, mut next) = (0, 0);
    for name in names {
        let (place, behind) = match old.find_from(at, name.view()) {
            Ok(node) => (node.index(), node.index() + 1),
            Err(place) => (place, place),
        };
        run.push_nodes(old, at..place);
        at = behind;
        if is_at(part, next, name.view()) {
            run.push_node(part.node(next));
            next += 1;
        }
    }
    run.push_nodes(old, at..old.node_count());
    Contents::from_parts(part.apex(), vec![run])
}

fn is_at(part: &Contents, index: usize, name: NameRef<'_>) -> bool {
    index < part.node_count() && part.node(index).name() == name
}
