//! The boxes and arrows of a chain of trust.

use super::{Chain, Data, Signature, Zone, closest, count_text};
use crate::report::{Arrow, Form, PartStatus, Picture, Place, Row, Shape, ZoneBox};
use nonesuch_crypto::{Algorithm, DigestType};
use nonesuch_dnssec::inspect::KeyInfo;
use nonesuch_dnssec::keys::{REVOKE, SEP, ds_rdata};
use nonesuch_proto::Name;

/// Maximum number of keys of a zone that are drawn.
const KEYS_MAX: usize = 8;
/// Maximum number of RRsets of a zone that are drawn.
pub(super) const DATA_MAX: usize = 12;
/// Maximum number of signatures of an RRset that are verified.
pub(super) const SIGNATURES_MAX: usize = 12;
/// Maximum number of DS records in a shape.
const DS_LINES: usize = 6;

/// The keys of a zone that are drawn, with their shapes.
struct DrawnKeys<'z> {
    keys: Vec<(&'z KeyInfo, usize)>,
}

impl Chain {
    /// Returns the picture.
    pub(super) fn to_picture(&self, title: &str) -> Picture {
        let mut names: Vec<&Name> = self.zones.keys().collect();
        names.sort_by_key(|name| (name.view().label_count(), (*name).clone()));
        let mut picture = Picture { title: title.to_owned(), ..Picture::default() };
        let index_of = |name: &Name| names.iter().position(|known| **known == name.view().to_canonical());
        for name in &names {
            let parent = name.view().parent().and_then(|above| closest(&self.zones, above));
            let parent = parent.and_then(|parent| index_of(&parent));
            picture.zones.push(ZoneBox { name: name.to_string(), parent, ..ZoneBox::default() });
        }
        let mut drawn = Vec::new();
        for (index, name) in names.iter().enumerate() {
            drawn.push(draw_zone(&mut picture, index, &self.zones[*name]));
        }
        for (index, name) in names.iter().enumerate() {
            let zone = &self.zones[*name];
            draw_delegation(&mut picture, (index, name), zone, &drawn);
            draw_data(&mut picture, index, zone, &drawn[index]);
            push_notes(&mut picture, name, zone);
        }
        picture
    }
}

/// Draws the box, the trust anchor and the keys of a zone.
fn draw_zone<'z>(picture: &mut Picture, index: usize, zone: &'z Zone) -> DrawnKeys<'z> {
    let is_entry = |key: &KeyInfo| {
        zone.entry_keys.contains(&(key.tag, key.algorithm))
            || zone.key_signatures.iter().any(|signature| signature.is_by(key))
    };
    let mut keys: Vec<&KeyInfo> = zone.keys.iter().collect();
    keys.sort_by_key(|key| (!is_entry(key), key.tag));
    let omitted = keys.len().saturating_sub(KEYS_MAX);
    keys.truncate(KEYS_MAX);
    let part = &mut picture.zones[index];
    (part.status, part.omitted) = (zone.status, omitted + zone.omitted);
    part.tooltip = sentence(&format!("zone {}: {}", part.name, zone.status.name()), &zone.reason);
    let has_anchor = zone.delegation.is_none() && !zone.entry_keys.is_empty();
    if has_anchor {
        let lines = vec!["trust anchor".to_owned()];
        let tooltip = "the validation begins at this trust anchor".to_owned();
        let (form, row, status) = (Form::Anchor, Row::Anchors, PartStatus::Secure);
        part.shapes.push(Shape { form, row, lines, status, tooltip });
    }
    let mut drawn = DrawnKeys { keys: Vec::new() };
    for key in keys {
        drawn.keys.push((key, part.shapes.len()));
        let row = if is_entry(key) { Row::EntryKeys } else { Row::Keys };
        part.shapes.push(key_shape(key, row, zone.status));
    }
    if has_anchor {
        for (key, shape) in &drawn.keys {
            if zone.entry_keys.contains(&(key.tag, key.algorithm)) {
                let (from, to) = (Place::Shape(index, 0), Place::Shape(index, *shape));
                let tooltip = format!("the trust anchor names key {}", key.tag);
                picture.arrows.push(Arrow { from, to, status: PartStatus::Secure, tooltip });
            }
        }
    }
    draw_key_signatures(picture, index, zone, &drawn);
    drawn
}

/// Draws the signatures over the DNSKEY RRset: an arrow to the key itself, and to each key that does not sign
/// the RRset.
fn draw_key_signatures(picture: &mut Picture, index: usize, zone: &Zone, drawn: &DrawnKeys<'_>) {
    for signature in &zone.key_signatures {
        let Some((_, signer)) = drawn.find(signature) else { continue };
        let signs = |key: &KeyInfo| zone.key_signatures.iter().any(|other| other.is_by(key));
        for (key, shape) in &drawn.keys {
            if *shape == signer || !signs(key) {
                let (from, to) = (Place::Shape(index, signer), Place::Shape(index, *shape));
                picture.arrows.push(signature.arrow(from, to, "the DNSKEY RRset"));
            }
        }
    }
}

