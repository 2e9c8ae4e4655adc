//! The page about schedules names tests that exist.

use crate::env::source_root;

#[test]
fn tests_that_the_schedules_page_names_exist() {
    let page = std::fs::read_to_string(source_root().join("docs/schedules.md")).expect("the page");
    let tests = crate::structure::every_test();
    let mut named = 0;
    let mut missing = Vec::new();
    for name in page.split('`').skip(1).step_by(2).filter(|name| name.contains("::")) {
        named += 1;
        let test = name.rsplit("::").next().unwrap_or_default();
        if !tests.contains(&format!("fn {test}(")) {
            missing.push(name);
        }
    }
    assert_eq!(missing, Vec::<&str>::new());
    assert!(named > 20, "{named} tests are named");
}
