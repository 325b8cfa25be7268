//! Reading tables of TOML key by key, so that every fault is said with its place, and all of them at once.

use super::model::Server;
use super::remotes::Own;
use super::sources::{NamedFile, Place, Role, Sources};
use nonesuch_proto::Name;
use std::cell::{Ref, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Letters by which a key may differ from the one that is suggested in its place.
const SUGGESTION_DISTANCE: usize = 3;

/// One fault of a configuration: where it stands, which key it is about, what is wrong and what is allowed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) path: PathBuf,
    /// From 1; 0 where the fault is of the file as a whole.
    pub(crate) line: usize,
    /// In characters, from 1.
    pub(crate) column: usize,
    /// With the names of its tables in front; empty where there is none.
    pub(crate) key: String,
    pub(crate) message: String,
}

impl Problem {
    /// A fault of the file as a whole, without words yet.
    pub(super) fn of_file(path: &Path) -> Self {
        let (key, message) = Default::default();
        Self { path: path.to_path_buf(), line: 0, column: 0, key, message }
    }
}

/// Line and column, from 1, of the octet at `start`.
pub(super) fn locate(text: &str, start: usize) -> (usize, usize) {
    let before = text.get(..start).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.path.display())?;
        if self.line > 0 {
            write!(f, "{}:{}:", self.line, self.column)?;
        }
        if !self.key.is_empty() {
            write!(f, " {}:", self.key)?;
        }
        write!(f, " {}", self.message)
    }
}

/// The text that is read, and what was found wrong with it.
pub(super) struct Context<'t> {
    path: &'t Path,
    text: &'t str,
    problems: RefCell<Vec<Problem>>,
    warnings: RefCell<Vec<Problem>>,
    /// Every key that was asked for; names that the user chooses stand as `*`.
    known: RefCell<BTreeSet<String>>,
    files: RefCell<Vec<NamedFile>>,
    /// Places of keys of no table.
    top: RefCell<BTreeMap<&'static str, Place>>,
    own: RefCell<Own>,
    /// Names of all TSIG keys, those that cannot be used among them.
    keys: RefCell<BTreeSet<Name>>,
}

impl<'t> Context<'t> {
    pub(super) fn new(path: &'t Path, text: &'t str) -> Self {
        let (problems, warnings, known, files, top) = Default::default();
        let (own, keys) = Default::default();
        Self { path, text, problems, warnings, known, files, top, own, keys }
    }

    /// The text.
    pub(super) const fn text(&self) -> &'t str {
        self.text
    }

    /// The file that the text is of.
    pub(super) const fn path(&self) -> &'t Path {
        self.path
    }

    /// The folder that paths in the text are relative to.
    pub(super) fn folder(&self) -> &Path {
        self.path.parent().unwrap_or_else(|| Path::new(""))
    }

    fn at(&self, span: Range<usize>, key: &str, message: String) -> Problem {
        let (line, column) = locate(self.text, span.start);
        Problem { path: self.path.to_path_buf(), line, column, key: key.to_owned(), message }
    }

    pub(super) fn fault(&self, span: Range<usize>, key: &str, message: impl Into<String>) {
        self.problems.borrow_mut().push(self.at(span, key, message.into()));
    }

    pub(super) fn warn(&self, span: Range<usize>, key: &str, message: impl Into<String>) {
        self.warnings.borrow_mut().push(self.at(span, key, message.into()));
    }

    /// The keys that were asked for.
    #[cfg(test)]
    pub(super) fn known(&self) -> BTreeSet<String> {
        self.known.borrow().clone()
    }

    /// Tells zones, which are read later, what this server answers at.
    pub(super) fn set_own(&self, server: &Server) {
        self.own.replace(Own::of(server));
    }

    pub(super) fn own(&self) -> Ref<'_, Own> {
        self.own.borrow()
    }

    /// Notes a TSIG key that is there, whether it can be used or not.
    pub(super) fn note_key(&self, name: &Name) {
        self.keys.borrow_mut().insert(name.clone());
    }

    pub(super) fn has_key(&self, name: &Name) -> bool {
        self.keys.borrow().contains(name)
    }

    /// The files that were noted so far.
    pub(super) fn files(&self) -> Ref<'_, Vec<NamedFile>> {
        self.files.borrow()
    }

    /// What was noted, for faults that are found later.
    pub(super) fn take_sources(&self) -> Sources {
        Sources::new(self.path, self.text, self.files.take(), self.top.take())
    }

    /// What was found, in the order of the text: problems, then warnings.
    pub(super) fn into_findings(self) -> (Vec<Problem>, Vec<Problem>) {
        let sorted = |problems: RefCell<Vec<Problem>>| {
            let mut problems = problems.into_inner();
            problems.sort_by_key(|problem| (problem.line, problem.column));
            problems.dedup();
            problems
        };
        (sorted(self.problems), sorted(self.warnings))
    }
}

