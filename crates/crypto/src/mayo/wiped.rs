//! Secret vectors that are wiped on drop, all at once. `zeroize` would wipe them word by word, and
//! the time for that is a notable part of the time for signing.

use std::ops::{Deref, DerefMut};

use super::field::Vector;

/// `N` vectors that are wiped on drop.
pub(super) struct WipedArray<const N: usize>([Vector; N]);

impl<const N: usize> WipedArray<N> {
    /// Returns vectors that are all zero.
    pub(super) fn zero() -> Self {
        Self([[0; 4]; N])
    }
}

impl<const N: usize> Deref for WipedArray<N> {
    type Target = [Vector; N];

    fn deref(&self) -> &[Vector; N] {
        &self.0
    }
}

impl<const N: usize> DerefMut for WipedArray<N> {
    fn deref_mut(&mut self) -> &mut [Vector; N] {
        &mut self.0
    }
}

impl<const N: usize> Drop for WipedArray<N> {
    fn drop(&mut self) {
        self.0 = [[0; 4]; N];
        zeroize::optimization_barrier(&self.0);
    }
}

/// Vectors on the heap that are wiped on drop. Their number must not grow, because growing would
/// leave copies in freed memory.
pub(super) struct WipedVec(Vec<Vector>);

impl WipedVec {
    /// Returns `count` vectors that are all zero.
    pub(super) fn zero(count: usize) -> Self {
        Self(vec![[0; 4]; count])
    }
}

impl Deref for WipedVec {
    type Target = [Vector];

    fn deref(&self) -> &[Vector] {
        &self.0
    }
}

impl DerefMut for WipedVec {
    fn deref_mut(&mut self) -> &mut [Vector] {
        &mut self.0
    }
}

impl Drop for WipedVec {
    fn drop(&mut self) {
        self.0.fill([0; 4]);
        zeroize::optimization_barrier(self.0.as_slice());
    }
}
