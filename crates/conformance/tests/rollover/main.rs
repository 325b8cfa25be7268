//! Rolls of the key of a trust anchor (RFC 5011), in virtual time: the resolver follows them.

mod zone;

use nonesuch_proto::Rtype;
use nonesuch_resolver::AnchorEvent;
use nonesuch_resolver::trust_anchors::managed::{Change, KeyEvent, ObservationFault};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use std::sync::Arc;
use std::time::Duration;
use zone::{Answer, DAY, Published, RootZone, START, World, ZoneKey, name};

/// The two keys of a roll.
struct Roll {
    old: Published,
    new: Published,
}

impl Roll {
    fn new() -> Self {
        let key = |octet| Published { key: Arc::new(ZoneKey::new(octet)), is_revoked: false, signs: true };
        Self { old: key(1), new: key(2) }
    }

    /// Returns the resolver before the roll: the zone has the old key, which is configured.
    fn begin(&self) -> World {
        World::new(RootZone { keys: vec![self.old.clone()], asked: Vec::new() })
    }

    /// The zone has both keys; the new one signs nothing.
    fn prepublished(&self) -> [Published; 2] {
        [self.old.clone(), Published { signs: false, ..self.new.clone() }]
    }

    /// The zone is signed only with the new key.
    fn replaced(&self) -> [Published; 1] {
        [self.new.clone()]
    }

    /// The old key is revoked, and signs the DNSKEY RRset as the new one does.
    fn revoked(&self) -> [Published; 2] {
        [self.new.clone(), Published { is_revoked: true, ..self.old.clone() }]
    }
}

/// The events of keys since the last call.
fn key_events(world: &World) -> Vec<(u16, &'static str)> {
    let events = world.shared.take_anchor_events();
    events
        .into_iter()
        .filter_map(|(apex, event)| match event {
            AnchorEvent::Changed(Change::Key { tag, event, .. }) => {
                assert!(apex.view().is_root());
                Some((tag, event.name()))
            }
            _ => None,
        })
        .collect()
}

/// F-201, F-196, F-194, XF-074.
#[test]
fn a_zone_stays_secure_while_its_key_rolls() {
    let roll = Roll::new();
    let (old, new) = (roll.old.key.tag(), roll.new.key.tag());
    let mut world = roll.begin();
    world.run_for_days(1);
    assert_eq!((world.ask(0), world.tags()), (Answer::Secure, vec![old]));
    assert_eq!(key_events(&world), [(old, "trusted")]);
    world.publish(&roll.prepublished());
    for day in 0..40 {
        world.run_for_days(1);
        assert_eq!(world.ask(day % 2), Answer::Secure, "day {day}");
        // All of the hold-down time survives restarts.
        if day % 9 == 5 {
            world = world.restart();
        }
        if day < 29 {
            assert_eq!(world.tags(), [old], "day {day}");
        }
    }
    let mut both = [old, new];
    both.sort_unstable();
    assert_eq!(world.tags(), both);
    world.publish(&roll.revoked());
    world.run_for_days(2);
    assert_eq!((world.ask(0), world.ask(1), world.tags()), (Answer::Secure, Answer::Secure, vec![new]));
    assert_eq!(key_events(&world), [(old, "revoked")]);
    world.publish(&roll.replaced());
    world.run_for_days(3);
    assert_eq!(world.ask(0), Answer::Secure);
    world.run_for_days(40);
    assert_eq!((world.ask(1), key_events(&world)), (Answer::Secure, vec![(old, "removed")]));
    // A revoked key is no trust anchor, also after a restart with the outdated configuration.
    let mut world = world.restart();
    world.publish(std::slice::from_ref(&roll.old));
    assert_eq!((world.ask(0), world.tags()), (Answer::Failed, vec![new]));
}

/// F-201.
#[test]
fn a_new_key_is_trusted_after_the_hold_down_time() {
    let roll = Roll::new();
    let mut world = roll.begin();
    world.publish(&roll.prepublished());
    // The query at the end of the hold-down time, which is one of those each day.
    world.run_for_days(32);
    let until = START + 30 * DAY;
    let events = world.shared.take_anchor_events();
    let is_pending = |event: &AnchorEvent| matches!(event, AnchorEvent::Changed(Change::Key { event: KeyEvent::Pending { until: end }, .. }) if (until..until + 60).contains(end));
    assert!(events.iter().any(|(_, event)| is_pending(event)), "{events:?}");
    world.publish(&roll.replaced());
    world.run_for_days(2);
    assert_eq!((world.ask(0), world.ask(1)), (Answer::Secure, Answer::Secure));
}

