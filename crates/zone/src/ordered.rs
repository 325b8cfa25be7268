//! Parallel production of numbered pieces in the rayon thread pool. The calling thread consumes the
//! pieces in order.
//!
//! The number of pieces that are in production or waiting is bounded, so memory does not grow with
//! the number of pieces. The memory of a consumed piece is reused for a later one. A job in the
//! pool never waits for another job: it produces one piece and ends. The caller waits for pieces;
//! if it is a thread of the pool, it executes jobs while it waits. So there is no deadlock, even in
//! a pool with one thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Maximum number of pieces, for each thread of the pool, that are in production or waiting. It is
/// large enough that no thread becomes idle while the caller consumes a piece.
const PIECES_PER_THREAD: usize = 4;

/// Storage for one piece. With `slots` slots, piece `n` is in slot `n % slots`.
enum Slot<T, E> {
    Empty,
    Ready(T),
    Failed(E),
    /// The job of this piece panicked. The panic propagates after all jobs have ended.
    Lost,
}

/// The pieces in production or waiting, and memory for reuse.
struct PieceQueue<T, S, E> {
    slots: Mutex<Vec<Slot<T, E>>>,
    /// Notified when a piece is stored.
    ready: Condvar,
    /// Whether jobs that have not started must do nothing.
    stopped: AtomicBool,
    /// Scratch memory of ended jobs, for the next job that starts.
    scratch: Mutex<Vec<S>>,
    /// Consumed pieces, for reuse.
    consumed: Mutex<Vec<T>>,
}

impl<T, S, E> PieceQueue<T, S, E> {
    fn store(&self, slot: usize, outcome: Slot<T, E>) {
        lock(&self.slots)[slot] = outcome;
        self.ready.notify_one();
    }

    /// Takes the content of `slot` if it is not empty.
    fn try_take(&self, slot: usize) -> Option<Slot<T, E>> {
        take_piece(&mut lock(&self.slots)[slot])
    }

