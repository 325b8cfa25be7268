//! The manual page of the configuration, nonesuch.toml(5), out of the annotated example.

/// The annotated example, which holds every key.
const EXAMPLE: &str = include_str!("../../../../etc/nonesuch.toml");

/// The page in roff, for man(1).
pub(crate) fn page() -> String {
    let mut out = format!(
        ".TH nonesuch.toml 5 \"\" \"nonesuch {}\"\n.SH NAME\nnonesuch.toml \\- configuration of nonesuch serve\n.SH DESCRIPTION\n\
         .BR nonesuch\\-serve (1)\nwith \\-\\-config reads a file of this form (TOML). What follows holds every key with its explanation.\n\
         .SH KEYS\n.nf\n",
        env!("CARGO_PKG_VERSION")
    );
    for line in EXAMPLE.lines() {
        let escaped =
            line.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('`', "\\(ga");
        // No line begins with a control character.
        out.push_str(if escaped.starts_with('.') { "\\&" } else { "" });
        out.push_str(&escaped);
        out.push('\n');
    }
    out.push_str(".fi\n.SH SEE ALSO\n.BR nonesuch\\-serve (1),\n.BR nonesuch\\-ctl (1)\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_holds_every_line_and_no_macro_by_chance() {
        let page = page();
        for words in ["control\\-socket = ", "[zone.\"example.\"]", "member\\-template = "] {
            assert!(page.contains(words), "{words}");
        }
        let keys = page.split(".nf\n").nth(1).and_then(|rest| rest.split(".fi\n").next()).unwrap_or_default();
        assert_eq!(keys.lines().count(), EXAMPLE.lines().count());
        assert!(keys.lines().all(|line| !line.starts_with(['.', '\''])));
    }
}
