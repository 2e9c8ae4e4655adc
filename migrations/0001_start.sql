-- Instants are nanoseconds since 1970 in UTC. Money is billionths of a US dollar.

CREATE TABLE runs (
    run_id TEXT PRIMARY KEY,
    task TEXT NOT NULL,
    due INTEGER NOT NULL,
    cause TEXT NOT NULL CHECK (cause IN ('schedule', 'manual')),
    state TEXT NOT NULL CHECK (state IN (
        'pending', 'running', 'scheduled', 'paused_awaiting_approval', 'success', 'error',
        'dead_lettered', 'cancelled', 'interrupted', 'skipped')),
    tags TEXT NOT NULL,
    priority INTEGER NOT NULL DEFAULT 0,
    -- Every attempt ever made, those before a replay included.
    attempts INTEGER NOT NULL DEFAULT 0,
    -- Attempts that were made before the last replay.
    attempts_before INTEGER NOT NULL DEFAULT 0,
    retries INTEGER NOT NULL DEFAULT 0,
    connector_retries INTEGER NOT NULL DEFAULT 0,
    interruptions INTEGER NOT NULL DEFAULT 0,
    retry_at INTEGER,
    -- Grows with each claim: every write of a run carries it.
    token INTEGER NOT NULL DEFAULT 0,
    holder_instance TEXT,
    holder_pid INTEGER,
    holder_boot TEXT,
    lease_until INTEGER,
    started_at INTEGER,
    finished_at INTEGER,
    outcome TEXT,
    reason TEXT,
    answer TEXT,
    output TEXT,
    branch TEXT,
    commit_id TEXT,
    diff_stat TEXT,
    bundle_commit TEXT,
    limits TEXT,
    seal TEXT,
    -- Spent since the last replay, by attempts that ended.
    input_tokens INTEGER NOT NULL DEFAULT 0,
    cached_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cost INTEGER NOT NULL DEFAULT 0,
    cost_is_estimated INTEGER NOT NULL DEFAULT 0,
    last_seq INTEGER NOT NULL DEFAULT 0,
    dead_lettered_at INTEGER,
    dead_letter_reason TEXT,
    dead_letter_attempts INTEGER,
    replayed_at INTEGER
) STRICT;

CREATE UNIQUE INDEX runs_occurrence ON runs (task, due) WHERE cause = 'schedule';
CREATE INDEX runs_by_task ON runs (task, due DESC);
CREATE INDEX runs_by_due ON runs (due DESC);
CREATE INDEX runs_open ON runs (state, due)
    WHERE state IN ('pending', 'running', 'scheduled', 'paused_awaiting_approval', 'interrupted');
CREATE INDEX runs_dead ON runs (dead_lettered_at DESC) WHERE state = 'dead_lettered';

CREATE TABLE attempts (
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    attempt INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    finished_at INTEGER,
    outcome TEXT,
    reason TEXT,
    model TEXT,
    repo TEXT,
    worktree TEXT,
    branch TEXT,
    base_commit TEXT,
    container TEXT,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    cached_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cost INTEGER NOT NULL DEFAULT 0,
    cost_is_estimated INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (run_id, attempt)
) STRICT, WITHOUT ROWID;

CREATE TABLE events (
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    seq INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    -- The event as JSON, redacted.
    body TEXT NOT NULL,
    PRIMARY KEY (run_id, seq)
) STRICT, WITHOUT ROWID;

CREATE TABLE artifacts (
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    name TEXT NOT NULL,
    path TEXT NOT NULL,
    description TEXT,
    size INTEGER NOT NULL,
    sha256 TEXT,
    PRIMARY KEY (run_id, number)
) STRICT, WITHOUT ROWID;

-- What must happen after a terminal transaction, kept until it has.
CREATE TABLE outbox (
    id INTEGER PRIMARY KEY,
    job TEXT NOT NULL
) STRICT;

-- Numbers that would be expensive to count.
CREATE TABLE counters (
    name TEXT NOT NULL,
    label TEXT NOT NULL,
    value INTEGER NOT NULL,
    PRIMARY KEY (name, label)
) STRICT, WITHOUT ROWID;

CREATE TABLE task_totals (
    task TEXT PRIMARY KEY,
    cost INTEGER NOT NULL DEFAULT 0,
    tokens INTEGER NOT NULL DEFAULT 0,
    last_success INTEGER
) STRICT, WITHOUT ROWID;

CREATE TABLE scheduler (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    last_tick INTEGER
) STRICT;

INSERT INTO scheduler (only_row, last_tick) VALUES (1, NULL);
