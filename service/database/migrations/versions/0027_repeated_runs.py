"""Store runs of tests that Headgate started itself (active-evidence.md)."""

import sqlalchemy as sa
from alembic import op

revision = "0027"
down_revision = "0026"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.add_column("test_settings", sa.Column("repeat_minutes_per_day", sa.Integer()))
    op.create_table(
        "repeat_plan",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("upload", sa.String(), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("tests", sa.Text(), nullable=False),
        sa.Column("asked_at", TIME, nullable=False),
        sa.Column("reserved_ms", BIG, nullable=False),
        sa.Column("reported_at", TIME),
        sa.Column("spent_ms", BIG),
        sa.PrimaryKeyConstraint("id", name="pk_repeat_plan"),
    )
    op.create_index("ix_repeat_plan_asked_at", "repeat_plan", ["asked_at"])
    op.create_index("ix_repeat_plan_day", "repeat_plan", ["repository_id", "asked_at"])
    op.create_index("ix_repeat_plan_upload", "repeat_plan", ["upload"])
    op.create_table(
        "test_repeats",
        sa.Column("repository_id", BIG, nullable=False, autoincrement=False),
        sa.Column("no", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("plan", sa.String(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("upload", sa.String(), nullable=False),
        sa.Column("ran_at", TIME, nullable=False),
        sa.Column("letters", sa.String(), nullable=False),
        sa.Column("tested", sa.Integer(), nullable=False),
        sa.Column("disagreeing", sa.Integer(), nullable=False),
        sa.Column("is_probe", sa.Boolean(), nullable=False),
        sa.Column("has_failed", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("repository_id", "no", "plan", name="pk_test_repeats"),
    )
    op.create_index("ix_test_repeats_ran_at", "test_repeats", ["ran_at"])
    op.create_index("ix_test_repeats_upload", "test_repeats", ["upload"])
