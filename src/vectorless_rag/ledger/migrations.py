"""
The tables' history: versions only ever go up, and an old one is never edited.

Each version is plain DDL in the words both databases share; `_WORDS` fills in
the few where they differ.
"""

from typing import Final

_TABLES_1: Final = (
    """
    create table budgets(
      budget_id text primary key,
      limit_nano {int},
      reserved_nano {int} not null check (reserved_nano >= 0),
      spent_nano {int} not null check (spent_nano >= 0)
    ) {keyed}
    """,
    """
    create table budget_sets(
      set_id text not null,
      budget_id text not null references budgets(budget_id),
      primary key (set_id, budget_id)
    ) {keyed}
    """,
    """
    create table attempts(
      attempt_id text primary key,
      run_id text not null,
      owner text not null,
      document_sha256 text not null,
      recipe_hash text not null,
      model text not null,
      price_table text,
      state text not null
        check (state in ('running', 'built', 'failed', 'cancelled')),
      code text,
      started_us {int} not null,
      ended_us {int},
      check ((state = 'running') = (ended_us is null))
    ) {keyed}
    """,
    "create index attempts_run on attempts(run_id)",
    """
    create table holds(
      hold_id text primary key,
      attempt_id text not null references attempts(attempt_id),
      set_id text not null,
      call_id text not null,
      try_no {int} not null,
      operation text not null,
      model text not null,
      state text not null check (
        state in ('reserved', 'settled', 'voided', 'unknown', 'expired')),
      replayed {int} not null,
      overrun {int} not null,
      reserved_nano {int} not null check (reserved_nano >= 0),
      amount_nano {int} check (amount_nano >= 0),
      held_prompt_tokens {int} not null,
      prompt_tokens {int},
      completion_tokens {int},
      cached_tokens {int},
      reasoning_tokens {int},
      response_id text,
      finish_reason text,
      reason text,
      code text,
      opened_us {int} not null,
      lease_until_us {int} not null,
      closed_us {int},
      check ((state = 'reserved') = (amount_nano is null)),
      check ((state = 'reserved') = (closed_us is null)),
      check (replayed = 0 or (reserved_nano = 0 and amount_nano = 0))
    ) {keyed}
    """,
    "create index holds_open on holds(lease_until_us) where state = 'reserved'",
    "create index holds_attempt on holds(attempt_id)",
    """
    create table entries(
      hold_id text not null references holds(hold_id),
      kind text not null check (kind in (
        'reserve', 'settle', 'void', 'unknown', 'expire', 'correct', 'replay')),
      reserved_delta {int} not null,
      spent_delta {int} not null,
      at_us {int} not null,
      primary key (hold_id, kind)
    ) {keyed}
    """,
)

_REFUSE: Final = "begin select raise(abort, 'entries are final'); end"

_SQLITE_1: Final = (
    f"create trigger entries_no_update before update on entries {_REFUSE}",
    f"create trigger entries_no_delete before delete on entries {_REFUSE}",
)

_POSTGRESQL_1: Final = (
    """
    create function entries_are_final() returns trigger language plpgsql as $$
    begin
      raise exception 'entries are final' using errcode = 'check_violation';
    end $$
    """,
    """
    create trigger entries_final before update or delete or truncate on entries
    for each statement execute function entries_are_final()
    """,
)

_SEALS_2: Final = (
    "alter table attempts add column seal text",
    "alter table budgets add column seal text",
)

_TABLES_3: Final = (
    """
    create table jobs(
      recipe_hash text primary key,
      document_sha256 text not null,
      source text not null,
      owner text not null,
      run_id text not null,
      model text not null,
      options text not null,
      version text not null,
      priority {int} not null,
      turn {int} not null,
      state text not null check (state in (
        'queued', 'running', 'built', 'failed', 'cancelled', 'superseded')),
      cancelling {int} not null,
      tries {int} not null,
      worker_id text,
      attempt_id text,
      code text,
      detail text,
      artifact_id text,
      successor text,
      submitted_us {int} not null,
      ready_us {int} not null,
      started_us {int},
      ended_us {int},
      check ((state in ('queued', 'running')) = (ended_us is null)),
      check ((state = 'running') = (worker_id is not null)),
      check ((state = 'superseded') = (successor is not null))
    ) {keyed}
    """,
    "create index jobs_state on jobs(state, ready_us)",
    "create index jobs_run on jobs(run_id)",
    """
    create table workers(
      worker_id text primary key,
      place text not null,
      pid {int} not null,
      version text not null,
      slots {int} not null,
      beats {int} not null,
      started_us {int} not null,
      seen_us {int} not null,
      stopped {int} not null
    ) {keyed}
    """,
    """
    create table versions(
      version text primary key,
      first_us {int} not null
    ) {keyed}
    """,
)

_VERSIONS: Final = (
    {
        "sqlite": (*_TABLES_1, *_SQLITE_1),
        "postgresql": (*_TABLES_1, *_POSTGRESQL_1),
    },
    {"sqlite": _SEALS_2, "postgresql": _SEALS_2},
    {"sqlite": _TABLES_3, "postgresql": _TABLES_3},
)

_WORDS: Final = {
    # One b-tree a table: fewer pages to read and write in each transaction.
    "sqlite": {"int": "integer", "keyed": "strict, without rowid"},
    "postgresql": {"int": "bigint", "keyed": ""},
}

NEWEST: Final = len(_VERSIONS)
"""The version this code reads and writes."""


VERSION: Final = "select version from schema_version"
"""Reads the version of the tables."""


def ddl_after(version: int, dialect: str) -> list[str]:
    """
    List the statements that bring tables of *version* up to `NEWEST`.

    Args:
        version: What the database has; 0 for an empty one.
        dialect: ``sqlite`` or ``postgresql``.
    """
    words = _WORDS[dialect]
    steps = [text.format(**words) for v in _VERSIONS[version:] for text in v[dialect]]
    if version == 0:
        steps.insert(0, f"create table schema_version(version {words['int']} not null)")
        steps.insert(1, "insert into schema_version values (0)")
    return [*steps, f"update schema_version set version = {NEWEST}"]  # noqa: S608
