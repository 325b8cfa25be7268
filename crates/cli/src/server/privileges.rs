//! The user that the server runs as.

use nix::sys::prctl::set_no_new_privs;
use nix::unistd::{Gid, Uid, User, getgrouplist, setgid, setgroups, setuid};
use std::ffi::CString;

/// Why the server cannot become the configured user.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PrivilegeError {
    #[error("user {0:?} does not exist: create it (`adduser --system --group {0}`), or name another")]
    NoUser(String),
    #[error(
        "user {user:?}: only root can become another user: start as root or as {user}, or leave \
        user out"
    )]
    NotRoot { user: String },
    #[error("user {user:?}: {step} failed: {source}")]
    System { user: String, step: &'static str, source: nix::Error },
    #[error(
        "user {user:?}: the process could become root again after it had dropped the privileges; \
        refusing to run"
    )]
    Kept { user: String },
}

/// The user that the server becomes, with its groups.
#[derive(Debug)]
pub(crate) struct Account {
    name: String,
    pub(crate) uid: Uid,
    gid: Gid,
    groups: Vec<Gid>,
}

impl Account {
    /// Looks up `user`. Returns `None` if the server keeps its current user.
    pub(crate) fn find(user: Option<&str>) -> Result<Option<Self>, PrivilegeError> {
        let Some(name) = user else { return Ok(None) };
        let failed = |step| move |source| PrivilegeError::System { user: name.to_owned(), step, source };
        let found = User::from_name(name).map_err(failed("looking up the user"))?;
        let found = found.ok_or_else(|| PrivilegeError::NoUser(name.to_owned()))?;
        let c_name = CString::new(name).map_err(|_| PrivilegeError::NoUser(name.to_owned()))?;
        let groups = getgrouplist(&c_name, found.gid).map_err(failed("looking up the groups of the user"))?;
        Ok(Some(Self { name: name.to_owned(), uid: found.uid, gid: found.gid, groups }))
    }
}

/// Permanently becomes the user `account`, with the groups of that user. Does not change the user
/// if `account` is `None` or the current user. Call it before threads start that must run as that
/// user.
pub(crate) fn drop_privileges(account: Option<&Account>) -> Result<(), PrivilegeError> {
    // Programs that this process might start cannot gain privileges. The error is ignored, because
    // the server starts no programs.
    let _ = set_no_new_privs();
    let Some(Account { name, uid, gid, groups }) = account.filter(|account| account.uid != Uid::effective())
    else {
        return Ok(());
    };
    if !Uid::effective().is_root() {
        return Err(PrivilegeError::NotRoot { user: name.clone() });
    }
    let failed = |step| move |source| PrivilegeError::System { user: name.clone(), step, source };
    setgroups(groups).map_err(failed("setting the groups of the process"))?;
    setgid(*gid).map_err(failed("setting the group of the process"))?;
    setuid(*uid).map_err(failed("setting the user of the process"))?;
    if setuid(Uid::from_raw(0)).is_ok() {
        return Err(PrivilegeError::Kept { user: name.clone() });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_the_missing_user() {
        let error = Account::find(Some("nobody-of-this-name")).unwrap_err();
        assert!(matches!(&error, PrivilegeError::NoUser(user) if user == "nobody-of-this-name"), "{error}");
    }
}
