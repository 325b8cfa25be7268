//! The amount of memory available to the process.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Returns the maximum octets of memory of this process: the memory of the machine, or less if a
/// control group limits it (`MemoryMax=` of systemd.resource-control(5), a container). Returns
/// `None` if the system reports neither. The value is read once and then stays the same.
#[must_use]
pub fn memory_limit() -> Option<u64> {
    static LIMIT: OnceLock<Option<u64>> = OnceLock::new();
    *LIMIT.get_or_init(|| {
        let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        physical_memory().into_iter().chain(control_group_limit(Path::new("/sys/fs/cgroup"), &groups)).min()
    })
}

#[allow(unsafe_code)]
fn physical_memory() -> Option<u64> {
    // SAFETY: sysconf takes a number and returns one.
    let [pages, octets] =
        [libc::_SC_PHYS_PAGES, libc::_SC_PAGESIZE].map(|name| unsafe { libc::sysconf(name) });
    u64::try_from(pages).ok()?.checked_mul(u64::try_from(octets).ok()?).filter(|octets| *octets > 0)
}

/// Returns the lowest limit of the control group in the lines of `/proc/self/cgroup` and of its
/// ancestors (cgroups(7), version 2). Within a control group namespace, the root may have a limit
/// too.
fn control_group_limit(mount_point: &Path, groups: &str) -> Option<u64> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let own_group: PathBuf = mount_point.join(group);
    let limit = |group: &Path| fs::read_to_string(group.join("memory.max")).ok()?.trim().parse().ok();
    own_group.ancestors().take_while(|group| group.starts_with(mount_point)).filter_map(limit).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_bound_of_all_groups_around_holds() {
        let mount_point = tempfile::tempdir().unwrap();
        let service = mount_point.path().join("system.slice/nonesuch.service");
        fs::create_dir_all(&service).unwrap();
        let set = |group: &Path, text: &str| fs::write(group.join("memory.max"), text).unwrap();
        let limit = |groups: &str| control_group_limit(mount_point.path(), groups);
        let named = "4:memory:/elsewhere\n0::/system.slice/nonesuch.service\n";
        assert_eq!(limit(named), None);
        set(&service, "max\n");
        assert_eq!(limit(named), None);
        set(&mount_point.path().join("system.slice"), "2000000\n");
        assert_eq!(limit(named), Some(2_000_000));
        set(&service, "1000000\n");
        assert_eq!(limit(named), Some(1_000_000));
        assert_eq!(limit("0::/\n"), None);
        set(mount_point.path(), "500000\n");
        assert_eq!([limit("0::/\n"), limit(named)], [Some(500_000); 2]);
        // A group that is outside of the namespace, and a system with version 1 only.
        assert_eq!([limit("0::/../../outside\n"), limit("4:memory:/a\n")], [Some(500_000), None]);
        assert!(memory_limit().is_some());
    }
}
