"""A version of Headgate from the future: the present program with one more revision.

`write` makes a folder of revisions with one behind the newest; `use` turns this process into the
program that knows it. Both go through the product's own migration code.
"""

import os
import shutil
from pathlib import Path

from service.database import migrate

FOLDER = "TESTS_NEWER_SCHEMA"
"""The variable that names the folder to a process that `processes.py` starts."""

PRESENT = migrate.HEAD
NEWER = f"{int(PRESENT) + 1:04}"

ADDS = """
    op.create_table("newer", sa.Column("id", sa.BigInteger(), primary_key=True))
    op.add_column("entry", sa.Column("newer_text", sa.Text(), nullable=True))
    for table in ("merge_queue", "run", "outbox", "journal"):
        number = sa.Column("newer_number", sa.BigInteger(), nullable=False, server_default="7")
        op.add_column(table, number)
    op.create_index("ix_newer", "entry", ["newer_text"])
"""
"""What a revision may do that older programs run on."""

REVISION = """
import sqlalchemy as sa
from alembic import op

revision = "{newer}"
down_revision = "{present}"


def upgrade() -> None:
{does}
"""


def write(folder: Path, does: str = ADDS) -> Path:
    """Write the revisions of the newer version to a folder that is not there yet."""
    shutil.copytree(migrate.MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    text = REVISION.format(newer=NEWER, present=PRESENT, does=does)
    (folder / "versions" / f"{NEWER}_newer.py").write_text(text)
    return folder


def use(folder: Path, runs_from: str = PRESENT) -> None:
    """Make this process the newer version."""
    migrate.MIGRATIONS = folder
    migrate.REVISIONS = (*migrate.REVISIONS, NEWER)
    migrate.HEAD = NEWER
    migrate.RUNS_FROM = runs_from


def use_if_named() -> None:
    """Make this process the newer version if its environment names a folder."""
    if folder := os.environ.get(FOLDER):
        use(Path(folder))
