//! Experiments as TOML files: name, question, method, parameters, the values for `--full`, the
//! published figures for comparison, and the presentation of the results.
//!
//! Errors contain the file, line and column. Parameters are checked in each table of the file, and
//! again after `[full]` and `--set` are applied.

use super::error::DefinitionError;
use super::method::{Method, MethodName};
use crate::presentation::{LinesForm, Presentation, ReportForm, RowsForm};
use crate::published;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::LazyLock;
use toml::{Spanned, Table, Value};

/// Built-in experiments: file name and text.
const BUILT_IN: &[(&str, &str)] = &[
    (
        "experiments/verification-benchmark.toml",
        include_str!("../../../../experiments/verification-benchmark.toml"),
    ),
    ("experiments/pqc-signing.toml", include_str!("../../../../experiments/pqc-signing.toml")),
    ("experiments/zone-programs.toml", include_str!("../../../../experiments/zone-programs.toml")),
    ("experiments/echo-floor.toml", include_str!("../../../../experiments/echo-floor.toml")),
    (
        "experiments/nsec5-response-size.toml",
        include_str!("../../../../experiments/nsec5-response-size.toml"),
    ),
    (
        "experiments/nsec5-processing-time.toml",
        include_str!("../../../../experiments/nsec5-processing-time.toml"),
    ),
    ("experiments/nsec5-throughput.toml", include_str!("../../../../experiments/nsec5-throughput.toml")),
    ("experiments/nsec5-cpu.toml", include_str!("../../../../experiments/nsec5-cpu.toml")),
    ("experiments/nsec5-mixed.toml", include_str!("../../../../experiments/nsec5-mixed.toml")),
    ("experiments/nsec5-memory.toml", include_str!("../../../../experiments/nsec5-memory.toml")),
    ("experiments/online-signing.toml", include_str!("../../../../experiments/online-signing.toml")),
    ("experiments/authoritative-load.toml", include_str!("../../../../experiments/authoritative-load.toml")),
    ("experiments/nsec3-iterations.toml", include_str!("../../../../experiments/nsec3-iterations.toml")),
    ("experiments/amplification.toml", include_str!("../../../../experiments/amplification.toml")),
    ("experiments/algorithm-rollover.toml", include_str!("../../../../experiments/algorithm-rollover.toml")),
    ("experiments/nsec5-resolver.toml", include_str!("../../../../experiments/nsec5-resolver.toml")),
    ("experiments/resolver-load.toml", include_str!("../../../../experiments/resolver-load.toml")),
    (
        "experiments/resolver-full-cache.toml",
        include_str!("../../../../experiments/resolver-full-cache.toml"),
    ),
    ("experiments/resolver-matrix.toml", include_str!("../../../../experiments/resolver-matrix.toml")),
    ("experiments/cold-start.toml", include_str!("../../../../experiments/cold-start.toml")),
    ("experiments/pqc-resolver.toml", include_str!("../../../../experiments/pqc-resolver.toml")),
    ("experiments/negative-caching.toml", include_str!("../../../../experiments/negative-caching.toml")),
    ("experiments/transition.toml", include_str!("../../../../experiments/transition.toml")),
    ("experiments/validation-attacks.toml", include_str!("../../../../experiments/validation-attacks.toml")),
    ("experiments/properties.toml", include_str!("../../../../experiments/properties.toml")),
    ("experiments/resolver-model.toml", include_str!("../../../../experiments/resolver-model.toml")),
];

/// Presentations that the experiments with a method have in common: name of the method and text.
const COMMON: &[(&str, &str)] = &[
    ("server-load", include_str!("../../../../experiments/methods/server-load.toml")),
    ("resolver-load", include_str!("../../../../experiments/methods/resolver-load.toml")),
];

/// Maximum size of an experiment file, in octets.
const FILE_MAX: u64 = 1 << 20;