/// Draws the DS RRset of a zone in its parent, or the denial of it, with arrows to the zone.
fn draw_delegation(
    picture: &mut Picture,
    (index, name): (usize, &Name),
    zone: &Zone,
    drawn: &[DrawnKeys<'_>],
) {
    let Some(parent) = picture.zones[index].parent else { return };
    let (status, words) = delegation_status(zone);
    let tooltip = sentence(&format!("delegation of {name}: {words}"), &zone.reason);
    picture.arrows.push(Arrow { from: Place::Zone(parent), to: Place::Zone(index), status, tooltip });
    let Some(data) = &zone.delegation else { return };
    let place = Place::Shape(parent, picture.zones[parent].shapes.len());
    picture.zones[parent].shapes.push(delegation_shape(data, zone));
    for signature in &data.signatures {
        if let Some((_, signer)) = drawn[parent].find(signature) {
            picture.arrows.push(signature.arrow(Place::Shape(parent, signer), place, &data.what()));
        }
    }
    if data.is_denial {
        let tooltip = format!("{name} has no DS records");
        let (from, to, status) = (place, Place::Zone(index), PartStatus::Insecure);
        picture.arrows.push(Arrow { from, to, status, tooltip });
        return;
    }
    let mut has_key = false;
    for ds in zone.ds.iter().take(DS_LINES) {
        has_key |= draw_ds(picture, place, (index, name), ds, &drawn[index]);
    }
    if !has_key {
        let tooltip = format!("no DNSKEY record of {name} has the key tag and algorithm of a DS record");
        let (from, to, status) = (place, Place::Zone(index), zone.status.max(PartStatus::Insecure));
        picture.arrows.push(Arrow { from, to, status, tooltip });
    }
}

/// Draws the arrows of one DS record to the keys with its tag and algorithm. Returns whether
/// there is one.
fn draw_ds(
    picture: &mut Picture,
    from: Place,
    (index, name): (usize, &Name),
    ds: &[u8],
    drawn: &DrawnKeys<'_>,
) -> bool {
    let &[high, low, algorithm, digest_type, ..] = ds else { return false };
    let (tag, digest_type) = (u16::from_be_bytes([high, low]), DigestType(digest_type));
    let mut has_key = false;
    for (key, shape) in &drawn.keys {
        if key.tag != tag || key.algorithm != Algorithm(algorithm) {
            continue;
        }
        has_key = true;
        let to = Place::Shape(index, *shape);
        let digest = ds_rdata(name.view(), &key.rdata, digest_type);
        let (status, tooltip) = match digest {
            Some(digest) if digest == ds => {
                (PartStatus::Secure, format!("DS record {tag} has the {digest_type} digest of this key"))
            }
            Some(_) => (
                PartStatus::Bogus,
                format!("DS record {tag} has a {digest_type} digest that is not that of this key"),
            ),
            None => {
                (PartStatus::Unknown, format!("DS record {tag} has the unknown digest type {digest_type}"))
            }
        };
        picture.arrows.push(Arrow { from, to, status, tooltip });
    }
    has_key
}

/// Draws the RRsets of a zone with their signatures.
fn draw_data(picture: &mut Picture, index: usize, zone: &Zone, drawn: &DrawnKeys<'_>) {
    for data in &zone.data {
        let place = Place::Shape(index, picture.zones[index].shapes.len());
        let form = if data.is_denial { Form::Denial } else { Form::Rrset };
        let tooltip = sentence(&format!("{}: {}", data.what(), data.status.name()), &data.reason);
        let (row, lines, status) = (Row::Data, data.lines.clone(), data.status);
        picture.zones[index].shapes.push(Shape { form, row, lines, status, tooltip });
        for signature in &data.signatures {
            if let Some((_, signer)) = drawn.find(signature) {
                picture.arrows.push(signature.arrow(Place::Shape(index, signer), place, &data.what()));
            }
        }
    }
}

fn key_shape(key: &KeyInfo, row: Row, status: PartStatus) -> Shape {
    let KeyInfo { tag, algorithm, flags, bits, .. } = key;
    let mut lines = vec![format!("DNSKEY {flags}, tag {tag}"), algorithm.to_string()];
    let (is_sep, is_revoked) = (flags & SEP != 0, flags & REVOKE != 0);
    let words = [(is_sep, "SEP"), (is_revoked, "revoked")];
    let words: Vec<&str> = words.into_iter().filter(|(has, _)| *has).map(|(_, word)| word).collect();
    if !words.is_empty() {
        lines.push(words.join(", "));
    }
    let bits = bits.map_or_else(|| "not supported".to_owned(), |bits| format!("{bits} bits"));
    let tooltip = format!(
        "DNSKEY record with flags {flags}, algorithm {} ({algorithm}), key tag {tag}, {bits}",
        algorithm.0
    );
    Shape { form: Form::Key { is_sep, is_revoked }, row, lines, status, tooltip }
}

/// The shape of a DS RRset or of its denial, in the parent.
fn delegation_shape(data: &Data, child: &Zone) -> Shape {
    let mut lines = data.lines.clone();
    let form = if data.is_denial { Form::Denial } else { Form::Ds };
    if !data.is_denial {
        lines = vec![format!("DS {}", data.owner)];
        lines.extend(child.ds.iter().take(DS_LINES).filter_map(|ds| ds_line(ds)));
        let others = child.ds.len().saturating_sub(DS_LINES);
        lines.extend((others > 0).then(|| format!("and {}", count_text(others, "other"))));
    }
    let tooltip = sentence(&format!("{}: {}", data.what(), data.status.name()), &data.reason);
    Shape { form, row: Row::Delegations, lines, status: data.status, tooltip }
}

fn ds_line(ds: &[u8]) -> Option<String> {
    let [high, low, algorithm, digest_type, ..] = ds else { return None };
    let (tag, algorithm) = (u16::from_be_bytes([*high, *low]), Algorithm(*algorithm));
    Some(format!("tag {tag}, {algorithm}, {}", DigestType(*digest_type)))
}

/// The status of a delegation, in one word and in words.
fn delegation_status(zone: &Zone) -> (PartStatus, &'static str) {
    match (&zone.delegation, zone.status) {
        (Some(data), _) if data.status == PartStatus::Bogus => (PartStatus::Bogus, "the DS RRset is bogus"),
        (Some(data), _) if data.is_denial && data.status == PartStatus::Secure => {
            (PartStatus::Insecure, "insecure, without DS records")
        }
        (Some(_), PartStatus::Secure) => (PartStatus::Secure, "secure"),
        (Some(_), PartStatus::Bogus) => (PartStatus::Bogus, "bogus"),
        (Some(_), PartStatus::Insecure) => (PartStatus::Insecure, "insecure"),
        (None, PartStatus::Insecure) => (PartStatus::Insecure, "below an insecure zone"),
        _ => (PartStatus::Unknown, "not validated"),
    }
}

/// Adds the reasons of everything in a zone that is not secure.
fn push_notes(picture: &mut Picture, name: &Name, zone: &Zone) {
    let mut notes = Vec::new();
    if zone.status != PartStatus::Secure && !zone.reason.is_empty() {
        notes.push(format!("zone {name} is {}: {}", zone.status.name(), zone.reason));
    }
    let faulty = |data: &&Data| data.status != PartStatus::Secure && !data.reason.is_empty();
    for data in zone.delegation.iter().chain(&zone.data).filter(faulty) {
        notes.push(format!("{} is {}: {}", data.what(), data.status.name(), data.reason));
    }
    let signed = zone.data.iter().chain(&zone.delegation).map(|data| (data.what(), &data.signatures));
    let keys = (format!("the DNSKEY RRset of {name}"), &zone.key_signatures);
    for (what, signatures) in signed.chain([keys]) {
        for signature in signatures {
            if let Some(fault) = &signature.fault {
                notes.push(format!("the signature over {what} by key {} {fault}", signature.tag));
            }
        }
    }
    for note in notes {
        if !picture.notes.contains(&note) {
            picture.notes.push(note);
        }
    }
}

impl Signature {
    fn is_by(&self, key: &KeyInfo) -> bool {
        (key.tag, key.algorithm) == (self.tag, self.algorithm)
    }

    fn arrow(&self, from: Place, to: Place, what: &str) -> Arrow {
        let (tag, algorithm) = (self.tag, self.algorithm);
        let (status, result) = match &self.fault {
            None => (PartStatus::Secure, "is valid".to_owned()),
            Some(super::SignatureFault::UnsupportedKey) => {
                (PartStatus::Unknown, "was not verified: its algorithm is not supported".to_owned())
            }
            Some(fault) => (PartStatus::Bogus, fault.to_string()),
        };
        let tooltip = format!("the signature over {what} by key {tag} ({algorithm}) {result}");
        Arrow { from, to, status, tooltip }
    }
}

impl DrawnKeys<'_> {
    /// The key of a signature, and its shape.
    fn find(&self, signature: &Signature) -> Option<(&KeyInfo, usize)> {
        self.keys.iter().find(|(key, _)| signature.is_by(key)).map(|(key, shape)| (*key, *shape))
    }
}

impl Data {
    fn what(&self) -> String {
        if self.is_denial { self.lines.join(": ") } else { format!("{} {}", self.owner, self.rtype) }
    }
}

fn sentence(start: &str, reason: &str) -> String {
    if reason.is_empty() { start.to_owned() } else { format!("{start}: {reason}") }
}
