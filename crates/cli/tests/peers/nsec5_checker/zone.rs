//! A zone signed with NSEC5 by the command under test, and all its private keys, so that the test
//! can sign modified records.

use super::common::{done, folder, generate_key, text};
use data_encoding::BASE32HEX_NOPAD;
use nonesuch_crypto::vrf::VrfPrivateKey;
use nonesuch_dnssec::KeyPair;
use nonesuch_dnssec::keys::Nsec5Key;
use nonesuch_dnssec::rrsig::{Rrsig, push_signed_data};
use nonesuch_proto::message::{Record, Section};
use nonesuch_proto::{Class, Name, NameRef, Rtype, rdata};
use nonesuch_zone::{Contents, Node};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// The apex of [`EVERY_ANSWER`].
pub(crate) const ORIGIN: &str = "checked.example.";

/// Every kind of response: wildcards, including an empty non-terminal and an alias; empty
/// non-terminals, including one above only an unsigned delegation; secure and insecure delegations;
/// aliases with existing and missing targets; DNAMEs.
pub(crate) const EVERY_ANSWER: &str = "$ORIGIN checked.example.\n$TTL 3600\n@ SOA ns1 hostmaster 7 3600 300 3600000 900\n@ NS ns1\n\
    @ MX 1 ns1\nns1 A 192.0.2.1\nwww A 192.0.2.2\nwww AAAA 2001:db8::2\nMixed.Case TXT \"t\"\n\
    @ HTTPS 1 WWW\n_tlsa.www TLSA 3 1 1 00ff\nwww SSHFP 4 2 00ff\n*.w SVCB 1 Exact.W alpn=h2\nMixed.Case TYPE4711 \\# 3 4A00ff\na.b.ent TXT \"t\"\n\
    *.w MX 1 ns1\n*.w TXT \"w\"\nexact.w A 192.0.2.3\nbelow.exact.w TXT \"b\"\n*.c CNAME www\n*.n CNAME gone.checked.example.\n\
    a.*.hollow TXT \"t\"\nalias CNAME www\nchained CNAME alias\nlost CNAME gone\nbare CNAME b.ent\nwild CNAME x.y.w\nfar CNAME www.test.\n\
    tree DNAME w\nlimb DNAME ent\nroot DNAME elsewhere.test.\nd NS ns.d\nns.d A 192.0.2.9\nun.lone NS ns.elsewhere.test.\n\
    s NS ns.elsewhere.test.\ns DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000001\n";

/// A VRF, a signature algorithm, a mechanism.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kind {
    pub(crate) vrf: &'static str,
    pub(crate) algorithm: &'static str,
    pub(crate) mechanism: &'static str,
}

/// A VRF hash and the RDATA of the NSEC5PROOF record that proves it.
type Proof = ([u8; 32], Vec<u8>);

/// The zone, its keys, its names.
pub(crate) struct Zone {
    pub(crate) kind: Kind,
    pub(crate) apex: Name,
    pub(crate) contents: Contents,
    /// Signs all RRsets.
    pub(crate) signer: KeyPair,
    /// A key with the original algorithm number, which all validators know.
    pub(crate) plain: KeyPair,
    pub(crate) vrf: VrfPrivateKey,
    /// Another VRF key of the same algorithm.
    pub(crate) other_vrf: VrfPrivateKey,
    pub(crate) now: u32,
    /// Existing names in lower case, including empty non-terminals, without names below a zone cut
    /// or a DNAME.
    names: BTreeSet<Name>,
    /// Owners of the NSEC5 records, in the order of their hashes.
    chain: BTreeSet<Name>,
    /// By key tag and name.
    proofs: RefCell<BTreeMap<(u16, Name), Proof>>,
    pub(crate) file: PathBuf,
    /// The directory of the VRF key and the proofs.
    pub(crate) secrets: PathBuf,
    _folder: tempfile::TempDir,
}

