"""A column for the format in which an endpoint receives messages (notifications.md 4)."""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"


def upgrade() -> None:
    op.add_column(
        "endpoint", sa.Column("format", sa.String(), nullable=False, server_default="json")
    )
