"""Columns for the rules that an entry waits for, and for who gave its priority (rules.md)."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"


def upgrade() -> None:
    op.add_column("entry", sa.Column("waits", sa.Text(), nullable=False, server_default="[]"))
    op.add_column(
        "entry",
        sa.Column("is_priority_given", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    # So far only people gave another one than the default.
    op.execute(sa.text("UPDATE entry SET is_priority_given = true WHERE priority <> 100"))