impl Zone {
    /// Generates keys and signs the zone file `records` of `origin`.
    pub(crate) fn sign(kind: Kind, origin: &str, records: &str) -> Self {
        let folder = folder();
        let at = |name: &str| folder.path().join(name);
        let base = generate_key(&at("keys"), origin, kind.algorithm, &["--nsec5", "--csk"]);
        let plain = generate_key(&at("plain"), origin, kind.algorithm, &["--csk"]);
        fs::write(at("zone"), records).expect("written");
        let (zone, signed, keys, secrets) = (at("zone"), at("signed/zone"), at("keys"), at("nsec5"));
        fs::create_dir(at("signed")).expect("a directory");
        let more = ["--denial", kind.mechanism, "--vrf", kind.vrf, "--nsec5-keys", text(&secrets)];
        let sign = ["zone", "sign", text(&zone), "-o", origin, "--keys", text(&keys), "-f", text(&signed)];
        done([&sign[..], &more].concat());
        let apex: Name = origin.parse().expect("a name");
        let contents = nonesuch_zone::load::load(&signed, Some(&apex)).expect("the signed zone").contents;
        let vrf = read_vrf_key(&secrets);
        let other_vrf = VrfPrivateKey::generate(vrf.algorithm()).expect("a key");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() as u32;
        let names = existing_names(&contents);
        let chain =
            contents.nodes().filter(|node| is_hash(*node, &apex)).map(|node| node.name().to_name()).collect();
        let (signer, plain) = (read_key(&keys, &base), read_key(&at("plain"), &plain));
        Self {
            kind,
            apex,
            contents,
            signer,
            plain,
            vrf,
            other_vrf,
            now,
            names,
            chain,
            proofs: RefCell::default(),
            file: signed,
            secrets,
            _folder: folder,
        }
    }

