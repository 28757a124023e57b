"""The settings of a queue as fields of requests, answers and files, made from their definitions."""

from collections.abc import Iterable
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from service.http.models import common, settings, unknown
from service.http.models.answers.common import Answer
from service.http.models.common import Integer, Request
from service.mergequeue.engine.config import BatchingRule, ConfigValue, QueueConfig
from service.mergequeue.engine.model import PRIORITY_NAMES
from service.mergequeue.engine.rules import EntryRule, Period
from service.mergequeue.entry_rules import checking, expressions, periods
from service.mergequeue.entry_rules.checking import PRIORITY_MAX
from service.settings import ITEMS_MAX
from service.vocabulary import ConflictRule, Resolution

PATH_CHARS_MAX = 255
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


class ConflictRuleShown(Answer):
    """The rule for conflicts in some files."""

    paths: tuple[str, ...]
    """Files by globs, in which `*` is any run of characters. For example `["CHANGES"]`."""
    rule: Literal["UNION", "CHANGELOG"]
    """`UNION`: the lines of both sides. `CHANGELOG`: the same, each under its own headings."""


_PRIORITY_WORDS = tuple(PRIORITY_NAMES)


def _priority_in(value: object) -> object:
    """Return a level name, a digit string or a number, as its number."""
    if isinstance(value, str) and not value.isdigit():
        level = PRIORITY_NAMES.get(value.lower())
        if level is None:
            raise common.unknown_word(value, _PRIORITY_WORDS, f" or 0 to {PRIORITY_MAX}")
        return level
    return common.whole_or_digits(value)


PRIORITY_DIGITS = r"^0{0,7}(?:[01]?[0-9]?[0-9]|2[0-4][0-9]|25[0-5])$"
Priority = Annotated[
    int,
    Field(ge=0, le=PRIORITY_MAX),
    BeforeValidator(_priority_in),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": 0, "maximum": PRIORITY_MAX},
                {"type": "string", "pattern": PRIORITY_DIGITS},
                {"type": "string", "enum": list(_PRIORITY_WORDS)},
            ],
            "examples": [100],
        }
    ),
]


class _PartOfRule(Request):
    """An object of a rule: an unknown key is an error wherever it is sent.

    Left out, a misspelled `when` would make a rule one for all pull requests.
    """

    @model_validator(mode="before")
    @classmethod
    def _check_names(cls, given: object) -> object:
        known = tuple(field.alias or name for name, field in cls.model_fields.items())
        strange = [name for name in given if name not in known] if isinstance(given, dict) else []
        if strange:
            raise _faults(((name,), _strange(str(name), known)) for name in strange)
        return given


class ConflictRuleGiven(_PartOfRule):
    """One member of `conflictRules`, in a request or in a file."""

    paths: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=PATH_CHARS_MAX)]],
        Field(min_length=1, max_length=ITEMS_MAX),
    ]
    """Files by globs, in which `*` is any run of characters. For example `["CHANGES"]`."""
    rule: Literal["UNION", "CHANGELOG"]
    """`UNION`: the lines of both sides. `CHANGELOG`: the same, each under its own headings."""

    def value(self) -> ConflictRule:
        """Return the rule as the settings have it."""
        return ConflictRule(tuple(self.paths), Resolution(self.rule))


class PeriodGiven(_PartOfRule):
    """The time of a rule: it applies while the clock in `zone` shows a time of the period."""

    start: Annotated[str, Field(max_length=19, examples=["2026-11-27T18:00"])]
    """When it begins, in local time."""
    zone: Annotated[str, Field(max_length=64, examples=["Europe/Berlin"])]
    """The time zone, by its IANA name."""
    minutes: Annotated[Integer, Field(ge=1, le=periods.MINUTES_MAX, examples=[3720])]
    """How long it lasts by the clock."""
    repeat: Annotated[
        str, Field(max_length=periods.REPEAT_CHARS_MAX, examples=["FREQ=WEEKLY;BYDAY=FR"])
    ] = ""
    """When it begins again: an RRULE of RFC 5545, at most daily. Empty: never."""
    except_on: Annotated[
        list[Annotated[str, Field(max_length=10, json_schema_extra={"format": "date"})]],
        Field(max_length=periods.EXCEPTIONS_MAX, examples=[["2026-12-25"]]),
    ] = Field(default_factory=list)
    """Local days on which it does not begin."""

    def value(self) -> Period:
        """Return it in the types of the engine."""
        days = tuple(self.except_on)
        return Period(self.start, self.zone, self.minutes, self.repeat, days)


