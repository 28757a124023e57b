"""A column for where required checks run, filled from what landed lately (skipped-checks.md 1)."""

import json
from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0006"

QUEUES = "SELECT id, required FROM merge_queue WHERE deleted IS false"
# The newest first, so that a busy queue is read no longer than a calm one.
LANDED_RUNS = """
SELECT DISTINCT run.id, run.no, run.finished_at FROM landing JOIN run ON run.id = landing.run
WHERE landing.queue_id = :queue AND landing.state = 'landed' AND run.finished_at IS NOT NULL
ORDER BY run.no DESC LIMIT 200
"""
RAN = """
SELECT DISTINCT name FROM run_check WHERE run_id = :run AND outcome IN ('passed', 'failed')
"""
SET = "UPDATE merge_queue SET check_history = :history WHERE id = :queue"


def upgrade() -> None:
    empty = sa.Column("check_history", sa.Text(), nullable=False, server_default="{}")
    op.add_column("merge_queue", empty)
    connection = op.get_bind()
    for queue, required in connection.execute(sa.text(QUEUES)).all():
        names = {one["name"] for one in json.loads(required or "{}").get("names", ())}
        ran: dict[str, str] = {}
        for run, _, at in connection.execute(sa.text(LANDED_RUNS), {"queue": queue}).all():
            for (name,) in connection.execute(sa.text(RAN), {"run": run}):
                if name in names:
                    ran.setdefault(name, _iso(at))
            if ran.keys() == names:
                break
        binds = {"history": json.dumps({"ran": ran}), "queue": queue}
        connection.execute(sa.text(SET), binds)


def _iso(at: datetime | str) -> str:
    # SQLite keeps text without a zone.
    known = datetime.fromisoformat(at).replace(tzinfo=UTC) if isinstance(at, str) else at
    return known.isoformat()
