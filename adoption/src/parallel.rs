//! Runs a function for many items on several threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Calls `function` for each item, on at most `threads` threads. Returns the results in the order of
/// the items.
pub(crate) fn map<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    function: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<R>>> = Mutex::new(items.iter().map(|_| None).collect());
    let work = || {
        while let Some((place, item)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|place| Some((place, items.get(place)?)))
        {
            let result = function(item);
            // A panic of another thread ends this function anyway.
            if let Ok(mut results) = results.lock() {
                results[place] = Some(result);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(items.len()) {
            // Without a further thread, this one does more.
            let _ = thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    results.into_inner().unwrap_or_default().into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u32> = (0..1000).collect();
        for threads in [1, 3, 2000] {
            assert_eq!(
                map(&items, threads, |item| item * 2),
                (0..1000).map(|item| item * 2).collect::<Vec<_>>()
            );
        }
        assert!(map(&[] as &[u32], 4, |item| *item).is_empty());
    }
}
