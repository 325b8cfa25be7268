//! Runs the queries with DataFusion, in bounded memory: beyond the limit, its operators write temporary
//! files.

use crate::check::{Skipped, SnapshotKey};
use crate::error::AdoptionError;
use crate::output::Output;
use crate::queries::{COUNTS, DUPLICATES, Query};
use crate::snapshot::{SCHEMA, properties};
use crate::table::Table;
use datafusion::arrow::array::{ArrayRef, Date32Array, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::common::JoinType;
use datafusion::datasource::TableProvider;
use datafusion::datasource::file_format::parquet::ParquetFormat;
use datafusion::datasource::listing::{ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl};
use datafusion::error::DataFusionError;
use datafusion::execution::disk_manager::{DiskManagerBuilder, DiskManagerMode};
use datafusion::execution::memory_pool::FairSpillPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::prelude::{DataFrame, SessionConfig, SessionContext};
use futures::StreamExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};
use url::Url;

/// Name of the table of all snapshots.
const SNAPSHOTS: &str = "snapshots";
/// Part of the disk that temporary files may use, in bytes: 1 TiB. The system ends the query before if the
/// disk is full.
const MAX_SPILL: u64 = 1 << 40;

/// Limits of the engine.
pub(crate) struct Limits<'a> {
    /// Memory of all queries in bytes.
    pub(crate) memory: usize,
    pub(crate) threads: usize,
    /// Directory of temporary files; `None`: that of the system.
    pub(crate) spill: Option<&'a Path>,
}

/// An engine with its tables.
pub(crate) struct Engine {
    context: SessionContext,
    runtime: Runtime,
}

impl Engine {
    /// Creates an engine without tables.
    pub(crate) fn new(limits: &Limits<'_>) -> Result<Self, AdoptionError> {
        let mode = limits.spill.map_or(DiskManagerMode::OsTmpDirectory, |directory| {
            DiskManagerMode::Directories(vec![directory.to_owned()])
        });
        let disk = DiskManagerBuilder::default().with_mode(mode).with_max_temp_directory_size(MAX_SPILL);
        let environment = RuntimeEnvBuilder::new()
            .with_memory_pool(Arc::new(FairSpillPool::new(limits.memory)))
            .with_disk_manager_builder(disk)
            .build_arc()
            .map_err(|source| AdoptionError::Query { query: "start", source })?;
        // Statistics of files would help only queries with joins over all rows.
        let config =
            SessionConfig::new().with_target_partitions(limits.threads).with_collect_statistics(false);
        let runtime = Builder::new_multi_thread().worker_threads(limits.threads).enable_all().build();
        Ok(Self {
            context: SessionContext::new_with_config_rt(config, environment),
            runtime: runtime.map_err(AdoptionError::Threads)?,
        })
    }

    /// Registers the snapshots of these files, without skipped snapshots.
    pub(crate) fn register_snapshots(
        &self,
        files: &[PathBuf],
        skipped: &[Skipped],
    ) -> Result<(), AdoptionError> {
        let table = listing(files, Arc::clone(&SCHEMA))?;
        self.register(SNAPSHOTS, || {
            let rows = self.context.read_table(table)?;
            if skipped.is_empty() {
                return Ok(rows.into_view());
            }
            let skipped = self.context.read_batch(skipped_batch(skipped)?)?;
            let [left, right] = [["source", "date"], SKIPPED_COLUMNS];
            Ok(rows.join(skipped, JoinType::LeftAnti, &left, &right, None)?.into_view())
        })
    }

    /// Registers a query as a view of its name.
    pub(crate) fn register_view(&self, query: Query) -> Result<(), AdoptionError> {
        self.register(query.name, || Ok(self.plan(query)?.into_view()))
    }

    fn register(
        &self,
        name: &'static str,
        table: impl FnOnce() -> Result<Arc<dyn TableProvider>, DataFusionError>,
    ) -> Result<(), AdoptionError> {
        let register = || {
            let table = table()?;
            self.context.deregister_table(name)?;
            self.context.register_table(name, table)
        };
        register().map(drop).map_err(|source| AdoptionError::Query { query: name, source })
    }

    fn plan(&self, query: Query) -> Result<DataFrame, DataFusionError> {
        self.runtime.block_on(self.context.sql(query.sql))
    }

