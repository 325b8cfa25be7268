//! Declarations of configuration keys. A table of the configuration is one list of rows. Each key
//! has one row with its kind (unit and range), its default, and the field that it sets. Rows of
//! text between them explain the keys.
//!
//! The reader with its messages, the defaults, the warnings, the manual page and
//! `etc/nonesuch.toml` are generated from the rows. To add a key, add a row and a field. The rows
//! are functions and not attributes of a serde type, because serde stops at the first fault and
//! knows neither the directory of a file nor the location of a value.

use super::problem::Document;
use super::section::{Diagnostics, Item, Section};
use super::value_error::ValueError;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::Path;
use toml::de::DeTable;

/// Maximum edit distance between an unknown key and the suggested key.
const SUGGESTION_DISTANCE: usize = 3;
/// Maximum length of an unknown key for which a suggestion is computed.
const MAX_SUGGESTION_LENGTH: usize = 64;
/// Tables of the configuration. The last three contain tables with names that the operator chooses.
pub(super) const TABLES: [&str; 7] = ["log", "dnstap", "limits", "cookies", "key", "template", "zone"];
/// Tables that included files may contain.
pub(super) const INCLUDED_TABLES: [&str; 3] = ["key", "template", "zone"];

/// Reads a value into the field of a key.
type Read<S> = Box<dyn Fn(Item<'_, '_>, &mut S) -> Result<(), ValueError>>;

/// One row of a table of keys that set fields of an `S`.
pub(super) enum Row<S> {
    /// Lines of `etc/nonesuch.toml`.
    Text(&'static str),
    Key(Key<S>),
    /// A key of earlier versions, and the message about it.
    Removed(&'static str, &'static str),
}

pub(super) struct Key<S> {
    name: &'static str,
    documented: DocumentedValue,
    read: Read<S>,
}

/// The default of a key, and its example in the reference (`etc/nonesuch.toml`). Without both, the
/// reference does not show the key.
#[derive(Default)]
pub(super) struct DocumentedValue {
    /// In TOML syntax.
    default: Option<String>,
    /// In TOML syntax. Without an example, the reference shows the default.
    example: Option<String>,
}

/// Documents a key with the default `value`. A string may be given without quotation marks.
pub(super) fn default(value: impl Display) -> DocumentedValue {
    DocumentedValue { default: Some(as_toml(&value.to_string())), example: None }
}

/// Documents a key without a default. The reference shows `value` as an example. A string may be
/// given without quotation marks.
pub(super) fn example(value: impl Display) -> DocumentedValue {
    DocumentedValue { default: None, example: Some(as_toml(&value.to_string())) }
}

/// For a key that has no default and that the reference does not show.
pub(super) fn hidden() -> DocumentedValue {
    DocumentedValue::default()
}

/// Adds quotation marks, unless the value is a list, a table, a number or a boolean.
fn as_toml(value: &str) -> String {
    let is_toml =
        value.starts_with(['[', '{']) || value.parse::<u64>().is_ok() || value.parse::<bool>().is_ok();
    if is_toml { value.to_owned() } else { format!("\"{value}\"") }
}

/// The key `name` with values of `kind`; `set` writes the value to its field.
pub(super) fn key<S: 'static, T: 'static>(
    name: &'static str,
    kind: impl Fn(Item<'_, '_>) -> Result<T, ValueError> + 'static,
    documented: DocumentedValue,
    set: fn(&mut S, T),
) -> Row<S> {
    let read = move |item: Item<'_, '_>, settings: &mut S| kind(item).map(|value| set(settings, value));
    Row::Key(Key { name, documented, read: Box::new(read) })
}

impl<S> Key<S> {
    /// The line in the reference; `None` for a key that is not shown.
    fn line(&self, is_example: bool) -> Option<String> {
        let DocumentedValue { default, example } = &self.documented;
        let value = example.as_ref().or(default.as_ref())?;
        let mark = if is_example || example.is_some() { "  # example" } else { "" };
        Some(format!("#{} = {value}{mark}\n", self.name))
    }
}

/// The keys of one table.
pub(super) struct Table<S> {
    pub(super) rows: Vec<Row<S>>,
    /// Names of the tables that the table may contain in addition to the keys.
    pub(super) tables: &'static [&'static str],
}

impl<S> Table<S> {
    pub(super) const fn new(rows: Vec<Row<S>>) -> Self {
        Self { rows, tables: &[] }
    }

    fn keys(&self) -> impl Iterator<Item = &Key<S>> {
        self.rows.iter().filter_map(|row| if let Row::Key(key) = row { Some(key) } else { None })
    }

