"""Until when a token was granted, which a rotation does not shorten."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"

INSTANT = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.add_column("api_token", sa.Column("granted_until", INSTANT, nullable=True))
    op.execute("UPDATE api_token SET granted_until = expires_at")
