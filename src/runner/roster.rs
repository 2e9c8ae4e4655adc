//! Which tools a run is offered: what its network allows, narrowed by its persona and its task.

use crate::agent::EventSink;
use crate::bundle::Task;
use crate::run::{EventKind, NativeTool};
use crate::tools::{self, Network};

/// The tools of a run, and those that its permissions keep from it.
#[derive(Debug, PartialEq, Eq)]
pub struct Roster {
    pub offered: Vec<NativeTool>,
    /// With the reason, for people.
    pub blocked: Vec<(NativeTool, String)>,
}

impl Roster {
    /// The roster of a task whose runs have that network.
    pub fn of(task: &Task, network: Network) -> Self {
        let mut roster = Roster { offered: Vec::new(), blocked: Vec::new() };
        for tool in tools::roster(network, task.remembers) {
            match why_not(task, tool) {
                Some(why) => roster.blocked.push((tool, why)),
                None => roster.offered.push(tool),
            }
        }
        roster
    }

    /// Tells the log what is kept from the run.
    pub async fn record(&self, task: &Task, events: &EventSink) {
        for (tool, reason) in &self.blocked {
            // A log that is closed ends the attempt at its next step.
            let _ = events
                .record(EventKind::PersonaToolBlocked {
                    persona: task.persona.as_ref().map(|persona| persona.name.clone()),
                    tool: tool.as_str().to_owned(),
                    reason: reason.clone(),
                })
                .await;
        }
    }
}

fn why_not(task: &Task, tool: NativeTool) -> Option<String> {
    let name = tool.as_str();
    let of_persona = task.persona.as_ref().and_then(|persona| {
        let why = persona.tool_permissions.refusal(name)?;
        Some(format!("persona {}: tool_permissions.{why}", persona.name))
    });
    of_persona.or_else(|| {
        let why = task.tool_permissions.refusal(name)?;
        Some(format!("task {}: tool_permissions.{why}", task.name))
    })
}
