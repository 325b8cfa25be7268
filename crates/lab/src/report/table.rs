//! Tables with a head of one or two lines, for a terminal and for HTML.

use minijinja::context;
use minijinja::value::Value;
use std::fmt::Write as _;

/// Alignment of the cells of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Align {
    /// For text.
    #[default]
    Left,
    /// For figures.
    Right,
}

/// Head and alignment of a column.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Column {
    /// Heading above the title that adjacent columns share; empty: none.
    pub group: String,
    /// Title, with the unit.
    pub title: String,
    /// Alignment of the cells.
    pub align: Align,
}

impl Column {
    /// Creates a left-aligned column of text without a group.
    #[must_use]
    pub fn text(title: &str) -> Self {
        Self { group: String::new(), title: title.to_owned(), align: Align::Left }
    }

    /// Creates a right-aligned column of figures.
    #[must_use]
    pub fn figures(group: &str, title: &str) -> Self {
        Self { group: group.to_owned(), title: title.to_owned(), align: Align::Right }
    }
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// Heads and alignment of the columns.
    pub columns: Vec<Column>,
    /// Cells of each row. Missing cells at the end of a row are empty.
    pub rows: Vec<Vec<String>>,
    /// Lines below the table.
    pub legend: Vec<String>,
}

/// Space between columns of one group.
const COLUMN_GAP: &str = " ";
/// Space between groups.
const GROUP_GAP: &str = "  ";

impl Table {
    /// Returns the groups of adjacent columns with the number of columns. A column without a group
    /// is a group of one column.
    fn groups(&self) -> Vec<(&str, usize)> {
        let mut groups: Vec<(&str, usize)> = Vec::new();
        for column in &self.columns {
            match groups.last_mut() {
                Some((group, count)) if *group == column.group && !group.is_empty() => *count += 1,
                _ => groups.push((&column.group, 1)),
            }
        }
        groups
    }

    /// Returns the variables of the page template.
    pub(super) fn template_variables(&self) -> Value {
        let column = |column: &Column| {
            context! { title => &column.title, is_figure => column.align == Align::Right }
        };
        context! {
            groups => self.has_groups().then(|| self.groups().into_iter().map(Value::from).collect::<Vec<_>>()),
            columns => self.columns.iter().map(column).collect::<Vec<_>>(),
            rows => &self.rows,
            legend => &self.legend,
        }
    }

    fn has_groups(&self) -> bool {
        self.columns.iter().any(|column| !column.group.is_empty())
    }

    /// Returns the cell in `row` and `column`, or an empty text if it does not exist.
    fn cell(row: &[String], column: usize) -> &str {
        row.get(column).map_or("", String::as_str)
    }

    /// Formats the table as lines of text with aligned columns. `?` replaces control characters.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut widths = self.widths();
        self.widen_for_groups(&mut widths);
        let mut text = String::new();
        if self.has_groups() {
            self.push_groups(&widths, &mut text);
        }
        let titles: Vec<String> = self.columns.iter().map(|column| column.title.clone()).collect();
        self.push_row(&titles, &widths, &mut text);
        let line_width: usize = widths.iter().sum::<usize>() + self.gaps().map(str::len).sum::<usize>();
        text.push_str(&"─".repeat(line_width));
        text.push('\n');
        for row in &self.rows {
            self.push_row(row, &widths, &mut text);
        }
        for line in &self.legend {
            let _ = writeln!(text, "{}", printable(line));
        }
        text
    }

    /// Returns the width of each column in characters, without the headings of groups.
    fn widths(&self) -> Vec<usize> {
        let cells =
            |column: usize| self.rows.iter().map(move |row| Self::cell(row, column).chars().count()).max();
        self.columns
            .iter()
            .enumerate()
            .map(|(index, column)| column.title.chars().count().max(cells(index).unwrap_or(0)))
            .collect()
    }

    /// Returns the space before each column.
    fn gaps(&self) -> impl Iterator<Item = &'static str> {
        self.columns.iter().enumerate().map(|(index, column)| match index.checked_sub(1) {
            None => "",
            Some(before) => {
                let is_same_group = !column.group.is_empty() && self.columns[before].group == column.group;
                if is_same_group { COLUMN_GAP } else { GROUP_GAP }
            }
        })
    }

    /// Widens the first column of each group whose heading is wider than its columns.
    fn widen_for_groups(&self, widths: &mut [usize]) {
        let mut first = 0;
        for (group, count) in self.groups() {
            let width = widths[first..first + count].iter().sum::<usize>() + (count - 1) * COLUMN_GAP.len();
            widths[first] += group.chars().count().saturating_sub(width);
            first += count;
        }
    }

    fn push_groups(&self, widths: &[usize], text: &mut String) {
        let mut line = String::new();
        let mut first = 0;
        for (group, count) in self.groups() {
            let width = widths[first..first + count].iter().sum::<usize>() + (count - 1) * COLUMN_GAP.len();
            let gap = if first == 0 { "" } else { GROUP_GAP };
            let _ = write!(line, "{gap}{:>width$}", printable(group));
            first += count;
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }

    fn push_row(&self, row: &[String], widths: &[usize], text: &mut String) {
        let mut line = String::new();
        for (index, (column, gap)) in self.columns.iter().zip(self.gaps()).enumerate() {
            let (cell, width) = (printable(Self::cell(row, index)), widths[index]);
            let _ = match column.align {
                Align::Left => write!(line, "{gap}{cell:<width$}"),
                Align::Right => write!(line, "{gap}{cell:>width$}"),
            };
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// Replaces control characters with `?`, because they could move the cursor of a terminal or change
/// its colours.
pub(crate) fn printable(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { '?' } else { letter }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let row = |cells: &[&str]| cells.iter().map(|cell| (*cell).to_owned()).collect();
        Table {
            columns: vec![
                Column::text("algorithm"),
                Column::figures("signing", "s"),
                Column::figures("signing", "×"),
                Column::figures("a long group", "µs"),
            ],
            rows: vec![row(&["ED25519", "1.25", "1.0", "3.1"]), row(&["RSA\u{1b}[2J", "125", "99.9"])],
            legend: vec!["× against the first.".to_owned()],
        }
    }

    #[test]
    fn columns_are_aligned_and_control_characters_shown() {
        let expected = "\
             \u{20}            signing  a long group\n\
             algorithm     s    ×            µs\n\
             ──────────────────────────────────\n\
             ED25519    1.25  1.0           3.1\n\
             RSA?[2J     125 99.9\n\
             × against the first.\n";
        assert_eq!(table().to_text(), expected);
    }

    #[test]
    fn a_table_without_groups_has_one_line_of_heads() {
        let table = Table { columns: vec![Column::text("a"), Column::text("b")], ..Table::default() };
        assert_eq!(table.to_text(), "a  b\n────\n");
    }
}
