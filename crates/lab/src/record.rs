//! The facts that each record of the laboratory has: identifiers of the run and of the machine,
//! versions, command, seed and date; and the columns of them in data files.

use crate::data::{ColumnType, DataColumn, DataTable, RowMismatch};
use crate::machine::{CpuPlacement, Machine};
use data_encoding::HEXLOWER;
use nonesuch_proto::timestamp::Rfc3339;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// How a run was started, for its record.
#[derive(Clone, Copy, Debug)]
pub struct Invocation<'a> {
    /// Time of the run, in seconds since 1970.
    pub now: u32,
    /// Command line.
    pub command: &'a str,
    /// Seed of all random values except keys.
    pub seed: u64,
    /// Commit of this program, or `unknown`.
    pub commit: &'a str,
}

/// Facts about a run.
///
/// Records of earlier versions lack some fields. Reading such a record gives them empty values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunRecord {
    /// Identifier of the run: 128 random bits as 32 hexadecimal digits.
    #[serde(default)]
    pub run_id: String,
    /// Time of the run, in RFC 3339 format.
    pub date: String,
    /// Command line.
    pub command: String,
    /// Seed of all random values except keys.
    pub seed: u64,
    /// Commit of the program, as `git describe` prints it; `unknown` if it was built outside of a
    /// git repository.
    #[serde(default)]
    pub commit: String,
    /// Versions of the programs of others that were measured, by name.
    #[serde(default)]
    pub peers: BTreeMap<String, String>,
    /// The machine and the build of the program.
    pub machine: Machine,
}

/// The system does not provide random octets.
#[derive(Debug, thiserror::Error)]
#[error("cannot get random octets for the identifier of the run from the system: {0}")]
pub struct RecordError(getrandom::Error);

