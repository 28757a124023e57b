"""What one upload changed is found by the instant at which it was written down."""

from alembic import op

revision = "0017"
down_revision = "0016"


def upgrade() -> None:
    op.create_index(
        "ix_test_state_event_repository_id_written_at",
        "test_state_event",
        ["repository_id", "written_at"],
    )
