//! How the scalars of a table of multiples are recoded.

/// Windows of a scalar, each an octet of its recoded form.
pub(super) const WINDOWS: usize = 32;

/// Bits of a window.
pub(super) const WIDTH: usize = 8;

/// Entries for one window: the odd multiples up to 255, each of which serves for its negation too.
pub(super) const ENTRIES: usize = 1 << (WIDTH - 1);
