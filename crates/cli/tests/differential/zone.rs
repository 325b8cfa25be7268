//! The zone that is served: every case by hand, generated names beside them, signed by us.

use nonesuch_proto::{Name, NameRef, Rtype};
use nonesuch_zone::read::read_file;
use nonesuch_zone::{Contents, Standing, standings};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The apex.
pub const ORIGIN: &str = "every.example.";
/// Where the generated names stand.
const GENERATED: &str = "gen.every.example.";
const EVERY_CASE: &str = include_str!("every-case.zone");
/// NSD and Knot DNS refuse to load a zone with this record, so only our server gets it (RFC 6672 §2.4: there
/// must be none; §2.3: it is occluded). It is neither signed nor in a chain.
const BELOW_DNAME: &str = "below.dname.every.example. 3600 IN A 192.0.2.42";

/// A signed zone, and what its names are.
pub struct Zone {
    /// As our server reads it.
    pub file: PathBuf,
    /// As the peers read it.
    pub peer_file: PathBuf,
    pub contents: Contents,
    /// Names that are the zone's own or its cuts, empty non-terminals among them.
    names: BTreeMap<Name, Standing>,
    occluded: BTreeSet<Name>,
}

/// Writes the unsigned zone and makes its key.
pub fn prepare(folder: &Path) -> PathBuf {
    let generated = folder.join("generated");
    let names = ["zone", "generate", "--like", "sld", "--names", "300", "--seed", "7", "-o", GENERATED, "-f"];
    run(Command::new(env!("CARGO_BIN_EXE_nonesuch")).args(names).arg(&generated));
    let generated = fs::read_to_string(generated).expect("a zone file");
    let mut text = format!("{EVERY_CASE}\n");
    // The generated names are no zone of their own.
    for line in
        generated.lines().filter(|line| !line.contains(" IN SOA ") && !line.starts_with("@ 86400 IN NS "))
    {
        text.push_str(line);
        text.push('\n');
    }
    text.push_str(BELOW_DNAME);
    text.push('\n');
    let unsigned = folder.join("unsigned");
    fs::write(&unsigned, text).expect("written");
    run(Command::new(env!("CARGO_BIN_EXE_nonesuch")).args(["key", "generate", ORIGIN, "--dir"]).arg(folder));
    unsigned
}

impl Zone {
    /// Signs the zone with `mechanism`.
    pub fn sign(folder: &Path, unsigned: &Path, mechanism: &str) -> Self {
        let (file, peer_file) = (folder.join(mechanism), folder.join(format!("{mechanism}.peers")));
        run(Command::new(env!("CARGO_BIN_EXE_nonesuch"))
            .args(["zone", "sign", "--origin", ORIGIN, "--denial", mechanism, "--keys"])
            .args([folder, unsigned, Path::new("-f"), &file]));
        let text = fs::read_to_string(&file).expect("a zone file");
        let (kept, dropped): (Vec<&str>, Vec<&str>) =
            text.lines().partition(|line| !line.starts_with("below.dname."));
        assert_eq!(dropped.len(), 1, "the one record below a DNAME: {dropped:?}");
        fs::write(&peer_file, kept.join("\n") + "\n").expect("written");
        let apex: Name = ORIGIN.parse().expect("a name");
        let contents = read_file(&file, Some(&apex)).expect("a zone").contents;
        let (mut names, mut occluded) = (BTreeMap::new(), BTreeSet::new());
        for (node, standing) in contents.nodes().zip(standings(&contents)) {
            if !standing.is_in_zone() {
                occluded.insert(node.name().to_canonical());
                continue;
            }
            names.insert(node.name().to_canonical(), standing);
            let mut above = node.name().parent();
            while let Some(parent) = above.filter(|parent| parent.is_at_or_below(apex.view())) {
                names.entry(parent.to_canonical()).or_insert(Standing::Authoritative);
                above = parent.parent();
            }
        }
        Self { file, peer_file, contents, names, occluded }
    }

    /// All names that own records, and the empty non-terminals.
    pub fn all_names(&self) -> impl Iterator<Item = &Name> {
        self.names.keys().chain(&self.occluded)
    }

    /// Whether the name is in the zone: it owns records that are the zone's, or is an empty non-terminal.
    pub fn holds(&self, name: NameRef<'_>) -> bool {
        self.names.contains_key(&name.to_canonical())
    }

    /// The types that the name owns.
    pub fn types(&self, name: NameRef<'_>) -> Vec<Rtype> {
        let node = self.contents.find(name).ok();
        let sets = node.into_iter().flat_map(|node| node.rrsets().collect::<Vec<_>>());
        sets.map(|rrset| rrset.rtype()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Whether the name owns records of the type.
    pub fn has(&self, name: NameRef<'_>, rtype: Rtype) -> bool {
        self.contents.find(name).is_ok_and(|node| node.has(rtype))
    }

    /// The zone cut that the name is at or below.
    pub fn cut(&self, name: NameRef<'_>) -> Option<NameRef<'_>> {
        let mut at = Some(name);
        let mut found = None;
        while let Some(here) = at {
            if let Some((cut, Standing::Delegation)) = self.names.get_key_value(&here.to_canonical()) {
                found = Some(cut.view());
            }
            at = here.parent();
        }
        found
    }
}

fn run(command: &mut Command) {
    let output = command.output().expect("the command runs");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
