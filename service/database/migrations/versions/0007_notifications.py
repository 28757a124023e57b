"""Outgoing webhooks: endpoints, messages, attempts."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
INSTANT = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")


def upgrade() -> None:
    op.create_table(
        "endpoint",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("org_id", ID, nullable=False),
        *(sa.Column(name, sa.String(), nullable=False) for name in ("url", "description", "state")),
        sa.Column("events", sa.Text(), nullable=False),
        sa.Column("repositories", sa.Text(), nullable=True),
        sa.Column("secret", sa.LargeBinary(), nullable=False),
        sa.Column("previous_secret", sa.LargeBinary(), nullable=True),
        sa.Column("disabled_reason", sa.String(), nullable=True),
        sa.Column("created_at", INSTANT, nullable=False),
        *(
            sa.Column(name, INSTANT, nullable=True)
            for name in ("previous_until", "last_success_at", "last_failure_at", "failing_since")
        ),
        sa.Column("failed_messages", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_endpoint"),
        sa.ForeignKeyConstraint(["org_id"], ["organization.id"], name="fk_endpoint_org_id"),
    )
    op.create_index("ix_endpoint_org_id", "endpoint", ["org_id"])
    op.create_table(
        "notification",
        sa.Column("id", sa.String(), nullable=False),
        sa.Column("org_id", ID, nullable=False),
        sa.Column("event", sa.String(), nullable=False),
        sa.Column("at", INSTANT, nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_notification"),
    )
    op.create_index("ix_notification_at", "notification", ["at"])
    op.create_table(
        "notification_attempt",
        sa.Column("id", ID, nullable=False),
        sa.Column("org_id", ID, nullable=False),
        *(
            sa.Column(name, sa.String(), nullable=False)
            for name in ("endpoint", "message", "event", "state")
        ),
        *(sa.Column(name, sa.Integer(), nullable=False) for name in ("n", "tries")),
        *(sa.Column(name, sa.Boolean(), nullable=False) for name in ("is_open", "is_newest")),
        *(sa.Column(name, INSTANT, nullable=False) for name in ("made_at", "next_at")),
        *(sa.Column(name, INSTANT, nullable=True) for name in ("claimed_until", "at")),
        *(sa.Column(name, sa.Integer(), nullable=True) for name in ("status_code", "duration_ms")),
        sa.Column("error", sa.String(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_notification_attempt"),
    )
    index_attempts("ux_notification_attempt_endpoint", "endpoint message n", unique=True)
    index_attempts(
        "ix_notification_attempt_open_claimed", "endpoint", where="claimed_until IS NOT NULL"
    )
    index_attempts("ix_notification_attempt_made_at", "made_at")
    index_attempts("ix_notification_attempt_message", "message")
    index_attempts("ix_notification_attempt_open", "endpoint next_at id", where="is_open IS {true}")
    index_attempts("ix_notification_attempt_open_next_at", "next_at", where="is_open IS {true}")
    index_attempts(
        "ix_notification_attempt_newest",
        "endpoint made_at message",
        where="is_newest IS {true}",
    )


def index_attempts(name: str, columns: str, *, unique: bool = False, where: str = "") -> None:
    """An index over all rows, or over those for which something holds."""
    truth = "1" if op.get_bind().dialect.name == "sqlite" else "true"
    condition = sa.text(where.format(true=truth)) if where else None
    op.create_index(
        name,
        "notification_attempt",
        columns.split(),
        unique=unique,
        sqlite_where=condition,
        postgresql_where=condition,
    )