/// An experiment with the values of all parameters.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// Name, the argument of `lab run`.
    pub name: String,
    /// Title of the report.
    pub title: String,
    /// The question that the experiment answers.
    pub question: String,
    /// Identifiers of the published tables that the report includes.
    pub published: Vec<String>,
    /// The method with its parameters.
    #[serde(flatten)]
    pub method: Method,
    /// Presentation of the results, if it differs from the built-in experiment with the same
    /// method.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    presentation: Option<Box<Presentation>>,
}

/// User options that change the parameters of an experiment.
#[derive(Clone, Copy, Debug, Default)]
pub struct ParameterOverrides<'a> {
    /// Whether the values in `[full]` apply.
    pub full: bool,
    /// Parameters and their new values as text: a TOML value or a word without quotes. A list can
    /// also be given as words separated by commas.
    pub set: &'a [(String, String)],
}

/// The TOML document of an experiment.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Document {
    name: Spanned<String>,
    title: String,
    question: String,
    method: MethodName,
    #[serde(default)]
    published: Vec<Spanned<String>>,
    #[serde(default)]
    parameters: Table,
    #[serde(default)]
    full: Table,
    #[serde(default)]
    rows: RowsForm,
    #[serde(default)]
    lines: LinesForm,
    #[serde(default)]
    report: ReportForm,
}

/// Presentations of the methods, by method name: the common presentation, or that of the built-in
/// experiment. A presentation is missing if the built-in text is invalid; a test excludes this case.
static PRESENTATIONS: LazyLock<Vec<(String, Presentation)>> = LazyLock::new(|| {
    let common = |(method, text): &(&str, &str)| Some(((*method).to_owned(), toml::from_str(text).ok()?));
    let read = |text: &str| -> Option<(String, Presentation)> {
        let Document { rows, lines, report, .. } = toml::from_str(text).ok()?;
        let method: Table = toml::from_str(text).ok()?;
        let method = method.get("method")?.as_str().filter(|method| !has_common(method))?;
        Some((method.to_owned(), Presentation { rows, lines, report }))
    };
    COMMON.iter().filter_map(common).chain(BUILT_IN.iter().filter_map(|(_, text)| read(text))).collect()
});

/// Whether the experiments with a method have a presentation in common.
fn has_common(method: &str) -> bool {
    COMMON.iter().any(|(name, _)| *name == method)
}

fn built_in_presentation(method: &str) -> Option<&'static Presentation> {
    PRESENTATIONS.iter().find(|(name, _)| name == method).map(|(_, presentation)| presentation)
}

/// Both tables of parameters with the parameter types of the method. Reading them only serves to
/// find the position of an error.
#[derive(Deserialize)]
struct Typed<P> {
    #[serde(default)]
    #[allow(dead_code)] // the values are not used, only their errors
    parameters: P,
    #[serde(default)]
    #[allow(dead_code)]
    full: P,
}

/// Returns the built-in experiments.
///
/// # Errors
/// Fails if `choices` do not fit all experiments, or a built-in text is invalid; a test excludes
/// the latter.
pub fn built_in(choices: ParameterOverrides<'_>) -> Result<Vec<Definition>, DefinitionError> {
    BUILT_IN.iter().map(|(file, text)| Definition::parse(text, file, choices)).collect()
}

impl Definition {
    /// Returns the built-in experiment with this name, or reads the experiment from the file with
    /// this path.
    ///
    /// # Errors
    /// Fails if neither exists, or if the file cannot be read or is invalid.
    pub fn find(name_or_path: &str, choices: ParameterOverrides<'_>) -> Result<Self, DefinitionError> {
        for (file, text) in BUILT_IN {
            if Path::new(file).file_stem().is_some_and(|stem| stem == name_or_path) {
                return Self::parse(text, file, choices);
            }
        }
        let path = Path::new(name_or_path);
        // A text without dot and slash is a name, not a path.
        if !path.exists() && !name_or_path.contains(['.', '/']) {
            return Err(DefinitionError::Unknown { name: name_or_path.to_owned() });
        }
        Self::read(path, choices)
    }

