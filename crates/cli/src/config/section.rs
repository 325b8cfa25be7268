//! TOML tables, and the problems in them. The reader reports all problems in one pass, each with
//! its location.

use super::problem::{ConfigLocation, Document, Problem, Problems, sort_problems};
use super::sources::{FileRole, NamedFile};
use super::value_error::ValueError;
use nonesuch_proto::Name;
use std::cell::{Ref, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Maximum number of characters of a value in messages.
const MAX_VALUE_CHARACTERS: usize = 60;

/// The results of reading the files of a configuration, other than the values: problems, warnings
/// and named files. The readers of values share it and add to it.
#[derive(Default)]
pub(super) struct Diagnostics {
    /// The main file.
    pub(super) main: PathBuf,
    /// Names of the keys outside tables and of the tables that the main file may contain.
    pub(super) top_level_keys: BTreeSet<&'static str>,
    problems: RefCell<Vec<Problem>>,
    warnings: RefCell<Vec<Problem>>,
    files: RefCell<Vec<NamedFile>>,
    /// Names of the TSIG keys in access lists and server lists.
    used_tsig_names: RefCell<BTreeSet<Name>>,
}

impl Diagnostics {
    /// Diagnostics for the main file at `path`. It may contain the keys and tables in
    /// `top_level_keys`.
    pub(super) fn new(path: &Path, top_level_keys: BTreeSet<&'static str>) -> Self {
        Self { main: path.to_path_buf(), top_level_keys, ..Self::default() }
    }

    pub(super) fn report_fault(&self, location: &ConfigLocation, message: impl Into<String>) {
        self.problems.borrow_mut().push(location.problem(message));
    }

    pub(super) fn warn(&self, location: &ConfigLocation, message: impl Into<String>) {
        self.warnings.borrow_mut().push(location.problem(message));
    }

    /// Records a file or directory that is named at `location`.
    pub(super) fn record_file(&self, location: ConfigLocation, path: &Path, role: FileRole) {
        self.files.borrow_mut().push(NamedFile { path: path.to_path_buf(), role, location });
    }

    /// The files recorded so far.
    pub(super) fn files(&self) -> Ref<'_, Vec<NamedFile>> {
        self.files.borrow()
    }

    /// Whether an access list or a server list names this TSIG key.
    pub(super) fn uses_tsig_key(&self, name: &Name) -> bool {
        self.used_tsig_names.borrow().contains(name)
    }

    /// Returns warnings and named files, or the problems if there are any.
    pub(super) fn finish(self) -> Result<(Vec<Problem>, Vec<NamedFile>), Problems> {
        let (mut problems, mut warnings) = (self.problems.into_inner(), self.warnings.into_inner());
        sort_problems(&mut problems);
        sort_problems(&mut warnings);
        if problems.is_empty() { Ok((warnings, self.files.into_inner())) } else { Err(Problems(problems)) }
    }
}

/// A table in one of the files.
#[derive(Clone)]
pub(super) struct Section<'t> {
    pub(super) document: &'t Document,
    pub(super) diagnostics: &'t Diagnostics,
    /// Names of the tables from the root to this table, separated by dots; empty for the root.
    pub(super) name: String,
    pub(super) table: &'t DeTable<'t>,
    /// Offset of the table in the text of the file.
    start: usize,
    /// Whether faults and warnings are not reported, because they have already been reported.
    pub(super) is_silent: bool,
}

/// A table with a name that the user chose.
pub(super) struct NamedTable<'t> {
    pub(super) name: String,
    /// Offset of the name in the text of the file.
    start: usize,
    pub(super) section: Section<'t>,
}

impl NamedTable<'_> {
    /// Location of the name, with `key` for messages.
    pub(super) fn location(&self, key: impl Into<String>) -> ConfigLocation {
        self.section.document.location(self.start, key)
    }

    pub(super) fn report_fault(&self, key: impl Into<String>, message: impl Into<String>) {
        self.section.diagnostics.report_fault(&self.location(key), message);
    }
}

impl<'t> Section<'t> {
    /// The root table of a file.
    pub(super) fn root(
        document: &'t Document,
        diagnostics: &'t Diagnostics,
        table: &'t Spanned<DeTable<'t>>,
    ) -> Self {
        Self {
            document,
            diagnostics,
            name: String::new(),
            table: table.get_ref(),
            start: 0,
            is_silent: false,
        }
    }

    /// The same table, whose values are read again without reports.
    pub(super) fn silent(&self) -> Self {
        Self { is_silent: true, ..self.clone() }
    }

    /// The full name of a key of this table.
    pub(super) fn path_of(&self, key: &str) -> String {
        if self.name.is_empty() { quoted(key) } else { format!("{}.{}", self.name, quoted(key)) }
    }

    /// Location of the value of `key`, or of the table if the key is missing.
    pub(super) fn location(&self, key: &str) -> ConfigLocation {
        let start = self.table.get(key).map_or(self.start, |value| value.span().start);
        self.document.location(start, self.path_of(key))
    }

    /// Reports a fault of the value of `key`, or of the table if the key is missing.
    pub(super) fn report_fault(&self, key: &str, message: impl Into<String>) {
        if !self.is_silent {
            self.diagnostics.report_fault(&self.location(key), message);
        }
    }

    /// Like [`report_fault`](Self::report_fault), for problems that do not prevent a server from running.
    pub(super) fn warn(&self, key: &str, message: impl Into<String>) {
        if !self.is_silent {
            self.diagnostics.warn(&self.location(key), message);
        }
    }

