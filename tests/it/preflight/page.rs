//! `docs/hosts.md` lists every refusal as it is printed.

use std::collections::BTreeSet;

use fleet::sandbox::{refusals, refusals_table};

use crate::env::source_root;

const BEGIN: &str = "<!-- refusals: generated from src/sandbox/refusals.rs -->\n";
const END: &str = "<!-- end of refusals -->";

#[test]
fn the_page_of_hosts_lists_every_refusal_as_it_is_printed() {
    let path = source_root().join("docs/hosts.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let (before, rest) = page.split_once(BEGIN).expect("the table begins");
    let (written, after) = rest.split_once(END).expect("the table ends");
    let table = refusals_table();
    if std::env::var_os("FLEET_WRITE_DOCS").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).expect("written");
        return;
    }
    assert_eq!(written, table, "docs/hosts.md is stale: run this test with FLEET_WRITE_DOCS=1");
}

#[test]
fn every_refusal_has_a_code_of_its_own_and_a_place_in_the_table() {
    let listed: Vec<&str> = refusals().iter().map(fleet::sandbox::PreflightError::code).collect();
    let distinct: BTreeSet<&str> = listed.iter().copied().collect();
    assert_eq!(distinct.len(), listed.len(), "{listed:?}");
    // The match over all variants names each code once.
    let source = std::fs::read_to_string(source_root().join("src/sandbox/error.rs"));
    let source = source.expect("the source");
    let body = source.split("pub fn code(").nth(1).expect("the codes");
    let written: BTreeSet<&str> =
        body.lines().filter_map(|line| line.split("=> \"").nth(1)?.split('"').next()).collect();
    assert_eq!(written, distinct);
}
