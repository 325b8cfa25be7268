//! Tests of reading, processing and producing catalogs.

use super::*;
use nonesuch_zone::Contents;
use nonesuch_zone::read::read_text;
use proptest::prelude::*;
use std::path::Path;

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn contents(apex: &str, rest: &str) -> Contents {
    let text = format!("$TTL 0\n@ SOA invalid. invalid. 1 3600 600 2147483646 0\n@ NS invalid.\n{rest}");
    read_text(text.as_bytes(), Path::new("catalog"), Some(&name(apex))).unwrap().contents
}

fn catalog(apex: &str, members: &str) -> Catalog {
    Catalog::read(&contents(apex, &format!("version TXT 2\n{members}"))).unwrap()
}

fn group(text: &str) -> Group {
    Group::from_octets(text.as_bytes()).unwrap()
}

#[test]
fn members_with_their_properties() {
    let found = catalog(
        "Cat.example.",
        "nj2xg5b.zones PTR Example.com.\nnvxxezj.zones PTR example.net.\n\
         group.nvxxezj.zones TXT \"sign\" \"ed\"\ngroup.nvxxezj.zones TXT other\ncoo.NVXXEZJ.zones PTR New.example.\n\
         zones TXT ignored\nnj2xg5b.zones A 192.0.2.1\nx.ext.nj2xg5b.zones TXT own\nnothing.zones TXT x\n\
         a.b.c.zones PTR example.org.\nother PTR example.org.\n",
    );
    assert_eq!(found.apex.wire(), name("cat.example.").wire());
    let plain = Member { label: b"nj2xg5b".to_vec(), groups: vec![], new_owner: None };
    let full = Member {
        label: b"nvxxezj".to_vec(),
        groups: vec![Group::from_rdata(b"\x04sign\x02ed"), group("other")],
        new_owner: Some(name("new.example.")),
    };
    let mut groups = found.members[&name("example.net.")].groups.clone();
    groups.sort();
    assert_eq!(found.members.len(), 2);
    assert_eq!(found.members[&name("example.com.")], plain);
    assert_eq!(found.members[&name("example.net.")].new_owner, full.new_owner);
    // RFC 9432 §4.3.2: the value is the entire RDATA. Therefore two strings are not equal to the
    // group "signed".
    assert_eq!(groups, full.groups);
}

#[test]
fn errors_of_broken_catalogs() {
    let version = || name("version.cat.");
    let cases = [
        ("", CatalogError::NoVersion(version())),
        ("version A 192.0.2.1\n", CatalogError::NoVersion(version())),
        ("version TXT 2\nversion TXT 3\n", CatalogError::SeveralVersions(version())),
        ("version TXT 1\n", CatalogError::OtherVersion(version())),
        ("version TXT 2 2\n", CatalogError::OtherVersion(version())),
        ("version TXT 02\n", CatalogError::OtherVersion(version())),
        (
            "version TXT 2\na.zones PTR b.\na.zones PTR c.\n",
            CatalogError::SeveralPointers(name("a.zones.cat.")),
        ),
        (
            "version TXT 2\na.zones PTR b.\ncoo.a.zones PTR c.\ncoo.a.zones PTR d.\n",
            CatalogError::SeveralPointers(name("coo.a.zones.cat.")),
        ),
        (
            "version TXT 2\nB.zones PTR a.\nc.zones PTR b.\na.zones PTR A.\n",
            CatalogError::SeveralNodes {
                zone: name("a."),
                nodes: [name("a.zones.cat."), name("b.zones.cat.")],
            },
        ),
    ];
    for (text, expected) in cases {
        let error = Catalog::read(&contents("cat.", text)).unwrap_err();
        // Compares the case of names too; equality of names ignores it.
        assert_eq!(format!("{error:?}"), format!("{expected:?}"), "{text:?}");
    }
}

fn removed(zone: &str, catalog: &str) -> Change {
    Change::Remove { zone: name(zone), catalog: name(catalog) }
}

fn owner(registry: &Registry, zone: &str) -> Option<Name> {
    registry.owner(&name(zone)).map(|owner| owner.catalog.clone())
}

#[test]
fn differences_of_two_versions() {
    let old = catalog("cat.", "1.zones PTR a.\n2.zones PTR b.\n3.zones PTR c.\n4.zones PTR d.\n");
    let new = catalog(
        "cat.",
        "1.zones PTR a.\n9.zones PTR b.\n3.zones PTR c.\ngroup.3.zones TXT g\n5.zones PTR e.\n",
    );
    let mut registry = Registry::new([]);
    assert_eq!(registry.update(old).len(), 4);
    let expected = [
        removed("d.", "cat."),
        Change::Reset { zone: name("b.") },
        Change::Update { zone: name("c.") },
        Change::Add { zone: name("e.") },
    ];
    assert_eq!(registry.update(new.clone()), expected);
    assert!(registry.update(new).is_empty());
}

