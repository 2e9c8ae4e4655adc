//! Ends the daemon's work on a store whose file turned out to be damaged: each further write could
//! make it worse, and no further try helps.

use tracing::error;

use super::Context;
use crate::run::Alarm;
use crate::store::StoreError;

/// Raises the alarm when a failure says that the file is damaged. Whatever else failed is tried again.
pub(super) fn note(context: &Context, failure: &StoreError) {
    if !failure.is_damage() {
        return;
    }
    let why = format!(
        "Nothing is started any more: {failure}. Stop fleet, then `fleet restore FILE`; backups are in \
         {}.",
        context.config.state.backups().display()
    );
    if context.alarms.raise(Alarm::StoreDamage, why) {
        error!(
            error = %failure,
            "the store is damaged: nothing is claimed any more; stop this process and run `fleet restore FILE`"
        );
    }
}
