"""Keep healthy tests out of the indexes of unhealthy ones, and unknown tests out of lists."""

import sqlalchemy as sa
from alembic import op

revision = "0025"
down_revision = "0024"

INDEXES = {
    "ix_test_case_by_impact": (["status", "impact_rank", "no"], "status != 'healthy'", None),
    "ix_test_case_by_time": (["status", "status_since", "no"], "status != 'healthy'", None),
    "ix_test_case_by_harm": (["impact_rank", "no"], "is_known IS true", "is_known IS 1"),
}


def upgrade() -> None:
    for name, (columns, where, on_sqlite) in INDEXES.items():
        op.drop_index(name, "test_case")
        op.create_index(
            name,
            "test_case",
            ["repository_id", *columns],
            sqlite_where=sa.text(on_sqlite or where),
            postgresql_where=sa.text(where),
        )
