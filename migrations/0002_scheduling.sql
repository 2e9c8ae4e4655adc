-- Scheduling policies, operators' wishes, and effects after the fact.

-- Since when the run may be claimed: its insertion, a replay, or a retry's time.
ALTER TABLE runs ADD COLUMN queued_at INTEGER;
UPDATE runs SET queued_at = coalesce(replayed_at, due);
-- No other scheduled run of its task may run at the same time.
ALTER TABLE runs ADD COLUMN exclusive INTEGER NOT NULL DEFAULT 0;
-- No other run with this key may run at the same time.
ALTER TABLE runs ADD COLUMN serialization_key TEXT;
-- Why somebody wants the running run to end.
ALTER TABLE runs ADD COLUMN cancel_requested TEXT;

CREATE INDEX runs_claimable ON runs (priority DESC, due, run_id) WHERE state = 'pending';
CREATE INDEX runs_waiting ON runs (queued_at) WHERE state = 'pending';
CREATE INDEX runs_retries ON runs (retry_at) WHERE state = 'scheduled';
CREATE INDEX runs_serialized ON runs (serialization_key) WHERE state = 'running';
CREATE INDEX runs_open_by_task ON runs (task)
    WHERE state IN ('pending', 'running', 'scheduled', 'paused_awaiting_approval', 'interrupted');
-- The branch that a task's last success left is looked up at each claim.
CREATE INDEX runs_branches ON runs (task, due DESC) WHERE state = 'success' AND branch IS NOT NULL;
CREATE INDEX runs_finished ON runs (finished_at) WHERE finished_at IS NOT NULL;

-- What is known of a task apart from its runs; outlives their retention.
CREATE TABLE task_state (
    task TEXT PRIMARY KEY,
    -- Scheduled occurrences that were let run: what `schedule_count` counts.
    scheduled_runs INTEGER NOT NULL DEFAULT 0,
    -- Runs in a row that ended as a dead letter or a panic.
    failures_in_a_row INTEGER NOT NULL DEFAULT 0,
    -- Set by `fleet sched pause`.
    paused_at INTEGER,
    paused_until INTEGER,
    pause_reason TEXT,
    -- Set when it parked itself.
    parked_at INTEGER,
    park_reason TEXT
) STRICT, WITHOUT ROWID;

CREATE INDEX task_state_held ON task_state (task) WHERE paused_at IS NOT NULL OR parked_at IS NOT NULL;

-- The outbox holds clean-up jobs and notices.
ALTER TABLE outbox ADD COLUMN kind TEXT NOT NULL DEFAULT 'cleanup' CHECK (kind IN ('cleanup', 'notice'));
-- What receivers tell repetitions by; one row for each.
ALTER TABLE outbox ADD COLUMN idempotency_key TEXT;
ALTER TABLE outbox ADD COLUMN tries INTEGER NOT NULL DEFAULT 0;
-- Not before this instant.
ALTER TABLE outbox ADD COLUMN try_at INTEGER;
ALTER TABLE outbox ADD COLUMN last_error TEXT;
-- Tried too often: kept for people to see.
ALTER TABLE outbox ADD COLUMN given_up_at INTEGER;
-- Since when it is to be sent: a wish to try again begins anew.
ALTER TABLE outbox ADD COLUMN waits_since INTEGER;
-- By which channel.
ALTER TABLE outbox ADD COLUMN channel TEXT;
CREATE INDEX outbox_cleanup ON outbox (id) WHERE kind = 'cleanup';
CREATE INDEX outbox_waiting ON outbox (channel, try_at) WHERE kind = 'notice' AND given_up_at IS NULL;
CREATE UNIQUE INDEX outbox_idempotency ON outbox (idempotency_key) WHERE idempotency_key IS NOT NULL;

-- Set when a backup took this store's place: what was due between the two is unknown.
ALTER TABLE scheduler ADD COLUMN restored_at INTEGER;
ALTER TABLE scheduler ADD COLUMN unknown_since INTEGER;

-- The one daemon of the state directory, and until when it need not be doubted. The token grows with
-- each taking, and whatever a daemon writes carries it.
CREATE TABLE daemon (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    token INTEGER NOT NULL,
    instance TEXT,
    pid INTEGER,
    host TEXT,
    lease_until INTEGER
) STRICT;

INSERT INTO daemon (only_row, token) VALUES (1, 0);