    /// Waits until `slot` is not empty, and takes its content.
    fn wait(&self, slot: usize) -> Slot<T, E> {
        let mut slots = lock(&self.slots);
        loop {
            if let Some(outcome) = take_piece(&mut slots[slot]) {
                return outcome;
            }
            slots = self.ready.wait(slots).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Takes the content of a slot if it is not empty, and empties the slot.
fn take_piece<T, E>(slot: &mut Slot<T, E>) -> Option<Slot<T, E>> {
    (!matches!(slot, Slot::Empty)).then(|| std::mem::replace(slot, Slot::Empty))
}

/// Locks a mutex. A poisoned lock is safe to use: no caller's code runs under these locks, so the
/// value is complete.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Marks the piece as lost when dropped, unless the job has stored the piece.
struct LostPieceGuard<'s, T, S, E> {
    queue: &'s PieceQueue<T, S, E>,
    slot: usize,
    is_stored: bool,
}

impl<T, S, E> Drop for LostPieceGuard<'_, T, S, E> {
    fn drop(&mut self) {
        if !self.is_stored {
            self.queue.store(self.slot, Slot::Lost);
        }
    }
}

/// Produces the pieces `0..count` in the rayon thread pool and passes them to `consume` in this
/// order, on the calling thread.
///
/// `produce` receives the number of the piece, scratch memory that jobs reuse one after the other,
/// and the piece to fill: a default value, or a piece as `consume` left it.
///
/// # Errors
/// The first error of `produce` or `consume`, in the order of the pieces. After an error no further
/// piece is started, and all jobs have ended when this function returns.
pub fn for_each_ordered<T, S, E>(
    count: usize,
    produce: impl Fn(usize, &mut S, &mut T) -> Result<(), E> + Sync,
    mut consume: impl FnMut(&mut T) -> Result<(), E>,
) -> Result<(), E>
where
    T: Default + Send,
    S: Default + Send,
    E: Send,
{
    let slot_count = (rayon::current_num_threads() * PIECES_PER_THREAD).min(count);
    let queue = PieceQueue::<T, S, E> {
        slots: Mutex::new((0..slot_count).map(|_| Slot::Empty).collect()),
        ready: Condvar::new(),
        stopped: AtomicBool::new(false),
        scratch: Mutex::default(),
        consumed: Mutex::default(),
    };
    let job = |index: usize| {
        if queue.stopped.load(Ordering::Relaxed) {
            return;
        }
        let mut guard = LostPieceGuard { queue: &queue, slot: index % slot_count, is_stored: false };
        let mut scratch = lock(&queue.scratch).pop().unwrap_or_default();
        let mut piece = lock(&queue.consumed).pop().unwrap_or_default();
        let outcome = produce(index, &mut scratch, &mut piece);
        lock(&queue.scratch).push(scratch);
        queue.store(guard.slot, outcome.map_or_else(Slot::Failed, |()| Slot::Ready(piece)));
        guard.is_stored = true;
    };
    let job = &job;
    rayon::in_place_scope_fifo(|scope| {
        // If the caller leaves with an error or a panic of `consume`, jobs that have not started do
        // nothing.
        let _stop = StopOnDrop(&queue.stopped);
        (0..slot_count).for_each(|index| scope.spawn_fifo(move |_| job(index)));
        for index in 0..count {
            let mut piece = match next_piece(&queue, index % slot_count) {
                Slot::Ready(piece) => piece,
                Slot::Failed(error) => return Err(error),
                Slot::Lost | Slot::Empty => return Ok(()),
            };
            if index + slot_count < count {
                scope.spawn_fifo(move |_| job(index + slot_count));
            }
            consume(&mut piece)?;
            lock(&queue.consumed).push(piece);
        }
        Ok(())
    })
}

/// Stops the jobs that have not started when dropped.
struct StopOnDrop<'s>(&'s AtomicBool);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Returns the piece in `slot`. A thread of the pool executes jobs until the piece is ready. If
/// there is no job to start, another thread is producing the piece.
fn next_piece<T, S, E>(queue: &PieceQueue<T, S, E>, slot: usize) -> Slot<T, E> {
    loop {
        if let Some(outcome) = queue.try_take(slot) {
            return outcome;
        }
        if rayon::yield_now() != Some(rayon::Yield::Executed) {
            return queue.wait(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;

    fn pool(threads: usize) -> rayon::ThreadPool {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
    }

    fn squares(count: usize) -> Vec<usize> {
        let mut taken = Vec::new();
        let outcome: Result<(), ()> = for_each_ordered(
            count,
            |index, used: &mut usize, piece: &mut usize| {
                *used += 1;
                *piece = index * index;
                Ok(())
            },
            |piece| {
                taken.push(*piece);
                Ok(())
            },
        );
        outcome.unwrap();
        taken
    }

    #[test]
    fn pieces_are_consumed_in_order_in_pools_of_any_size() {
        for count in [0, 1, 2, 7, 1000] {
            let expected: Vec<usize> = (0..count).map(|index| index * index).collect();
            assert_eq!(squares(count), expected);
            for threads in [1, 2, 5] {
                assert_eq!(pool(threads).install(|| squares(count)), expected, "{threads}");
            }
        }
    }

    #[test]
    fn nested_calls_in_a_small_pool_end() {
        for threads in [1, 2] {
            let sums: Vec<usize> = pool(threads).install(|| {
                use rayon::prelude::*;
                (0..20).into_par_iter().map(|_| squares(50).iter().sum()).collect()
            });
            assert_eq!(sums, [40_425; 20]);
        }
    }

    #[test]
    fn producers_may_use_the_pool() {
        use rayon::prelude::*;
        for threads in [1, 2, 3] {
            let mut total = 0;
            let outcome: Result<(), ()> = pool(threads).install(|| {
                for_each_ordered(
                    40,
                    |index, (): &mut (), piece: &mut usize| {
                        *piece = (0..1000).into_par_iter().map(|n| n * index).sum();
                        Ok(())
                    },
                    |piece| {
                        total += *piece;
                        Ok(())
                    },
                )
            });
            assert_eq!((outcome, total), (Ok(()), 499_500 * 780));
        }
    }

    #[test]
    fn the_number_of_pieces_is_bounded() {
        let (begun, taken) = (AtomicUsize::new(0), AtomicUsize::new(0));
        pool(2)
            .install(|| {
                for_each_ordered(
                    500,
                    |_, (): &mut (), (): &mut ()| {
                        let there = begun.fetch_add(1, Ordering::SeqCst) + 1 - taken.load(Ordering::SeqCst);
                        // The piece that the caller consumes is not in a slot.
                        if there <= 2 * PIECES_PER_THREAD + 1 { Ok(()) } else { Err(there) }
                    },
                    |()| {
                        taken.fetch_add(1, Ordering::SeqCst);
                        Ok(())
                    },
                )
            })
            .unwrap();
    }

    #[test]
    fn the_first_error_in_order_is_returned() {
        for threads in [1, 3] {
            let begun = AtomicUsize::new(0);
            let mut taken = Vec::new();
            let outcome = pool(threads).install(|| {
                for_each_ordered(
                    100_000,
                    |index, (): &mut (), piece: &mut usize| {
                        begun.fetch_add(1, Ordering::SeqCst);
                        *piece = index;
                        if index == 20 || index == 21 { Err(index) } else { Ok(()) }
                    },
                    |piece| {
                        taken.push(*piece);
                        Ok(())
                    },
                )
            });
            assert_eq!(outcome, Err(20));
            assert_eq!(taken, (0..20).collect::<Vec<_>>());
            assert!(begun.load(Ordering::SeqCst) <= 20 + threads * PIECES_PER_THREAD + 1);
        }
    }

    #[test]
    fn an_error_of_the_consumer_is_returned() {
        let begun = AtomicUsize::new(0);
        let outcome = for_each_ordered(
            100_000,
            |_, (): &mut (), (): &mut ()| {
                begun.fetch_add(1, Ordering::SeqCst);
                Ok(())
            },
            |()| Err("full"),
        );
        assert_eq!(outcome, Err("full"));
        assert!(begun.load(Ordering::SeqCst) <= 1 + rayon::current_num_threads() * PIECES_PER_THREAD);
    }

    #[test]
    fn a_panic_of_a_producer_or_of_the_consumer_propagates() {
        for threads in [1, 2] {
            let of_maker = std::panic::catch_unwind(|| {
                pool(threads).install(|| {
                    for_each_ordered(
                        50,
                        |index, (): &mut (), (): &mut ()| {
                            if index == 9 { panic!("lost") } else { Ok::<(), ()>(()) }
                        },
                        |()| Ok(()),
                    )
                })
            });
            assert!(of_maker.is_err());
            let of_taker = std::panic::catch_unwind(|| {
                pool(threads).install(|| {
                    for_each_ordered(
                        50,
                        |_, (): &mut (), (): &mut ()| Ok::<(), ()>(()),
                        |()| panic!("no place"),
                    )
                })
            });
            assert!(of_taker.is_err());
        }
    }

    #[test]
    fn consumed_pieces_are_reused() {
        let mut most = 0;
        let outcome: Result<(), ()> = for_each_ordered(
            200,
            |_, (): &mut (), piece: &mut Vec<u8>| {
                piece.push(0);
                Ok(())
            },
            |piece| {
                most = most.max(piece.len());
                Ok(())
            },
        );
        assert_eq!(outcome, Ok(()));
        let slots = rayon::current_num_threads() * PIECES_PER_THREAD;
        assert!(most >= 200 / (slots + 1), "{most}");
    }
}
