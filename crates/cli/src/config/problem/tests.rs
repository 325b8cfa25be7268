//! Tests of locations.

use super::*;

#[test]
fn locations_count_lines_and_characters() {
    let text = "a = 1\n\n\u{fc} = \"\u{e9}\" # \u{1f600}\r\n[t]\nb = 2";
    let document = Document::new(0, Path::new("c.toml"), text.to_owned().into());
    for start in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
        let before = &text[..start];
        let column = before.chars().rev().take_while(|letter| *letter != '\n').count() + 1;
        let location = document.location(start, "");
        assert_eq!((location.line, location.column), (before.matches('\n').count() + 1, column), "{start}");
    }
}