    pub(crate) fn is_opt_out(&self) -> bool {
        self.kind.mechanism == "nsec5-opt-out"
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &Name> {
        self.names.iter()
    }

    /// Whether the name exists; empty non-terminals exist, too.
    pub(crate) fn holds(&self, name: NameRef<'_>) -> bool {
        self.names.contains(&name.to_canonical())
    }

    pub(crate) fn node(&self, name: NameRef<'_>) -> Option<Node<'_>> {
        self.contents.find(name).ok()
    }

    pub(crate) fn has(&self, name: NameRef<'_>, rtype: Rtype) -> bool {
        self.node(name).is_some_and(|node| node.has(rtype))
    }

    /// Whether the chain contains a record of an existing name.
    pub(crate) fn is_in_chain(&self, name: NameRef<'_>) -> bool {
        let is_unsigned_cut =
            self.has(name, Rtype::NS) && !self.has(name, Rtype::DS) && name != self.apex.view();
        !(self.is_opt_out() && is_unsigned_cut)
    }

    /// An RRset with its signatures, all under `owner`.
    pub(crate) fn records(
        &self,
        section: Section,
        at: NameRef<'_>,
        owner: NameRef<'_>,
        rtype: Rtype,
    ) -> Vec<Record> {
        let node = self.node(at).unwrap_or_else(|| panic!("{at} has records"));
        let rrsets = [node.rrset(rtype), node.signatures(rtype)];
        let records = rrsets.into_iter().flatten().flat_map(|rrset| {
            rrset.rdatas().map(move |octets| (rrset.rtype(), rrset.ttl(), octets.to_vec()))
        });
        records
            .map(|(rtype, ttl, rdata)| Record {
                section,
                owner: owner.to_name(),
                rtype,
                class: Class::IN,
                ttl,
                rdata,
            })
            .collect()
    }

    /// The VRF hash of a name and the RDATA of its NSEC5PROOF record.
    pub(crate) fn prove(&self, vrf: &VrfPrivateKey, name: NameRef<'_>) -> Proof {
        let (tag, name) = (Nsec5Key::of(vrf).tag(), name.to_canonical());
        let mut known = self.proofs.borrow_mut();
        let made = known.entry((tag, name.clone())).or_insert_with(|| {
            let mut rdata = tag.to_be_bytes().to_vec();
            let hash = vrf.prove(name.wire(), &mut rdata).expect("a proof");
            (hash, rdata)
        });
        made.clone()
    }

    /// The owner of the NSEC5 record with this hash.
    pub(crate) fn hash_owner(&self, hash: &[u8; 32]) -> Name {
        let label = BASE32HEX_NOPAD.encode(hash).to_ascii_lowercase();
        Name::prepend(label.as_bytes(), self.apex.view()).expect("a short apex")
    }

    /// The owner of the record that matches a hash or otherwise covers it.
    pub(crate) fn covering(&self, hash: &[u8; 32]) -> Name {
        // The canonical order of these labels is the order of the hashes.
        let sought = self.hash_owner(hash);
        self.chain.range(..=sought).next_back().or_else(|| self.chain.last()).expect("a chain").clone()
    }

    /// RRSIG RDATA over an RRset, by the zone's key.
    pub(crate) fn signature(&self, owner: NameRef<'_>, rtype: Rtype, ttl: u32, rdatas: &[&[u8]]) -> Vec<u8> {
        self.signature_with(&self.signer, owner, rtype, ttl, rdatas, |_| {})
    }

    /// The same by another key, or with other fields.
    pub(crate) fn signature_with(
        &self,
        key: &KeyPair,
        owner: NameRef<'_>,
        rtype: Rtype,
        ttl: u32,
        rdatas: &[&[u8]],
        alter: impl FnOnce(&mut Rrsig<'_>),
    ) -> Vec<u8> {
        let mut sorted = rdatas.to_vec();
        sorted.sort_by(|a, b| rdata::cmp_canonical(rtype, a, b));
        let owner = owner.to_canonical();
        let mut fields = Rrsig {
            covered: rtype,
            algorithm: key.algorithm(),
            labels: owner.view().rrsig_labels(),
            original_ttl: ttl,
            expiration: self.now + 86_400,
            inception: self.now - 86_400,
            tag: key.tag(),
            signer: self.apex.view(),
            signature: &[],
        };
        alter(&mut fields);
        let mut message = Vec::new();
        push_signed_data(&fields, owner.view(), sorted.into_iter(), &mut message);
        let mut rdata = Vec::new();
        fields.push_fields(&mut rdata);
        key.private().sign(&message, &mut rdata).expect("a signature");
        rdata
    }
}

fn is_hash(node: Node<'_>, apex: &Name) -> bool {
    node.has(Rtype::NSEC5)
        && node.name().parent() == Some(apex.view())
        && node.name().labels().next().is_some_and(|label| label.len() == 52)
}

fn read_key(folder: &Path, base: &str) -> KeyPair {
    let read =
        |extension| fs::read_to_string(folder.join(format!("{base}.{extension}"))).expect("a key file");
    KeyPair::parse(&read("key"), &read("private")).expect("a key")
}

fn read_vrf_key(folder: &Path) -> VrfPrivateKey {
    let mut files = fs::read_dir(folder).expect("a directory").map(|entry| entry.expect("an entry").path());
    let file = files.find(|file| text(file).ends_with(".private")).expect("a VRF key");
    VrfPrivateKey::from_text(&fs::read_to_string(file).expect("read")).expect("a VRF key")
}

fn existing_names(contents: &Contents) -> BTreeSet<Name> {
    let apex = contents.apex();
    let has = |name: NameRef<'_>, rtype| contents.find(name).is_ok_and(|node| node.has(rtype));
    let mut names = BTreeSet::new();
    for node in contents.nodes().filter(|node| !node.has(Rtype::NSEC5)) {
        let mut above = Vec::new();
        let mut at = node.name();
        while at != apex.view() {
            at = at.parent().expect("below the apex");
            above.push(at);
        }
        let hidden =
            |name: &NameRef<'_>| has(*name, Rtype::DNAME) || has(*name, Rtype::NS) && *name != apex.view();
        if !above.iter().any(hidden) {
            names.insert(node.name().to_canonical());
            names.extend(above.into_iter().map(NameRef::to_canonical));
        }
    }
    names
}
