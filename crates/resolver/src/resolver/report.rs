//! Reports of failures to the agents that authoritative servers name (RFC 9567).
//!
//! A report is a query. Its answer is cached as others are, so that the same failure is not reported
//! again as long as the answer is cached (RFC 9567 §4).

use super::Resolver;
use super::anchors::unvalidated;
use crate::budget::Budget;
use crate::task::{ErrorDetail, Task, TaskId, Waiter};
use nonesuch_net::machine::Now;
use nonesuch_proto::edns::{self, Opt};
use nonesuch_proto::message::Message;
use nonesuch_proto::{Name, NameRef, Rtype};

/// The first label of a report, and the label in front of the domain of the agent (RFC 9567 §6.1.1).
const REPORT_LABEL: &[u8] = b"_er";
/// Maximum number of reports of a worker in a second.
const REPORTS_PER_SECOND: u32 = 10;

/// The reports of the last second.
#[derive(Debug, Default)]
pub(super) struct Reports {
    second: u64,
    count: u32,
}

impl Reports {
    /// Counts a report. Returns `false` if there were too many in this second.
    fn take(&mut self, unix: u64) -> bool {
        if self.second != unix {
            *self = Self { second: unix, count: 0 };
        }
        self.count += 1;
        self.count <= REPORTS_PER_SECOND
    }
}

impl Resolver {
    /// Remembers the agent that the response names for failures of the task's question.
    pub(super) fn note_agent(&mut self, id: TaskId, message: &Message) {
        let Some(task) = self.tasks.get_mut(id).filter(|_| self.settings.options.error_reporting) else {
            return;
        };
        let is_forwarder = task.delegation.as_ref().is_none_or(|delegation| delegation.is_forwarder());
        task.agent = agent(message).filter(|_| !is_forwarder);
    }

    /// Reports the failure of a client's question to the agent of the server that responded last.
    pub(super) fn report(&mut self, id: TaskId, error: &ErrorDetail, now: Now) {
        // The failure of a question about servers or keys leads to that of a client's question.
        let has_client =
            |task: &&mut Task| task.waiters.iter().any(|waiter| matches!(waiter, Waiter::Client(_)));
        let Some(task) = self.tasks.get_mut(id).filter(has_client) else { return };
        let Some(agent) = task.agent.take() else { return };
        let Some(name) = report_name(task.name.view(), task.question.rtype, error.code, agent.view()) else {
            return;
        };
        let question = unvalidated(name, Rtype::TXT);
        if self.tasks.find(&question).is_some() || self.is_full() || !self.reports.take(now.unix) {
            return;
        }
        let budget = Budget::new(self.settings.options.limits, now.instant);
        let id = self.start_task(question, (0, 0), budget, Vec::new());
        if let Some(task) = self.tasks.get_mut(id) {
            task.is_report = true;
        }
    }
}

/// Returns the domain of the agent in the option of a response. RFC 9567 §4: not the root.
fn agent(message: &Message) -> Option<Name> {
    let opt = message.opt()?;
    let data = Opt::from_parts(opt.class.0, opt.ttl, &opt.rdata)?.option(edns::REPORT_CHANNEL)?;
    edns::read_report_channel(data).filter(|agent| !agent.is_root()).map(|agent| agent.to_canonical())
}

/// Returns the name of a report (RFC 9567 §6.1.1); `None` if it is too long, or for a name that is a
/// report itself: the failure of a report is not reported (RFC 9567 §6.1).
fn report_name(name: NameRef<'_>, rtype: Rtype, code: u16, agent: NameRef<'_>) -> Option<Name> {
    if name.labels().next() == Some(REPORT_LABEL) {
        return None;
    }
    let (rtype, code) = (rtype.0.to_string(), code.to_string());
    let mut report = Name::prepend(REPORT_LABEL, agent).ok()?;
    report = Name::prepend(code.as_bytes(), report.view()).ok()?;
    let labels: Vec<&[u8]> = name.labels().filter(|label| !label.is_empty()).collect();
    for label in labels.into_iter().rev().chain([rtype.as_bytes(), REPORT_LABEL]) {
        report = Name::prepend(label, report.view()).ok()?;
    }
    Some(report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::name;

    /// The example of RFC 9567 §4.2, and the limit of names.
    #[test]
    fn a_report_has_type_name_and_code() {
        let report = |of: &str, agent: &str| {
            report_name(name(of).view(), Rtype::A, 7, name(agent).view()).map(|name| name.to_string())
        };
        let found = report("broken.test.", "a01.agent-domain.example.");
        assert_eq!(found.as_deref(), Some("_er.1.broken.test.7._er.a01.agent-domain.example."));
        assert_eq!(report(".", "agent.").as_deref(), Some("_er.1.7._er.agent."));
        assert_eq!(report("_er.1.broken.test.7._er.agent.", "agent."), None);
        // The longest report has 255 octets.
        let long = |octets: usize| format!("{0}.{0}.{0}.{1}.", "x".repeat(59), "y".repeat(octets));
        let of = |octets: usize| {
            let report = report_name(name(&long(octets)).view(), Rtype::A, 7, name("a.").view());
            report.map(|name| name.wire().len())
        };
        let longest = (1..=63).rev().find(|octets| of(*octets).is_some()).unwrap();
        assert_eq!((of(longest), of(longest + 1)), (Some(255), None));
    }

    #[test]
    fn reports_are_few() {
        let mut reports = Reports::default();
        let sent = |reports: &mut Reports, unix| (0..100).filter(|_| reports.take(unix)).count();
        assert_eq!([7, 8].map(|unix| sent(&mut reports, unix)), [REPORTS_PER_SECOND as usize; 2]);
    }
}