    /// Reads an experiment from a file.
    ///
    /// # Errors
    /// Fails if the file cannot be read or is invalid.
    pub fn read(path: &Path, choices: ParameterOverrides<'_>) -> Result<Self, DefinitionError> {
        let failed = |source| DefinitionError::Read { path: path.to_path_buf(), source };
        let mut text = String::new();
        let file = File::open(path).map_err(failed)?;
        file.take(FILE_MAX + 1).read_to_string(&mut text).map_err(failed)?;
        if text.len() as u64 > FILE_MAX {
            return Err(DefinitionError::TooLarge { path: path.to_path_buf() });
        }
        Self::parse(&text, &path.display().to_string(), choices)
    }

    /// Parses the text of an experiment. Errors contain `file`.
    ///
    /// # Errors
    /// Fails if the text is invalid, or if `choices` do not fit its parameters.
    pub fn parse(text: &str, file: &str, choices: ParameterOverrides<'_>) -> Result<Self, DefinitionError> {
        let fault = |error: &toml::de::Error| malformed(text, file, error);
        let document: Document = toml::from_str(text).map_err(|error| fault(&error))?;
        let at = |span: std::ops::Range<usize>, message: String| {
            let (line, column) = place(text, span.start);
            DefinitionError::Malformed { file: file.to_owned(), line, column, message }
        };
        if !is_name(document.name.get_ref()) {
            let message = "a name must consist of lower-case letters, digits and hyphens".to_owned();
            return Err(at(document.name.span(), message));
        }
        for id in &document.published {
            if published::table(id.get_ref()).is_none() {
                let message = format!(
                    "unknown published figures '{}': known are {}",
                    id.get_ref(),
                    published::identifiers().join(", ")
                );
                return Err(at(id.span(), message));
            }
        }
        let raw = Raw { text, file, document: &document, choices };
        let method = match document.method {
            MethodName::VerificationBenchmark => Method::VerificationBenchmark(raw.parameters()?),
            MethodName::ZoneSigning => Method::ZoneSigning(raw.parameters()?),
            MethodName::EchoFloor => Method::EchoFloor(raw.parameters()?),
            MethodName::ServerLoad => Method::ServerLoad(raw.parameters()?),
            MethodName::ResolverLoad => Method::ResolverLoad(raw.parameters()?),
            MethodName::Properties => Method::Properties(raw.parameters()?),
            MethodName::ResolverModel => Method::ResolverModel(raw.parameters()?),
            MethodName::ValidationAttacks => Method::ValidationAttacks(raw.parameters()?),
            MethodName::ZonePrograms => Method::ZonePrograms(raw.parameters()?),
        };
        let Document { rows, lines, report, .. } = document;
        let mut presentation = Presentation { rows, lines, report };
        let is_own = presentation != Presentation::default()
            && built_in_presentation(method.name()) != Some(&presentation);
        if let Some(common) = built_in_presentation(method.name()).filter(|_| has_common(method.name())) {
            presentation = presentation.before(common);
        }
        if is_own {
            let fault = |source| DefinitionError::Presentation { file: file.to_owned(), source };
            presentation.try_out().map_err(fault)?;
        }
        Ok(Self {
            presentation: is_own.then(|| Box::new(presentation)),
            name: document.name.into_inner(),
            title: document.title,
            question: document.question,
            published: document.published.into_iter().map(Spanned::into_inner).collect(),
            method,
        })
    }

    /// Returns the presentation of the results: that in the experiment's file, or that of the
    /// built-in experiment with the same method.
    pub(crate) fn presentation(&self) -> Cow<'_, Presentation> {
        match (&self.presentation, built_in_presentation(self.method.name())) {
            (Some(own), _) => Cow::Borrowed(own),
            (None, Some(built_in)) => Cow::Borrowed(built_in),
            (None, None) => Cow::Owned(Presentation::default()),
        }
    }
}

