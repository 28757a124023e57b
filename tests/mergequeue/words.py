"""Single words of the scenario language: runs, targets and settings.

Settings go by their field names. `optimistic`, `depth=1`, `bisection=3`, `batch=4` and
`isolate=docs/*` are short for one or two of them.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum

from service.mergequeue.engine import targets
from service.mergequeue.engine.config import BatchingRule, ConfigValue, QueueConfig
from service.mergequeue.engine.targets import Targets

_SHORT = {
    "optimistic": "can_optimistically_merge",
    "depth": "pending_failure_depth",
    "bisection": "bisection_concurrency",
    "isolate": "batching_rules",
}


def settings_of(words: Iterable[str]) -> dict[str, ConfigValue]:
    """Settings from `name=value`; a flag alone is `flag=yes`, and `batch=4` says the size too."""
    settings: dict[str, ConfigValue] = {}
    for word in words:
        name, _, value = word.partition("=")
        name = _SHORT.get(name, name)
        if name == "batch" and value.isdigit():
            settings["batching_min_size"] = int(value)
            value = "yes"
        settings[name] = _setting(name, value or "yes")
    return settings


def _setting(name: str, word: str) -> ConfigValue:
    default: ConfigValue = getattr(QueueConfig(), name, 0)
    if name == "batching_rules":
        return tuple(BatchingRule(each) for each in word.split(",") if each != "none")
    if isinstance(default, StrEnum):
        return type(default)(word)
    if isinstance(default, bool):
        assert word in ("yes", "no"), f"{name}={word}"
        return word == "yes"
    if isinstance(default, int | float):
        return float(word) if "." in word else int(word)
    return None if word == "none" else tuple(word.split(","))


def targets_of(word: str) -> Targets:
    """`a,b`, `ALL`, or `none` for the empty set."""
    if word == "ALL":
        return targets.ALL
    return targets.of(name for name in word.split(",") if name != "none")


def values_of(words: Iterable[str]) -> Mapping[str, str]:
    """The words of the form `key=value`, by key; of a repeated key the last."""
    pairs = (word.partition("=") for word in words)
    return {key: value for key, sign, value in pairs if sign}


def number_of(word: str) -> int:
    """The number of a run: `r3`."""
    assert word.startswith("r"), f"{word!r} is no run"
    return int(word[1:])
