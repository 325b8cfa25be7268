//! Applying the steps of an incremental transfer (RFC 1995 §4): strictly, and at the cost of the names that they touch.

use nonesuch_proto::{Name, NameRef};
use nonesuch_zone::change::{ChangeError, SerialRule};
use nonesuch_zone::{ChangeSet, Contents, Run};

/// The zone after all `steps`, and what they change together.
///
/// Only the names that any step touches are carried from step to step; all others are copied once, at the end. Halves of the
/// steps are applied likewise to the names that they touch, so that the work grows with the changes of all steps, times the
/// logarithm of their number, and not with the product of steps and names. Names are picked where they have no more than half of the
/// octets, so that all copies that are held at once are a few times the names that any step touches, however many steps there are.
///
/// # Errors
/// The first change that does not fit: what a step removes must be there, what it adds must not be. The whole zone is to be
/// asked for then.
pub fn apply_steps(old: &Contents, steps: &[ChangeSet]) -> Result<(Contents, ChangeSet), ChangeError> {
    let names = touched_names(steps);
    let before = pick(old, &names);
    let after = apply_each(before.clone(), steps)?;
    let change = ChangeSet::between(&before, &after, |_| true);
    Ok((splice(old, &names, &after), change))
}

/// `old` after all steps; it has few names that no step touches.
fn apply_each(old: Contents, steps: &[ChangeSet]) -> Result<Contents, ChangeError> {
    match steps {
        [] => Ok(old),
        [step] => step.apply(&old, SerialRule::Exact),
        _ => {
            let (first, second) = steps.split_at(steps.len() / 2);
            apply_where_touched(apply_where_touched(old, first)?, second)
        }
    }
}

fn apply_where_touched(old: Contents, steps: &[ChangeSet]) -> Result<Contents, ChangeError> {
    let names = touched_names(steps);
    let picked = pick(&old, &names);
    if picked.octets() > old.octets() / 2 {
        drop((picked, names));
        return apply_each(old, steps);
    }
    let after = apply_each(picked, steps)?;
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
    let mut run = Run::default();
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
    Contents::from_runs(old.apex(), vec![run])
}

/// `old` with the nodes of `names` as they are in `part`.
fn splice(old: &Contents, names: &[Name], part: &Contents) -> Contents {
    let mut run = Run::default();
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
    Contents::from_runs(part.apex(), vec![run])
}

fn is_at(part: &Contents, index: usize, name: NameRef<'_>) -> bool {
    index < part.node_count() && part.node(index).name() == name
}
