//! Starts nothing new while the state directory's disk has less room than it must keep: a run that
//! meets a full disk loses its work. Goes on by itself once there is room.

use std::path::Path;

use tracing::{info, warn};

use super::Context;
use crate::run::Alarm;

/// Whether there is room for a run; raises and clears the alarm.
pub(super) fn admits(context: &Context) -> bool {
    match shortage(context.config.state.root(), context.config.disk_min_free) {
        Some(why) => {
            if context.alarms.raise(Alarm::DiskSpace, why.clone()) {
                warn!(reason = why, "nothing new is claimed");
            }
            false
        }
        None => {
            if context.alarms.clear(Alarm::DiskSpace) {
                info!("there is room on the disk again: claims go on");
            }
            true
        }
    }
}

/// Why there is too little room, in a sentence for people. A threshold of 0 asks nothing.
pub fn shortage(state: &Path, min_free: u64) -> Option<String> {
    if min_free == 0 {
        return None;
    }
    match rustix::fs::statvfs(state) {
        Ok(disk) => told(state, disk.f_bavail.saturating_mul(disk.f_frsize), min_free),
        Err(error) => Some(format!(
            "The free space of {} cannot be read ({error}): nothing new is started.",
            state.display()
        )),
    }
}

fn told(state: &Path, free: u64, min_free: u64) -> Option<String> {
    (free < min_free).then(|| {
        format!(
            "The disk of {} has {} free, less than disk.min_free ({}): nothing new is started until \
             there is room.",
            state.display(),
            size(free),
            size(min_free)
        )
    })
}

/// Bytes in words: `1.5 GiB`.
pub fn size(bytes: u64) -> String {
    const UNITS: [(&str, u32); 4] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)];
    for (name, shift) in UNITS {
        let tenths = (u128::from(bytes) * 10) >> shift;
        if tenths >= 10 {
            return format!("{}.{} {name}", tenths / 10, tenths % 10);
        }
    }
    format!("{bytes} B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_room_than_must_be_kept_is_told_with_both_sizes() {
        let state = Path::new("/s");
        assert_eq!(told(state, 1 << 30, 1 << 30), None);
        assert_eq!(
            told(state, (1 << 30) - 1, 1 << 30).as_deref(),
            Some(
                "The disk of /s has 1023.9 MiB free, less than disk.min_free (1.0 GiB): nothing new \
                 is started until there is room."
            )
        );
    }

    #[test]
    fn a_guard_that_is_off_asks_nothing() {
        assert_eq!(shortage(Path::new("/nowhere"), 0), None);
        let unread = shortage(Path::new("/nowhere"), 1).expect("it cannot be read");
        assert!(unread.starts_with("The free space of /nowhere cannot be read"), "{unread}");
    }

    #[test]
    fn sizes_are_in_binary_units() {
        let words = [0, 1023, 1024, 1536, 5 << 30].map(size);
        assert_eq!(words, ["0 B", "1023 B", "1.0 KiB", "1.5 KiB", "5.0 GiB"]);
    }
}
