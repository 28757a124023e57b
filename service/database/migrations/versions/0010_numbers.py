"""Numbers of pull requests, which go up to 4294967295."""

from alembic import op

revision = "0010"
down_revision = "0009"

NUMBERS = (
    ("entry", "pr"),
    ("fork_authorization", "number"),
    ("impacted_targets", "number"),
    ("journal", "number"),
    ("landing", "pr"),
    ("notice", "pr"),
    ("pull_request", "number"),
    ("run", "vehicle_number"),
    ("run_entry", "pr"),
)


def upgrade() -> None:
    # SQLite's integers have 64 bits whatever they are declared as.
    if op.get_bind().dialect.name == "sqlite":
        return
    for table, column in NUMBERS:
        op.execute(f"ALTER TABLE {table} ALTER COLUMN {column} TYPE BIGINT")
