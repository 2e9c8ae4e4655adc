//! gVisor's flags, as its program lists them: they changed their names over the years.

use super::super::error::PreflightError;

/// What runsc must be told, by the list that `runsc flags` prints. Pure.
///
/// Rootless it may not touch control groups; its network would be one of its own beside the
/// container's none; fleet's helper connects to one socket that is mounted, and makes none; and without
/// `oci-seccomp` it would drop fleet's filter in silence.
pub(super) fn flags(listing: &str) -> Result<Vec<String>, PreflightError> {
    let has = |name: &str| {
        listing.lines().any(|line| {
            let word = line.split_whitespace().next().unwrap_or_default();
            word.trim_start_matches('-').split('=').next() == Some(name)
        })
    };
    let needed = |name: &str| {
        if has(name) { Ok(()) } else { Err(old(format!("it has no flag --{name}"))) }
    };
    needed("ignore-cgroups")?;
    needed("network")?;
    needed("oci-seccomp")?;
    let sockets = match (has("host-uds"), has("fsgofer-host-uds")) {
        (true, _) => "host-uds=open",
        (false, true) => "fsgofer-host-uds",
        (false, false) => return Err(old("it cannot carry a socket of the host".to_owned())),
    };
    Ok(["ignore-cgroups", "network=none", "oci-seccomp", sockets].map(str::to_owned).to_vec())
}

fn old(reason: String) -> PreflightError {
    PreflightError::RuntimeBuild { runtime: "runsc", reason, wanted: "runsc of 2022 or newer" }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &str = "  -fsgofer-host-uds\n    \tDEPRECATED: use host-uds=all\n  -host-uds value\n    \
                        \tcontrols -network\n  -ignore-cgroups\n  -network value\n  -oci-seccomp\n";

    fn told(listing: &str) -> String {
        match flags(listing) {
            Ok(flags) => flags.join(" "),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn newer_builds_open_sockets_only_and_older_ones_take_the_old_flag() {
        let old = BOTH.replace("  -host-uds value", "  -other value");
        assert_eq!(
            [told(BOTH), told(&old)],
            [
                "ignore-cgroups network=none oci-seccomp host-uds=open",
                "ignore-cgroups network=none oci-seccomp fsgofer-host-uds",
            ]
        );
    }

    #[test]
    fn build_without_a_flag_that_the_seal_needs_is_refused() {
        let told = told(&BOTH.replace("  -oci-seccomp\n", ""));
        assert_eq!(
            told,
            "the OCI runtime runsc cannot be used as it was built (it has no flag --oci-seccomp): \
             install runsc of 2022 or newer"
        );
    }
}
