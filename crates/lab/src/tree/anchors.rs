//! Root hints, and the trust anchor of the root in the forms of several resolvers.

use super::data::rdata_text;
use super::{Tree, TreeZone};
use data_encoding::{BASE64, HEXUPPER};
use nonesuch_crypto::DigestType;
use nonesuch_dnssec::keys::ds_rdata;
use nonesuch_proto::Rtype;
use std::fmt::Write as _;

/// The form of a trust anchor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AnchorForm {
    /// DS records, as in a zone file.
    Ds,
    /// DNSKEY records, as in a zone file.
    Dnskey,
    /// Statement `trust-anchors` of `named.conf`, with `static-ds`.
    Bind,
    /// Statement `trust-anchors` of `named.conf`, with `static-key`.
    BindKey,
    /// Lines `trust-anchor:` of the section `server:` of `unbound.conf`.
    Unbound,
    /// Lua configuration of Knot Resolver 5.
    KnotResolver,
    /// Lua configuration of PowerDNS Recursor.
    PowerDnsRecursor,
}

impl AnchorForm {
    /// All forms, with the name of the file in a written tree.
    pub const FILES: [(Self, &'static str); 7] = [
        (Self::Ds, "anchor.ds"),
        (Self::Dnskey, "anchor.dnskey"),
        (Self::Bind, "anchor.bind.conf"),
        (Self::BindKey, "anchor.bind-key.conf"),
        (Self::Unbound, "anchor.unbound.conf"),
        (Self::KnotResolver, "anchor.knot-resolver.lua"),
        (Self::PowerDnsRecursor, "anchor.recursor.lua"),
    ];
}

impl Tree {
    /// The zone of the root.
    fn root(&self) -> Option<&TreeZone> {
        self.zones.iter().find(|zone| zone.parent.is_none())
    }

    /// RDATA of the DS records (SHA-256) of the root; empty if the root is not signed.
    #[must_use]
    pub fn anchor_ds(&self) -> Vec<Vec<u8>> {
        let ds = |root: &TreeZone, key: &Vec<u8>| ds_rdata(root.origin.view(), key, DigestType::SHA256);
        let roots = self.root().into_iter();
        roots.flat_map(|root| root.entry_points.iter().filter_map(|key| ds(root, key))).collect()
    }

    /// The trust anchor of the root as a text in this form. Without records if the root is not
    /// signed.
    #[must_use]
    pub fn anchors(&self, form: AnchorForm) -> String {
        let is_key = matches!(form, AnchorForm::Dnskey | AnchorForm::BindKey);
        let keys = || self.root().map(|root| root.entry_points.clone()).unwrap_or_default();
        let records = if is_key { keys() } else { self.anchor_ds() };
        let lines = records.iter().map(|rdata| anchor_line(form, rdata) + "\n").collect::<String>();
        match form {
            AnchorForm::Bind | AnchorForm::BindKey => format!("trust-anchors {{\n{lines}}};\n"),
            AnchorForm::Unbound => format!("server:\n{lines}"),
            _ => lines,
        }
    }

    /// The root hints (RFC 9609), as a zone file.
    #[must_use]
    pub fn root_hints(&self) -> String {
        let mut text = String::new();
        if let Some(root) = self.root() {
            let (name, address) = (&root.nameserver, root.server);
            // Writing to a `String` cannot fail.
            let _ = write!(text, ". 3600000 IN NS {name}\n{name} 3600000 IN A {address}\n");
        }
        text
    }
}

/// The line for one record of a trust anchor, from its DS or DNSKEY RDATA.
fn anchor_line(form: AnchorForm, rdata: &[u8]) -> String {
    // DS and DNSKEY RDATA begin with two octets and two numbers of one octet.
    let (number, first, second) = (u16::from_be_bytes([rdata[0], rdata[1]]), rdata[2], rdata[3]);
    let hex = HEXUPPER.encode(&rdata[4..]);
    let ds = format!("{number} {first} {second} {hex}");
    match form {
        AnchorForm::Ds => format!(". 3600 IN DS {ds}"),
        AnchorForm::Dnskey => format!(". 3600 IN DNSKEY {}", rdata_text(Rtype::DNSKEY, rdata)),
        AnchorForm::Bind => format!("    . static-ds {number} {first} {second} \"{hex}\";"),
        AnchorForm::BindKey => {
            format!("    . static-key {number} {first} {second} \"{}\";", BASE64.encode(&rdata[4..]))
        }
        AnchorForm::Unbound => format!("    trust-anchor: \". DS {ds}\""),
        AnchorForm::KnotResolver => format!("trust_anchors.add('. DS {ds}')"),
        AnchorForm::PowerDnsRecursor => format!("addTA('.', \"{ds}\")"),
    }
}
