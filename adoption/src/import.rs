//! `nonesuch adoption import`: zone files and lists of delegations as snapshots.

mod list;
mod operator;
mod zone;

pub(crate) use list::ListFault;

use crate::arguments::{ImportArguments, InputFormat};
use crate::error::AdoptionError;
use crate::output::create_directory;
use crate::snapshot::{Day, Nsec3, Row, SnapshotWriter, date_text, day_of};
use nonesuch_proto::NameRef;
use nonesuch_zone::ReadError;
use std::path::{Path, PathBuf};

/// Why an input of `import` is rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ImportError {
    #[error(transparent)]
    Zone(#[from] ReadError),
    #[error("{}:{line}: {fault}", path.display())]
    List { path: PathBuf, line: u64, fault: ListFault },
    #[error("{}: the domain {domain} is on the lines {} and {}: remove one of them", path.display(), lines.0, lines.1)]
    Repeated { path: PathBuf, domain: String, lines: (u64, u64) },
    #[error("{}: has no delegations: nothing to import", .0.display())]
    Empty(PathBuf),
    #[error("{}: unknown date: write --date YYYY-MM-DD (only a zone whose serial number has the form YYYYMMDDnn has a date)", .0.display())]
    NoDate(PathBuf),
    #[error("{}: unknown source: write --source NAME, such as the name of the zone", .0.display())]
    NoSource(PathBuf),
    #[error("{}: unknown format: write --format zone, list or csv", .0.display())]
    NoFormat(PathBuf),
    #[error("{}: the source {name:?} cannot be part of the name of a file: use letters, digits, dots, hyphens and underscores", path.display())]
    Source { path: PathBuf, name: String },
}

/// A delegation or domain of an input, without source and date.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Domain {
    pub(crate) name: String,
    pub(crate) dnskey_algorithms: Option<String>,
    pub(crate) ds_algorithms: Option<String>,
    pub(crate) ds_digests: Option<String>,
    pub(crate) operator: Option<String>,
    pub(crate) denial: Option<String>,
    pub(crate) iterations: Option<u16>,
    pub(crate) salt: Option<String>,
    pub(crate) opt_out: Option<bool>,
    pub(crate) rank: Option<i32>,
}

/// An input file: its domains in ascending order of their names, and its source and day, if the file has them.
struct Input {
    domains: Vec<Domain>,
    source: Option<String>,
    day: Option<Day>,
}

pub(crate) fn run(arguments: &ImportArguments) -> Result<(), AdoptionError> {
    create_directory(&arguments.out)?;
    for path in &arguments.files {
        import(arguments, path)?;
    }
    Ok(())
}

fn import(arguments: &ImportArguments, path: &Path) -> Result<(), AdoptionError> {
    let input = match format(arguments, path)? {
        InputFormat::Zone => zone::read(path, arguments.origin.as_ref())?,
        InputFormat::List => list::read_text(path)?,
        InputFormat::Csv => list::read_csv(path)?,
    };
    if input.domains.is_empty() {
        return Err(ImportError::Empty(path.to_owned()).into());
    }
    let day = arguments.date.map(day_of).or(input.day).ok_or_else(|| ImportError::NoDate(path.to_owned()))?;
    let source = arguments.source.clone().or(input.source);
    let source = source.ok_or_else(|| ImportError::NoSource(path.to_owned()))?;
    let out = arguments.out.join(format!("{}-{}.parquet", file_part(path, &source)?, date_text(day)));
    if out.exists() && !arguments.force {
        return Err(AdoptionError::Exists(out));
    }
    write(&out, &source, day, &input.domains)?;
    eprintln!("{}: {} domains of {source} on {}", out.display(), input.domains.len(), date_text(day));
    Ok(())
}

fn format(arguments: &ImportArguments, path: &Path) -> Result<InputFormat, ImportError> {
    let by_name = || match path.extension()?.to_str()? {
        "zone" => Some(InputFormat::Zone),
        "csv" => Some(InputFormat::Csv),
        "txt" | "list" => Some(InputFormat::List),
        _ => None,
    };
    arguments.format.or_else(by_name).ok_or_else(|| ImportError::NoFormat(path.to_owned()))
}

/// Returns the source as the start of a file name; the root zone is `root`.
fn file_part(path: &Path, source: &str) -> Result<String, ImportError> {
    if source == "." {
        return Ok("root".to_owned());
    }
    let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || b".-_".contains(&octet);
    if source.is_empty() || source.starts_with('.') || !source.bytes().all(is_plain) {
        return Err(ImportError::Source { path: path.to_owned(), name: source.to_owned() });
    }
    Ok(source.to_owned())
}

fn write(path: &Path, source: &str, day: Day, domains: &[Domain]) -> Result<(), AdoptionError> {
    let mut writer = SnapshotWriter::create(path)?;
    for domain in domains {
        writer.push(&Row {
            source,
            day,
            domain: &domain.name,
            dnskey_algorithms: domain.dnskey_algorithms.as_deref(),
            ds_algorithms: domain.ds_algorithms.as_deref(),
            ds_digests: domain.ds_digests.as_deref(),
            operator: domain.operator.as_deref(),
            denial: domain.denial.as_deref(),
            nsec3: Nsec3 {
                iterations: domain.iterations.map(i32::from),
                salt: domain.salt.as_deref(),
                opt_out: domain.opt_out,
            },
            rank: domain.rank,
        })?;
    }
    writer.finish()
}

/// Returns the numbers in the form of the columns: ascending, each once, between commas.
pub(crate) fn list_text(mut numbers: Vec<u8>) -> String {
    numbers.sort_unstable();
    numbers.dedup();
    numbers.iter().map(u8::to_string).collect::<Vec<_>>().join(",")
}

/// Returns a name as the columns have it: in lower case, without the final dot unless it is the root.
pub(crate) fn name_text(name: NameRef<'_>) -> String {
    let text = name.to_string().to_ascii_lowercase();
    match text.strip_suffix('.') {
        Some(text) if !text.is_empty() => text.to_owned(),
        _ => text,
    }
}
