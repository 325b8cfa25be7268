//! Signs a zone part by part: several threads sign and render parts, and meanwhile the caller gets
//! the finished parts in canonical order.
//!
//! [`super::sign`] joins the parts to contents. The command line writes each part as text with
//! [`sign_streaming`], and never has the complete signed zone in memory.

use super::chunk::{ChunkSigner, Scratch, ZonemdPlacement};
use super::key_assignment::KeyAssignment;
use super::options::check;
use super::plan::Plan;
use super::zonemd::ZonemdHasher;
use super::{SignError, SignOptions, SignProgress, SignStatistics, SignWarning, apex, serial, stray_records};
use crate::keys::KeySet;
use nonesuch_zone::ordered::for_each_ordered;
use nonesuch_zone::zonemd::push_canonical;
use nonesuch_zone::{Contents, NodesBuilder};

/// Number of names in a part, which a thread signs as one unit of work.
pub(super) const NAMES_PER_CHUNK: usize = 512;

/// As [`NAMES_PER_CHUNK`], with a previous zone. Most of its signatures are reused, so a part needs
/// more names for batches of new signatures that are large enough to be fast.
const NAMES_PER_RESIGN_CHUNK: usize = 2048;

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
/// input of `consume`, on any thread. Its second argument is a new `T`, or one that `consume` has
/// processed, so that `render` can reuse its memory. `consume` is called on this thread, in
/// canonical order, while other threads sign further parts. The number of parts in memory is
/// bounded.
///
/// If ZONEMD records are generated, the last part is the apex again, with only the ZONEMD RRset and
/// its signatures, because the digest covers all other records. A zone file may have records in any
/// order.
///
/// # Errors
/// As [`super::sign`], before the first call of `consume`; if a signature cannot be generated; and the
/// errors of `consume`. No further part is started after an error.
pub fn sign_streaming<T, E>(
    contents: &Contents,
    keys: &KeySet,
    options: &SignOptions<'_>,
    render: impl Fn(&Contents, &mut T) + Sync,
    mut consume: impl FnMut(&mut T) -> Result<(), E>,
) -> Result<SignSummary, E>
where
    T: Default + Send,
    E: From<SignError> + Send,
{
    let job = SignJob::prepare(contents, keys, options)?;
    let render_part = |part: &mut Contents, out: &mut T| render(part, out);
    let (summary, last) = job.run(options, ZonemdPlacement::Last, render_part, &mut consume)?;
    if let Some(part) = last {
        let mut out = T::default();
        render(&part, &mut out);
        consume(&mut out)?;
    }
    Ok(summary)
}

/// A zone that is ready to be signed: keys, options and contents are checked, and the apex is
/// prepared.
pub(super) struct SignJob<'z> {
    contents: &'z Contents,
    /// The prepared apex.
    apex: Contents,
    assignment: KeyAssignment<'z>,
    summary: SignSummary,
}

/// A part that is ready for `consume`.
#[derive(Default)]
struct Part<T> {
    rendered: T,
    /// Input for the digest of the zone (RFC 8976 §3.3); empty without ZONEMD records.
    canonical: Vec<u8>,
    statistics: SignStatistics,
}

/// Buffers of one thread, which it reuses for each part.
#[derive(Default)]
struct JobBuffers {
    scratch: Scratch,
    builder: NodesBuilder,
}

impl<'z> SignJob<'z> {
    /// Checks keys, options and contents, and prepares the apex. The errors are those of
    /// [`super::sign`].
    pub(super) fn prepare(
        contents: &'z Contents,
        keys: &'z KeySet,
        options: &SignOptions<'_>,
    ) -> Result<Self, SignError> {
        check(contents, keys, options)?;
        let signature_sources: Vec<&Contents> =
            [contents].into_iter().chain(options.previous.map(|previous| previous.contents)).collect();
        let unsigned_serial = contents.soa().ok_or_else(|| SignError::NoSoa(contents.apex().clone()))?.serial;
        let (serial, warning) = serial::choose_serial(options, unsigned_serial);
        let prepared = apex::prepare(contents, serial, keys, options, &signature_sources)?;
        let mut warnings: Vec<SignWarning> = warning.into_iter().collect();
        warnings.extend_from_slice(&prepared.warnings);
        if let Some(previous) = options.previous {
            warnings.extend(prepared.check_transition(previous.contents.into(), options)?);
        }
        warnings.extend(stray_records::check_below_apex(contents, options));
        let apex::PreparedApex { apex, assignment, .. } = prepared;
        let statistics = SignStatistics { serial, ..SignStatistics::default() };
        Ok(Self { contents, apex, assignment, summary: SignSummary { statistics, warnings } })
    }

    /// Signs the zone, and passes its parts to `render` and `consume` as [`sign_streaming`]
    /// describes. Also returns the apex with only the ZONEMD RRset and its signatures, if the zone
    /// has one. The parts do not contain them; `zonemd` states whether they reserve space for them.
    pub(super) fn run<T, E>(
        mut self,
        options: &SignOptions<'_>,
        zonemd: ZonemdPlacement,
        render: impl Fn(&mut Contents, &mut T) + Sync,
        mut consume: impl FnMut(&mut T) -> Result<(), E>,
    ) -> Result<(SignSummary, Option<Contents>), E>
    where
        T: Default + Send,
        E: From<SignError> + Send,
    {
        let plan = Plan::new(self.contents, &self.apex, options)?;
        let signer = ChunkSigner::new(&plan, &self.assignment, options, zonemd);
        let mut hasher = ZonemdHasher::new(&self.apex);
        let has_zonemd = hasher.is_needed();
        let mut progress = ProgressReporter::new(&plan, options);
        let statistics = &mut self.summary.statistics;
        let names_per_chunk =
            if options.previous.is_some() { NAMES_PER_RESIGN_CHUNK } else { NAMES_PER_CHUNK };
        let chunks: Vec<_> = plan.items().chunks(names_per_chunk).collect();
        for_each_ordered(
            chunks.len(),
            |index, buffers: &mut JobBuffers, part: &mut Part<T>| {
                let mut builder = std::mem::take(&mut buffers.builder);
                part.statistics = signer.sign_chunk(chunks[index], &mut buffers.scratch, &mut builder)?;
                let mut signed = builder.into_contents(self.contents.apex());
                signed.check_sizes().map_err(SignError::from)?;
                part.canonical.clear();
                if has_zonemd {
                    push_canonical(&signed, &mut part.canonical);
                }
                render(&mut signed, &mut part.rendered);
                buffers.builder = signed.into_empty_builder();
                Ok::<(), E>(())
            },
            |part| {
                hasher.update(&part.canonical);
                statistics.add(&part.statistics);
                progress.report(statistics);
                consume(&mut part.rendered)
            },
        )?;
        let last = hasher.finish(&signer)?.map(|(part, added)| {
            statistics.add(&added);
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
