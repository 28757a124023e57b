"""Tests of large uploads whose attempts are stored one by one are counted later as well."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"


def upgrade() -> None:
    column = sa.Column("apart", sa.Text(), nullable=False, server_default="[]")
    op.add_column("uncounted", column)
