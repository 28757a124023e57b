"""Columns for the account, the author and the attempt of a report on a run (provider.md 8)."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("run_check", sa.Column("account", sa.String(), nullable=True))
    op.add_column("run_check", sa.Column("author", sa.String(), nullable=False, server_default=""))
    op.add_column("run_check", sa.Column("attempt", sa.Integer(), nullable=True))
