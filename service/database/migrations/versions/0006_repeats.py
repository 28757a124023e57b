"""Requests that may be sent again: their keys, and what was answered."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "idempotency",
        sa.Column("token_id", sa.String(), nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("key", sa.String(), nullable=False),
        sa.Column("org_id", NUMBER, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("claim", sa.String(), nullable=False),
        sa.Column("claimed_until", INSTANT, nullable=False),
        sa.Column("at", INSTANT, nullable=False),
        sa.Column("status", sa.Integer(), nullable=True),
        sa.Column("content_type", sa.String(), nullable=True),
        sa.Column("body", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("token_id", "path", "key", name="pk_idempotency"),
    )
    op.create_index("ix_idempotency_at", "idempotency", ["at"])
