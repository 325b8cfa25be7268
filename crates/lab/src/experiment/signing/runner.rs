//! The run: rounds of jobs, each a process of its own, as long as there is time.

mod jobs;
mod prepare;

use super::parameters::Parameters;
use super::plan::{Cell, Costs, Shape, signatures};
use super::rows::{Job, Row, columns};
use super::{About, AlgorithmFacts};
use crate::experiment::data::DataTable;
use crate::experiment::error::RunError;
use crate::experiment::level::LevelProgram;
use crate::experiment::method;
use crate::experiment::run::{Found, RunOptions, Step};
use crate::experiment::verification::{Choice, pin};
use nonesuch_dnssec::Mechanism;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::Instant;

/// Runs the experiment in a thread of its own, so that the caller's is not bound to a CPU.
pub(in crate::experiment) fn run(
    parameters: &Parameters,
    options: &RunOptions<'_>,
) -> Result<Found, RunError> {
    let measured = std::thread::scope(|scope| {
        let work = scope.spawn(|| {
            let cpu = pin(parameters.cpu)?;
            Runner::prepare(parameters, options, cpu)?.measure()
        });
        work.join()
    });
    measured.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

/// A zone that is signed.
struct Zone {
    /// Its name in the data.
    name: String,
    /// The unsigned zone.
    file: PathBuf,
    /// A changed form of it, where it is to be signed again.
    changed: Option<PathBuf>,
    origin: String,
    names: u64,
    delegations: u64,
    signed_delegations: u64,
    /// Whether it is also served, transferred and signed again.
    extras: bool,
}

/// A program that signs and verifies.
struct Signer {
    name: &'static str,
    program: LevelProgram,
}

struct Runner<'a> {
    options: &'a RunOptions<'a>,
    begun: Instant,
    parameters: &'a Parameters,
    denials: Vec<Mechanism>,
    choices: Vec<(Choice, bool)>,
    zones: Vec<Zone>,
    signers: Vec<Signer>,
    /// Where zones, keys and outcomes are; it vanishes with the run.
    folder: tempfile::TempDir,
    /// Folders of keys, by zone and algorithm.
    keys: HashMap<(usize, usize), PathBuf>,
    costs: Costs,
    /// Signatures of a zone by mechanism, once known.
    known: HashMap<(usize, usize), u64>,
    left_out: Vec<Cell>,
    /// Zone, mechanism, algorithm and level of what was measured.
    measured: HashSet<(usize, usize, usize, usize)>,
    /// Jobs that failed: what failed first, how, and how often.
    failures: Vec<(Job, String, String, u64)>,
    about: About,
    data: DataTable,
    notes: Vec<String>,
}

impl<'a> Runner<'a> {
    fn prepare(
        parameters: &'a Parameters,
        options: &'a RunOptions<'a>,
        cpu: Option<u64>,
    ) -> Result<Self, RunError> {
        let begun = Instant::now();
        let folder = tempfile::Builder::new().prefix("nonesuch-lab-").tempdir();
        let folder = folder.map_err(|source| RunError::Folder { path: std::env::temp_dir(), source })?;
        let mut denials: Vec<Mechanism> = Vec::new();
        for denial in &parameters.denial {
            if !denials.contains(&denial.0) {
                denials.push(denial.0);
            }
        }
        let choices = parameters.choices();
        let about = About {
            algorithms: choices.iter().map(|(choice, addition)| algorithm(*choice, *addition)).collect(),
            cpu,
            ..About::default()
        };
        let mut runner = Self {
            options,
            begun,
            parameters,
            denials,
            choices,
            zones: Vec::new(),
            signers: Vec::new(),
            folder,
            keys: HashMap::new(),
            costs: Costs::default(),
            known: HashMap::new(),
            left_out: Vec::new(),
            measured: HashSet::new(),
            failures: Vec::new(),
            about,
            data: DataTable::new(columns()),
            notes: Vec::new(),
        };
        runner.add_levels()?;
        runner.refuse_nothing()?;
        runner.add_zones()?;
        Ok(runner)
    }

    fn refuse_nothing(&self) -> Result<(), RunError> {
        let reason = if self.signers.is_empty() {
            self.notes.join(" ")
        } else if self.choices.is_empty() || self.denials.is_empty() || self.parameters.zones.is_empty() {
            "name at least one algorithm, one denial mechanism and one zone".to_owned()
        } else {
            return Ok(());
        };
        Err(RunError::Nothing { reason })
    }

