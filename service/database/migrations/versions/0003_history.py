"""The newest submissions of one queue, for estimates and simulations."""

from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.create_index("ix_entry_queue_id_no", "entry", ["queue_id", "no"])
