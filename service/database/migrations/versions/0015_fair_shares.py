"""Columns for the turns by which submitters share a queue (docs/design/fair-shares.md 1)."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("entry", sa.Column("turn", BIG, nullable=False, server_default="0"))
    op.add_column("merge_queue", sa.Column("turns", sa.Text(), nullable=False, server_default="[]"))
