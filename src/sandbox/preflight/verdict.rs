//! Whether what the probe read suffices.

use super::super::error::{LimitsCause, PreflightError};
use super::super::report::{BEST_EFFORT, ENFORCED};
use super::probe;
use crate::config::LimitsMode;
use crate::run::SealLine;

/// Whether the lines suffice, and what that is called.
pub(super) fn judge_lines(
    lines: &[SealLine],
    mode: LimitsMode,
    cause: LimitsCause,
) -> Result<&'static str, PreflightError> {
    let tell = |line: &&SealLine| {
        format!("{} is {:?} instead of {:?}", line.property, line.seen, line.wanted)
    };
    let (limits, seal): (Vec<_>, Vec<_>) =
        lines.iter().filter(|line| !line.holds).partition(|line| probe::is_limit(line));
    if !seal.is_empty() {
        let broken = seal.iter().map(tell).collect::<Vec<_>>().join(", ");
        return Err(PreflightError::Seal { broken });
    }
    match (limits.is_empty(), mode) {
        (true, _) => Ok(ENFORCED),
        (false, LimitsMode::BestEffort) => Ok(BEST_EFFORT),
        (false, LimitsMode::Enforced) => {
            let limits = limits.iter().map(tell).collect::<Vec<_>>().join(", ");
            Err(PreflightError::Limits { limits: format!("every limit ({limits})"), cause })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(property: &str, holds: bool) -> SealLine {
        SealLine { property: property.into(), wanted: "a".into(), seen: "b".into(), holds }
    }

    fn judged(lines: &[SealLine], mode: LimitsMode) -> String {
        judge_lines(lines, mode, LimitsCause::NoUserManager)
            .map_or_else(|error| error.to_string(), str::to_owned)
    }

    #[test]
    fn limits_have_a_best_effort_and_the_seal_has_none() {
        let good = [line("pids.max", true), line("cap_eff", true)];
        let loose = [line("pids.max", false), line("cap_eff", true)];
        let broken = [line("pids.max", false), line("cap_eff", false)];
        assert_eq!(judged(&good, LimitsMode::Enforced), "enforced");
        assert_eq!(judged(&loose, LimitsMode::BestEffort), "best_effort");
        let refused = judged(&loose, LimitsMode::Enforced);
        assert!(refused.contains("pids.max") && refused.contains("best_effort"), "{refused}");
        assert_eq!(
            judged(&broken, LimitsMode::BestEffort),
            "the seal does not hold: cap_eff is \"b\" instead of \"a\"; fleet runs nothing on this \
             host until it does"
        );
    }
}