    /// Records a file or directory that the value of `key` names, or that is derived from it.
    pub(super) fn record_file(&self, key: &str, path: &Path, role: FileRole) {
        self.diagnostics.record_file(self.location(key), path, role);
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Whether the value of `key` is a list that is not empty.
    pub(super) fn has_items(&self, key: &str) -> bool {
        let list = self.table.get(key).and_then(|value| value.get_ref().as_array());
        list.is_some_and(|items| !items.is_empty())
    }

    /// Locations of the values of all keys, by key.
    pub(super) fn key_locations(&self) -> BTreeMap<String, ConfigLocation> {
        let keys = self.table.keys().map(|key| (key.get_ref().to_string(), self.location(key.get_ref())));
        keys.collect()
    }

    /// The value of `key`, if it is present.
    pub(super) fn item<'s>(&'s self, key: &'s str) -> Option<Item<'s, 't>> {
        Some(Item { section: self, key, value: self.table.get(key)? })
    }

    /// The texts in the value of `key`: the value itself, or the values of a table.
    pub(super) fn texts(&self, key: &str) -> Vec<&'t str> {
        match self.table.get(key).map(Spanned::get_ref) {
            Some(DeValue::String(text)) => vec![text.as_ref()],
            Some(DeValue::Table(table)) => {
                table.values().filter_map(|value| value.get_ref().as_str()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The table that is the value of `key`. Reports a fault if the value is not a table.
    pub(super) fn subtable(&self, key: &str) -> Option<Self> {
        let item = self.item(key)?;
        item.table().map_err(|error| item.report_fault(&error)).ok()
    }

    /// The subtables of the table `key`, which have names that the user chooses, in the order of
    /// the text.
    pub(super) fn named_subtables(&self, key: &str) -> Vec<NamedTable<'t>> {
        let Some(outer) = self.subtable(key) else { return Vec::new() };
        let tables = outer.table.keys().filter_map(|name| {
            let section = outer.subtable(name.get_ref())?;
            Some(NamedTable { name: name.get_ref().clone().into_owned(), start: name.span().start, section })
        });
        let mut tables: Vec<_> = tables.collect();
        tables.sort_by_key(|table| table.start);
        tables
    }
}

/// A value or an item of a list, and its key.
#[derive(Clone, Copy)]
pub(super) struct Item<'s, 't> {
    pub(super) section: &'s Section<'t>,
    pub(super) key: &'s str,
    value: &'t Spanned<DeValue<'t>>,
}

impl<'t> Item<'_, 't> {
    pub(super) fn value(&self) -> &'t DeValue<'t> {
        self.value.get_ref()
    }

    /// The value as it appears in messages. A long string is shortened.
    pub(super) fn display_text(&self) -> String {
        match self.value() {
            DeValue::String(text) if text.chars().count() <= MAX_VALUE_CHARACTERS => format!("{text:?}"),
            DeValue::String(text) => {
                format!("{:?}…", text.chars().take(MAX_VALUE_CHARACTERS).collect::<String>())
            }
            DeValue::Integer(number) => number.as_str().to_owned(),
            DeValue::Float(number) => number.as_str().to_owned(),
            DeValue::Boolean(is_set) => is_set.to_string(),
            DeValue::Datetime(time) => time.to_string(),
            DeValue::Array(_) => "a list".to_owned(),
            DeValue::Table(_) => "a table".to_owned(),
        }
    }

    pub(super) fn location(&self) -> ConfigLocation {
        self.section.document.location(self.value.span().start, self.section.path_of(self.key))
    }

    pub(super) fn report_fault(&self, error: &ValueError) {
        if !self.section.is_silent {
            self.section.diagnostics.report_fault(&self.location(), error.to_string());
        }
    }

    /// Reports the warning that `message` returns, if any.
    pub(super) fn warn(&self, message: impl FnOnce() -> Option<String>) {
        if !self.section.is_silent
            && let Some(message) = message()
        {
            self.section.diagnostics.warn(&self.location(), message);
        }
    }

    /// Records the file or directory that this value names.
    pub(super) fn record_file(&self, path: &Path, role: FileRole) {
        self.section.diagnostics.record_file(self.location(), path, role);
    }

    /// Records that this value names TSIG keys.
    pub(super) fn record_tsig_keys<'k>(&self, names: impl Iterator<Item = &'k Name>) {
        self.section.diagnostics.used_tsig_names.borrow_mut().extend(names.cloned());
    }

    /// The value as a table.
    pub(super) fn table(&self) -> Result<Section<'t>, ValueError> {
        let (name, start) = (self.section.path_of(self.key), self.value.span().start);
        match self.value().as_table() {
            Some(table) => Ok(Section { name, table, start, ..self.section.clone() }),
            None => Err(ValueError::NotATable { found: self.display_text(), name }),
        }
    }

    /// The items of a list; `None` if the value is not a list.
    pub(super) fn items(&self) -> Option<impl Iterator<Item = Self>> {
        let (section, key) = (self.section, self.key);
        Some(self.value().as_array()?.iter().map(move |value| Self { section, key, value }))
    }
}

/// A key in TOML syntax: with quotation marks if it needs them.
pub(super) fn quoted(key: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !key.is_empty() && key.bytes().all(is_bare) { key.to_owned() } else { format!("{key:?}") }
}
