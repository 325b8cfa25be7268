//! The addresses of the servers of a check.

use std::net::Ipv4Addr;

/// The part of a server. A resolver remembers the faults of a server by its address, so servers with
/// faults have addresses of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::check) enum Role {
    /// The root.
    Root,
    /// The domain of the check.
    Suffix,
    /// The domain of the run.
    Run,
    /// The zones below.
    Leaf,
    /// Zones below these, and some others.
    Child,
    /// FORMERR for queries with EDNS.
    RejectsEdns,
    /// Slow responses.
    Slow,
    /// Large responses over UDP are lost.
    DropsLarge,
    /// Nothing listens there.
    Unreachable,
}

/// The number of roles whose address does not change from run to run.
const CONSTANT_ROLES: usize = 2;

/// The address of the root of a delegated domain, which is not served.
const UNUSED: Ipv4Addr = Ipv4Addr::new(127, 255, 255, 254);

/// The addresses by role.
#[derive(Clone, Debug)]
pub(in crate::check) struct Addresses(Vec<Ipv4Addr>);

impl Addresses {
    const ROLES: usize = Role::Unreachable as usize + 1;

    /// Loopback addresses: `root` and the next one for the root and the domain of the check, the same in
    /// each run; the others in another network of 256 addresses, number `run` after that of `root`.
    pub(in crate::check) fn loopback(root: Ipv4Addr, run: u8) -> Self {
        let [first, second, third, fourth] = root.octets();
        let of_run = |role: usize| Ipv4Addr::new(first, second, third.wrapping_add(run), role as u8 + 1);
        let constant = |role: usize| Ipv4Addr::new(first, second, third, fourth.wrapping_add(role as u8));
        Self(
            (0..Self::ROLES)
                .map(|role| if role < CONSTANT_ROLES { constant(role) } else { of_run(role) })
                .collect(),
        )
    }

    /// The addresses of a delegated domain. If there are fewer than roles, the last one has the remaining
    /// roles.
    pub(in crate::check) fn delegated(addresses: &[Ipv4Addr]) -> Self {
        let last = addresses.last().copied().unwrap_or(Ipv4Addr::LOCALHOST);
        let listed = [UNUSED].into_iter().chain(addresses.iter().copied());
        Self(listed.chain(std::iter::repeat(last)).take(Self::ROLES).collect())
    }

    /// The address of a role.
    pub(in crate::check) fn of(&self, role: Role) -> Ipv4Addr {
        self.0.get(role as usize).copied().unwrap_or(Ipv4Addr::LOCALHOST)
    }

    /// Addresses on which no server listens.
    pub(in crate::check) fn silent(&self) -> Vec<Ipv4Addr> {
        let unreachable = Some(self.of(Role::Unreachable)).filter(|_| self.is_separate(Role::Unreachable));
        unreachable.into_iter().chain([UNUSED]).collect()
    }

    /// Whether the check serves a root. A delegated domain has that of its parent zones.
    pub(in crate::check) fn has_root(&self) -> bool {
        self.of(Role::Root) != UNUSED
    }

    /// Whether no other role has the address of this one.
    pub(in crate::check) fn is_separate(&self, role: Role) -> bool {
        self.0.iter().filter(|address| **address == self.of(role)).count() == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_share_the_addresses_of_the_root_and_the_domain_only() {
        let root = Ipv4Addr::new(127, 53, 0, 1);
        let (one, two) = (Addresses::loopback(root, 7), Addresses::loopback(root, 9));
        for role in [Role::Root, Role::Suffix] {
            assert_eq!(one.of(role), two.of(role));
        }
        assert_eq!(one.of(Role::Run), Ipv4Addr::new(127, 53, 7, 3));
        assert_ne!(one.of(Role::Leaf), two.of(Role::Leaf));
        assert!(one.is_separate(Role::Slow) && one.has_root());
    }

    #[test]
    fn one_address_has_all_roles_of_a_delegated_domain() {
        let address = Ipv4Addr::new(192, 0, 2, 1);
        let addresses = Addresses::delegated(&[address]);
        assert_eq!((addresses.of(Role::Suffix), addresses.of(Role::Unreachable)), (address, address));
        assert!(!addresses.is_separate(Role::Slow));
    }

    #[test]
    fn a_delegated_domain_has_no_root_whatever_the_number_of_addresses() {
        for count in 1..=8 {
            let listen: Vec<_> = (1..=count).map(|last| Ipv4Addr::new(192, 0, 2, last)).collect();
            let addresses = Addresses::delegated(&listen);
            assert!(!addresses.has_root(), "{count}");
            assert_eq!(addresses.is_separate(Role::Suffix), count > 1);
        }
    }
}
