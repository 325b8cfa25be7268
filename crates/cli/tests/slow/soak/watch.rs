//! Resources of a process: memory, open files, threads.

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// Time between two samples.
const EACH: Duration = Duration::from_millis(500);

/// The resources of a process at one time.
#[derive(Clone, Copy, Default)]
pub(crate) struct Held {
    /// Resident memory, in KiB.
    pub(crate) resident: u64,
    /// Proportional set size (PSS), in KiB.
    pub(crate) proportional: u64,
    pub(crate) files: u64,
    pub(crate) threads: u64,
}

/// The resources of a process; `None` if it has ended.
pub(crate) fn look(process: u32) -> Option<Held> {
    let number = |text: &str, key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key))?;
        line.split_whitespace().next()?.parse().ok()
    };
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let pages = fs::read_to_string(format!("/proc/{process}/smaps_rollup")).unwrap_or_default();
    Some(Held {
        resident: number(&status, "VmRSS:")?,
        proportional: number(&pages, "Pss:").unwrap_or(0),
        files: fs::read_dir(format!("/proc/{process}/fd")).map_or(0, |files| files.count() as u64),
        threads: number(&status, "Threads:")?,
    })
}

/// A process that is sampled periodically.
pub(crate) struct Watch {
    pub(crate) name: &'static str,
    process: u32,
    samples: Mutex<Vec<Held>>,
}

impl Watch {
    pub(crate) const fn new(name: &'static str, process: u32) -> Self {
        Self { name, process, samples: Mutex::new(Vec::new()) }
    }

    fn samples(&self) -> Vec<Held> {
        self.samples.lock().expect("no panic while it is held").clone()
    }

    /// The newest sample.
    pub(crate) fn last(&self) -> Held {
        self.samples().last().copied().unwrap_or_default()
    }

    /// The medians of the second and of the last quarter. The first quarter is the warm-up.
    pub(crate) fn quarters(&self, of: fn(&Held) -> u64) -> (u64, u64) {
        let samples = self.samples();
        let quarter = samples.len() / 4;
        let median = |part: &[Held]| {
            let mut values: Vec<u64> = part.iter().map(of).collect();
            values.sort_unstable();
            values.get(values.len() / 2).copied().unwrap_or(0)
        };
        (median(&samples[quarter..2 * quarter]), median(&samples[3 * quarter..]))
    }

    /// The maximum of all samples.
    pub(crate) fn most(&self, of: fn(&Held) -> u64) -> u64 {
        self.samples().iter().map(of).max().unwrap_or(0)
    }

    pub(crate) fn count(&self) -> usize {
        self.samples().len()
    }
}

/// Samples all processes until `stop` is set.
pub(crate) fn watch_all(all: &[Watch], stop: &AtomicBool) {
    while !stop.load(Relaxed) {
        let begun = Instant::now();
        for watch in all {
            if let Some(held) = look(watch.process) {
                watch.samples.lock().expect("no panic while it is held").push(held);
            }
        }
        std::thread::sleep(EACH.saturating_sub(begun.elapsed()));
    }
}
