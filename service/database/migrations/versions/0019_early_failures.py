"""Failures that are known before a required check has ended (docs/design/early-failures.md)."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.add_column("run", sa.Column("doomed", sa.Text(), nullable=False, server_default="[]"))
    op.add_column(
        "run",
        sa.Column("is_foreseen", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.create_table(
        "failed_part",
        sa.Column("no", BIG, nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("queue_id", BIG, nullable=False),
        sa.Column("run", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("sha", sa.String(), nullable=False),
        sa.Column("file", sa.String(), nullable=False),
        sa.Column("version", sa.String(), nullable=False),
        sa.Column("required", sa.String(), nullable=False),
        sa.Column("job", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("step", sa.String(), nullable=False),
        sa.Column("test", sa.String(), nullable=False),
        sa.Column("check_name", sa.String(), nullable=False),
        sa.Column("check_id", sa.String(), nullable=False),
        sa.Column("suite", sa.String(), nullable=False),
        sa.Column("url", sa.String(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.Column("is_foreseen", sa.Boolean(), nullable=False),
        sa.Column("ending", sa.String(), nullable=True),
        sa.Column("early_s", sa.Integer(), nullable=True),
        sa.PrimaryKeyConstraint("no", name="pk_failed_part"),
        sa.UniqueConstraint(
            *("queue_id", "run", "attempt", "required", "check_name", "kind", "step"),
            name="uq_failed_part_of_run",
        ),
    )
    op.create_index("ix_failed_part_queue_id_at", "failed_part", ["queue_id", "at"])
    op.create_index("ix_failed_part_at", "failed_part", ["at"])
    op.create_index(
        "ix_failed_part_open",
        "failed_part",
        ["at"],
        sqlite_where=sa.text("ending IS NULL"),
        postgresql_where=sa.text("ending IS NULL"),
    )
