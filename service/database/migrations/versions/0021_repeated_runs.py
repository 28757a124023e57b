"""Runs that repeat the failed checks of another one (second-looks.md)."""

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"

TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.add_column("run", sa.Column("repeats", sa.String(), nullable=True))
    op.add_column("run", sa.Column("first_at", TIME, nullable=True))
    op.add_column("run", sa.Column("share", sa.Float(), nullable=False, server_default="1"))
    op.add_column(
        "run", sa.Column("is_repeated", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.add_column("merge_queue", sa.Column("reruns_from", TIME, nullable=True))
