//! Wipes secrets that libraries leave on the stack: they pass private keys by value, and thus leave
//! copies there.

use std::hint::black_box;

/// Calls `work`, and then overwrites the `OCTETS` bytes of stack that `work` and the functions that
/// it called used for their local variables.
///
/// The result of `work` must not contain a secret by value, only in a box. This is a second line of
/// defence: the owner of a secret in memory wipes it on drop.
pub(crate) fn wiping_stack<const OCTETS: usize, T>(work: impl FnOnce() -> T) -> T {
    let result = run(work);
    wipe::<OCTETS>();
    result
}

/// Calls `work` in a separate stack frame, at the position that the frame of [`wipe`] will have.
#[inline(never)]
fn run<T>(work: impl FnOnce() -> T) -> T {
    work()
}

#[inline(never)]
fn wipe<const OCTETS: usize>() {
    let mut area = [0_u8; OCTETS];
    // Without `black_box`, the compiler would see that nothing reads the area, and remove the
    // writes.
    black_box(&mut area);
}
