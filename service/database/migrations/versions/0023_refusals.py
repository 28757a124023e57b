"""Entries remember the refusals of their merges, queues those that nothing explained."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0021"


def upgrade() -> None:
    op.add_column("entry", sa.Column("stops", sa.Text(), nullable=False, server_default="{}"))
    op.add_column("entry", sa.Column("refusals", sa.Integer(), nullable=False, server_default="0"))
    op.add_column("entry", sa.Column("refusal", sa.Text(), nullable=True))
    unexplained = sa.Column("unexplained", sa.Text(), nullable=False, server_default="[]")
    op.add_column("merge_queue", unexplained)
