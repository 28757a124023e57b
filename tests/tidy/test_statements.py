"""Engines of one kind of database share what they have compiled."""

from pathlib import Path

from sqlalchemy import column, select, table
from sqlalchemy.dialects import postgresql, sqlite

from tests.harness.databases import connected
from tests.harness.statements import Shared

QUESTION = select(table("sqlite_master", column("name")))


def test_another_engine_finds_the_statement_compiled(tmp_path: Path) -> None:
    compiled = []
    for name in ("one.db", "other.db"):
        with connected(f"sqlite:///{tmp_path / name}") as connection:
            compiled.append(connection.execute(QUESTION).context.compiled)
    assert compiled[0] is compiled[1]


def test_another_kind_of_database_has_its_own() -> None:
    shared, own, other = Shared(), sqlite.dialect(), postgresql.dialect()
    shared[own, "question"] = QUESTION.compile(dialect=own)
    assert (sqlite.dialect(), "question") in shared
    assert (other, "question") not in shared
