//! The SQL of the report, as files that other engines can run too.

use crate::error::AdoptionError;
use crate::output::{create_directory, write_file};
use std::path::Path;

/// A query: the name of its result, and its text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query {
    pub(crate) name: &'static str,
    pub(crate) sql: &'static str,
}

macro_rules! queries {
    ($directory:literal: $($name:literal),+) => {
        [$(Query { name: $name, sql: include_str!(concat!("../sql/", $directory, $name, ".sql")) }),+]
    };
}

/// Views over the snapshots, in the order in which they use each other.
pub(crate) const SNAPSHOT_VIEWS: [Query; 2] = queries!("views/": "algorithms", "classified");
/// The query whose result is stored as the table `counts`.
pub(crate) const COUNTS: Query = Query { name: "counts", sql: include_str!("../sql/counts.sql") };
/// Views over the counts.
pub(crate) const COUNT_VIEWS: [Query; 2] = queries!("views/": "algorithm_members", "top_operators");
/// The tables of the report.
pub(crate) const RESULTS: [Query; 10] = queries!("results/": "status", "algorithms", "families", "digests", "denial",
    "nsec3", "nsec3_summary", "operators", "operator_families", "ranks");
/// The search for repeated domains.
pub(crate) const DUPLICATES: [Query; 1] = queries!("checks/": "duplicates");

/// Other files that run or describe the queries.
const OTHERS: [(&str, &str); 2] =
    [("spark.py", include_str!("../spark.py")), ("sql/README.md", include_str!("../sql/README.md"))];

/// Writes all files in the layout that `spark.py` expects.
pub(crate) fn write(out: &Path) -> Result<(), AdoptionError> {
    for directory in ["sql/views", "sql/results", "sql/checks"] {
        create_directory(&out.join(directory))?;
    }
    for (name, text) in OTHERS {
        write_file(&out.join(name), text.as_bytes())?;
    }
    write_queries(out, "sql", &[COUNTS])?;
    write_queries(out, "sql/views", &[SNAPSHOT_VIEWS, COUNT_VIEWS].concat())?;
    write_queries(out, "sql/results", &RESULTS)?;
    write_queries(out, "sql/checks", &DUPLICATES)
}

fn write_queries(out: &Path, directory: &str, queries: &[Query]) -> Result<(), AdoptionError> {
    for query in queries {
        write_file(&out.join(directory).join(format!("{}.sql", query.name)), query.sql.as_bytes())?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;

    /// Returns the paths of all SQL files below a directory.
    fn files(directory: &Path) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        let mut open = vec![directory.to_owned()];
        while let Some(directory_now) = open.pop() {
            for entry in fs::read_dir(directory_now).expect("a directory") {
                let path = entry.expect("an entry").path();
                if path.is_dir() {
                    open.push(path);
                } else if path.extension().is_some_and(|extension| extension == "sql") {
                    found.insert(path.strip_prefix(directory).expect("below").display().to_string());
                }
            }
        }
        found
    }

    #[test]
    fn every_file_of_the_directory_is_written() {
        let out = tempfile::tempdir().expect("a directory");
        write(out.path()).expect("written");
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql");
        assert_eq!(files(&out.path().join("sql")), files(&sources));
    }
}
