"""Choose which of several reports of one name on one commit count (docs/design/provider.md 8.2)."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from service.vocabulary import Check, CheckKind

NOT_RUN = frozenset({"skipped", "neutral"})
"""Words of the provider for a check that did not run."""

QUEUED = frozenset({"queued", "requested", "pending", "waiting"})
"""Words of the provider for a check run that has not begun: it waits for a machine or a person."""


def counting(checks: Iterable[Check]) -> tuple[Check, ...]:
    """Return the reports without those that a later report replaces.

    A report replaces only reports of its own source, suite and name, and among check runs only an
    earlier attempt of the same job. In doubt both count. A listing whose pages shift meanwhile has
    a report twice: the later read counts.
    """
    series: defaultdict[tuple[str | None, ...], dict[str, Check]] = defaultdict(dict)
    for check in checks:
        key = (check.kind, check.source_id, check.account, check.group, check.name)
        series[key][check.id] = check
    return tuple(one for reports in series.values() for one in _standing(tuple(reports.values())))


def order(check: Check) -> tuple[int, str]:
    """Return what orders reports; ids are digits without leading zeros: a longer one is later."""
    return len(check.id), check.id


def is_queued(check: Check) -> bool:
    """Return whether a check run has not begun."""
    return check.kind is CheckKind.SUITE_RUN and check.raw in QUEUED


def _standing(reports: Sequence[Check]) -> Sequence[Check]:
    if len(reports) == 1:
        return reports
    if not reports[0].group:
        # Commit statuses have no suite: the newest of an account is what it says now.
        return (max(reports, key=order),)
    jobs = [one for one in reports if one.attempt is not None]
    others = [one for one in reports if one.attempt is None]
    return (*_of_jobs(jobs), *(one for one in others if not _is_repeated(one, others)))


def _of_jobs(jobs: Sequence[Check]) -> Sequence[Check]:
    """Return the jobs of the last attempt, or all if that did not repeat each of the others.

    Several jobs of one attempt may share a name. GitHub does not say which of them a job of a later
    attempt repeats, so fewer jobs than before replace none.
    """
    attempts: defaultdict[int, list[Check]] = defaultdict(list)
    for job in jobs:
        attempts[job.attempt or 0].append(job)
    last = attempts[max(attempts)] if attempts else []
    is_whole = all(len(last) >= len(other) for other in attempts.values())
    return last if is_whole else jobs


def _is_repeated(check: Check, others: Sequence[Check]) -> bool:
    """Return whether a check run that is no CI job had ended before a later one began."""
    ended = check.completed_at
    return ended is not None and any(
        later.started_at is not None and later.started_at >= ended and order(later) > order(check)
        for later in others
    )