/// Whether the name is valid. It is also the name of a directory.
fn is_name(name: &str) -> bool {
    let fits = |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit() || octet == b'-';
    !name.is_empty() && name.len() <= 64 && name.bytes().all(fits) && !name.starts_with('-')
}

/// Document and choices, before the parameters of the method are read.
struct Raw<'a> {
    text: &'a str,
    file: &'a str,
    document: &'a Document,
    choices: ParameterOverrides<'a>,
}

impl Raw<'_> {
    /// Returns the parameters of a method: its defaults, replaced by the values in the file and in
    /// the choices.
    fn parameters<P: Default + Serialize + DeserializeOwned>(&self) -> Result<P, DefinitionError> {
        toml::from_str::<Typed<P>>(self.text).map_err(|error| malformed(self.text, self.file, &error))?;
        let mut table = Table::try_from(P::default()).map_err(|error| DefinitionError::Parameters {
            file: self.file.to_owned(),
            message: one_line(&error.to_string()),
        })?;
        table.extend(self.document.parameters.clone());
        if self.choices.full {
            table.extend(self.document.full.clone());
        }
        for (key, text) in self.choices.set {
            let Some(old) = table.get(key) else {
                let known: Vec<&str> = table.keys().map(String::as_str).collect();
                return Err(DefinitionError::UnknownParameter { key: key.clone(), known: known.join(", ") });
            };
            let value = value_like(old, text);
            // Apply one value at a time, so that the error contains the parameter.
            let mut changed = table.clone();
            changed.insert(key.clone(), value);
            changed.clone().try_into::<P>().map_err(|error| DefinitionError::Set {
                key: key.clone(),
                value: text.clone(),
                message: one_line(error.message()),
            })?;
            table = changed;
        }
        table.try_into().map_err(|error: toml::de::Error| DefinitionError::Parameters {
            file: self.file.to_owned(),
            message: one_line(error.message()),
        })
    }
}

/// Parses `text` as a new value for `old`: a TOML value or a word. If `old` is a list, the result
/// is a list: a TOML list or items separated by commas. If the items of `old` are strings, the new
/// items are strings, because an algorithm number is also a string in TOML. Otherwise they are TOML
/// values.
fn value_like(old: &Value, text: &str) -> Value {
    let single = |text: &str| {
        let read: Option<Table> = toml::from_str(&format!("value = {text}")).ok();
        // A text with a line break could define more than one key.
        let read = read.filter(|table| table.len() == 1).and_then(|mut table| table.remove("value"));
        read.unwrap_or_else(|| Value::String(text.to_owned()))
    };
    match (old, single(text)) {
        (Value::Array(_), list @ Value::Array(_)) => list,
        (Value::Array(before), _) => {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            let are_words = before.first().is_none_or(Value::is_str);
            let value = |part: &str| if are_words { Value::String(part.to_owned()) } else { single(part) };
            Value::Array(parts.map(value).collect())
        }
        (_, value) => value,
    }
}

fn malformed(text: &str, file: &str, error: &toml::de::Error) -> DefinitionError {
    let (line, column) = place(text, error.span().map_or(0, |span| span.start));
    DefinitionError::Malformed { file: file.to_owned(), line, column, message: one_line(error.message()) }
}

/// Returns line and column of an offset, both starting at 1. The column counts characters.
fn place(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    (line, before.rsplit('\n').next().unwrap_or_default().chars().count() + 1)
}

