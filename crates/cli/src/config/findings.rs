//! The files that a configuration is read from, and what is found in them: faults with their places, files that are named, keys that
//! are known.

use super::model::Server;
use super::remotes::Own;
use super::sources::{NamedFile, Place, Sources, Spot};
use nonesuch_authoritative::acl::AccessList;
use nonesuch_proto::Name;
use std::cell::{Ref, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

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

/// One of the files that a configuration is read from.
pub(super) struct Document {
    pub(super) path: PathBuf,
    pub(super) text: String,
}

impl fmt::Debug for Document {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // There may be secrets in the text.
        f.debug_struct("Document").field("path", &self.path).finish_non_exhaustive()
    }
}

/// What is found in all files of a configuration: the main one is the first.
#[derive(Default)]
pub(super) struct Findings {
    documents: RefCell<Vec<Arc<Document>>>,
    /// Each with the number of its file.
    problems: RefCell<Vec<(usize, Problem)>>,
    warnings: RefCell<Vec<(usize, Problem)>>,
    /// Every key that was asked for; names that the user chooses stand as `*`.
    pub(super) known: RefCell<BTreeSet<String>>,
    pub(super) files: RefCell<Vec<NamedFile>>,
    /// Places of keys of no table.
    pub(super) top: RefCell<BTreeMap<&'static str, Place>>,
    own: RefCell<Own>,
    /// Who may ask for zones that do not say it.
    query: RefCell<Option<AccessList>>,
    /// Names of all TSIG keys, those that cannot be used among them.
    keys: RefCell<BTreeSet<Name>>,
}

impl Findings {
    /// Adds a file.
    pub(super) fn add(&self, path: &Path, text: String) {
        let document = Document { path: path.to_path_buf(), text };
        self.documents.borrow_mut().push(Arc::new(document));
    }

    /// The files, in the order in which they are read.
    pub(super) fn documents(&self) -> Vec<Arc<Document>> {
        self.documents.borrow().clone()
    }

    /// Where a spot is, for people: file, line and column.
    pub(super) fn locate(&self, spot: Spot) -> String {
        let documents = self.documents.borrow();
        let Some(document) = documents.get(spot.file) else { return String::new() };
        let (line, column) = locate(&document.text, spot.start);
        format!("{}:{line}:{column}", document.path.display())
    }

    fn at(&self, spot: Spot, key: &str, message: String) -> (usize, Problem) {
        let documents = self.documents.borrow();
        // There is no spot in another file.
        let Document { path, text } = &*documents[spot.file];
        let (line, column) = locate(text, spot.start);
        (spot.file, Problem { path: path.clone(), line, column, key: key.to_owned(), message })
    }

    pub(super) fn fault(&self, spot: Spot, key: &str, message: impl Into<String>) {
        let problem = self.at(spot, key, message.into());
        self.problems.borrow_mut().push(problem);
    }

    pub(super) fn warn(&self, spot: Spot, key: &str, message: impl Into<String>) {
        let problem = self.at(spot, key, message.into());
        self.warnings.borrow_mut().push(problem);
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

    /// Tells zones, which are read later, who may ask for those that do not say it.
    pub(super) fn set_query(&self, list: Option<AccessList>) {
        self.query.replace(list);
    }

    /// Who may ask for zones that do not say it; `None` for everybody.
    pub(super) fn query(&self) -> Option<AccessList> {
        self.query.borrow().clone()
    }

    /// The files that were noted so far.
    pub(super) fn files(&self) -> Ref<'_, Vec<NamedFile>> {
        self.files.borrow()
    }

    /// What was noted, for faults that are found later.
    pub(super) fn take_sources(&self) -> Sources {
        Sources::new(self.documents.take(), self.files.take(), self.top.take())
    }

    /// What was found, in the order of the files and of their text: problems, then warnings.
    pub(super) fn into_findings(self) -> (Vec<Problem>, Vec<Problem>) {
        let sorted = |problems: RefCell<Vec<(usize, Problem)>>| {
            let mut problems = problems.into_inner();
            problems.sort_by_key(|(file, problem)| (*file, problem.line, problem.column));
            problems.dedup();
            problems.into_iter().map(|(_, problem)| problem).collect()
        };
        (sorted(self.problems), sorted(self.warnings))
    }
}

/// One file that is read, among all that belong together.
pub(super) struct Context<'t> {
    findings: &'t Findings,
    file: usize,
    document: &'t Document,
}

impl<'t> Context<'t> {
    /// The `file`th of those of `findings`.
    pub(super) const fn new(findings: &'t Findings, file: usize, document: &'t Document) -> Self {
        Self { findings, file, document }
    }

    pub(super) const fn findings(&self) -> &'t Findings {
        self.findings
    }

    /// The text.
    pub(super) fn text(&self) -> &'t str {
        &self.document.text
    }

    /// The file that the text is of.
    pub(super) fn path(&self) -> &'t Path {
        &self.document.path
    }

    /// The folder that paths in the text are relative to.
    pub(super) fn folder(&self) -> &'t Path {
        self.path().parent().unwrap_or_else(|| Path::new(""))
    }

    /// Whether another file includes this one.
    pub(super) const fn is_included(&self) -> bool {
        self.file > 0
    }

    pub(super) const fn spot(&self, span: &Range<usize>) -> Spot {
        Spot { file: self.file, start: span.start }
    }

    pub(super) fn fault(&self, span: Range<usize>, key: &str, message: impl Into<String>) {
        self.findings.fault(self.spot(&span), key, message);
    }

    pub(super) fn warn(&self, span: Range<usize>, key: &str, message: impl Into<String>) {
        self.findings.warn(self.spot(&span), key, message);
    }

    pub(super) fn own(&self) -> Ref<'t, Own> {
        self.findings.own.borrow()
    }

    /// Notes a TSIG key that is there, whether it can be used or not.
    pub(super) fn note_key(&self, name: &Name) {
        self.findings.keys.borrow_mut().insert(name.clone());
    }

    pub(super) fn has_key(&self, name: &Name) -> bool {
        self.findings.keys.borrow().contains(name)
    }
}
