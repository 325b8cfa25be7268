//! The largest RRset of an image, and the name with the most types, for the limits
//! `max-records-per-type` and `max-types-per-name`.

use super::Image;
use nonesuch_proto::{NameRef, Rtype};

/// The largest RRset of an image, and the name with the most types. Of several, the first one in
/// canonical order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LargestCounts<'i> {
    /// The RRset with the most records. The signatures over one RRset count as an RRset.
    pub rrset: RrsetCount<'i>,
    /// The name with the most types.
    pub types: TypeCount<'i>,
}

/// The number of records of an RRset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RrsetCount<'i> {
    /// The owner.
    pub owner: NameRef<'i>,
    /// The type.
    pub rtype: Rtype,
    /// The number of records.
    pub count: usize,
}

/// The number of types of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TypeCount<'i> {
    /// The name.
    pub owner: NameRef<'i>,
    /// The number of types, without RRSIG.
    pub count: usize,
}

impl Image {
    /// Searches all names for the largest RRset and for the name with the most types. Ignores glue.
    #[must_use]
    pub fn largest_counts(&self) -> LargestCounts<'_> {
        let owner = self.apex();
        let mut rrset = RrsetCount { owner, rtype: Rtype::SOA, count: 0 };
        let mut types = TypeCount { owner, count: 0 };
        for node in self.nodes() {
            let (owner, mut type_count) = (node.name(), 0);
            // Without glue: `templates` yields only RRsets that the node owns.
            for template in node.templates() {
                type_count += 1;
                let (records, signatures) = template.counts();
                for (rtype, count) in [(template.rtype(), records), (Rtype::RRSIG, signatures)] {
                    if count > rrset.count {
                        rrset = RrsetCount { owner, rtype, count };
                    }
                }
            }
            if type_count > types.count {
                types = TypeCount { owner, count: type_count };
            }
        }
        LargestCounts { rrset, types }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read::read_text;
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
        let LargestCounts { rrset, types } = image.largest_counts();
        let rrset = (rrset.owner.to_string(), rrset.rtype, rrset.count);
        assert_eq!(rrset, ("big.example.".to_owned(), Rtype::TXT, 700));
        assert_eq!((types.owner.to_string(), types.count), ("many.example.".to_owned(), 300));
        // Without the TXT RRset of `big`, the 300 signatures at `few` are the largest RRset.
        let lines = text.lines().filter(|line| !line.starts_with("big"));
        let without: String = lines.map(|line| format!("{line}\n")).collect();
        let contents = read_text(without.as_bytes(), Path::new("zone"), None).unwrap().contents;
        let image = Image::compile(&contents).unwrap();
        let RrsetCount { owner, rtype, count } = image.largest_counts().rrset;
        assert_eq!((owner.to_string(), rtype, count), ("few.example.".to_owned(), Rtype::RRSIG, 300));
    }
}
