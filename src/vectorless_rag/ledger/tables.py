"""
The tables, as statements see them.

`vectorless_rag.ledger.migrations` makes them; a test compares the two.
"""

from sqlalchemy import (
    BigInteger,
    Column,
    ForeignKey,
    Integer,
    MetaData,
    Table,
    Text,
)

# SQLite's strict tables know INTEGER, which has 64 bits there.
_INT = BigInteger().with_variant(Integer, "sqlite")

metadata = MetaData()

schema_version = Table(
    "schema_version", metadata, Column("version", _INT, nullable=False)
)

budgets = Table(
    "budgets",
    metadata,
    Column("budget_id", Text, primary_key=True),
    Column("limit_nano", _INT),
    Column("reserved_nano", _INT, nullable=False),
    Column("spent_nano", _INT, nullable=False),
    Column("seal", Text),
)

# A hold names a set, not a list: thousands of holds share a few sets, and the
# hot path writes one row less for every budget.
budget_sets = Table(
    "budget_sets",
    metadata,
    Column("set_id", Text, primary_key=True),
    Column("budget_id", Text, ForeignKey("budgets.budget_id"), primary_key=True),
)

attempts = Table(
    "attempts",
    metadata,
    Column("attempt_id", Text, primary_key=True),
    Column("run_id", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("document_sha256", Text, nullable=False),
    Column("recipe_hash", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("price_table", Text),
    Column("state", Text, nullable=False),
    Column("code", Text),
    Column("started_us", _INT, nullable=False),
    Column("ended_us", _INT),
    Column("seal", Text),
)

holds = Table(
    "holds",
    metadata,
    Column("hold_id", Text, primary_key=True),
    Column("attempt_id", Text, ForeignKey("attempts.attempt_id"), nullable=False),
    Column("set_id", Text, nullable=False),
    Column("call_id", Text, nullable=False),
    Column("try_no", _INT, nullable=False),
    Column("operation", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("state", Text, nullable=False),
    Column("replayed", _INT, nullable=False),
    Column("overrun", _INT, nullable=False),
    Column("reserved_nano", _INT, nullable=False),
    Column("amount_nano", _INT),
    Column("held_prompt_tokens", _INT, nullable=False),
    Column("prompt_tokens", _INT),
    Column("completion_tokens", _INT),
    Column("cached_tokens", _INT),
    Column("reasoning_tokens", _INT),
    Column("response_id", Text),
    Column("finish_reason", Text),
    Column("reason", Text),
    Column("code", Text),
    Column("opened_us", _INT, nullable=False),
    Column("lease_until_us", _INT, nullable=False),
    Column("closed_us", _INT),
)

entries = Table(
    "entries",
    metadata,
    Column("hold_id", Text, ForeignKey("holds.hold_id"), primary_key=True),
    Column("kind", Text, primary_key=True),
    Column("reserved_delta", _INT, nullable=False),
    Column("spent_delta", _INT, nullable=False),
    Column("at_us", _INT, nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    Column("recipe_hash", Text, primary_key=True),
    Column("document_sha256", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("model", Text, nullable=False),
    Column("options", Text, nullable=False),
    Column("version", Text, nullable=False),
    Column("priority", _INT, nullable=False),
    Column("turn", _INT, nullable=False),
    Column("state", Text, nullable=False),
    Column("cancelling", _INT, nullable=False),
    Column("tries", _INT, nullable=False),
    Column("worker_id", Text),
    Column("attempt_id", Text),
    Column("code", Text),
    Column("detail", Text),
    Column("artifact_id", Text),
    Column("successor", Text),
    Column("submitted_us", _INT, nullable=False),
    Column("ready_us", _INT, nullable=False),
    Column("started_us", _INT),
    Column("ended_us", _INT),
)

workers = Table(
    "workers",
    metadata,
    Column("worker_id", Text, primary_key=True),
    Column("place", Text, nullable=False),
    Column("pid", _INT, nullable=False),
    Column("version", Text, nullable=False),
    Column("slots", _INT, nullable=False),
    Column("beats", _INT, nullable=False),
    Column("started_us", _INT, nullable=False),
    Column("seen_us", _INT, nullable=False),
    Column("stopped", _INT, nullable=False),
)

versions = Table(
    "versions",
    metadata,
    Column("version", Text, primary_key=True),
    Column("first_us", _INT, nullable=False),
)
