//! The places of all parts of a picture: zones in rows by their depth, shapes in rows by their kind.

use super::{Arrow, Form, Picture, Place, Row, Shape, ZoneBox};

/// Width of a character of the monospaced font, in SVG units.
pub(super) const LETTER_WIDTH: f64 = 6.65;
/// Width of a character of the name of a zone.
const NAME_LETTER_WIDTH: f64 = 7.9;
/// Space between the edge of a zone and its name.
pub(super) const NAME_INDENT: f64 = 24.0;
/// Distance between lines of text.
pub(super) const LINE_HEIGHT: f64 = 14.0;
/// Maximum number of characters of a line.
pub(super) const LINE_CHARACTERS: usize = 44;
/// Maximum width of the shapes in a row of a zone, without the space around them.
const ROW_WIDTH_MAX: f64 = 1000.0;
/// Space between shapes of a row.
const SHAPE_GAP: f64 = 22.0;
/// Space between rows of shapes, for arrows.
const ROW_GAP: f64 = 40.0;
/// Space between the edge of a zone and its shapes.
const ZONE_PADDING: f64 = 18.0;
/// Space for the name of the zone.
const ZONE_HEADER: f64 = 40.0;
/// Space between zones.
const ZONE_GAP: f64 = 56.0;
/// Space at both sides of a key with an arrow to itself, so that it stays in the middle.
const LOOP_WIDTH: f64 = 26.0;
/// Space around the picture.
pub(super) const MARGIN: f64 = 14.0;
/// Minimum width of a picture, for the legend.
const WIDTH_MIN: f64 = 620.0;

/// A rectangle.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Rectangle {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) width: f64,
    pub(super) height: f64,
}

impl Rectangle {
    pub(super) fn middle(self) -> f64 {
        self.x + self.width / 2.0
    }

    pub(super) fn bottom(self) -> f64 {
        self.y + self.height
    }
}

/// A placed zone.
#[derive(Clone, Debug, Default)]
pub(super) struct PlacedZone {
    pub(super) frame: Rectangle,
    pub(super) shapes: Vec<Rectangle>,
}

/// All places.
#[derive(Clone, Debug, Default)]
pub(super) struct Layout {
    pub(super) zones: Vec<PlacedZone>,
    pub(super) width: f64,
    /// Height of the zones, without legend and notes.
    pub(super) height: f64,
}

impl Layout {
    pub(super) fn new(picture: &Picture) -> Self {
        let mut zones: Vec<PlacedZone> = picture
            .zones
            .iter()
            .enumerate()
            .map(|(index, zone)| place_shapes(picture, index, zone))
            .collect();
        let depths = depths(picture);
        let deepest = depths.iter().copied().max().unwrap_or(0);
        let rows = (0..=deepest)
            .map(|depth| (0..zones.len()).filter(|&index| depths[index] == depth).collect::<Vec<_>>());
        let rows: Vec<Vec<usize>> = rows.collect();
        let width_of = |row: &[usize]| {
            row.iter().map(|&index| zones[index].frame.width).sum::<f64>()
                + ZONE_GAP * row.len().saturating_sub(1) as f64
        };
        let width = rows.iter().map(|row| width_of(row)).fold(WIDTH_MIN, f64::max);
        let starts: Vec<f64> = rows.iter().map(|row| MARGIN + (width - width_of(row)) / 2.0).collect();
        let mut y = MARGIN;
        for (row, start) in rows.iter().zip(starts) {
            let (mut x, mut height) = (start, 0.0_f64);
            for &index in row {
                zones[index].move_by(x, y);
                x += zones[index].frame.width + ZONE_GAP;
                height = height.max(zones[index].frame.height);
            }
            y += height + ZONE_GAP;
        }
        Self { zones, width: width + 2.0 * MARGIN, height: y - ZONE_GAP + MARGIN }
    }

    /// The rectangle of a place; empty if the place does not exist.
    pub(super) fn rectangle(&self, place: Place) -> Rectangle {
        let zone = |index: usize| self.zones.get(index);
        match place {
            Place::Zone(index) => zone(index).map(|zone| zone.frame),
            Place::Shape(index, shape) => zone(index).and_then(|zone| zone.shapes.get(shape).copied()),
        }
        .unwrap_or_default()
    }

    /// The path of an arrow, and the point for its mark.
    pub(super) fn path(&self, arrow: &Arrow) -> (String, (f64, f64)) {
        let (from, to) = (self.rectangle(arrow.from), self.rectangle(arrow.to));
        if arrow.from == arrow.to {
            return own_loop(from);
        }
        if let (Place::Zone(_), Place::Zone(_)) = (arrow.from, arrow.to) {
            let (x1, x2) = (from.x + 12.0, to.x + 12.0);
            return curve((x1, from.bottom()), (x2, to.y), 0.5);
        }
        if from.bottom() <= to.y {
            curve((from.middle(), from.bottom()), (to.middle(), to.y), 0.5)
        } else if to.bottom() <= from.y {
            curve((from.middle(), from.y), (to.middle(), to.bottom()), 0.5)
        } else {
            beside(from, to)
        }
    }
}

impl PlacedZone {
    fn move_by(&mut self, x: f64, y: f64) {
        for rectangle in self.shapes.iter_mut().chain([&mut self.frame]) {
            rectangle.x += x;
            rectangle.y += y;
        }
    }
}

/// The number of zones above each zone.
fn depths(picture: &Picture) -> Vec<usize> {
    let mut depths: Vec<usize> = Vec::with_capacity(picture.zones.len());
    for zone in &picture.zones {
        let above = zone.parent.and_then(|parent| depths.get(parent));
        depths.push(above.map_or(0, |above| above + 1));
    }
    depths
}