impl RunRecord {
    /// Returns the facts of machine and run for a page.
    #[must_use]
    pub fn facts(&self) -> Vec<(String, String)> {
        let machine = &self.machine;
        [
            ("command", self.command.clone()),
            ("commit", self.commit.clone()),
            ("CPU", machine.cpu.clone()),
            ("CPUs", machine.cpus.to_string()),
            ("system", machine.system.clone()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }

    /// Starts the record of a run on this machine.
    ///
    /// # Errors
    /// Fails if the system does not provide random octets.
    pub fn begin(invocation: Invocation<'_>) -> Result<Self, RecordError> {
        Self::begin_on(invocation, None)
    }

    /// Starts the record of a run with the CPUs that were chosen, if any.
    pub(crate) fn begin_on(
        invocation: Invocation<'_>,
        chosen: Option<CpuPlacement>,
    ) -> Result<Self, RecordError> {
        let mut octets = [0_u8; 16];
        getrandom::fill(&mut octets).map_err(RecordError)?;
        Ok(Self {
            run_id: HEXLOWER.encode(&octets),
            date: Rfc3339(invocation.now.into()).to_string(),
            command: invocation.command.to_owned(),
            seed: invocation.seed,
            commit: invocation.commit.to_owned(),
            peers: BTreeMap::new(),
            machine: Machine::describe(chosen),
        })
    }

    /// Returns the value of a column of [`runs`].
    fn cell(&self, record: &Value, name: &str) -> Value {
        let machine = &record["machine"];
        match name {
            "machine_id" => machine["id"].clone(),
            "peers" => {
                let peers = self.peers.iter().map(|(name, version)| format!("{name}: {version}"));
                peers.collect::<Vec<_>>().join("; ").into()
            }
            "cpu_flags" => self.machine.cpu_flags.join(" ").into(),
            "seed" => self.seed.to_string().into(),
            "optimised" => u8::from(self.machine.optimised).into(),
            name => record.get(name).unwrap_or_else(|| &machine[name]).clone(),
        }
    }
}

/// Names of the columns that each table of measurements has.
pub(crate) const RUN_ID: &str = "run_id";
pub(crate) const MACHINE_ID: &str = "machine_id";
pub(crate) const OTHERS_CPU: &str = "others_cpu";
pub(crate) const LIMITED_BY: &str = "limited_by";

/// Columns that each table of measurements has after those of its experiment.
pub(crate) fn measurement_columns() -> Vec<DataColumn> {
    let column = |(name, kind, meaning): (&str, ColumnType, &str)| DataColumn::new(name, kind, meaning);
    [
        (RUN_ID, ColumnType::Text, "Identifier of the run; runs.csv describes the run"),
        (MACHINE_ID, ColumnType::Text, "Identifier of the machine: a hash of its /etc/machine-id"),
        (
            OTHERS_CPU,
            ColumnType::Number,
            "Share of the CPU time of all CPUs that other programs and other virtual machines used during the measurement, from 0 to 1",
        ),
        (
            LIMITED_BY,
            ColumnType::Text,
            "What limited the measurement: server, load-generator, rate (the requested rate), program (the measured program), other (other programs, the disk or the network); missing if unknown",
        ),
    ]
    .map(column)
    .to_vec()
}

/// Columns of the table of runs.
const RUN_COLUMNS: &[(&str, ColumnType, &str)] = &[
    (RUN_ID, ColumnType::Text, "Identifier of the run"),
    (MACHINE_ID, ColumnType::Text, "Identifier of the machine"),
    ("date", ColumnType::Text, "Time of the run, RFC 3339"),
    ("command", ColumnType::Text, "Command line"),
    ("seed", ColumnType::Text, "Seed of all random values except keys, from 0 to 2^64-1"),
    ("commit", ColumnType::Text, "Commit of the program"),
    ("nonesuch", ColumnType::Text, "Version of the program"),
    ("rustc", ColumnType::Text, "Version of the compiler"),
    ("optimised", ColumnType::Integer, "1: a release build; 0: a build with debug assertions"),
    ("peers", ColumnType::Text, "Versions of the programs of others"),
    ("cpu", ColumnType::Text, "Model of the CPU"),
    ("cpu_family", ColumnType::Integer, "Family of the CPU"),
    ("cpu_model", ColumnType::Integer, "Model number of the CPU"),
    ("cpu_stepping", ColumnType::Integer, "Stepping of the CPU"),
    ("cpu_flags", ColumnType::Text, "CPU features by which code is selected"),
    ("cpu_mhz", ColumnType::Integer, "Highest frequency of any CPU at the start of the run, MHz"),
    ("cpu_max_mhz", ColumnType::Integer, "Highest frequency that the system permits for the first CPU, MHz"),
    ("governor", ColumnType::Text, "Frequency governor"),
    ("cpus", ColumnType::Integer, "Number of usable CPUs"),
    ("memory_kib", ColumnType::Integer, "Memory, KiB"),
    ("hypervisor", ColumnType::Text, "Hypervisor"),
    ("system", ColumnType::Text, "Distribution and kernel"),
    ("kernel", ColumnType::Text, "Release and build of the kernel"),
];

/// Returns the table of runs: a row for each record.
///
/// # Errors
/// Fails if a value does not fit its column; no record is known to cause this error.
pub(crate) fn runs(records: &[&RunRecord]) -> Result<DataTable, RowMismatch> {
    let columns = RUN_COLUMNS.iter().map(|(name, kind, meaning)| DataColumn::new(name, *kind, meaning));
    let mut table = DataTable::new(columns.collect());
    for record in records {
        let whole = serde_json::to_value(record).unwrap_or_default();
        let cells = RUN_COLUMNS.iter().map(|(name, ..)| ((*name).to_owned(), record.cell(&whole, name)));
        table.push_row(&cells.collect::<serde_json::Map<_, _>>())?;
    }
    Ok(table)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A record of a run on a machine with this identifier.
    pub(crate) fn sample(run_id: &str, machine_id: &str) -> RunRecord {
        RunRecord {
            run_id: run_id.to_owned(),
            date: "2026-03-01T12:00:00Z".to_owned(),
            command: "nonesuch".to_owned(),
            seed: 1,
            commit: "v0.1.0-3-gabc".to_owned(),
            peers: BTreeMap::from([("openssl".to_owned(), "OpenSSL 3.0".to_owned())]),
            machine: Machine {
                id: machine_id.to_owned(),
                cpu: "A CPU".to_owned(),
                cpus: 2,
                optimised: true,
                cpu_flags: vec!["avx2".to_owned(), "sha_ni".to_owned()],
                ..Machine::default()
            },
        }
    }

    #[test]
    fn the_citation_names_the_version_of_the_program() {
        let citation = include_str!("../../../CITATION.cff");
        let versions: Vec<&str> =
            citation.lines().filter_map(|line| line.strip_prefix("version: ")).collect();
        assert_eq!(versions, [env!("CARGO_PKG_VERSION")], "CITATION.cff");
        assert!(citation.contains("\nlicense: BSD-3-Clause\n") && citation.contains("\nauthors:\n"));
    }

    fn invocation() -> Invocation<'static> {
        Invocation { now: 1_772_366_400, command: "test", seed: 3, commit: "abc" }
    }

    #[test]
    fn runs_have_different_identifiers_on_the_same_machine() {
        let [first, second] = [(); 2].map(|()| RunRecord::begin(invocation()).expect("random octets"));
        assert_eq!(first.run_id.len(), 32);
        assert_ne!(first.run_id, second.run_id);
        assert_eq!(first.machine.id, second.machine.id);
        assert_eq!((first.date.as_str(), first.seed), ("2026-03-01T12:00:00Z", 3));
    }

    #[test]
    fn a_record_without_the_newer_fields_is_read() {
        let old = r#"{"date":"d","command":"c","seed":1,"machine":{"cpu":"A","cpus":2,"memory_kib":1,
            "system":"s","nonesuch":"0.1.0","rustc":"r","optimised":true}}"#;
        let record: RunRecord = serde_json::from_str(old).expect("a record");
        assert_eq!((record.run_id.as_str(), record.machine.id.as_str()), ("", ""));
        assert_eq!((record.machine.cpus, record.machine.cpu_family), (2, None));
    }

    #[test]
    fn each_field_of_a_record_is_a_column_of_the_table_of_runs() {
        let record = RunRecord::begin(Invocation { seed: u64::MAX, ..invocation() }).expect("random octets");
        let table = runs(&[&record, &sample("r", "m")]).expect("fitting rows");
        let fields = serde_json::to_value(&record).expect("JSON");
        let names = |value: &Value| -> Vec<String> {
            value.as_object().expect("an object").keys().cloned().collect()
        };
        let columns: Vec<&str> = table.columns().iter().map(|column| column.name.as_str()).collect();
        for name in [names(&fields), names(&fields["machine"])].concat() {
            let name = if name == "id" { MACHINE_ID } else { name.as_str() };
            assert!(name == "machine" || columns.contains(&name), "{name}");
        }
        let of = |row: usize, name: &str| {
            let place = columns.iter().position(|column| *column == name).expect("a column");
            table.rows()[row][place].clone()
        };
        assert_eq!((of(1, RUN_ID), of(1, MACHINE_ID)), ("r".into(), "m".into()));
        assert_eq!(
            (of(1, "peers"), of(1, "cpu_flags")),
            ("openssl: OpenSSL 3.0".into(), "avx2 sha_ni".into())
        );
        assert_eq!((of(0, "seed"), of(1, "optimised")), (u64::MAX.to_string().into(), 1.into()));
        assert!(of(1, "cpu_family").is_null() && of(1, "governor").is_null());
    }
}
