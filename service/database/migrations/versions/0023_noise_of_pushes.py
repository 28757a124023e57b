"""Noise of stream C: the rate at which a sound test fails in one push alone (detector.md)."""

import sqlalchemy as sa
from alembic import op

revision = "0023"
down_revision = "0022"


def upgrade() -> None:
    op.add_column("noise", sa.Column("eps_c", sa.Float(), nullable=False, server_default="0.0005"))
