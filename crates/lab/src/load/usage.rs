//! CPU time of the server and of others during a load.

use super::LoadOptions;
use crate::conditions::OthersCpu;
use crate::process::{self, CpuTime};
use std::collections::BTreeMap;

/// CPU time during a load. The fields about the server are `None` if its process is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CpuUse {
    pub(super) server: Option<CpuTime>,
    /// Time of the thread of the server that used most, in µs.
    pub(super) busiest_thread_us: Option<u64>,
    /// Share of the CPU time of all CPUs that others used, from 0 to 1.
    pub(super) others: Option<f64>,
}

/// State of the clocks at the start of a load.
#[derive(Debug)]
pub(super) struct CpuClocks {
    others: OthersCpu,
    server_pid: Option<u32>,
    server: Option<CpuTime>,
    threads: BTreeMap<u32, u64>,
}

impl CpuClocks {
    pub(super) fn read(options: &LoadOptions) -> Self {
        let server_pid = options.server_pid;
        Self {
            others: OthersCpu::begin(server_pid),
            server_pid,
            threads: server_pid.map(process::thread_times).unwrap_or_default(),
            server: server_pid.and_then(process::cpu_time),
        }
    }

    /// Returns the time since the clocks were read.
    pub(super) fn elapsed(&self) -> CpuUse {
        let Self { others, server_pid, server, threads } = self;
        let later = server_pid.and_then(process::cpu_time);
        let since = |(thread, time): (u32, u64)| {
            time.saturating_sub(threads.get(&thread).copied().unwrap_or_default())
        };
        let busiest = |pid: u32| process::thread_times(pid).into_iter().map(since).max();
        CpuUse {
            server: server.zip(later).map(|(before, after)| after.since(before)),
            busiest_thread_us: server_pid.and_then(busiest),
            others: others.share(),
        }
    }
}
