//! Limits in the responder, with a simulated clock, for clients without cookies.

use super::responder::context;
use super::*;
use crate::AnswerSettings;
use crate::responder::{Responder, ServerContext};
use crate::zones::ZoneState;
use nonesuch_net::{Answer, Handler};
use nonesuch_proto::message::Header;
use nonesuch_server::limits::{LimitSettings, Limits};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

const FLOODING_CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

/// A worker that answers UDP queries for example., with the default limits and a simulated clock.
struct Worker {
    responder: Responder,
    started_at: Instant,
    now: Duration,
    /// CPU time of the worker so far.
    cpu_time: Duration,
    /// Time to generate an online answer.
    cost: Duration,
    names: usize,
}

/// Number of responses by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ResponseCounts {
    denied: usize,
    truncated: usize,
    lost: usize,
}

impl ResponseCounts {
    fn count(&mut self, answer: Option<&[u8]>) {
        let header = answer.map(|answer| Header::read(answer).expect("a header"));
        match header {
            Some(header) if header.flags & flags::TC != 0 => self.truncated += 1,
            Some(header) => {
                assert_eq!(header.rcode(), Rcode::NXDOMAIN);
                self.denied += 1;
            }
            None => self.lost += 1,
        }
    }
}

impl Worker {
    fn new(mechanism: Mechanism, cost: Duration) -> Self {
        let text = "$TTL 60\n@ SOA ns h 1 1 1 1 60\n@ NS ns\nns A 192.0.2.1\n";
        let zone = Zone::new(text, "example.", Some(mechanism)).server.zone;
        let context: ServerContext = context(&[("example.", ZoneState::Serving(zone))]);
        let limits = Some(Arc::new(Limits::new(&LimitSettings::default()).unwrap()));
        context.settings.store(Arc::new(AnswerSettings { limits, ..AnswerSettings::default() }));
        let responder = responder::responder(&context, Transport::Udp);
        let (now, cpu_time) = Default::default();
        Self { responder, started_at: Instant::now(), now, cpu_time, cost, names: 0 }
    }

    /// Sends a batch of queries without cookies from these addresses, each for a different name
    /// that does not exist.
    fn batch(&mut self, clients: &[IpAddr]) -> Vec<ResponseCounts> {
        let (mut outcomes, mut deferred) = (vec![ResponseCounts::default(); clients.len()], Vec::new());
        let cpu_time = self.cpu_time;
        let seconds = u64::from(NOW) + self.now.as_secs();
        self.responder
            .begin_batch_at(self.started_at + self.now, seconds, || Some(cpu_time.as_nanos() as u64));
        for (client, outcome) in clients.iter().zip(&mut outcomes) {
            self.names += 1;
            let message = query(&name(&format!("none{}.example.", self.names)), Rtype::A, Some((1232, true)));
            let (sender, mut out) = (SocketAddr::new(*client, 4000), Vec::new());
            match self.responder.answer(&message, sender, &mut out) {
                Answer::Ready => outcome.count(Some(&out)),
                Answer::Nothing => outcome.count(None),
                Answer::Deferred => deferred.push((message, sender, outcome)),
                Answer::Stream => panic!("a stream"),
            }
        }
        let spent = self.cost * u32::try_from(deferred.len()).unwrap();
        if !deferred.is_empty() {
            self.responder.generate_deferred_at(self.started_at + self.now);
        }
        for (message, sender, outcome) in deferred {
            let mut out = Vec::new();
            let is_answered = self.responder.answer_again(&message, sender, &mut out);
            outcome.count(Some(&*out).filter(|_| is_answered));
        }
        self.responder.end_batch_at(self.started_at + self.now + spent);
        self.cpu_time += spent;
        // The next batch begins after a millisecond, or as soon as this one is complete.
        self.now += spent.max(Duration::from_millis(1));
        outcomes
    }

    /// Sends queries for `time`: ten each millisecond from the loud /24, and one from each quiet
    /// client every ten milliseconds.
    fn run(&mut self, time: Duration, quiet: &[IpAddr]) -> [ResponseCounts; 2] {
        let end = self.now + time;
        let mut sums = [ResponseCounts::default(); 2];
        let mut last = self.now;
        while self.now < end {
            let passed = self.now.as_millis() - last.as_millis();
            let mut clients = vec![FLOODING_CLIENT; (10 * passed.max(1)) as usize];
            if self.now.as_millis() / 10 > last.as_millis() / 10 {
                clients.extend(quiet);
            }
            last = self.now;
            for (client, outcome) in clients.iter().zip(self.batch(&clients)) {
                let sum = &mut sums[usize::from(*client != FLOODING_CLIENT)];
                sum.denied += outcome.denied;
                sum.truncated += outcome.truncated;
                sum.lost += outcome.lost;
            }
        }
        sums
    }
}

/// 10,000 NXDOMAIN responses a second to one /24, as a registry sends to the resolvers of a large
/// network.
#[test]
fn one_network_loses_nothing_on_a_presigned_zone() {
    for mechanism in [Mechanism::Nsec, Mechanism::Nsec3] {
        let [loud, _] = Worker::new(mechanism, Duration::ZERO).run(Duration::from_secs(1), &[]);
        assert_eq!(loud, ResponseCounts { denied: 10_000, ..ResponseCounts::default() });
    }
}

/// The same with white lies. Their signatures take 40 % of the worker's time; its online share is
/// 50 %.
#[test]
fn one_network_loses_nothing_on_white_lies_while_the_online_share_lasts() {
    let mut worker = Worker::new(Mechanism::WhiteLies, Duration::from_micros(40));
    let [loud, _] = worker.run(Duration::from_millis(400), &[]);
    assert_eq!(loud, ResponseCounts { denied: 4000, ..ResponseCounts::default() });
}

/// Signatures would take 120 % of the worker's time. The loud network gets the remainder of the
/// online share. The other networks need less than an equal share and get all their answers.
#[test]
fn other_networks_get_their_share_of_white_lies_beside_a_loud_one() {
    let mut worker = Worker::new(Mechanism::WhiteLies, Duration::from_micros(120));
    let quiet: Vec<IpAddr> = (0..4).map(|number| IpAddr::from([198, 51, number, 1])).collect();
    worker.run(Duration::from_millis(200), &quiet);
    let [loud, quiet] = worker.run(Duration::from_millis(500), &quiet);
    assert!(loud.truncated > 2000 && loud.denied > 1000 && loud.denied < 2200, "{loud:?}");
    assert!(quiet.denied > 150 && quiet.truncated * 50 <= quiet.denied, "{quiet:?}");
    assert_eq!((loud.lost, quiet.lost), (0, 0), "clients come back over TCP");
}
