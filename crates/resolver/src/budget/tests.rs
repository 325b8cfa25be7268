use super::*;
use proptest::prelude::*;

fn budget() -> (Budget, Instant) {
    let now = Instant::now();
    (Budget::new(UpstreamLimits::default(), now), now)
}

/// Takes queries until there are none left, and returns their number.
fn exhaust(budget: &mut Budget, now: Instant) -> u32 {
    (0..1000).take_while(|_| budget.take_query(now).is_ok()).count() as u32
}

#[test]
fn each_limit_ends_its_work() {
    let (mut budget, now) = budget();
    assert_eq!(exhaust(&mut budget, now), 64);
    assert_eq!(budget.take_query(now), Err(LimitReached::Queries));
    assert_eq!(budget.start_fetch(now), Err(LimitReached::Queries));
    assert_eq!((0..100).take_while(|_| budget.take_alias().is_ok()).count(), 16);
    assert_eq!(budget.take_alias(), Err(LimitReached::Aliases));
    assert_eq!(budget.take_octets(1 << 19), Ok(()));
    assert_eq!(budget.take_octets(1 << 19), Ok(()));
    assert_eq!(budget.take_octets(1), Err(LimitReached::Octets));
}

#[test]
fn a_response_that_is_too_large_leaves_no_octets() {
    let (mut budget, _) = budget();
    assert_eq!(budget.take_octets(usize::MAX), Err(LimitReached::Octets));
    assert_eq!(budget.take_octets(1), Err(LimitReached::Octets));
    assert_eq!(budget.take_octets(0), Ok(()));
}

#[test]
fn the_deadline_ends_queries_and_fetches() {
    let (mut budget, now) = budget();
    let end = now + Duration::from_secs(8);
    assert_eq!(budget.deadline(), end);
    assert_eq!(budget.take_query(end - Duration::from_nanos(1)), Ok(()));
    assert_eq!(budget.take_query(end), Err(LimitReached::Time));
    assert_eq!(budget.start_fetch(end), Err(LimitReached::Time));
    assert_eq!(budget.queries_left(), 63);
}

#[test]
fn a_time_beyond_the_clock_is_a_day() {
    let now = Instant::now();
    let limits = UpstreamLimits { time: Duration::MAX, ..UpstreamLimits::default() };
    assert_eq!(Budget::new(limits, now).deadline(), now + TIME_MAX);
}

#[test]
fn a_fetch_gets_a_quarter_or_half_of_the_rest_and_refunds_what_it_did_not_use() {
    let (mut budget, now) = budget();
    let mut fetches: Vec<Budget> = (0..5).map(|_| budget.start_fetch(now).expect("a fetch")).collect();
    let granted: Vec<u32> = fetches.iter().map(Budget::queries_left).collect();
    assert_eq!(granted, [16, 16, 16, 8, 4]);
    assert_eq!(budget.queries_left(), 4);
    let mut used = fetches.pop().expect("five fetches");
    assert_eq!(exhaust(&mut used, now), 4);
    budget.refund(used);
    assert_eq!(budget.queries_left(), 4);
    let mut half_used = fetches.pop().expect("four fetches");
    half_used.take_query(now).expect("a query");
    budget.refund(half_used);
    assert_eq!(budget.queries_left(), 11);
    // The starter of the others has ended: they continue with what was paid.
    let _ = budget;
    assert_eq!(fetches.iter_mut().map(|fetch| exhaust(fetch, now)).sum::<u32>(), 48);
}

#[test]
fn a_fetch_has_its_own_time() {
    let (mut budget, now) = budget();
    let later = now + Duration::from_secs(7);
    let fetch = budget.start_fetch(later).expect("a fetch");
    assert_eq!(fetch.deadline(), later + Duration::from_secs(8));
}

#[test]
fn a_delegation_causes_at_most_four_address_fetches_and_a_query_at_most_sixteen() {
    let limits = UpstreamLimits { queries: 1_000_000, ..UpstreamLimits::default() };
    let now = Instant::now();
    let mut budget = Budget::new(limits, now);
    let mut fetches = 0;
    for _ in 0..10 {
        let mut delegation = DelegationFetches::default();
        for _ in 0..4 {
            // What a fetch does not use is refunded, so only the count ends the loop.
            match budget.start_address_fetch(&mut delegation, now) {
                Ok(fetch) => budget.refund(fetch),
                Err(error) => {
                    assert_eq!((error, fetches), (LimitReached::AddressFetches, 16));
                    return;
                }
            }
            fetches += 1;
        }
        let error = budget.start_address_fetch(&mut delegation, now).expect_err("the fifth fetch");
        assert_eq!(error, LimitReached::DelegationFetches);
    }
    panic!("the limit for the query was not reached");
}

#[test]
fn an_address_fetch_that_does_not_start_costs_nothing() {
    let (mut budget, now) = budget();
    exhaust(&mut budget, now);
    let before = budget.left;
    let mut delegation = DelegationFetches::default();
    assert_eq!(budget.start_address_fetch(&mut delegation, now), Err(LimitReached::Queries));
    assert_eq!((budget.left, delegation), (before, DelegationFetches::default()));
}

#[test]
fn fetches_are_nested_to_the_limit_of_depth() {
    let limits = UpstreamLimits { queries: u32::MAX, depth: 3, ..UpstreamLimits::default() };
    let now = Instant::now();
    let mut budget = Budget::new(limits, now);
    for _ in 0..3 {
        budget = budget.start_fetch(now).expect("a fetch");
    }
    assert_eq!(budget.start_fetch(now), Err(LimitReached::Depth));
}

