"""Reports of test runners on their own ends, stored with each upload (evidence.md 5)."""

import sqlalchemy as sa
from alembic import op

revision = "0022"
down_revision = "0021"


def upgrade() -> None:
    op.add_column(
        "upload", sa.Column("runner_ends", sa.Text(), nullable=False, server_default="[]")
    )
