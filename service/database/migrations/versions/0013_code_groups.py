"""Attempts on the same code are found among a test's own attempts: no table of their groups."""

from alembic import op

revision = "0013"
down_revision = "0012"


def upgrade() -> None:
    op.drop_table("code_group")
