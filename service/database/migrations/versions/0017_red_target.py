"""Checks that are red on a target branch, and its newest verified commit (red-target.md)."""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "target_break",
        sa.Column("no", BIG, nullable=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("queue_id", BIG, nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("is_open", sa.Boolean(), nullable=False),
        sa.Column("opened_at", TIME, nullable=False),
        sa.Column("ended_at", TIME, nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("no", name="pk_target_break"),
        sa.UniqueConstraint("id", name="uq_target_break_id"),
    )
    op.create_index("ix_target_break_queue_id_no", "target_break", ["queue_id", "no"])
    op.create_index(
        "ux_target_break_open",
        "target_break",
        ["queue_id", "name"],
        unique=True,
        sqlite_where=sa.text("is_open IS 1"),
        postgresql_where=sa.text("is_open IS true"),
    )
    op.create_table(
        "target_green",
        sa.Column("queue_id", BIG, nullable=False, autoincrement=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("sha", sa.String(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("queue_id", name="pk_target_green"),
    )
    op.create_index(
        "ix_landing_landed_sha",
        "landing",
        ["repository_id", "landed_sha"],
        sqlite_where=sa.text("landed_sha IS NOT NULL"),
        postgresql_where=sa.text("landed_sha IS NOT NULL"),
    )