#[test]
fn zones_that_are_already_served_are_not_taken_over() {
    let mut registry = Registry::new([name("Mine."), name("one."), name("two.")]);
    let changes = registry.update(catalog("one.", "1.zones PTR mine.\n2.zones PTR a.\n3.zones PTR one.\n"));
    let clash = |zone: &str, catalog: &str| Change::Clash { zone: name(zone), catalog: name(catalog) };
    let added = Change::Add { zone: name("a.") };
    assert_eq!(changes, [added.clone(), clash("mine.", "one."), clash("one.", "one.")]);
    assert_eq!(registry.update(catalog("two.", "1.zones PTR a.\n")), [clash("a.", "two.")]);
    // The second catalog never owned the zone that it removes.
    assert_eq!(registry.update(catalog("two.", "")), []);
    assert_eq!(registry.update(catalog("two.", "1.zones PTR a.\n")), [clash("a.", "two.")]);
    // When the first catalog removes the zone, the second one owns it, as a new zone without state.
    let changes = registry.update(catalog("one.", ""));
    assert_eq!(changes, [removed("a.", "one."), added]);
    assert_eq!(owner(&registry, "A."), Some(name("two.")));
    assert_eq!(registry.remove_catalog(&name("two.")), [removed("a.", "two.")]);
    assert_eq!(registry.members().count(), 0);
}

/// RFC 9432 §5.1: the member zones of a broken catalog are not reconfigured. Therefore another
/// catalog cannot take them over.
#[test]
fn a_broken_catalog_gives_up_no_zone() {
    let old = catalog("old.", "1.zones PTR a.\ncoo.1.zones PTR new.\n");
    let new = catalog("new.", "1.zones PTR a.\n");
    let mut registry = Registry::new([]);
    assert_eq!(registry.update(old.clone()).len(), 1);
    registry.mark_broken(&name("Old."));
    assert!(matches!(registry.update(new)[..], [Change::Clash { .. }]));
    assert_eq!(owner(&registry, "a."), Some(name("old.")));
    // The next valid version permits the move.
    assert_eq!(registry.update(old), [moved(false)]);
}

/// The change when a zone moves from the catalog `old.`, whose `coo` property permits it, to
/// `new.`, which lists it.
fn moved(is_reset: bool) -> Change {
    if is_reset { Change::Reset { zone: name("a.") } } else { Change::Update { zone: name("a.") } }
}

#[test]
fn ownership_changes_only_with_the_coo_property_of_the_owner() {
    for (label, is_reset) in [("1", false), ("2", true)] {
        let mut registry = Registry::new([]);
        assert_eq!(registry.update(catalog("old.", "1.zones PTR a.\n")).len(), 1);
        let new = catalog("new.", &format!("{label}.zones PTR a.\n"));
        let old = catalog("old.", "1.zones PTR a.\ncoo.1.zones PTR New.\n");
        assert!(matches!(registry.update(new.clone())[..], [Change::Clash { .. }]));
        // A `coo` property that names a different catalog does not permit this one to take over the
        // zone.
        assert_eq!(registry.update(catalog("old.", "1.zones PTR a.\ncoo.1.zones PTR else.\n")), []);
        assert!(matches!(registry.update(new.clone())[..], [Change::Clash { .. }]));
        // The versions of the two catalogs can arrive in either order.
        assert_eq!(registry.update(old.clone()), [moved(is_reset)]);
        let mut other = Registry::new([]);
        assert_eq!(other.update(old.clone()).len(), 1);
        assert_eq!(other.update(new), [moved(is_reset)]);
        for registry in [&mut registry, &mut other] {
            // The old catalog may still list the zone or remove it; the new one owns it.
            assert_eq!(registry.update(old.clone()), []);
            assert_eq!(owner(registry, "a."), Some(name("new.")));
            assert_eq!(registry.update(catalog("old.", "")), []);
            assert_eq!(owner(registry, "a."), Some(name("new.")));
        }
    }
}

