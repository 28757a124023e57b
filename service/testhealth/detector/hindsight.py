"""The health of a test as it was known when a queue's test run began.

The rules are in docs/design/evidence.md 4. Events of the run's own pull requests do not count, or
a pull request that makes a test flaky would be excused for it.
"""

from collections.abc import Set
from dataclasses import dataclass, replace
from datetime import datetime

from service.testhealth.detector import health, series
from service.testhealth.detector.health import Evidence
from service.testhealth.detector.spans import Scale
from service.vocabulary import Health as Status


@dataclass(frozen=True, slots=True)
class Moment:
    """The start of a run of the queue of `branch`; `own`: digests of its pull requests' uploads."""

    at: datetime
    branch: str
    own: Set[str] = frozenset()


def was_flaky(evidence: Evidence, scale: Scale, moment: Moment) -> bool:
    """Return whether the test was flaky before the run, without what its pull requests showed."""
    others = tuple(each for each in evidence.events if each.upload not in moment.own)
    repeats = tuple(each for each in evidence.repeats if each.upload not in moment.own)
    judged = health.judge(replace(evidence, events=others, repeats=repeats), scale)
    before = [change.value for change in judged.history if change.at <= moment.at]
    return bool(before) and before[-1] is Status.FLAKY


def was_red(evidence: Evidence, scale: Scale, moment: Moment) -> bool:
    """Return whether the test failed on the target branch before the run.

    In one of the branch's jobs it was broken, or failed at its two newest verdicts; a job that
    ran no more by then, or without the test, says nothing.
    """
    then = series.Moment(moment.at, evidence.first_pass, series.ran_on(evidence.tracks), {})
    here = [each for each in evidence.tracks if each.series.branch == moment.branch]
    if any(series.is_red(track, then) for track in here):
        return True
    return any(
        span.series.branch == moment.branch
        and span.since <= moment.at
        and (span.until is None or span.until > moment.at)
        for span in health.judge(evidence, scale).broken
    )
