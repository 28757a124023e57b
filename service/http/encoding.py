"""Answers as JSON, with enums in lower case for clients that want them so.

Models write enums in upper case. `HEADGATE_API_ENUM_CASE` may change that, and this is the one
place that knows which members hold words of a queue.
"""

import functools
from collections.abc import Mapping

import orjson
from pydantic import BaseModel, TypeAdapter

from service.runtime import EnumCase

WORDS = frozenset(
    {
        "state",
        "mode",
        "targetMode",
        "directMergeMode",
        "optimizationMode",
        "mergeMethod",
        "testBranchConstructionMode",
        "forkPolicy",
        "confirmFailures",
        "hedging",
        "batchSizing",
        "policy",
        "scope",
        "gitHubMergeability",
        "from",
        "to",
    }
)
"""Members whose value changes its case, wherever they stand in an answer."""

KEPT = frozenset({"checkSuites", "didYouMean", "settingSources", "statusChecks"})
"""Members whose content keeps its words: the provider's, and objects keyed by names of fields."""


class Encoder:
    """Writes answers in the case that the operator chose."""

    def __init__(self, case: EnumCase) -> None:
        self._is_lower = case is EnumCase.LOWER

    def encoded(self, answer: BaseModel, kind: type[BaseModel] | None = None) -> bytes:
        """Return the JSON of an answer; `kind`: a base of its model, whose fields are shown."""
        if self._is_lower:
            return orjson.dumps(self.plain(answer, kind))
        return _adapter(kind or type(answer)).dump_json(answer)

    def plain(self, answer: BaseModel, kind: type[BaseModel] | None = None) -> dict[str, object]:
        """Return the same as an object of plain values."""
        plain: dict[str, object] = _adapter(kind or type(answer)).dump_python(answer, mode="json")
        return in_lower(plain) if self._is_lower else plain


@functools.cache
def _adapter(kind: type[BaseModel]) -> TypeAdapter[BaseModel]:
    return TypeAdapter(kind)


def in_lower(shown: Mapping[str, object]) -> dict[str, object]:
    """Return the same answer with the words of `WORDS` in lower case."""
    return {name: _member(name, value) for name, value in shown.items()}


def _member(name: str, value: object) -> object:
    if isinstance(value, str):
        return value.lower() if name in WORDS else value
    return value if name in KEPT else _nested(value)


def _nested(value: object) -> object:
    if isinstance(value, Mapping):
        return in_lower(value)
    if isinstance(value, list | tuple):
        return [_nested(each) for each in value]
    return value
