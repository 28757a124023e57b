"""Lanes of the inbox, one for each repository (transactions.md 7)."""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"

BIG = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")

# Programs of older schemas store deliveries too, and know nothing of lanes.
SQLITE_TRIGGERS = (
    """CREATE TRIGGER inbox_opens_lane AFTER INSERT ON inbox BEGIN
        INSERT INTO inbox_lane (lane, arrivals, due_at) VALUES (NEW.lane, 1, NEW.next_at)
        ON CONFLICT (lane) DO UPDATE SET
            arrivals = inbox_lane.arrivals + 1, due_at = coalesce(inbox_lane.due_at, NEW.next_at);
    END""",
)
POSTGRESQL_TRIGGERS = (
    """CREATE FUNCTION open_inbox_lane() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        UPDATE inbox_lane SET arrivals = arrivals + 1, due_at = coalesce(due_at, NEW.next_at)
        WHERE lane = NEW.lane;
        IF NOT FOUND THEN
            INSERT INTO inbox_lane (lane, arrivals, due_at) VALUES (NEW.lane, 1, NEW.next_at)
            ON CONFLICT (lane) DO UPDATE SET arrivals = inbox_lane.arrivals + 1,
                due_at = coalesce(inbox_lane.due_at, NEW.next_at);
        END IF;
        RETURN NULL;
    END $$""",
    """CREATE TRIGGER inbox_opens_lane AFTER INSERT ON inbox
    FOR EACH ROW EXECUTE FUNCTION open_inbox_lane()""",
)
FILL = """INSERT INTO inbox_lane (lane, arrivals, due_at)
    SELECT lane, count(*), min(next_at) FROM inbox WHERE is_open IS {true} GROUP BY lane"""


def upgrade() -> None:
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    op.create_table(
        "inbox_lane",
        sa.Column("id", BIG, nullable=False),
        sa.Column("lane", sa.String(), nullable=False),
        sa.Column("arrivals", BIG, nullable=False),
        sa.Column("due_at", TIME, nullable=True),
        sa.Column("claimed_by", sa.String(), nullable=True),
        sa.Column("claimed_at", TIME, nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_inbox_lane"),
        sa.UniqueConstraint("lane", name="uq_inbox_lane_lane"),
    )
    op.create_index(
        "ix_inbox_lane_free",
        "inbox_lane",
        ["due_at"],
        sqlite_where=sa.text("claimed_by IS NULL"),
        postgresql_where=sa.text("claimed_by IS NULL"),
    )
    op.create_index(
        "ix_inbox_lane_claimed",
        "inbox_lane",
        ["id"],
        sqlite_where=sa.text("claimed_by IS NOT NULL"),
        postgresql_where=sa.text("claimed_by IS NOT NULL"),
    )
    for trigger in SQLITE_TRIGGERS if is_sqlite else POSTGRESQL_TRIGGERS:
        op.execute(trigger)
    op.execute(FILL.format(true="1" if is_sqlite else "true"))
