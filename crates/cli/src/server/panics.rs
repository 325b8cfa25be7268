//! Handling of panics in a server.

use crate::logging;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// Time limit for a thread that panics first: to log the panic, and to flush the log. A margin is
/// left, because the thread begins to flush only after it has formatted the line.
const FIRST_PANIC_TIMEOUT: Duration = Duration::from_secs(logging::FLUSH_TIMEOUT.as_secs() + 1);

/// Ends the process when any thread panics; systemd then starts it again. Without one of its
/// threads, a server would appear to run but would not answer, or would never load a zone again.
/// The new process serves the zones from their files, or the stored versions in the state
/// directory.
pub(crate) fn abort_on_panic() {
    std::panic::set_hook(Box::new(|info| {
        static HAS_PANICKED: AtomicBool = AtomicBool::new(false);
        if HAS_PANICKED.swap(true, Relaxed) {
            // Another thread panicked first and is logging its panic. Wait, so that this `abort`
            // does not truncate the line of that thread, which ends the process itself.
            std::thread::sleep(FIRST_PANIC_TIMEOUT);
        } else {
            let thread = std::thread::current();
            let payload = info.payload();
            let message = payload.downcast_ref::<&str>().copied();
            let message = message.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
            let location = info.location().map_or_else(String::new, |location| format!(" at {location}"));
            tracing::error!(
                name: "panic",
                thread = thread.name().unwrap_or("?"),
                "nonesuch: aborting, a thread panicked{location}, which is a bug in nonesuch: {}",
                message.unwrap_or("no panic message")
            );
            logging::flush();
        }
        std::process::abort();
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env;
    use std::process::Command;
    use std::time::Instant;
    use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};
    use tracing_subscriber::util::SubscriberInitExt as _;

    /// Set for the process that panics.
    const PANICS: &str = "NONESUCH_TEST_PANICS";

    /// Returns the command that runs only this test, in a process that panics.
    fn child_process(test: &str) -> Command {
        let mut command = Command::new(env::current_exe().unwrap());
        command.args([test, "--exact", "--nocapture"]).env(PANICS, "1");
        command
    }

    /// Does nothing except in the process that the next test starts.
    #[test]
    fn one_thread_panics_in_the_child_process() {
        if env::var_os(PANICS).is_none() {
            return;
        }
        logging::start(/* verbose */ 0, /* is_quiet */ false);
        abort_on_panic();
        let body = || panic!("the {}\nis broken", "zone");
        // The result does not matter: the process aborts.
        let _ = std::thread::Builder::new().name("loader".to_owned()).spawn(body).unwrap().join();
        println!("it went on");
    }

    #[test]
    fn a_panic_is_logged_and_ends_the_process() {
        use std::os::unix::process::ExitStatusExt as _;
        let test = "server::panics::tests::one_thread_panics_in_the_child_process";
        let ended = child_process(test).output().unwrap();
        let (log_text, printed) =
            (String::from_utf8_lossy(&ended.stderr), String::from_utf8_lossy(&ended.stdout));
        assert!(printed.contains("running 1 test"), "{printed}");
        assert_eq!(ended.status.signal(), Some(libc::SIGABRT), "{log_text}");
        assert!(!printed.contains("it went on"), "{printed}");
        let line =
            log_text.lines().find(|line| line.contains("ERROR")).unwrap_or_else(|| panic!("{log_text}"));
        // The location, the text of the panic and the fields (the name of the event is printed as
        // `event=`).
        for part in ["panics.rs:", "the zone", "is broken", "event=panic", "thread=loader"] {
            assert!(line.contains(part), "{part}: {line}");
        }
    }

    /// Does nothing except in the process that the next test starts. There it fills the log, which
    /// has no reader yet, and panics in two threads.
    #[test]
    fn two_threads_panic_in_the_child_process() {
        if env::var_os(PANICS).is_none() {
            return;
        }
        logging::start(/* verbose */ 0, /* is_quiet */ false);
        logging::start_queue().unwrap();
        abort_on_panic();
        for _ in 0..200 {
            tracing::error!("{}", "x".repeat(1000));
        }
        panic_in_two_threads();
    }

    fn panic_in_two_threads() {
        let threads = [(); 2].map(|()| std::thread::spawn(|| panic!("the zone is broken")));
        for thread in threads {
            let _ = thread.join();
        }
    }

    #[test]
    fn a_second_panic_does_not_truncate_the_log_line_of_the_first() {
        use std::io::Read as _;
        let test = "server::panics::tests::two_threads_panic_in_the_child_process";
        let mut child = child_process(test)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // The first octet shows that the process runs. Then the log has no reader for more than
        // half of the time limit.
        let mut log = child.stderr.take().unwrap();
        log.read_exact(&mut [0]).unwrap();
        let began = Instant::now();
        while began.elapsed() < logging::FLUSH_TIMEOUT * 3 / 5 {
            assert!(child.try_wait().unwrap().is_none(), "it ended after {:?}", began.elapsed());
            std::thread::yield_now();
        }
        let mut log_text = String::new();
        log.read_to_string(&mut log_text).unwrap();
        child.wait().unwrap();
        assert!(log_text.contains(" event=panic "), "{} octets", log_text.len());
    }

    /// A log that needs more time for a line than a flush may take.
    struct SlowLog;

    impl<S: tracing::Subscriber> Layer<S> for SlowLog {
        fn on_event(&self, _: &tracing::Event<'_>, _: Context<'_, S>) {
            std::thread::sleep(logging::FLUSH_TIMEOUT + Duration::from_millis(200));
            eprintln!("logged slowly");
        }
    }

    /// Does nothing except in the process that the next test starts.
    #[test]
    fn two_threads_panic_with_a_slow_log_in_the_child_process() {
        if env::var_os(PANICS).is_none() {
            return;
        }
        tracing_subscriber::registry().with(SlowLog).init();
        abort_on_panic();
        panic_in_two_threads();
    }

    #[test]
    fn a_second_panic_waits_while_the_first_is_formatted() {
        let test = "server::panics::tests::two_threads_panic_with_a_slow_log_in_the_child_process";
        let ended = child_process(test).output().unwrap();
        let log_text = String::from_utf8_lossy(&ended.stderr);
        assert!(log_text.contains("logged slowly"), "{log_text}");
    }
}
