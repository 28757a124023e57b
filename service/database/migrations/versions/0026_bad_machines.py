"""Store machines that fail tests which pass elsewhere (machines.md)."""

import sqlalchemy as sa
from alembic import op

revision = "0026"
down_revision = "0025"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "bad_machine",
        sa.Column("repository_id", BIG, nullable=False, autoincrement=False),
        sa.Column("machine", sa.String(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("tests", sa.Text(), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("since", TIME, nullable=False),
        sa.Column("last", TIME, nullable=False),
        sa.Column("failing", sa.Integer(), nullable=False),
        sa.Column("runs", sa.Integer(), nullable=False),
        sa.Column("others_failing", sa.Integer(), nullable=False),
        sa.Column("others_runs", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("repository_id", "machine", name="pk_bad_machine"),
    )
