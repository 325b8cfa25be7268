//! Size limits of RRsets: each RRset must fit in a message.

use crate::builder::ZoneFault;
use crate::contents::{Contents, Node, Rrset};
use crate::image::rendered_octets;
use nonesuch_proto::edns::OPT_OCTETS;
use nonesuch_proto::message::HEADER;
use nonesuch_proto::{NameRef, Rtype, rdata};

/// Maximum size of a message in octets (RFC 1035 §4.2.2).
pub const MAX_MESSAGE: usize = 65_535;
/// Octets of a record without its RDATA, if the owner is a compression pointer.
const RECORD_OCTETS: usize = 12;
/// Octets of the type and the class in the question section.
const QUESTION_OCTETS: usize = 4;

/// Returns the size in octets of the smallest response with an RRset and its signatures: the
/// header, the question, these records with `record_octets` in total, and with signatures the OPT
/// record, because only queries with EDNS request signatures.
const fn message_octets(owner: NameRef<'_>, record_octets: usize, is_signed: bool) -> usize {
    HEADER + owner.len() + QUESTION_OCTETS + record_octets + if is_signed { OPT_OCTETS } else { 0 }
}

/// Checks that an RRset fits in a message together with the signatures over it. `records` has the
/// RDATA of each record of the RRset. `signatures` has the length in octets of the RDATA of each
/// RRSIG record. For the RRsets of [`Contents`], use [`Contents::check_sizes`].
///
/// # Errors
/// [`ZoneFault::RrsetTooLarge`] if it does not fit.
pub fn check_rrset<'r>(
    owner: NameRef<'_>,
    apex: NameRef<'_>,
    rtype: Rtype,
    records: impl Iterator<Item = &'r [u8]> + Clone,
    signatures: impl Iterator<Item = usize>,
) -> Result<(), ZoneFault> {
    let (mut signature_octets, mut is_signed) = (0, false);
    for octets in signatures {
        signature_octets += RECORD_OCTETS + octets;
        is_signed = true;
    }
    let data_octets = records.clone().map(|record| RECORD_OCTETS + record.len()).sum::<usize>();
    if message_octets(owner, data_octets + signature_octets, is_signed) <= MAX_MESSAGE {
        return Ok(());
    }
    // A message compresses names in the RDATA of some types (RFC 3597 §4). Only for these types,
    // the RRset takes fewer octets than the sum above.
    let is_compressed =
        records.clone().next().is_some_and(|record| rdata::names(rtype, record).any(|name| name.compress));
    let octets = if is_compressed { rendered_octets(owner, apex, rtype, records) } else { data_octets };
    let octets = message_octets(owner, octets + signature_octets, is_signed);
    if octets <= MAX_MESSAGE {
        return Ok(());
    }
    Err(ZoneFault::RrsetTooLarge { owner: owner.to_name(), rtype, octets, is_signed })
}

/// Returns the fault for the first RRset of `node` that does not fit in a message with its
/// signatures.
pub(crate) fn find_oversized(node: Node<'_>, apex: NameRef<'_>) -> Option<ZoneFault> {
    // Fast path, for almost all names: all records of the name fit in half of a message, and the
    // other half has space for the header, the question and the OPT record.
    if node.rdata_octets() + node.record_count() * RECORD_OCTETS <= MAX_MESSAGE / 2 {
        return None;
    }
    let is_signature = |rrset: &Rrset<'_>| rrset.rtype() == Rtype::RRSIG;
    // The check of an RRset includes the signatures that cover it. Signatures over an RRset that
    // does not exist are checked like an RRset.
    let covers_existing = |rrset: &Rrset<'_>| rrset.covered() != Rtype::RRSIG && node.has(rrset.covered());
    let mut counted = node.rrsets().filter(|rrset| !(is_signature(rrset) && covers_existing(rrset)));
    counted.find_map(|rrset| {
        let signatures = node.signatures(rrset.rtype()).filter(|_| !is_signature(&rrset));
        let signatures = signatures.into_iter().flat_map(Rrset::rdatas).map(<[u8]>::len);
        check_rrset(node.name(), apex, rrset.rtype(), rrset.rdatas(), signatures).err()
    })
}

