//! Wipes secrets that libraries leave on the stack: they pass private keys by value, and thus leave
//! copies there.

use std::hint::black_box;

/// Calls `work`, and then overwrites the `BYTES` bytes of stack that `work` and the functions that
/// it called used for their local variables.
///
/// The result of `work` must not contain a secret by value, only in a box. This is a second line of
/// defence: the owner of a secret in memory wipes it on drop.
pub(crate) fn wiping_stack<const BYTES: usize, T>(work: impl FnOnce() -> T) -> T {
    let result = call_in_own_frame(work);
    overwrite_stack::<BYTES>();
    result
}

/// Calls `work` in a separate stack frame, at the position that the frame of [`overwrite_stack`]
/// will have.
#[inline(never)]
fn call_in_own_frame<T>(work: impl FnOnce() -> T) -> T {
    work()
}

#[inline(never)]
fn overwrite_stack<const BYTES: usize>() {
    let mut area = [0_u8; BYTES];
    // Without `black_box`, the compiler would see that nothing reads the area, and remove the
    // writes.
    black_box(&mut area);
}