    /// Names of all keys and tables.
    pub(super) fn names(&self) -> BTreeSet<&'static str> {
        self.keys().map(|key| key.name).chain(self.tables.iter().copied()).collect()
    }

    /// The text and keys in the form of `etc/nonesuch.toml`. With `is_example`, the lines of all
    /// keys are marked as examples, also those that show defaults.
    pub(super) fn reference(&self, is_example: bool) -> String {
        let lines = self.rows.iter().map(|row| match row {
            Row::Text(text) => format!("{text}\n"),
            Row::Key(key) => key.line(is_example).unwrap_or_default(),
            Row::Removed(..) => String::new(),
        });
        lines.collect()
    }

    /// Reads the keys that `wanted` selects into `settings`, and reports faults. Returns the names
    /// of the keys that are present and valid.
    pub(super) fn read(
        &self,
        section: &Section<'_>,
        settings: &mut S,
        wanted: impl Fn(&str) -> bool,
    ) -> BTreeSet<&'static str> {
        let read = |key: &&Key<S>| {
            let item = section.item(key.name).filter(|_| wanted(key.name));
            item.is_some_and(|item| {
                (key.read)(item, settings).map_err(|error| item.report_fault(&error)).is_ok()
            })
        };
        self.keys().filter(read).map(|key| key.name).collect()
    }

    /// The default settings.
    pub(super) fn defaults(&self) -> S
    where
        S: Default,
    {
        let lines = self
            .keys()
            .filter_map(|key| Some(format!("{} = {}\n", key.name, key.documented.default.as_ref()?)));
        let document = Document::new(0, Path::new(""), lines.collect::<String>().into());
        let (table, diagnostics) = (DeTable::parse_recoverable(document.text()).0, Diagnostics::default());
        let mut settings = S::default();
        self.read(&Section::root(&document, &diagnostics, &table), &mut settings, |_| true);
        settings
    }

    /// Reads the complete table: the defaults, and the values of `section`.
    pub(super) fn read_all(&self, section: &Section<'_>) -> S
    where
        S: Default,
    {
        let mut settings = self.defaults();
        self.read(section, &mut settings, |_| true);
        self.report_unknown(section);
        settings
    }

    /// Reports unknown and removed keys.
    pub(super) fn report_unknown(&self, section: &Section<'_>) {
        let removed = |name: &str| {
            self.rows.iter().find_map(|row| match row {
                Row::Removed(key, remedy) if *key == name => Some(*remedy),
                _ => None,
            })
        };
        report_unknown(section, &self.names(), removed);
    }
}

/// Reports the keys that are not in `known`. `removed` returns the message about a key of earlier
/// versions. For other keys, the report may suggest a similar key.
pub(super) fn report_unknown(
    section: &Section<'_>,
    known: &BTreeSet<&'static str>,
    removed: impl Fn(&str) -> Option<&'static str>,
) {
    for (key, value) in section.table.iter().filter(|(key, _)| !known.contains(key.get_ref().as_ref())) {
        let name = key.get_ref().as_ref();
        let location = section.document.location(key.span().start, section.path_of(name));
        let message = removed(name).map(str::to_owned).or_else(|| explain_included(section, name));
        let message = message.unwrap_or_else(|| {
            let suggestion = suggest(section, name, value.get_ref().is_table(), known);
            let suggestion = suggestion.map_or_else(|| ".".to_owned(), |text| format!("; {text}"));
            let known: Vec<&str> = known.iter().copied().collect();
            format!("unknown key{suggestion} Allowed: {}", known.join(", "))
        });
        section.diagnostics.report_fault(&location, message);
    }
}

/// The message about a key in an included file that only the main file may contain; `None` for
/// other keys.
fn explain_included(section: &Section<'_>, name: &str) -> Option<String> {
    let reason = match name {
        "include" => "an included file cannot include others",
        "version" => "the version applies to all files",
        _ => "this key applies to the whole server",
    };
    let belongs_in_main_file = section.document.is_included()
        && section.name.is_empty()
        && section.diagnostics.top_level_keys.contains(name);
    let main = section.diagnostics.main.display();
    belongs_in_main_file.then(|| {
        format!("{reason}: set it only in {main}; included files have key, template and zone tables")
    })
}

/// A suggestion for the unknown key `name`, as a sentence. `is_table` states whether its value is a
/// table.
fn suggest(section: &Section<'_>, name: &str, is_table: bool, known: &BTreeSet<&str>) -> Option<String> {
    if let Some(near) = nearest(name, known) {
        return Some(format!("did you mean {near}?"));
    }
    // A dot outside quotation marks starts a subtable.
    if let Some((table, outer)) = section.name.split_once('.').filter(|_| is_table) {
        let outer = outer.trim_matches('"');
        return Some(format!("write [{table}.\"{outer}.{name}\"], with the name in quotation marks."));
    }
    if section.name.starts_with("template.") && name == "template" {
        return Some("a template cannot use another template: copy its keys to this one.".to_owned());
    }
    let is_top_level_key = !section.document.is_included()
        && !section.name.is_empty()
        && section.diagnostics.top_level_keys.contains(name)
        && !TABLES.contains(&name);
    is_top_level_key.then(|| "it belongs to the top level: move it above the first line with [ ].".to_owned())
}

/// The name in `names` that is most similar to `name`; `None` if the two differ too much for a
/// typing error.
fn nearest<'n>(name: &str, names: &BTreeSet<&'n str>) -> Option<&'n str> {
    let names = names.iter().filter(|_| name.len() <= MAX_SUGGESTION_LENGTH);
    let distances = names.map(|other| (strsim::levenshtein(name, other), *other));
    let (distance, nearest) = distances.min_by_key(|(distance, _)| *distance)?;
    (distance <= SUGGESTION_DISTANCE.min(nearest.len() / 2)).then_some(nearest)
}

#[cfg(test)]
mod tests;
