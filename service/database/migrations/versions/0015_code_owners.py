"""The CODEOWNERS file of each repository with tests; uploads by the commit they tested."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "code_owners",
        sa.Column("repository_id", ID, nullable=False, autoincrement=False),
        sa.Column("org_id", ID, nullable=False),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("blob", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("read_at", INSTANT, nullable=True),
        sa.Column("owned_no", sa.Integer(), nullable=False),
        sa.Column("stale_at", INSTANT, nullable=False),
        sa.Column("due_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("repository_id", name="pk_code_owners"),
    )
    op.create_index("ix_code_owners_due_at", "code_owners", ["due_at"])
    op.create_index("ix_upload_repository_id_sha", "upload", ["repository_id", "sha"])