/// The size of a shape. The status is a line of its own.
fn size(shape: &Shape) -> (f64, f64) {
    let longest = shape.lines.iter().map(|line| line.chars().count().min(LINE_CHARACTERS)).max().unwrap_or(0);
    let longest = longest.max(shape.status.name().len()) as f64;
    let lines = (shape.lines.len() + 1) as f64;
    match shape.form {
        // The text of an ellipse has to fit into its corners.
        Form::Key { .. } => (longest * LETTER_WIDTH * 1.2 + 44.0, lines * LINE_HEIGHT + 34.0),
        _ => (longest * LETTER_WIDTH + 20.0, lines * LINE_HEIGHT + 12.0),
    }
}

/// Places the shapes of a zone relative to its upper left corner.
fn place_shapes(picture: &Picture, index: usize, zone: &ZoneBox) -> PlacedZone {
    let mut placed =
        PlacedZone { frame: Rectangle::default(), shapes: vec![Rectangle::default(); zone.shapes.len()] };
    let lines = lines(picture, index, zone);
    // "zone NAME – STATUS".
    let title = zone.name.chars().count().min(LINE_CHARACTERS) + zone.status.name().len() + 8;
    let title = title as f64 * NAME_LETTER_WIDTH + 2.0 * NAME_INDENT;
    let inner = lines.iter().map(|line| line_width(line)).fold(title - ZONE_PADDING, f64::max);
    let mut y = ZONE_HEADER;
    for line in &lines {
        let mut x = ZONE_PADDING + (inner - line_width(line)) / 2.0;
        let tallest = line.iter().map(|part| part.height).fold(0.0, f64::max);
        for &SizedShape { shape, side, width, height } in line {
            placed.shapes[shape] = Rectangle { x: x + side, y: y + (tallest - height) / 2.0, width, height };
            x += width + 2.0 * side + SHAPE_GAP;
        }
        y += tallest + ROW_GAP;
    }
    let bottom = if lines.is_empty() { ZONE_HEADER } else { y - ROW_GAP + ZONE_PADDING };
    let height = bottom + if zone.omitted > 0 { LINE_HEIGHT } else { 0.0 };
    placed.frame = Rectangle { x: 0.0, y: 0.0, width: inner + 2.0 * ZONE_PADDING, height };
    placed
}

/// The size of a shape, with the space at both sides.
#[derive(Clone, Copy)]
struct SizedShape {
    shape: usize,
    side: f64,
    width: f64,
    height: f64,
}

/// The shapes of a zone in lines of limited width. Each row begins a line.
fn lines(picture: &Picture, index: usize, zone: &ZoneBox) -> Vec<Vec<SizedShape>> {
    let has_loop = |shape: usize| {
        let place = Place::Shape(index, shape);
        picture.arrows.iter().any(|arrow| arrow.from == place && arrow.to == place)
    };
    let mut lines: Vec<Vec<SizedShape>> = Vec::new();
    for row in [Row::Anchors, Row::EntryKeys, Row::Keys, Row::Data, Row::Delegations] {
        let mut line: Vec<SizedShape> = Vec::new();
        for (shape, part) in zone.shapes.iter().enumerate().filter(|(_, part)| part.row == row) {
            let (width, height) = size(part);
            let side = if has_loop(shape) { LOOP_WIDTH } else { 0.0 };
            line.push(SizedShape { shape, side, width, height });
            if line.len() > 1 && line_width(&line) > ROW_WIDTH_MAX {
                let next = line.split_off(line.len() - 1);
                lines.push(std::mem::replace(&mut line, next));
            }
        }
        if !line.is_empty() {
            lines.push(line);
        }
    }
    lines
}

fn line_width(line: &[SizedShape]) -> f64 {
    let shapes: f64 = line.iter().map(|part| part.width + 2.0 * part.side).sum();
    shapes + SHAPE_GAP * line.len().saturating_sub(1) as f64
}

/// A curve that leaves and arrives vertically.
fn curve((x1, y1): (f64, f64), (x2, y2): (f64, f64), bend: f64) -> (String, (f64, f64)) {
    let half = (y2 - y1) * bend;
    let path = format!("M{x1:.1} {y1:.1}C{x1:.1} {:.1} {x2:.1} {:.1} {x2:.1} {y2:.1}", y1 + half, y2 - half);
    (path, ((x1 + x2) / 2.0, (y1 + y2) / 2.0))
}

/// An arrow between shapes of the same row, above them.
fn beside(from: Rectangle, to: Rectangle) -> (String, (f64, f64)) {
    let (x1, x2, top) = (from.middle(), to.middle(), from.y.min(to.y));
    let high = top - 22.0;
    let path = format!("M{x1:.1} {:.1}C{x1:.1} {high:.1} {x2:.1} {high:.1} {x2:.1} {:.1}", from.y, to.y);
    (path, ((x1 + x2) / 2.0, top - 15.0))
}

/// An arrow from a shape to itself, at its right side.
fn own_loop(of: Rectangle) -> (String, (f64, f64)) {
    let (x, y) = (of.x + of.width - 4.0, of.y + of.height / 2.0);
    let far = x + LOOP_WIDTH + 6.0;
    let path = format!(
        "M{x:.1} {:.1}C{far:.1} {:.1} {far:.1} {:.1} {x:.1} {:.1}",
        y - 9.0,
        y - 24.0,
        y + 24.0,
        y + 9.0
    );
    (path, (x + LOOP_WIDTH * 0.75, y))
}
