//! Selects items and runs them in order.

use super::{Evidence, Item, ItemResult, Profile, Row};
use std::time::Instant;

/// Which items of a table run.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// The set of items, if `items` is empty.
    pub profile: Profile,
    /// Numbers of items, such as "F-85".
    pub items: Vec<String>,
}

/// An item that is not in the table.
#[derive(Debug, thiserror::Error)]
#[error("'{id}' is not an item of this check: --list prints all items")]
pub struct UnknownItem {
    /// The number, as given.
    pub id: String,
}

impl Selection {
    /// The selected rows, in the order of the table.
    ///
    /// # Errors
    /// An item of the selection is not in the table.
    pub fn select<C>(
        &self,
        rows: impl IntoIterator<Item = &'static Row<C>>,
    ) -> Result<Vec<&'static Row<C>>, UnknownItem> {
        let rows: Vec<&Row<C>> = rows.into_iter().collect();
        let has_id = |row: &&Row<C>, id: &String| row.item.id.eq_ignore_ascii_case(id);
        if let Some(id) = self.items.iter().find(|id| !rows.iter().any(|row| has_id(row, id))) {
            return Err(UnknownItem { id: id.clone() });
        }
        let is_selected = |row: &&Row<C>| {
            if self.items.is_empty() {
                self.profile.contains(&row.item)
            } else {
                self.items.iter().any(|id| has_id(row, id))
            }
        };
        Ok(rows.into_iter().filter(is_selected).collect())
    }
}

/// Runs the items in order. `on_start` gets the index and the item before it runs.
pub fn run_rows<C>(
    rows: &[&'static Row<C>],
    context: &mut C,
    on_start: &mut dyn FnMut(usize, &Item),
) -> Vec<ItemResult> {
    let mut results = Vec::with_capacity(rows.len());
    for (index, row) in rows.iter().enumerate() {
        on_start(index, &row.item);
        let started_at = Instant::now();
        let mut evidence = Evidence::default();
        let outcome = (row.run)(context, &mut evidence);
        results.push(ItemResult { item: row.item, outcome, evidence, elapsed: started_at.elapsed() });
    }
    results
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Outcome;

    const fn row(id: &'static str, is_jprs: bool, is_quick: bool) -> Row<u32> {
        let item = Item { id, subject: "", rules: &[], method: "", is_jprs, is_quick };
        Row {
            item,
            run: |count, _| {
                *count += 1;
                Outcome::pass()
            },
        }
    }

    static ROWS: [Row<u32>; 3] =
        [row("A-1", true, false), row("XA-2", false, true), row("XA-3", false, false)];

    fn selected(profile: Profile, items: &[&str]) -> Result<Vec<&'static str>, UnknownItem> {
        let items = items.iter().map(|item| (*item).to_owned()).collect();
        let rows = Selection { profile, items }.select(&ROWS)?;
        Ok(rows.iter().map(|row| row.item.id).collect())
    }

    #[test]
    fn items_are_selected_by_profile_or_by_number() {
        assert_eq!(selected(Profile::Jprs, &[]).unwrap(), ["A-1"]);
        assert_eq!(selected(Profile::Quick, &[]).unwrap(), ["XA-2"]);
        assert_eq!(selected(Profile::Full, &[]).unwrap(), ["A-1", "XA-2", "XA-3"]);
        assert_eq!(selected(Profile::Jprs, &["xa-3", "A-1"]).unwrap(), ["A-1", "XA-3"]);
        assert_eq!(selected(Profile::Full, &["A-9"]).unwrap_err().id, "A-9");
    }

    #[test]
    fn every_selected_item_runs_once_in_order() {
        let rows = Selection::default().select(&ROWS).unwrap();
        let (mut count, mut started) = (0, Vec::new());
        let results = run_rows(&rows, &mut count, &mut |index, item| started.push((index, item.id)));
        assert_eq!((count, results.len()), (3, 3));
        assert_eq!(started, [(0, "A-1"), (1, "XA-2"), (2, "XA-3")]);
    }
}
