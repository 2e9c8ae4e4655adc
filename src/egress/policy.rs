//! What a task may reach.

use std::fmt;

use super::DEFAULT_PORTS;
use super::name::Target;
use super::pattern::HostPattern;
use super::refusal::Refusal;

/// What a task may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NetworkPolicy {
    /// Nothing.
    #[default]
    Sealed,
    /// These hosts.
    Hosts(Vec<HostPattern>),
    /// Every public host, on [`DEFAULT_PORTS`].
    Public,
}

impl NetworkPolicy {
    /// Whether anything can be reached.
    pub fn is_open(&self) -> bool {
        *self != NetworkPolicy::Sealed
    }

    /// Refuses a target that is not allowed.
    pub fn check(&self, target: &Target) -> Result<(), Refusal> {
        match self {
            NetworkPolicy::Sealed => Err(Refusal::Host),
            NetworkPolicy::Public if DEFAULT_PORTS.contains(&target.port) => Ok(()),
            NetworkPolicy::Public => Err(Refusal::Port),
            NetworkPolicy::Hosts(list) if list.iter().any(|entry| entry.admits(target)) => Ok(()),
            NetworkPolicy::Hosts(list) => {
                let host = list.iter().any(|entry| entry.has_name(&target.host));
                Err(if host { Refusal::Port } else { Refusal::Host })
            }
        }
    }
}

impl fmt::Display for NetworkPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NetworkPolicy::Sealed => f.write_str("none"),
            NetworkPolicy::Public => f.write_str("every public host, on ports 443 and 80"),
            NetworkPolicy::Hosts(list) => {
                let names: Vec<String> = list.iter().map(ToString::to_string).collect();
                f.write_str(&names.join(", "))
            }
        }
    }
}

/// Whether the containers of an OCI runtime can reach a unix socket of the host, which is the only way
/// out: a virtual machine cannot.
pub fn carries_host_sockets(runtime: &str) -> bool {
    let name = runtime.rsplit('/').next().unwrap_or(runtime);
    !["kata", "krun", "libkrun", "krunvm"].iter().any(|vm| name.starts_with(vm))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(policy: &NetworkPolicy, to: &str) -> Option<Refusal> {
        policy.check(&Target::parse(to, None).expect("a target")).err()
    }

    #[test]
    fn a_policy_tells_the_host_from_the_port() {
        let entries = ["example.com", "*.example.org:8443"].map(HostPattern::parse);
        let hosts =
            NetworkPolicy::Hosts(entries.into_iter().map(|entry| entry.expect("valid")).collect());
        let table = [
            (&hosts, "example.com:443", None),
            (&hosts, "example.com:25", Some(Refusal::Port)),
            (&hosts, "a.example.org:443", Some(Refusal::Port)),
            (&hosts, "a.example.org:8443", None),
            (&hosts, "example.net:443", Some(Refusal::Host)),
            (&NetworkPolicy::Public, "example.net:443", None),
            (&NetworkPolicy::Public, "example.net:22", Some(Refusal::Port)),
            (&NetworkPolicy::Sealed, "example.net:443", Some(Refusal::Host)),
        ];
        for (policy, to, want) in table {
            assert_eq!(verdict(policy, to), want, "{policy} {to}");
        }
    }

    #[test]
    fn virtual_machines_carry_no_sockets_of_the_host() {
        let carrying =
            ["crun", "runc", "runsc", "/usr/bin/crun", "kata", "kata-runtime", "libkrun", "krun"]
                .map(carries_host_sockets);
        assert_eq!(carrying, [true, true, true, true, false, false, false, false]);
    }
}
