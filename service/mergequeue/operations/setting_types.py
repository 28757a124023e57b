"""The settings of a queue as fields of requests, answers and files, made from their definitions."""

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from service.http.models import common, settings
from service.http.models.answers.common import Answer
from service.http.models.common import Request
from service.mergequeue.engine.config import BatchingRule, ConfigValue, QueueConfig
from service.settings import ITEMS_MAX

TARGET_PATTERN_CHARS_MAX = 512


class BatchingRuleGiven(Request):
    """One member of `batchingRules`."""

    ignores_unknown = True

    target_pattern: Annotated[
        str,
        Field(min_length=1, max_length=TARGET_PATTERN_CHARS_MAX, pattern=common.TARGET_PATTERN),
    ]
    """Targets by name, or by prefix with `*` at the end. For example `//infra/*`."""
    policy: Annotated[Literal["ISOLATE"], BeforeValidator(common.isolate)] = "ISOLATE"
    """What happens to pull requests with these targets."""


class BatchingRuleWritten(BatchingRuleGiven):
    """The same in a file, where an unknown key is an error."""

    ignores_unknown = False


class BatchingRuleShown(Answer):
    """Pull requests that impact a matching target are tested alone."""

    target_pattern: str
    """Targets by name, or by prefix with `*` at the end. For example `//infra/*`."""
    policy: Literal["ISOLATE"]
    """What happens to pull requests with these targets."""


RULES = tuple[BatchingRule, ...]

takes_settings = settings.takes(
    QueueConfig, {RULES: settings.items_of(BatchingRuleGiven, ITEMS_MAX)}
)
names_settings = settings.names(
    QueueConfig, {RULES: settings.items_of(BatchingRuleWritten, ITEMS_MAX)}
)
shows_settings = settings.shows(QueueConfig, {RULES: tuple[BatchingRuleShown, ...]})


def value_of(taken: object) -> ConfigValue:
    """Return the value of a field of a request in the types of `QueueConfig`."""
    if not isinstance(taken, list):
        return taken  # type: ignore[return-value]
    if taken and isinstance(taken[0], BatchingRuleGiven):
        return tuple(BatchingRule(rule.target_pattern, rule.policy) for rule in taken)
    return tuple(taken)
