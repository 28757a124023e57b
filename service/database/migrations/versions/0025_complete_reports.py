"""Uploads say what makes them complete; quarantine may forgive known failures alone."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0023"


def upgrade() -> None:
    account = sa.Column("account", sa.Text(), nullable=False, server_default="{}")
    op.add_column("upload", account)
    forgives = sa.Column(
        "quarantine_forgives", sa.String(), nullable=False, server_default="ANY_FAILURE"
    )
    op.add_column("test_settings", forgives)
    columns = ["repository_id", "kind", "job", "ran_at"]
    op.create_index("ix_upload_repository_id_kind_job", "upload", columns)
