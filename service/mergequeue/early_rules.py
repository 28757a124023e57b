"""Rules that a failed part of CI fails a required check (docs/design/early-failures.md 5).

Pure: the rules follow from what was observed in the queue's own runs.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from statistics import median


class PartKind(StrEnum):
    """The kinds of a part: a whole job, a step of a job, or a test that its job reported."""

    JOB = "job"
    STEP = "step"
    TEST = "test"


class Ending(StrEnum):
    """The end of a required check after a part had failed.

    HELD: it failed too. REFUTED: it passed. UNKNOWN: its end says nothing, for example because we
    had stopped its CI.
    """

    HELD = "held"
    REFUTED = "refuted"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Rule:
    """If this part of a CI file's run fails, the required check of that run fails.

    `job` is the job's key in the file, `step` empty unless the part is a step. Another `version`
    of the required check's job is another rule (`ci_plans.MayDoom`).
    """

    file: str
    version: str
    required: str
    job: str
    kind: PartKind
    step: str = ""


@dataclass(frozen=True, slots=True)
class Observation:
    """A part that failed in one attempt of a run, and how the required check ended.

    `ending` None: it has not ended, as far as is known. `is_foreseen`: the engine was told. `at` is
    when it ended, else when the part was seen. `early_s`: so long after the part the check ended.
    """

    rule: Rule
    run: str
    at: datetime
    ending: Ending | None = None
    is_foreseen: bool = False
    early_s: int | None = None


KEPT = timedelta(days=90)
"""Observations count for so long: longer than a workflow file usually stays the same."""

CONFIRMED_FOR = timedelta(days=30)
"""A confirmation counts for so long. Then a failure is awaited to its end, which confirms anew."""

CONFIRMED_MIN = 2
"""Confirmations of a rule that was never refuted: a failure of both at once may be chance once."""

CONFIRMED_MAX = 16
"""Each refutation doubles the confirmations that are needed, up to this number."""

USES_MAX = 20
"""Failures that a rule foresees at most after its last confirmation.

CI is stopped when a failure was foreseen, so a rule in use is confirmed no more.
"""


def holding(observations: Iterable[Observation], now: datetime) -> Mapping[Rule, float]:
    """Return the rules that hold, each with the seconds by which it foresees: the median."""
    of_rule: defaultdict[Rule, list[Observation]] = defaultdict(list)
    for one in observations:
        if one.at > now - KEPT:
            of_rule[one.rule].append(one)
    return {rule: _early_s(seen) for rule, seen in of_rule.items() if _holds(seen, now)}


def _holds(seen: list[Observation], now: datetime) -> bool:
    refuted = [one.at for one in seen if one.ending is Ending.REFUTED]
    since = max([*refuted, now - CONFIRMED_FOR])
    held = [one for one in seen if one.ending is Ending.HELD and one.at > since]
    needed = min(CONFIRMED_MIN << len(refuted), CONFIRMED_MAX)
    if len({one.run for one in held}) < needed:
        return False
    last = max(one.at for one in held)
    uses = {one.run for one in seen if one.is_foreseen and one.at > last}
    return len(uses) < USES_MAX


def _early_s(seen: list[Observation]) -> float:
    known = [one.early_s for one in seen if one.early_s is not None]
    return float(median(known)) if known else 0.0
