"""Pairs of open pull requests that conflict with each other (conflicts.md)."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "conflict_pair",
        sa.Column("queue_id", BIG, nullable=False, autoincrement=False),
        sa.Column("low", BIG, nullable=False, autoincrement=False),
        sa.Column("high", BIG, nullable=False, autoincrement=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("head_low", sa.String(), nullable=False),
        sa.Column("head_high", sa.String(), nullable=False),
        sa.Column("paths", sa.Text(), nullable=False),
        sa.Column("found_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("queue_id", "low", "high", name="pk_conflict_pair"),
    )
