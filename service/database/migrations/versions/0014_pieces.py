"""What large uploads leave to later transactions: results to count, tests to judge."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "uncounted",
        sa.Column("upload", sa.String(), nullable=False),
        sa.Column("n", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("org_id", ID, nullable=False),
        sa.Column("repository_id", ID, nullable=False),
        sa.Column("passed", sa.Text(), nullable=False),
        sa.Column("skipped", sa.Text(), nullable=False),
        sa.Column("owners", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("upload", "n", name="pk_uncounted"),
    )
    op.add_column(
        "test_repository",
        sa.Column("is_behind", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
