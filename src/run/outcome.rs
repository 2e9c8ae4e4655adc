//! How an attempt ended: a closed enum (design §6).

use serde::{Deserialize, Serialize};

/// The class of an outcome: what retry policies and metrics speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeClass {
    Success,
    Transient,
    ConnectorUnavailable,
    CostCeiling,
    TokenCeiling,
    IterationCeiling,
    ContextBudget,
    WallTimeout,
    EnforcementRounds,
    AuditAbort,
    Unverified,
    CompletionFailed,
    DeniedTool,
    StructuredOutput,
    LoopExhausted,
    Config,
    Interrupted,
    Panic,
    Cancelled,
}

impl OutcomeClass {
    /// Every class, in the order of the table in `docs/outcomes.md`.
    pub const ALL: [OutcomeClass; 19] = [
        OutcomeClass::Success,
        OutcomeClass::Transient,
        OutcomeClass::ConnectorUnavailable,
        OutcomeClass::CostCeiling,
        OutcomeClass::TokenCeiling,
        OutcomeClass::IterationCeiling,
        OutcomeClass::ContextBudget,
        OutcomeClass::WallTimeout,
        OutcomeClass::EnforcementRounds,
        OutcomeClass::AuditAbort,
        OutcomeClass::Unverified,
        OutcomeClass::CompletionFailed,
        OutcomeClass::DeniedTool,
        OutcomeClass::StructuredOutput,
        OutcomeClass::LoopExhausted,
        OutcomeClass::Config,
        OutcomeClass::Interrupted,
        OutcomeClass::Panic,
        OutcomeClass::Cancelled,
    ];

    /// The stable name: as in `retry_on`, JSON, the store and metric labels.
    pub fn as_str(self) -> &'static str {
        match self {
            OutcomeClass::Success => "success",
            OutcomeClass::Transient => "transient",
            OutcomeClass::ConnectorUnavailable => "connector_unavailable",
            OutcomeClass::CostCeiling => "cost_ceiling",
            OutcomeClass::TokenCeiling => "token_ceiling",
            OutcomeClass::IterationCeiling => "iteration_ceiling",
            OutcomeClass::ContextBudget => "context_budget",
            OutcomeClass::WallTimeout => "wall_timeout",
            OutcomeClass::EnforcementRounds => "enforcement_rounds",
            OutcomeClass::AuditAbort => "audit_abort",
            OutcomeClass::Unverified => "unverified",
            OutcomeClass::CompletionFailed => "completion_failed",
            OutcomeClass::DeniedTool => "denied_tool",
            OutcomeClass::StructuredOutput => "structured_output",
            OutcomeClass::LoopExhausted => "loop_exhausted",
            OutcomeClass::Config => "config",
            OutcomeClass::Interrupted => "interrupted",
            OutcomeClass::Panic => "panic",
            OutcomeClass::Cancelled => "cancelled",
        }
    }

    /// The class of that stable name.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.as_str() == text)
    }
}

/// How one attempt ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    pub class: OutcomeClass,
    /// One line for a person, without secrets: what happened, the value seen. Empty on success.
    pub reason: String,
}

impl Outcome {
    /// A success: a task-level check passed.
    pub fn success() -> Self {
        Outcome { class: OutcomeClass::Success, reason: String::new() }
    }

    /// A failure of that class.
    pub fn failed(class: OutcomeClass, reason: impl Into<String>) -> Self {
        Outcome { class, reason: reason.into() }
    }
}

/// The label of `fleet_dead_letter_queued_total{reason}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeadLetterClass {
    RetryExhausted,
    NonRetryable,
}

impl DeadLetterClass {
    /// The stable name: a metric label.
    pub fn as_str(self) -> &'static str {
        match self {
            DeadLetterClass::RetryExhausted => "retry_exhausted",
            DeadLetterClass::NonRetryable => "non_retryable",
        }
    }
}
