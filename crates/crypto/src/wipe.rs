//! Wiping what libraries leave behind: they pass private keys by value, and so leave copies of them on the stack.

use std::hint::black_box;

/// Does `work`, then overwrites the `OCTETS` octets of stack where it, and what it called, had their locals.
///
/// What it returns must not hold a secret by value, but in a box. A second line of defence: what is kept in memory is
/// wiped by its owner when it is dropped.
pub(crate) fn wiping_stack<const OCTETS: usize, T>(work: impl FnOnce() -> T) -> T {
    let result = run(work);
    wipe::<OCTETS>();
    result
}

/// In a frame of its own, which lies where that of [`wipe`] will.
#[inline(never)]
fn run<T>(work: impl FnOnce() -> T) -> T {
    work()
}

#[inline(never)]
fn wipe<const OCTETS: usize>() {
    let mut area = [0_u8; OCTETS];
    // Or the compiler would see that nobody reads the area, and leave it out.
    black_box(&mut area);
}
