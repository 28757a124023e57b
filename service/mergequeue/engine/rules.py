"""Rules of entry and order: those of a queue's settings, and their results for a pull request.

`service/mergequeue/entry_rules` judges a pull request by them when its facts are read; the engine
acts on what came of it and knows neither expressions nor recurrences.
"""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Period:
    """The time of a rule: from `start` for some minutes, and again by a recurrence (RFC 5545).

    `start` is local time in `zone` (an IANA name). `repeat` is an RRULE without its name, such as
    `FREQ=WEEKLY;BYDAY=FR`; empty: once. `except_on` are local dates on which none begins.
    """

    start: str
    zone: str
    minutes: int
    repeat: str = ""
    except_on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EntryRule:
    """A decision about the pull requests for which `when` (an expression of CEL) is true.

    `when` empty: all. `during` None: always. `enter`: they enter by themselves. `wait_for` says
    for what they wait while the rule applies to them; empty: for nothing.
    """

    name: str
    when: str = ""
    during: Period | None = None
    priority: int | None = None
    enter: bool = False
    wait_for: str = ""


@dataclass(frozen=True, slots=True)
class Seen:
    """A pull request as rules see it.

    `depends_on` and `not_before` are what its description says in lines of these names, `approvals`
    logins of people with write access whose newest review approves it.
    """

    number: int
    title: str
    author: str
    branch: str
    base: str
    labels: tuple[str, ...]
    approvals: tuple[str, ...]
    draft: bool
    fork: bool
    auto_merge: bool
    depends_on: tuple[int, ...] = ()
    not_before: datetime | None = None


@dataclass(frozen=True, slots=True)
class Span:
    """From `since`, but not including `until`."""

    since: datetime
    until: datetime


@dataclass(frozen=True, slots=True)
class RuleWait:
    """A wait of a pull request, by a rule; `spans` None: until facts or rules change."""

    rule: str
    text: str
    spans: tuple[Span, ...] | None = None

    def holds(self, now: datetime) -> bool:
        """Return whether it waits now."""
        return self.spans is None or any(one.since <= now < one.until for one in self.spans)


@dataclass(frozen=True, slots=True)
class Ruled:
    """The result of the rules for a pull request.

    The first rule with a priority gives it, the first that enters lets it in, and all waits count.
    A name is empty where no rule decides.
    """

    priority: int | None = None
    priority_rule: str = ""
    enter_rule: str = ""
    waits: tuple[RuleWait, ...] = ()


NOT_RULED = Ruled()
