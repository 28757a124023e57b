"""Uploads in the order in which they came, so that what is counted of them is counted on."""

import sqlalchemy as sa
from alembic import op

revision = "0019"
down_revision = "0018"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    op.add_column("upload", sa.Column("revision", ID, nullable=True))
    removal = sa.Column("removal", ID, nullable=False, server_default="0")
    op.add_column("test_repository", removal)
    truth = "1" if op.get_bind().dialect.name == "sqlite" else "true"
    where = sa.text(f"is_eligible IS {truth}")
    op.create_index(
        "ix_upload_eligible_revision",
        "upload",
        ["repository_id", "revision"],
        sqlite_where=where,
        postgresql_where=where,
    )
