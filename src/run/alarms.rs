//! What is wrong with the host while the daemon goes on: told by whoever notices it, shown by the
//! page, read before claims.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A kind of trouble.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Alarm {
    /// The disk has less room than it must keep: nothing new is claimed.
    DiskSpace,
    /// The store's file is damaged: nothing is claimed any more.
    StoreDamage,
    /// The store's write-ahead log cannot be shrunk.
    WriteAheadLog,
}

impl Alarm {
    /// Whether nothing new is claimed meanwhile.
    pub fn stops_claims(self) -> bool {
        match self {
            Alarm::DiskSpace | Alarm::StoreDamage => true,
            Alarm::WriteAheadLog => false,
        }
    }
}

/// The alarms of this process. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Alarms(Arc<Mutex<BTreeMap<Alarm, String>>>);

impl Alarms {
    /// Raises an alarm, or changes its words. True when it was not raised before.
    pub fn raise(&self, alarm: Alarm, why: impl Into<String>) -> bool {
        self.lock().insert(alarm, why.into()).is_none()
    }

    /// Clears an alarm. True when it was raised.
    pub fn clear(&self, alarm: Alarm) -> bool {
        self.lock().remove(&alarm).is_some()
    }

    /// Whether an alarm is raised.
    pub fn is_raised(&self, alarm: Alarm) -> bool {
        self.lock().contains_key(&alarm)
    }

    /// Why nothing new is claimed, one sentence each; empty when claims go on.
    pub fn stopping_claims(&self) -> Vec<String> {
        let raised = self.lock();
        let stopping = raised.iter().filter(|(alarm, _)| alarm.stops_claims());
        stopping.map(|(_, why)| why.clone()).collect()
    }

    /// Everything that is raised, one sentence each.
    pub fn all(&self) -> Vec<String> {
        self.lock().values().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Alarm, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alarm_is_new_once_and_stops_claims_by_its_kind() {
        let alarms = Alarms::default();
        assert!(alarms.raise(Alarm::WriteAheadLog, "The log grows."));
        assert_eq!(alarms.stopping_claims(), Vec::<String>::new());
        assert!(alarms.raise(Alarm::DiskSpace, "Little room."));
        assert!(!alarms.raise(Alarm::DiskSpace, "Less room."));
        assert_eq!(alarms.stopping_claims(), ["Less room."]);
        assert_eq!(alarms.clone().all(), ["Less room.", "The log grows."]);
        assert!(alarms.clear(Alarm::DiskSpace));
        assert!(!alarms.clear(Alarm::DiskSpace));
    }
}
