//! The references of all keys, generated from their declarations: `etc/nonesuch.toml`,
//! `etc/resolver.toml`, and the manual pages nonesuch.toml(5) and nonesuch-resolver.toml(5).

use super::{limits, outputs, resolver, secrets, server, zone};

/// The text of `etc/nonesuch.toml`.
fn reference() -> String {
    [
        server::table().reference(false),
        outputs::log_table().reference(false),
        outputs::dnstap_table().reference(true),
        limits::table().reference(false),
        secrets::cookie_table().reference(false),
        secrets::key_table().reference(true),
        zone::table().reference(true),
    ]
    .concat()
}

/// The manual page of the configuration of a server, in roff.
pub(crate) fn page() -> String {
    roff("nonesuch.toml", "serve", &reference(), ".BR nonesuch\\-serve (1),\n.BR nonesuch\\-ctl (1)\n")
}

/// The manual page of the configuration of a resolver, in roff.
pub(crate) fn resolver_page() -> String {
    roff("nonesuch-resolver.toml", "resolve", &resolver::reference(), ".BR nonesuch\\-resolve (1)\n")
}

/// A manual page with a reference. `command` reads the configuration.
fn roff(name: &str, command: &str, reference: &str, see_also: &str) -> String {
    let escaped_name = name.replace('-', "\\-");
    let mut out = format!(
        ".TH {name} 5 \"\" \"nonesuch {}\"\n.SH NAME\n{escaped_name} \\- configuration of nonesuch {command}\n.SH DESCRIPTION\n\
         .BR nonesuch\\-{command} (1)\nwith \\-\\-config reads a file in this format (TOML). This page lists all keys with explanations.\n\
         .SH KEYS\n.nf\n",
        env!("CARGO_PKG_VERSION")
    );
    for line in reference.lines() {
        let escaped =
            line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('`', "\\(ga");
        // No line may begin with a roff control character.
        out.push_str(if escaped.starts_with('.') { "\\&" } else { "" });
        out.push_str(&escaped);
        out.push('\n');
    }
    out + ".fi\n.SH SEE ALSO\n" + see_also
}

#[cfg(test)]
mod tests;
