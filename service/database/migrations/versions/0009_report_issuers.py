"""A column for the issuers of other CI systems that a repository accepts (security.md 1)."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.add_column(
        "test_settings",
        sa.Column("report_issuers", sa.Text(), nullable=False, server_default="[]"),
    )
