//! Maximum number of records of one type, and of types, at a name of an image.

use super::Image;
use super::node::{BLOCK_UNIT, ImageNode, block_octets};
use nonesuch_proto::{NameRef, Rtype};

/// The largest numbers of records and of types at a name, each with the first name that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Largest<'i> {
    /// Owner, type and number of records of the largest RRset. The signatures over one RRset count
    /// as an RRset.
    pub records: (NameRef<'i>, Rtype, usize),
    /// Name with the most types, and their number without RRSIG.
    pub types: (NameRef<'i>, usize),
}

impl Image {
    /// Searches all names for the largest RRset and for the name with the most types. Addresses
    /// that only referrals contain are ignored.
    #[must_use]
    pub fn largest(&self) -> Largest<'_> {
        let mut largest = Largest { records: (self.apex(), Rtype::SOA, 0), types: (self.apex(), 0) };
        for node in self.nodes() {
            let mut types = 0;
            for template in node.templates() {
                types += 1;
                let (records, signatures) = template.counts();
                for (rtype, count) in [(template.rtype(), records), (Rtype::RRSIG, signatures)] {
                    if count > largest.records.2 {
                        largest.records = (node.name(), rtype, count);
                    }
                }
            }
            if types > largest.types.1 {
                largest.types = (node.name(), types);
            }
        }
        largest
    }

    /// Iterates over all nodes in canonical order.
    pub fn nodes(&self) -> impl Iterator<Item = ImageNode<'_>> {
        let blocks = &self.sections.blocks;
        let mut at = 0;
        std::iter::from_fn(move || {
            let block = blocks.get(at..).filter(|block| !block.is_empty())?;
            let node = self.node((at / BLOCK_UNIT) as u32);
            at += block_octets(block);
            Some(node)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::Image;
    use crate::read::read_text;
    use nonesuch_proto::Rtype;
    use std::path::Path;

    #[test]
    fn the_largest_rrset_and_the_name_with_most_types_are_found() {
        let mut text = String::from("$ORIGIN example.\n$TTL 60\n@ SOA . . 1 1 1 1 1\n@ NS ns.cut\n");
        for number in 0..700 {
            text.push_str(&format!("big TXT {number}\n"));
        }
        for number in 0..300 {
            text.push_str(&format!("many TYPE{} \\# 1 00\n", 1000 + number));
            text.push_str(&format!(
                "few RRSIG TXT 13 2 60 20300101000000 20200101000000 {number} example. AAAA\n"
            ));
        }
        text.push_str("few TXT x\ncut NS ns.cut\n");
        for number in 0..800 {
            text.push_str(&format!("ns.cut AAAA 2001:db8::{number:x}\n"));
        }
        let contents = read_text(text.as_bytes(), Path::new("zone"), None).unwrap().contents;
        let image = Image::compile(&contents).unwrap();
        let largest = image.largest();
        let (owner, rtype, count) = largest.records;
        assert_eq!((owner.to_string(), rtype, count), ("big.example.".to_owned(), Rtype::TXT, 700));
        let (owner, count) = largest.types;
        assert_eq!((owner.to_string(), count), ("many.example.".to_owned(), 300));
        // Without this RRset, the signatures over another RRset are the largest RRset.
        let lines = text.lines().filter(|line| !line.starts_with("big"));
        let without: String = lines.map(|line| format!("{line}\n")).collect();
        let contents = read_text(without.as_bytes(), Path::new("zone"), None).unwrap().contents;
        let image = Image::compile(&contents).unwrap();
        let (owner, rtype, count) = image.largest().records;
        assert_eq!((owner.to_string(), rtype, count), ("few.example.".to_owned(), Rtype::RRSIG, 300));
    }
}
