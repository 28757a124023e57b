"""Batches, lanes, bisections, and sets of targets that are stored once."""

import hashlib
import zlib
from collections.abc import Iterable

import orjson
import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"

# What rows that are there already say of what did not exist.
ADDED: tuple[tuple[str, sa.Column[object]], ...] = (
    ("merge_queue", sa.Column("bisections", sa.Text(), nullable=False, server_default="{}")),
    ("merge_queue", sa.Column("next_bisection", sa.Integer(), nullable=False, server_default="1")),
    ("entry", sa.Column("targets", sa.String(), nullable=True)),
    ("entry", sa.Column("wide", sa.String(), nullable=True)),
    ("entry", sa.Column("batch", sa.Integer(), nullable=True)),
    ("entry", sa.Column("failed_batches", sa.Integer(), nullable=False, server_default="0")),
    ("entry", sa.Column("kept", sa.Boolean(), nullable=False, server_default=sa.false())),
    ("entry", sa.Column("screened", sa.Boolean(), nullable=False, server_default=sa.false())),
    ("entry", sa.Column("suspected", sa.Integer(), nullable=True)),
    ("entry", sa.Column("failures", sa.Text(), nullable=False, server_default="[]")),
    ("run", sa.Column("bisection", sa.String(), nullable=True)),
    ("run", sa.Column("without", sa.Text(), nullable=False, server_default="[]")),
)

UPLOADS = sa.table(
    "impacted_targets",
    *map(sa.column, ("repository_id", "number", "head", "targets")),
)
SETS = sa.table("target_set", sa.column("word"), sa.column("names"))


def upgrade() -> None:
    for table, column in ADDED:
        op.add_column(table, column)
    for name in ("targets", "wide"):
        is_there = sa.text(f"{name} IS NOT NULL")
        op.create_index(
            f"ix_entry_{name}", "entry", [name], sqlite_where=is_there, postgresql_where=is_there
        )
    op.create_table(
        "target_set",
        sa.Column("word", sa.String(), nullable=False),
        sa.Column("names", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("word", name="pk_target_set"),
    )
    name_uploads()
    with op.batch_alter_table("impacted_targets") as batch:
        batch.alter_column("targets", existing_type=sa.Text(), nullable=False)
    op.create_index("ix_impacted_targets_targets", "impacted_targets", ["targets"])


def digest_of(names: Iterable[str]) -> str:
    parts: list[list[str]] = [[] for _ in range(256)]
    for name in names:
        parts[zlib.crc32(name.encode()) % 256].append(name)
    digest = hashlib.sha256()
    for part in parts:
        digest.update(orjson.dumps(sorted(part)))
    return digest.hexdigest()


def name_uploads() -> None:
    """Replace the names of each upload, which were JSON, by their word; NULL meant all."""
    connection = op.get_bind()
    key = (UPLOADS.c.repository_id, UPLOADS.c.number, UPLOADS.c.head)
    kept: set[str] = set()
    for repository_id, number, head in connection.execute(sa.select(*key)).all():
        this = sa.and_(
            UPLOADS.c.repository_id == repository_id,
            UPLOADS.c.number == number,
            UPLOADS.c.head == head,
        )
        found = connection.execute(sa.select(UPLOADS.c.targets).where(this)).scalar()
        word = "ALL"
        if found is not None:
            names = set(orjson.loads(found))
            word = f"set-{digest_of(names)}"
            if word not in kept:
                kept.add(word)
                text = orjson.dumps(list(names)).decode()
                connection.execute(sa.insert(SETS).values(word=word, names=text))
        connection.execute(sa.update(UPLOADS).where(this).values(targets=word))
