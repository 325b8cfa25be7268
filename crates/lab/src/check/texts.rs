//! Lists of texts in outcomes.

/// Adds a text, unless the list has it.
pub(super) fn push_new(texts: &mut Vec<String>, text: String) {
    if !texts.contains(&text) {
        texts.push(text);
    }
}

/// The first `limit` texts, and the number of the others.
pub(super) fn listed(texts: &[String], limit: usize) -> String {
    let mut text = texts.iter().take(limit).map(String::as_str).collect::<Vec<_>>().join("; ");
    let others = texts.len().saturating_sub(limit);
    if others > 0 {
        text.push_str(&format!("; and {others} more"));
    }
    text
}
