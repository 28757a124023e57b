"""Warnings about a test run while it is in progress."""

import difflib
from datetime import datetime

from service.mergequeue.engine.culprits import verdict
from service.mergequeue.engine.model import Run
from service.mergequeue.wording import reporters
from service.mergequeue.wording.names import TEST_BRANCHES
from service.text import phrases, times
from service.text.phrases import Phrase, phrase
from service.vocabulary import RequiredName

SIMILAR_SHOWN_MAX = 3
_SIMILARITY = 0.6


def of_run(run: Run, now: datetime) -> list[Phrase]:
    """Sentences about checks that stay away, before the run is given up for it."""
    if run.checks and not run.checks_complete:
        return [_unread(name) for name in verdict.silent_of(run)[: phrases.NAMES_SHOWN_MAX]]
    named = [one.named for one in verdict.standings_of(run)]
    foreign = reporters.sentences(named)
    if foreign:
        return foreign[: phrases.NAMES_SHOWN_MAX]
    warns_at = verdict.warns_at(run)
    if warns_at is None or now < warns_at:
        return []
    if not run.checks:
        return [_none_started()]
    since = run.start_clock or run.built_at or run.created_at
    silent = times.duration(now - max(since, run.last_report_at or since))
    reported = sorted({check.name for check in run.checks})
    late = verdict.silent_of(run)[: phrases.NAMES_SHOWN_MAX]
    return [_silent(name, silent, reported) for name in late]


def _none_started() -> Phrase:
    return phrase(
        "No check has started on the test branch. Your CI may not run on {}: add that pattern "
        "to the branches your workflows run for.",
        TEST_BRANCHES,
    )


def _unread(name: RequiredName) -> Phrase:
    return phrase(
        "The test branch has more reports than Headgate reads. {} may be among those that it did "
        "not read.",
        name.name,
    )


def _silent(name: RequiredName, length: str, reported: list[str]) -> Phrase:
    what = phrase("{} has not reported for " + length + ".", name.name)
    similar = difflib.get_close_matches(name.name, reported, SIMILAR_SHOWN_MAX, _SIMILARITY)
    if not similar:
        return what
    return what + phrase(
        " Reported under similar names: {}. If the name changed, update the required checks.",
        phrases.names(similar),
    )
