"""Failed tests that CI jobs report while they run, and tests to run first (live-tests.md)."""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "early_failure",
        sa.Column("repository_id", BIG, nullable=False, autoincrement=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("sha", sa.String(), nullable=False),
        sa.Column("run_id", sa.String(), nullable=False),
        sa.Column("run_attempt", sa.Integer(), nullable=False),
        sa.Column("check_run", sa.String(), nullable=False),
        sa.Column("job", sa.String(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("classname", sa.String(), nullable=False),
        sa.Column("parent", sa.String(), nullable=False),
        sa.Column("file", sa.String(), nullable=False),
        sa.Column("proof", sa.String(), nullable=False),
        sa.Column("standing", sa.String(), nullable=False),
        sa.Column("heard_at", TIME, nullable=False),
        sa.Column("taken_back_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("repository_id", "key", name="pk_early_failure"),
    )
    op.create_index(
        "ix_early_failure_job",
        "early_failure",
        ["repository_id", "run_id", "run_attempt", "check_run"],
    )
    op.create_index("ix_early_failure_heard_at", "early_failure", ["heard_at"])
    op.create_index(
        "ix_test_case_places",
        "test_case",
        ["repository_id", "file", "classname"],
        sqlite_where=sa.text("is_known IS 1"),
        postgresql_where=sa.text("is_known IS true"),
    )
    op.create_index(
        "ix_pr_impact_open_pr",
        "pr_impact",
        ["repository_id", "pr", "last_at"],
        sqlite_where=sa.text("is_counted IS 1"),
        postgresql_where=sa.text("is_counted IS true"),
    )
