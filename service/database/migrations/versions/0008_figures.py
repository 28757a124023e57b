"""What has been counted of queues, and the facts of the last hour."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "figure",
        sa.Column("queue_id", NUMBER, autoincrement=False, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("labels", sa.String(), nullable=False),
        sa.Column("cell", sa.Integer(), nullable=False),
        sa.Column("org_id", NUMBER, nullable=False),
        sa.Column("count", NUMBER, nullable=False),
        sa.Column("ms", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("queue_id", "kind", "labels", "cell", name="pk_figure"),
    )
    op.create_table(
        "recent_fact",
        sa.Column("id", NUMBER, nullable=False),
        sa.Column("org_id", NUMBER, nullable=False),
        sa.Column("queue_id", NUMBER, nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("labels", sa.String(), nullable=False),
        sa.Column("cell", sa.Integer(), nullable=False),
        sa.Column("ms", NUMBER, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_recent_fact"),
    )
    op.create_index("ix_recent_fact_queue_id_at", "recent_fact", ["queue_id", "at"])