#[test]
fn coo_properties_that_name_each_other_move_no_zone() {
    let mut registry = Registry::new([]);
    let old = catalog("old.", "1.zones PTR a.\ncoo.1.zones PTR new.\n");
    let new = catalog("new.", "2.zones PTR a.\ncoo.2.zones PTR old.\n");
    assert_eq!(registry.update(old.clone()).len(), 1);
    let _ = registry.update(new.clone());
    let settled = owner(&registry, "a.");
    for catalog in [old, new] {
        assert_eq!(registry.update(catalog), []);
        assert_eq!(owner(&registry, "a."), settled);
    }
}

#[test]
fn a_moved_zone_remains_moved_after_a_restart() {
    let old = catalog("old.", "1.zones PTR a.\ncoo.1.zones PTR new.\n");
    let new = catalog("new.", "2.zones PTR a.\n");
    for catalogs in [vec![old.clone(), new.clone()], vec![new, old]] {
        let mut registry = Registry::new([]);
        let changes = registry.restore(catalogs, &BTreeMap::new());
        assert!(matches!(changes[..], [Change::Add { .. }]), "{changes:?}");
        assert_eq!(owner(&registry, "a."), Some(name("new.")));
    }
}

#[test]
fn the_owner_of_a_zone_owns_it_after_a_restart() {
    let (a, b) = (catalog("a.", "1.zones PTR z.\n"), catalog("b.", "2.zones PTR z.\n"));
    let load = |owner: &str, configured: &[Name]| {
        let mut registry = Registry::new(configured.iter().cloned());
        let changes =
            registry.restore(vec![a.clone(), b.clone()], &BTreeMap::from([(name("z."), name(owner))]));
        let is_sound = |change: &Change| matches!(change, Change::Add { .. } | Change::Clash { .. });
        assert!(changes.iter().all(is_sound), "{changes:?}");
        registry.owner(&name("z.")).cloned()
    };
    let owner = |catalog, label: &str| {
        Some(OwningCatalog { catalog: name(catalog), label: label.into(), groups: vec![] })
    };
    assert_eq!(load("a.", &[]), owner("a.", "1"));
    assert_eq!(load("b.", &[]), owner("b.", "2"));
    // A catalog that is no longer configured owns nothing.
    assert_eq!(load("c.", &[]), owner("a.", "1"));
    assert_eq!(load("b.", &[name("z.")]), None);
}

#[test]
fn configured_zones_are_added_and_removed() {
    let mut registry = Registry::new([name("a.")]);
    assert!(matches!(
        registry.update(catalog("cat.", "1.zones PTR a.\n2.zones PTR b.\n"))[..],
        [Change::Add { .. }, _] | [_, Change::Add { .. }]
    ));
    let changes = registry.set_configured([name("b.")]);
    assert_eq!(changes, [removed("b.", "cat."), Change::Add { zone: name("a.") }]);
    assert_eq!(registry.set_configured([name("b.")]), []);
}

#[test]
fn a_produced_catalog_can_be_read() {
    let apex = name("catalog.example.");
    let members = [
        ProducedMember::new(name("A.example."), None),
        ProducedMember::new(name("b.example."), Some("group one".to_owned())),
        ProducedMember::new(Name::root(), None),
    ];
    let first = produce(&apex, &members, None, 1_750_000_000).unwrap().unwrap();
    let found = Catalog::read(&first).unwrap();
    assert_eq!((found.members.len(), first.soa().unwrap().serial), (3, 1_750_000_000));
    assert_eq!(found.members[&name("b.example.")].groups, [group("group one")]);
    // Nothing changed, so there is no new version.
    assert!(produce(&apex, &members, Some(&first), 1_750_000_100).unwrap().is_none());
    // If the last version was lost, the labels are the same, so that consumers do not reset all
    // zones.
    let again = produce(&apex, &members, None, 1_760_000_000).unwrap().unwrap();
    assert_eq!(Catalog::read(&again).unwrap().members, found.members);
    // One member is removed and one is added; the remaining one retains its label. The clock may
    // stand still or go back.
    let others = [members[0].clone(), ProducedMember::new(name("c.example."), None)];
    for (now, serial) in [(1_750_000_000, 1_750_000_001), (5, 1_750_000_001), (1_750_000_009, 1_750_000_009)]
    {
        let second = produce(&apex, &others, Some(&first), now).unwrap().unwrap();
        let changed = Catalog::read(&second).unwrap();
        assert_eq!(second.soa().unwrap().serial, serial);
        assert_eq!(changed.members[&name("a.example.")], found.members[&name("a.example.")]);
        // A member that is added again has another label.
        let third = Catalog::read(&produce(&apex, &members, Some(&second), now).unwrap().unwrap()).unwrap();
        assert_ne!(third.members[&name("b.example.")].label, found.members[&name("b.example.")].label);
    }
}

