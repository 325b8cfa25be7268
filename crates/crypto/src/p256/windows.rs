//! Parameters of the recoding of scalars for tables of multiples.

/// Number of windows of a scalar. Each window is one octet of the recoded form.
pub(super) const WINDOWS: usize = 32;

/// Bits of a window.
pub(super) const WINDOW_BITS: usize = 8;

/// Number of entries for one window: the odd multiples up to 255. Each entry also serves for its
/// negation.
pub(super) const ENTRIES_PER_WINDOW: usize = 1 << (WINDOW_BITS - 1);
