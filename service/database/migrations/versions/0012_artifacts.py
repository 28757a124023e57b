"""Artifacts of CI that were looked at, and pull requests by their heads."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "artifact",
        sa.Column("repository_id", ID, nullable=False, autoincrement=False),
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("org_id", ID, nullable=False),
        sa.Column("upload", sa.String(), nullable=False),
        sa.Column("at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("repository_id", "id", name="pk_artifact"),
    )
    op.create_index("ix_artifact_at", "artifact", ["at"])
    op.create_index("ix_pull_request_repository_id_head", "pull_request", ["repository_id", "head"])
