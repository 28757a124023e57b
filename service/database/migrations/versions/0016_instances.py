"""Processes that serve this database, which of them has claimed a row; targets by their age."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"

INSTANT = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
CLAIMED = ("inbox", "outbox", "notification_attempt")


def upgrade() -> None:
    op.create_table(
        "instance",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("fingerprint", sa.String(), nullable=False),
        sa.Column("started_at", INSTANT, nullable=False),
        sa.Column("heartbeat", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_instance"),
    )
    for table in CLAIMED:
        op.add_column(table, sa.Column("claimed_by", sa.String(), nullable=True))
    op.create_index("ix_impacted_targets_at", "impacted_targets", ["at"])
