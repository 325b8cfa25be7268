//! Reading tables of TOML key by key, so that every fault is said with its place, and all of them at once.

use super::findings::Context;
use super::sources::{NamedFile, Place, Role};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Keys that earlier versions had, each with the remedy.
const REMOVED: [(&str, &str); 2] =
    [("limits.online-operations", EQUAL_SHARES), ("limits.online-proven-factor", EQUAL_SHARES)];
const EQUAL_SHARES: &str = "this key was removed: clients have no limit of their own until a worker has spent online-share, and \
    equal shares of it then; delete this line";

/// Letters by which a key may differ from the one that is suggested in its place.
const SUGGESTION_DISTANCE: usize = 3;

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
        let file = NamedFile { path: path.to_path_buf(), role, place: self.place_of(key) };
        self.context.findings().files.borrow_mut().push(file);
    }

    /// As [`note_file`](Self::note_file), of one item of a list, which stands at `span`.
    pub(super) fn note_file_at(&self, span: &Range<usize>, key: &str, path: &Path, role: Role) {
        let place = Place { spot: self.context.spot(span), key: self.path_of(key) };
        let file = NamedFile { path: path.to_path_buf(), role, place };
        self.context.findings().files.borrow_mut().push(file);
    }

    /// Notes where keys of no table stand.
    pub(super) fn note_places(&self, keys: &[&'static str]) {
        for key in keys.iter().filter(|key| self.has(key)) {
            self.context.findings().top.borrow_mut().insert(key, self.place_of(key));
        }
    }

    fn place_of(&self, key: &str) -> Place {
        Place { spot: self.context.spot(&self.place(key)), key: self.path_of(key) }
    }

    /// Where the value of `key` stands, or the table where the key is not there.
    pub(super) fn place(&self, key: &str) -> Range<usize> {
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

    /// The texts that the value of `key` is or has in its list, as they are written, each with its place.
    pub(super) fn texts(&self, key: &str) -> Vec<(Range<usize>, &'c str)> {
        let Some(value) = self.table.get(key) else { return Vec::new() };
        let items =
            value.get_ref().as_array().map_or_else(|| std::slice::from_ref(value), |items| &items[..]);
        items.iter().filter_map(|item| Some((item.span(), item.get_ref().as_str()?))).collect()
    }

    /// The texts in the table that the value of `key` is.
    pub(super) fn texts_within(&self, key: &str) -> Vec<&'c str> {
        let table = self.table.get(key).and_then(|value| value.get_ref().as_table());
        table
            .into_iter()
            .flat_map(|table| table.values())
            .filter_map(|value| value.get_ref().as_str())
            .collect()
    }

    fn ask(&self, key: &'static str) -> Option<&'c Spanned<DeValue<'t>>> {
        self.asked.borrow_mut().insert(key);
        self.context.findings().known.borrow_mut().insert(join(&self.pattern, key));
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
            let path = join(&self.pattern, name);
            let removed = REMOVED.iter().find(|(key, _)| *key == path);
            let message = match meant {
                _ if removed.is_some() => {
                    removed.map_or_else(String::new, |(_, remedy)| (*remedy).to_owned())
                }
                _ if self.is_of_main(name) => self.of_main(name),
                Some(meant) => format!("unknown key; {meant} Allowed: {}", allowed.join(", ")),
                None => format!("unknown key. Allowed: {}", allowed.join(", ")),
            };
            self.context.fault(key.span(), &self.path_of(name), message);
        }
    }

    /// Whether nobody asks for a key because it stands in an included file, and is of the server as a whole.
    fn is_of_main(&self, name: &str) -> bool {
        let known = self.context.findings().known.borrow();
        // The main file was read before: what is asked for there is known.
        self.context.is_included() && known.contains(join(&self.pattern, name).as_str())
    }

    fn of_main(&self, name: &str) -> String {
        let documents = self.context.findings().documents();
        let main = documents.first().map(|main| main.path.display().to_string()).unwrap_or_default();
        let reason = match name {
            "include" => "a file that is included includes no others",
            "version" => "the version is that of all files",
            _ => "this is of the server as a whole",
        };
        format!("{reason}: it stands in {main} alone; included files have key, template and zone tables")
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
        if self.pattern == "template.*" && name == "template" {
            return Some("a template has no template: write the keys of that one here too.".to_owned());
        }
        if self.context.is_included() {
            return None;
        }
        let known = self.context.findings().known.borrow();
        let is_table =
            known.iter().any(|key| key.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')));
        let is_of_top = !self.pattern.is_empty() && known.contains(name) && !is_table;
        is_of_top.then(|| "it is of no table: move it above the first line with [ ].".to_owned())
    }
}

fn join(table: &str, key: &str) -> String {
    if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") }
}

/// A key as it is written in TOML.
pub(super) fn quoted(key: &str) -> String {
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
