//! The reference of all keys, generated from their declarations: `etc/nonesuch.toml` and the manual
//! page nonesuch.toml(5).

use super::{limits, outputs, secrets, server, zone};

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

/// The manual page in roff.
pub(crate) fn page() -> String {
    let mut out = format!(
        ".TH nonesuch.toml 5 \"\" \"nonesuch {}\"\n.SH NAME\nnonesuch.toml \\- configuration of nonesuch serve\n.SH DESCRIPTION\n\
         .BR nonesuch\\-serve (1)\nwith \\-\\-config reads a file in this format (TOML). This page lists all keys with explanations.\n\
         .SH KEYS\n.nf\n",
        env!("CARGO_PKG_VERSION")
    );
    for line in reference().lines() {
        let escaped =
            line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('`', "\\(ga");
        // No line may begin with a roff control character.
        out.push_str(if escaped.starts_with('.') { "\\&" } else { "" });
        out.push_str(&escaped);
        out.push('\n');
    }
    out.push_str(".fi\n.SH SEE ALSO\n.BR nonesuch\\-serve (1),\n.BR nonesuch\\-ctl (1)\n");
    out
}

#[cfg(test)]
mod tests;
