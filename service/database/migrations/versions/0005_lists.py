"""What lists are read by: ended submissions by when they ended, built runs by age."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    for name, table, columns, where in (
        ("ix_entry_ended", "entry", ["queue_id", "state", "state_since", "no"], "live IS {false}"),
        ("ix_run_built", "run", ["queue_id", "no", "status"], "sha IS NOT NULL"),
    ):
        op.create_index(
            name,
            table,
            columns,
            sqlite_where=sa.text(where.format(false="0")),
            postgresql_where=sa.text(where.format(false="false")),
        )
