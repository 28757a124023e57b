"""Columns for what a submission would take back, and an index for how far back is looked."""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.add_column("entry", sa.Column("work", sa.Text(), nullable=True))
    op.add_column("entry", sa.Column("undoes", sa.Text(), nullable=False, server_default="[]"))
    op.create_index("ix_run_queue_id_created_at", "run", ["queue_id", "created_at"])
