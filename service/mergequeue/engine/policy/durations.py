"""Durations of test runs, by what the queue has measured of their checks."""

from service.mergequeue.engine.model import Run
from service.mergequeue.engine.policy import constants
from service.mergequeue.engine.state.draft import Draft


def minutes_left(draft: Draft, run: Run) -> float:
    """Return how long a run will still take."""
    expected = expected_minutes(draft, run)
    return max(expected - minutes_run(draft, run), constants.OVERDUE_SHARE * expected)


def minutes_run(draft: Draft, run: Run) -> float:
    """Return how long a run has been under way."""
    return (draft.now - (run.start_clock or run.created_at)).total_seconds() / 60


def expected_minutes(draft: Draft, run: Run) -> float:
    """Return how long a run takes: as long as the slowest of its required checks.

    One that repeats failed checks takes their share of that time.
    """
    known = draft.queue.rates.minutes
    measured = [known[one.name] for one in run.required if one.name in known]
    return max(measured, default=constants.RUN_MINUTES) * run.share
