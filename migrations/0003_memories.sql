-- What a task's runs remembered for later ones (`instruction_self_improve`). It outlives the runs.
CREATE TABLE task_memories (
    task TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (task, key)
) STRICT, WITHOUT ROWID;
