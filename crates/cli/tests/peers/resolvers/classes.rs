//! The known kinds of difference between resolvers.

use super::exchange::Reply;
use nonesuch_lab::peers::Peer::{self, BindResolver, KnotResolver, PowerDnsRecursor, Unbound};
use nonesuch_proto::message::Rcode;

/// A kind of difference.
pub(crate) struct Class {
    /// The name in docs/differences.md.
    pub(crate) name: &'static str,
    /// The peers with this difference.
    pub(crate) peers: &'static [Peer],
    /// The zones in which it occurs.
    pub(crate) faults: &'static [&'static str],
    /// Whether it occurs in each run. Otherwise it depends on the server that a resolver asks first.
    pub(crate) is_certain: bool,
    /// Whether it is the difference between our reply and theirs.
    pub(crate) explains: fn(&Reply, &Reply) -> bool,
}

pub(crate) const CLASSES: &[Class] = &[
    Class {
        name: "octets-after-the-message",
        peers: &[Unbound, BindResolver, PowerDnsRecursor],
        faults: &["trailing-octets-all"],
        is_certain: true,
        explains: only_ours_fails,
    },
    Class {
        name: "badvers-as-failure",
        peers: &[BindResolver, KnotResolver, PowerDnsRecursor],
        faults: &["badvers-all"],
        is_certain: true,
        explains: only_theirs_fails,
    },
    Class {
        name: "badvers-as-no-data",
        peers: &[Unbound],
        faults: &["badvers-all"],
        is_certain: true,
        explains: theirs_is_no_data,
    },
    Class {
        name: "badvers-as-no-data",
        peers: &[Unbound, KnotResolver],
        faults: &["badvers-one", "badvers-all"],
        is_certain: false,
        explains: theirs_is_no_data,
    },
    Class {
        name: "referral-as-no-data",
        peers: &[Unbound, KnotResolver],
        faults: &["refers-to-itself-all", "parent-is-server"],
        is_certain: true,
        explains: |ours, theirs| ours.rcode == Rcode::SERVFAIL && is_no_data(theirs),
    },
    Class {
        name: "referral-as-no-data",
        peers: &[Unbound],
        faults: &["refers-to-itself-one"],
        is_certain: false,
        explains: theirs_is_no_data,
    },
    Class {
        name: "number-of-nameservers",
        peers: &[KnotResolver, PowerDnsRecursor],
        faults: &["many-missing-names-one"],
        is_certain: true,
        explains: only_theirs_fails,
    },
    Class {
        name: "alias-of-nameserver",
        peers: &[BindResolver],
        faults: &["name-is-alias"],
        is_certain: true,
        explains: only_theirs_fails,
    },
    Class {
        name: "denial-without-aa",
        peers: &[PowerDnsRecursor],
        faults: &["no-aa-all"],
        is_certain: true,
        explains: |ours, theirs| is_no_data(ours) && theirs.rcode == Rcode::SERVFAIL,
    },
    Class {
        name: "name-with-data-and-denial",
        peers: &[BindResolver],
        faults: &["denies-empty-names-all"],
        is_certain: true,
        explains: only_theirs_denies,
    },
    Class {
        name: "name-with-data-and-denial",
        peers: &[PowerDnsRecursor],
        faults: &["denies-empty-names-all"],
        is_certain: false,
        explains: only_theirs_denies,
    },
    Class {
        name: "alias-in-failure",
        peers: &[Unbound, PowerDnsRecursor],
        faults: &["alias-loop", "alias-to-itself"],
        is_certain: true,
        explains: both_fail,
    },
    Class {
        name: "alias-in-failure",
        peers: &[KnotResolver, PowerDnsRecursor],
        faults: &["alias-to-lame-zone"],
        is_certain: true,
        explains: both_fail,
    },
    Class {
        name: "malformed-response-ends-the-query",
        peers: &[BindResolver],
        faults: &["garbage-one"],
        is_certain: false,
        explains: only_theirs_fails,
    },
    Class {
        name: "slow-servers",
        peers: &[Unbound],
        faults: &["slow-one", "slow-all"],
        is_certain: false,
        explains: only_theirs_fails,
    },
];

fn is_no_data(reply: &Reply) -> bool {
    reply.rcode == Rcode::NOERROR && reply.answer.is_empty()
}

fn only_ours_fails(ours: &Reply, theirs: &Reply) -> bool {
    ours.rcode == Rcode::SERVFAIL && theirs.rcode != Rcode::SERVFAIL
}

fn only_theirs_fails(ours: &Reply, theirs: &Reply) -> bool {
    only_ours_fails(theirs, ours)
}

fn only_theirs_denies(ours: &Reply, theirs: &Reply) -> bool {
    ours.rcode == Rcode::NOERROR && theirs.rcode == Rcode::NXDOMAIN
}

/// Only records of the answer section differ.
fn both_fail(ours: &Reply, theirs: &Reply) -> bool {
    ours.rcode == Rcode::SERVFAIL && theirs.rcode == Rcode::SERVFAIL
}

/// Their reply is NOERROR and lacks records, or the denial, of ours.
fn theirs_is_no_data(ours: &Reply, theirs: &Reply) -> bool {
    theirs.rcode == Rcode::NOERROR && (ours.rcode == Rcode::NXDOMAIN || theirs.answer.is_subset(&ours.answer))
}
