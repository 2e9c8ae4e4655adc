//! Behaviour of `model_openai`.
