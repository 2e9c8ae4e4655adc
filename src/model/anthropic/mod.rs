//! Anthropic Messages: content blocks, thinking that is sent back signed, and prompt caching by marks
//! in the request.

mod answer;
mod body;

pub(super) use answer::Assembly;
pub(super) use body::encode;
