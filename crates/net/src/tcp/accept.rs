//! Accepts connections, and ends connections that exceed a time limit.

use std::io;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};

use super::options::TcpOptions;
use super::server_state::ServerState;
use super::service::Service;
use crate::heartbeat::Heartbeat;

/// Pause after the system could not accept a connection for lack of resources. Without the pause,
/// the loop would use a whole CPU.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Number of sweeps (checks of the time limits of all connections) within the shortest time limit.
const SWEEPS_PER_LIMIT: u32 = 8;
/// Maximum interval between sweeps.
const SWEEP_MAX: Duration = Duration::from_millis(500);
/// Minimum interval between sweeps.
const SWEEP_MIN: Duration = Duration::from_millis(1);

/// Accepts connections until the server must stop. Then waits until the open connections have sent
/// their answers, at most for the finish timeout.
pub(super) async fn accept_all<S: Service + 'static>(
    listener: TcpListener,
    state: Rc<ServerState>,
    service: Rc<S>,
    heartbeat: &Heartbeat,
    mut stopping: watch::Receiver<bool>,
) {
    let interval = sweep_interval(&state.options);
    let mut next_sweep = Instant::now() + interval;
    let mut next_report = Instant::now();
    let mut tasks = JoinSet::new();
    service.set_idle_timeout(state.options.idle_timeout);
    loop {
        let has_connections = !state.table.borrow().is_empty();
        let accepted = tokio::select! {
            biased;
            // A closed channel means that the owner of the server was dropped, so stop in this case
            // too.
            _ = stopping.wait_for(|&stop| stop) => break,
            () = sleep_until(next_sweep), if has_connections => {
                service.set_idle_timeout(state.sweep());
                next_sweep = Instant::now() + interval;
                continue;
            }
            () = sleep_until(next_report) => {
                heartbeat.report();
                next_report = Instant::now() + heartbeat.max_wait();
                continue;
            }
            Some(_) = tasks.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                if let Some(guard) = state.register(peer, service.first_phase()) {
                    let (state, service) = (Rc::clone(&state), Rc::clone(&service));
                    let serving = async move { state.count_end(service.serve(stream, peer, guard).await) };
                    tasks.spawn_local(serving);
                }
            }
            Err(error) if is_only_connection_error(&error) => {}
            Err(error) => {
                if is_out_of_descriptors(&error) && state.table.borrow_mut().evict(&state.options) {
                    state.counters.evicted.fetch_add(1, Relaxed);
                }
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    state.table.borrow().finish_all();
    let deadline = Instant::now() + state.options.finish_timeout;
    loop {
        tokio::select! {
            joined = tasks.join_next() => if joined.is_none() { break },
            () = sleep_until(deadline) => {
                tasks.shutdown().await;
                break;
            }
            () = sleep(interval) => {
                heartbeat.report();
                service.set_idle_timeout(state.sweep());
            }
        }
    }
}

/// Returns the interval between checks of the time limits of all connections.
pub(crate) fn sweep_interval(options: &TcpOptions) -> Duration {
    (options.shortest_timeout() / SWEEPS_PER_LIMIT).clamp(SWEEP_MIN, SWEEP_MAX)
}

/// Whether an accept error concerns only the new connection, so that the next one can be accepted
/// immediately.
pub(crate) fn is_only_connection_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}

/// Whether the process or the system has no free file descriptor.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}
