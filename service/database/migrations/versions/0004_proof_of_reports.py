"""Add what must prove a report that excuses, and name proofs of stored uploads anew.

Earlier uploads do not say which job sent them, so a token is all that proves them
(docs/design/evidence.md 5).
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

EARLIER = ("sender", "run")


def upgrade() -> None:
    op.add_column(
        "test_settings",
        sa.Column("excuse_proof", sa.String(), nullable=False, server_default="JOB"),
    )
    for proof in EARLIER:
        op.execute(
            sa.text(
                "UPDATE upload SET account = replace(account, :before, :after)"
                " WHERE account LIKE '%' || :before || '%'"
            ).bindparams(before=f'"proof":"{proof}"', after='"proof":"token"')
        )
