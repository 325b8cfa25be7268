//! Signs a zone part by part: several threads sign and render parts, and the caller gets the parts
//! in canonical order in the meantime.
//!
//! [`super::sign`] joins the parts to contents. The command line writes each part as text, and
//! never has the complete signed zone in memory ([`sign_streaming`]). Nothing is sorted twice.

use super::chunk::{Scratch, Signer, ZonemdPlacement};
use super::options::check;
use super::plan::Plan;
use super::signers::Signers;
use super::zonemd::ZonemdHasher;
use super::{SignError, SignOptions, SignProgress, SignStatistics, SignWarning, apex, serial, stray_records};
use crate::keys::KeySet;
use nonesuch_zone::ordered::for_each_ordered;
use nonesuch_zone::zonemd::push_canonical;
use nonesuch_zone::{Contents, NodesBuilder};

/// Number of names that a thread signs as one unit of work.
pub(super) const CHUNK: usize = 512;

/// As [`CHUNK`], with a previous zone. The chunk is larger because most signatures are reused, and
/// the few new ones form one batch for each key.
const RESIGN_CHUNK: usize = 2048;

/// The statistics and the warnings of signing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignSummary {
    /// Numbers of signatures and records, and the serial.
    pub statistics: SignStatistics,
    /// Deviations from the options, and records that verification will report as faults.
    pub warnings: Vec<SignWarning>,
}

/// Signs `contents` with all of `keys` as [`super::sign`], without the complete signed zone in
/// memory.
///
/// `render` converts a part of the signed zone, consecutive names with all their records, to the
/// input of `take`, on any thread. Its second argument is a new `T`, or one that `take` has
/// processed, for reuse of its memory. `take` is called on this thread, in canonical order, while
/// other threads sign further parts. The number of parts in memory is bounded.
///
/// If ZONEMD records are generated, the last part is the apex again, with only the ZONEMD RRset and
/// its signatures: the digest covers all other records and is known only after them. Readers of
/// zone files accept records in any order.
///
/// # Errors
/// As [`super::sign`], before the first call of `take`; if a signature cannot be generated; and the
/// errors of `take`. No further part is started after an error.
pub fn sign_streaming<T, E>(
    contents: &Contents,
    keys: &KeySet,
    options: &SignOptions<'_>,
    render: impl Fn(&Contents, &mut T) + Sync,
    mut take: impl FnMut(&mut T) -> Result<(), E>,
) -> Result<SignSummary, E>
where
    T: Default + Send,
    E: From<SignError> + Send,
{
    let job = Job::prepare(contents, keys, options)?;
    let render_part = |part: &mut Contents, out: &mut T| render(part, out);
    let (summary, last) = job.run(options, ZonemdPlacement::Last, render_part, &mut take)?;
    if let Some(part) = last {
        let mut out = T::default();
        render(&part, &mut out);
        take(&mut out)?;
    }
    Ok(summary)
}

/// A zone that can be signed: keys, options and contents are checked.
pub(super) struct Job<'z> {
    contents: &'z Contents,
    apex: Contents,
    signers: Signers<'z>,
    summary: SignSummary,
}

/// A part that is ready for `take`.
#[derive(Default)]
struct Part<T> {
    rendered: T,
    /// Input for the digest of the zone; empty without ZONEMD records.
    canonical: Vec<u8>,
    statistics: SignStatistics,
}

/// Buffers that are reused for each part.
#[derive(Default)]
struct JobBuffers {
    scratch: Scratch,
    run: NodesBuilder,
}

impl<'z> Job<'z> {
    pub(super) fn prepare(
        contents: &'z Contents,
        keys: &'z KeySet,
        options: &SignOptions<'_>,
    ) -> Result<Self, SignError> {
        check(contents, keys, options)?;
        let signed: Vec<&Contents> =
            [contents].into_iter().chain(options.previous.map(|previous| previous.contents)).collect();
        let unsigned = contents.soa().ok_or_else(|| SignError::NoSoa(contents.apex().clone()))?.serial;
        let (serial, warning) = serial::choose_serial(options, unsigned);
        let prepared = apex::prepare(contents, serial, keys, options, &signed)?;
        let mut warnings: Vec<SignWarning> = warning.into_iter().collect();
        warnings.extend_from_slice(&prepared.warnings);
        if let Some(previous) = options.previous {
            warnings.extend(prepared.check_transition(previous.contents.into(), options)?);
        }
        warnings.extend(stray_records::check_below_apex(contents, options));
        let apex::Prepared { apex, signers, .. } = prepared;
        let statistics = SignStatistics { serial, ..SignStatistics::default() };
        Ok(Self { contents, apex, signers, summary: SignSummary { statistics, warnings } })
    }

    /// Signs the zone. Also returns the ZONEMD RRset with its signatures, if it has one; the parts
    /// do not contain it.
    pub(super) fn run<T, E>(
        mut self,
        options: &SignOptions<'_>,
        zonemd: ZonemdPlacement,
        render: impl Fn(&mut Contents, &mut T) + Sync,
        mut take: impl FnMut(&mut T) -> Result<(), E>,
    ) -> Result<(SignSummary, Option<Contents>), E>
    where
        T: Default + Send,
        E: From<SignError> + Send,
    {
        let plan = Plan::new(self.contents, &self.apex, options)?;
        let signer = Signer::new(&plan, &self.signers, options, zonemd);
        let mut hasher = ZonemdHasher::new(&self.apex);
        let has_zonemd = hasher.is_needed();
        let mut progress = ProgressReporter::new(&plan, options);
        let statistics = &mut self.summary.statistics;
        let chunk = if options.previous.is_some() { RESIGN_CHUNK } else { CHUNK };
        let parts: Vec<_> = plan.items().chunks(chunk).collect();
        for_each_ordered(
            parts.len(),
            |index, buffers: &mut JobBuffers, part: &mut Part<T>| {
                let mut run = std::mem::take(&mut buffers.run);
                part.statistics = signer.sign_chunk(parts[index], &mut buffers.scratch, &mut run)?;
                let mut signed = run.into_contents(self.contents.apex());
                signed.check_sizes().map_err(SignError::from)?;
                part.canonical.clear();
                if has_zonemd {
                    push_canonical(&signed, &mut part.canonical);
                }
                render(&mut signed, &mut part.rendered);
                buffers.run = signed.into_empty_builder();
                Ok::<(), E>(())
            },
            |part| {
                hasher.update(&part.canonical);
                statistics.add(&part.statistics);
                progress.report(statistics);
                take(&mut part.rendered)
            },
        )?;
        let last = hasher.finish(&signer)?.map(|(part, made)| {
            statistics.add(&made);
            progress.report(statistics);
            part
        });
        Ok((self.summary, last))
    }
}

/// Reports the progress of signing, if the caller requests it.
struct ProgressReporter<'o> {
    progress: Option<&'o (dyn Fn(SignProgress) + Sync)>,
    total_rrsets: u64,
}

impl<'o> ProgressReporter<'o> {
    fn new(plan: &Plan<'_>, options: &'o SignOptions<'_>) -> Self {
        let progress = options.progress;
        Self { progress, total_rrsets: progress.map_or(0, |_| plan.count_signed()) }
    }

    fn report(&mut self, done: &SignStatistics) {
        let Some(progress) = self.progress else { return };
        let &SignStatistics { rrsets_signed: rrsets, signatures, records, .. } = done;
        progress(SignProgress { rrsets, total_rrsets: self.total_rrsets, signatures, records });
    }
}
