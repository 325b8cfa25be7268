//! The table of raw data: a row for each job that was measured.

use crate::experiment::data::{DataColumn, DataTable, Kind, Value};
use crate::experiment::results::UnreadableColumn;
use serde::{Deserialize, Serialize};

/// What a job did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Job {
    /// Signed a whole zone: from zone file to zone file.
    Sign,
    /// Verified a whole zone.
    Verify,
    /// Signed a changed zone anew, with what could be kept of the signed one.
    Resign,
    /// The same from a compiled signed zone and a set of changes.
    ResignCompiled,
    /// Loaded a zone to serve it.
    Serve,
    /// Packed a zone into the messages of a transfer.
    Transfer,
}

impl Job {
    const ALL: [Self; 6] =
        [Self::Sign, Self::Verify, Self::Resign, Self::ResignCompiled, Self::Serve, Self::Transfer];

    /// The name, as the data have it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Sign => "sign",
            Self::Verify => "verify",
            Self::Resign => "resign",
            Self::ResignCompiled => "resign-compiled",
            Self::Serve => "serve",
            Self::Transfer => "transfer",
        }
    }

    fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|job| job.name() == name)
    }
}

/// A row. Texts are empty, and figures missing, where the job has no such thing.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) run: u32,
    pub(super) job: Job,
    pub(super) zone: String,
    pub(super) level: String,
    pub(super) algorithm: String,
    pub(super) denial: String,
    pub(super) signatures: Option<u64>,
    pub(super) records: Option<u64>,
    pub(super) octets: Option<u64>,
    pub(super) messages: Option<u64>,
    pub(super) wall_seconds: Option<f64>,
    pub(super) user_seconds: Option<f64>,
    pub(super) system_seconds: Option<f64>,
    pub(super) memory_kib: Option<u64>,
}

impl Row {
    /// CPU time, s.
    pub(super) fn cpu_seconds(&self) -> Option<f64> {
        Some(self.user_seconds? + self.system_seconds?)
    }

    /// In the order of [`columns`].
    pub(super) fn cells(&self) -> Vec<Value> {
        let count = |count: Option<u64>| count.map_or(Value::Missing, Value::count);
        vec![
            Value::Integer(i64::from(self.run)),
            Value::text(self.job.name()),
            Value::text(&self.zone),
            Value::text(&self.level),
            Value::text(&self.algorithm),
            Value::text(&self.denial),
            count(self.signatures),
            count(self.records),
            count(self.octets),
            count(self.messages),
            Value::number(self.wall_seconds),
            Value::number(self.user_seconds),
            Value::number(self.system_seconds),
            count(self.memory_kib),
        ]
    }
}

/// The columns of the data.
pub(super) fn columns() -> Vec<DataColumn> {
    let column = DataColumn::new;
    vec![
        column("run", Kind::Integer, "Number of the run, from 0"),
        column(
            "job",
            Kind::Text,
            "sign: from zone file to zone file; verify: all of a signed zone file; resign: a changed zone file, with what \
             could be kept of the signed one; resign-compiled: the same from the compiled signed zone and a set of changes, \
             to a compiled zone; serve: load a zone to serve it; transfer: pack it into messages",
        ),
        column("zone", Kind::Text, "The zone: kind and names of a generated one, else its file"),
        column("level", Kind::Text, "Instruction level of the program; missing where it does not matter"),
        column(
            "algorithm",
            Kind::Text,
            "Mnemonic of the algorithm, for RSA with the length of the keys; missing for the unsigned zone",
        ),
        column("denial", Kind::Text, "Denial mechanism; missing for the unsigned zone"),
        column("signatures", Kind::Integer, "Signatures that were made or verified"),
        column("records", Kind::Integer, "Records of the outcome"),
        column(
            "octets",
            Kind::Integer,
            "Octets of the zone file that was made, or of the messages of the transfer",
        ),
        column("messages", Kind::Integer, "Messages of the transfer"),
        column(
            "wall_seconds",
            Kind::Number,
            "From the start of the process to its end, or to its being ready to serve, s",
        ),
        column("user_seconds", Kind::Number, "CPU time of all its threads in the program, s"),
        column("system_seconds", Kind::Number, "CPU time in the kernel on its behalf, s"),
        column(
            "memory_kib",
            Kind::Integer,
            "sign, verify, resign, resign-compiled: the most that was resident; serve: proportional set size once ready, KiB",
        ),
    ]
}

/// All rows of the data. Those of a job that this version does not know are passed over.
pub(super) fn rows(data: &DataTable) -> Result<Vec<Row>, UnreadableColumn> {
    let place = |wanted: &DataColumn| {
        let place = data.place(&wanted.name).filter(|place| data.columns()[*place].kind == wanted.kind);
        place.ok_or_else(|| UnreadableColumn(wanted.name.clone()))
    };
    let places: Vec<usize> = columns().iter().map(place).collect::<Result<_, _>>()?;
    let rows = data.rows().iter();
    Ok(rows
        .filter_map(|row| read(&places.iter().filter_map(|place| row.get(*place)).collect::<Vec<_>>()))
        .collect())
}

fn read(cells: &[&Value]) -> Option<Row> {
    let text = |place: usize| cells.get(place).and_then(|cell| cell.as_text()).unwrap_or_default().to_owned();
    let count = |place: usize| cells.get(place)?.as_integer().and_then(|count| u64::try_from(count).ok());
    let number = |place: usize| cells.get(place)?.as_number().filter(|number| number.is_finite());
    Some(Row {
        run: u32::try_from(count(0)?).ok()?,
        job: Job::of(&text(1))?,
        zone: text(2),
        level: text(3),
        algorithm: text(4),
        denial: text(5),
        signatures: count(6),
        records: count(7),
        octets: count(8),
        messages: count(9),
        wall_seconds: number(10),
        user_seconds: number(11),
        system_seconds: number(12),
        memory_kib: count(13),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read_back_as_they_were_written() {
        let row = |job: Job| Row {
            run: 3,
            job,
            zone: "tld:10".to_owned(),
            level: "native".to_owned(),
            algorithm: String::new(),
            denial: "nsec".to_owned(),
            signatures: Some(5),
            records: None,
            octets: Some(7),
            messages: None,
            wall_seconds: Some(0.5),
            user_seconds: Some(0.25),
            system_seconds: Some(0.125),
            memory_kib: None,
        };
        let mut data = DataTable::new(columns());
        let written: Vec<Row> = Job::ALL.into_iter().map(row).collect();
        written.iter().for_each(|row| data.push(row.cells()).expect("a row"));
        assert_eq!(rows(&data).expect("rows"), written);
        assert_eq!(written[0].cpu_seconds(), Some(0.375));
        let mut short = columns();
        short.pop();
        assert_eq!(rows(&DataTable::new(short)), Err(UnreadableColumn("memory_kib".to_owned())));
    }
}
