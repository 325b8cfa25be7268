//! The served zone: each case written by hand, and generated names, signed by this project's
//! signer.

use super::common::{done, generate_key, sign, text};
use nonesuch_proto::{Name, NameRef, Rtype};
use nonesuch_zone::read::read_file;
use nonesuch_zone::{Contents, NameStatus, name_statuses};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The apex.
pub(crate) const ORIGIN: &str = "every.example.";
/// Parent of the generated names.
const GENERATED: &str = "gen.every.example.";
const EVERY_CASE: &str = include_str!("every-case.zone");
/// NSD and Knot DNS reject a zone with this record, because RFC 6672 §2.4 forbids it; so only this
/// server gets it. It is neither signed nor in a chain.
const BELOW_DNAME: &str = "below.dname.every.example. 3600 IN A 192.0.2.42";

/// A signed zone, and the status of its names.
pub(crate) struct Zone {
    /// The file for this server.
    pub(crate) file: PathBuf,
    /// The file for the peers.
    pub(crate) peer_file: PathBuf,
    pub(crate) contents: Contents,
    /// Authoritative names and zone cuts, including empty non-terminals.
    names: BTreeMap<Name, NameStatus>,
    occluded: BTreeSet<Name>,
}

/// Writes the unsigned zone and generates its key.
pub(crate) fn prepare(folder: &Path) -> PathBuf {
    let generated = folder.join("generated");
    let size = ["--names", "300", "--seed", "7"];
    let zone = ["zone", "generate", "--like", "sld", "-o", GENERATED, "-f", text(&generated)];
    done([&zone[..], &size[..]].concat());
    let generated = fs::read_to_string(generated).expect("a zone file");
    let mut text = format!("{EVERY_CASE}\n");
    // The generated names belong to the zone and need no apex of their own.
    let is_apex = |line: &&str| line.contains(" IN SOA ") || line.starts_with("@ 86400 IN NS ");
    for line in generated.lines().filter(|line| !is_apex(line)) {
        text.push_str(line);
        text.push('\n');
    }
    text.push_str(BELOW_DNAME);
    text.push('\n');
    let unsigned = folder.join("unsigned");
    fs::write(&unsigned, text).expect("written");
    generate_key(folder, ORIGIN, "ecdsap256sha256", &["--csk"]);
    unsigned
}

impl Zone {
    /// Signs the zone with `mechanism`.
    pub(crate) fn sign(folder: &Path, unsigned: &Path, mechanism: &str) -> Self {
        let (file, peer_file) = (folder.join(mechanism), folder.join(format!("{mechanism}.peers")));
        sign(unsigned, ORIGIN, folder, mechanism, &file);
        let text = fs::read_to_string(&file).expect("a zone file");
        let (kept, dropped): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| !line.starts_with("below.dname."));
        assert_eq!(dropped.len(), 1, "the one record below a DNAME: {dropped:?}");
        fs::write(&peer_file, kept.join("\n") + "\n").expect("written");
        let apex: Name = ORIGIN.parse().expect("a name");
        let contents = read_file(&file, Some(&apex)).expect("a zone").contents;
        let (mut names, mut occluded) = (BTreeMap::new(), BTreeSet::new());
        for (node, standing) in contents.nodes().zip(name_statuses(&contents)) {
            if !standing.is_in_chain() {
                occluded.insert(node.name().to_canonical());
                continue;
            }
            names.insert(node.name().to_canonical(), standing);
            let mut above = node.name().parent();
            while let Some(parent) = above.filter(|parent| parent.is_at_or_below(apex.view())) {
                names.entry(parent.to_canonical()).or_insert(NameStatus::Authoritative);
                above = parent.parent();
            }
        }
        Self { file, peer_file, contents, names, occluded }
    }

    /// All names with records, and the empty non-terminals.
    pub(crate) fn all_names(&self) -> impl Iterator<Item = &Name> {
        self.names.keys().chain(&self.occluded)
    }

    /// Whether the name is in the zone: it has authoritative records, or is an empty non-terminal.
    pub(crate) fn holds(&self, name: NameRef<'_>) -> bool {
        self.names.contains_key(&name.to_canonical())
    }

    /// The types of the name.
    pub(crate) fn types(&self, name: NameRef<'_>) -> Vec<Rtype> {
        let node = self.contents.find(name).ok();
        let sets = node.into_iter().flat_map(|node| node.rrsets().collect::<Vec<_>>());
        sets.map(|rrset| rrset.rtype()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Whether the name has records of the type.
    pub(crate) fn has(&self, name: NameRef<'_>, rtype: Rtype) -> bool {
        self.contents.find(name).is_ok_and(|node| node.has(rtype))
    }

    /// The longest ancestor that is in the zone, or the name itself.
    pub(crate) fn closest<'n>(&self, name: NameRef<'n>) -> Option<NameRef<'n>> {
        let mut at = Some(name);
        while let Some(here) = at.filter(|here| !self.holds(*here)) {
            at = here.parent();
        }
        at
    }

    /// Whether the name is an empty non-terminal that exists only because of unsigned delegations:
    /// an opt-out chain has no record for it (RFC 5155 §7.1).
    pub(crate) fn is_opted_out(&self, name: NameRef<'_>) -> bool {
        let opt_out = |node: nonesuch_zone::Node<'_>| {
            let record = node.rrset(Rtype::NSEC3);
            record.is_some_and(|rrset| rrset.rdatas().any(|rdata| rdata.get(1) == Some(&1)))
        };
        let mut below = self.names.iter().filter(|(other, _)| other.view().is_below(name)).peekable();
        self.contents.nodes().any(opt_out)
            && self.types(name).is_empty()
            && below.peek().is_some()
            && below.all(|(other, standing)| match standing {
                NameStatus::Delegation => !self.has(other.view(), Rtype::DS),
                _ => self.types(other.view()).is_empty(),
            })
    }

    /// The zone cut at or above the name.
    pub(crate) fn cut(&self, name: NameRef<'_>) -> Option<NameRef<'_>> {
        let mut at = Some(name);
        let mut found = None;
        while let Some(here) = at {
            if let Some((cut, NameStatus::Delegation)) = self.names.get_key_value(&here.to_canonical()) {
                found = Some(cut.view());
            }
            at = here.parent();
        }
        found
    }
}