/// XF-074: 100 kills during a roll. A kill leaves the state of before or after the last changes, because
/// the state file is replaced atomically. Half of the kills follow a start by less than two seconds.
#[test]
fn kills_neither_shorten_nor_restart_the_hold_down_time() {
    let roll = Roll::new();
    let (old, new) = (roll.old.key.tag(), roll.new.key.tag());
    let mut world = roll.begin();
    world.publish(&roll.prepublished());
    let mut random = ChaCha8Rng::seed_from_u64(5011);
    let (mut file, mut pending) = (world.state(), None);
    for kill in 0..100 {
        let limit = if kill % 2 == 0 { 2_000 } else { 16 * 3_600_000 };
        let time = Duration::from_millis(random.random_range(0..limit));
        world.simulator.run_for(time).expect("no fault");
        let is_early = world.simulator.now().unix < START + 30 * DAY;
        assert!(!is_early || world.tags() == [old], "kill {kill}");
        if random.random_bool(0.7) {
            file = world.state();
        }
        // A hold-down time that was written never begins again.
        let line = file.lines().find(|line| line.starts_with("key addpend ")).map(hold_down);
        assert!(pending.is_none() || line.is_none() || line == pending, "kill {kill}:\n{file}");
        assert!(pending.is_none() || line.is_some() || !is_early, "kill {kill}: lost\n{file}");
        pending = pending.or(line);
        world = world.restart_from(&file);
    }
    let end = pending.expect("a hold-down time");
    let unix = world.simulator.now().unix;
    assert!(unix < START + 40 * DAY, "{end}");
    world.run_for_days(START / DAY + 41 - unix / DAY);
    let mut both = [old, new];
    both.sort_unstable();
    assert_eq!((world.tags(), world.ask(0)), (both.to_vec(), Answer::Secure), "{end}");
}

/// Returns begin and end of the hold-down time.
fn hold_down(line: &str) -> String {
    line.split(' ').filter(|word| word.starts_with("since=") || word.starts_with("until=")).collect()
}

/// F-202.
#[test]
fn before_the_hold_down_time_is_over_a_new_key_signs_nothing() {
    let roll = Roll::new();
    let mut world = roll.begin();
    world.publish(&roll.prepublished());
    world.run_for_days(29);
    assert_eq!((world.ask(0), world.tags()), (Answer::Secure, vec![roll.old.key.tag()]));
    world.publish(&[Published { signs: false, ..roll.old.clone() }, roll.new.clone()]);
    // The keys that were validated before are trusted for a day.
    world.run_for_days(2);
    assert_eq!((world.ask(0), world.ask(1)), (Answer::Failed, Answer::Failed));
    let events = world.shared.take_anchor_events();
    let rejected = AnchorEvent::Rejected(ObservationFault::NoSignature);
    assert!(events.iter().any(|(_, event)| *event == rejected), "{events:?}");
    assert_eq!(world.tags(), [roll.old.key.tag()]);
}

/// F-194: nothing but the signature of the key itself revokes it.
#[test]
fn a_key_is_revoked_only_by_its_own_signature() {
    let roll = Roll::new();
    let (old, new) = (roll.old.key.tag(), roll.new.key.tag());
    let mut world = roll.begin();
    world.publish(&roll.prepublished());
    world.run_for_days(32);
    let [new_key, revoked] = roll.revoked();
    world.publish(&[new_key, Published { signs: false, ..revoked }]);
    world.run_for_days(2);
    let mut both = [old, new];
    both.sort_unstable();
    assert_eq!((world.ask(0), world.tags()), (Answer::Secure, both.to_vec()));
    world.publish(&roll.revoked());
    world.run_for_days(2);
    assert_eq!((world.ask(0), world.tags()), (Answer::Secure, vec![new]));
}

/// F-196; RFC 5011 §5.
#[test]
fn a_zone_whose_keys_are_all_revoked_is_insecure() {
    let roll = Roll::new();
    let mut world = roll.begin();
    world.run_for_days(1);
    assert_eq!(world.ask(0), Answer::Secure);
    world.publish(&[Published { is_revoked: true, ..roll.old }]);
    world.run_for_days(2);
    assert_eq!((world.ask(0), world.ask(1)), (Answer::Insecure, Answer::Insecure));
    assert_eq!(world.tags(), []);
    let mut world = world.restart();
    assert_eq!(world.ask(0), Answer::Insecure);
    // The cache answers, as it does for other insecure zones.
    let asked = world.simulator.network().asked.len();
    assert_eq!((world.ask(1), world.simulator.network().asked.len()), (Answer::Insecure, asked));
}

/// XF-075: a signal follows each query for the keys.
#[test]
fn the_tags_of_the_trusted_keys_are_signalled() {
    let roll = Roll::new();
    let mut world = roll.begin();
    world.run_for_days(3);
    let asked = &world.simulator.network().asked;
    let signal = name(&format!("_ta-{:04x}.", roll.old.key.tag()));
    let count = |name: &nonesuch_proto::Name, rtype| {
        asked.iter().filter(|(asked, asked_type)| asked == name && *asked_type == rtype).count()
    };
    let (signals, keys) = (count(&signal, Rtype(10)), count(&name("."), Rtype::DNSKEY));
    assert!(signals >= 3 && signals <= keys, "{signals} {keys}");
}

/// XF-074: a reload is no restart of the hold-down time.
#[test]
fn a_reload_keeps_the_states_of_zones_that_remain_configured() {
    let roll = Roll::new();
    let mut world = roll.begin();
    world.publish(&roll.prepublished());
    world.run_for_days(20);
    world.reload(|options| options.qname_minimisation = false);
    world.run_for_days(12);
    let mut both = [roll.old.key.tag(), roll.new.key.tag()];
    both.sort_unstable();
    assert_eq!(world.tags(), both);
    world.publish(&roll.replaced());
    world.reload(|_| {});
    world.run_for_days(2);
    assert_eq!((world.ask(0), world.ask(1), world.tags()), (Answer::Secure, Answer::Secure, both.to_vec()));
    // A zone that is not configured any more has no state.
    world.reload(|options| options.validation.anchors.remove(name(".").view()));
    assert!(world.shared.anchor_states().is_empty());
}
