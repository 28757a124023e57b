"""Columns and indexes for the budgets of heads, submitters and tokens (budgets.md)."""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    # What was submitted before counts for no one.
    op.add_column("entry", sa.Column("submitter", sa.String(), nullable=False, server_default=""))
    op.create_index("ix_entry_submitter_state_since", "entry", ["submitter", "state_since"])
    truth = "1" if op.get_bind().dialect.name == "sqlite" else "true"
    for name, columns, rows in (
        ("ix_entry_failed_head", ["queue_id", "head", "no"], sa.text("state = 'FAILED'")),
        ("ix_entry_live_submitter", ["submitter"], sa.text(f"live IS {truth}")),
    ):
        op.create_index(name, "entry", columns, sqlite_where=rows, postgresql_where=rows)
    for name in ("open_entries", "ci_minutes"):
        column = sa.Column(name, BIG, nullable=False, server_default="0")
        op.add_column("api_token", column)
