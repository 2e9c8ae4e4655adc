//! An answer in the making, in the provider's wire format.

use super::super::fault::Fault;
use super::super::sse::SseEvent;
use super::super::{Answer, anthropic, openai};
use super::WireFormat;

/// Whether more of an answer is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::model) enum Progress {
    More,
    Done,
}

/// An answer in the making.
pub(super) enum Assembly {
    ChatCompletions(openai::Assembly),
    Messages(anthropic::Assembly),
}

impl Assembly {
    pub(super) fn new(format: WireFormat) -> Self {
        match format {
            WireFormat::ChatCompletions | WireFormat::OpenRouter => {
                Self::ChatCompletions(openai::Assembly::default())
            }
            WireFormat::Messages => Self::Messages(anthropic::Assembly::default()),
        }
    }

    pub(super) fn take(&mut self, event: &SseEvent) -> Result<Progress, Fault> {
        match self {
            Self::ChatCompletions(assembly) => assembly.take(event),
            Self::Messages(assembly) => assembly.take(event),
        }
    }

    pub(super) fn take_whole(&mut self, body: &[u8]) -> Result<(), Fault> {
        match self {
            Self::ChatCompletions(assembly) => assembly.take_whole(body),
            Self::Messages(assembly) => assembly.take_whole(body),
        }
    }

    /// Whether the provider said why it stopped: nothing but usage can follow.
    pub(super) fn is_finished(&self) -> bool {
        match self {
            Self::ChatCompletions(assembly) => assembly.is_finished(),
            Self::Messages(assembly) => assembly.is_finished(),
        }
    }

    /// The answer; `None` when it was never finished.
    pub(super) fn finish(self) -> Option<Answer> {
        match self {
            Self::ChatCompletions(assembly) => assembly.finish(),
            Self::Messages(assembly) => assembly.finish(),
        }
    }
}