/// Joins the lines of a message: errors have one line.
fn one_line(message: &str) -> String {
    message.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::super::verification::Parameters;
    use super::*;
    use crate::presentation::PresentationError;
    use std::io::ErrorKind;

    const GOOD: &str = "name = \"mine\"\ntitle = \"Mine\"\nquestion = \"What?\"\nmethod = \"verification-benchmark\"\n\
        \n[parameters]\niterations = 3\n\n[full]\nseconds = 5\n";

    fn parameters(text: &str, choices: ParameterOverrides<'_>) -> Result<Parameters, DefinitionError> {
        match Definition::parse(text, "my.toml", choices)?.method {
            Method::VerificationBenchmark(parameters) => Ok(parameters),
            other => panic!("{other:?}"),
        }
    }

    fn set(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn what_is_built_in_is_sound() {
        for full in [false, true] {
            let all = built_in(ParameterOverrides { full, set: &[] }).expect("sound");
            for ((file, _), definition) in BUILT_IN.iter().zip(&all) {
                assert_eq!(*file, format!("experiments/{}.toml", definition.name));
                assert!(definition.question.ends_with('?'), "{}", definition.question);
                let found = Definition::find(&definition.name, ParameterOverrides { full, set: &[] });
                assert_eq!(found.as_ref().ok(), Some(definition));
            }
        }
    }

    #[test]
    fn what_is_built_in_has_a_report_of_no_rows() {
        assert!(COMMON.iter().all(|(method, _)| built_in_presentation(method).is_some()));
        for definition in built_in(ParameterOverrides::default()).expect("sound") {
            let (name, presentation) = (&definition.name, definition.presentation());
            presentation.try_out().unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(!presentation.columns().is_empty(), "{name}");
        }
    }

    #[test]
    fn a_presentation_of_ones_own_is_kept_and_its_faults_are_named_before_a_run() {
        let own = |lead: &str| {
            let text = format!("{GOOD}\n[rows]\ncolumns = []\n\n[report]\nlead = \"{lead}\"\n");
            Definition::parse(&text, "my.toml", ParameterOverrides::default())
        };
        let definition = own("{{ 1 + 1 }} lines").expect("good");
        let report = definition.presentation().report(crate::presentation::Scope::new()).expect("a report");
        assert_eq!(report.lead, "2 lines");
        let text = serde_json::to_string(&definition).expect("written");
        assert_eq!(serde_json::from_str::<Definition>(&text).expect("read"), definition);
        let error = own("{{ lines|none_such }}").expect_err("refused");
        let DefinitionError::Presentation { file, source } = &error else { panic!("{error}") };
        assert_eq!(file, "my.toml");
        assert!(
            matches!(source, PresentationError::Expression { text, .. } if text.contains("none_such")),
            "{error}"
        );
    }

    #[test]
    fn defaults_file_full_and_set_follow_each_other() {
        let short = parameters(GOOD, ParameterOverrides::default()).expect("good");
        assert_eq!(
            (short.iterations.value(), short.seconds.value()),
            (3, Parameters::default().seconds.value())
        );
        let full = parameters(GOOD, ParameterOverrides { full: true, set: &[] }).expect("good");
        assert_eq!((full.iterations.value(), full.seconds.value()), (3, 5.0));
        let pairs = set(&[
            ("seconds", "0.01"),
            ("levels", "native, x86-64-v2"),
            ("cpu", "last"),
            ("algorithms", "[]"),
        ]);
        let set = parameters(GOOD, ParameterOverrides { full: true, set: &pairs }).expect("good");
        assert_eq!((set.seconds.value(), set.levels.len(), set.algorithms.len()), (0.01, 2, 0));
    }

    #[test]
    fn what_a_record_holds_is_read_back() {
        let definition = Definition::parse(GOOD, "my.toml", ParameterOverrides::default()).expect("good");
        let text = serde_json::to_string(&definition).expect("written");
        assert!(
            text.contains("\"method\":\"verification-benchmark\",\"parameters\":{\"iterations\":3,"),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Definition>(&text).expect("read"), definition);
    }

    #[test]
    fn faults_are_named_by_file_line_and_column() {
        // The last element: names and values that the message contains.
        let cases = [
            ("iterations = 3", "iterationz = 3", (7, 1), "`iterationz` `iterations`"),
            ("iterations = 3", "iterations = \"many\"", (7, 14), "many"),
            ("iterations = 3", "iterations = 0", (7, 14), "0 1 1000000"),
            ("seconds = 5", "seconds = -1", (10, 11), "-1 3600"),
            ("seconds = 5", "levels = [\"native\", \"x86-64-v9\"]", (10, 21), "x86-64-v9 native"),
            ("seconds = 5", "algorithms = [\"RSA\"]", (10, 14), "'RSA'"),
            (
                "method = \"verification-benchmark\"",
                "method = \"guess\"",
                (4, 10),
                "guess verification-benchmark zone-signing echo-floor",
            ),
            ("title = \"Mine\"", "titel = \"Mine\"", (2, 1), "titel title"),
            ("title = \"Mine\"", "", (1, 1), "title"),
            ("title = \"Mine\"", "title = Mine", (2, 9), ""),
            ("name = \"mine\"", "name = \"../mine\"", (1, 8), ""),
            ("title = \"Mine\"", "title = \"M\"\npublished = [\"x\"]", (3, 14), "'x' ecc-validation-ratios"),
        ];
        for (old, new, place, words) in cases {
            let error = parameters(&GOOD.replace(old, new), ParameterOverrides::default()).expect_err(new);
            let DefinitionError::Malformed { file, line, column, message } = &error else {
                panic!("{new}: {error}")
            };
            assert_eq!((file.as_str(), (*line, *column)), ("my.toml", place), "{new}: {error}");
            assert!(
                words.split(' ').all(|word| message.contains(word)),
                "{new}: wanted {words}, got {error}"
            );
            assert!(!error.to_string().contains('\n'), "{error}");
        }
        assert!(is_name("mine") && !is_name("../mine"));
    }

    #[test]
    fn bad_choices_are_named_with_the_remedy() {
        let refuse = |pairs: &[(&str, &str)]| {
            let pairs = set(pairs);
            parameters(GOOD, ParameterOverrides { full: false, set: &pairs }).expect_err("refused")
        };
        let error = refuse(&[("secondz", "1")]);
        let DefinitionError::UnknownParameter { key, known } = &error else { panic!("{error}") };
        assert_eq!(key, "secondz");
        assert!(known.split(", ").any(|name| name == "seconds"), "{error}");
        let refuse_value = |pairs: &[(&str, &str)]| match refuse(pairs) {
            DefinitionError::Set { key, value, message } => (key, value, message),
            other => panic!("{other}"),
        };
        let (key, value, _) = refuse_value(&[("seconds", "1"), ("iterations", "x")]);
        assert_eq!((key.as_str(), value.as_str()), ("iterations", "x"));
        let (key, value, message) = refuse_value(&[("levels", "native,z")]);
        assert_eq!((key.as_str(), value.as_str()), ("levels", "native,z"));
        assert!(message.contains("`z`"), "{message}");
        let (key, value, _) = refuse_value(&[("seconds", "1\niterations = 5")]);
        assert_eq!((key.as_str(), value.as_str()), ("seconds", "1\niterations = 5"));
    }

    #[test]
    fn a_name_that_is_none_is_refused() {
        let find = |name: &str| Definition::find(name, ParameterOverrides::default()).expect_err("refused");
        let error = find("nothing");
        assert!(matches!(&error, DefinitionError::Unknown { name } if name == "nothing"), "{error}");
        assert!(error.to_string().contains("`nonesuch lab list`"), "{error}");
        let error = find("./nothing.toml");
        let DefinitionError::Read { path, source } = &error else { panic!("{error}") };
        assert_eq!((path.as_path(), source.kind()), (Path::new("./nothing.toml"), ErrorKind::NotFound));
    }
}
