"""Consents to forks by head and base, and the provider's time of heads (security.md 4).

An authorization without a base says too little to be a consent: none is taken over.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"

_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
_TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.drop_table("fork_authorization")
    op.create_table(
        "consent",
        sa.Column("repository_id", _ID, nullable=False, autoincrement=False),
        sa.Column("number", _ID, nullable=False, autoincrement=False),
        sa.Column("head", sa.String(), nullable=False),
        sa.Column("base", sa.String(), nullable=False),
        sa.Column("org_id", _ID, nullable=False),
        sa.Column("actor", sa.Text(), nullable=False),
        sa.Column("right", sa.Integer(), nullable=False),
        sa.Column("sensitive", sa.Text(), nullable=False),
        sa.Column("at", _TIME, nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("repository_id", "number", "head", "base", name="pk_consent"),
    )
    op.add_column("pull_request", sa.Column("shown_at", _TIME, nullable=True))