    fn measure(mut self) -> Result<Found, RunError> {
        let cells = Shape {
            runs: self.parameters.runs.value(),
            zones: self.zones.len(),
            denials: self.denials.len(),
            levels: self.signers.len(),
            choices: &self.choices,
            limited: self.parameters.minutes.limit().is_some(),
        }
        .cells();
        self.measure_unsigned()?;
        for (index, cell) in cells.iter().enumerate() {
            self.tell(index, cells.len(), *cell);
            if self.has_time(*cell) {
                self.measure_cell(*cell)?;
                self.measured.insert((cell.zone, cell.denial, cell.algorithm, cell.level));
            } else {
                self.left_out.push(*cell);
            }
        }
        self.tell_failures();
        if self.data.rows().is_empty() {
            return Err(RunError::Nothing { reason: self.notes.join(" ") });
        }
        self.tell_left_out();
        self.about.seconds = self.begun.elapsed().as_secs_f64();
        let about = method::About::ZoneSigning(self.about);
        Ok(Found { about, data: self.data, notes: self.notes })
    }

    fn tell(&self, index: usize, steps: usize, cell: Cell) {
        let what = format!(
            "{}, {}, {}, {}",
            self.zones[cell.zone].name,
            self.choices[cell.algorithm].0.scheme(),
            self.denials[cell.denial],
            self.signers[cell.level].name
        );
        (self.options.progress)(Step { index: index as u64, steps: steps as u64, what: &what });
    }

    /// Whether the cell is expected to end within the limit of time.
    fn has_time(&self, cell: Cell) -> bool {
        let Some(limit) = self.parameters.minutes.limit() else { return true };
        let zone = &self.zones[cell.zone];
        let guess =
            || signatures(zone.names, zone.delegations, zone.signed_delegations, self.denials[cell.denial]);
        let known = self.known.get(&(cell.zone, cell.denial));
        let signatures = known.map_or_else(guess, |known| *known as f64);
        let extras = zone.extras && cell.level == 0;
        let expected = self.costs.expect(cell, self.choices[cell.algorithm].0, signatures, extras);
        self.begun.elapsed().as_secs_f64() + expected <= limit.as_secs_f64()
    }

    fn push(&mut self, row: &Row) -> Result<(), RunError> {
        Ok(self.data.push(row.cells())?)
    }

    /// Says it once.
    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// What failed for one reason is told once.
    fn tell_failures(&mut self) {
        for (job, what, fault, count) in std::mem::take(&mut self.failures) {
            let fault = fault.trim_end_matches('.');
            let more = if count > 1 { format!(" (first of {count} alike)") } else { String::new() };
            self.note(format!("Left out: {}, {what}{more}: {fault}.", job.name()));
        }
    }

    /// What was never measured, by zone and mechanism.
    fn tell_left_out(&mut self) {
        let place = |cell: &Cell| (cell.zone, cell.denial, cell.algorithm, cell.level);
        // What others are held against has more turns than one in a run.
        let first = |cell: &&Cell| cell.run == 0 && !self.measured.contains(&place(cell));
        let mut lines: Vec<(usize, usize, Vec<String>)> = Vec::new();
        for cell in self.left_out.iter().filter(first) {
            let what =
                format!("{} at {}", self.choices[cell.algorithm].0.scheme(), self.signers[cell.level].name);
            match lines.iter_mut().find(|(zone, denial, _)| (*zone, *denial) == (cell.zone, cell.denial)) {
                Some((.., whats)) if whats.contains(&what) => {}
                Some((.., whats)) => whats.push(what),
                None => lines.push((cell.zone, cell.denial, vec![what])),
            }
        }
        let line = |(zone, denial, whats): (usize, usize, Vec<String>)| {
            format!("{}, {}: {}", self.zones[zone].name, self.denials[denial].entry().title, whats.join(", "))
        };
        self.about.left_out = lines.into_iter().map(line).collect();
    }
}

fn algorithm(choice: Choice, addition: bool) -> AlgorithmFacts {
    let scheme = choice.algorithm.entry().map(|entry| entry.scheme);
    let modulus = choice.bits.map(|bits| u64::from(bits).div_ceil(8));
    let octets = scheme.and_then(|scheme| scheme.signature_octets).map(|octets| octets as u64);
    AlgorithmFacts {
        algorithm: choice.to_string(),
        scheme: choice.scheme(),
        library: scheme.map_or("", |scheme| scheme.library).to_owned(),
        experimental: scheme.and_then(|scheme| scheme.experimental).map(str::to_owned),
        post_quantum: choice.is_post_quantum(),
        addition,
        signature_octets: octets.or(modulus).unwrap_or_default(),
    }
}
