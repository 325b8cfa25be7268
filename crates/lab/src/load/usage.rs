//! CPU time of the server and of others during a load.

use super::LoadOptions;
use crate::conditions::OthersCpu;
use crate::process::{self, CpuTime};
use std::collections::BTreeMap;
use std::time::Duration;

/// CPU time during a load. The fields about the server are `None` if its process is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct CpuUse {
    /// Time of the process of the server and of its descendants.
    pub(super) server: Option<CpuTime>,
    /// Time of the thread of these processes that used most.
    pub(super) busiest_thread: Option<Duration>,
    /// Share of the CPU time of all CPUs that others used, from 0 to 1.
    pub(super) others: Option<f64>,
}

/// State of the clocks at the start of a load.
#[derive(Debug)]
pub(super) struct CpuClocks {
    others: OthersCpu,
    server_pid: Option<u32>,
    server: Option<CpuTime>,
    threads: BTreeMap<u32, Duration>,
}

impl CpuClocks {
    pub(super) fn read(options: &LoadOptions) -> Self {
        let server_pid = options.server_pid;
        Self {
            others: OthersCpu::begin(server_pid),
            server_pid,
            threads: server_pid.map(process::thread_times).unwrap_or_default(),
            server: server_pid.map(process::tree_cpu_time),
        }
    }

    /// Returns the time since the clocks were read.
    pub(super) fn elapsed(&self) -> CpuUse {
        let Self { others, server_pid, server, threads } = self;
        let running = server_pid.filter(|pid| process::is_running(*pid));
        let since = |(thread, time): (u32, Duration)| {
            time.saturating_sub(threads.get(&thread).copied().unwrap_or_default())
        };
        let busiest = |pid: u32| process::thread_times(pid).into_iter().map(since).max();
        CpuUse {
            server: server.zip(running).map(|(before, pid)| process::tree_cpu_time(pid).since(before)),
            busiest_thread: running.and_then(busiest),
            others: others.share(),
        }
    }
}
