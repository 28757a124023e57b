"""Columns for a tip without a passed test, and for the tree that CI ran on (landing.md 4, 10)."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    op.add_column("merge_queue", sa.Column("untested", sa.Text(), nullable=True))
    op.add_column("landing", sa.Column("tested_tree", sa.String(), nullable=True))