/// When a zone moves from one produced catalog to another, a consumer moves it and its label stays
/// the same.
#[test]
fn a_zone_moves_between_produced_catalogs() {
    let (zone, old, new) = (name("a.example."), name("old."), name("new."));
    let read = |contents: &Contents| Catalog::read(contents).unwrap();
    let make = |apex: &Name, listed: Vec<ProducedMember>, previous: Option<&Contents>| {
        produce(apex, &listed, previous, 7).unwrap().unwrap()
    };
    let plain = ProducedMember::new(zone.clone(), None);
    let let_go = ProducedMember { new_owner: Some(new.clone()), ..plain.clone() };
    let mut registry = Registry::default();
    let first = make(&old, vec![plain.clone()], None);
    assert!(matches!(&registry.update(read(&first))[..], [Change::Add { .. }]));
    assert_eq!(registry.update(read(&make(&new, vec![], None))), []);
    let second = make(&old, vec![let_go], Some(&first));
    assert_eq!(registry.update(read(&second)), []);
    let label = read(&second).members[&zone].label.clone();
    let taken = ProducedMember { former_owner: Some(old.clone()), label: Some(label), ..plain };
    let changes = registry.update(read(&make(&new, vec![taken], None)));
    assert_eq!(changes, [Change::Update { zone: zone.clone() }]);
    assert_eq!(registry.update(read(&make(&old, vec![], Some(&second)))), []);
    assert_eq!(registry.owner(&zone).unwrap().catalog, new);
}

#[test]
fn names_and_groups_that_are_too_long_are_errors() {
    let label = "x".repeat(63);
    let long = name(&format!("{label}.{label}.{label}.{label:.40}"));
    let error = produce(&long, &[ProducedMember::new(name("a."), None)], None, 1).unwrap_err();
    assert_eq!(error, ProduceError::NameTooLong(long));
    let group = Some("g".repeat(256));
    let error = produce(&name("cat."), &[ProducedMember::new(name("a."), group)], None, 1).unwrap_err();
    assert_eq!(error, ProduceError::GroupTooLong(name("a.")));
}

/// A catalog of random zones, each with a label number or absent.
fn any_catalog(apex: &'static str) -> impl Strategy<Value = Catalog> {
    proptest::collection::vec(proptest::option::of((0u8..3, any::<bool>(), proptest::option::of(0u8..3))), 4)
        .prop_map(move |zones| {
            let mut text = String::new();
            for (zone, entry) in zones.into_iter().enumerate() {
                let Some((label, has_group, coo)) = entry else { continue };
                let label = format!("l{zone}{label}");
                text.push_str(&format!("{label}.zones PTR z{zone}.\n"));
                if has_group {
                    text.push_str(&format!("group.{label}.zones TXT g\n"));
                }
                if let Some(coo) = coo {
                    text.push_str(&format!("coo.{label}.zones PTR cat{coo}.\n"));
                }
            }
            catalog(apex, &text)
        })
}

fn any_update() -> impl Strategy<Value = Catalog> {
    prop_oneof![any_catalog("cat0."), any_catalog("cat1."), any_catalog("cat2.")]
}

proptest! {
    #[test]
    fn changes_lead_from_what_was_served_to_what_is(updates in proptest::collection::vec(any_update(), 1..12)) {
        let mut registry = Registry::new([name("z3.")]);
        let mut served: BTreeMap<Name, Option<OwningCatalog>> = BTreeMap::new();
        for update in updates {
            for change in registry.update(update) {
                match change {
                    Change::Add { zone } => {
                        let owner = registry.owner(&zone).cloned();
                        prop_assert!(served.insert(zone, owner).is_none());
                    }
                    Change::Remove { zone, catalog } => {
                        let owner = served.remove(&zone).flatten();
                        prop_assert_eq!(owner.map(|owner| owner.catalog), Some(catalog));
                    }
                    Change::Reset { zone } | Change::Update { zone } => {
                        let owner = registry.owner(&zone).cloned();
                        prop_assert!(served.insert(zone, owner).is_some());
                    }
                    Change::Clash { zone, .. } => prop_assert!(zone == name("z3.") || served.contains_key(&zone)),
                }
            }
            // The served zones are those of the registry, with the labels and groups of their
            // catalogs.
            let owners = registry.members().map(|zone| (zone.clone(), registry.owner(zone).cloned()));
            prop_assert_eq!(&served, &owners.collect::<BTreeMap<_, _>>());
            prop_assert!(!served.contains_key(&name("z3.")));
        }
    }
}
