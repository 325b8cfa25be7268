//! `nonesuch manual`: generates manual pages and completions from the definition of the command
//! line, the page of the metrics from their table, and the page of the configuration from the
//! declarations of its keys.

use crate::arguments::{Arguments, ManualArguments};
use crate::config;
use crate::files::FileError;
use crate::metrics;
use crate::outcome::CommandOutcome;
use clap::CommandFactory as _;
use clap_complete::Shell;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

/// The prefix of the names of pages, and the pages to which they refer. The first matching prefix
/// applies.
const SEE_ALSO: [(&str, &[&str]); 12] = [
    (
        "nonesuch-serve",
        &["nonesuch.toml (5)", "nonesuch\\-ctl (1)", "nonesuch\\-metrics (7)", "nonesuch (1)"],
    ),
    ("nonesuch-ctl", &["nonesuch\\-serve (1)", "nonesuch.toml (5)", "nonesuch (1)"]),
    ("nonesuch-query", &["nonesuch\\-serve (1)", "nonesuch\\-validate (1)", "nonesuch (1)"]),
    ("nonesuch-validate", &["nonesuch\\-query (1)", "nonesuch (1)"]),
    ("nonesuch-check", &["nonesuch\\-query (1)", "nonesuch\\-serve (1)", "nonesuch (1)"]),
    ("nonesuch-enumerate", &["nonesuch\\-query (1)", "nonesuch\\-serve (1)", "nonesuch (1)"]),
    ("nonesuch-proxy", &["nonesuch\\-query (1)", "nonesuch\\-resolve (1)", "nonesuch (1)"]),
    ("nonesuch-load", &["nonesuch\\-serve (1)", "nonesuch\\-lab (1)", "nonesuch (1)"]),
    ("nonesuch-zone", &["nonesuch\\-key (1)", "nonesuch\\-serve (1)", "nonesuch (1)"]),
    ("nonesuch-key", &["nonesuch\\-zone\\-sign (1)", "nonesuch (1)"]),
    ("nonesuch-", &["nonesuch (1)"]),
    (
        "nonesuch.1",
        &["nonesuch\\-zone (1)", "nonesuch\\-key (1)", "nonesuch\\-serve (1)", "nonesuch.toml (5)"],
    ),
];

/// Appends a SEE ALSO section to a page that clap has generated.
fn append_see_also(path: &Path) -> io::Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let pages = SEE_ALSO.iter().find(|(prefix, _)| name.ends_with(".1") && name.starts_with(prefix));
    let Some((_, pages)) = pages else { return Ok(()) };
    let lines: Vec<String> = pages.iter().map(|page| format!(".BR {page}")).collect();
    let mut file = fs::File::options().append(true).open(path)?;
    writeln!(file, ".SH SEE ALSO\n{}", lines.join(",\n"))
}

pub(crate) fn run(arguments: &ManualArguments) -> Result<CommandOutcome, FileError> {
    let dir = &arguments.dir;
    let failed = |source| FileError::Write { path: dir.clone(), source };
    fs::create_dir_all(dir).map_err(failed)?;
    let mut command = Arguments::command();
    clap_mangen::generate_to(command.clone(), dir).map_err(failed)?;
    for entry in fs::read_dir(dir).map_err(failed)? {
        append_see_also(&entry.map_err(failed)?.path()).map_err(failed)?;
    }
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        clap_complete::generate_to(shell, &mut command, "nonesuch", dir).map_err(failed)?;
    }
    fs::write(dir.join("nonesuch-metrics.7"), metrics::manual::page()).map_err(failed)?;
    fs::write(dir.join("nonesuch.toml.5"), config::reference::page()).map_err(failed)?;
    fs::write(dir.join("nonesuch-resolver.toml.5"), config::reference::resolver_page()).map_err(failed)?;
    Ok(CommandOutcome::Done)
}
