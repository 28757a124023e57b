"""What the API counts of a queue, apart from the count of all its changes."""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    column = sa.Column("revision", NUMBER, nullable=False, server_default="0")
    op.add_column("merge_queue", column)
    # A client holds the number that it was shown, so the new count goes on from there.
    op.execute("UPDATE merge_queue SET revision = version")
