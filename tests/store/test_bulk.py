"""Rows that travel as one text arrive as they were, on both databases."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from sqlalchemy import Column, Integer, MetaData, String, Table, delete, select

from service.database import bulk
from service.database.types import Id, Json, Utc

TABLE = Table(
    "bulk_rows",
    MetaData(),
    Column("no", Integer, primary_key=True),
    Column("name", String),
    Column("owners", Json),
    Column("at", Utc),
    Column("large", Id),
    Column("org_id", Id),
)
COLUMNS = [TABLE.c[name] for name in ("no", "name", "owners", "at", "large")]
INSERT = bulk.inserted(TABLE, COLUMNS, [TABLE.c.org_id])
AMONG = select(TABLE.c.no).where(TABLE.c.no.in_(bulk.firsts(Integer))).order_by(TABLE.c.no)
TEXTS = bulk.placed()
NAMED = select(*bulk.together(TABLE.c.no.is_not(None), TEXTS.c.key, TABLE.c.no)).select_from(
    TEXTS.outerjoin(TABLE, TABLE.c.name == TEXTS.c.value)
)
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
ROWS = [
    (1, "plain", '["@octo/web"]', NOON, 2**40),
    (2, 'it\'s "quoted" \\ {[ § ü 名 \n\t', "[]", NOON + timedelta(microseconds=7), -1),
    (3, "", None, None, None),
    (4, None, "null", NOON.astimezone(timezone(timedelta(hours=5))), 0),
]


@pytest.fixture
async def filled(store):
    """The store with the rows in a table of their own."""

    def fill(session):
        TABLE.create(session)
        bulk.send(session, INSERT, ROWS, org_id=7)

    await store.run(fill)
    return store


async def test_every_kind_of_value_arrives_as_it_was(filled):
    found = await filled.read(lambda session: session.execute(select(TABLE)).all())
    assert sorted(tuple(row) for row in found) == [(*row, 7) for row in ROWS]


async def test_a_time_is_stored_as_any_other_statement_stores_it(filled):
    at = TABLE.c.at
    question = select(TABLE.c.no).where(at == NOON).order_by(TABLE.c.no)
    assert await filled.read(lambda session: session.execute(question).scalars().all()) == [1, 4]


async def test_what_is_among_the_rows_is_found_by_their_first_values(filled):
    told = bulk.params([(4, "more"), (2,), (9,)])
    assert await filled.read(lambda s: s.execute(AMONG, told).scalars().all()) == [2, 4]


async def test_no_row_is_no_row(filled):
    assert await filled.read(lambda s: s.execute(AMONG, bulk.params([])).scalars().all()) == []
    await filled.run(lambda session: session.execute(delete(TABLE)))
    await filled.run(lambda session: bulk.send(session, INSERT, [], org_id=7))
    assert await filled.read(lambda s: s.execute(select(TABLE)).all()) == []


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["nobody's", ROWS[1][1], "", "plain"], [(1, 2), (2, 3), (3, 1)]),
        (["nobody's"], []),
        ([], []),
    ],
)
async def test_texts_are_looked_up_by_their_places_in_one_row(filled, texts, found):
    row = await filled.read(lambda s: s.execute(NAMED, bulk.text_params(texts)).one())
    assert sorted(zip(*bulk.columns_of(row), strict=True)) == found


@pytest.mark.parametrize("numbers", [(), (2,), (4, 2, 9), (9,)])
async def test_a_number_is_looked_up_among_those_of_a_parameter(filled, numbers):
    question = select(TABLE.c.no).where(bulk.among(TABLE.c.no, "numbers")).order_by(TABLE.c.no)
    found = await filled.read(lambda s: s.execute(question, {"numbers": numbers}).scalars().all())
    assert found == sorted({1, 2, 3, 4} & set(numbers))


async def test_rows_that_are_there_may_stay_as_they_are(filled):
    rows = [(1, "other", None, None, None), (5, "more", None, None, None)]
    again = bulk.inserted(TABLE, COLUMNS, [TABLE.c.org_id]).on_conflict_do_nothing()
    await filled.run(lambda session: bulk.send(session, again, rows, org_id=7))
    names = select(TABLE.c.name).order_by(TABLE.c.no)
    found = await filled.read(lambda session: session.execute(names).scalars().all())
    assert found == [*(row[1] for row in ROWS), "more"]
