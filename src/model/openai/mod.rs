//! Chat completions: the wire format of OpenAI itself and of everything compatible (OpenRouter,
//! Ollama, vLLM, llama.cpp, LiteLLM).

mod answer;
mod body;
mod usage;

pub(super) use answer::Assembly;
pub(super) use body::{Dialect, encode};