impl Contents {
    /// Checks that each RRset fits in a message with its signatures. The reader of zone files
    /// checks this; code that builds contents in another way must call this function.
    ///
    /// # Errors
    /// [`ZoneFault::RrsetTooLarge`] for the first RRset that does not fit.
    pub fn check_sizes(&self) -> Result<(), ZoneFault> {
        let fault = self.nodes().find_map(|node| find_oversized(node, self.apex().view()));
        fault.map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use crate::builder::ZoneFault;
    use crate::read::read_text;
    use crate::{Contents, ReadError, ReadFault};
    use nonesuch_proto::Rtype;
    use std::path::Path;

    const HEAD: &str = "$ORIGIN example.\n$TTL 60\n@ SOA . . 1 1 1 1 1\n@ NS .\n";

    fn read(rest: &str) -> Result<Contents, ReadError> {
        let text = format!("{HEAD}{rest}");
        read_text(text.as_bytes(), Path::new("big.zone"), None).map(|read| read.contents)
    }

    /// Returns TXT records that take `octets` octets in a message: records with 12 + 1 + 244
    /// octets, and one with the remaining octets.
    fn texts(owner: &str, octets: usize) -> String {
        let (mut text, mut left, mut number) = (String::new(), octets, 0);
        while left > 0 {
            let take = if left >= 257 + 18 { 257 } else { left };
            text.push_str(&format!("{owner} TXT \"{number:05}{}\"\n", "x".repeat(take - 18)));
            (left, number) = (left - take, number + 1);
        }
        text
    }

    /// Octets of the header and of the question for t.example.
    const AROUND: usize = 12 + 11 + 4;

    #[test]
    fn an_rrset_can_fill_a_message_but_not_exceed_it() {
        assert!(read(&texts("t", 65_535 - AROUND)).is_ok());
        let error = read(&texts("t", 65_536 - AROUND)).expect_err("too large");
        assert_eq!((error.file.as_path(), error.line), (Path::new("big.zone"), 5));
        let ReadFault::Zone(ZoneFault::RrsetTooLarge { owner, rtype, octets, is_signed: false }) =
            &error.fault
        else {
            panic!("{error}");
        };
        assert_eq!((owner.to_string(), *rtype, *octets), ("t.example.".to_owned(), Rtype::TXT, 65_536));
        assert_eq!(
            error.fault.to_string(),
            "t.example.: the TXT records take a message of 65536 octets, but the maximum is 65535 (RFC 1035 \
             section 4.2.2): remove some, or distribute them over several names"
        );
    }

    #[test]
    fn the_size_includes_signatures_and_opt_but_not_duplicates() {
        let rrsig = "t RRSIG TXT 13 2 60 20300101000000 20200101000000 1 example. AAAA\n";
        // RRSIG: 18 octets, the signer's name and the signature.
        let signature = 12 + 18 + 9 + 3;
        let room = 65_535 - AROUND - signature - 11;
        assert!(read(&format!("{}{rrsig}", texts("t", room))).is_ok());
        assert!(read(&texts("t", room + 1)).is_ok());
        let error = read(&format!("{}{rrsig}", texts("t", room + 1))).expect_err("too large");
        let ReadFault::Zone(ZoneFault::RrsetTooLarge { octets, is_signed: true, .. }) = error.fault else {
            panic!("{error}");
        };
        assert!(octets > 65_535, "{octets}");
        let half = texts("t", 40_000);
        assert!(read(&format!("{half}{half}")).is_ok(), "each record counts once");
        let two = format!("{}{}", texts("t", 40_000), texts("u", 40_000));
        assert!(read(&two).is_ok(), "each RRset counts alone");
    }

    #[test]
    fn signatures_without_their_rrset_are_limited_too() {
        let signature = data_encoding::BASE64.encode(&[7; 60_000]);
        let set = |number: u8| {
            format!("t RRSIG TXT {number} 2 60 20300101000000 20200101000000 1 example. {signature}\n")
        };
        assert!(read(&set(13)).is_ok());
        assert!(read(&format!("{}{}", set(13), set(14))).is_err());
    }

    /// NS records have compressed names in a message. Each of these records takes 20 octets with
    /// compression and 91 octets without: 3,000 records fit in a message, 4,000 do not.
    #[test]
    fn the_size_of_compressible_names_is_their_compressed_size() {
        let names = |count: usize| -> String {
            let suffix = "a-long-label-that-all-of-these-names-have-in-common-with-others";
            (0..count).map(|number| format!("cut NS n{number:04}.{suffix}\n")).collect()
        };
        assert!(read(&names(3000)).is_ok());
        assert!(read(&names(4000)).is_err());
    }
}
