"""Store times of tests, and what flaky ones cost (test-costs.md)."""

import sqlalchemy as sa
from alembic import op

revision = "0024"
down_revision = "0023"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.add_column(
        "test_day",
        sa.Column("has_costs", sa.Boolean(), nullable=False, server_default=sa.false()),
    )
    op.add_column(
        "test_day",
        sa.Column("is_summed", sa.Boolean(), nullable=False, server_default=sa.true()),
    )
    op.create_index(
        "ix_test_day_open_sums",
        "test_day",
        ["repository_id"],
        sqlite_where=sa.text("is_summed IS 0"),
        postgresql_where=sa.text("is_summed IS false"),
    )
    op.add_column("daily", sa.Column("cost_ms", BIG, nullable=False, server_default="0"))
    op.create_index(
        "ix_daily_costs",
        "daily",
        ["repository_id", "day", "no", "cost_ms"],
        sqlite_where=sa.text("cost_ms > 0"),
        postgresql_where=sa.text("cost_ms > 0"),
    )
    op.add_column("test_settings", sa.Column("flake_cost_alert_minutes", sa.Integer()))
    op.add_column("test_settings", sa.Column("alerted_week", sa.Integer()))
    op.create_index(
        "ix_test_settings_open_cost_alerts",
        "test_settings",
        ["repository_id", "org_id", "alerted_week"],
        sqlite_where=sa.text("flake_cost_alert_minutes IS NOT NULL"),
        postgresql_where=sa.text("flake_cost_alert_minutes IS NOT NULL"),
    )
    op.create_table(
        "upload_times",
        sa.Column("upload", sa.String(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("ran_at", TIME, nullable=False),
        sa.Column("times", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("upload", name="pk_upload_times"),
    )
    op.create_index("ix_upload_times_ran_at", "upload_times", ["ran_at"])
    op.create_table(
        "times_of_day",
        sa.Column("repository_id", BIG, nullable=False, autoincrement=False),
        sa.Column("day", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("part", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("times", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("repository_id", "day", "part", name="pk_times_of_day"),
    )
    op.create_table(
        "times_of_week",
        sa.Column("repository_id", BIG, nullable=False, autoincrement=False),
        sa.Column("no", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("through", sa.Integer(), nullable=False),
        sa.Column("runs", sa.Integer(), nullable=False),
        sa.Column("total_rank", BIG, nullable=False),
        sa.Column("median_rank", BIG, nullable=False),
        sa.Column("p95_rank", BIG, nullable=False),
        sa.Column("runs_before", sa.Integer(), nullable=False),
        sa.Column("total_ms_before", BIG, nullable=False),
        sa.Column("median_ms_before", BIG, nullable=False),
        sa.Column("p95_ms_before", BIG, nullable=False),
        sa.PrimaryKeyConstraint("repository_id", "no", name="pk_times_of_week"),
    )
    for order in ("total", "median", "p95"):
        op.create_index(
            f"ix_times_of_week_{order}",
            "times_of_week",
            ["repository_id", f"{order}_rank", "no"],
        )
    op.create_table(
        "queue_wait",
        sa.Column("repository_id", BIG, nullable=False, autoincrement=False),
        sa.Column("day", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("no", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("failures", sa.Float(), nullable=False),
        sa.Column("wait_ms", BIG, nullable=False),
        sa.PrimaryKeyConstraint("repository_id", "day", "no", name="pk_queue_wait"),
    )
