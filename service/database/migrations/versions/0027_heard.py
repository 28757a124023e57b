"""Commands that were answered are kept by comment; sweeps keep how far they have read."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0025"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "heard_command",
        sa.Column("repository_id", ID, autoincrement=False, nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("source_id", sa.String(), nullable=False),
        sa.Column("org_id", ID, nullable=False),
        sa.Column("topic", sa.String(), nullable=False),
        sa.Column("said_at", TIME, nullable=False),
        sa.Column("heard_at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("repository_id", "source", "source_id", name="pk_heard_command"),
    )
    op.create_index("ix_heard_command_heard_at", "heard_command", ["heard_at"])
    op.create_index(
        "ix_heard_command_topic", "heard_command", ["repository_id", "topic", "said_at"]
    )
    op.create_table(
        "sweep_cursor",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_sweep_cursor"),
    )
