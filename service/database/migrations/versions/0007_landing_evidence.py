"""Signed evidence of landings, and the keys that sign it (landing.md 13)."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "signing_key",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("public", sa.String(), nullable=False),
        sa.Column("sealed", sa.LargeBinary(), nullable=False),
        sa.Column("since", TIME, nullable=False),
        sa.Column("until", TIME, nullable=True),
        sa.Column("is_present", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_signing_key"),
    )
    truth = "1" if op.get_bind().dialect.name == "sqlite" else "true"
    present = sa.text(f"is_present IS {truth}")
    op.create_index(
        "ux_signing_key_present",
        "signing_key",
        ["is_present"],
        unique=True,
        sqlite_where=present,
        postgresql_where=present,
    )
    op.create_table(
        "landing_evidence",
        sa.Column("no", BIG, nullable=False),
        sa.Column("org_id", BIG, nullable=False),
        sa.Column("repository_id", BIG, nullable=False),
        sa.Column("queue_id", BIG, nullable=False),
        sa.Column("sha", sa.String(), nullable=False),
        sa.Column("pr", BIG, nullable=False),
        sa.Column("key_id", sa.String(), nullable=False),
        sa.Column("envelope", sa.Text(), nullable=False),
        sa.Column("at", TIME, nullable=False),
        sa.PrimaryKeyConstraint("no", name="pk_landing_evidence"),
    )
    op.create_index("ix_landing_evidence_queue_id_no", "landing_evidence", ["queue_id", "no"])
    op.create_index(
        "ux_landing_evidence_commit",
        "landing_evidence",
        ["repository_id", "sha", "pr"],
        unique=True,
    )
