//! A recording in progress: its writer, its progress on the terminal, and its summary.

use super::RecordError;
use crate::files::{FileError, count_text, print_line, print_summary, print_to_stderr};
use crate::progress;
use indicatif::ProgressBar;
use nonesuch_lab::cost_model::{
    CountedDomain, DomainCounter, Gap, GapReason, RecordingSetup, RecordingWriter, Window,
};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time after which new windows are written: a crash loses at most these.
const FLUSH_INTERVAL: Duration = Duration::from_secs(30);
/// Time after which the domains are written, of which there may be 100,000.
const DOMAINS_INTERVAL: Duration = Duration::from_secs(600);

/// A recording in progress.
pub(super) struct Session {
    out: PathBuf,
    writer: RecordingWriter,
    bar: ProgressBar,
    /// The sums of this session.
    sums: Window,
    windows: u64,
    /// Time of the last write; `None` before the first one.
    flushed_at: Option<Instant>,
    domains_at: Option<Instant>,
    setup: RecordingSetup,
    is_json: bool,
}

impl Session {
    pub(super) fn open(out: &Path, setup: &RecordingSetup, is_json: bool) -> Result<Self, RecordError> {
        Ok(Self {
            out: out.to_path_buf(),
            writer: RecordingWriter::open(out, setup)?,
            bar: progress::spinner("recording"),
            sums: Window::default(),
            windows: 0,
            flushed_at: None,
            domains_at: None,
            setup: setup.clone(),
            is_json,
        })
    }

    /// Length of full windows, in microseconds.
    pub(super) const fn window(&self) -> u64 {
        self.setup.window
    }

    /// End of the last window, in microseconds since 1970; 0 without one.
    pub(super) const fn end(&self) -> u64 {
        self.writer.end()
    }

    /// The domains of the recording that is continued.
    pub(super) fn domains(&self) -> Result<Vec<CountedDomain>, RecordError> {
        Ok(self.writer.domains()?)
    }

    /// Prints that recording begins.
    pub(super) fn print_ready(&self, source: &str) -> Result<(), FileError> {
        let (earlier, out) = (self.writer.window_count(), self.out.display());
        if self.is_json {
            return print_line(
                &json!({ "ready": { "source": source, "out": out.to_string(), "windows": earlier } })
                    .to_string(),
            );
        }
        let continues = if earlier == 0 {
            String::new()
        } else {
            format!(", after {}", count_text(earlier as u64, "window"))
        };
        print_summary(&format!("ready: recording {source} to {out}{continues}"))
    }

    /// Prints that a resolver has connected.
    pub(super) fn print_connected(&self, resolvers: usize) -> Result<(), FileError> {
        if self.is_json {
            return print_line(&json!({ "connected": resolvers }).to_string());
        }
        self.bar
            .suspend(|| print_summary(&format!("connected: {}", count_text(resolvers as u64, "resolver"))))
    }

    /// Adds a window.
    pub(super) fn push(&mut self, window: &Window) -> Result<(), RecordError> {
        let (from, until) = (window.start, window.end());
        if !self.writer.push(window.clone())? {
            self.gap(Gap { from, until, reason: GapReason::ClockJump });
            return Ok(());
        }
        let sums = &mut self.sums;
        sums.queries += window.queries;
        sums.tcp_queries += window.tcp_queries;
        sums.responses += window.responses;
        sums.truncated += window.truncated;
        sums.signed_responses += window.signed_responses;
        sums.signatures += window.signatures;
        sums.verified += window.verified;
        self.windows += 1;
        Ok(())
    }

    /// Adds a gap, and prints a warning.
    pub(super) fn gap(&mut self, gap: Gap) {
        let seconds = gap.until.saturating_sub(gap.from) as f64 / 1e6;
        let at = jiff::Timestamp::from_microsecond(i64::try_from(gap.from).unwrap_or(i64::MAX))
            .map_or_else(|_| gap.from.to_string(), |time| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string());
        self.warn(&format!("gap of {seconds:.1} s at {at}: {}", gap.reason.describe()));
        self.writer.note_gap(gap);
    }

    /// Adds a remark to the recording, and prints it as a warning.
    pub(super) fn remark(&mut self, remark: &str) {
        self.warn(remark);
        self.writer.note(remark);
    }

    /// Adds a remark to the recording.
    pub(super) fn note(&mut self, remark: &str) {
        self.writer.note(remark);
    }

    fn warn(&self, message: &str) {
        self.bar
            .suspend(|| print_to_stderr(&format!("nonesuch: warning: {}: {message}", self.out.display())));
    }

    /// Shows the progress, and writes the files if it is time.
    pub(super) fn tick(&mut self, domains: &DomainCounter) -> Result<(), RecordError> {
        let Window { queries, responses, signatures, verified, .. } = self.sums;
        let windows = count_text(self.windows, "window");
        self.bar
            .set_message(format!("{windows}: Q {queries}, R {responses}, S {signatures}, S_v {verified}"));
        // The first window is written at once, so that a mistake is seen early.
        let is_time = self.flushed_at.map_or(self.windows > 0, |at| at.elapsed() >= FLUSH_INTERVAL);
        let needs_domains = self.domains_at.is_none_or(|at| at.elapsed() >= DOMAINS_INTERVAL);
        if is_time && needs_domains {
            return self.flush(domains);
        }
        if is_time {
            self.writer.flush(None)?;
            self.flushed_at = Some(Instant::now());
        }
        Ok(())
    }

    /// Writes all files.
    pub(super) fn flush(&mut self, domains: &DomainCounter) -> Result<(), RecordError> {
        self.writer.flush(Some(domains))?;
        let now = Some(Instant::now());
        (self.flushed_at, self.domains_at) = (now, now);
        Ok(())
    }

    /// Prints the summary. The files must have been written.
    pub(super) fn finish(self) -> Result<(), FileError> {
        self.bar.finish_and_clear();
        let (windows, sums) = (self.windows, &self.sums);
        if self.is_json {
            let recorded = json!({
                "out": self.out.display().to_string(), "windows": windows, "queries": sums.queries, "tcp_queries": sums.tcp_queries,
                "responses": sums.responses, "truncated": sums.truncated,
                "signed_responses": sums.signed_responses, "signatures": sums.signatures,
                "verified": sums.verified, "verified_by": self.setup.verified_by, "gaps": self.writer.gaps(),
            });
            return print_line(&json!({ "recorded": recorded }).to_string());
        }
        let gaps: Vec<String> =
            self.writer.gaps().iter().map(|(reason, count)| format!("{reason}: {count}")).collect();
        let gaps = if gaps.is_empty() { String::new() } else { format!("; gaps: {}", gaps.join(", ")) };
        print_summary(&format!(
            "{}: {}: Q {}, R {}, R_s {}, S {}, S_v {} ({}){gaps}",
            self.out.display(),
            count_text(windows, "window"),
            sums.queries,
            sums.responses,
            sums.signed_responses,
            sums.signatures,
            sums.verified,
            self.setup.verified_by
        ))
    }
}
