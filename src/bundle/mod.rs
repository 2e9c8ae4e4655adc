//! Turns one commit of the bundle repository into a [`Bundle`], or into the list of everything that
//! is wrong with it. Reads git objects only; never the environment or the clock.

mod model;
mod problem;

pub use model::{
    Bundle, Completion, ModelRef, Persona, PriceEntry, Pricing, Provider, ProviderKind,
    SandboxLimits, SandboxSettings, Script, ScriptFault, ScriptTurn, Task, TaskLimits,
    TaskSchedule, WorktreeConfig,
};
pub use problem::{Position, Problem, Severity};
