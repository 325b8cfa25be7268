use super::*;
use std::sync::mpsc::{Receiver, Sender, channel};

/// A queue with an output that accepts a line only when the test permits it.
struct Stalled {
    queue: Arc<Queue>,
    permits: Sender<io::Result<()>>,
    taken: Receiver<String>,
    /// Receives a message for each line that the output gets, before the output waits.
    received: Receiver<()>,
}

impl Stalled {
    fn start() -> Self {
        let (permits, permitted) = channel::<io::Result<()>>();
        let (take, taken) = channel();
        let (report, received) = channel();
        let write_octets = Box::new(move |_, octets: &[u8]| {
            let _ = report.send(());
            let outcome = permitted.recv().unwrap_or(Ok(()));
            if outcome.is_ok() {
                let _ = take.send(String::from_utf8_lossy(octets).into_owned());
            }
            outcome
        });
        let queue = Queue::start(|| Style::Journal, write_octets).expect("a thread");
        Self { queue, permits, taken, received }
    }

    /// Returns when the writer waits for the output with one line.
    fn stall(&self) {
        self.push("first");
        self.received.recv().expect("a line");
    }

    fn push(&self, line: impl std::fmt::Display) {
        self.push_at(Level::WARN, line);
    }

    fn push_at(&self, level: Level, line: impl std::fmt::Display) {
        self.queue.push(Stream::Error, level, format!("{line}\n"));
    }

    /// Permits all further lines, and returns the lines that were written.
    fn release(self) -> Vec<String> {
        let Self { queue, permits, taken, .. } = self;
        drop(permits);
        queue.flush(Duration::from_secs(20));
        taken.try_iter().collect()
    }
}

#[test]
fn a_blocked_output_drops_lines_which_are_counted_and_reported_once() {
    let stalled = Stalled::start();
    stalled.stall();
    for number in 0..MAX_LINES + 500 {
        stalled.push(number);
    }
    let dropped = stalled.queue.counters().dropped;
    assert_eq!(dropped, 500);
    let written = stalled.release();
    let (reports, written): (Vec<&String>, Vec<&String>) =
        written.iter().partition(|line| line.contains(" event=log-lines-dropped "));
    let expected_lines = (0..MAX_LINES).map(|number| format!("{number}\n"));
    let expected_lines: Vec<String> = std::iter::once("first\n".to_owned()).chain(expected_lines).collect();
    assert_eq!(written, expected_lines.iter().collect::<Vec<_>>());
    assert_eq!(reports.len(), 1, "{reports:?}");
    let expected = format!(" event=log-lines-dropped dropped={dropped} total={dropped}\n");
    assert!(reports[0].starts_with("<4>") && reports[0].ends_with(&expected), "{reports:?}");
}

#[test]
fn the_size_of_queued_lines_is_limited_and_a_single_long_line_is_written() {
    let stalled = Stalled::start();
    let long = "x".repeat(MAX_BYTES + 1);
    for _ in 0..10 {
        stalled.push(&long);
    }
    let dropped = stalled.queue.counters().dropped;
    assert!((8..=9).contains(&dropped), "{dropped}");
    let written = stalled.release();
    assert_eq!(written.iter().filter(|line| line.len() > MAX_BYTES).count() as u64, 10 - dropped);
}

#[test]
fn flushing_waits_for_the_writer_up_to_its_limit() {
    let stalled = Stalled::start();
    stalled.push("first");
    let began = Instant::now();
    stalled.queue.flush(Duration::from_millis(20));
    assert!(began.elapsed() >= Duration::from_millis(20));
    assert!(stalled.taken.try_recv().is_err());
    stalled.permits.send(Ok(())).expect("the writer waits");
    stalled.queue.flush(Duration::from_secs(20));
    assert_eq!(stalled.taken.try_recv().as_deref(), Ok("first\n"));
}

#[test]
fn lines_that_could_not_be_written_are_reported_later() {
    let stalled = Stalled::start();
    for line in ["lost", "lost too", "written"] {
        stalled.push(line);
    }
    for outcome in [Err(ErrorKind::StorageFull.into()), Err(ErrorKind::BrokenPipe.into()), Ok(())] {
        stalled.permits.send(outcome).expect("the writer waits");
    }
    let counters = Arc::clone(&stalled.queue);
    let written = stalled.release();
    assert_eq!(written[0], "written\n");
    assert!(written[1].ends_with(" event=log-lines-dropped dropped=2 total=2\n"), "{written:?}");
    assert_eq!((written.len(), counters.counters().dropped), (2, 2));
}

#[test]
fn suppressed_lines_are_reported_at_the_end() {
    let stalled = Stalled::start();
    let queue = Arc::clone(&stalled.queue);
    let fields = Fields::new("alert".to_owned(), Vec::new());
    let key = ThrottleKey::of_library();
    let admitted = (0..100).filter(|_| queue.admit(&key, Level::WARN, &fields).is_some()).count() as u64;
    assert_eq!(queue.counters().suppressed, 100 - admitted);
    let written = stalled.release();
    assert_eq!(written.len(), 1, "{written:?}");
    let suppressed = 100 - admitted;
    let expected = format!(" event=log-lines-suppressed suppressed_event=alert suppressed={suppressed}\n");
    assert!(written[0].starts_with("<4>") && written[0].ends_with(&expected), "{written:?}");
}

#[test]
fn a_quarter_of_the_queue_is_for_warnings_and_errors() {
    for long in ["", &"x".repeat(MAX_BYTES / 100)] {
        let stalled = Stalled::start();
        for number in 0..MAX_LINES {
            stalled.push_at(Level::INFO, format!("info {number} {long}"));
        }
        let dropped = stalled.queue.counters().dropped;
        assert!(dropped >= MAX_LINES as u64 / 4 - 1, "{dropped}");
        for number in 0..20 {
            stalled.push_at(Level::WARN, format!("warning {number} {long}"));
            stalled.push_at(Level::INFO, "dropped");
        }
        stalled.push_at(Level::ERROR, "error");
        let written = stalled.release();
        let of = |words: &str| written.iter().filter(|line| line.starts_with(words)).count();
        assert_eq!((of("warning "), of("error"), of("dropped")), (20, 1, 0));
    }
}

/// Only the first suppressed event wakes the writer, because it sets the time of a summary.
#[test]
fn suppressed_events_wake_the_writer_once() {
    let now = Instant::now();
    let mut throttle = Throttle::new(now);
    let fields = Fields::new("alert".to_owned(), Vec::new());
    let verdicts: Vec<Verdict> =
        (0..100).map(|_| throttle.admit(&ThrottleKey::of_library(), Level::WARN, &fields, now)).collect();
    let first = verdicts.iter().position(|verdict| matches!(verdict, Verdict::Suppressed { .. })).unwrap();
    let expected = |place: usize| Verdict::Suppressed { is_first: place == first };
    assert!((first..100).all(|place| verdicts[place] == expected(place)), "{verdicts:?}");
}
