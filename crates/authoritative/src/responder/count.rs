//! Counts queries and responses.

use super::ThreadState;
use crate::zones::ZoneEntry;

impl ThreadState {
    /// Counts a query for a name in the zone of `entry`, once for both passes of a batch.
    #[cold]
    pub(super) fn count_zone_query(&self, entry: &ZoneEntry) {
        if !self.is_second_pass {
            entry.count_query();
        }
    }
}
