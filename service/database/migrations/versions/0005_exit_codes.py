"""Exit codes of failed tests; known failures alone are excused (quarantine.md 2, evidence.md 5)."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.add_column(
        "test_settings",
        sa.Column("test_failure_exit_codes", sa.Text(), nullable=False, server_default="[]"),
    )
    op.execute("UPDATE test_settings SET quarantine_forgives = 'KNOWN_FAILURES'")
