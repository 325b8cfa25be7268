//! Trees as they seldom are: cuts, glue, occluded names, empty non-terminals, DNAME, DS records nobody can use.

use super::*;

pub(super) const ROWS: &[Row] = &[row("no NS at the apex", "RFC 4035 §2.2", Scope::Every, |cell| {
    let text = "example. 60 SOA ns.test. h.test. 1 2 3 4 5\na.example. 60 A 192.0.2.1\n";
    cell.bench(&read_zone(text, &name("example.")), cell.csk(), &cell.options()).into()
})];

#[test]
fn unusual_structures() {
    try_all(&records::STRUCTURES.iter().map(plain).collect::<Vec<_>>());
    try_all(ROWS);
}