#[test]
fn only_a_used_up_time_has_its_own_code() {
    assert_eq!(LimitReached::Time.extended_error().code, 22);
    for limit in [
        LimitReached::Queries,
        LimitReached::Aliases,
        LimitReached::Depth,
        LimitReached::Octets,
        LimitReached::AddressFetches,
        LimitReached::DelegationFetches,
    ] {
        let error = limit.extended_error();
        assert!(error.code == 0 && !error.text.is_empty(), "{limit}");
    }
}

/// A step of a random tree of fetches. Numbers select a budget, modulo the number of budgets.
#[derive(Clone, Copy, Debug)]
enum Step {
    Query(usize),
    Alias(usize),
    Octets(usize, usize),
    Fetch(usize),
    AddressFetch(usize),
    /// The fetch ends, and its starter takes the rest if it still exists.
    Finish(usize),
    /// The client query or fetch ends, and nobody takes the rest.
    Abandon(usize),
    /// A fault of the caller: another budget takes the rest.
    RefundToOther(usize, usize),
}

fn step() -> impl Strategy<Value = Step> {
    let index = 0..1000usize;
    prop_oneof![
        4 => index.clone().prop_map(Step::Query),
        1 => index.clone().prop_map(Step::Alias),
        1 => (index.clone(), 0..300_000usize).prop_map(|(index, octets)| Step::Octets(index, octets)),
        2 => index.clone().prop_map(Step::Fetch),
        2 => index.clone().prop_map(Step::AddressFetch),
        2 => index.clone().prop_map(Step::Finish),
        1 => index.clone().prop_map(Step::Abandon),
        1 => (index.clone(), index).prop_map(|(from, to)| Step::RefundToOther(from, to)),
    ]
}

/// All budgets that one client query caused, and the work that was done with them.
struct Tree {
    budgets: Vec<(Option<Budget>, usize, DelegationFetches)>,
    done: Amounts,
    now: Instant,
}

impl Tree {
    fn new(limits: UpstreamLimits) -> Self {
        let now = Instant::now();
        let root = (Some(Budget::new(limits, now)), 0, DelegationFetches::default());
        Self { budgets: vec![root], done: Amounts::default(), now }
    }

    fn take(&mut self, step: Step) {
        let (now, count) = (self.now, self.budgets.len());
        match step {
            Step::Query(at) => {
                self.with(at, |budget, done| done.queries += u32::from(budget.take_query(now).is_ok()))
            }
            Step::Alias(at) => {
                self.with(at, |budget, done| done.aliases += u32::from(budget.take_alias().is_ok()))
            }
            Step::Octets(at, octets) => self.with(at, |budget, done| {
                done.octets += budget.take_octets(octets).map_or(0, |()| octets as u32);
            }),
            Step::Fetch(at) => self.start(at % count, |budget, _| budget.start_fetch(now)),
            Step::AddressFetch(at) => {
                let before = self.budgets.len();
                self.start(at % count, |budget, delegation| budget.start_address_fetch(delegation, now));
                self.done.address_fetches += (self.budgets.len() - before) as u32;
            }
            Step::Finish(at) => self.refund(at % count, self.budgets[at % count].1),
            Step::Abandon(at) => self.budgets[at % count].0 = None,
            Step::RefundToOther(from, to) => self.refund(from % count, to % count),
        }
    }

    fn with(&mut self, at: usize, act: impl Fn(&mut Budget, &mut Amounts)) {
        let at = at % self.budgets.len();
        if let Some(budget) = &mut self.budgets[at].0 {
            act(budget, &mut self.done);
        }
    }

    fn start(
        &mut self,
        at: usize,
        start: impl Fn(&mut Budget, &mut DelegationFetches) -> Result<Budget, LimitReached>,
    ) {
        let (budget, _, delegation) = &mut self.budgets[at];
        if let Some(Ok(fetch)) = budget.as_mut().map(|budget| start(budget, delegation)) {
            self.budgets.push((Some(fetch), at, DelegationFetches::default()));
        }
    }

    fn refund(&mut self, from: usize, to: usize) {
        if from == to || from == 0 {
            return;
        }
        let fetch = self.budgets[from].0.take();
        if let (Some(fetch), Some(starter)) = (fetch, &mut self.budgets[to].0) {
            starter.refund(fetch);
        }
    }
}

proptest! {
    #[test]
    fn all_fetches_together_stay_within_the_limits_of_the_client_query(
        steps in proptest::collection::vec(step(), 0..600),
        queries in 0..200u32,
    ) {
        let limits = UpstreamLimits { queries, ..UpstreamLimits::default() };
        let mut tree = Tree::new(limits);
        for step in steps {
            tree.take(step);
            prop_assert!(tree.done.queries <= limits.queries);
            prop_assert!(tree.done.aliases <= limits.aliases);
            prop_assert!(tree.done.octets <= limits.octets);
            prop_assert!(tree.done.address_fetches <= limits.address_fetches);
        }
    }

    #[test]
    fn a_starter_that_gets_every_fetch_back_loses_only_what_was_used(
        uses in proptest::collection::vec(0..20u32, 0..8),
    ) {
        let (mut budget, now) = budget();
        let (mut used, mut fetches) = (0, Vec::new());
        for wanted in uses {
            let Ok(mut fetch) = budget.start_fetch(now) else { break };
            used += (0..wanted).filter(|_| fetch.take_query(now).is_ok()).count() as u32;
            fetches.push(fetch);
        }
        fetches.into_iter().for_each(|fetch| budget.refund(fetch));
        prop_assert_eq!(budget.queries_left() + used, 64);
        prop_assert_eq!(budget.paid, Amounts::default());
    }
}
