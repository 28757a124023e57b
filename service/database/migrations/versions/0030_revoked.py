"""Runs keep which of their passed checks count as failed."""

import sqlalchemy as sa
from alembic import op

revision = "0030"
down_revision = "0028"


def upgrade() -> None:
    op.add_column("run", sa.Column("revoked", sa.Text(), nullable=False, server_default="[]"))
