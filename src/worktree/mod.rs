//! A checkout per run: create, list, collect, prune. Never runs git with an agent's tree as its
//! directory, never reads its index or config.
