//! Pictures are well-formed, bounded, and escape all text.

use super::layout::Layout;
use super::*;

const HOSTILE: &str = "</text></style><script>alert('1')</script>&\"\u{1b}\u{0}";

fn shape(row: Row, form: Form, status: PartStatus, text: &str) -> Shape {
    Shape { form, row, lines: vec![text.to_owned(), text.to_owned()], status, tooltip: text.to_owned() }
}

/// Two zones with a shape of each kind, and arrows of each kind.
fn picture(text: &str) -> Picture {
    let key = Form::Key { is_sep: true, is_revoked: false };
    let revoked = Form::Key { is_sep: true, is_revoked: true };
    let parts =
        |shapes| ZoneBox { name: text.to_owned(), tooltip: text.to_owned(), shapes, ..ZoneBox::default() };
    let parent = parts(vec![
        shape(Row::Anchors, Form::Anchor, PartStatus::Secure, text),
        shape(Row::EntryKeys, key, PartStatus::Secure, text),
        shape(Row::EntryKeys, revoked, PartStatus::Unknown, text),
        shape(Row::Delegations, Form::Ds, PartStatus::Secure, text),
        shape(Row::Data, Form::Denial, PartStatus::Insecure, text),
    ]);
    let child = ZoneBox {
        parent: Some(0),
        status: PartStatus::Bogus,
        omitted: 3,
        ..parts(vec![
            shape(Row::EntryKeys, key, PartStatus::Bogus, text),
            shape(Row::Data, Form::Rrset, PartStatus::Bogus, text),
        ])
    };
    let shape = Place::Shape;
    let arrow = |from, to, status| Arrow { from, to, status, tooltip: text.to_owned() };
    Picture {
        title: text.to_owned(),
        zones: vec![parent, child],
        arrows: vec![
            arrow(shape(0, 0), shape(0, 1), PartStatus::Secure),
            arrow(shape(0, 1), shape(0, 1), PartStatus::Secure),
            arrow(shape(0, 1), shape(0, 2), PartStatus::Unknown),
            arrow(shape(0, 3), shape(1, 0), PartStatus::Bogus),
            arrow(Place::Zone(0), Place::Zone(1), PartStatus::Bogus),
            arrow(shape(1, 1), shape(1, 0), PartStatus::Insecure),
            // No such place.
            arrow(shape(7, 1), Place::Zone(9), PartStatus::Insecure),
        ],
        notes: vec![text.to_owned(); 40],
    }
}

/// Panics unless each start tag has its end tag, and there is no other `<`.
fn check_well_formed(svg: &str) {
    let mut open: Vec<&str> = Vec::new();
    for part in svg.split('<').skip(1) {
        let (tag, text) = part.split_once('>').expect("the tag has an end");
        let name = tag.split(' ').next().unwrap_or_default();
        assert!(name == "style" || !text.contains('>'), "{part}");
        match name.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name), "{part}"),
            None if tag.ends_with('/') => {}
            None => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn a_picture_is_a_well_formed_file_without_scripts() {
    let svg = picture("a & b").to_svg().expect("a picture");
    check_well_formed(&svg);
    assert!(svg.starts_with("<svg "), "{svg}");
    assert!(
        svg.contains("xmlns=\"http://www.w3.org/2000/svg\"") && svg.contains("prefers-color-scheme: dark")
    );
    let hostile = picture(HOSTILE).to_svg().expect("a picture");
    check_well_formed(&hostile);
    assert!(!hostile.contains("<script") && !hostile.contains('\u{1b}') && !hostile.contains('\0'));
    assert_eq!(hostile.matches("</style>").count(), 1);
}

#[test]
fn the_status_of_each_part_is_a_word_too() {
    let svg = picture("x").to_svg().expect("a picture");
    for word in ["secure", "insecure", "bogus", "not validated"] {
        assert!(svg.contains(&format!(">{word}</text>")), "{word}");
    }
    // The zone to zone arrow and the DS arrow have a mark, as has the legend.
    assert_eq!(svg.matches("✕").count(), 3);
    assert!(svg.contains("and 3 more that are not drawn"));
    // At most 16 notes.
    assert_eq!(svg.matches("• x").count(), 16);
    assert!(svg.contains("and 24 more"));
}

#[test]
fn shapes_are_within_their_zone_and_do_not_overlap() {
    let mut picture = picture(&"long name ".repeat(30));
    let many = (0..20).map(|_| shape(Row::Data, Form::Rrset, PartStatus::Secure, "another.rrset.example. A"));
    picture.zones[1].shapes.extend(many);
    let layout = Layout::new(&picture);
    for zone in &layout.zones {
        let frame = zone.frame;
        assert!(frame.x >= 0.0 && frame.x + frame.width <= layout.width && frame.bottom() <= layout.height);
        for (index, a) in zone.shapes.iter().enumerate() {
            assert!(a.x >= frame.x && a.x + a.width <= frame.x + frame.width, "{a:?} {frame:?}");
            assert!(a.y >= frame.y && a.bottom() <= frame.bottom(), "{a:?} {frame:?}");
            for b in &zone.shapes[..index] {
                let apart =
                    a.x + a.width <= b.x || b.x + b.width <= a.x || a.bottom() <= b.y || b.bottom() <= a.y;
                assert!(apart, "{a:?} {b:?}");
            }
        }
    }
    assert!(layout.zones[0].frame.bottom() < layout.zones[1].frame.y);
}

#[test]
fn a_page_has_the_picture_and_its_style() {
    use crate::report::{Block, Page, Section};
    let section = Section { title: String::new(), blocks: vec![Block::Picture(picture("x"))] };
    let page = Page { sections: vec![section], ..Page::default() }.to_html().expect("a page");
    assert!(page.contains("<svg class=\"trust\"") && page.contains(".trust .arrow"));
    // The policy of the page forbids other styles than its own.
    assert_eq!(page.matches("<style>").count(), 1);
}