/// A table of which each key is asked for by name; what nobody asked for is a fault.
pub(super) struct Section<'c, 't> {
    context: &'c Context<'t>,
    /// Names of the tables down to this one, dots between them.
    name: String,
    /// The same, `*` for names that the user chooses.
    pattern: String,
    table: &'c DeTable<'t>,
    span: Range<usize>,
    asked: RefCell<BTreeSet<&'static str>>,
}

impl<'c, 't> Section<'c, 't> {
    pub(super) fn root(context: &'c Context<'t>, table: &'c Spanned<DeTable<'t>>) -> Self {
        let (name, pattern) = (String::new(), String::new());
        Self { context, name, pattern, table: table.get_ref(), span: 0..0, asked: RefCell::default() }
    }

    pub(super) const fn context(&self) -> &'c Context<'t> {
        self.context
    }

    /// Where the table begins.
    pub(super) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    /// The full name of a key of this table.
    pub(super) fn path_of(&self, key: &str) -> String {
        join(&self.name, &quoted(key))
    }

    /// Reports a fault of the value of `key`, or of the table where the key is not there.
    pub(super) fn fault(&self, key: &str, message: impl Into<String>) {
        self.context.fault(self.place(key), &self.path_of(key), message);
    }

    /// As [`fault`](Self::fault), of what is odd only.
    pub(super) fn warn(&self, key: &str, message: impl Into<String>) {
        self.context.warn(self.place(key), &self.path_of(key), message);
    }

    /// Notes the file or folder that the value of `key` names, or that follows from it.
    pub(super) fn note_file(&self, key: &str, path: &Path, role: Role) {
        let place = Place { start: self.place(key).start, key: self.path_of(key) };
        self.context.files.borrow_mut().push(NamedFile { path: path.to_path_buf(), role, place });
    }

