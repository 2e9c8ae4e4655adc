//! A whole year of a mixed bundle on a simulated clock, without containers: every due instant, every
//! policy, an operator, commits, clocks that are set and days without a daemon. In three parts, so that
//! they go side by side.

mod calendar;
mod drive;
mod rules;
mod tasks;

async fn holds_over(zones: &[&'static str]) {
    let year = drive::year(zones).await;
    let rows = rules::rows(&year);
    let kinds = rules::the_year_held_everything(&rows);
    rules::every_due_instant_has_one_row(&year, &rows);
    rules::every_row_has_its_end(&year, &rows);
    rules::nothing_ran_beside_what_excludes_it(&year);
    for kind in [
        "success",
        "dead_lettered",
        "cancelled",
        "skipped_overlap",
        "skipped_serialization",
        "skipped_misfire",
        "skipped_paused",
        "skipped_disabled_by_reload",
    ] {
        assert!(kinds.contains_key(kind), "no {kind} in {kinds:?}");
    }
}

#[tokio::test(flavor = "current_thread")]
async fn a_year_in_new_york_and_berlin_keeps_every_promise() {
    holds_over(&["America/New_York", "Europe/Berlin"]).await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_year_on_lord_howe_and_in_cairo_keeps_every_promise() {
    holds_over(&["Australia/Lord_Howe", "Africa/Cairo"]).await;
}

#[tokio::test(flavor = "current_thread")]
async fn a_year_in_dublin_sao_paulo_and_utc_keeps_every_promise() {
    holds_over(&["Europe/Dublin", "America/Sao_Paulo", "UTC"]).await;
}
