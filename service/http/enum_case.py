"""Enums in lower case, for clients that want them so (API.md 1.3, `HEADGATE_API_ENUM_CASE`).

Everything else makes answers as SPECIFICATION.md writes them; this is the one place that
knows which members hold words of a queue.
"""

from collections.abc import Callable, Mapping

from service.http.rendering import Json
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

PROVIDERS_OWN = frozenset({"checkSuites", "statusChecks"})
"""Members whose content keeps the provider's words, `state` among them."""

Case = Callable[[Json], Json]


def case_of(wanted: EnumCase) -> Case:
    """What an answer passes before it is encoded."""
    return in_lower if wanted is EnumCase.LOWER else as_it_is


def as_it_is(shown: Json) -> Json:
    """Nothing changes."""
    return shown


def in_lower(shown: Json) -> Json:
    """The same answer with the words of `WORDS` in lower case."""
    return {name: _member(name, value) for name, value in shown.items()}


def _member(name: str, value: object) -> object:
    if isinstance(value, str):
        return value.lower() if name in WORDS else value
    return value if name in PROVIDERS_OWN else _nested(value)


def _nested(value: object) -> object:
    if isinstance(value, Mapping):
        return in_lower(value)
    if isinstance(value, list | tuple):
        return [_nested(each) for each in value]
    return value
