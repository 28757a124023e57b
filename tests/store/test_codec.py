"""Values to rows and JSON: what would not come back is refused when the codec is made."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Column, Integer, MetaData, String, Table
from sqlalchemy.dialects import sqlite
from sqlalchemy.exc import StatementError
from sqlmodel import Field
from sqlmodel.sql.sqltypes import AutoString

from service.database.codec import JsonCodec, RowCodec, UnionCodec, columns_of, store_as_word
from service.database.tables_base import Row, codec_of
from service.database.types import Json, Utc
from service.mergequeue.store.tables_queues import RunRow
from service.vocabulary import Sha
from tests.store.values import any_of


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True, slots=True)
class Dot:
    """A leaf with every kind of scalar."""

    sha: Sha
    color: Color
    seen: datetime | None
    share: float
    flag: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """A value with every kind of group."""

    dots: tuple[Dot, ...]
    pair: tuple[int, Dot]
    names: frozenset[str]
    colors: Mapping[Color, int]
    by_number: Mapping[int, Dot | None]
    mixed: str | int | None
    nested: Mapping[str, tuple[tuple[int, ...], ...]]


@dataclass(frozen=True, slots=True)
class Empty:
    """Says all by its name."""


@given(any_of(Picture))
def test_a_nested_value_comes_back_equal(picture: Picture):
    codec: JsonCodec[Picture] = JsonCodec(Picture)
    assert codec.decode(codec.encode(picture)) == picture


@given(any_of(Dot | Empty | Picture))
def test_members_of_a_union_are_told_apart_by_their_class(value: Dot | Empty | Picture):
    codec: UnionCodec[Dot | Empty | Picture] = UnionCodec(Dot | Empty | Picture)
    name, text = codec.encode(value)
    assert name == type(value).__name__
    assert codec.decode(name, text) == value


def test_equal_sets_are_equal_text():
    codec: JsonCodec[frozenset[str]] = JsonCodec(frozenset[str])
    assert codec.encode(frozenset("zyx")) == codec.encode(frozenset("xzy")) == '["x","y","z"]'


@dataclass(frozen=True, slots=True)
class Badge:
    """A value that is stored as a word."""

    word: str


@dataclass(frozen=True, slots=True)
class Jacket:
    """A value with words inside."""

    front: Badge
    others: tuple[Badge | None, ...]


store_as_word(Badge, lambda badge: badge.word, Badge)


def test_a_value_stored_as_a_word_is_its_word_in_json_and_columns():
    jacket = Jacket(Badge("a"), (Badge("b"), None))
    codec: JsonCodec[Jacket] = JsonCodec(Jacket)
    assert codec.encode(jacket) == '{"front":"a","others":["b",null]}'
    assert codec.decode(codec.encode(jacket)) == jacket
    rows = RowCodec(Jacket, a_table(Column("front", String), Column("others", Json)))
    row = rows.row(jacket)
    assert row == {"front": "a", "others": '["b",null]'}
    assert rows.value(list(row.values())) == jacket
    # A row may go on with columns of others.
    assert rows.value([*row.values(), 7]) == jacket
    again = Jacket(Badge("a"), (Badge("b"), None))
    assert rows.changes(jacket, again) == rows.changes(jacket, jacket) == {}
    assert rows.changes(jacket, Jacket(Badge("c"), again.others)) == {"front": "c"}


def test_a_stored_type_does_not_become_a_word_later():
    JsonCodec(Picture)
    with pytest.raises(TypeError, match="Dot"):
        store_as_word(Dot, str, lambda _: None)


def test_a_union_grows_but_never_by_a_name_in_use():
    codec: UnionCodec[Dot | Empty] = UnionCodec(Dot)
    codec.add(Empty)
    assert codec.decode(*codec.encode(Empty())) == Empty()
    with pytest.raises(TypeError, match="Dot"):
        codec.add(Dot | Empty)


DOT = '{"sha": "a", "color": "red", "seen": null, "share": 0.5}'


def test_a_field_that_older_json_lacks_takes_its_default():
    assert JsonCodec(Dot).decode(DOT) == Dot(Sha("a"), Color.RED, None, 0.5)


def test_a_field_that_is_gone_is_passed_over():
    text = DOT.replace("{", '{"size": 3, ')
    assert JsonCodec(Dot).decode(text) == Dot(Sha("a"), Color.RED, None, 0.5)


@pytest.mark.parametrize(
    "text",
    [
        DOT.replace("red", "green"),
        DOT.replace("null", '"2026-03-02T14:00:00"'),
        DOT.replace('"sha": "a", ', ""),
    ],
)
def test_what_cannot_be_right_is_not_restored(text: str):
    with pytest.raises(ValueError, match="validation error for Dot"):
        JsonCodec(Dot).decode(text)


@pytest.mark.parametrize(
    "hint", [Dot | Empty, Dot | str, object, dict[bytes, int], Mapping[datetime, int], list[str]]
)
def test_a_type_that_json_does_not_tell_is_refused_at_once(hint: object):
    with pytest.raises(TypeError):
        JsonCodec(hint)


def a_table(*columns: Column) -> Table:
    return Table("dot", MetaData(), *columns)


SEEN = Column("seen", Utc)
SCALARS = [Column("sha", String), Column("color", String), Column("share", Integer)]


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ([*SCALARS, SEEN], "flag"),
        ([*SCALARS, SEEN, Column("flag", Integer), Column("size", Integer)], "size"),
    ],
)
def test_a_field_or_column_without_a_partner_is_named(columns: list[Column], named: str):
    with pytest.raises(TypeError, match=named):
        RowCodec(Dot, a_table(*(each._copy() for each in columns)))


def test_a_group_needs_a_json_column():
    columns = [Column(name, Json) for name in Picture.__dataclass_fields__ if name != "dots"]
    with pytest.raises(TypeError, match=r"Picture\.dots"):
        RowCodec(Picture, a_table(*columns, Column("dots", String)))


def test_a_row_has_words_for_enums_and_text_for_groups():
    table = a_table(
        Column("id", Integer), *(Column(name, Json) for name in ("dots", "pair", "names"))
    )
    codec = RowCodec(
        Picture,
        table,
        keys={"id"},
        elsewhere={"colors", "by_number", "mixed", "nested"},
    )
    picture = Picture((), (1, Dot(Sha("a"), Color.RED, None, 0.5)), frozenset("b"), {}, {}, 1, {})
    row = codec.row(picture)
    assert row.keys() == {"dots", "pair", "names"}
    assert row["pair"] == '[1,{"sha":"a","color":"red","seen":null,"share":0.5,"flag":false}]'
    elsewhere = {"colors": {}, "by_number": {}, "mixed": 1, "nested": {}}
    assert codec.value([row[name] for name in codec.names], elsewhere) == picture


class DotRow(Row, table=True, columns_of=Dot, without={"share"}):
    """Where a dot is, beside what it is."""

    __tablename__ = "dot_made_of_its_fields"
    metadata = MetaData()

    id: int = Field(primary_key=True)
    flag: bool = Field(sa_column_kwargs={"server_default": "0"})


def test_a_table_has_the_fields_of_its_value_as_columns():
    columns = DotRow.__table__.c
    assert set(columns.keys()) == {"id", "sha", "color", "seen", "flag"}
    kinds = {name: type(column.type) for name, column in columns.items()}
    assert kinds["sha"] == kinds["color"] == AutoString
    assert kinds["seen"] is Utc
    assert [name for name, column in columns.items() if column.nullable] == ["seen"]
    assert columns.flag.server_default is not None
    assert columns_of(Picture)["dots"][1].sa_type is Json
    assert RunRow.__table__.c.evidence.nullable


def test_a_codec_is_made_of_a_table_and_its_value():
    dot = Dot(Sha("a"), Color.RED, None, 0.5)
    codec = codec_of(DotRow, Dot)
    row = codec.row(dot)
    assert row == {"sha": "a", "color": "red", "seen": None, "flag": False}
    assert codec.value(list(row.values()), {"share": 0.5}) == dot


def test_a_naive_time_is_not_stored(session):
    table = a_table(Column("seen", Utc))
    table.create(session)
    with pytest.raises(StatementError, match="without a zone"), session.begin_nested():
        session.execute(table.insert(), {"seen": datetime(2026, 3, 2)})  # noqa: DTZ001


@given(st.datetimes(timezones=st.timezones()))
def test_times_come_back_in_utc_as_text_of_one_width(moment: datetime):
    later = max(moment, datetime(1000, 1, 1, tzinfo=UTC)).astimezone(UTC)
    text = Utc().process_bind_param(later, sqlite.dialect())
    assert isinstance(text, str)
    assert len(text) == len("2026-03-02T14:00:00.000000")
    assert Utc().process_result_value(text, sqlite.dialect()) == later
