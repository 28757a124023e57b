"""A queue says why its test branches are of their kind."""

import sqlalchemy as sa
from alembic import op

revision = "0028"
down_revision = "0027"


def upgrade() -> None:
    op.add_column("merge_queue", sa.Column("test_branch_reason", sa.String(), nullable=True))
