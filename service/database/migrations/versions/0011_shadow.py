"""Times at which a queue in shadow would have landed, and merges by others (shadow.md)."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.add_column("entry", sa.Column("would_land_at", TIME, nullable=True))
    op.add_column("merge_queue", sa.Column("shadow_time", sa.Text(), nullable=True))
    op.create_table(
        "shadow_merge",
        sa.Column("entry", sa.String(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("queue_id", BIG, nullable=False),
        sa.Column("merged_at", TIME, nullable=True),
        sa.Column("sha", sa.String(), nullable=True),
        sa.Column("is_red", sa.Boolean(), nullable=True),
        sa.PrimaryKeyConstraint("entry", name="pk_shadow_merge"),
    )
    op.create_index("ix_shadow_merge_queue_id", "shadow_merge", ["queue_id"])
