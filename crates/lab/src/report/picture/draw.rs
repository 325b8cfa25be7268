//! The variables of the template `picture.svg`.

use super::layout::{LETTER_WIDTH, LINE_CHARACTERS, LINE_HEIGHT, Layout, MARGIN, NAME_INDENT, Rectangle};
use super::{Arrow, Form, PartStatus, Picture, Shape, ZoneBox};
use minijinja::context;
use minijinja::value::Value;

/// The style sheet of pictures, alone or in a page.
pub(in crate::report) const STYLE: &str = include_str!("../picture.css");

/// Maximum number of characters of a tooltip or note.
const TEXT_CHARACTERS: usize = 500;
/// Maximum number of notes that are drawn.
const NOTES_MAX: usize = 16;
/// Distance between the lines of notes and legend.
const NOTE_HEIGHT: f64 = 16.0;
/// The entries of the legend: class, and text.
const LEGEND: [(&str, &str); 4] = [
    ("secure", "solid line: verified"),
    ("insecure", "dashed line: insecure (outside the chain of trust)"),
    ("unknown", "dash-dotted line: not validated"),
    ("bogus", "dotted line with cross: bogus"),
];

impl Picture {
    /// Returns the picture as variables of its template.
    pub(in crate::report) fn template_variables(&self) -> Value {
        let layout = Layout::new(self);
        let zones = self.zones.iter().zip(&layout.zones);
        let zones = zones.map(|(zone, placed)| zone_value(zone, placed.frame, &placed.shapes));
        let arrows = self.arrows.iter().map(|arrow| arrow_value(arrow, &layout));
        let notes = self.note_lines(layout.width);
        let legend_at = layout.height + 6.0;
        let notes_at = legend_at + LEGEND.len() as f64 * NOTE_HEIGHT + 10.0;
        let legend = LEGEND.into_iter().enumerate().map(|(place, (class, text))| {
            context! { class, text, x => MARGIN, y => legend_at + (place as f64 + 0.5) * NOTE_HEIGHT }
        });
        let lines = notes.iter().enumerate().map(|(place, text)| {
            context! { text, x => MARGIN, y => notes_at + (place as f64 + 0.5) * NOTE_HEIGHT }
        });
        context! {
            title => shortened(&self.title, TEXT_CHARACTERS),
            width => layout.width.ceil() as u32,
            height => (notes_at + notes.len() as f64 * NOTE_HEIGHT + MARGIN).ceil() as u32,
            zones => zones.collect::<Vec<_>>(),
            arrows => arrows.collect::<Vec<_>>(),
            legend => legend.collect::<Vec<_>>(),
            notes => lines.collect::<Vec<_>>(),
        }
    }

    /// The notes in lines that fit the width.
    fn note_lines(&self, width: f64) -> Vec<String> {
        let characters = ((width - 2.0 * MARGIN) / LETTER_WIDTH).max(20.0) as usize;
        let mut lines = Vec::new();
        for note in self.notes.iter().take(NOTES_MAX) {
            let wrapped = wrap(&shortened(note, TEXT_CHARACTERS), characters - 2);
            let marked = wrapped.into_iter().enumerate();
            lines
                .extend(marked.map(|(place, line)| format!("{} {line}", if place == 0 { '•' } else { ' ' })));
        }
        let omitted = self.notes.len().saturating_sub(NOTES_MAX);
        if omitted > 0 {
            lines.push(format!("and {omitted} more"));
        }
        lines
    }
}

/// A zone with its shapes.
fn zone_value(zone: &ZoneBox, frame: Rectangle, places: &[Rectangle]) -> Value {
    let shapes = zone.shapes.iter().zip(places).map(|(shape, place)| shape_value(shape, *place));
    context! {
        name => shortened(&zone.name, LINE_CHARACTERS),
        status => zone.status.name(),
        class => zone.status.class(),
        tooltip => shortened(&zone.tooltip, TEXT_CHARACTERS),
        shapes => shapes.collect::<Vec<_>>(),
        omitted => zone.omitted,
        omitted_at => frame.bottom() - 10.0,
        name_at => frame.x + NAME_INDENT,
        ..rectangle_value(frame)
    }
}

fn rectangle_value(Rectangle { x, y, width, height }: Rectangle) -> Value {
    context! { x, y, width, height, middle_x => x + width / 2.0, middle_y => y + height / 2.0,
    radius_x => width / 2.0, radius_y => height / 2.0 }
}

fn shape_value(shape: &Shape, place: Rectangle) -> Value {
    let texts = shape.lines.iter().map(|line| shortened(line, LINE_CHARACTERS));
    let texts: Vec<String> = texts.chain([shape.status.name().to_owned()]).collect();
    let first = place.y + place.height / 2.0 - (texts.len() - 1) as f64 * LINE_HEIGHT / 2.0;
    let count = texts.len();
    let lines = texts.into_iter().enumerate().map(|(index, text)| {
        let class = if index + 1 == count { "word" } else { "label" };
        context! { text, class, y => first + index as f64 * LINE_HEIGHT }
    });
    let (kind, is_revoked) = match shape.form {
        Form::Anchor => ("anchor", false),
        Form::Key { is_sep, is_revoked } => (if is_sep { "sep" } else { "key" }, is_revoked),
        Form::Ds => ("ds", false),
        Form::Rrset => ("rrset", false),
        Form::Denial => ("denial", false),
    };
    context! {
        kind,
        is_revoked,
        class => shape.status.class(),
        tooltip => shortened(&shape.tooltip, TEXT_CHARACTERS),
        lines => lines.collect::<Vec<_>>(),
        ..rectangle_value(place)
    }
}

fn arrow_value(arrow: &Arrow, layout: &Layout) -> Value {
    let (path, (x, y)) = layout.path(arrow);
    let is_between_zones = matches!((arrow.from, arrow.to), (super::Place::Zone(_), super::Place::Zone(_)));
    context! {
        path, x, y,
        class => arrow.status.class(),
        is_thick => is_between_zones,
        is_bogus => arrow.status == PartStatus::Bogus,
        tooltip => shortened(&arrow.tooltip, TEXT_CHARACTERS),
    }
}

/// The text, cut to a number of characters.
fn shortened(text: &str, characters: usize) -> String {
    if text.chars().count() <= characters {
        return text.to_owned();
    }
    text.chars().take(characters.saturating_sub(1)).chain(['…']).collect()
}

/// The text in lines of at most this number of characters, broken at spaces where there are any.
fn wrap(text: &str, characters: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let mut word: Vec<char> = word.chars().collect();
        loop {
            let line = lines.last_mut().expect("there is at least one line");
            let used = line.chars().count();
            let space = usize::from(used > 0);
            if used + space + word.len() <= characters {
                line.extend(std::iter::repeat_n(' ', space).chain(word));
                break;
            }
            if used > 0 {
                lines.push(String::new());
                continue;
            }
            let rest = word.split_off(characters.min(word.len()));
            line.extend(word);
            word = rest;
            lines.push(String::new());
        }
    }
    lines
}