    /// Notes where keys of no table stand.
    pub(super) fn note_places(&self, keys: &[&'static str]) {
        for key in keys.iter().filter(|key| self.has(key)) {
            let place = Place { start: self.place(key).start, key: self.path_of(key) };
            self.context.top.borrow_mut().insert(key, place);
        }
    }

    fn place(&self, key: &str) -> Range<usize> {
        self.table.get(key).map_or_else(|| self.span(), |value| value.span())
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    /// Whether the value of `key` is a list with anything in it.
    pub(super) fn has_items(&self, key: &str) -> bool {
        let list = self.table.get(key).and_then(|value| value.get_ref().as_array());
        list.is_some_and(|items| !items.is_empty())
    }

    fn ask(&self, key: &'static str) -> Option<&'c Spanned<DeValue<'t>>> {
        self.asked.borrow_mut().insert(key);
        self.context.known.borrow_mut().insert(join(&self.pattern, key));
        self.table.get(key)
    }

    /// The value of `key`, read by `read`; `None` where it is not there, or is wrong, which is reported then.
    pub(super) fn take<T>(
        &self,
        key: &'static str,
        read: impl FnOnce(&DeValue<'t>) -> Result<T, String>,
    ) -> Option<T> {
        let value = self.ask(key)?;
        self.read(value, &self.path_of(key), read)
    }

    fn read<T>(
        &self,
        value: &Spanned<DeValue<'t>>,
        key: &str,
        read: impl FnOnce(&DeValue<'t>) -> Result<T, String>,
    ) -> Option<T> {
        let outcome = read(value.get_ref());
        outcome.map_err(|message| self.context.fault(value.span(), key, message)).ok()
    }

    /// The values of the list `key`, those that are right; `None` where there is no list.
    pub(super) fn take_list<T>(
        &self,
        key: &'static str,
        of_what: &str,
        read: impl Fn(&DeValue<'t>) -> Result<T, String>,
    ) -> Option<Vec<T>> {
        self.take_items(key, of_what, |item, path| self.read(item, path, &read))
    }

    /// As [`take_list`](Self::take_list); `read` reports faults itself.
    pub(super) fn take_items<T>(
        &self,
        key: &'static str,
        of_what: &str,
        read: impl Fn(&'c Spanned<DeValue<'t>>, &str) -> Option<T>,
    ) -> Option<Vec<T>> {
        let value = self.ask(key)?;
        let path = self.path_of(key);
        let Some(items) = value.get_ref().as_array() else {
            let message = format!("{} is no list: write a list of {of_what} in [ ]", shown(value.get_ref()));
            self.context.fault(value.span(), &path, message);
            return None;
        };
        Some(items.iter().filter_map(|item| read(item, &path)).collect())
    }

    /// The table `key`.
    pub(super) fn take_table(&self, key: &'static str) -> Option<Self> {
        let value = self.ask(key)?;
        self.table_of(value, self.path_of(key), join(&self.pattern, key))
    }

    /// The tables within the table `key`, by names that the user chooses, in the order of the text.
    pub(super) fn take_tables(&self, key: &'static str) -> Vec<(String, Range<usize>, Self)> {
        let Some(outer) = self.take_table(key) else { return Vec::new() };
        let tables = outer.table.iter().filter_map(|(name, value)| {
            let path = outer.path_of(name.get_ref());
            let table = self.table_of(value, path, join(&outer.pattern, "*"))?;
            Some((name.get_ref().clone().into_owned(), name.span(), table))
        });
        let mut tables: Vec<_> = tables.collect();
        tables.sort_by_key(|(_, span, _)| span.start);
        tables
    }

    /// `value` as a table that stands in a list of this section.
    pub(super) fn table_of(
        &self,
        value: &'c Spanned<DeValue<'t>>,
        name: String,
        pattern: String,
    ) -> Option<Self> {
        let Some(table) = value.get_ref().as_table() else {
            let message = format!("{} is no table: write [{name}]", shown(value.get_ref()));
            self.context.fault(value.span(), &name, message);
            return None;
        };
        let (span, asked) = (value.span(), RefCell::default());
        Some(Self { context: self.context, name, pattern, table, span, asked })
    }

    /// The pairs of the table, both of them text: for tables whose keys the user chooses.
    pub(super) fn pairs(&self) -> Vec<(String, String)> {
        let pairs = self.table.iter().filter_map(|(key, value)| {
            let path = self.path_of(key.get_ref());
            let text = self.read(value, &path, |value| {
                value
                    .as_str()
                    .map(str::to_owned)
                    .ok_or_else(|| format!("{} is no text in quotes", shown(value)))
            });
            Some((key.get_ref().clone().into_owned(), text?))
        });
        pairs.collect()
    }

    /// Reports the keys that nobody asked for, each with the one that was meant perhaps.
    pub(super) fn finish(self) {
        let asked = self.asked.borrow();
        for (key, value) in self.table.iter().filter(|(key, _)| !asked.contains(key.get_ref().as_ref())) {
            let name = key.get_ref();
            let allowed: Vec<&str> = asked.iter().copied().collect();
            let meant = self.guess(name, value.get_ref(), &asked);
            let message = match meant {
                Some(meant) => format!("unknown key; {meant} Allowed: {}", allowed.join(", ")),
                None => format!("unknown key. Allowed: {}", allowed.join(", ")),
            };
            self.context.fault(key.span(), &self.path_of(name), message);
        }
    }

    /// What was meant by a key that nobody asks for, as a sentence.
    fn guess(&self, name: &str, value: &DeValue<'_>, asked: &BTreeSet<&str>) -> Option<String> {
        if let Some(near) = nearest(name, asked) {
            return Some(format!("did you mean {near}?"));
        }
        // A dot outside of quotation marks begins a table within.
        if self.pattern.ends_with(".*") && value.as_table().is_some() {
            let table = self.pattern.trim_end_matches(".*");
            let outer =
                self.name.strip_prefix(table).unwrap_or_default().trim_start_matches('.').trim_matches('"');
            return Some(format!("write [{table}.\"{outer}.{name}\"], the name in quotation marks."));
        }
        let is_of_top = !self.pattern.is_empty() && self.context.known.borrow().contains(name);
        is_of_top.then(|| "it is of no table: move it above the first line with [ ].".to_owned())
    }
}

fn join(table: &str, key: &str) -> String {
    if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") }
}

/// A key as it is written in TOML.
fn quoted(key: &str) -> String {
    let is_bare = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'-' || octet == b'_';
    if !key.is_empty() && key.bytes().all(is_bare) { key.to_owned() } else { format!("{key:?}") }
}

/// A value as messages show it: short, and without what would spoil a line.
pub(super) fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) if text.chars().count() <= 60 => format!("{text:?}"),
        DeValue::String(text) => format!("{:?}…", text.chars().take(60).collect::<String>()),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(is_set) => is_set.to_string(),
        DeValue::Datetime(time) => time.to_string(),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}

/// The name of `names` that `name` is a slip of, most likely.
pub(super) fn nearest<'n>(name: &str, names: &BTreeSet<&'n str>) -> Option<&'n str> {
    let distances = names.iter().map(|other| (distance(name, other), *other));
    let (least, nearest) = distances.min_by_key(|(distance, _)| *distance)?;
    (least <= SUGGESTION_DISTANCE.min(nearest.len() / 2)).then_some(nearest)
}

/// Letters to insert, drop or change to make `b` of `a` (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    // A key of any length may stand in a file: what is much longer than all keys is like none of them.
    if a.len() > 64 {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, other) in b.iter().enumerate() {
            let changed = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_known_and_other_words_are_not() {
        let names = BTreeSet::from(["listen", "listen-tls", "workers", "nsid", "file"]);
        for (slip, meant) in [
            ("listne", "listen"),
            ("worker", "workers"),
            ("listen_tls", "listen-tls"),
            ("fil", "file"),
            ("ndis", "nsid"),
        ] {
            assert_eq!(nearest(slip, &names), Some(meant), "{slip}");
        }
        for other in ["colour", "x", "", "a-very-long-key-of-nobody"] {
            assert_eq!(nearest(other, &names), None, "{other}");
        }
        assert_eq!(nearest(&"x".repeat(1 << 20), &names), None);
    }

    #[test]
    fn distances_are_those_of_levenshtein() {
        for (a, b, expected) in
            [("", "", 0), ("a", "", 1), ("kitten", "sitting", 3), ("flaw", "lawn", 2), ("ab", "ba", 2)]
        {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
