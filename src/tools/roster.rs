//! Which tools a run is offered, and which of them may have effects beyond its worktree.

#[cfg(feature = "fault-injection")]
use super::stub_effect;
use crate::run::NativeTool;

/// Whether what runs in the sandbox can reach beyond it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    Sealed,
    Open,
}

/// The tools that a run is offered, in their order. `remembers`: its task has a memory.
pub fn roster(network: Network, remembers: bool) -> Vec<NativeTool> {
    let offered = |tool: &NativeTool| match tool {
        NativeTool::WebFetch => network == Network::Open,
        NativeTool::Remember | NativeTool::Recall => remembers,
        _ => true,
    };
    let native = NativeTool::ALL.into_iter().filter(offered);
    #[cfg(feature = "fault-injection")]
    if stub_effect::service().is_some() {
        return native.chain([NativeTool::StubEffect]).collect();
    }
    native.collect()
}

/// Whether a tool may have effects outside the worktree: only code that the model wrote, and only
/// where the network is open. Memory, plan and artifact tools never do.
pub fn may_have_outside_effects(tool: NativeTool, network: Network) -> bool {
    match (tool, network) {
        (NativeTool::Bash | NativeTool::RunPython, Network::Open) => true,
        (NativeTool::Bash | NativeTool::RunPython, Network::Sealed)
        | (
            NativeTool::ViewFile
            | NativeTool::WriteFile
            | NativeTool::EditFile
            | NativeTool::TaskTracker
            | NativeTool::PublishArtifact
            | NativeTool::ConfirmAudit
            | NativeTool::Remember
            | NativeTool::Recall
            // GET has none, by its definition.
            | NativeTool::WebFetch,
            _,
        ) => false,
        #[cfg(feature = "fault-injection")]
        (NativeTool::StubEffect, _) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn web_fetch_is_offered_only_with_a_network_and_last() {
        let names = |network| {
            roster(network, false).into_iter().map(NativeTool::as_str).collect::<Vec<_>>()
        };
        assert!(!names(Network::Sealed).contains(&"web_fetch"));
        assert_eq!(names(Network::Open).last(), Some(&"web_fetch"));
    }

    #[test]
    fn only_model_written_code_with_an_open_network_reaches_outside() {
        let reaching: Vec<_> = NativeTool::ALL
            .into_iter()
            .filter(|tool| may_have_outside_effects(*tool, Network::Open))
            .collect();
        assert_eq!(reaching, [NativeTool::Bash, NativeTool::RunPython]);
        let sealed = NativeTool::ALL
            .into_iter()
            .filter(|tool| may_have_outside_effects(*tool, Network::Sealed));
        assert_eq!(sealed.count(), 0);
    }
}
