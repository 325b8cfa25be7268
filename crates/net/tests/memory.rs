//! Tests how much freed memory the allocator keeps. The test has its own process, because the
//! setting applies to the whole process.
#![cfg(all(target_os = "linux", target_env = "gnu"))]

use nonesuch_net::keep_little_free_memory;
use std::hint::black_box;
use std::sync::mpsc::sync_channel;

/// Anonymous resident memory of this process in KiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).expect("a line");
    line.trim_end_matches("kB").trim().parse().expect("a number")
}

/// Allocates 8 MiB in small pieces and frees them.
fn work() {
    let pieces: Vec<Vec<u8>> = (0..512).map(|_| vec![1; 16 << 10]).collect();
    drop(black_box(pieces));
}

#[test]
fn threads_keep_little_of_what_they_have_freed() {
    keep_little_free_memory();
    // By default, the allocator raises its thresholds after this.
    drop(black_box(vec![1_u8; 16 << 20]));
    let before = resident();
    let (done, worked) = sync_channel(0);
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let done = done.clone();
            std::thread::spawn(move || {
                work();
                done.send(()).expect("a receiver waits");
                // The thread stays, and its arena with it.
                std::thread::park();
            })
        })
        .collect();
    (0..4).for_each(|_| worked.recv().expect("a thread"));
    let kept = resident().saturating_sub(before);
    threads.iter().for_each(|thread| thread.thread().unpark());
    assert!(kept < 4096, "{kept} KiB kept by four threads");
}