    /// Runs a query and returns its result, which fits into memory.
    pub(crate) fn run(&self, query: Query) -> Result<Table, AdoptionError> {
        let failed = |source| AdoptionError::Query { query: query.name, source };
        let frame = self.plan(query).map_err(failed)?;
        let schema = Arc::clone(frame.schema().inner());
        let batches = self.runtime.block_on(frame.collect()).map_err(failed)?;
        Table::new(query.name, &schema, &batches).map_err(|source| failed(source.into()))
    }

    /// Counts all rows, stores the result as a file, and registers it as the table `counts`.
    pub(crate) fn store_counts(&self, path: &Path) -> Result<(), AdoptionError> {
        let failed = |source| AdoptionError::Query { query: COUNTS.name, source };
        let frame = self.plan(COUNTS).map_err(failed)?;
        let schema = plain(frame.schema().inner());
        let output = Output::create(path)?;
        let unwritten = |source| AdoptionError::WriteParquet { path: path.to_owned(), source };
        let mut writer = ArrowWriter::try_new(output.writer()?, Arc::clone(&schema), Some(properties()))
            .map_err(unwritten)?;
        self.runtime.block_on(async {
            let mut stream = frame.execute_stream().await.map_err(failed)?;
            while let Some(batch) = stream.next().await {
                let batch = crate::table::cast(&batch.map_err(failed)?, &schema);
                writer.write(&batch.map_err(|source| failed(source.into()))?).map_err(unwritten)?;
            }
            Ok::<(), AdoptionError>(())
        })?;
        writer.close().map_err(unwritten)?;
        output.commit()?;
        let table = listing(&[path.to_owned()], schema)?;
        self.register(COUNTS.name, || Ok(table))
    }

    /// Searches all snapshots for repeated domains. Returns the snapshot, the number of these domains, and
    /// one of them.
    pub(crate) fn repeated(&self) -> Result<Vec<(SnapshotKey, i64, String)>, AdoptionError> {
        let [query] = DUPLICATES;
        let table = self.run(query)?;
        let snapshot = table.rows().map(|row| {
            (
                (row.text("source").to_owned(), row.day("date")),
                row.integer("domains"),
                row.text("example").to_owned(),
            )
        });
        Ok(snapshot.collect())
    }
}

/// Columns of the table of skipped snapshots.
const SKIPPED_COLUMNS: [&str; 2] = ["skipped_source", "skipped_date"];

fn skipped_batch(skipped: &[Skipped]) -> Result<RecordBatch, ArrowError> {
    let sources = StringArray::from_iter_values(skipped.iter().map(|snapshot| &snapshot.source));
    let days = Date32Array::from_iter_values(skipped.iter().map(|snapshot| snapshot.day));
    let [source, day] = SKIPPED_COLUMNS;
    let columns: [(&str, ArrayRef); 2] = [(source, Arc::new(sources)), (day, Arc::new(days))];
    RecordBatch::try_from_iter(columns)
}

/// Returns the files as one table.
fn listing(files: &[PathBuf], schema: SchemaRef) -> Result<Arc<dyn TableProvider>, AdoptionError> {
    let urls = files.iter().map(|path| file_url(path)).collect::<Result<Vec<_>, _>>()?;
    let options = ListingOptions::new(Arc::new(ParquetFormat::default())).with_file_extension("");
    let config =
        ListingTableConfig::new_with_multi_paths(urls).with_listing_options(options).with_schema(schema);
    let table = ListingTable::try_new(config);
    Ok(Arc::new(table.map_err(|source| AdoptionError::Query { query: SNAPSHOTS, source })?))
}

fn file_url(path: &Path) -> Result<ListingTableUrl, AdoptionError> {
    let absolute =
        path.canonicalize().map_err(|source| AdoptionError::Read { path: path.to_owned(), source })?;
    let url = Url::from_file_path(absolute).map_err(|()| AdoptionError::Path(path.to_owned()))?;
    ListingTableUrl::try_new(url, None).map_err(|source| AdoptionError::Query { query: SNAPSHOTS, source })
}

/// Returns the schema with types that every reader of Parquet knows.
fn plain(schema: &SchemaRef) -> SchemaRef {
    let kind = |kind: &DataType| match kind {
        DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
        other => other.clone(),
    };
    let fields = schema.fields().iter().map(|field| Field::new(field.name(), kind(field.data_type()), true));
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
