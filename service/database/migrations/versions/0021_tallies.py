"""Uploads leave their sets to be counted; days of tests no longer have a sum of durations."""

import json

import sqlalchemy as sa
from alembic import op

revision = "0021"
down_revision = "0020"

ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
TIME = sa.DateTime(timezone=True).with_variant(sa.Text(), "sqlite")
DAY = {
    "sqlite": "CAST(julianday(substr(u.ran_at, 1, 10)) - 2440587.5 AS INTEGER)",
    "postgresql": "CAST(u.ran_at AT TIME ZONE 'UTC' AS date) - DATE '1970-01-01'",
}
LEFT = """
    SELECT p.repository_id, p.org_id, p.passed, p.skipped, u.is_mass, {day}
    FROM uncounted p JOIN upload u ON u.id = p.upload WHERE u.is_eligible
"""
ADD = """
    INSERT INTO daily (
        repository_id, no, day, org_id, results, passing_results, passed, failed, skipped,
        quarantined
    )
    VALUES (:repository_id, :no, :day, :org_id, :passed, :passing, :passed, 0, :skipped, 0)
    ON CONFLICT (repository_id, no, day) DO UPDATE SET
        results = daily.results + excluded.results,
        passing_results = daily.passing_results + excluded.passing_results,
        passed = daily.passed + excluded.passed,
        skipped = daily.skipped + excluded.skipped
"""


def upgrade() -> None:
    op.create_table(
        "tally",
        sa.Column("id", ID, nullable=False),
        sa.Column("org_id", ID, nullable=False),
        sa.Column("repository_id", ID, nullable=False),
        sa.Column("upload", sa.String(), nullable=False),
        sa.Column("day", sa.Integer(), nullable=False),
        sa.Column("ran_at", TIME, nullable=False),
        sa.Column("weight", sa.Integer(), nullable=False),
        sa.Column("passed", sa.String(), nullable=True),
        sa.Column("skipped", sa.String(), nullable=True),
        sa.Column("is_mass", sa.Boolean(), nullable=False),
        sa.Column("counted_to", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_tally"),
    )
    op.create_index("ix_tally_repository_id_day", "tally", ["repository_id", "day", "org_id"])
    op.create_index("ix_tally_upload", "tally", ["upload"])
    op.drop_column("daily", "duration_ms")
    _count_what_is_left()


def _count_what_is_left() -> None:
    """Count days of parts that a stop left: from now on parts say nothing of days."""
    here = op.get_bind()
    left = here.exec_driver_sql(LEFT.format(day=DAY[here.dialect.name]))
    rows = [
        {
            "repository_id": repository_id,
            "org_id": org_id,
            "day": day,
            "no": no,
            "passed": int(is_passed),
            "passing": int(is_passed and not is_mass),
            "skipped": int(not is_passed),
        }
        for repository_id, org_id, passed, skipped, is_mass, day in left
        for told, is_passed in ((passed, True), (skipped, False))
        for no, *_ in json.loads(told)
    ]
    if rows:
        here.execute(sa.text(ADD), rows)
