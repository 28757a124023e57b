"""Any value of a type, for tests that must hold for all: strategies from type hints."""

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from service.mergequeue.engine.config import QueueConfig
from service.mergequeue.engine.model import Entry, Green, MergeQueue, Run
from service.mergequeue.engine.targets import ALL, Targets

# PostgreSQL's text holds no NUL and nobody's holds half a surrogate pair.
TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=8)
NUMBERS = st.integers(-(2**31), 2**31 - 1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
TIMES = st.integers(0, 4 * 10**15).map(lambda each: EPOCH + timedelta(microseconds=each))
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
PRIMITIVES = {
    str: TEXT,
    int: NUMBERS,
    float: FLOATS,
    bool: st.booleans(),
    bytes: st.binary(max_size=8),
    datetime: TIMES,
}
KEPT_APART = ("entries", "runs", "greens")


def any_of(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a type that the store can hold."""
    if isinstance(hint, NewType):
        return any_of(hint.__supertype__)
    if hint in PRIMITIVES:
        return PRIMITIVES[hint]
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(hint)
    if is_dataclass(hint) and isinstance(hint, type):
        return built(hint)
    return _compound(hint)


def _compound(hint: Any) -> st.SearchStrategy[Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return st.one_of(*(any_of(each) for each in arguments if each is not types.NoneType)) | (
            st.none() if types.NoneType in arguments else st.nothing()
        )
    if origin is tuple and arguments[1:] == (Ellipsis,):
        return st.lists(any_of(arguments[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*(any_of(each) for each in arguments))
    if origin is frozenset:
        return st.frozensets(any_of(arguments[0]), max_size=2)
    if origin is not None and issubclass(origin, Mapping):
        return st.dictionaries(any_of(arguments[0]), any_of(arguments[1]), max_size=2)
    raise TypeError(hint)


def built(kind: Any, **given: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Any value of a dataclass; `given` says more of some fields."""
    hints = get_type_hints(kind)
    if kind is Targets:
        return st.just(ALL) | st.builds(Targets, st.frozensets(TEXT, max_size=2))
    if kind is QueueConfig:
        return st.builds(QueueConfig, mode=any_of(hints["mode"]), concurrency=NUMBERS)
    whole = {
        field.name: given[field.name] if field.name in given else any_of(hints[field.name])
        for field in fields(kind)
    }
    return st.builds(kind, **whole)


def entries(taken: str = "") -> st.SearchStrategy[dict[int, Entry]]:
    """Entries of a queue by pull request; ids begin with `taken`, so that groups differ."""
    whole = st.lists(built(Entry), max_size=3, unique_by=lambda entry: entry.pr)
    return whole.map(
        lambda found: {
            entry.pr: replace(entry, id=f"{taken}{place}") for place, entry in enumerate(found)
        }
    )


def runs(taken: str = "") -> st.SearchStrategy[dict[str, Run]]:
    """Runs of a queue by id; ids begin with `taken`."""
    whole = st.lists(built(Run), max_size=2)
    return whole.map(
        lambda found: {
            f"{taken}{place}": replace(run, id=f"{taken}{place}") for place, run in enumerate(found)
        }
    )


def greens() -> st.SearchStrategy[dict[str, Green]]:
    """Passed trees by the engine's key."""
    return st.dictionaries(TEXT, built(Green), max_size=3)


def queues() -> st.SearchStrategy[MergeQueue]:
    """A queue as it is when just made: its own fields are any, it holds nothing yet."""
    return built(
        MergeQueue,
        id=st.just(0),
        version=st.just(0),
        deleted=st.just(False),
        **{name: st.just({}) for name in KEPT_APART},
    )
