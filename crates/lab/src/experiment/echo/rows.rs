//! The table of raw data: a row for each load.

use super::parameters::Kind;
use crate::experiment::data::{DataColumn, DataTable, Kind as Cells, Value};
use crate::experiment::results::UnreadableColumn;

/// The server that makes answers, as the data have it.
pub(super) const SERVER: &str = "nonesuch";
/// The server that makes none.
pub(super) const ECHO: &str = "echo";

/// What was loaded: all that the rows of one line share.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Subject {
    /// [`SERVER`] or [`ECHO`].
    pub(super) server: String,
    /// The zone's mechanism; for an echo server, that of the answers whose size it has. Empty for a size of its own.
    pub(super) denial: String,
    /// Which queries; empty as above.
    pub(super) queries: String,
    pub(super) workers: u16,
}

impl Subject {
    pub(super) fn new(server: &str, of: Option<(&str, Kind)>, workers: u16) -> Self {
        let (denial, queries) = of.map_or(("", ""), |(denial, kind)| (denial, kind.name()));
        let [server, denial, queries] = [server, denial, queries].map(str::to_owned);
        Self { server, denial, queries, workers }
    }

    /// Whether `self` is an echo server with answers of the size that `other` has.
    pub(super) fn is_floor_of(&self, other: &Self) -> bool {
        self.server == ECHO
            && other.server == SERVER
            && (&self.denial, &self.queries, self.workers) == (&other.denial, &other.queries, other.workers)
    }
}

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Row {
    pub(super) round: u32,
    pub(super) subject: Subject,
    pub(super) query_octets: f64,
    pub(super) response_octets: f64,
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) seconds: f64,
    pub(super) user_us: Option<f64>,
    pub(super) system_us: Option<f64>,
    pub(super) load_us: Option<f64>,
}

impl Row {
    /// CPU time of the server for each answer, µs.
    pub(super) fn cpu_us(&self) -> Option<f64> {
        Some(self.user_us? + self.system_us?)
    }

    /// In the order of [`columns`].
    pub(super) fn cells(&self) -> Vec<Value> {
        vec![
            Value::Integer(i64::from(self.round)),
            Value::text(&self.subject.server),
            Value::text(&self.subject.denial),
            Value::text(&self.subject.queries),
            Value::Integer(i64::from(self.subject.workers)),
            Value::Number(self.query_octets),
            Value::Number(self.response_octets),
            Value::count(self.sent),
            Value::count(self.received),
            Value::Number(self.seconds),
            Value::number(self.user_us),
            Value::number(self.system_us),
            Value::number(self.load_us),
        ]
    }
}

/// The columns of the data.
pub(super) fn columns() -> Vec<DataColumn> {
    let column = DataColumn::new;
    vec![
        column("round", Cells::Integer, "Number of the round, from 0"),
        column("server", Cells::Text, "nonesuch: `nonesuch serve`; echo: a server that sends queries back"),
        column(
            "denial",
            Cells::Text,
            "Denial mechanism of the zone; for echo, of the answers whose mean size it sends; missing for another size",
        ),
        column("queries", Cells::Text, "existing or denied: which names were asked for; for echo as denial"),
        column("workers", Cells::Integer, "Threads of the server"),
        column("query_octets", Cells::Number, "Mean size of a query, octets of DNS message"),
        column("response_octets", Cells::Number, "Mean size of an answer, octets of DNS message"),
        column("sent", Cells::Integer, "Queries sent"),
        column("received", Cells::Integer, "Answers received"),
        column("seconds", Cells::Number, "From the first query to the last answer, s"),
        column("user_us", Cells::Number, "CPU time of the server in the program for each answer, µs"),
        column("system_us", Cells::Number, "CPU time of the server in the kernel for each answer, µs"),
        column("load_us", Cells::Number, "CPU time of the load generator for each query, µs"),
    ]
}

/// All rows of the data.
pub(super) fn rows(data: &DataTable) -> Result<Vec<Row>, UnreadableColumn> {
    let place = |wanted: &DataColumn| {
        let place = data.place(&wanted.name).filter(|place| data.columns()[*place].kind == wanted.kind);
        place.ok_or_else(|| UnreadableColumn(wanted.name.clone()))
    };
    let places: Vec<usize> = columns().iter().map(place).collect::<Result<_, _>>()?;
    let cells = |row: &Vec<Value>| -> Option<Row> {
        read(&places.iter().filter_map(|place| row.get(*place).cloned()).collect::<Vec<_>>())
    };
    Ok(data.rows().iter().filter_map(cells).collect())
}

fn read(cells: &[Value]) -> Option<Row> {
    let [
        round,
        server,
        denial,
        queries,
        workers,
        query,
        response,
        sent,
        received,
        seconds,
        user,
        system,
        load,
    ] = cells
    else {
        return None;
    };
    let text = |cell: &Value| cell.as_text().unwrap_or_default().to_owned();
    let count = |cell: &Value| u64::try_from(cell.as_integer()?).ok();
    Some(Row {
        round: u32::try_from(round.as_integer()?).ok()?,
        subject: Subject {
            server: text(server),
            denial: text(denial),
            queries: text(queries),
            workers: u16::try_from(workers.as_integer()?).ok()?,
        },
        query_octets: query.as_number()?,
        response_octets: response.as_number()?,
        sent: count(sent)?,
        received: count(received)?,
        seconds: seconds.as_number()?,
        user_us: user.as_number(),
        system_us: system.as_number(),
        load_us: load.as_number(),
    })
}
