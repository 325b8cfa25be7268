//! Reads TSIG keys in the form of BIND's configuration, as `tsig-keygen` and `keymgr tsig` write
//! them:
//!
//! ```text
//! key "transfer.example" {
//!     algorithm hmac-sha256;
//!     secret "Base64";
//! };
//! ```
//!
//! Comments are `//` and `#` to the end of the line, and `/* … */`.

use super::key::{TsigAlgorithm, TsigKey, TsigKeyError, read_name};

/// A fault in the text of keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {fault}")]
pub struct KeyTextError {
    /// Line number, from 1.
    pub line: u32,
    /// Column in bytes, from 1.
    pub column: u32,
    /// The fault at this position.
    pub fault: KeyTextFault,
}

/// The kind of fault. Messages do not contain the text, because it may be part of a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyTextFault {
    /// The text differs from the expected element.
    #[error("expected {0}")]
    Expected(&'static str),
    /// A key contains a statement twice.
    #[error("'{0}' occurs twice in this key")]
    Repeated(&'static str),
    /// A key lacks a statement.
    #[error("this key has no '{0}'")]
    Missing(&'static str),
    /// A quote or a comment is not closed.
    #[error("a {0} is not closed")]
    Unclosed(&'static str),
    /// The text contains no key.
    #[error("the text contains no key: write  key \"NAME\" {{ algorithm hmac-sha256; secret \"BASE64\"; }};")]
    NoKey,
    /// The key is invalid.
    #[error("{0}")]
    Key(#[from] TsigKeyError),
}

/// Reads all keys of `text`.
///
/// # Errors
/// Returns the first fault. Everything except keys is a fault, because a file of secrets should
/// contain nothing else.
pub fn read_keys(text: &str) -> Result<Vec<TsigKey>, KeyTextError> {
    let mut reader = Reader { text, offset: 0 };
    let mut keys = Vec::new();
    while let Some(word) = reader.next()? {
        if !word.is("key") {
            return Err(reader.error(word.offset, KeyTextFault::Expected("'key'")));
        }
        keys.push(reader.read_key()?);
    }
    if keys.is_empty() { Err(reader.error(text.len(), KeyTextFault::NoKey)) } else { Ok(keys) }
}

/// A word, a quoted text, or one of `{`, `}` and `;`.
#[derive(Clone, Copy)]
struct Token<'t> {
    text: &'t str,
    offset: usize,
    is_quoted: bool,
}

impl Token<'_> {
    fn is(&self, text: &str) -> bool {
        !self.is_quoted && self.text.eq_ignore_ascii_case(text)
    }

    fn is_mark(&self) -> bool {
        !self.is_quoted && matches!(self.text, "{" | "}" | ";")
    }
}

struct Reader<'t> {
    text: &'t str,
    offset: usize,
}

impl<'t> Reader<'t> {
    /// Reads the rest of a key after the word `key`.
    fn read_key(&mut self) -> Result<TsigKey, KeyTextError> {
        let name = self.next_value("the name of the key")?;
        self.expect_mark("{")?;
        let (mut algorithm, mut secret) = (None, None);
        let end = loop {
            let word = self.next_required("'algorithm', 'secret' or '}'")?;
            let offset = word.offset;
            let is_first = if word.is("algorithm") {
                algorithm.replace(self.next_value("an algorithm")?).is_none()
            } else if word.is("secret") {
                secret.replace(self.next_value("a secret in Base64")?).is_none()
            } else if word.is("}") {
                break offset;
            } else {
                return Err(self.error(offset, KeyTextFault::Expected("'algorithm', 'secret' or '}'")));
            };
            if !is_first {
                let statement = if word.is("secret") { "secret" } else { "algorithm" };
                return Err(self.error(offset, KeyTextFault::Repeated(statement)));
            }
            self.expect_mark(";")?;
        };
        self.expect_mark(";")?;
        let missing = |statement| KeyTextError {
            fault: KeyTextFault::Missing(statement),
            ..self.error(end, KeyTextFault::NoKey)
        };
        let algorithm = algorithm.ok_or_else(|| missing("algorithm"))?;
        let secret = secret.ok_or_else(|| missing("secret"))?;
        let key = |word: Token<'_>, error| self.error(word.offset, KeyTextFault::Key(error));
        let parsed: TsigAlgorithm = algorithm.text.parse().map_err(|error| key(algorithm, error))?;
        let owner = read_name(name.text).map_err(|error| key(name, error))?;
        TsigKey::from_base64(&owner, parsed, secret.text).map_err(|error| key(secret, error))
    }

    fn expect_mark(&mut self, mark: &'static str) -> Result<(), KeyTextError> {
        let what = match mark {
            "{" => "'{'",
            _ => "';'",
        };
        let word = self.next_required(what)?;
        if word.is(mark) { Ok(()) } else { Err(self.error(word.offset, KeyTextFault::Expected(what))) }
    }

    fn next_value(&mut self, what: &'static str) -> Result<Token<'t>, KeyTextError> {
        let word = self.next_required(what)?;
        if word.is_mark() { Err(self.error(word.offset, KeyTextFault::Expected(what))) } else { Ok(word) }
    }

    fn next_required(&mut self, what: &'static str) -> Result<Token<'t>, KeyTextError> {
        let word = self.next()?;
        word.ok_or_else(|| self.error(self.text.len(), KeyTextFault::Expected(what)))
    }

    /// Returns the next word, or `None` at the end of the text.
    fn next(&mut self) -> Result<Option<Token<'t>>, KeyTextError> {
        self.skip_blanks()?;
        let (offset, rest) = (self.offset, &self.text[self.offset..]);
        let Some(first) = rest.chars().next() else { return Ok(None) };
        let (text, length, is_quoted) = match first {
            '"' => {
                let end = rest[1..].find(['"', '\n']).filter(|end| rest[1 + end..].starts_with('"'));
                let end = end.ok_or_else(|| self.error(offset, KeyTextFault::Unclosed("double quote")))?;
                (&rest[1..=end], end + 2, true)
            }
            '{' | '}' | ';' => (&rest[..1], 1, false),
            _ => {
                let ends = |c: char| c.is_whitespace() || matches!(c, '{' | '}' | ';' | '"');
                let end = rest.find(ends).unwrap_or(rest.len());
                (&rest[..end], end, false)
            }
        };
        self.offset += length;
        Ok(Some(Token { text, offset, is_quoted }))
    }

    fn skip_blanks(&mut self) -> Result<(), KeyTextError> {
        loop {
            let rest = &self.text[self.offset..];
            let blanks = rest.len() - rest.trim_start().len();
            self.offset += blanks;
            let rest = &rest[blanks..];
            if rest.starts_with("//") || rest.starts_with('#') {
                self.offset += rest.find('\n').unwrap_or(rest.len());
            } else if let Some(comment) = rest.strip_prefix("/*") {
                let end = comment.find("*/");
                self.offset +=
                    4 + end.ok_or_else(|| self.error(self.offset, KeyTextFault::Unclosed("comment")))?;
            } else {
                return Ok(());
            }
        }
    }

    fn error(&self, offset: usize, fault: KeyTextFault) -> KeyTextError {
        let before = &self.text.as_bytes()[..offset];
        let line = before.iter().filter(|octet| **octet == b'\n').count() + 1;
        let column = offset - before.iter().rposition(|octet| *octet == b'\n').map_or(0, |end| end + 1) + 1;
        KeyTextError { line: line as u32, column: column as u32, fault }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_proto::NameError;
    use proptest::prelude::*;

    #[test]
    fn keys_are_read_as_bind_and_knot_write_them() {
        let text = "# hmac-sha256:k:c2VjcmV0\nkey \"Transfer.example.\" {\n\talgorithm hmac-sha256;\n\
            \tsecret \"c2VjcmV0\"; // the secret\n};\n/* two\nlines */ key k{algorithm HMAC-SHA512.;secret c2VjcmV0;};\n";
        let keys = read_keys(text).unwrap();
        let found: Vec<_> = keys.iter().map(|key| (key.name().to_string(), key.algorithm())).collect();
        let expected = [("transfer.example.", TsigAlgorithm::HmacSha256), ("k.", TsigAlgorithm::HmacSha512)];
        assert_eq!(found, expected.map(|(name, algorithm)| (name.to_owned(), algorithm)));
        assert!(keys.iter().all(TsigKey::is_short));
    }

    #[test]
    fn faults_are_named_with_their_place() {
        let expected = KeyTextFault::Expected;
        let algorithm = TsigKeyError::Algorithm("hmac-md5".to_owned());
        let name = TsigKeyError::Name { name: "a..b".to_owned(), error: NameError::EmptyLabel };
        let secret = TsigKeyError::Secret("k.".parse().unwrap());
        let empty = TsigKeyError::EmptySecret("k.".parse().unwrap());
        let cases = [
            ("", 1, 1, KeyTextFault::NoKey),
            ("// key\n", 2, 1, KeyTextFault::NoKey),
            ("options { };", 1, 1, expected("'key'")),
            ("key {", 1, 5, expected("the name of the key")),
            ("key k ;", 1, 7, expected("'{'")),
            ("key k {\n  algorithm hmac-sha256;\n};", 3, 1, KeyTextFault::Missing("secret")),
            ("key k { secret \"c2VjcmV0\"; };", 1, 28, KeyTextFault::Missing("algorithm")),
            ("key k { algorithm hmac-md5; secret \"c2VjcmV0\"; };", 1, 19, algorithm.into()),
            ("key k { algorithm hmac-sha256; secret \"c2Vj cmV0!\"; };", 1, 39, secret.into()),
            ("key k { algorithm hmac-sha256; secret \"\"; };", 1, 39, empty.into()),
            ("key \"a..b\" { algorithm hmac-sha256; secret a; };", 1, 5, name.into()),
            ("key k { secret a; secret b; };", 1, 19, KeyTextFault::Repeated("secret")),
            ("key k { algorithm a; algorithm b; };", 1, 22, KeyTextFault::Repeated("algorithm")),
            ("key k { algorithm hmac-sha256 secret", 1, 31, expected("';'")),
            ("key k { owner root; };", 1, 9, expected("'algorithm', 'secret' or '}'")),
            ("key \"k\n\" {", 1, 5, KeyTextFault::Unclosed("double quote")),
            ("/* key", 1, 1, KeyTextFault::Unclosed("comment")),
            ("key k { algorithm hmac-sha256; secret \"c2VjcmV0\"; }", 1, 52, expected("';'")),
        ];
        for (text, line, column, fault) in cases {
            let error = read_keys(text).unwrap_err();
            assert!(!error.to_string().contains("c2Vj"), "{error}");
            assert_eq!(error, KeyTextError { line, column, fault }, "{text}");
        }
    }

    proptest! {
        #[test]
        fn arbitrary_text_never_panics(text in "\\PC{0,60}", word in "(key|\"|k|\\{|\\}|;|/\\*|#|\n|algorithm|secret| ){0,20}") {
            let _ = read_keys(&text);
            let _ = read_keys(&word);
        }
    }
}
