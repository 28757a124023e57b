"""Issues that are kept of tests."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "ticket_issue",
        sa.Column("repository_id", ID, nullable=False, autoincrement=False),
        sa.Column("no", sa.Integer(), nullable=False, autoincrement=False),
        sa.Column("org_id", ID, nullable=False),
        sa.Column("asked_at", INSTANT, nullable=False),
        sa.Column("told", sa.String(), nullable=False),
        sa.Column("number", ID, nullable=True),
        sa.Column("html_url", sa.Text(), nullable=True),
        sa.Column("reopens", sa.Boolean(), nullable=False),
        sa.Column("look_at", INSTANT, nullable=True),
        sa.PrimaryKeyConstraint("repository_id", "no", name="pk_ticket_issue"),
    )
    op.create_index(
        "ix_ticket_issue_repository_id_asked_at", "ticket_issue", ["repository_id", "asked_at"]
    )
    looked_at = sa.text("look_at IS NOT NULL")
    op.create_index(
        "ix_ticket_issue_look_at",
        "ticket_issue",
        ["repository_id", "look_at"],
        sqlite_where=looked_at,
        postgresql_where=looked_at,
    )
    is_on = "ticket_issues IS " + ("1" if op.get_bind().dialect.name == "sqlite" else "true")
    op.create_index(
        "ix_test_settings_open_ticket_issues",
        "test_settings",
        ["repository_id", "org_id"],
        sqlite_where=sa.text(is_on),
        postgresql_where=sa.text(is_on),
    )
