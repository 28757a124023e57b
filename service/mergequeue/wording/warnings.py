"""Warnings about a test run while it is in progress."""

import difflib
from datetime import datetime, timedelta

from service.mergequeue.engine.model import Run
from service.mergequeue.engine.states import RunPhase
from service.mergequeue.wording.endings import TEST_BRANCHES
from service.text import phrases, times
from service.text.phrases import Phrase, phrase
from service.vocabulary import RequiredName

NO_CHECK_AFTER = timedelta(minutes=5)
SIMILAR_SHOWN_MAX = 3
_SIMILARITY = 0.6


def of_run(run: Run, now: datetime) -> list[Phrase]:
    """Sentences about checks that stay away, before the run is given up for it."""
    since = run.start_clock or run.built_at
    if run.phase is not RunPhase.TESTING or since is None:
        return []
    if not run.checks:
        return [_none_started()] if now - since >= NO_CHECK_AFTER else []
    patience = timedelta(minutes=run.config.check_start_timeout_minutes) * 2 / 3
    silent = now - max(since, run.last_report_at or since)
    if silent < patience or not run.checks_complete:
        return []
    reported = sorted({check.name for check in run.checks})
    return [
        _silent(name, times.duration(silent), reported)
        for name in run.required
        if name.name not in reported
    ][: phrases.NAMES_SHOWN_MAX]


def _none_started() -> Phrase:
    return phrase(
        "No check has started on the test branch. Your CI may not run on {}: add that pattern "
        "to the branches your workflows run for.",
        TEST_BRANCHES,
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