class EntryRuleGiven(_PartOfRule):
    """One member of `rules`. It applies while `when` is true and `during` covers the time."""

    name: Annotated[
        str, Field(min_length=1, max_length=checking.NAME_CHARS_MAX, examples=["hotfix"])
    ]
    """The name by which people read of the rule; no two rules have the same."""
    when: Annotated[
        str, Field(max_length=expressions.CHARS_MAX, examples=['"hotfix" in labels && !draft'])
    ] = ""
    """To which pull requests it applies: an expression of CEL. Empty: to all."""
    during: PeriodGiven | None = None
    """When it applies. Left out: always."""
    priority: Priority | None = None
    """The priority of these pull requests, unless a person gives one: a number, lower first, or a
    level. The first rule with a priority counts."""
    enter: bool = False
    """Whether they enter the queue by themselves."""
    wait_for: Annotated[
        str, Field(max_length=checking.WAIT_CHARS_MAX, examples=["two approvals"])
    ] = ""
    """For what they wait as long as the rule applies, in words for people. Empty: for nothing."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Raise what is wrong with the rule, each fault at its field."""
        found = checking.faults(self.value())
        if found:
            raise _faults(
                (tuple(field.split(".")), common.wrong("format", text)) for field, text in found
            )
        return self

    def value(self) -> EntryRule:
        """Return it in the types of the engine."""
        return EntryRule(
            name=self.name,
            when=self.when,
            during=self.during.value() if self.during else None,
            priority=self.priority,
            enter=self.enter,
            wait_for=self.wait_for,
        )


class PeriodShown(Answer):
    """The time of a rule: it applies while the clock in `zone` shows a time of the period."""

    start: str
    """When it begins, in local time. For example `2026-11-27T18:00`"""
    zone: str
    """The time zone, by its IANA name. For example `Europe/Berlin`"""
    minutes: int
    """How long it lasts by the clock. For example `3720`"""
    repeat: str
    """When it begins again: an RRULE of RFC 5545. Empty: never."""
    except_on: tuple[str, ...]
    """Local days on which it does not begin."""


class EntryRuleShown(Answer):
    """A rule applies while `when` is true and `during` covers the time."""

    name: str
    """The name by which people read of the rule. For example `hotfix`"""
    when: str
    """To which pull requests it applies: an expression of CEL. Empty: to all."""
    during: PeriodShown | None
    """When it applies; null: always."""
    priority: int | None
    """The priority of these pull requests; null: it gives none."""
    enter: bool
    """Whether they enter the queue by themselves. For example `true`"""
    wait_for: str
    """For what they wait as long as the rule applies. Empty: for nothing."""


def _faults(found: Iterable[tuple[tuple[str | int, ...], PydanticCustomError]]) -> ValidationError:
    """Return findings of our own at their places."""
    details = [InitErrorDetails(type=each, loc=place, input="") for place, each in found]
    return ValidationError.from_exception_data("rules", details)


def _strange(name: str, known: tuple[str, ...]) -> PydanticCustomError:
    return common.wrong("format", "is no key of a rule", unknown.nearest(name, known))


def _named_once(rules: list[EntryRuleGiven]) -> list[EntryRuleGiven]:
    names = [rule.name for rule in rules]
    again = [n for n, name in enumerate(names) if name in names[:n]]
    if again:
        wrong = common.wrong("format", "is the name of an earlier rule")
        raise _faults(((n, "name"), wrong) for n in again)
    return rules


BATCHING_RULES = tuple[BatchingRule, ...]
CONFLICT_RULES = tuple[ConflictRule, ...]
ENTRY_RULES = tuple[EntryRule, ...]

_ENTRY_RULES = Annotated[
    list[EntryRuleGiven], Field(max_length=checking.RULES_MAX), AfterValidator(_named_once)
]

takes_settings = settings.takes(
    QueueConfig,
    {
        BATCHING_RULES: settings.items_of(BatchingRuleGiven, ITEMS_MAX),
        CONFLICT_RULES: settings.items_of(ConflictRuleGiven, ITEMS_MAX),
        ENTRY_RULES: _ENTRY_RULES,
    },
)
names_settings = settings.names(
    QueueConfig,
    {
        BATCHING_RULES: settings.items_of(BatchingRuleWritten, ITEMS_MAX),
        CONFLICT_RULES: settings.items_of(ConflictRuleGiven, ITEMS_MAX),
        ENTRY_RULES: _ENTRY_RULES,
    },
)
shows_settings = settings.shows(
    QueueConfig,
    {
        BATCHING_RULES: tuple[BatchingRuleShown, ...],
        CONFLICT_RULES: tuple[ConflictRuleShown, ...],
        ENTRY_RULES: tuple[EntryRuleShown, ...],
    },
)


def value_of(taken: object) -> ConfigValue:
    """Return the value of a field of a request in the types of `QueueConfig`."""
    if not isinstance(taken, list):
        return taken  # type: ignore[return-value]
    if taken and isinstance(taken[0], BatchingRuleGiven):
        return tuple(BatchingRule(rule.target_pattern, rule.policy) for rule in taken)
    if taken and isinstance(taken[0], EntryRuleGiven | ConflictRuleGiven):
        return tuple(rule.value() for rule in taken)
    return tuple(taken)
