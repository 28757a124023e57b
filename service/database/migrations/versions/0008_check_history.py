"""A column for where required checks run, filled from what landed lately (skipped-checks.md 1)."""

import json
from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

QUEUES = "SELECT id, required FROM merge_queue WHERE deleted IS false"
RAN = """
SELECT run_check.name, MAX(run.finished_at) FROM landing
JOIN run ON run.id = landing.run JOIN run_check ON run_check.run_id = run.id
WHERE landing.queue_id = :queue AND landing.state = 'landed' AND run.finished_at IS NOT NULL
AND run_check.outcome IN ('passed', 'failed') GROUP BY run_check.name
"""
SET = "UPDATE merge_queue SET check_history = :history WHERE id = :queue"


def upgrade() -> None:
    empty = sa.Column("check_history", sa.Text(), nullable=False, server_default="{}")
    op.add_column("merge_queue", empty)
    connection = op.get_bind()
    for queue, required in connection.execute(sa.text(QUEUES)).all():
        found = connection.execute(sa.text(RAN), {"queue": queue}).all()
        # A required name stands in the text as JSON writes it.
        ran = {
            name: _iso(at)
            for name, at in found
            if json.dumps(name, ensure_ascii=False) in (required or "")
        }
        binds = {"history": json.dumps({"ran": ran}), "queue": queue}
        connection.execute(sa.text(SET), binds)


def _iso(at: datetime | str) -> str:
    # SQLite keeps text without a zone.
    known = datetime.fromisoformat(at).replace(tzinfo=UTC) if isinstance(at, str) else at
    return known.isoformat()
