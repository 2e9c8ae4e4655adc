//! `allow_network` of tasks and defaults, within the manifest's `sandbox.network_allowlist`.

use super::sandbox::is_supported_runtime;
use crate::bundle::raw::{RawNetwork, RawSandbox};
use crate::bundle::yaml::{Document, Finding, Path};
use crate::egress::{HostPattern, NetworkPolicy, carries_host_sockets};
use crate::run::NativeTool;

/// What every task's list must lie within.
#[derive(Clone, Debug, Default)]
pub(super) struct Bounds {
    /// Absent: every public host.
    allowlist: Option<Vec<HostPattern>>,
    /// An entry was refused: nothing is said about what may lie within.
    is_incomplete: bool,
    /// The runtime that the manifest names, where it is one that has no way out.
    sealed_runtime: Option<String>,
}

impl Bounds {
    /// The bounds that a manifest's `sandbox` sets; its own mistakes are reported.
    pub(super) fn check(sandbox: &RawSandbox, document: &Document<'_>) -> Self {
        let at = Path::root().key("sandbox").key("network_allowlist");
        let checked =
            sandbox.network_allowlist.as_ref().map(|list| check_hosts(list, &at, document));
        let is_incomplete = document.is_broken(&at) || matches!(checked, Some(None));
        let runtime = sandbox.runtime.as_deref().filter(|name| is_supported_runtime(name));
        let sealed_runtime = runtime.filter(|name| !carries_host_sockets(name));
        Bounds {
            allowlist: checked.flatten(),
            is_incomplete,
            sealed_runtime: sealed_runtime.map(str::to_owned),
        }
    }

    /// Bounds of a manifest that cannot be read: nothing follows from them.
    pub(super) fn unreadable() -> Self {
        Bounds { is_incomplete: true, ..Bounds::default() }
    }

    /// The policy that `allow_network` asks for; `None` when a mistake was reported.
    pub(super) fn policy(
        &self,
        raw: &RawNetwork,
        at: &Path,
        document: &Document<'_>,
    ) -> Option<NetworkPolicy> {
        let policy = match raw {
            RawNetwork::All(false) => return Some(NetworkPolicy::Sealed),
            RawNetwork::All(true) => self.everything(at, document),
            RawNetwork::Hosts(list) => self.hosts(list, at, document),
        };
        if let Some(runtime) = &self.sealed_runtime {
            let message = format!("the runtime {runtime:?} has no way out of its sandbox");
            let hint = "write allow_network: false, or choose crun, runc or runsc in the manifest";
            document.report_key(at, Finding::error("sealed-runtime", message).hint(hint));
            return None;
        }
        policy
    }

    fn everything(&self, at: &Path, document: &Document<'_>) -> Option<NetworkPolicy> {
        match &self.allowlist {
            None => Some(NetworkPolicy::Public),
            Some(list) if list.is_empty() => {
                let message = "the manifest's network_allowlist allows no host";
                let hint = "write false, or add hosts to sandbox.network_allowlist";
                document.report(at, Finding::error("host-not-allowed", message).hint(hint));
                None
            }
            Some(list) => Some(NetworkPolicy::Hosts(list.clone())),
        }
    }

    fn hosts(&self, list: &[String], at: &Path, document: &Document<'_>) -> Option<NetworkPolicy> {
        if list.is_empty() {
            let finding = Finding::error("invalid-value", "the list of hosts is empty");
            document.report(at, finding.hint("write false, or name a host"));
            return None;
        }
        let hosts = check_hosts(list, at, document)?;
        let mut is_within = true;
        if let Some(allowlist) = self.allowlist.as_ref().filter(|_| !self.is_incomplete) {
            for (number, host) in hosts.iter().enumerate() {
                if !host.is_within(allowlist) {
                    is_within = false;
                    let message =
                        format!("{host} is not within the manifest's sandbox.network_allowlist");
                    let hint = match allowlist.is_empty() {
                        true => "the allowlist is empty: no task may reach a host".to_owned(),
                        false => format!("it allows {}", listed(allowlist)),
                    };
                    let finding = Finding::error("host-not-allowed", message).hint(hint);
                    document.report(&at.index(number), finding);
                }
            }
        }
        is_within.then_some(NetworkPolicy::Hosts(hosts))
    }
}

fn listed(list: &[HostPattern]) -> String {
    const SHOWN: usize = 6;
    let names: Vec<String> = list.iter().take(SHOWN).map(ToString::to_string).collect();
    match list.len() - names.len() {
        0 => names.join(", "),
        more => format!("{} and {more} more", names.join(", ")),
    }
}

/// The entries of a list in order; `None` when one is no host. Repetitions are a warning.
fn check_hosts(list: &[String], at: &Path, document: &Document<'_>) -> Option<Vec<HostPattern>> {
    let mut hosts: Vec<HostPattern> = Vec::with_capacity(list.len());
    let mut is_valid = true;
    for (number, text) in list.iter().enumerate() {
        match HostPattern::parse(text) {
            Ok(host) => {
                if hosts.contains(&host) {
                    let message = format!("{}: {host} is listed twice", at.text());
                    let finding = Finding::warning("duplicate-entry", message);
                    document.report(&at.index(number), finding.hint("keep one of the two"));
                }
                hosts.push(host);
            }
            Err(error) => {
                is_valid = false;
                let message = format!("{text:?} is not a host that can be allowed: {error}");
                let finding = Finding::error("invalid-host", message).hint(error.hint(text));
                document.report(&at.index(number), finding);
            }
        }
    }
    is_valid.then_some(hosts)
}

/// A tool that is required and never offered.
pub(super) fn check_required_tools(
    required: &[String],
    policy: &NetworkPolicy,
    remembers: bool,
    document: &Document<'_>,
) {
    let at = Path::root().key("completion").key("required_tools");
    for (number, tool) in required.iter().enumerate() {
        let (message, hint) = match NativeTool::parse(tool) {
            Some(NativeTool::WebFetch) if !policy.is_open() => (
                "web_fetch is offered only to tasks with a network",
                "list hosts in allow_network, or remove web_fetch",
            ),
            Some(NativeTool::Remember | NativeTool::Recall) if !remembers => (
                "remember and recall are offered only to tasks with a memory",
                "set instruction_self_improve: true, or remove the tool",
            ),
            _ => continue,
        };
        document.report(&at.index(number), Finding::error("tool-not-offered", message).hint(hint));
    }
}
